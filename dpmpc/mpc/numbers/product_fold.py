"""The check that an inner product is what it is claimed to be, as arithmetic on Shamir shares: one party's side,
without a network.

Over F_p parties hold shares of degree t of u_k and v_k, and of a number of which it is claimed that it is the sum of
all u_k v_k. u and v lie in R = 2^v rows and some columns; f_c and g_c are multilinear and are column c's elements of u
and v at the corners {0,1}^v; P(t) = sum_c f_c(t) g_c(t) has degree 2 in each variable. The claim is about the sum of P
over the corners. The parties compute its values at {0, 1, infinity}^v, less the one at the corner 0, as sums of degree
2t, and share them anew; the coin t takes the claim to P(t) and each column to one element. The last stage has one
column, and in its last row a random pair, which no claim counts, with coins that are not 0: so X = f(t) and Y = g(t)
are masked, may be opened, and must have the product Z = P(t).

Guarantees: if the claim is wrong, Z = X Y with probability at most `ProductStages.error`, for errors of each stage that
were fixed before its coin (docs/active.md).
Source: as `fold`, over a prime field.
"""

from collections.abc import Sequence
from fractions import Fraction
from typing import Protocol

import numpy as np

from dpmpc.lazy import dataclass
from dpmpc.mpc.numbers.field import P, Words
from dpmpc.mpc.numbers.mersenne import Mersenne

FEW = 3  # variables of the first stage where elements are many: fewest products
_MOST = 6  # variables of a stage
_MANY = 1 << 17  # elements
ARITHMETIC = Mersenne()


class Coin(Protocol):
    """Public randomness that nobody could predict before the messages that it weighs: uniform words."""

    def words(self, shape: tuple[int, ...]) -> Words:
        """The next ones."""


