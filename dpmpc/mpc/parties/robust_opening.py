"""Openings of Shamir shares in one round to t successors, which go on when a party is lost.

As long as all are there, a party sends its share to the t parties after it and takes those of the t before it. When it
hears of a loss, whoever has sent a share to some sends it to all the others too, of the last openings as well: one who
is behind may wait for it. All shares of an opening lie on one polynomial, so it is the same value whoever opens it.
"""

import asyncio
import contextlib
from collections import OrderedDict

import numpy as np

from dpmpc.errors import PeerError
from dpmpc.mpc.numbers import field
from dpmpc.mpc.numbers.field import Words
from dpmpc.mpc.numbers.residues import recombine
from dpmpc.mpc.parties.loss_tolerance import LossTolerantMesh
from dpmpc.mpc.parties.session import Session
from dpmpc.mpc.transport.channels import AGAIN, NOISE, exchange_label

_KEPT = 2  # openings: nobody is further behind, for owners wait for all parties that are left


class _Opening:
    """One opening at this party. `told`: those that were sent this party's share."""

    def __init__(self, ident: int, flat: Words, told: set[int]) -> None:
        self.ident, self.flat, self.told = ident, flat, told
        self.asked: dict[asyncio.Future[bytearray], int] = {}  # whose share is on its way
        self.begged: set[int] = set()  # those that were asked because of a loss
        self.rows: dict[int, Words] = {}
        self.over = False
        self.news: asyncio.Future[None] | None = None

    def wake(self, _: object = None) -> None:
        """A share has come, or something was heard of a loss."""
        if self.news is not None and not self.news.done():
            self.news.set_result(None)


class RobustSession(LossTolerantMesh, Session):
    """A session whose openings outlive parties."""

    def __init__(self, party: int, parties: int, threshold: int, run_id: bytes, *arguments: object) -> None:
        super().__init__(party, parties, threshold, run_id, *arguments)
        self._openings: OrderedDict[int, _Opening] = OrderedDict()

    async def open_from_left(self, shares: Words, ident: int) -> Words:
        """The values whose Shamir shares of degree t in F_p the parties hold; all that are left learn them. `ident`: a
        channel, used once.

        Cost: one round, t messages of 8 bytes a value a party; one to each other party where some are lost. Errors:
        PeerError for a share of another length, or words that no share has, and where a party has left that may not.
        """
        self.check_needed()
        n, t = self.parties, self.threshold
        self.channel(ident)
        self.rounds += int(n > 1)
        label = exchange_label(ident, 0)
        flat = np.ascontiguousarray(shares).reshape(-1)
        after = [(self.party + k) % n for k in range(1, t + 1)]
        opening = _Opening(ident, flat, set(after))
        opening.rows[self.party] = flat
        for j in after:
            with contextlib.suppress(PeerError):
                self.peers[j].send(label, flat.data.cast("B"))
        for k in range(1, t + 1):
            opening.asked[self.peers[(self.party - k) % n].receive(label)] = (self.party - k) % n
        self._openings[ident] = opening
        while len(self._openings) > _KEPT:
            self._openings.popitem(last=False)
        if self.gone or self._notices:
            self._again(opening)
        try:
            while len(opening.rows) <= t:
                await self._next(opening)
        finally:
            opening.over = True
            for future in opening.asked:
                future.cancel()
            opening.asked.clear()
        holders = list(opening.rows)[: t + 1]
        return recombine([opening.rows[j] for j in holders], holders).reshape(shares.shape)

    async def _next(self, opening: _Opening) -> None:
        """Returns when a share has come, or something was heard of a loss."""
        opening.news = asyncio.get_running_loop().create_future()
        for future in opening.asked:
            future.add_done_callback(opening.wake)
        await opening.news
        for future in [each for each in opening.asked if each.done()]:
            party = opening.asked.pop(future)
            try:
                payload = future.result()
            except PeerError:  # it is lost, and everybody hears of that
                continue
            opening.rows[party] = _words(party, payload, opening.flat.size)

    def _changed(self) -> None:
        for opening in self._openings.values():
            self._again(opening)
            opening.wake()

    def _again(self, opening: _Opening) -> None:
        """Send this opening's share to those that have not got it, and ask all for theirs where some are missing."""
        if opening.ident >= NOISE:
            return
        label = exchange_label(AGAIN + opening.ident, 0)
        for j, peer in self.left.items():
            if j not in opening.told:
                opening.told.add(j)
                with contextlib.suppress(PeerError):
                    peer.send(label, opening.flat.data.cast("B"))
            if j not in opening.begged and not opening.over:
                opening.begged.add(j)
                opening.asked[peer.receive(label)] = j


def _words(party: int, payload: bytearray, size: int) -> Words:
    if len(payload) != 8 * size:
        raise PeerError(
            f"party {party} sent {len(payload)} bytes where {8 * size} were due; are all parties of one version?"
        )
    words = np.frombuffer(payload, dtype="<u8")
    if words.max(initial=0) >= field.P:
        raise PeerError(
            f"shares must be below p = 2^61 - 1; party {party} sent larger ones; are all parties of one version?"
        )
    return words
