"""What parties check of owners' vectors before they add them up, and which backend can: shares of one vector, and a
bounded norm. docs/owners.md has the protocol and its soundness."""

import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Protocol, runtime_checkable

from dpmpc.errors import UsageError
from dpmpc.lazy import dataclass
from dpmpc.mpc.contract.backend import Counts, S
from dpmpc.mpc.numbers import field

SHARES, NORMS = "shares", "norms"  # what can be checked
MOST_WIDTH = 29  # bits of a projection: with more, one could hide a sum of squares that has wrapped around
_CROWD = 3.84  # (4 / sqrt(2 pi) + 4 * 0.56): see `NormTest.passes`


def widest(square: int, dimension: int, reach: int | None = None) -> int:
    """What no sum of some coordinates of a vector (dimension,) with this sum of squares exceeds: its |x|_1, which is
    sqrt(dimension) |x| at most, and `reach`, where that is known."""
    found = math.isqrt(dimension * square)
    return found if reach is None else min(found, reach)


def width_of(square: int, dimension: int, reach: int | None = None) -> int:
    """Bits of a projection that any such vector passes."""
    return widest(square, dimension, reach).bit_length() + 1


@dataclass(frozen=True)
class NormTest:
    """Whether the whole numbers that an owner shared have a sum of squares of at most `squares[owner]`.

    `projections`: sums of random halves of the coordinates, each of which must lie within 2^(width - 1), exclusive.
    `square_width`: bits of a slack, squares + 1 - sum. `blocks`: (end, squares): the coordinates from the end of the
    block before to this one have a bound of their own, which is compared in place of that of all; none: one block.
    """

    squares: tuple[int, ...]
    dimension: int
    width: int
    square_width: int
    projections: int
    blocks: tuple[tuple[int, tuple[int, ...]], ...] = ()

    @staticmethod
    def of(
        squares: tuple[int, ...],
        dimension: int,
        bits: float,
        blocks: tuple[tuple[int, tuple[int, ...]], ...] = (),
        reach: int | None = None,
    ) -> "NormTest":
        """For vectors (dimension,), passed wrongly with probability at most 2^-bits. `reach`: what the magnitudes of an
        honest vector add up to at most, where that is known. Errors: UsageError for a bound so large that squares could
        wrap around unseen."""
        largest = max(squares)
        width = width_of(largest, dimension, reach)
        if width > MOST_WIDTH:
            most = 2.0 ** (MOST_WIDTH - 1) * math.sqrt(largest) / widest(largest, dimension, reach)
            raise UsageError(
                f"<<check_owners>> squares numbers mod 2^61 - 1: the bound on a vector may be at most {most:,.0f} grid "
                f"steps with {dimension} coordinates; it is {math.sqrt(largest):,.0f}; give a coarser grid, "
                f"{math.ceil(math.log2(math.sqrt(largest) / most))} fewer <<grid_bits>>, or leave <<check_owners>> out",
                code="range",
            )
        test = NormTest(squares, dimension, width, (largest + 1).bit_length(), 0, blocks)
        return replace(test, projections=math.ceil(bits / -math.log2(test.passes)))

    @property
    def bounds(self) -> tuple[tuple[int, tuple[int, ...]], ...]:
        """The end of each block, and the largest sum of squares of each owner in it.

        Where the squares of all coordinates add up to less than p - 2^square_width, which projections tell, so do those
        of a block: each comparison is exact, and takes no projections of its own.
        """
        return self.blocks or ((self.dimension, self.squares),)

    @property
    def lengths(self) -> tuple[int, ...]:
        """How many coordinates each block has."""
        ends = [0, *(end for end, _ in self.bounds)]
        return tuple(end - start for start, end in pairwise(ends))

    @property
    def kinds(self) -> int:
        """How many numbers of an owner are compared."""
        return self.projections + len(self.bounds)

    @property
    def passes(self) -> float:
        """How likely one projection of a vector whose squares add up to p - 2^square_width or more, as whole numbers,
        lies within its bound h = 2^(width - 1), at most.

        If a coordinate is 2h - 1 or more from 0 (mod p) then of two halves that differ in it alone one is outside: 1/2.
        Else no projection wraps around, and it is a sum of independent terms with standard deviation s = |x| / 2 and
        third moments of at most 2h / |x| of s^3: by Berry and Esseen (with 0.56, Shevtsova 2010) it falls into an
        interval of length 2h with probability at most 2h / (s sqrt(2 pi)) + 2 * 0.56 * 2h / |x| < 3.84 h / |x|.
        """
        h = 1 << self.width - 1
        assert 2 * h * self.dimension + h < field.P
        return max(0.5, _CROWD * h / math.sqrt(field.P - (1 << self.square_width)))

    @property
    def error(self) -> float:
        """How likely a vector beyond its bound passes, at most."""
        return self.passes**self.projections


