"""The owners' end of a run: their own connections to every party, shares out, opened releases in. Semi-honest.

One process may play all owners or some of them. Each owner's vector is shared on its own, with fresh randomness of the
operating system; blocks of owners travel in one frame.
"""

import asyncio
import contextlib
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import Any

import numpy as np

from dpmpc.aggregation import frames
from dpmpc.aggregation.frames import ANSWER, HELLO, READY, WINDOW, PartyCost, exact, greeting, result_bytes
from dpmpc.aggregation.grid import Ints
from dpmpc.aggregation.plan import Attempt, Plan
from dpmpc.errors import PeerError
from dpmpc.mpc import channels
from dpmpc.mpc.addresses import Endpoint
from dpmpc.mpc.backend import BACKENDS, Spares
from dpmpc.mpc.channels import block_label
from dpmpc.mpc.dial import Call, keep_alive
from dpmpc.mpc.link import Connection, part
from dpmpc.mpc.meeting import Meeting
from dpmpc.mpc.pulse import STALL, Pulse
from dpmpc.mpc.tls import Tls
from dpmpc.mpc.wire import FRAME_COST, Peer
from dpmpc.mpc.within import Within


class OwnerClient:
    """Connections of the owners `first` .. `end - 1` with all parties, for one attempt of a run."""

    def __init__(
        self,
        plan: Plan,
        attempt: Attempt,
        first: int = 0,
        end: int | None = None,
        within: Mapping[int, Within] = MappingProxyType({}),
        *,
        stall: float = STALL,
        say: Callable[[str], None] = lambda text: None,
        secret: str = "",
    ) -> None:
        """`within`: connections with parties of this process, by number; the others are called. `say` gets the lines on
        who is waited for; `stall` and `secret` as the parties have them. Needs a running event loop only from `connect`
        on."""
        self.plan, self.attempt = plan, attempt
        self.first, self.end = first, plan.owners if end is None else end
        assert 0 <= self.first < self.end <= plan.owners
        self.peers: list[Connection] = []
        self.lost: dict[int, PeerError] = {}  # parties that left after noise was made and are not needed
        backend = BACKENDS[plan.backend]
        self._spare = backend.spare(plan.parties, plan.threshold) if isinstance(backend, Spares) else 0
        self._sent: dict[int, int] = {}  # bytes of each party, as it said last
        self._within = within
        self._here: dict[int, Connection] = {}
        self._pulse = Pulse(stall, say)
        self._greeting = greeting(plan, attempt, secret)

    @property
    def name(self) -> str:
        """The name that this process's certificate must be for."""
        return frames.certificate_name(self.plan, self.first, self.end)

    async def connect(self, endpoints: Sequence[Endpoint], seconds: float, tls: Tls | None = None) -> None:
        """Connect with every party; one that leaves before all are here may come again. Errors: PeerError when one
        does not answer in time or runs another plan."""
        meeting = Meeting(range(len(endpoints)), self._on_lost)
        self._here = meeting.here
        calls = [Call(endpoint, f"party{i}", tls) for i, endpoint in enumerate(endpoints)]

        def missing() -> str:
            names = [f"{i} ({calls[i].endpoint}, {calls[i].problem})" for i in meeting.missing()]
            return f"party {', '.join(names)}" if names else ""

        for i, call in enumerate(calls):
            meeting.keep_calling(i, partial(self._call, meeting, i, call))
        try:
            with self._pulse.waiting(missing):
                async with asyncio.timeout(seconds):
                    await meeting.all_come()
        except TimeoutError:
            raise PeerError(
                f"every party must answer its owners within {seconds:g} s; missing: {missing()}; start it, or mend -P "
                "/ -B"
            ) from None
        finally:
            meeting.end()
        self.peers = [self._here[i] for i in range(len(calls))]

    async def _call(self, meeting: Meeting, party: int, call: Call) -> Connection:
        run_id = self.plan.session_id(self.attempt)
        hello = HELLO.pack(self.first, self.end, self._greeting)
        if party in self._within:
            mine = self._within[party]
            mine.on_lost = meeting.lost
            mine.send(channels.HELLO, hello)
            self._check(call.endpoint, party, mine, await mine.receive(channels.HELLO))
            meeting.come(party, mine)
            return mine

        def check(peer: Peer, payload: bytearray) -> None:
            self._check(call.endpoint, party, peer, payload)
            keep_alive(peer)
            self._pulse.watch(peer)
            meeting.come(party, peer)
            largest = max(result_bytes(self.plan.dimension), frames.COST.size)
            peer.admit(largest, (WINDOW + 4) * (largest + FRAME_COST))

        return await call.greeted(lambda: Peer(f"party {party}", run_id, meeting.lost), hello, check)

    def _check(self, endpoint: Endpoint, party: int, peer: Connection, payload: bytearray) -> None:
        """Errors: PeerError for an answer that party `party` of this plan would not give."""
        index, other = ANSWER.unpack(exact(peer, payload, ANSWER.size))
        if index != party or other != self._greeting:
            raise PeerError(
                f"{endpoint} must be party {party} of the same plan; party {index} with plan {other.hex()[:8]} "
                "answers; mend -P, or copy plan.json again"
            )

    def _on_lost(self, peer: Connection, error: PeerError) -> None:
        """Whoever awaits something of it is told; the others' frames are on their way."""

    @property
    def called(self) -> str:
        """What others call this process."""
        one = self.end == self.first + 1 and self.plan.owners > 1
        return f"owner {self.first}" if one else "the owners' process"

    async def leave(self, reason: str) -> None:
        """End the connections, and tell the parties why."""
        self._pulse.stop()
        await part(list(self._here.values()), reason)

    def _without(self, party: int, error: PeerError) -> None:
        """Go on without a party. Errors: the given one, if too many have left."""
        self.lost[party] = error
        if len(self.lost) > self._spare:
            raise error

    def _left(self) -> list[tuple[int, Connection]]:
        return [(party, peer) for party, peer in enumerate(self.peers) if party not in self.lost]

    async def _from_left(self, label: int, size: int) -> dict[int, bytearray]:
        """The payload of `size` bytes of the frame with this label, of every party that is left; one that leaves now
        and is not needed is left out. Errors: PeerError."""
        awaited = [(party, peer, peer.receive(label)) for party, peer in self._left()]
        payloads = {}
        for party, peer, each in awaited:
            try:
                payload = await each
            except PeerError as error:
                self._without(party, error)
                continue
            payloads[party] = exact(peer, payload, size)
        return payloads

    async def ready(self) -> int:
        """The bytes all parties have sent so far, when every party has the noise it makes ahead. Errors: PeerError;
        noise needs all."""
        awaited = [peer.receive(channels.READY) for peer in self.peers]
        for party, (peer, each) in enumerate(zip(self.peers, awaited, strict=True)):
            (self._sent[party],) = READY.unpack(exact(peer, await each, READY.size))
        return sum(self._sent.values())

    async def send(self, release: int, block: int, payloads: Sequence[Any]) -> None:
        """Send one block of shares, a payload a party; waits for consent where too many are under way."""
        if block >= WINDOW:
            await self._from_left(block_label(release, block - WINDOW), 0)
        for party, peer in self._left():
            try:
                peer.send(block_label(release, block), payloads[party])
            except PeerError as error:
                self._without(party, error)

    async def opened(self, release: int) -> tuple[Ints, int]:
        """The opened sum of one release (d,) in grid steps, and the bytes all parties have sent so far.

        Errors: PeerError when a party leaves, or when the parties' results differ.
        """
        results: list[Ints] = []
        for party, payload in (
            await self._from_left(block_label(release, -1), result_bytes(self.plan.dimension))
        ).items():
            words = np.frombuffer(payload, dtype="<i8")
            results.append(words[:-1])
            self._sent[party] = int(words[-1])
        if any((other != results[0]).any() for other in results[1:]):
            raise PeerError(
                f"all parties must open the same vector; release {release} differs; a party computes wrongly, see "
                "`dpmpc verify`"
            )
        return results[0], sum(self._sent.values())

    async def finish(self) -> list[PartyCost]:
        """The costs of every party that is left; ends the connections in agreement."""
        payloads = await self._from_left(channels.COST, frames.COST.size)
        costs = [PartyCost.unpack(payload) for payload in payloads.values()]
        for _, peer in self._left():
            with contextlib.suppress(PeerError):  # it may have left already
                peer.send(channels.COST, b"")
        self.abandon()
        await asyncio.sleep(0)
        return costs

    def abandon(self) -> None:
        """Close the connections at once."""
        self._pulse.stop()
        for peer in self._here.values():
            peer.close()

    @property
    def bytes_sent(self) -> int:
        """Bytes these owners have sent to parties, headers included."""
        return sum(peer.bytes_sent for peer in self.peers)
