"""Parties that go on without some of the others, once noise is made.

While noise is made every party is needed. After `tolerate_loss` a run goes on with t + 1 parties, and with more than
half of
all: of two parts of a network that broke one at most goes on. Whoever loses a party tells the others. Where two that
live have lost each other, the one of the higher number is left out by everybody, for nobody can do two parties' worth
of talking. A party that refuses (its own budget, its own rules) is no loss but a veto: it ends the run.

What is lost stays lost for the attempt: its share of the noise was in its memory alone.
"""

import asyncio
import contextlib
import struct
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from dpmpc.errors import PeerError
from dpmpc.mpc.parties.mesh import CONNECT_SECONDS, Mesh
from dpmpc.mpc.transport.abort_reason import reason_of, refuses
from dpmpc.mpc.transport.channels import END, exchange_label, notice_label
from dpmpc.mpc.transport.heartbeat import STALL
from dpmpc.mpc.transport.link import Connection, Link, Parting, silent_of

_NOTICE = struct.Struct("<H")  # the party that the sender has lost


def enough(parties: int, threshold: int) -> int:
    """The parties that a run needs once noise is made: t + 1, and more than half."""
    return max(threshold + 1, parties // 2 + 1)


class LossTolerantMesh(Mesh):
    """A mesh whose sums open without some parties."""

    threshold: int

    def __init__(self, *arguments: Any, **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        self.gone: dict[int, PeerError] = {}  # parties that have left, in that order, and why
        self.on_gone: Callable[[int, PeerError], None] = lambda party, error: None
        self._needed = 1  # reasons for which all parties are needed now; not to outlive anybody is one
        self._notices: set[tuple[int, int]] = set()  # (who told, whom it has lost)
        self._hearing: list[asyncio.Task[None]] = []
        self._closing = False  # whether this party has done everything

    async def connect(self, link: Link, digest: bytes = bytes(32), *, seconds: float = CONNECT_SECONDS) -> None:
        """As `Mesh.connect`."""
        await super().connect(link, digest, seconds=seconds)
        self._hearing = [asyncio.ensure_future(self._hear(j, peer)) for j, peer in self.peers.items()]

    def tolerate_loss(self) -> None:
        """From now on the loss of a party that is not needed does not end the run."""
        self._needed -= 1

    @contextlib.contextmanager
    def needing_all(self) -> Iterator[None]:
        """While inside every party is needed. Errors: PeerError where one has left."""
        if self.gone:
            raise self.cause()
        self._needed += 1
        try:
            yield
        finally:
            self._needed -= 1

    def check_needed(self) -> None:
        """To be called before an exchange that can do without a party. Errors: PeerError where one has left that may
        not: whoever ends this process has not come to it yet, and no transcript could explain what it would send."""
        if self.gone and self._needed:
            raise self.cause()

    def cause(self) -> PeerError:
        """Why the first one left."""
        return next(iter(self.gone.values()))

    @property
    def left(self) -> dict[int, Connection]:
        """The other parties that are still here."""
        return {j: peer for j, peer in self.peers.items() if j not in self.gone}

    async def here(self, channel: int, said: bytes = b"") -> None:
        """As `Mesh.here`, of those that are left: one that leaves meanwhile is not waited for, where it may leave."""
        self.check_needed()
        self.channel(channel)
        self.rounds += int(self.parties > 1)
        label = exchange_label(channel, 0)
        coming = {}
        for j, peer in self.left.items():
            with contextlib.suppress(PeerError):  # it is lost, and everybody hears of that
                peer.send(label, said)
            coming[j] = peer.receive(label)
        for j, each in coming.items():
            try:
                told = bytes(await each)
            except PeerError:
                if j not in self.gone or self.lost.done():
                    raise
                continue
            if told != said:
                raise self.apart(channel)

    # -- losses ------------------------------------------------------------------------------------------------------
    def _on_lost(self, peer: Connection, error: PeerError) -> None:
        party = next((j for j, each in self.peers.items() if each is peer), None)
        if party is None:  # before all were here
            super()._on_lost(peer, error)
        elif party not in self.gone:
            self._lose(party, error)

    def _lose(self, party: int, error: PeerError) -> None:
        self.gone[party] = error
        few = self.parties - len(self.gone) < enough(self.parties, self.threshold)
        if not self._closing and (self._needed or few or refuses(error)):
            super()._on_lost(self.peers[party], error if refuses(error) else self.cause())
            return
        number = len(self.gone) - 1
        for peer in self.left.values():
            with contextlib.suppress(PeerError):
                peer.send(notice_label(number), _NOTICE.pack(party))
        self.on_gone(party, error)
        self._settle()
        self._changed()

    async def _hear(self, party: int, peer: Connection) -> None:
        """The losses that this party tells of."""
        with contextlib.suppress(PeerError):
            for number in range(self.parties):
                payload = await peer.receive(notice_label(number))
                if len(payload) == _NOTICE.size:
                    self._notices.add((party, *_NOTICE.unpack(payload)))
                    self._settle()
                    self._changed()

    def _settle(self) -> None:
        """Leave out the higher one of two that have lost each other and are both here. One that says it has lost this
        party is lost here too: it hears nothing of what is said."""
        told = self._notices | {(self.party, j) for j in self.gone}
        for i, j in sorted(told):
            higher, lower = max(i, j), min(i, j)
            if j == self.party and i in self.left:
                self._leave_out(i, PeerError(f"party {i} has lost the connection with party {j}"))
            elif (j, i) in told and higher in self.left and (lower in self.left or lower == self.party):
                self._leave_out(
                    higher, PeerError(f"the run goes on without party {higher}: it is cut off from party {lower}")
                )

    def _leave_out(self, party: int, why: PeerError) -> None:
        peer = self.peers[party]
        if isinstance(peer, Parting):
            peer.farewell(reason_of(why))
        if party not in self.gone:
            self._lose(party, why)

    async def close(self, seconds: float = STALL) -> list[int]:
        """As `Mesh.close`; until a party says that it has done everything too, it hears of losses."""
        self._closing = True
        ends = {}
        for party, peer in self.left.items():
            with contextlib.suppress(PeerError):
                peer.send(END, b"")
            ends[party] = peer.receive(END)
            ends[party].add_done_callback(partial(_may_end, peer))
        if ends:
            await asyncio.wait(ends.values(), timeout=seconds)
        for peer in self.peers.values():
            peer.expects_end = True
        self.abandon()
        await asyncio.sleep(0)
        return silent_of(ends)

    def _changed(self) -> None:
        """Something was heard of a loss."""

    def abandon(self) -> None:
        """As `Mesh.abandon`."""
        for task in self._hearing:
            task.cancel()
        super().abandon()


def _may_end(peer: Connection, end: "asyncio.Future[bytearray]") -> None:
    """The connection may end from now on, where the other side has said so."""
    peer.expects_end = peer.expects_end or (not end.cancelled() and end.exception() is None)