@dataclass(frozen=True)
class OwnerTest:
    """What is checked in one release: that shares are of one vector, by `sums` weighted sums of its coordinates, and
    norms where `norms` is not None."""

    owners: int
    dimension: int
    norms: NormTest | None
    sums: int = 1

    @property
    def error(self) -> float:
        """How likely one owner passes that must not, at most; a weighted sum misses 1 in p."""
        return float(field.P) ** -self.sums + (0.0 if self.norms is None else self.norms.error)


@dataclass(frozen=True)
class FailedOwners:
    """The owners that failed, in order: shares of no one vector; vectors beyond the bound."""

    inconsistent: tuple[int, ...] = ()
    too_long: tuple[int, ...] = ()

    @property
    def all(self) -> tuple[int, ...]:
        """Both."""
        return tuple(sorted({*self.inconsistent, *self.too_long}))

    def text(self) -> str:
        """A line that names them; empty where none failed."""
        kinds = (self.inconsistent, "shares of no one vector"), (self.too_long, "a vector beyond the norm bound")
        return "; ".join(f"owner {', '.join(map(str, who))}: {what}" for who, what in kinds if who)


@runtime_checkable
class ChecksOwners(Protocol):
    """A backend whose parties can check owners."""

    def owner_checks(self, parties: int, threshold: int) -> tuple[str, ...]:
        """Of `SHARES` and `NORMS`, what they can. Errors: UsageError for numbers of parties with which nothing can."""

    def count_owner_checks(self, test: OwnerTest, parties: int, threshold: int) -> tuple[Counts, ...]:
        """The cost of `Inspects.inspect` in one release, exactly, by channel."""


@runtime_checkable
class Inspects(Protocol[S]):
    """A holder that checks owners."""

    def rows(self, payload: bytes | bytearray, owners: int, dimension: int) -> S:
        """The shares (owners, dimension) of each vector, as `Holder.collect` takes their sum. Errors: PeerError for a
        payload of another size; words that no share has are a share's, wrong or not."""

    def beside(self, parts: Sequence[S]) -> S:
        """Shares (owners, dimension) of the same owners' vectors, put together from those of their columns."""

    async def inspect(self, rows: list[S], test: OwnerTest, channel: int) -> FailedOwners:
        """The owners that failed. `rows`: of some owners each, all in order; `channel`: the first of as many
        as `count_owner_checks` counts. Errors: CheatError where it may be a party that lies."""

    def sum_without(self, rows: list[S], owners: tuple[int, ...]) -> S:
        """The share of the sum of all vectors but those of `owners`. No message."""


def check_possible(threshold: int) -> None:
    """Errors: UsageError where a party alone reads vectors, so that there is nothing to hide from it."""
    if threshold < 1:
        raise UsageError(
            f"<<check_owners>> is for parties of which none reads a vector; got the threshold {threshold}; use "
            f"<<parties=3>> or "
            "more, or leave <<check_owners>> out"
        )