@dataclass(frozen=True)
class ProductStages:
    """Which stages a check has. `variables`, and the columns, of each."""

    variables: tuple[int, ...]
    columns: tuple[int, ...]

    @staticmethod
    def of(columns: int, first: int) -> "ProductStages":
        """For so many columns, at least 1, of a first stage of so many variables; the others are even."""
        left = columns.bit_length()
        while True:
            number = -(-left // _MOST)
            rest = [(left + k) // number for k in range(number)]
            last = -(-columns >> left - rest[-1])
            if last < 1 << rest[-1]:  # a row is kept for the mask
                break
            left += 1
        found = [columns]
        for v in rest:
            found.append(-(-found[-1] >> v))
        return ProductStages((first, *rest), tuple(found))

    @staticmethod
    def for_elements(elements: int) -> "ProductStages":
        """For so many elements, at least 1, in any rows."""
        bits = elements.bit_length()
        first = FEW if elements >= _MANY else max(1, bits // max(2, -(-bits // _MOST)))
        return ProductStages.of(-(-elements >> first), first)

    @property
    def messages(self) -> tuple[int, ...]:
        """Words that are shared anew in each stage."""
        return tuple(3**v - 1 for v in self.variables)

    def error(self, prime: int = P) -> Fraction:
        """How likely a wrong claim passes, at most. Coins of the last stage are one of p - 1."""
        return Fraction(2 * sum(self.variables[:-1]), prime) + Fraction(2 * self.variables[-1], prime - 1)


class FirstStage(Protocol):
    """u and v in the first stage's rows and columns."""

    stages: ProductStages

    def sums(self) -> Words:
        """(points,): at each point the sum over columns of the products of both extensions."""

    def folded(self, factors: Words) -> tuple[Words, Words]:
        """(columns,) of u and of v: their rows with these factors, added up. Nothing else is asked of it then."""


class ProductFold:
    """One party's side. `weight`: its Lagrange coefficient of a product of two shares, so that the parties' parts of a
    value add up to it."""

    def __init__(
        self, first: FirstStage, claim: int, weight: int, mask: Words, arithmetic: Mersenne = ARITHMETIC
    ) -> None:
        """`claim`: this party's share. `mask`: shares (2,) of a random pair."""
        self.stages = first.stages
        self._first: FirstStage | None = first
        self._claim, self._weight, self._mask, self._arithmetic = claim, weight, mask, arithmetic
        self._stage = 0
        self._points = self._u = self._v = np.zeros((1, 1), dtype=np.uint64)

    @property
    def _last(self) -> bool:
        return self._stage == len(self.stages.variables) - 1

    def sums(self) -> Words:
        """This party's part of the stage's values, to be shared anew: all points but the corner 0."""
        sums = self._first.sums() if self._first else self._arithmetic.points(self._u, self._v)
        return self._arithmetic.scale(sums[1:], self._weight)

    def take(self, values: Words) -> None:
        """Takes the shares (points - 1,) of the values."""
        v = self.stages.variables[self._stage]
        corners = [sum((r >> k & 1) * 3**k for k in range(v)) for r in range(1 << v)]
        counted = corners[1:-1] if self._last else corners[1:]
        rest = sum(int(values[k - 1]) for k in counted)
        zero = np.array([(self._claim - rest) % self._arithmetic.p], dtype=np.uint64)
        self._points = np.concatenate([zero, values])

    def fold(self, coin: Coin) -> None:
        """Takes the stage's coin, after its values have been shared: on to the next stage."""
        arithmetic = self._arithmetic
        t = uniform(coin, self.stages.variables[self._stage], arithmetic, nonzero=self._last)
        self._claim = arithmetic.inner(factors_of_points(t, arithmetic), self._points)
        factors = factors_of_rows(t, arithmetic)
        if self._first:
            u, v = self._first.folded(factors)
            self._first = None
        else:
            u, v = (folded(arithmetic, factors, each) for each in (self._u, self._v))
        self._stage += 1
        if self._stage < len(self.stages.variables):
            self._u, self._v = (self._laid_out(x, m) for x, m in zip((u, v), self._mask, strict=True))
        else:
            self._u, self._v = u[None], v[None]

    def _laid_out(self, elements: Words, mask: np.uint64) -> Words:
        """The elements in the rows of the next stage; the mask in the last row of the last one."""
        rows, columns = 1 << self.stages.variables[self._stage], self.stages.columns[self._stage]
        padded = np.zeros(rows * columns, dtype=np.uint64)
        padded[: elements.size] = elements
        if self._last:
            assert elements.size < rows
            padded[-1] = mask
        return padded.reshape(rows, columns)

    @property
    def opening(self) -> Words:
        """(3,): the shares of X, Y and Z, after the last coin."""
        assert self._stage == len(self.stages.variables)
        return np.array([self._u[0, 0], self._v[0, 0], self._claim], dtype=np.uint64)


class Pieces:
    """The first stage of u and v that are given in pieces: each lies in rows as it is, and what is left over of all of
    them in one piece more."""

    def __init__(self, pieces: Sequence[tuple[Words, Words]], arithmetic: Mersenne = ARITHMETIC) -> None:
        """`pieces`: u and v, flat and contiguous, of one size each."""
        self._arithmetic = arithmetic
        self.elements = sum(u.size for u, _ in pieces)
        self.stages = ProductStages.for_elements(self.elements)
        first = self.stages.variables[0]
        ends = [(u.size >> first << first) for u, _ in pieces]
        rest = [np.concatenate([piece[k][end:] for piece, end in zip(pieces, ends, strict=True)]) for k in range(2)]
        rest = [np.concatenate([r, np.zeros(-r.size % (1 << first), dtype=np.uint64)]) for r in rest]
        whole = [(u[:end], v[:end]) for (u, v), end in zip(pieces, ends, strict=True)] + [(rest[0], rest[1])]
        self._pieces = [tuple(x.reshape(1 << first, -1) for x in piece) for piece in whole if piece[0].size]

    def sums(self) -> Words:
        """See `FirstStage`."""
        total = np.zeros(3 ** self.stages.variables[0], dtype=np.uint64)
        for u, v in self._pieces:
            total = self._arithmetic.add(total, self._arithmetic.points(u, v))
        return total

    def folded(self, factors: Words) -> tuple[Words, Words]:
        """See `FirstStage`."""
        parts = [[folded(self._arithmetic, factors, rows) for rows in piece] for piece in self._pieces]
        self._pieces = []
        return np.concatenate([u for u, _ in parts]), np.concatenate([v for _, v in parts])


def holds(opened: Words, arithmetic: Mersenne = ARITHMETIC) -> bool:
    """Whether Z = X Y for the opened (X, Y, Z)."""
    x, y, z = (int(value) for value in opened)
    return x * y % arithmetic.p == z


def folded(arithmetic: Mersenne, factors: Words, rows: Words) -> Words:
    """(...): the rows (rows, ...) with these factors, added up."""
    total: Words = arithmetic.matrix(factors.view(np.int64)[None], rows)[0]
    return total


def factors_of_points(t: Words, arithmetic: Mersenne = ARITHMETIC) -> Words:
    """(3^v,): the factors of the values at {0, 1, infinity}^v in the value at t, for degree 2 in each variable: p(t) =
    p(0) (1 - t) + p(1) t + p(infinity) (t^2 - t)."""
    return _tensor([[1 - x, x, x * x - x] for x in t.tolist()], arithmetic.p)


def factors_of_rows(t: Words, arithmetic: Mersenne = ARITHMETIC) -> Words:
    """(2^v,): the factors of the rows in the multilinear extension at t."""
    return _tensor([[1 - x, x] for x in t.tolist()], arithmetic.p)


def uniform(coin: Coin, count: int, arithmetic: Mersenne = ARITHMETIC, *, nonzero: bool = False) -> Words:
    """The coin's first field elements; with `nonzero`, those that are not 0."""
    found: list[int] = []
    while len(found) < count:
        word = int(coin.words((1,))[0]) & arithmetic.p
        if word != arithmetic.p and (word or not nonzero):
            found.append(word)
    return np.array(found, dtype=np.uint64)


def _tensor(factors: list[list[int]], prime: int) -> Words:
    total = [1]
    for each in factors:
        total = [a * b % prime for a in total for b in each]
    return np.array(total, dtype=np.uint64)
