"""Checked parties check owners: three parties, of which any one may do anything, with owners of its own choice.

What owners give depends on records, so nothing that was computed from it may be opened before it was checked: not the
masked numbers, whose masks no cheat touches, but every bit that a circuit made of them. In order:

1. coins and masked sums of shares, compared among all before they are used (with two coins under one mask a cheat
   would learn a difference);
2. the reduction of the sums of squares from degree 2 to 1, and the check of it (`square_fold`): until it holds, all
   that anybody got is masked;
3. the masked numbers, of degree 1 now: three shares on one line, seen by two parties;
4. the comparisons, whose ANDs are checked (`checked`), then the ANDs that join them, checked too, then one bit an
   owner, of which all say that they saw the same.

Three shares on no line tell that their owner or a party has changed one, and not which: so that ends the run.
"""

import hashlib
from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from dpmpc.circuits.in_range import all_program, small_program
from dpmpc.errors import PeerError
from dpmpc.mpc import field
from dpmpc.mpc.checked_session import CheckedSession
from dpmpc.mpc.engines.checked import CheckedBatch
from dpmpc.mpc.engines.checked_rounds import CheckedRounds
from dpmpc.mpc.engines.fold import Stages
from dpmpc.mpc.engines.lanes import words_for
from dpmpc.mpc.engines.layout import Subset
from dpmpc.mpc.engines.owner_norms import NormCheck
from dpmpc.mpc.engines.owner_sums import OwnerSums
from dpmpc.mpc.engines.owners import failing
from dpmpc.mpc.engines.sharing import SharingBatch
from dpmpc.mpc.engines.square_fold import SquareFold, SquareStages, holds
from dpmpc.mpc.field import P, Words
from dpmpc.mpc.native.residues import recombine
from dpmpc.mpc.owner_checks import OwnerTest

SQUARES = 3  # the check's channel of the sums of squares
_PARTIES = 3


class CheckedOwners(NormCheck):
    """As `NormCheck`; whatever else fails than a norm is final."""

    def __init__(self, session: CheckedSession, ident: int, test: OwnerTest) -> None:
        super().__init__(session, ident, test)
        self.session: CheckedSession = session

    def broken(self, what: str, party: int) -> PeerError:
        return self.session.cheat(what, party)

    async def coin(self) -> bytes:
        """As `OwnerCheck.coin`, compared. Cost: one round more."""
        coin = await super().coin()
        await self._same(b"coin", coin, "the coin for owners' shares")
        return coin

    async def inconsistent(self, weighted: Words) -> tuple[int, ...]:
        """None. Cost: one round more. Errors: CheatError with the owners whose shares are of no one vector."""
        rows = await self._masked(weighted)
        bad = self._owners_of(failing(rows, self.threshold))
        if bad:
            raise self.session.over_for(
                f"the shares of owner {', '.join(map(str, bad))} are of no one vector; the owner dealt them so, or a "
                "party changed its own; find out which, then start a new run"
            )
        seen = np.ascontiguousarray(np.stack([rows[i] for i in sorted(rows)]))
        await self._same(b"shares", seen.tobytes(), "what was opened of owners' shares")
        return ()

    async def _same(self, kind: bytes, value: bytes, what: str) -> None:
        digest = hashlib.sha256(b"owners, " + kind + self._bound + value).digest()
        for j, said in (await self._all(digest)).items():
            if said != digest:
                raise self.session.cheat(what, j)

    async def too_long(self, rows: Sequence[Words], sums: OwnerSums) -> tuple[int, ...]:
        squares = await SquareCheck(self.session, self.ident + SQUARES).run(rows, sums.squares)
        return await self._compare(self.numbers(sums.halves, squares))

    def _batch(self, number: int, lanes: int) -> SharingBatch:
        """What is given to it is the same at honest holders: masks come from agreed keys, an opened number is on one
        line with the shares of both honest parties, and a checked result is what the other holder sent."""
        return CheckedBatch(self.session, self.ident + number, lanes, compared=True)

    async def _open(self, mine: Words) -> tuple[Words | None, dict[Subset, Words]]:
        """As `NormCheck._open`, of shares of degree 1, from all. Errors: CheatError for shares on no line."""
        me, seers = self.session.party, self.layout.opened_to
        masks = {
            s: field.uniform(self.session.stream(s, "owner mask", self.ident), (mine.size,))
            for s in self.session.mine
            if s != seers
        }
        flat = mine.reshape(-1)
        for s, mask in masks.items():
            flat = field.add(flat, field.mul(mask, field.subset_weight(s, _PARTIES, me)))
        incoming = self.others if me in seers else []
        received = await self.channel.words({j: flat for j in seers if j != me}, incoming, flat.size)
        shaped = {s: mask.reshape(mine.shape) for s, mask in masks.items()}
        if me not in seers:
            return None, shaped
        for j, words in zip(incoming, received, strict=True):
            if words.max(initial=0) >= P:
                raise self.broken("that shares are below p = 2^61 - 1", j)
        shares = {me: flat, **dict(zip(incoming, received, strict=True))}
        if failing(shares, self.threshold):
            raise self.session.cheat("that the masked numbers of owners are on one line")
        return recombine([shares[0], shares[1]], (0, 1)).reshape(mine.shape), shaped

    async def _told(self, batch: SharingBatch, passed: Words) -> tuple[int, ...]:
        """As `NormCheck._told`; both who see the bits tell the third, and all say that they saw the same. Cost: one
        round more."""
        bits = await batch.reveal(passed & self._real)
        seers = self.layout.opened_to
        (third,) = (j for j in range(_PARTIES) if j not in seers)
        flat = None if bits is None else np.ascontiguousarray(bits.reshape(-1))
        if flat is not None:
            await self.channel.words({third: flat}, [], self.words)
        else:
            told = await self.channel.words({}, seers, self.words)
            if (told[0] != told[1]).any():
                raise self.session.cheat("what two parties tell of owners' bits")
            flat = told[0]
        await self._same(b"bits", flat.tobytes(), "the bits of owners")
        return self._failed(flat.reshape(1, -1))


