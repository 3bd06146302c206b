"""Joint cells of an outcome and coded covariates: one table that answers a model, crude and adjusted, by any reference.

A covariate has levels: a category its own; a number its bands. `Complete` is the axis of all combinations of some
columns' levels, and of one cell more for every record that lacks one of them: a total map, so a record is in one cell
and the distance is that of any table, the root of 2. Models that are asked together and whose combinations are no more
together than apart share one axis, and are then of the same records.
"""

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dpmpc.errors import UsageError
from dpmpc.lazy import cached_property, dataclass
from dpmpc.statistics.asking import Asking
from dpmpc.statistics.blocks import Block, CellCounts, Part
from dpmpc.statistics.cells import Axis, Bins, Field, Ints, Levels, RecordFields, cells_of_owners, even
from dpmpc.statistics.columns import Columns, Quantity
from dpmpc.statistics.intervals import Floats
from dpmpc.statistics.where import Where

INCOMPLETE = "(incomplete)"
BANDS = 4
MOST_JOINT = 1 << 14


@dataclass(frozen=True)
class Coded:
    """A column in levels. `axis`: its cells in a table; `kept`: the level of each of them, -1 for none; `labels`:
    of the levels."""

    axis: Levels | Bins
    kept: tuple[int, ...]
    labels: tuple[str, ...]

    @property
    def name(self) -> str:
        return self.axis.name

    @staticmethod
    def of(name: str, columns: Columns, cuts: tuple[float, ...] | None = None) -> "Coded":
        """A category's levels; a number's bands between `cuts`, or its public cuts, or four of equal widths, where
        what is beyond its bounds counts as the ends."""
        column = columns[name]
        if not isinstance(column, Quantity):
            many = len(column.levels)
            axis = Levels(column)
            return Coded(axis, tuple(k if k < many else -1 for k in range(len(axis.labels))), column.levels)
        if edges := cuts or column.cuts:
            bins = Bins(column, edges)
            many = len(bins.labels) - 1
            return Coded(bins, (*range(many), -1), bins.labels[:-1])
        bins = even(column, BANDS)
        inner = len(bins.labels) - 3
        return Coded(bins, (0, *range(inner), inner - 1, -1), bins.labels[1:-2])

    def level(self, records: RecordFields) -> Ints:
        """(n,) levels, -1 where there is none."""
        return np.array(self.kept, dtype=np.int64)[records.place(self.axis)]


