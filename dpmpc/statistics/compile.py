"""What blocks of questions are made of: axes of columns, tables of cells, numbers within their bounds.

Questions about the same numbers share a block: `mean` and `sd` of a column by the same groups are one, so are the
median and quantiles. A condition on the very column that is averaged narrows its bounds.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from dpmpc.statistics.blocks import Block, CellCounts, Moments, Part
from dpmpc.statistics.cells import Axis, Bins, Levels, even
from dpmpc.statistics.columns import Columns, Quantity
from dpmpc.statistics.question import AskedQuestion, Setting
from dpmpc.statistics.values import Scaled
from dpmpc.statistics.where import Between, Where

DEFAULT_BINS = 10.0


def cells(axes: Sequence[Axis], where: Where) -> Part:
    """The counts of cells, whose axes are in the order of their names: a table and its turned one are the same."""
    return Part("cells", CellCounts(tuple(sorted(axes, key=lambda axis: (axis.name, axis.labels))), where))


def merged(parts: Sequence[Part], opened: Sequence[Block] = ()) -> dict[Part, Part]:
    """The part that answers for each: moments with squares, asked or opened already, answer for those without."""
    whole = {*(part.block for part in parts), *opened}
    found = {}
    for part in parts:
        block = part.block
        if isinstance(block, Moments) and not block.second and (fuller := replace(block, second=True)) in whole:
            found[part] = Part(part.role, fuller)
        else:
            found[part] = part
    return found


def by_of(query: AskedQuestion, columns: Columns) -> tuple[Axis, ...]:
    """The axis of a question's groups, if it has them."""
    return () if query.by is None else (axis_of(query.by, columns),)


def axis_of(name: str, columns: Columns, bins: Any = None) -> Axis:
    """The axis of a column: its levels, or the cells of a number: `bins` of equal widths, else its public cuts, else
    ten of equal widths."""
    column = columns[name]
    if not isinstance(column, Quantity):
        return Levels(column)
    if bins is None and column.cuts:
        return Bins(column, column.cuts)
    return even(column, int(DEFAULT_BINS if bins is None else bins))


def scaled(name: str, columns: Columns, where: Where, bounds: Setting | None = None) -> Scaled:
    """A column of numbers, within `bounds` if there are some, and within what a condition on it leaves."""
    column = quantity(name, columns)
    if isinstance(bounds, tuple):
        column = replace(column, low=bounds[0], high=bounds[1])
    return Scaled(narrowed(column, where))


def narrowed(column: Quantity, where: Where) -> Quantity:
    """The column within the bounds that a condition on itself leaves, if that leaves a range."""
    for condition in where.conditions:
        if isinstance(condition, Between) and condition.column.name == column.name:
            low, high = max(column.low, condition.low), min(column.high, condition.high)
            if low < high:
                return replace(column, low=low, high=high)
    return column


def quantity(name: str, columns: Columns) -> Quantity:
    """The column of numbers of this name; the question was checked."""
    column = columns[name]
    assert isinstance(column, Quantity)
    return column