class SquareCheck(CheckedRounds):
    """Shares of degree 1 of sums of squares, checked. Cost: see `counting_owners`."""

    def __init__(self, session: CheckedSession, ident: int) -> None:
        self.begin_rounds(session, session.channel(ident))
        self._pair = [session.stream(s, "pair", ident) for s in self.ordered]

    async def run(self, rows: Sequence[Words], squares: Words) -> Words:
        """(m,) of `squares` (m,), this party's sums of the squares of its shares `rows`. Errors: CheatError where they
        are wrong."""
        me = self.session.party
        weight = field.lagrange(tuple(range(1, _PARTIES + 1)), 0)[me]
        sums = self._shamir(await self._again(field.mul(squares, weight)))
        mask = self._shamir(np.stack([field.uniform(stream, (2,)) for stream in self._pair]))
        fold = SquareFold(rows, weight, mask)
        fold.begin(await self._coin(), sums)
        for _ in fold.stages.variables:
            part = await self.session.work(fold.sums)
            fold.take(self._shamir(await self._again(part)))
            coin = await self._coin()
            await self.session.work(lambda: fold.fold(coin))  # noqa: B023 - awaited before the next
        await self.all_say(self._log.digest(), "the coins")
        opened = await self._open_line(fold.opening)
        if not holds(opened):
            raise self.cheat("the sum of all squares")
        seen = hashlib.sha256(f"squares {self.channel.ident} held".encode() + opened.tobytes())
        await self.all_say(seen.digest(), "the check's verdict")
        return sums

    async def _again(self, part: Words) -> Words:
        """Components (2, n) of the sum of the parties' parts (n,). Cost: one round, a message to the successor."""
        own, following = (field.uniform(stream, part.shape) for stream in (self._own, self._next))
        message = field.sub(part, own)
        (received,) = await self._send({self.successor: message}, [self.predecessor], part)
        if received.max(initial=0) >= P:
            raise self.cheat("that a part is below p = 2^61 - 1", self.predecessor)
        return np.stack([field.add(message, following), field.add(received, own)])

    def _shamir(self, components: Words) -> Words:
        """The shares of degree 1 (n,) of what is shared by the components (2, n)."""
        weights = (field.subset_weight(s, _PARTIES, self.session.party) for s in self.ordered)
        first, second = (field.mul(c, w) for c, w in zip(components, weights, strict=True))
        return field.add(first, second)

    async def _open_line(self, shares: Words) -> Words:
        """The numbers (n,) from the shares of all, which must be on one line. Cost: one round."""
        others = [self.successor, self.predecessor]
        received = await self._send(dict.fromkeys(others, shares), others, shares)
        rows = {self.session.party: shares, **dict(zip(others, received, strict=True))}
        if any(words.max() >= P for words in rows.values()) or failing(rows, 1):
            raise self.cheat("that what the check opens is on one line")
        return recombine([rows[0], rows[1]], (0, 1))


def undetected(test: OwnerTest) -> Fraction:
    """How likely a check whose sums or ANDs a party has changed is believed, at most."""
    if test.norms is None:
        return Fraction(0)
    kinds = test.norms.projections + 1
    widths = sorted((test.norms.width, test.norms.square_width))
    compared = small_program(2, (widths[0], widths[1])).ands * words_for(kinds * test.owners)
    joined = all_program(kinds).ands * words_for(test.owners)
    squares = SquareStages.of(test.owners, test.dimension)
    return squares.error + Stages.of(compared).error + Stages.of(joined).error
