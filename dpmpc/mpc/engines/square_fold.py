"""The check that sums of squares are right, as arithmetic: one party's side, without a network. Three parties, one of
them corrupt.

Over F_p, p = 2^61 - 1, parties hold Shamir shares of degree 1 of x_j (d numbers, for each owner j), and shares of N_j,
of which it is claimed that N_j = sum_k x_jk^2. With public coins lambda_j all claims are one, about an inner product:

    sum_j lambda_j N_j = sum_(j,k) u_jk v_jk,   u_jk = lambda_j x_jk,   v_jk = x_jk.

As in `fold`, u and v lie in R = 2^v rows and some columns (in the first stage each of one owner, and u is not made);
f_c and g_c are multilinear and are column c's elements of u and v at the corners {0,1}^v; P(t) = sum_c f_c(t) g_c(t)
has degree 2 in each variable. The claim is about the sum of P over the corners. The parties compute and share anew its
values at {0, 1, infinity}^v, less the one at the corner 0; the coin t takes the claim to P(t) and each column to one
element. The last stage has one column, and in its last row a random pair, which no claim counts, with coins that are
not 0: so X = f(t) and Y = g(t) are masked, may be opened, and must have the product Z = P(t).

Guarantees: if any N_j is wrong, Z = X Y with probability at most `SquareStages.error`, for errors fixed before
each coin: 1/p for lambda, then 2/p a variable (docs/owners.md).
Source: as `fold`, over a prime field.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from dpmpc.mpc import field
from dpmpc.mpc.engines.fold import Coin
from dpmpc.mpc.field import P, Words
from dpmpc.mpc.native.mersenne import Mersenne

_FEW = 3  # variables of a stage while there are many elements
_MOST = 6
_MANY = 1 << 14  # elements
_BLOCK = 1 << 10  # columns at a time: what is made of them stays in a core's cache
_P = np.uint64(P)
_ARITHMETIC = Mersenne()


@dataclass(frozen=True)
class SquareStages:
    """Which stages the check of so many numbers has. `variables`, and the columns, of each."""

    variables: tuple[int, ...]
    columns: tuple[int, ...]

    @staticmethod
    def of(owners: int, dimension: int) -> "SquareStages":
        """For `dimension` squares of each owner."""
        left = owners * -(-dimension >> _FEW)
        variables, columns = [_FEW], [left]
        while left >= 1 << _MOST:  # a row is kept for the mask
            v = _FEW if left >= _MANY else _MOST
            left = -(-left >> v)
            variables.append(v)
            columns.append(left)
        return SquareStages((*variables, left.bit_length()), (*columns, 1))

    @property
    def messages(self) -> tuple[int, ...]:
        """Words that a party sends in each stage."""
        return tuple(3**v - 1 for v in self.variables)

    @property
    def error(self) -> Fraction:
        """How likely wrong sums pass, at most. Coins of the last stage are one of p - 1."""
        return Fraction(1 + 2 * sum(self.variables[:-1]), P) + Fraction(2 * self.variables[-1], P - 1)


class SquareFold:
    """One party's side. `weight`: its Lagrange coefficient of a product of two shares, so that the parties' parts of a
    value add up to it."""

    def __init__(self, rows: Sequence[Words], weight: int, mask: Words) -> None:
        """`rows`: shares (k, d), all owners' in order. `mask`: shares (2,) of a random pair."""
        self._rows, self._mask, self._weight = rows, mask, weight
        owners, dimension = sum(map(len, rows)), rows[0].shape[1]
        self.stages = SquareStages.of(owners, dimension)
        self._stage = 0
        self._lambdas = self._claim = self._points = np.zeros(1, dtype=np.uint64)
        self._u = self._v = np.zeros((1, 0), dtype=np.uint64)  # (rows, columns)

    @property
    def _last(self) -> bool:
        return self._stage == len(self.stages.variables) - 1

    def begin(self, coin: Coin, sums: Words) -> None:
        """Takes the first coin, after the shares of `sums` (m,), N, have been made."""
        self._lambdas = uniform(coin, sums.size)
        self._claim = _dot(self._lambdas, sums)

    def sums(self) -> Words:
        """This party's part of the stage's values, to be shared anew: all points but the corner 0."""
        v = self.stages.variables[self._stage]
        total = [0] * 3**v
        if self._stage == 0:
            total = _at_points(self._gram(), v)
        else:
            for start in range(0, self._u.shape[1], _BLOCK):
                here = _sums(*(each[:, start : start + _BLOCK] for each in (self._u, self._v)))
                total = [(a + b) % P for a, b in zip(total, here, strict=True)]
        return np.array([value * self._weight % P for value in total[1:]], dtype=np.uint64)

    def _blocks(self) -> Iterator[Words]:
        """(8, coordinates, owners), contiguous: the first stage's rows, some columns at a time."""
        owners, dimension = self._lambdas.size, self._rows[0].shape[1]
        width = -(-dimension >> _FEW)
        step = max(1, (_BLOCK << _FEW + 2) // owners)
        for start in range(0, width, step):
            end = min(start + step, width)
            block = np.zeros((1 << _FEW, end - start, owners), dtype=np.uint64)
            for r, into in enumerate(block):
                at, first = r * width, 0
                for row in self._rows:
                    part = row[:, at + start : min(at + end, dimension)]
                    into[: part.shape[1], first : first + len(row)] = part.T
                    first += len(row)
            yield block

    def _gram(self) -> list[list[int]]:
        """(8, 8): sums over all columns of products of two rows, each owner's times its lambda."""
        size = 1 << _FEW
        total = np.zeros((size, size, self._lambdas.size), dtype=np.uint64)
        for block in self._blocks():
            for a in range(size):
                for b in range(a + 1):
                    total[a, b] = field.add(total[a, b], _ARITHMETIC.dot(block[a], block[b]))
        flat = [[int(_dot(self._lambdas, total[a, b])[0]) for b in range(a + 1)] for a in range(size)]
        return [[flat[max(a, b)][min(a, b)] for b in range(size)] for a in range(size)]

    def take(self, values: Words) -> None:
        """Takes the shares (points - 1,) of the values."""
        v = self.stages.variables[self._stage]
        corners = [sum((r >> k & 1) * 3**k for k in range(v)) for r in range(1 << v)]
        counted = corners[1:-1] if self._last else corners[1:]
        rest = field.total(values[np.array(counted, dtype=np.intp) - 1][:, None])
        self._points = np.concatenate([field.sub(self._claim, rest), values])

    def fold(self, coin: Coin) -> None:
        """Takes the stage's coin, after its values have been shared: on to the next stage."""
        t = uniform(coin, self.stages.variables[self._stage], nonzero=self._last)
        self._claim = _dot(factors_of_points(t), self._points)
        factors = factors_of_rows(t).view(np.int64)[None]
        if self._stage == 0:
            v = np.concatenate([_folded(factors, block) for block in self._blocks()])
            u = _ARITHMETIC.multiply(v, self._lambdas[None])
            self._rows = ()
        else:
            u, v = (_folded(factors, each) for each in (self._u, self._v))
        self._stage += 1
        if self._stage < len(self.stages.variables):
            self._lay_out(u.reshape(-1), v.reshape(-1))
        else:
            self._u, self._v = u[None], v[None]

    def _lay_out(self, u: Words, v: Words) -> None:
        """The elements in the rows of the next stage; the mask in the last row of the last one."""
        rows, columns = 1 << self.stages.variables[self._stage], self.stages.columns[self._stage]
        result = []
        for elements, mask in ((u, self._mask[0]), (v, self._mask[1])):
            padded = np.zeros(rows * columns, dtype=np.uint64)
            padded[: elements.size] = elements
            if self._last:
                assert elements.size < rows
                padded[-1] = mask
            result.append(padded.reshape(rows, columns))
        self._u, self._v = result

    @property
    def opening(self) -> Words:
        """(3,): the shares of X, Y and Z, after the last coin."""
        assert self._stage == len(self.stages.variables)
        return np.concatenate([self._u[0], self._v[0], self._claim])


def holds(opened: Words) -> bool:
    """Whether Z = X Y for the opened (X, Y, Z)."""
    x, y, z = (int(value) for value in opened)
    return x * y % P == z


def extended(rows: Words) -> Words:
    """(3^v, ...): the multilinear extension of rows (2^v, ...) at {0, 1, infinity}^v; at infinity it is the leading
    coefficient. The first variable's digit is the most significant."""
    v, rest = rows.shape[0].bit_length() - 1, rows.shape[1:]
    found = np.empty((3,) * v + rest, dtype=np.uint64)
    found[(slice(0, 2),) * v] = rows.reshape((2,) * v + rest)
    for axis in range(v):
        before, after = (slice(None),) * axis, (slice(0, 2),) * (v - axis - 1)
        low, high, into = (found[(*before, k, *after)] for k in range(3))
        np.subtract(high, low, out=into)
        np.minimum(into, into + _P, out=into)
    return found.reshape(-1, *rest)


def _at_points(gram: list[list[int]], v: int) -> list[int]:
    """(3^v,): the values at {0, 1, infinity}^v of the product of two extensions whose rows have these products."""
    points = extended(np.eye(1 << v, dtype=np.uint64)).tolist()  # of each, the coefficients of the rows
    return [
        sum(x * y * g for x, row in zip(point, gram, strict=True) if x for y, g in zip(point, row, strict=True)) % P
        for point in points
    ]


def _sums(u: Words, v: Words) -> list[int]:
    """(points,): sums over the columns of the products of the extensions of u and v (rows, columns)."""
    values = _ARITHMETIC.multiply(extended(u), extended(v))
    low = (values & np.uint64((1 << 32) - 1)).sum(axis=1, dtype=np.uint64)  # halves of words add up without overflow
    high = (values >> np.uint64(32)).sum(axis=1, dtype=np.uint64)
    return [(a + (b << 32)) % P for a, b in zip(low.tolist(), high.tolist(), strict=True)]


def _folded(factors: NDArray[np.int64], rows: Words) -> Words:
    """(...): the rows (rows, ...) with these factors, added up."""
    total: Words = _ARITHMETIC.matrix(factors, np.ascontiguousarray(rows))[0]
    return total


def factors_of_points(t: Words) -> Words:
    """(3^v,): the factors of the values at {0, 1, infinity}^v in the value at t, for degree 2 in each variable: p(t) =
    p(0) (1 - t) + p(1) t + p(infinity) (t^2 - t)."""
    return _tensor([[(1 - x) % P, x, (x * x - x) % P] for x in (int(each) for each in t)])


def factors_of_rows(t: Words) -> Words:
    """(2^v,): the factors of the rows in the multilinear extension at t."""
    return _tensor([[(1 - x) % P, x] for x in (int(each) for each in t)])


def uniform(coin: Coin, count: int, *, nonzero: bool = False) -> Words:
    """The coin's first field elements; with `nonzero`, those that are not 0."""
    found: list[int] = []
    while len(found) < count:
        word = int(coin.words((1,))[0]) & P
        if word != P and (word or not nonzero):
            found.append(word)
    return np.array(found, dtype=np.uint64)


def _tensor(factors: list[list[int]]) -> Words:
    total = [1]
    for each in factors:
        total = [a * b % P for a in total for b in each]
    return np.array(total, dtype=np.uint64)


def _dot(a: Words, b: Words) -> Words:
    """(1,): the sum of the products."""
    return field.total(field.mul(a, b)[:, None])
