"""Checked parties check owners: n parties, of which t may do anything, with owners of their own choice.

What owners give depends on records, so nothing that was computed from it may be opened before it was checked: not the
masked numbers, whose masks no cheat touches, but every bit that a circuit made of them. In order:

1. coins and masked sums of shares, compared among all before they are used (with two coins under one mask a cheat
   would learn a difference);
2. the reduction of the sums of squares from degree 2t to t, and the check of it (`square_fold`): until it holds, all
   that anybody got is masked;
3. the masked numbers, of degree t now: all shares on one polynomial, seen by n - t parties;
4. the comparisons, whose ANDs are checked (`checked`), then the ANDs that join them, checked too, then one bit an
   owner, of which all say that they saw the same.

Shares on no polynomial tell that their owner or a party has changed one, and not which: so that ends the run.
"""

from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from dpmpc.mpc.checked.counts import CountingChecked
from dpmpc.mpc.checked.rounds import CheckedRounds
from dpmpc.mpc.checked.session import CheckedSession
from dpmpc.mpc.checked.square_fold import square_error, square_fold, square_stages
from dpmpc.mpc.checked.unmasking import CheckedUnmasking
from dpmpc.mpc.contract.owner_checks import OwnerTest
from dpmpc.mpc.numbers import domains, field
from dpmpc.mpc.numbers.field import P, Words
from dpmpc.mpc.numbers.product_fold import holds
from dpmpc.mpc.numbers.residues import failing, recombine, weighted_sum
from dpmpc.mpc.owner_checks.compared import ComparedCheck
from dpmpc.mpc.owner_checks.sums import OwnerSums
from dpmpc.mpc.replicated.executor import SharingBatch
from dpmpc.mpc.replicated.owner_counts import count_programs
from dpmpc.mpc.replicated.owner_norms import NormCheck

SQUARES = 3  # the check's channel of the sums of squares


class CheckedOwners(ComparedCheck, NormCheck):
    """As `NormCheck`; whatever else fails than a norm is final."""

    def __init__(self, session: CheckedSession, ident: int, test: OwnerTest) -> None:
        NormCheck.__init__(self, session, ident, test)
        self.session: CheckedSession = session

    async def too_long(self, rows: Sequence[Words], sums: OwnerSums) -> tuple[int, ...]:
        lengths = self.norms.lengths
        squares = await SquareCheck(self.session, self.ident + SQUARES).run(rows, sums.squares, lengths)
        return await self._compare(self.numbers(sums.halves, squares))

    def _unmasking(self) -> CheckedUnmasking:
        return CheckedUnmasking(self.session, self.channel)

    async def _told(self, batch: SharingBatch, passed: Words) -> tuple[int, ...]:
        """As `NormCheck._told`; all who see the bits tell the others, and all say that they saw the same. Cost: one
        round more."""
        bits = await batch.reveal(passed & self._real)
        seers = self.layout.opened_to
        flat = None if bits is None else np.ascontiguousarray(bits.reshape(-1))
        if flat is not None:
            unseeing = [j for j in range(self.session.parties) if j not in seers]
            await self.channel.words(dict.fromkeys(unseeing, flat), [], self.words)
        else:
            flat, *again = await self.channel.words({}, seers, self.words)
            if any((flat != other).any() for other in again):
                raise self.session.cheat("what parties tell of owners' bits")
        await self.same("bits", flat.tobytes(), "the bits of owners")
        return self._failed(flat.reshape(1, -1))


class SquareCheck(CheckedRounds):
    """Shares of degree t of sums of squares, checked. Cost: see `owner_counts`."""

    def __init__(self, session: CheckedSession, ident: int) -> None:
        self.begin_rounds(session, session.channel(ident))
        self._pair = [session.stream(s, domains.SQUARE_PAIR, ident) for s in self.ordered]

    async def run(self, rows: Sequence[Words], squares: Words, lengths: Sequence[int]) -> Words:
        """(blocks, m) of `squares` (blocks, m), this party's sums of squares of its shares `rows` in blocks of these
        lengths. Errors: CheatError where they are wrong."""
        await self._coins.begin()
        weight = field.lagrange(tuple(range(1, self.session.parties + 1)), 0)[self.session.party]
        sums = self._shamir(await self._again(field.mul(squares.reshape(-1), weight))).reshape(squares.shape)
        mask = self._shamir(np.stack([field.uniform(stream, (2,)) for stream in self._pair]))
        fold = square_fold(rows, sums, weight, mask, await self._coins.next(), lengths)
        for _ in fold.stages.variables:
            part = await self.session.work(fold.sums)
            fold.take(self._shamir(await self._again(part)))
            coin = await self._coins.next()
            await self.session.work(lambda: fold.fold(coin))  # noqa: B023 - awaited before the next
        await self.agree()
        opened = await self._open_shares(fold.opening)
        if not holds(opened):
            raise self.cheat("the sum of all squares")
        await self.all_say(opened.tobytes(), "the check's verdict")
        return sums

    async def _again(self, part: Words) -> Words:
        """Components (K, n) of the sum of the parties' parts (n,). Cost: one round, a message to each receiver."""
        shares, message = np.zeros((len(self.ordered), *part.shape), dtype=np.uint64), part
        for k, j, stream in self._masks:
            mask = field.uniform(stream, part.shape)
            shares[k] = field.add(shares[k], mask)
            if j == self.session.party:
                message = field.sub(message, mask)
        for j, k, words in await self._tell(message):
            if words.max(initial=0) >= P:
                raise self.cheat("that a part is below p = 2^61 - 1", j)
            shares[k] = field.add(shares[k], words)
        self._note(shares)
        return shares

    def _shamir(self, components: Words) -> Words:
        """The shares of degree t (n,) of what is shared by the components (K, n)."""
        n, me = self.session.parties, self.session.party
        weights = [field.subset_weight(s, n, me) for s in self.ordered]
        return weighted_sum(list(components), weights, 0)

    async def _open_shares(self, shares: Words) -> Words:
        """The numbers (n,) from the shares of all, which must be on one polynomial. Cost: one round."""
        received = await self._send(dict.fromkeys(self.others, shares), self.others, shares)
        rows = {self.session.party: shares, **dict(zip(self.others, received, strict=True))}
        if any(words.max() >= P for words in rows.values()) or failing(rows, self.session.threshold):
            raise self.cheat("that what the check opens is on one polynomial")
        first = sorted(rows)[: self.session.threshold + 1]
        return recombine([rows[k] for k in first], first)


def undetected(test: OwnerTest, parties: int, threshold: int) -> Fraction:
    """How likely a check whose sums or ANDs parties have changed is believed, at most."""
    if test.norms is None:
        return Fraction(0)
    programs = count_programs(CountingChecked, test.norms, test.owners, parties, threshold)
    return square_error(square_stages(test.owners, *test.norms.lengths)) + sum(batch.error for batch in programs)
