"""A party adds up the shares that owners send: frame by frame, as they come.

Where owners' vectors are kept apart (`Source.own`), a share is 0 outside what its owner may fill, before anything is
checked or added. So no owner reaches another's coordinates, whatever it sends: its parts there are in no sum.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Callable

import numpy as np
from numpy.typing import NDArray

from dpmpc.aggregation.party.admission import Guest
from dpmpc.aggregation.plan.plan import Plan
from dpmpc.aggregation.wire.frames import WINDOW, FramePiece, pieces_of
from dpmpc.errors import PeerError
from dpmpc.mpc.contract.backend import Holder, Share
from dpmpc.mpc.contract.owner_checks import Inspects
from dpmpc.mpc.transport.channels import block_label

Read = Callable[[bytes | bytearray, int, int], Share]
Mask = NDArray[np.bool_]


class Adder:
    """Reads and adds shares with the party's holder. `seconds`: spent on that. No message but consent: an owner sends
    `WINDOW` frames ahead of what was taken."""

    def __init__(self, plan: Plan, holder: Holder[Share]) -> None:
        self._plan, self._holder = plan, holder
        self.seconds = 0.0

    async def taken(
        self, first: int, end: int, peer: Guest, release: int, payload: "asyncio.Future[bytearray]"
    ) -> Share:
        """This party's share (d,) of the sum of owners first .. end - 1. `payload`: their first frame's. Of a long
        vector the columns are put together at the end. Errors: PeerError."""
        if len(pieces := pieces_of(first, end, self._plan.dimension)) == 1:
            return self.collect(peer, release, await payload, pieces[0])
        totals: dict[int, Share] = {}
        async for piece, frame in self._frames(first, end, peer, release, payload):
            share, at = self.collect(peer, release, frame, piece), piece.begin
            totals[at] = share if at not in totals else self.add(totals[at], share)
        return self.joined(totals)

    async def rows(
        self, first: int, end: int, peer: Guest, release: int, payload: "asyncio.Future[bytearray]"
    ) -> list[Share]:
        """This party's shares (k, d) of the vectors of owners first .. end - 1, in order."""
        holder = self._holder
        assert isinstance(holder, Inspects)
        blocks: dict[int, list[Share]] = {}  # by first owner: columns
        async for piece, frame in self._frames(first, end, peer, release, payload):
            read = self._read(holder.rows, peer, release, frame, piece)
            own = [self._own(j, j + 1, piece) for j in range(piece.first, piece.end)]
            here = [each for each in own if each is not None]
            blocks.setdefault(piece.first, []).append(holder.kept(read, np.stack(here)) if here else read)
        return [holder.beside(each) for each in blocks.values()]

    async def _frames(
        self, first: int, end: int, peer: Guest, release: int, payload: "asyncio.Future[bytearray]"
    ) -> AsyncIterator[tuple[FramePiece, bytearray]]:
        """The frames; consent to a further one when one was read."""
        pieces = pieces_of(first, end, self._plan.dimension)
        for k, piece in enumerate(pieces):
            yield piece, await payload
            if k + WINDOW < len(pieces):
                peer.send(block_label(release, k), b"")
            if k + 1 < len(pieces):
                payload = peer.receive(block_label(release, k + 1))

    def collect(self, peer: Guest, release: int, payload: bytes | bytearray, piece: FramePiece) -> Share:
        """The share of a frame. Errors: PeerError, named."""
        share = self._read(self._holder.collect, peer, release, payload, piece)
        own = self._own(piece.first, piece.end, piece)
        return share if own is None else self._holder.kept(share, own)

    def alone(self, payload: bytes | bytearray, owner: int) -> Share:
        """The share of this owner's whole vector. Errors: PeerError."""
        begin = time.perf_counter()
        share = self._holder.collect(payload, 1, self._plan.dimension)
        if (own := self._plan.source.own(owner, owner + 1)) is not None:
            share = self._holder.kept(share, own)
        self.seconds += time.perf_counter() - begin
        return share

    def add(self, a: Share, b: Share) -> Share:
        """The share of the sum."""
        begin = time.perf_counter()
        share = self._holder.add(a, b)
        self.seconds += time.perf_counter() - begin
        return share

    def joined(self, totals: dict[int, Share]) -> Share:
        """The share of a vector, from those of its columns, by first column."""
        return totals[0] if len(totals) == 1 else self._holder.join(list(totals.values()))

    def _own(self, first: int, end: int, piece: FramePiece) -> Mask | None:
        """What owners first .. end - 1 may fill of a frame's columns; None: all."""
        own = self._plan.source.own(first, end)
        return None if own is None else own[piece.begin : piece.stop]

    def _read(self, read: Read, peer: Guest, release: int, payload: bytes | bytearray, piece: FramePiece) -> Share:
        begin = time.perf_counter()
        try:
            share = read(payload, piece.end - piece.first, piece.stop - piece.begin)
        except PeerError as error:
            raise PeerError(f"{peer.name}, release {release}: {error.message}", code=error.code) from None
        self.seconds += time.perf_counter() - begin
        return share
