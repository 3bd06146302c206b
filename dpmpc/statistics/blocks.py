"""Blocks: total maps of a record to a short vector of whole numbers, and how far two records' vectors lie apart.

A block has `axes`, which say which of its groups a record is in, and in every group a few coordinates. A record that
`where` excludes, that misses what the block needs, or that is absent, is the zero vector. With s its scale in whole
grid steps:

- `CellCounts`: s in the cell of the record.
- `Moments` of t in [-1, 1]: (s, s t), or with the second moment (0.8 s, s t, 0.6 s T2(t)), T2(t) = 2 t^2 - 1.
- `Tree`: s in the node of each level that the record's leaf lies under, the root among them.
- `Products` of z = (1, t_1 / sqrt(q), ..., t_q / sqrt(q)) / sqrt(2): s svec(z z'), its diagonal and sqrt 2 times what
  is above it.

What is not whole is rounded record by record, so the sum over records is exact and does not depend on their order.

Guarantees: `reach` bounds, for one record replaced by any other and for one made absent, the L1, L2 and Linf distance
of the vectors; docs/statistics.md proves each line, and tests search for pairs that come as near as that.
"""

import math
from collections.abc import Iterator
from typing import Protocol

import numpy as np

from dpmpc.lazy import dataclass
from dpmpc.statistics.cells import Axis, Field, Ints, RecordFields, Values
from dpmpc.statistics.where import ALL, Where

COUNT, SECOND = 0.8, 0.6  # weights of the count and of T2: 0.8^2 + 0.6^2 = 1
_UP = 1 + 1e-12  # bounds are rounded up


@dataclass(frozen=True)
class Distance:
    """A bound on how far two vectors lie apart, in three norms."""

    l1: float
    l2: float
    linf: float

    def __mul__(self, factor: float) -> "Distance":
        return Distance(self.l1 * factor, self.l2 * factor, self.linf * factor)

    def __or__(self, other: "Distance") -> "Distance":
        """The larger of both in every norm."""
        return Distance(max(self.l1, other.l1), max(self.l2, other.l2), max(self.linf, other.linf))


NOTHING = Distance(0.0, 0.0, 0.0)


@dataclass(frozen=True)
class Reach:
    """How far apart the vectors of two records are at most, and how far one is from the zero vector."""

    replaced: Distance
    absent: Distance


class Value(Protocol):
    """A number in [-1, 1] of every record, NaN where there is none. Hashable."""

    @property
    def name(self) -> str: ...
    @property
    def fields(self) -> tuple[Field, ...]: ...
    def of(self, records: RecordFields) -> Values: ...


class Block(Protocol):
    """A total map of records to vectors. Hashable; equal blocks are the same question."""

    @property
    def axes(self) -> tuple[Axis, ...]: ...
    @property
    def where(self) -> Where: ...
    @property
    def inner(self) -> int: ...
    @property
    def worth(self) -> float: ...
    @property
    def fields(self) -> tuple[Field, ...]: ...
    def reach(self, scale: int) -> Reach: ...
    def entries(self, records: RecordFields, scale: int) -> Iterator[tuple[Ints, Ints]]: ...


@dataclass(frozen=True)
class CellCounts:
    """How many records there are in each cell."""

    axes: tuple[Axis, ...]
    where: Where = ALL

    inner = 1

    @property
    def worth(self) -> float:
        """How many answers it gives: its part in the scales."""
        return groups(self)

    @property
    def fields(self) -> tuple[Field, ...]:
        return fields_of(self)

    def reach(self, scale: int) -> Reach:
        """Two different cells, one of either record, or one cell and none."""
        s = float(scale)
        one = Distance(s, s, s)
        two = Distance(2 * s, math.sqrt(2) * s * _UP, s)
        return Reach(two if groups(self) > 1 else one if self.where else NOTHING, one)

    def entries(self, records: RecordFields, scale: int) -> Iterator[tuple[Ints, Ints]]:
        """Pairs of (n,) coordinates, -1 for the zero vector, and what is added there."""
        group = group_of(self, records)
        yield group, np.full(len(group), scale, dtype=np.int64)


