"""A party's end of its connections with owners: admits them, adds up their shares, sends them what was opened."""

import asyncio
import contextlib
import socket
import time
from collections.abc import AsyncIterator, Callable

import numpy as np

from dpmpc.aggregation.archive import Archive
from dpmpc.aggregation.asked import AGREED, Attempt, Presence
from dpmpc.aggregation.frames import (
    ANSWER,
    ASKING,
    COUNT,
    HAVE,
    HELLO,
    NO_TOKEN,
    OVER,
    READY,
    WAITING,
    WINDOW,
    PartyCost,
    Piece,
    certificate_name,
    exact,
    greeting,
    pack_beginning,
    pack_result,
    pieces_of,
    result_size,
)
from dpmpc.aggregation.grid import Ints
from dpmpc.aggregation.news import NOBODY
from dpmpc.aggregation.plan import Plan
from dpmpc.aggregation.settling import Past
from dpmpc.errors import PeerError
from dpmpc.mpc import channels
from dpmpc.mpc.addresses import Endpoint
from dpmpc.mpc.backend import BACKENDS, Holder, Outlives, Share
from dpmpc.mpc.channels import block_label
from dpmpc.mpc.dial import keep_alive
from dpmpc.mpc.door import Door, Refused
from dpmpc.mpc.link import Connection
from dpmpc.mpc.owner_checks import Inspects
from dpmpc.mpc.pulse import Pulse
from dpmpc.mpc.tls import Tls, check_name
from dpmpc.mpc.wire import FRAME_COST, HEADER, Peer
from dpmpc.mpc.within import Within

FINISH_SECONDS = 600.0  # for an owner that computes its last figures
PARTY_SECONDS = 10.0  # for a party that has left to come again, and hear that the run is over
Guest = Peer | Within


