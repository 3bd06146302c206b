"""Blocks side by side as one vector of whole numbers: scales, places, and what the whole reveals of one unit.

All questions of a command are one release with one deviation of the noise. A block's part of the promise goes by its
scale: with W = weight times number of answers and D the block's L2 distance at scale 1, s ~ W^(1/4) / D^(1/2) minimises
the sum of W / s^2, the answers' variances, for a given sum of s^2 D^2, the square of the whole distance.

Guarantees: the distance of the whole is at most the root of the sum of squares (L2), the sum (L1), the maximum (Linf)
of the blocks' distances, which `blocks` proves. Every process derives all of this from the public questions.
"""

import math
from collections.abc import Iterable, Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from dpmpc.errors import UsageError
from dpmpc.lazy import cached_property, dataclass
from dpmpc.privacy.checks import check_count
from dpmpc.statistics.blocks import NOTHING, Block, Distance, Reach, width
from dpmpc.statistics.cells import MOST_CELLS, Field, Ints, RecordFields, cells_of_owners
from dpmpc.statistics.columns import Owners
from dpmpc.statistics.where import Among

FINEST = 20  # bits of the largest scale
Kind = Literal["record", "presence", "owner", "person"]
_AT_ONCE = 1 << 18  # rows that are encoded at a time: their entries stay small


@dataclass(frozen=True)
class Unit:
    """What one promise is about: a record replaced, a record made absent, an owner's records all replaced, or a person
    with at most `rows` rows at each of at most `owners` owners."""

    kind: Kind = "record"
    rows: int = 1
    owners: int = 1

    def __post_init__(self) -> None:
        if self.kind not in ("record", "presence", "owner", "person"):
            raise UsageError(
                f"the unit is a record, presence, owner or person; got {self.kind!r}; choose one", code="choice"
            )
        for name, value in (("rows of a person", self.rows), ("owners of a person", self.owners)):
            check_count(name, value)

    def distance(self, reach: Reach, sizes: Sequence[int]) -> Distance:
        """What the unit moves a block by, of owners with these numbers of records."""
        match self.kind:
            case "record":
                return reach.replaced
            case "presence":
                return reach.absent
            case "owner":
                return reach.replaced * max(sizes)
        return (reach.replaced | reach.absent) * (self.rows * self.owners)


RECORD = Unit()