@dataclass(frozen=True)
class Moments:
    """The count, sum and, if `second`, sum of squares of a number, in each group."""

    value: Value
    second: bool
    axes: tuple[Axis, ...] = ()
    where: Where = ALL

    @property
    def inner(self) -> int:
        return 3 if self.second else 2

    @property
    def worth(self) -> float:
        """How many answers it gives: its part in the scales."""
        return self.inner * groups(self)

    @property
    def fields(self) -> tuple[Field, ...]:
        return (*fields_of(self), *self.value.fields)

    def count_steps(self, scale: int) -> int:
        """What a record adds to the count."""
        return math.floor(COUNT * scale) if self.second else scale

    def reach(self, scale: int) -> Reach:
        """2 s for a pair, whether in one group (at t = 1 and -1) or in two; sqrt 2 s from zero; sqrt 2 more steps where
        two coordinates are rounded."""
        s = float(scale)
        if not self.second:
            far = Distance(4 * s if groups(self) > 1 else 2 * s, 2 * s, 2 * s)
            return Reach(far, Distance(2 * s, math.sqrt(2) * s * _UP, s))
        zero = Distance((COUNT + 1 + SECOND) * s + 1, (math.sqrt(2) * s + math.sqrt(0.5)) * _UP, s)
        steepest = (1 + 4 * SECOND) ** 2 / (8 * SECOND)  # the largest u + 2 C u (2 - u)
        inside = Distance(steepest * s + 2, (2 * s + math.sqrt(2)) * _UP, 2 * s)
        across = inside | zero * 2 if groups(self) > 1 else inside
        return Reach(Distance(across.l1, inside.l2, inside.linf) | zero, zero)

    def entries(self, records: RecordFields, scale: int) -> Iterator[tuple[Ints, Ints]]:
        """Pairs of (n,) coordinates, -1 for the zero vector, and what is added there."""
        t = self.value.of(records)
        gone = np.isnan(t)
        t = np.where(gone, 0.0, t)
        group = np.where(gone, -1, group_of(self, records))
        first = np.where(group < 0, -1, group * self.inner)
        yield first, np.full(len(t), self.count_steps(scale), dtype=np.int64)
        yield _next(first, 1), np.rint(scale * t).astype(np.int64)
        if self.second:
            yield _next(first, 2), np.rint(SECOND * scale * (2 * t * t - 1)).astype(np.int64)


@dataclass(frozen=True)
class Tree:
    """The counts of all nodes of a binary tree over 2^depth leaves of equal widths, in each group; the root first."""

    value: Value
    depth: int
    axes: tuple[Axis, ...] = ()
    where: Where = ALL

    @property
    def inner(self) -> int:
        return (2 << self.depth) - 1

    @property
    def worth(self) -> float:
        """How many answers it gives: its part in the scales. A quantile looks at one node a level."""
        return (self.depth + 1) * groups(self)

    @property
    def fields(self) -> tuple[Field, ...]:
        return (*fields_of(self), *self.value.fields)

    def reach(self, scale: int) -> Reach:
        """Two paths that part at the root, or in two groups; one path from zero."""
        s, levels = float(scale), self.depth + 1
        apart = levels if groups(self) > 1 else self.depth
        zero = Distance(levels * s, math.sqrt(levels) * s * _UP, s)
        return Reach(Distance(2 * apart * s, math.sqrt(2 * apart) * s * _UP, s) | zero, zero)

    def leaf(self, t: Values) -> Ints:
        """(n,) the leaf of each number in [-1, 1]."""
        leaves = 1 << self.depth
        return np.minimum(np.floor((t + 1) / 2 * leaves).astype(np.int64), leaves - 1)

    def entries(self, records: RecordFields, scale: int) -> Iterator[tuple[Ints, Ints]]:
        """Pairs of (n,) coordinates, -1 for the zero vector, and what is added there."""
        t = self.value.of(records)
        gone = np.isnan(t)
        leaf = self.leaf(np.where(gone, 0.0, t))
        group = np.where(gone, -1, group_of(self, records))
        steps = np.full(len(t), scale, dtype=np.int64)
        for level in range(self.depth + 1):
            node = (1 << level) - 1 + (leaf >> (self.depth - level))
            yield np.where(group < 0, -1, group * self.inner + node), steps


