"""What a party computes of owners' shares by itself before it checks them: sums by public coins, and sums of squares.

Rows are taken a block of coordinates at a time, so that what is made on the way stays small; the coins are drawn block
by block, alike at all parties, for a block follows from the numbers of owners and coordinates alone.
"""

import asyncio
from collections.abc import Sequence

import numpy as np

from dpmpc.lazy import dataclass
from dpmpc.mpc.contract.owner_checks import OwnerTest
from dpmpc.mpc.numbers import domains, field
from dpmpc.mpc.numbers.field import Words
from dpmpc.mpc.numbers.mersenne import Integers, Mersenne
from dpmpc.mpc.numbers.prg import Prg

_BLOCK = 1 << 20  # shares that are computed on at a time
_WIDEST = 1 << 12  # coordinates of a block
_ARITHMETIC = Mersenne()


@dataclass(frozen=True)
class OwnerSums:
    """Shares, an owner a column: of sums of all coordinates with random weights (sums, m); of sums of random halves of
    the coordinates (projections, m); of each block's sum of squares (blocks, m), of twice the degree."""

    weighted: Words
    halves: Words
    squares: Words


async def owner_sums(rows: Sequence[Words], coin: bytes, test: OwnerTest) -> OwnerSums:
    """Of rows (k, d), all owners' in order. `coin`: public, and unknown to owners before their shares were fixed. No
    message.

    Cost: a product a weighted sum and coordinate; with norms, a square and a sum for each projection.
    """
    projections = 0 if test.norms is None else test.norms.projections
    owners, dimension = sum(map(len, rows)), rows[0].shape[1]
    weights, choices = domains.OWNERS_WEIGHTS.stream(coin), domains.OWNERS_HALVES.stream(coin)
    totals = np.zeros((test.sums + projections, owners), dtype=np.uint64)
    bounds = () if test.norms is None else test.norms.bounds
    squares = np.zeros((max(1, len(bounds)), owners), dtype=np.uint64)
    width = max(1, min(_WIDEST, _BLOCK // owners))
    for start in range(0, dimension, width):
        end = min(start + width, dimension)
        drawn = field.uniform(weights, (test.sums, end - start)).view(np.int64)
        public = np.concatenate([drawn, halves(choices, projections, end - start)])
        columns = _columns(rows, start, end)
        totals = field.add(totals, _ARITHMETIC.matrix(public, columns))
        first = 0
        for b, (last, _) in enumerate(bounds):
            part = columns[max(first - start, 0) : max(last - start, 0)]
            if len(part):
                squares[b] = field.add(squares[b], _ARITHMETIC.dot(part, part))
            first = last
        await asyncio.sleep(0)  # heartbeats
    return OwnerSums(totals[: test.sums], totals[test.sums :], squares)


def halves(coin: Prg, projections: int, width: int) -> Integers:
    """(projections, width) of 0 and 1: which coordinates are in each sum. A fair bit each."""
    words = coin.words((projections, -(-width // 64)))
    bits = np.unpackbits(words.view(np.uint8), axis=1, bitorder="little", count=width)
    return bits.astype(np.int64)


def _columns(rows: Sequence[Words], start: int, end: int) -> Words:
    """(end - start, m): coordinates of all owners, contiguous."""
    parts = [row[:, start:end].T for row in rows]
    return np.ascontiguousarray(parts[0] if len(parts) == 1 else np.concatenate(parts, axis=1))