@dataclass(frozen=True)
class Layout:
    """Different blocks, the weight of each, and their unit."""

    blocks: tuple[Block, ...]
    weights: tuple[float, ...]
    unit: Unit = RECORD

    def __post_init__(self) -> None:
        if not self.blocks:
            raise UsageError("statistics need a question; none was asked; ask for instance: count", code="missing")
        assert len(set(self.blocks)) == len(self.blocks) == len(self.weights)
        if self.dimension > MOST_CELLS:
            raise UsageError(
                f"a release has at most {MOST_CELLS} numbers; these questions have {self.dimension}; ask fewer, or with"
                " fewer cells",
                code="range",
            )

    @staticmethod
    def of(asked: Iterable[tuple[Block, float]], unit: Unit | None = None) -> "Layout":
        """The layout of blocks and their weights; the weights of equal blocks add up."""
        merged: dict[Block, float] = {}
        for block, weight in asked:
            merged[block] = merged.get(block, 0.0) + weight
        return Layout(tuple(merged), tuple(merged.values()), unit or RECORD)

    @cached_property
    def scales(self) -> tuple[int, ...]:
        """Each block's scale in whole grid steps, by the root rule; the largest is 2^FINEST."""
        rule = []
        for block, weight in zip(self.blocks, self.weights, strict=True):
            reach = block.reach(1 << FINEST)
            far = (self.unit.distance(reach, (1,)).l2 or reach.absent.l2) / (1 << FINEST)
            rule.append((weight * block.worth / far**2) ** 0.25)
        return tuple(max(1, round((1 << FINEST) * part / max(rule))) for part in rule)

    @cached_property
    def offsets(self) -> tuple[int, ...]:
        """Where each block begins, and the length of the whole."""
        return tuple(int(at) for at in np.cumsum([0, *(width(block) for block in self.blocks)]))

    @property
    def dimension(self) -> int:
        """The length of the vector."""
        return self.offsets[-1]

    @cached_property
    def fields(self) -> tuple[Field, ...]:
        """What is read of every record, each once."""
        return tuple(dict.fromkeys(field for block in self.blocks for field in block.fields))

    def distances(self, sizes: Sequence[int]) -> tuple[Distance, ...]:
        """By how many grid steps the unit moves each block."""
        each = zip(self.blocks, self.scales, strict=True)
        return tuple(self.unit.distance(block.reach(scale), sizes) for block, scale in each)

    def distance(self, sizes: Sequence[int]) -> Distance:
        """By how many grid steps the unit moves the sum over all records of owners with these numbers of them."""
        parts = self.distances(sizes)
        return Distance(
            math.fsum(part.l1 for part in parts),
            math.sqrt(math.fsum(part.l2**2 for part in parts)) * (1 + 1e-12),
            max((part.linf for part in parts), default=NOTHING.linf),
        )

    def largest(self, sizes: Sequence[int]) -> float:
        """The L2 norm that no owner's vector exceeds."""
        each = zip(self.blocks, self.scales, strict=True)
        norms = math.fsum(block.reach(scale).absent.l2 ** 2 for block, scale in each)
        return math.sqrt(norms) * max(sizes) * (1 + 1e-12)

    def shares(self, sizes: Sequence[int]) -> tuple[float, ...]:
        """The part of each block in the square of the whole L2 distance: of mu^2, of a Gaussian release."""
        squares = [part.l2**2 for part in self.distances(sizes)]
        return tuple(part / (math.fsum(squares) or 1.0) for part in squares)

    def reached_by(self, owners: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """(dimension,) the coordinates that a record of one of these owners (levels of `Owners`,) can change."""
        return np.concatenate([_reached(block, owners) for block in self.blocks])

    def encode(self, records: RecordFields, owner: Ints | None = None, owners: int = 1) -> Ints:
        """(owners, dimension) the sum of the vectors of each owner's records, exactly. Secret.

        records: what was read of each of `fields`; owner (n,): whose each record is, by default all of one; negative:
        nobody's. Errors: none that depends on a value.
        """
        total = np.zeros((owners, self.dimension), dtype=np.int64)
        whose = np.zeros(records.n, dtype=np.int64) if owner is None else owner
        for begin in range(0, records.n, _AT_ONCE):
            self._add(records.part(begin, begin + _AT_ONCE), whose[begin : begin + _AT_ONCE], total)
        return total

    def _add(self, records: RecordFields, owner: Ints, total: Ints) -> None:
        owners = len(total)
        for k, block in enumerate(self.blocks):
            long = width(block)
            part = total[:, self.offsets[k] : self.offsets[k + 1]]
            for place, steps in block.entries(records, self.scales[k]):
                mine = (place >= 0) & (owner >= 0)
                at = owner[mine] * long + place[mine]
                # doubles add up whole numbers below 2^53 exactly: 2^18 rows of at most 2^21 steps
                part += np.bincount(at, weights=steps[mine], minlength=owners * long).astype(np.int64).reshape(-1, long)


def _reached(block: Block, owners: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """As `Layout.reached_by`, of one block: an owner that its condition leaves out reaches nothing."""
    left = owners.copy()
    for condition in block.where.conditions:
        if isinstance(condition, Among) and isinstance(condition.column, Owners):
            left &= np.isin(np.arange(len(left)), condition.levels)
    found = np.array([left.any()])
    for axis in block.axes:
        found = np.logical_and.outer(found, cells_of_owners(axis, left)).ravel()
    return np.repeat(found, block.inner)