@dataclass(frozen=True)
class Products:
    """All products of a few numbers and 1, over the records that have all of them, in each group."""

    values: tuple[Value, ...]
    axes: tuple[Axis, ...] = ()
    where: Where = ALL

    @property
    def inner(self) -> int:
        q = len(self.values) + 1
        return q * (q + 1) // 2

    @property
    def worth(self) -> float:
        """How many answers it gives: its part in the scales."""
        return self.inner * groups(self)

    @property
    def fields(self) -> tuple[Field, ...]:
        return (*fields_of(self), *(field for value in self.values for field in value.fields))

    def reach(self, scale: int) -> Reach:
        """|svec(z z')| = |z|^2 <= 1, and sqrt 2 where z and z~ are at right angles; half a step a coordinate."""
        s, q, k = float(scale), len(self.values), self.inner
        norm1 = ((1 + math.sqrt(q)) ** 2 / 2 - 1) / math.sqrt(2) + 1  # of svec at a corner
        mixed = s / math.sqrt(2 * q) + 0.5  # the largest entry of both signs, sqrt 2 z_0 z_i
        zero = Distance(norm1 * s + k / 2, (s + math.sqrt(k) / 2) * _UP, max(s / 2 + 0.5, mixed))
        far = Distance(2 * zero.l1, (math.sqrt(2) * s + math.sqrt(k)) * _UP, max(zero.linf, 2 * mixed))
        return Reach(far, zero)

    def entries(self, records: RecordFields, scale: int) -> Iterator[tuple[Ints, Ints]]:
        """Pairs of (n,) coordinates, -1 for the zero vector, and what is added there."""
        t = [value.of(records) for value in self.values]
        gone = np.isnan(np.sum(t, axis=0))
        q = len(t)
        z = [np.full(len(gone), math.sqrt(0.5)), *(np.where(gone, 0.0, part) / math.sqrt(2 * q) for part in t)]
        first = np.where(gone, -1, group_of(self, records))
        first = np.where(first < 0, -1, first * self.inner)
        for k, (i, j) in enumerate(pairs(q + 1)):
            factor = scale * (1.0 if i == j else math.sqrt(2))
            yield _next(first, k), np.rint(factor * (z[i] * z[j])).astype(np.int64)


@dataclass(frozen=True)
class Part:
    """A block and what a question needs it for: "cells", "moments", "tree", "products" or "scores"."""

    role: str
    block: Block


def pairs(q: int) -> list[tuple[int, int]]:
    """(i, j), i <= j < q, in the order of the coordinates of svec."""
    return [(i, j) for i in range(q) for j in range(i, q)]


def groups(block: Block) -> int:
    """How many groups, or cells, the axes make."""
    return math.prod(len(axis.labels) for axis in block.axes)


def width(block: Block) -> int:
    """The length of the block's vector."""
    return groups(block) * block.inner


def fields_of(block: Block) -> tuple[Field, ...]:
    """What axes and conditions need of a record."""
    return (*block.where.fields, *(field for axis in block.axes for field in axis.fields))


def group_of(block: Block, records: RecordFields) -> Ints:
    """(n,) the group of each record, the last axis running fastest; -1 where `where` does not hold."""
    group = np.zeros(records.n, dtype=np.int64)
    for axis in block.axes:
        group = group * len(axis.labels) + records.place(axis)
    return np.where(block.where.holds(records), group, -1)


def _next(first: Ints, k: int) -> Ints:
    return np.where(first < 0, -1, first + k)
