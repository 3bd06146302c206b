"""Whether owners' norms are within their bounds: sums of squares and of halves of the coordinates, compared in a
Boolean circuit. Semi-honest, for the parties of a session of replicated sharing with t >= 1.

Each number x that is compared becomes bits by the reverse of `circuits.convert`: the parties open y = x plus a mask of
F_p for each (n-t)-subset but a last one, to the members of that last one alone. All their bits are shared without a
message. A sum of squares is of degree 2t; so all are opened as such, with a random sharing of zero of degree 2t added.

Guarantees: any t parties miss one subset: they do not see y, or lack a mask that is uniform in F_p. With it and the
sharing of zero, the shares of y that they see are uniform among those with their own. So up to the last bits, one an
owner, everything is hidden perfectly, given the streams; the last bits are opened as every circuit's are.
"""

from collections.abc import Sequence

import numpy as np

from dpmpc.circuits.convert import FIELD_BITS
from dpmpc.circuits.in_range import all_program, small_program
from dpmpc.mpc.contract.executor import MaskBits
from dpmpc.mpc.contract.lanes import from_planes, to_planes, words_for
from dpmpc.mpc.contract.owner_checks import NormTest, OwnerTest
from dpmpc.mpc.numbers import domains, field
from dpmpc.mpc.numbers.field import Words
from dpmpc.mpc.numbers.residues import recombine
from dpmpc.mpc.owner_checks.checks import PrssCheck
from dpmpc.mpc.owner_checks.sums import OwnerSums
from dpmpc.mpc.parties.session import Session
from dpmpc.mpc.replicated.executor import SharingBatch
from dpmpc.mpc.replicated.layout import SharingLayout, Subset

COMPARED, JOINED = 1, 2  # channels of the check: the two circuits


