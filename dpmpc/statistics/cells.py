"""Axes of tables: how a record falls into one of the cells of a column, whatever its value is.

Every axis is total and public: values below, above, missing or without a level have cells of their own.
"""

import math
from collections.abc import Mapping
from dataclasses import field
from itertools import pairwise
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from dpmpc.errors import UsageError
from dpmpc.lazy import dataclass
from dpmpc.outcome import spelled
from dpmpc.statistics.columns import MISSING, OTHER, Grouped, Owners, Quantity

Ints = NDArray[np.int64]
Values = NDArray[Any]
MOST_CELLS = 1 << 20


class Field(Protocol):
    """What is read of a record: expressions, and the array that their values make. Hashable."""

    @property
    def name(self) -> str: ...
    def sql(self, table: Any) -> list[str]: ...
    def read(self, parts: list[Values]) -> Values: ...


@dataclass(frozen=True, eq=False)
class RecordFields:
    """What was read of n records: an array for each field."""

    n: int
    values: Mapping[Field, Values]
    places: dict["Axis", Ints] = field(default_factory=dict, repr=False)  # of axes that were asked for

    def place(self, axis: "Axis") -> Ints:
        """(n,) the cells of an axis; many tables share it, and it is worked out once."""
        if axis not in self.places:
            self.places[axis] = axis.place(self)
        return self.places[axis]

    def __getitem__(self, field: Field) -> Values:
        return self.values[field]

    def part(self, begin: int, end: int) -> "RecordFields":
        """The records begin ... end - 1."""
        rows = slice(begin, end)
        return RecordFields(min(end, self.n) - begin, {field: array[rows] for field, array in self.values.items()})


class Axis(Protocol):
    """One way to tell records apart. Hashable; equal ones have the same cells."""

    @property
    def name(self) -> str: ...
    @property
    def labels(self) -> tuple[str, ...]: ...
    @property
    def fields(self) -> tuple[Field, ...]: ...
    def place(self, records: RecordFields) -> Ints: ...


@runtime_checkable
class OfOwners(Protocol):
    """An axis whose cells may be of single owners."""

    def of_owners(self, owners: NDArray[np.bool_]) -> NDArray[np.bool_]: ...


def cells_of_owners(axis: Axis, owners: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """(cells,) those that a record of one of these owners (levels of `Owners`,) can be in."""
    if isinstance(axis, OfOwners):
        return axis.of_owners(owners)
    assert not any(isinstance(field, Owners) for field in axis.fields), axis.name
    return np.ones(len(axis.labels), dtype=bool)


@dataclass(frozen=True)
class Levels:
    """The cells of a category: its levels, '(other)' where other values have no level, and '(missing)'. Of owners:
    one each."""

    column: Grouped

    @property
    def name(self) -> str:
        return self.column.name

    @property
    def labels(self) -> tuple[str, ...]:
        if isinstance(self.column, Owners):
            return self.column.levels
        return (*self.column.levels, *((OTHER,) if self.column.others is None else ()), MISSING)

    @property
    def fields(self) -> tuple[Field, ...]:
        return (self.column,)

    def of_owners(self, owners: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """As `cells_of_owners`."""
        return owners if isinstance(self.column, Owners) else np.ones(len(self.labels), dtype=bool)

    def place(self, records: RecordFields) -> Ints:
        """(n,) cells."""
        codes, last = records[self.column], len(self.labels) - 1
        return np.where(codes >= 0, codes, np.where(codes == -1, last, last - 1))


@dataclass(frozen=True)
class Bins:
    """The cells of a number: below the first edge, [edge, next edge) with the last one closed, above, missing."""

    column: Quantity
    edges: tuple[float, ...]

    def __post_init__(self) -> None:
        if len(self.edges) < 2 or not all(a < b for a, b in pairwise(self.edges)):
            raise UsageError(
                f"cuts are at least two numbers that increase; '{self.name}' has {list(self.edges)[:8]}; sort them",
                code="range",
            )

    @property
    def name(self) -> str:
        return self.column.name

    @property
    def labels(self) -> tuple[str, ...]:
        e = [spelled(edge) for edge in self.edges]
        inner = [f"[{a}, {b})" for a, b in pairwise(e[:-1])]
        return (f"< {e[0]}", *inner, f"[{e[-2]}, {e[-1]}]", f"> {e[-1]}", MISSING)

    @property
    def fields(self) -> tuple[Field, ...]:
        return (self.column,)

    def place(self, records: RecordFields) -> Ints:
        """(n,) cells."""
        values, edges = records[self.column], np.array(self.edges)
        cell = np.searchsorted(edges, values, side="right")
        cell = np.where(values == edges[-1], len(edges) - 1, cell)
        return np.where(np.isnan(values), len(edges) + 1, cell).astype(np.int64)


def even(column: Quantity, bins: int) -> Bins:
    """Cells of equal widths between the column's bounds. Errors: no numbers lie between them that doubles have."""
    _check_bins(column, bins)
    with np.errstate(over="ignore", invalid="ignore"):
        edges = np.linspace(column.low, column.high, bins + 1)
    return Bins(column, tuple(_round(e) for e in edges))


_MOST_BINS = 1 << 16


def _check_bins(column: Quantity, bins: int) -> None:
    if bins > _MOST_BINS:
        raise UsageError(f"a number has up to {_MOST_BINS} cells; '{column.name}' is to have {bins}; ask for fewer")


def octaves(column: Quantity, finest: float | None = None) -> Bins:
    """Cells whose ends double, on either side of a cell about zero: for tails that are heavy. `finest`: the end of the
    cell about zero, by default the power of two next below 2^-16 of the widest end."""
    widest = max(abs(column.low), abs(column.high))
    first = math.floor(math.log2(widest * 2.0**-16 if finest is None else finest))
    last = math.ceil(math.log2(widest))
    ends = [math.ldexp(1.0, k) for k in range(first, last + 1)]
    down = [-e for e in reversed(ends)] if column.low < 0 else [0.0]
    return Bins(column, tuple(e for e in (*down, *ends) if column.low / 2 <= 0 or e >= column.low / 2))


def logarithmic(column: Quantity, bins: int) -> Bins:
    """Cells of equal ratios between the column's bounds. Errors: they are not positive."""
    if not column.low > 0:
        raise UsageError(
            f"logarithmic cells need a positive lower bound; '{column.name}' has {column.low:g}; use cells=octaves",
            code="range",
        )
    _check_bins(column, bins)
    return Bins(column, tuple(_round(e) for e in np.geomspace(column.low, column.high, bins + 1)))


def _round(value: float) -> float:
    """12 digits: the same on every machine."""
    return float(f"{value:.12g}")
