"""The many-party engine in one process, on streams that a test chooses; and linear algebra mod p. No secrecy."""

import itertools
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeVar

import numpy as np
from inprocess import Network
from numpy.typing import NDArray

from dpmpc.mpc.numbers import field
from dpmpc.mpc.numbers.domains import Domain
from dpmpc.mpc.numbers.mersenne import Mersenne
from dpmpc.mpc.numbers.prg import Prg
from dpmpc.mpc.shamir.engine import CHUNK, ManyEngine
from dpmpc.mpc.shamir.layout import ManyLayout

Words = NDArray[np.uint64]
T = TypeVar("T")
Name = tuple[Any, ...]  # ("share" or "zero", dealer, receiver), or ("own", party)
MakeStream = Callable[[Name], Any]  # something with `words((count,))`
IDENT = 7  # of the engine's channel
CASES = [(3, 1), (4, 1), (5, 2), (6, 2), (7, 3), (9, 4)]


class Streams:
    """What an engine asks of a batch's streams."""

    def __init__(self, party: int, make: MakeStream) -> None:
        self._party, self._make = party, make

    def between(self, purpose: Domain, dealer: int, receiver: int) -> Any:
        return self._make((purpose.name, dealer, receiver))

    def own(self) -> Any:
        return self._make(("own", self._party))


class Parties:
    """n engines on one in-process network, whose messages are kept."""

    def __init__(
        self,
        parties: int,
        threshold: int,
        *,
        make: MakeStream | None = None,
        arithmetic: Mersenne | None = None,
        chunk: int = CHUNK,
    ) -> None:
        self.arithmetic = arithmetic or Mersenne()
        self.layout = ManyLayout(parties, threshold, self.arithmetic.p)
        self.network = Network(parties, threshold)
        self.engines: list[ManyEngine] = [None] * parties  # type: ignore[list-item]
        self._make = make or (lambda name: Prg(b"many", *name))
        self._chunk = chunk

    def run(self, lanes: int, body: Callable[[ManyEngine], Awaitable[T]], products: int = 0) -> list[T]:
        """What `body(engine)` returns at each party."""

        async def party(session: Any) -> T:
            streams: Any = Streams(session.party, self._make)
            engine = ManyEngine(
                session.party,
                session.channel(IDENT),
                self.layout,
                streams,
                lanes,
                products,
                chunk=self._chunk,
                arithmetic=self.arithmetic,
            )
            self.engines[session.party] = engine
            return await body(engine)

        return self.network.run(party)

    def share(self, value: Words, fixed: dict[int, Words], seed: int) -> list[Words]:
        """All parties' shares of a value whose `fixed` parties hold given ones; what is left is chosen at random."""
        layout, arithmetic = self.layout, self.arithmetic
        points = {-1: value, **fixed}  # party -1 sits at 0
        for i in range(layout.parties):
            if len(points) <= layout.threshold and i not in points:
                points[i] = arithmetic.uniform(Prg(b"share", seed, i), value.size).reshape(value.shape)
        return [self.at(i, points) for i in range(layout.parties)]

    def at(self, party: int, points: dict[int, Words]) -> Words:
        """The value at `party` of the polynomial through `points`, by party; -1 is the point 0."""
        total: Words | None = None
        for i, word in points.items():
            above = below = 1
            for j in points:
                if j != i:
                    above, below = above * (party - j), below * (i - j)
            term = self.arithmetic.scale(word, above * pow(below, -1, self.arithmetic.p))
            total = term if total is None else self.arithmetic.add(total, term)
        assert total is not None
        return total

    def secret(self, shares: Sequence[Words]) -> Words:
        """The value; the shares of all parties must lie on one polynomial of degree t."""
        t, n = self.layout.threshold, self.layout.parties
        points = dict(enumerate(shares[: t + 1]))
        for i in range(t + 1, n):
            assert (self.at(i, points) == shares[i]).all(), "shares of more than t + 1 parties on no common polynomial"
        return self.at(-1, points)

    def seen(self, coalition: Sequence[int]) -> dict[tuple[int, int], list[Words]]:
        """What members were sent by others, by (sender, receiver)."""
        return {
            pair: sent
            for pair, sent in sorted(self.network.sent.items())
            if pair[1] in coalition and pair[0] not in coalition
        }


def coalitions(n: int, t: int) -> list[tuple[int, ...]]:
    """All sets of t parties."""
    return list(itertools.combinations(range(n), t))


def matrix_of(rows: Sequence[Sequence[int]]) -> Words:
    """(rows, columns): the numbers mod p."""
    return np.array([[x % field.P for x in row] for row in rows], dtype=np.uint64).reshape(len(rows), -1)


def echelon(left: Words, columns: int) -> list[int]:
    """Brings the first `columns` columns to reduced row echelon form, in place; the column of each pivot's row."""
    arithmetic, pivots = Mersenne(), list[int]()
    for column in range(columns):
        at = len(pivots)
        if not (below := np.flatnonzero(left[at:, column])).size:
            continue
        left[[at, at + below[0]]] = left[[at + below[0], at]]
        inverse = np.uint64(pow(int(left[at, column]), -1, field.P))
        left[at] = head = arithmetic.multiply(left[at], np.full(left.shape[1], inverse))
        others = np.flatnonzero(left[:, column])
        others = others[others != at]
        if others.size:
            factors = np.repeat(left[others, column], left.shape[1])
            moved = arithmetic.multiply(factors, np.tile(head, others.size)).reshape(others.size, -1)
            left[others] = arithmetic.subtract(left[others], moved)
        pivots.append(column)
    return pivots


def rank(rows: Sequence[Sequence[int]]) -> int:
    """The rank of a matrix mod p."""
    left = matrix_of(rows)
    return len(echelon(left, left.shape[1]))


def solve(columns: Sequence[Sequence[int]], wanted: Sequence[int]) -> list[int] | None:
    """x with sum of x[k] * columns[k] = wanted mod p, or None."""
    left = matrix_of([[*(c[i] for c in columns), wanted[i]] for i in range(len(wanted))])
    pivots = echelon(left, len(columns))
    if left[len(pivots) :, -1].any():
        return None
    x = [0] * len(columns)
    for k, column in enumerate(pivots):
        x[column] = int(left[k, -1])
    return x
