"""The check that sums of squares are right, as arithmetic: one party's side, without a network. Three parties, one of
them corrupt.

Over F_p, p = 2^61 - 1, parties hold Shamir shares of degree 1 of x_j (d numbers, for each owner j), and shares of N_bj,
of which it is claimed that N_bj = sum_(k in block b) x_jk^2. With public coins lambda_bj all claims are one, about an
inner product:

    sum_(b,j) lambda_bj N_bj = sum_(j,k) u_jk v_jk,   u_jk = lambda_b(k)j x_jk,   v_jk = x_jk,

which `product_fold` checks. In its first stage each column is of one block of one owner, and u is not made.

Guarantees: if any N_j is wrong, Z = X Y with probability at most `square_error`, for errors fixed before each coin: 1/p
for lambda, then 2/p a variable (docs/owners.md).
"""

from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import groupby
from operator import itemgetter

import numpy as np

from dpmpc.mpc.numbers.field import P, Words
from dpmpc.mpc.numbers.mersenne import Mersenne
from dpmpc.mpc.numbers.product_fold import ARITHMETIC, FEW, Coin, ProductFold, ProductStages, folded, uniform

_BLOCK = 1 << 10  # columns at a time: what is made of them stays in a core's cache


def square_stages(owners: int, *lengths: int) -> ProductStages:
    """The stages of the check of each owner's squares, in blocks of these lengths."""
    return ProductStages.of(owners * sum(-(-length >> FEW) for length in lengths), FEW)


def square_error(stages: ProductStages) -> Fraction:
    """How likely wrong sums pass, at most."""
    return Fraction(1, P) + stages.error()


class SquareRows:
    """The first stage: u is v, and each owner's part of it in a block times its lambda (blocks, m)."""

    def __init__(self, rows: Sequence[Words], lambdas: Words, lengths: Sequence[int], arithmetic: Mersenne) -> None:
        self._rows, self._lambdas, self._lengths, self._arithmetic = rows, lambdas, lengths, arithmetic
        self.stages = square_stages(lambdas.shape[1], *lengths)

    def _blocks(self) -> Iterator[tuple[int, Words]]:
        """(the block's number, (8, coordinates, owners) contiguous): the rows, some columns at a time."""
        owners = self._lambdas.shape[1]
        step, origin = max(1, (_BLOCK << FEW + 2) // owners), 0
        for b, length in enumerate(self._lengths):
            width = -(-length >> FEW)
            for start in range(0, width, step):
                yield b, self._columns(origin, length, width, range(start, min(start + step, width)))
            origin += length

    def _columns(self, origin: int, length: int, width: int, places: range) -> Words:
        """Some columns of a block that begins at `origin`, as 8 rows of this width; zeros beyond its length."""
        block = np.zeros((1 << FEW, len(places), self._lambdas.shape[1]), dtype=np.uint64)
        for r, into in enumerate(block):
            at, first = r * width, 0
            for row in self._rows:
                part = row[:, origin + min(at + places.start, length) : origin + min(at + places.stop, length)]
                into[: part.shape[1], first : first + len(row)] = part.T
                first += len(row)
        return block

    def gram(self) -> list[list[int]]:
        """(8, 8): sums over all columns of products of two rows, each owner's times its lambda."""
        size = 1 << FEW
        flat = [[0] * size for _ in range(size)]
        for k, parts in groupby(self._blocks(), itemgetter(0)):
            total = np.zeros((size, size, self._lambdas.shape[1]), dtype=np.uint64)
            for _, block in parts:
                for a in range(size):
                    for b in range(a + 1):
                        total[a, b] = self._arithmetic.add(total[a, b], self._arithmetic.dot(block[a], block[b]))
            for a in range(size):
                for b in range(a + 1):
                    flat[a][b] += self._arithmetic.inner(self._lambdas[k], total[a, b])
        return [[flat[max(a, b)][min(a, b)] for b in range(size)] for a in range(size)]

    def sums(self) -> Words:
        """See `FirstStage`."""
        points = self._arithmetic.extended(np.eye(1 << FEW, dtype=np.uint64)).tolist()  # coefficients of the rows
        gram, p = self.gram(), self._arithmetic.p
        return np.array([
            sum(x * y * g for x, row in zip(point, gram, strict=True) if x for y, g in zip(point, row, strict=True)) % p
            for point in points
        ], dtype=np.uint64)  # fmt: skip

    def folded(self, factors: Words) -> tuple[Words, Words]:
        """See `FirstStage`."""
        each = [(k, folded(self._arithmetic, factors, block)) for k, block in self._blocks()]
        self._rows = ()
        u = np.concatenate([self._arithmetic.multiply(v, self._lambdas[k][None]) for k, v in each])
        return u.reshape(-1), np.concatenate([v for _, v in each]).reshape(-1)


def square_fold(
    rows: Sequence[Words],
    sums: Words,
    weight: int,
    mask: Words,
    coin: Coin,
    lengths: Sequence[int],
    arithmetic: Mersenne = ARITHMETIC,
) -> ProductFold:
    """One party's side of the check. `rows`: shares (k, d), all owners' in order. `sums`: shares (blocks, m) of N in
    blocks of these lengths, made before the first coin was known. `weight` and `mask`: see `ProductFold`."""
    lambdas = uniform(coin, sums.size, arithmetic)
    claim = arithmetic.inner(lambdas, np.ascontiguousarray(sums).reshape(-1))
    return ProductFold(
        SquareRows(rows, lambdas.reshape(sums.shape), lengths, arithmetic), claim, weight, mask, arithmetic
    )
