"""Whether owners' norms are within their bounds: sums of squares and of halves of the coordinates, compared in a
Boolean circuit. Semi-honest, for the parties of a session of replicated sharing with t >= 1.

Each number that is compared becomes bits as in `unmasking`; a sum of squares is of degree 2t, and is opened as such.

Guarantees: up to the last bits, one an owner, everything is hidden perfectly, given the streams; the last bits are
opened as every circuit's are.
"""

from collections.abc import Sequence

import numpy as np

from dpmpc.circuits.in_range import all_program, small_program
from dpmpc.mpc.contract.lanes import from_planes, to_planes, words_for
from dpmpc.mpc.contract.owner_checks import NormTest, OwnerTest
from dpmpc.mpc.numbers import field
from dpmpc.mpc.numbers.field import Words
from dpmpc.mpc.owner_checks.checks import PrssCheck
from dpmpc.mpc.owner_checks.sums import OwnerSums
from dpmpc.mpc.parties.session import Session
from dpmpc.mpc.replicated.executor import SharingBatch
from dpmpc.mpc.replicated.layout import SharingLayout
from dpmpc.mpc.replicated.unmasking import Unmasking

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

    def _unmasking(self) -> Unmasking:
        """How numbers become bits."""
        return Unmasking(self.session, self.channel)

    async def _compare(self, numbers: Words) -> tuple[int, ...]:
        """The owners of whose numbers (kinds, m) one is not in its range."""
        unmasking = self._unmasking()
        batch = unmasking.batch(self.ident + COMPARED, self.kinds * self.test.owners)
        widths = self.norms.width, self.norms.square_width
        program = small_program(batch.masks, (min(widths), max(widths)))
        found = await unmasking.run(numbers, batch, program)
        narrow = int(widths[0] > widths[1])  # the output that is about projections
        joined = unmasking.batch(self.ident + JOINED, self.test.owners)
        each = np.stack([self._by_kind(found[narrow, k], found[1 - narrow, k]) for k in range(len(batch.mine))], axis=1)
        return await self._told(joined, await joined.run(all_program(self.kinds), (), each))

    def numbers(self, halves: Words, squares: Words) -> Words:
        """Shares (kinds, m) of what must lie in 1 .. 2^width - 1: projections plus half of that; in the last rows what
        is left to the bounds on the sums of `squares` (blocks, m), plus 1, of their degree."""
        half = np.full((1, 1), 1 << self.norms.width - 1, dtype=np.uint64)
        left = [[square + 1 for square in bound] for _, bound in self.norms.bounds]
        return np.concatenate([field.add(halves, half), field.sub(np.array(left, dtype=np.uint64), squares)])

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
