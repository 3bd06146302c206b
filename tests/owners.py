"""Owners that cheat: what they share in place of an honest vector, and how they deal it. For tests of their checks."""

from collections.abc import Callable
from typing import Any

import numpy as np
from inprocess import Network, Words
from numpy.typing import NDArray

from dpmpc.mpc.contract.owner_checks import FailedOwners, NormTest, OwnerTest
from dpmpc.mpc.numbers import field
from dpmpc.mpc.numbers.field import P
from dpmpc.mpc.numbers.prg import Prg

Ints = NDArray[np.int64]


def root(square: int) -> int | None:
    """A number whose square is this mod p = 3 mod 4, if there is one."""
    found = pow(square, (P + 1) // 4, P)
    return found if found * found % P == square % P else None


def signed(values: list[int]) -> list[int]:
    """Field elements as whole numbers of least absolute value."""
    return [v - P if v > P // 2 else v for v in (value % P for value in values)]


def squares_of(vector: Any) -> int:
    return sum(int(v) ** 2 for v in vector)


def on_the_bound(dimension: int, square: int) -> list[int]:
    """Whole numbers whose squares add up to `square` exactly, by four of them (Lagrange), the rest zeros."""
    left, found = square, []
    while left:
        step = int(left**0.5)
        while step * step > left:
            step -= 1
        found.append(step)
        left -= step * step
    assert len(found) <= dimension
    return found + [0] * (dimension - len(found))


def beyond(dimension: int, bound: int) -> dict[str, list[int]]:
    """Vectors whose squares add up to more than `bound` as whole numbers; most of them to little mod p."""
    rng = np.random.default_rng(dimension)
    half = (P + 1) // 2  # 1/2 mod p: an even number of them adds up to a small number, with any signs
    found = {
        "one more than the bound": on_the_bound(dimension, bound + 1),
        "one coordinate of the bound's root": [int(bound**0.5) + 1] + [0] * (dimension - 1),
        "halves": signed([half] * 4 + [0] * (dimension - 4)),
        "halves of both signs": signed([half, -half] * (dimension // 2) + [0] * (dimension % 2)),
        "all as large as can be": signed([P // 2] * dimension),
        "all of both signs": signed([P // 2 * (-1) ** k for k in range(dimension)]),
        "a root of -1 is none, so two squares": signed(_small_sum(rng, dimension, 2)),
        "three large ones": signed(_small_sum(rng, dimension, 3)),
        "many large ones": signed(_small_sum(rng, dimension, dimension)),
        "just beyond p, no wrap in a coordinate": signed(_just_beyond(dimension)),
    }
    for name, vector in found.items():
        assert len(vector) == dimension and squares_of(vector) > bound, name
    return found


def _small_sum(rng: Any, dimension: int, count: int) -> list[int]:
    """So many large numbers, then zeros: their squares add up to 1 mod p."""
    while True:
        values = [int(v) for v in rng.integers(1 << 40, P, count - 1)]
        last = root(1 - sum(v * v for v in values))
        if last is not None:
            return values + [last] + [0] * (dimension - count)


def _just_beyond(dimension: int) -> list[int]:
    """Squares that add up to p + 1 as whole numbers, with numbers as small and as many as can be."""
    each = int((P // dimension) ** 0.5)
    head = [each] * (dimension - 6)
    rest = on_the_bound(6, P + 1 - squares_of(head))
    return head + rest


def shares_of(vectors: Ints, parties: int, threshold: int) -> Words:
    """(parties, m, d)."""
    return field.share(field.from_int64(vectors), parties, threshold, Prg.from_os())


Deal = Callable[[Words], None]  # changes shares (parties, m, d) in place


def inspected(
    shares: Words,
    squares: tuple[int, ...] | None,
    make: Any,
    threshold: int,
    bits: float = 41,
    network: Any = None,
    sums: int = 1,
    blocks: Any = (),
) -> tuple[list[FailedOwners], Network]:
    """What every party finds, and the messages. `make(session, channel, test)`: the check; `squares` None: no norms;
    `blocks`: ends, and bounds of each owner."""
    n, m, d = shares.shape
    norms = None if squares is None else NormTest.of(squares, d, bits, blocks)
    test = OwnerTest(m, d, norms, sums)
    network = network or Network(n, threshold)

    async def body(session: Any) -> FailedOwners:
        mine = shares[session.party]
        return await make(session, 1 << 28, test).run([mine[:1], mine[1:]] if m > 1 else [mine])

    return network.run(body), network