class OwnerGate:
    """Listens for owners, for one attempt of a run."""

    def __init__(
        self,
        plan: Plan,
        attempt: Attempt,
        holder: Holder,
        *,
        pulse: Pulse | None = None,
        log: Callable[[str], None] = lambda text: None,
        secret: str = "",
    ) -> None:
        """`secret`: what owners must know besides the plan, for runs of one machine. `log` hears of callers that were
        refused."""
        self.plan, self.attempt, self.holder = plan, attempt, holder
        self.lost: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.adding_s = 0.0  # spent adding up shares
        self._pulse, self._log = pulse or Pulse(), log
        self._greeting = greeting(plan, attempt, secret)
        self._run = plan.session_id(attempt)  # as callers know it, whatever attempt is agreed on
        self.returns = attempt == AGREED  # processes may come again, after a run was interrupted and at its end
        self.state = WAITING
        self.token = NO_TOKEN  # of the attempt, when the parties have drawn it
        self._past: Past = {}
        self._archive: Archive | None = None  # when everything was opened
        self._askers: list[Peer] = []
        self._asked_at: dict[int, float] = {}  # by party: when it asked last, or was told that the run is over
        self._after: list[asyncio.Task[None]] = []
        self._tls = False
        self._door = Door(self._make, self._greeted, log)
        self._owners: dict[int, tuple[int, Guest]] = {}  # by first owner: (end, connection)
        self._within: Within | None = None
        self._joining: list[asyncio.Task[None]] = []
        self._begun = False  # whether all have come
        self._changed = asyncio.Event()

    async def listen(self, endpoint: Endpoint, tls: Tls | None = None, bound: socket.socket | None = None) -> None:
        """Open the owners' port, on the socket that was bound before if there is one; owners are admitted from now on.
        Errors: UsageError when it is taken."""
        self._tls = tls is not None
        await self._door.open(endpoint, bound, tls, f"party {self.holder.party} must listen for owners")

    def _make(self) -> Peer:
        return Peer("a caller", self._run, self._on_lost)

    def _greeted(self, peer: Guest, payload: bytearray) -> None:
        """Admits an owners' process. Errors: Refused."""
        plan = self.plan
        if len(payload) != HELLO.size:
            raise Refused(f"a greeting has {HELLO.size} bytes; got {len(payload)}; are all processes of one version?")
        first, end, other = HELLO.unpack(payload)
        if first == ASKING and self.returns and isinstance(peer, Peer):
            self._asked(peer, end, other)
            return
        has_all = bool(first & HAVE) and self.returns and isinstance(peer, Peer)
        if has_all:
            first -= HAVE
        if not first < end <= plan.owners:
            raise Refused(
                f"owners are numbered from 0 to {plan.owners - 1}; {first}..{end - 1} came; mend -I, or copy plan.json "
                "again"
            )
        if self._tls and isinstance(peer, Peer):
            try:
                check_name(peer.certificate, certificate_name(plan, first, end))
            except PeerError as error:
                raise Refused(str(error)) from None
        peer.name = f"owner {first}" if end == first + 1 else f"the owners' process ({first}..{end - 1})"
        if other != self._greeting:
            raise Refused(
                f"owners and parties must have the same plan; party {self.holder.party} has {self._greeting.hex()[:8]},"
                f" {peer.name} {other.hex()[:8]}; copy plan.json again"
            )
        if has_all and isinstance(peer, Peer):
            if self._archive is not None:
                self._archive.deliver(first, end)
            self._asked(peer, NOBODY, other)
            return
        if self._begun and self.returns and not self.plan.dropouts and self._archive is None:
            self._begin_anew(first, end)
        self._forget(first, end)
        peer.send(channels.HELLO, self._answer())
        start, stop, begin, end_of_piece = pieces_of(first, end, plan.dimension)[0]  # no other is larger
        backend, width = BACKENDS[plan.backend], end_of_piece - begin
        largest = backend.payload_bytes(plan.parties, plan.threshold, stop - start, width)[self.holder.party]
        if isinstance(peer, Peer):
            keep_alive(peer)
            peer.admit(largest, (WINDOW + 2) * (largest + FRAME_COST))
            self._pulse.watch(peer)
        self._owners[first] = (end, peer)
        if self._archive is not None:
            self._after.append(asyncio.ensure_future(self._serve_after(self._archive, first, end, peer)))
        else:
            self._came(first, end, peer)
        self._changed.set()

    def _answer(self) -> bytes:
        gone = sum(1 << j for j in self._parties_gone()).to_bytes(64, "little")
        return ANSWER.pack(self.holder.party, self._greeting, self.state, gone)

    def _asked(self, peer: Peer, party: int, other: bytes) -> None:
        """Somebody of this run asks how it is. Errors: Refused for one of another plan."""
        if other != self._greeting:
            raise Refused(
                f"all processes must have the same plan; party {self.holder.party} has another; copy it again"
            )
        peer.send(channels.HELLO, self._answer())
        peer.admit(0, 0)
        self._askers = [each for each in self._askers if each.lost is None] + [peer]
        self._asked_at[party] = asyncio.get_running_loop().time()
        self._changed.set()

    def _begin_anew(self, first: int, end: int) -> None:
        """These owners have come again, so their earlier process is gone, noticed or not: the run is interrupted.
        Errors: PeerError, with which they are hung up on; they call again."""
        for start, (stop, peer) in list(self._owners.items()):
            if start < end and first < stop:
                self._on_lost(peer, PeerError(f"{peer.name} has come again; its earlier process is gone"))
        raise PeerError("all begin anew")

    def _parties_gone(self) -> list[int]:
        """The parties that have left, without which the run goes on."""
        return sorted(self.holder.gone) if isinstance(self.holder, Outlives) else []

    def _came(self, first: int, end: int, peer: Guest) -> None:
        """An owners' process was admitted."""

    def _forget(self, first: int, end: int) -> None:
        """These owners have come again by another connection: the one they have may be dead, and is dropped. Errors:
        Refused, where it is in this process."""
        for start, (stop, peer) in list(self._owners.items()):
            if start < end and first < stop:
                if peer is self._within:
                    raise Refused(
                        f"every owner must come once; owner {start} is in one process with party {self.holder.party}; "
                        "mend -I"
                    )
                del self._owners[start]
                if isinstance(peer, Peer):
                    peer.farewell(f"every owner must come once; owner {max(first, start)} came again; mend -I")
                    peer.discard()
                peer.close()

    def _missing(self) -> set[int]:
        """The owners that are not connected."""
        here = (range(first, end) for first, (end, _) in self._owners.items())
        return set(range(self.plan.owners)).difference(*here)

    def _missing_text(self) -> str:
        missing = sorted(self._missing())
        more = f" and {len(missing) - 8} more" if len(missing) > 8 else ""
        return f"owner {', '.join(map(str, missing[:8]))}{more}" if missing else ""

    def join(self, owner: Within) -> None:
        """The owner in this process comes in; it needs no certificate and no heartbeats."""
        self._within = owner
        owner.on_lost = self._on_lost

        async def come() -> None:
            greeting = await owner.receive(channels.HELLO)
            try:
                self._greeted(owner, greeting)
            except Refused as error:
                self._log(f"refused {owner.name}: {error}")
                owner.close()

        self._joining.append(asyncio.ensure_future(come()))

    async def admit(self, seconds: float) -> None:
        """Return when all owners are connected; one that leaves before may come again. Errors: PeerError when some do
        not come."""
        try:
            with self._pulse.waiting(self._missing_text):
                async with asyncio.timeout(seconds):
                    while self._missing():
                        self._changed.clear()
                        await self._changed.wait()
        except TimeoutError:
            missing = len(self._missing())
            raise PeerError(
                f"all owners must come within {seconds:g} s; {missing} of {self.plan.owners} did not: "
                f"{self._missing_text()}; start their processes{self._door.refusals()}"
            ) from None
        self._begun = True
        if not self.returns:
            self._door.close()

    async def spent(self) -> int:
        """The releases that the owners' own ledgers have lines of: one more than the last."""
        waited = [(peer, peer.receive(channels.SPENT)) for _, _, peer in self._each()]
        return max([COUNT.unpack(exact(peer, await each, COUNT.size))[0] for peer, each in waited], default=0)

    def begin(self, attempt: Attempt, past: Past) -> None:
        """The parties have agreed on the attempt: the owners are told, with what was opened before."""
        self.attempt, self._past = attempt, past
        for _, _, peer in self._each():
            self._tell_past(peer)
        self._past = {}

    def _tell_past(self, peer: Guest) -> None:
        peer.send(channels.BEGIN, pack_beginning(self.attempt, self._past))
        for release, payload in self._past.items():
            peer.send(block_label(release, -1), payload)

    def _each(self) -> list[tuple[int, int, Guest]]:
        """(first, end, connection) of every owners' process, in order."""
        return [(first, *self._owners[first]) for first in sorted(self._owners)]

    def announce(self, bytes_sent: int) -> None:
        """Tell the owners that the noise made ahead is there, how many bytes this party has sent for it, and the token
        of the attempt."""
        for _, _, peer in self._each():
            peer.send(channels.READY, READY.pack(bytes_sent, self.token))

    async def agree(self, release: int) -> Presence:
        """The owners whose shares of this release have reached all parties; the parties agree on them."""
        return tuple(range(self.plan.owners))

    async def contributions(self, release: int) -> AsyncIterator[tuple[int, int, Share]]:
        """(first, end, share): this party's share (d,) of the sum of owners first .. end - 1, for each owners' process
        as it arrives.

        No message but consent.
        """
        owners = self._each()
        awaited = [peer.receive(block_label(release, 0)) for _, _, peer in owners]
        for (first, end, peer), payload in zip(owners, awaited, strict=True):
            yield first, end, await self._taken(first, end, peer, release, payload)

    async def rows(self, release: int) -> AsyncIterator[tuple[int, int, list[Share]]]:
        """(first, end, shares): this party's shares (k, d) of the vectors of owners first .. end - 1, in order, for
        each owners' process as it arrives. All are kept: 8 bytes a coordinate and owner. No message but consent."""
        owners = self._each()
        awaited = [peer.receive(block_label(release, 0)) for _, _, peer in owners]
        for (first, end, peer), payload in zip(owners, awaited, strict=True):
            blocks: dict[int, list[Share]] = {}  # by first owner: columns
            async for piece, share in self._pieces(first, end, peer, release, payload):
                blocks.setdefault(piece.first, []).append(share)
            yield first, end, [each[0] if len(each) == 1 else np.concatenate(each, axis=1) for each in blocks.values()]

    async def _pieces(
        self, first: int, end: int, peer: Guest, release: int, payload: "asyncio.Future[bytearray]"
    ) -> AsyncIterator[tuple[Piece, Share]]:
        """The shares of each frame. `payload`: the first one's."""
        pieces = pieces_of(first, end, self.plan.dimension)
        assert isinstance(self.holder, Inspects)
        for k, piece in enumerate(pieces):
            yield piece, self._read(self.holder.rows, peer, release, await payload, piece)
            if k + WINDOW < len(pieces):
                peer.send(block_label(release, k), b"")
            if k + 1 < len(pieces):
                payload = peer.receive(block_label(release, k + 1))

    async def _taken(
        self, first: int, end: int, peer: Guest, release: int, payload: "asyncio.Future[bytearray]"
    ) -> Share:
        """This party's share (d,) of the sum of owners first .. end - 1. `payload`: their first frame's. Frames are
        added up as they come; of a long vector the columns are put together at the end."""
        pieces, totals = pieces_of(first, end, self.plan.dimension), dict[int, Share]()
        for k, piece in enumerate(pieces):
            share = self._collect(peer, release, await payload, piece)
            at = piece.begin
            totals[at] = share if at not in totals else self._added(totals[at], share)
            if k + WINDOW < len(pieces):
                peer.send(block_label(release, k), b"")
            if k + 1 < len(pieces):
                payload = peer.receive(block_label(release, k + 1))
        return totals[0] if len(totals) == 1 else self.holder.join(list(totals.values()))

    def _collect(self, peer: Guest, release: int, payload: bytearray, piece: Piece) -> Share:
        return self._read(self.holder.collect, peer, release, payload, piece)

    def _read(
        self,
        read: Callable[[bytes | bytearray, int, int], Share],
        peer: Guest,
        release: int,
        payload: bytearray,
        piece: Piece,
    ) -> Share:
        begin = time.perf_counter()
        try:
            share = read(payload, piece.end - piece.first, piece.stop - piece.begin)
        except PeerError as error:
            raise PeerError(f"{peer.name}, release {release}: {error}") from None
        self.adding_s += time.perf_counter() - begin
        return share

    def _added(self, a: Share, b: Share) -> Share:
        begin = time.perf_counter()
        share = self.holder.add(a, b)
        self.adding_s += time.perf_counter() - begin
        return share

    def publish(self, release: int, opened: Ints, bytes_sent: int, present: Presence | None = None) -> None:
        """Send an opened release to all owners, with the bytes this party has sent so far, and who is in it where some
        may be missing."""
        bytes_sent += len(self._owners) * (HEADER.size + result_size(self.plan))  # these frames too
        payload = pack_result(self.plan, opened, bytes_sent, present)
        for _, _, peer in self._each():
            peer.send(block_label(release, -1), payload)

    async def finish(self, cost: PartyCost) -> None:
        """Send the costs and end the connections in agreement. Everything was opened: an owner that has left, or does
        not agree within `FINISH_SECONDS`, is not waited for."""
        owners = [peer for _, _, peer in self._each()]
        for peer in owners:
            peer.expects_end = True
            with contextlib.suppress(PeerError):
                peer.send(channels.COST, cost.pack())
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(FINISH_SECONDS):
                for peer in owners:
                    with contextlib.suppress(PeerError):
                        await peer.receive(channels.COST)
        self.abandon()
        await asyncio.sleep(0)

    async def linger(self, archive: Archive, cost: PartyCost, seconds: float) -> None:
        """Everything was opened. Returns when all owners have got it, those too that come again, and parties that came
        again know; at the latest after `seconds`, and after `PARTY_SECONDS` where only parties are missing."""
        self._archive, self.state = archive, OVER
        for first, end, peer in self._each():
            self._after.append(asyncio.ensure_future(self._part(archive, cost, first, end, peer)))
        loop = asyncio.get_running_loop()
        begin = loop.time()
        gone = self._parties_gone()

        def untold() -> str:
            missing = sorted(set(range(self.plan.owners)) - archive.delivered)
            shown = ", ".join(map(str, missing[:8])) + (f" and {len(missing) - 8} more" if len(missing) > 8 else "")
            parties = [j for j in gone if self._asked_at.get(j, 0.0) < begin]
            if missing:
                return f"owner {shown}, to have the end: start it again if it has ended; this process may be ended too"
            return f"party {parties[0]}, to know" if parties else ""

        with self._pulse.waiting(untold):
            while untold():
                owners = len(archive.delivered) < self.plan.owners
                left = begin + (seconds if owners else min(seconds, PARTY_SECONDS)) - loop.time()
                if left <= 0:
                    break
                self._changed.clear()
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(left):
                        await self._changed.wait()
        self.abandon()
        await asyncio.sleep(0)

    async def _part(self, archive: Archive, cost: PartyCost, first: int, end: int, peer: Guest) -> None:
        """The end of owners that were there to the last."""
        peer.expects_end = True
        with contextlib.suppress(PeerError):
            peer.send(channels.COST, cost.pack())
            await peer.receive(channels.COST)
            archive.deliver(first, end)
        self._changed.set()

    async def _serve_after(self, archive: Archive, first: int, end: int, peer: Guest) -> None:
        """Owners that come when all is over."""
        peer.expects_end = True
        with contextlib.suppress(PeerError):
            await archive.serve(first, end, peer)
        self._changed.set()

    def connections(self) -> list[Connection]:
        """The connections with owners."""
        admitted: list[Connection] = [peer for _, _, peer in self._each()]
        return admitted if self._within is None or self._within in admitted else [*admitted, self._within]

    def abandon(self) -> None:
        """Close everything at once."""
        self._door.close()
        for task in (*self._joining, *self._after):
            task.cancel()
        for _, _, peer in self._each():
            peer.close()
        for asker in self._askers:
            asker.close()

    def _on_lost(self, peer: Connection, error: PeerError) -> None:
        first = next((first for first, (_, each) in self._owners.items() if each is peer), None)
        if (peer is not self._within and first is None) or self._archive is not None:
            return
        if first is not None and peer is not self._within and not self._begun:  # it may come again
            del self._owners[first]
            if isinstance(peer, Peer):
                peer.discard()
            self._log(f"{peer.name} left before the run began: {error}")
            return
        if not self.lost.done():
            self.lost.set_exception(error)
            self.lost.exception()

    @property
    def bytes_sent(self) -> int:
        return sum(peer.bytes_sent for _, peer in self._owners.values())

    @property
    def bytes_received(self) -> int:
        return sum(peer.bytes_received for _, peer in self._owners.values())
