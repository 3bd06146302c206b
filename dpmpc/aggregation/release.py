"""One release at one party: inputs -> sum -> + noise -> ledger -> open. The order of the whole method is in `release`.

A step gets its inputs, its noise, its ledger line and its opening from `Tools`, and each of them writes to the
transcript what it did: the transcript tells what a step used, not what it says of itself. Frames are counted below
that, by `Traffic`, so that an opening that goes around the tools is in the transcript too.
"""

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Protocol

import numpy as np

from dpmpc.aggregation.owner import OwnerGate
from dpmpc.aggregation.plan import Plan
from dpmpc.aggregation.traffic import Traffic
from dpmpc.aggregation.transcript import Opened, Transcript, digest
from dpmpc.mpc import field
from dpmpc.mpc.field import Words
from dpmpc.mpc.session import Session
from dpmpc.privacy.ledger import Entry, Ledger

OPENING_CHANNEL = 1000  # + release
Observer = Callable[[str, int, Session, OwnerGate], None]  # (stage that has just ended, release, ...): for measurements


def unobserved(stage: str, release: int, session: Session, gate: OwnerGate) -> None:
    """Does nothing."""


class NoiseSource(Protocol):
    """Shares of one noise vector a release, each handed out once."""

    async def fill(self) -> None:
        """Make noise ahead."""

    async def take(self, release: int) -> Words:
        """The share (d,) of the noise of `release`."""

    @property
    def ahead(self) -> int:
        """How many vectors were made so far."""


class Tools:
    """What a step may use; every tool notes what it does in the transcript."""

    def __init__(
        self,
        plan: Plan,
        session: Session,
        gate: OwnerGate,
        noise: NoiseSource,
        ledger: Ledger,
        transcript: Transcript,
        opened: Opened,
        traffic: Traffic,
        observe: Observer = unobserved,
    ) -> None:
        self.plan, self.session, self.gate, self.source = plan, session, gate, noise
        self._ledger, self._transcript, self._opened, self._traffic = ledger, transcript, opened, traffic
        self._observe = observe
        self._mechanism = plan.mechanism()
        self.rounds = 0  # of openings

    async def contributions(self, release: int) -> AsyncIterator[Words]:
        """This party's share (d,) of the sum of each owners' process, as it arrives."""
        async for first, end, share in self.gate.contributions(release):
            self._transcript.note("input", release=release, owners=[first, end])
            yield share

    async def inputs(self, release: int) -> Words:
        """This party's share (d,) of the sum of all owners' vectors. No message."""
        self._observe("begin", release, self.session, self.gate)
        total = np.zeros(self.plan.dimension, dtype=np.uint64)
        async for share in self.contributions(release):
            total = field.add(total, share)
        self._observe("collect", release, self.session, self.gate)
        self._transcript.note("sum", release=release)
        return total

    async def noise(self, release: int) -> Words:
        """This party's share (d,) of the noise vector of this release."""
        vector = await self.source.take(release)
        self._transcript.note("noise", release=release, index=release)
        self._observe("noise", release, self.session, self.gate)
        return vector

    def add(self, release: int, total: Words, vector: Words) -> Words:
        """The share of sum + noise. Local."""
        share = field.add(total, vector)
        self._transcript.note("add", release=release)
        self._observe("add", release, self.session, self.gate)
        return share

    def spend(self, release: int) -> None:
        """Write the ledger line; it is on disk when this returns."""
        plan = self.plan
        entry = Entry(plan.run_id, release, (plan.data_id,), self._mechanism, plan.releases, plan.epsilon, plan.delta)
        line = self._ledger.append(entry)
        self._transcript.note("ledger", release=release, line=line)
        self._observe("ledger", release, self.session, self.gate)

    async def open(self, release: int, share: Words) -> Words:
        """The opened vector (d,). The transcript is with the kernel before the first byte leaves. One round."""
        self._transcript.note("send", release=release, digest=digest(share))
        self._transcript.flush()
        ident = OPENING_CHANNEL + release
        channel = self.session.channel(ident)
        opened = await self.session.open(share, channel)
        self.rounds += channel.rounds
        self._opened.append(release, opened)
        self._observe("open", release, self.session, self.gate)
        self._transcript.note("open", release=release, digest=digest(opened))
        self._transcript.note("traffic", **self._traffic.take(self.session.peers, ident))
        self._transcript.flush()
        return opened

    def publish(self, release: int, opened: Words) -> None:
        """Send the opened vector to the owners, with the bytes sent so far."""
        self.gate.publish(release, opened, self.session.bytes_sent + self.gate.bytes_sent)
        self._observe("publish", release, self.session, self.gate)

    def end(self, releases: int) -> None:
        """Note everything else that went over the wires, and the end."""
        for ident in self._traffic.channels():
            self._transcript.note("traffic", **self._traffic.take(self.session.peers, ident))
        self._transcript.note("end", releases=releases)
        self._transcript.flush()


Step = Callable[[int], Awaitable[Words]]
MakeStep = Callable[[Tools], Step]


def release(tools: Tools) -> Step:
    """The step of every release: (its number) -> the opened vector (d,)."""

    async def step(number: int) -> Words:
        total = await tools.inputs(number)
        vector = await tools.noise(number)
        share = tools.add(number, total, vector)
        tools.spend(number)
        return await tools.open(number, share)

    return step