class NormCheck(PrssCheck):
    """As `PrssCheck`, with norms. It uses three channels: its own, and one for each of two circuits."""

    def __init__(self, session: Session, ident: int, test: OwnerTest) -> None:
        super().__init__(session, ident, test)
        assert session.threshold >= 1 and test.norms is not None
        self.norms: NormTest = test.norms
        self.layout = SharingLayout.of(session.parties, session.threshold)
        self.words = words_for(test.owners)  # of a bit of every owner
        self.kinds = test.norms.kinds  # numbers of an owner that are compared

    async def too_long(self, rows: Sequence[Words], sums: OwnerSums) -> tuple[int, ...]:
        return await self._compare(self.numbers(sums.halves, sums.squares))

    def _batch(self, number: int, lanes: int) -> SharingBatch:
        """A batch on the check's channel of this number."""
        return SharingBatch(self.session, self.ident + number, lanes)

    async def _compare(self, numbers: Words) -> tuple[int, ...]:
        """The owners of whose numbers (kinds, m) one is not in its range."""
        y, masks = await self._open(numbers)
        planes = self._planes(y) if y is not None else None
        batch = self._batch(COMPARED, self.kinds * self.test.owners)
        given = np.zeros((FIELD_BITS, len(batch.mine), batch.words), dtype=np.uint64)
        if planes is not None:
            given[:, batch.mine.index(self.layout.opened_to)] = planes
        bits = [
            MaskBits(batch.mine.index(s), self._planes(masks[s])) if s in masks else None
            for s in self.layout.subsets[:-1]
        ]
        widths = self.norms.width, self.norms.square_width
        program = small_program(batch.masks, (min(widths), max(widths)))
        found = await batch.run(program, bits, given)
        narrow = int(widths[0] > widths[1])  # the output that is about projections
        joined = self._batch(JOINED, self.test.owners)
        each = np.stack([self._by_kind(found[narrow, k], found[1 - narrow, k]) for k in range(len(batch.mine))], axis=1)
        return await self._told(joined, await joined.run(all_program(self.kinds), (), each))

    def numbers(self, halves: Words, squares: Words) -> Words:
        """Shares (kinds, m) of what must lie in 1 .. 2^width - 1: projections plus half of that; in the last rows what
        is left to the bounds on the sums of `squares` (blocks, m), plus 1, of their degree."""
        half = np.full((1, 1), 1 << self.norms.width - 1, dtype=np.uint64)
        left = [[square + 1 for square in bound] for _, bound in self.norms.bounds]
        return np.concatenate([field.add(halves, half), field.sub(np.array(left, dtype=np.uint64), squares)])

    async def _open(self, mine: Words) -> tuple[Words | None, dict[Subset, Words]]:
        """(the masked numbers, if this party may see them; the masks it knows). Cost: one round, 8 bytes a number from
        each of 2t + 1 parties to each that sees them."""
        n, t, me = self.session.parties, self.threshold, self.session.party
        senders, seers = self.layout.product_senders, self.layout.opened_to
        masks: dict[Subset, Words] = {}
        flat = mine.reshape(-1)
        for s in self.session.mine:  # f_S(x) (r_S + x u_1 + ... + x^t u_t): a mask, and a sharing of zero of degree 2t
            blind = np.zeros(flat.size, dtype=np.uint64)
            if s != seers:
                blind = field.uniform(self.session.stream(s, domains.OWNER_MASK, self.ident), (flat.size,))
                masks[s] = blind.reshape(mine.shape)
            zeros = self.session.stream(s, domains.OWNER_ZERO, self.ident)
            for power in range(1, t + 1):
                blind = field.add(blind, field.mul(field.uniform(zeros, (flat.size,)), (me + 1) ** power))
            flat = field.add(flat, field.mul(blind, field.subset_weight(s, n, me)))
        outgoing = {j: flat for j in seers if j != me} if me in senders else {}
        incoming = [j for j in senders if j != me] if me in seers else []
        received = await self.channel.words(outgoing, incoming, flat.size)
        if me not in seers:
            return None, masks
        for j, words in zip(incoming, received, strict=True):
            if words.max(initial=0) >= field.P:
                raise self.broken("that shares are below p = 2^61 - 1", j)
        rows = dict(zip(incoming, received, strict=True)) | ({me: flat} if me in senders else {})
        return recombine([rows[j] for j in senders], senders).reshape(mine.shape), masks

    def _planes(self, numbers: Words) -> Words:
        """(61, words): bits of numbers (kinds, m), a lane each; zeros beyond the last."""
        lanes = np.zeros(64 * words_for(numbers.size), dtype=np.uint64)
        lanes[: numbers.size] = numbers.reshape(-1)
        return to_planes(lanes, FIELD_BITS)

    def _by_kind(self, halves: Words, squares: Words) -> Words:
        """(kinds, W): a bit of every number as a wire for each kind, a lane an owner; `squares` has those of the
        last kinds. One component of each."""
        bits = np.zeros((self.kinds, 64 * self.words), dtype=np.uint64)
        first = self.norms.projections
        for rows, component in ((slice(None, first), halves), (slice(first, None), squares)):
            lanes = from_planes(component[None])[: self.kinds * self.test.owners]
            bits[rows, : self.test.owners] = lanes.reshape(self.kinds, -1)[rows]
        return np.concatenate([to_planes(row, 1) for row in bits])

    async def _told(self, batch: SharingBatch, passed: Words) -> tuple[int, ...]:
        """The owners whose bit, of shares (1, components, W), is 0. Of the lanes beyond the last owner nothing is
        opened. Cost: the opening to those who see it; a round in which the first of them tells all others."""
        bits = await batch.reveal(passed & self._real)
        seers, me = self.layout.opened_to, self.session.party
        others = [j for j in range(self.session.parties) if j not in seers]
        if me == seers[0]:
            assert bits is not None
            await self.channel.words({j: np.ascontiguousarray(bits.reshape(-1)) for j in others}, [], self.words)
        elif me in others:
            (told,) = await self.channel.words({}, [seers[0]], self.words)
            bits = told.reshape(1, -1)
        else:
            await self.channel.exchange({}, [])
        assert bits is not None
        return self._failed(bits)

    @property
    def _real(self) -> Words:
        """(1, W): the lanes that are owners."""
        return to_planes((np.arange(64 * self.words) < self.test.owners).astype(np.uint64), 1)

    def _failed(self, bits: Words) -> tuple[int, ...]:
        """The owners whose bit of (1, W) is 0."""
        return tuple(int(j) for j in np.flatnonzero(from_planes(bits)[: self.test.owners] == 0))
