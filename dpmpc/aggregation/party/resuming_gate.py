"""A party's end of its connections with owners where some may be missing: they leave, come late, and return.

Each owners' process is served by a task of its own, which takes its shares release by release. A release waits for
those that take part, for `release_wait` seconds at most; then the parties agree on the owners whose shares have reached
all of them (`agreement`), and that set is the release's. Shares that come too late are dropped. Who comes later gets
the releases that were opened before, and joins at the first one that no party has closed when it has caught up; until
then nobody waits for it.

Nothing here depends on a record, and the sum's sensitivity does not depend on who is there; see docs/privacy.md.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any

from dpmpc.aggregation.party.admission import Guest
from dpmpc.aggregation.party.agreement import Agreement, TooFew
from dpmpc.aggregation.party.owner_gate import OwnerGate
from dpmpc.aggregation.party.participation import Participation
from dpmpc.aggregation.party.resume import Past
from dpmpc.aggregation.plan.asked import Attempt, Presence
from dpmpc.aggregation.plan.grid import Ints
from dpmpc.aggregation.wire.frames import COUNT, LATER, READY, WINDOW, exact, pack_result, pieces_of, result_size
from dpmpc.errors import PeerError
from dpmpc.mpc.contract.backend import BACKENDS, Share, Spares
from dpmpc.mpc.transport import channels
from dpmpc.mpc.transport.abort_reason import reason_of
from dpmpc.mpc.transport.channels import block_label
from dpmpc.mpc.transport.link import Connection
from dpmpc.mpc.transport.wire import HEADER, Peer


class ResumingGate(OwnerGate):
    """As `OwnerGate`; owners may be missing."""

    takes_late = True

    def __init__(self, *arguments: Any, **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        self._participation: Participation[Share] = Participation.of(self.attempt.first_release)
        self._agreed: Presence = ()
        self._history: list[bytes] = []  # what was published, by release from the attempt's first
        self._noise = asyncio.Event()  # is there
        self._announced = 0
        self._serving: dict[int, asyncio.Task[None]] = {}
        self._patience = 600.0
        self._settled = asyncio.Event()  # whether the attempt is agreed on
        self._spent: dict[int, int] = {}  # by first owner
        backend, parties = BACKENDS[self.plan.backend], self.plan.parties
        spare = backend.spare(parties, self.plan.threshold) if isinstance(backend, Spares) else 0
        self._enough = parties - spare  # of the parties, for an agreement

    # -- owners come -------------------------------------------------------------------------------------------------
    async def admit(self, seconds: float) -> None:
        """Return when all owners are connected, or so many as a release needs and `release_wait` has passed. Errors:
        PeerError when too few come."""
        self._patience = seconds
        with contextlib.suppress(PeerError):
            loop = asyncio.get_running_loop()
            end = loop.time() + seconds
            with self._heartbeat.waiting(self._missing_text):
                while self._admission.here < self.plan.fewest and loop.time() < end:
                    await self._wait(end - loop.time())
                late = min(loop.time() + self.plan.release_wait, end)
                while self._admission.missing and loop.time() < late:
                    await self._wait(late - loop.time())
        if self._admission.here < self.plan.fewest:
            raise PeerError(
                f"at least {self.plan.fewest} of {self.plan.owners} owners must come within {seconds:g} s; "
                f"{self._admission.here} did; missing: {self._missing_text()}; start their processes"
                f"{self._listener.refusals()}"
            )
        self._admission = self._admission.begins()

    async def _wait(self, seconds: float) -> None:
        """Returns when something has changed, after `seconds` at the latest."""
        self._changed.clear()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(max(seconds, 0.0)):
                await self._changed.wait()

    def _came(self, first: int, end: int, peer: Guest) -> None:
        if first in self._serving:
            self._serving[first].cancel()
        self._participation = self._participation.comes(first, end)
        self._serving[first] = asyncio.ensure_future(self._serve(first, end, peer))

    async def _serve(self, first: int, end: int, peer: Guest) -> None:
        """One owners' process, until it leaves."""
        try:
            await self._see_account(first, end, peer)
            if self.returns:
                self._spent[first] = self._read_spent(peer, await peer.receive(channels.SPENT))
                self._changed.set()
                await self._settled.wait()
                self._tell_past(peer)
            known = COUNT.unpack(exact(peer, await peer.receive(channels.KNOWN), COUNT.size))[0]
            await self._noise.wait()
            peer.send(channels.READY, READY.pack(self._announced, self.token))
            self._participation, release = self._participation.names(first, end, lost=bool(self._parties_gone()))
            peer.send(channels.JOIN, COUNT.pack(release))
            for k, payload in enumerate(self._history):  # no await since the release was named: none is left out
                if (number := self.attempt.first_release + k) >= known:
                    peer.send(block_label(number, -1), payload)
            joins = COUNT.unpack(exact(peer, await peer.receive(channels.JOIN), COUNT.size))[0]
            if joins == LATER:
                self._participation = self._participation.lags(first)
                self._changed.set()
                joins = COUNT.unpack(exact(peer, await peer.receive(channels.JOIN), COUNT.size))[0]
            self._participation = self._participation.joins(first, joins)
            for release in range(joins, self.plan.releases):
                await self._take(first, end, peer, release)
        except PeerError as error:
            if peer.lost is None:  # it sent what no owner sends
                self._log(f"{peer.name} is dropped: {error.message}")
                if isinstance(peer, Peer):
                    peer.farewell(reason_of(error))
                peer.close()
                self._admission = self._admission.without(peer)
                self._changed.set()

    async def _take(self, first: int, end: int, peer: Guest, release: int) -> None:
        """The shares of one release; those of one that is closed are read and dropped, as the owner waits for
        consent."""
        pieces, totals = pieces_of(first, end, self.plan.dimension), dict[int, Share]()
        for k, piece in enumerate(pieces):
            payload = await peer.receive(block_label(release, k))
            if self._participation.takes(release):
                share, at = self._adder.collect(peer, release, payload, piece), piece.begin
                totals[at] = share if at not in totals else self._adder.add(totals[at], share)
            if k + WINDOW < len(pieces):
                peer.send(block_label(release, k), b"")
        if self._participation.takes(release):
            self._participation = self._participation.shared(release, first, end, self._adder.joined(totals))
            self._changed.set()

    async def see_accounts(self) -> None:
        """Owners come and go: each shows its account before it is served."""

    async def spent(self) -> int:
        """As `OwnerGate.spent`, of the owners that are there."""
        while any(first not in self._spent for first, _, _ in self._admission.guests):
            await self._wait(self._patience)
        return max(self._spent.values(), default=0)

    def begin(self, attempt: Attempt, past: Past) -> None:
        """As `OwnerGate.begin`; who comes later is told, too."""
        self.attempt, self._past = attempt, past
        self._participation = Participation.of(attempt.first_release)
        self._settled.set()

    # -- a release ---------------------------------------------------------------------------------------------------
    async def agree(self, release: int) -> Presence:
        """The owners whose shares of this release have reached all parties that are left; see `agreement`. Errors:
        PeerError where they stay too few."""
        loop = asyncio.get_running_loop()
        begin = loop.time()

        async def more() -> bool:
            await self._complete(release)
            return loop.time() - begin < self._patience

        await self._complete(release)
        agreement = Agreement(self.plan, self.holder, release, self._enough)
        try:
            found = await agreement.reached(lambda: self._participation.present(release), more)
        except TooFew:
            raise PeerError(
                f"a release needs {self.plan.fewest} of {self.plan.owners} owners; within {loop.time() - begin:.0f} s "
                f"only {len(agreement.short)} sent shares for release {release}; start the missing ones: "
                f"{self._missing_text()}"
            ) from None
        self._agreed, self._participation = found, self._participation.closes(release)
        return found

    async def _complete(self, release: int) -> None:
        """Returns when all owners that take part have sent their shares, and enough of them; at the latest when
        `release_wait` has passed."""
        loop = asyncio.get_running_loop()
        end = loop.time() + self.plan.release_wait
        with self._heartbeat.waiting(lambda: self._late(release)):
            while (self._late(release) or self._few(release)) and loop.time() < end:
                await self._wait(end - loop.time())

    def _late(self, release: int) -> str:
        """Those that take part and have not sent their shares."""
        here = {first: peer.name for first, _, peer in self._admission.guests}
        late = [here[first] for first in self._participation.late(release, here)]
        return ", ".join(late[:8]) + (f" and {len(late) - 8} more" if len(late) > 8 else "")

    def _few(self, release: int) -> bool:
        return len(self._participation.present(release)) < self.plan.fewest

    async def contributions(self, release: int) -> AsyncIterator[tuple[int, int, Share]]:
        """As `OwnerGate.contributions`, of those that the parties agreed on."""
        self._participation, found = self._participation.taken(release, self._agreed)
        for each in found:
            yield each.first, each.end, each.share

    def announce(self, bytes_sent: int) -> None:
        self._announced = bytes_sent
        self._noise.set()

    def publish(self, release: int, opened: Ints, bytes_sent: int, present: Presence | None = None) -> None:
        owners = [(first, peer) for first, _, peer in self._admission.guests if first in self._participation.served]
        bytes_sent += len(owners) * (HEADER.size + result_size(self.plan))
        payload = pack_result(self.plan, opened, bytes_sent, present)
        self._history.append(payload)
        for _, peer in owners:
            if peer.lost is None:
                peer.send(block_label(release, -1), payload)

    # -- owners leave ------------------------------------------------------------------------------------------------
    def _left(self, peer: Connection, error: PeerError) -> None:
        self._log(f"{peer.name} has left: {error.message}")
        self._changed.set()

    def abandon(self) -> None:
        for task in self._serving.values():
            task.cancel()
        super().abandon()