@dataclass(frozen=True)
class Complete:
    """The axis of all combinations of levels of some columns, the last running fastest, then of incomplete records."""

    columns: tuple[Coded, ...]

    @property
    def name(self) -> str:
        return " x ".join(column.name for column in self.columns)

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(len(column.labels) for column in self.columns)

    @cached_property
    def labels(self) -> tuple[str, ...]:
        each = (
            " / ".join(column.labels[k] for column, k in zip(self.columns, place, strict=True))
            for place in np.ndindex(self.shape)
        )
        return (*each, INCOMPLETE)

    @property
    def fields(self) -> tuple[Field, ...]:
        return tuple(field for column in self.columns for field in column.axis.fields)

    def of_owners(self, owners: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """As `cells_of_owners`; incomplete records are of all owners together."""
        found = np.ones(1, dtype=bool)
        for column in self.columns:
            levels = np.zeros(len(column.labels), dtype=bool)
            reached = cells_of_owners(column.axis, owners)
            levels[[level for level, cell in zip(column.kept, reached, strict=True) if cell and level >= 0]] = True
            found = np.logical_and.outer(found, levels).ravel()
        return np.append(found, owners.any())

    def place(self, records: RecordFields) -> Ints:
        """(n,) cells."""
        found, gone = np.zeros(records.n, dtype=np.int64), np.zeros(records.n, dtype=bool)
        for column in self.columns:
            level = column.level(records)
            found, gone = found * len(column.labels) + level, gone | (level < 0)
        return np.where(gone, math.prod(self.shape), found)


def complete(columns: Sequence[Coded]) -> Complete:
    """The axis of these columns, in the order of their names."""
    found = Complete(tuple(sorted(dict.fromkeys(columns), key=lambda column: (column.name, column.labels))))
    if math.prod(found.shape) > MOST_JOINT:
        raise UsageError(
            f"a model's outcome and covariates have at most {MOST_JOINT} combinations; {found.name} have "
            f"{math.prod(found.shape)}; ask for wider bands or fewer covariates"
        )
    return found


def joint(by: tuple[Axis, ...], columns: Sequence[Coded], where: Where) -> Part:
    """The joint cells of these columns, in each group."""
    return Part("joint", CellCounts((*by, complete(columns)), where))


def merged_joint(parts: Sequence[Part]) -> dict[Part, Part]:
    """The part that answers for each of joint cells: of parts with one condition, one group and one of their columns in
    common, those whose union has no more cells than both are one, until none is left to join."""
    whole = {part: part for part in parts}
    kept = list(dict.fromkeys(parts))
    again = True
    while again:
        again = False
        for i, one in enumerate(kept):
            for other in kept[i + 1 :]:
                union = _union(one, other)
                if union is None:
                    continue
                kept = [part for part in kept if part not in (one, other)]
                kept = [*kept[:i], union, *kept[i:]] if union not in kept else kept
                whole = {part: union if now in (one, other) else now for part, now in whole.items()}
                again = True
                break
            if again:
                break
    return whole


def _union(one: Part, other: Part) -> Part | None:
    (*by, first), (*with_by, second) = one.block.axes, other.block.axes
    if one.block.where != other.block.where or by != with_by:
        return None
    assert isinstance(first, Complete) and isinstance(second, Complete)
    both = {column.name: column for column in (*first.columns, *second.columns)}
    alike = all(both[column.name] == column for column in (*first.columns, *second.columns))
    if not alike or not {c.name for c in first.columns} & {c.name for c in second.columns}:
        return None
    size = math.prod(len(column.labels) for column in both.values())
    if size > math.prod(first.shape) + math.prod(second.shape):
        return None
    return joint(tuple(by), tuple(both.values()), one.block.where)


def held(block: Block, opened: Sequence[Block]) -> bool:
    """Whether opened blocks answer for joint cells: a table of the same columns or more, joint or by cells."""
    *by, axis = block.axes
    assert isinstance(axis, Complete)
    return any(_axes_of(other, tuple(by), axis) is not None for other in opened if other.where == block.where)


def _axes_of(block: Block, by: tuple[Axis, ...], axis: Complete) -> tuple[Axis, ...] | None:
    """The axes of an opened table that has what is needed, or None."""
    if not isinstance(block, CellCounts) or not set(by) <= set(block.axes):
        return None
    for own in block.axes:
        if isinstance(own, Complete) and set(axis.columns) <= set(own.columns) and set(block.axes) == {*by, own}:
            return block.axes
    return block.axes if {column.axis for column in axis.columns} <= set(block.axes) else None


def counts(asking: Asking, columns: Sequence[Coded]) -> tuple[Floats, Floats, float, Floats]:
    """(groups, levels of each column in this order) noisy counts of complete records; (groups,) of incomplete ones, NaN
    where that is not known; the variance of the noise in each cell; and the variance of an incomplete count (groups,).

    The table that tells most of those that were opened. Joint cells are preferred: they are of the same records."""
    axis = complete(columns)
    found: tuple[float, Floats, Floats, float, float] | None = None
    for block in asking.opened.layout.blocks:
        if block.where != asking.query.where or _axes_of(block, asking.by, axis) is None:
            continue
        deviation = asking.opened.deviation(block)
        raw = asking.opened.raw(block).reshape([len(a.labels) for a in block.axes])
        groups = len(asking.groups)
        own = next((a for a in block.axes if isinstance(a, Complete)), None)
        if own is not None:
            flat = raw.reshape(groups, -1)
            missing, cells = flat[:, -1], flat[:, :-1].reshape(groups, *own.shape)
            names = [column.name for column in own.columns]
            rest = tuple(1 + k for k, column in enumerate(own.columns) if column not in columns)
            cells = cells.sum(axis=rest)
            names = [name for name in names if name in {column.name for column in columns}]
            cells = cells.transpose(0, *(1 + names.index(column.name) for column in columns))
            many = math.prod(own.shape) / math.prod(len(column.labels) for column in columns)
            variance, alone, order = deviation**2 * many, deviation**2, 0.0
        else:
            wanted = [*asking.by, *(column.axis for column in columns)]
            rest = tuple(k for k, a in enumerate(block.axes) if a not in wanted)
            kept = [a for a in block.axes if a in wanted]
            table = raw.sum(axis=rest).transpose([kept.index(a) for a in wanted])
            table = table.reshape(groups, *(len(column.axis.labels) for column in columns))
            many = math.prod(len(block.axes[k].labels) for k in rest)
            variance, cells = deviation**2 * many, table
            whole = table.reshape(groups, -1).sum(axis=1)
            for k, column in enumerate(columns):
                cells = _grouped(cells, 1 + k, column)
                variance *= max(column.kept.count(level) for level in range(len(column.labels)))
            missing = whole - cells.reshape(groups, -1).sum(axis=1)
            dropped = math.prod(table.shape[1:]) - math.prod(sum(k >= 0 for k in column.kept) for column in columns)
            alone, order = deviation**2 * many * dropped, 1.0
        if found is None or (order, variance) < (found[4], found[3]):
            found = (alone, cells, missing, variance, order)
    if found is None:
        name = asking.query.title
        raise UsageError(f"a model needs its joint cells; none were opened for {name}; make a release for it")
    alone, cells, missing, variance, _ = found
    return np.asarray(cells), np.asarray(missing), variance, np.full(len(cells), alone)


def _grouped(table: Floats, axis: int, column: Coded) -> Floats:
    """The table with the cells of an axis summed into levels; those of no level left out."""
    back = np.moveaxis(table, axis, 0)
    made = np.zeros((len(column.labels), *back.shape[1:]))
    for cell, level in enumerate(column.kept):
        if level >= 0:
            made[level] += back[cell]
    return np.moveaxis(made, 0, axis)


def collected(parts: Sequence[Part]) -> dict[Part, Part]:
    """As `merged_joint`, of the joint parts among all."""
    return merged_joint([part for part in parts if part.role == "joint"])
