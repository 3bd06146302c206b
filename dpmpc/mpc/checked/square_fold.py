"""The check that sums of squares are right, as arithmetic: one party's side, without a network. Three parties, one of
them corrupt.

Over F_p, p = 2^61 - 1, parties hold Shamir shares of degree 1 of x_j (d numbers, for each owner j), and shares of N_j,
of which it is claimed that N_j = sum_k x_jk^2. With public coins lambda_j all claims are one, about an inner product:

    sum_j lambda_j N_j = sum_(j,k) u_jk v_jk,   u_jk = lambda_j x_jk,   v_jk = x_jk,

which `product_fold` checks. In its first stage each column is of one owner, and u is not made.

Guarantees: if any N_j is wrong, Z = X Y with probability at most `square_error`, for errors fixed before each coin: 1/p
for lambda, then 2/p a variable (docs/owners.md).
"""

from collections.abc import Iterator, Sequence
from fractions import Fraction

import numpy as np

from dpmpc.mpc.numbers.field import P, Words
from dpmpc.mpc.numbers.mersenne import Mersenne
from dpmpc.mpc.numbers.product_fold import ARITHMETIC, FEW, Coin, ProductFold, ProductStages, folded, uniform

_BLOCK = 1 << 10  # columns at a time: what is made of them stays in a core's cache


def square_stages(owners: int, dimension: int) -> ProductStages:
    """The stages of the check of `dimension` squares of each owner."""
    return ProductStages.of(owners * -(-dimension >> FEW), FEW)


def square_error(stages: ProductStages) -> Fraction:
    """How likely wrong sums pass, at most."""
    return Fraction(1, P) + stages.error()


class SquareRows:
    """The first stage: u is v, and each owner's part of it times its lambda."""

    def __init__(self, rows: Sequence[Words], lambdas: Words, arithmetic: Mersenne) -> None:
        self._rows, self._lambdas, self._arithmetic = rows, lambdas, arithmetic
        self.stages = square_stages(lambdas.size, rows[0].shape[1])

    def _blocks(self) -> Iterator[Words]:
        """(8, coordinates, owners), contiguous: the rows, some columns at a time."""
        owners, dimension = self._lambdas.size, self._rows[0].shape[1]
        width = -(-dimension >> FEW)
        step = max(1, (_BLOCK << FEW + 2) // owners)
        for start in range(0, width, step):
            end = min(start + step, width)
            block = np.zeros((1 << FEW, end - start, owners), dtype=np.uint64)
            for r, into in enumerate(block):
                at, first = r * width, 0
                for row in self._rows:
                    part = row[:, at + start : min(at + end, dimension)]
                    into[: part.shape[1], first : first + len(row)] = part.T
                    first += len(row)
            yield block

    def gram(self) -> list[list[int]]:
        """(8, 8): sums over all columns of products of two rows, each owner's times its lambda."""
        size = 1 << FEW
        total = np.zeros((size, size, self._lambdas.size), dtype=np.uint64)
        for block in self._blocks():
            for a in range(size):
                for b in range(a + 1):
                    total[a, b] = self._arithmetic.add(total[a, b], self._arithmetic.dot(block[a], block[b]))
        flat = [[self._arithmetic.inner(self._lambdas, total[a, b]) for b in range(a + 1)] for a in range(size)]
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
        v = np.concatenate([folded(self._arithmetic, factors, block) for block in self._blocks()])
        self._rows = ()
        return self._arithmetic.multiply(v, self._lambdas[None]).reshape(-1), v.reshape(-1)


def square_fold(
    rows: Sequence[Words], sums: Words, weight: int, mask: Words, coin: Coin, arithmetic: Mersenne = ARITHMETIC
) -> ProductFold:
    """One party's side of the check. `rows`: shares (k, d), all owners' in order. `sums`: shares (m,) of N, made before
    the first coin was known. `weight` and `mask`: see `ProductFold`."""
    lambdas = uniform(coin, sums.size, arithmetic)
    claim = arithmetic.inner(lambdas, np.ascontiguousarray(sums))
    return ProductFold(SquareRows(rows, lambdas, arithmetic), claim, weight, mask, arithmetic)
