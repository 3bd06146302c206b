"""Questions to blocks: what a release holds so that all of them can be answered.

Questions about the same numbers share a block: `mean` and `sd` of a column by the same groups are one, so are the
median and quantiles. A condition on the very column that is averaged narrows its bounds.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from dpmpc.statistics.blocks import Block, Counts, Moments, Part, Products, Tree
from dpmpc.statistics.cells import Axis, Bins, Levels, even, logarithmic, octaves
from dpmpc.statistics.columns import Columns, Quantity
from dpmpc.statistics.evaluation import parts_of_model
from dpmpc.statistics.query import DEFAULT_BINS, Query
from dpmpc.statistics.scores import Model
from dpmpc.statistics.values import Scaled
from dpmpc.statistics.where import Between, Where


def parts_of(query: Query, columns: Columns, models: Mapping[str, Model]) -> tuple[Part, ...]:
    """The blocks that a question needs. models: by the names that questions have for them."""
    by: tuple[Axis, ...] = () if query.by is None else (axis_of(query.by, columns),)
    match query.what:
        case "count":
            return (cells(by, query.where),)
        case "table":
            bins = dict(query.options).get("bins")
            return (cells((*by, *(axis_of(name, columns, bins) for name in query.columns)), query.where),)
        case "hist":
            return (cells((*by, _histogram(query, columns)), query.where),)
        case "mean" | "sd":
            value = scaled(query, columns)
            return (Part("moments", Moments(value, query.what == "sd", by, query.where)),)
        case "median" | "quantiles":
            depth = int(query.option("leaves")).bit_length() - 1
            return (Part("tree", Tree(scaled(query, columns), depth, by, query.where)),)
        case "table1":
            return tuple(part for name in summarised(query, columns) for part in _summary(name, query, columns, by))
        case "evaluate":
            return parts_of_model(query, models[query.columns[0]], by)
        case "km":
            time, event = query.columns
            edges = query.option("cuts") if dict(query.options).get("cuts") else None
            column = _quantity(time, columns)
            axis = Bins(column, edges) if edges else even(column, int(query.option("bins")))
            return (cells((*by, axis_of(event, columns), axis), query.where),)
    values = tuple(Scaled(narrowed(_quantity(name, columns), query.where)) for name in query.columns)
    return (Part("products", Products(values, by, query.where)),)


def cells(axes: Sequence[Axis], where: Where) -> Part:
    """The counts of cells, whose axes are in the order of their names: a table and its turned one are the same."""
    return Part("cells", Counts(tuple(sorted(axes, key=lambda axis: (axis.name, axis.labels))), where))


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


def axis_of(name: str, columns: Columns, bins: Any = None) -> Axis:
    """The axis of a column: its levels, or the cells of a number: `bins` of equal widths, else its public cuts, else
    ten of equal widths."""
    column = columns[name]
    if not isinstance(column, Quantity):
        return Levels(column)
    if bins is None and column.cuts:
        return Bins(column, column.cuts)
    return even(column, int(DEFAULT_BINS if bins is None else bins))


def summarised(query: Query, columns: Columns) -> tuple[str, ...]:
    """The columns of a `table1`: those named, or all but the one to group by."""
    return query.columns or tuple(name for name in columns.names if name != query.by)


def scaled(query: Query, columns: Columns) -> Scaled:
    """The column of a question, within the bounds that it asks for."""
    column = _quantity(query.columns[0], columns)
    if bounds := query.option("range"):
        column = replace(column, low=bounds[0], high=bounds[1])
    return Scaled(narrowed(column, query.where))


def narrowed(column: Quantity, where: Where) -> Quantity:
    """The column within the bounds that a condition on itself leaves, if that leaves a range."""
    for condition in where.conditions:
        if isinstance(condition, Between) and condition.column.name == column.name:
            low, high = max(column.low, condition.low), min(column.high, condition.high)
            if low < high:
                return replace(column, low=low, high=high)
    return column


def _histogram(query: Query, columns: Columns) -> Axis:
    column = _quantity(query.columns[0], columns)
    if cuts := query.option("cuts"):
        return Bins(column, cuts)
    if query.option("cells") == "octaves":
        return octaves(column)
    bins = int(query.option("bins"))
    return logarithmic(column, bins) if query.option("cells") == "log" else even(column, bins)


def _summary(name: str, query: Query, columns: Columns, by: tuple[Axis, ...]) -> tuple[Part, ...]:
    column = columns[name]
    if isinstance(column, Quantity):
        return (Part("moments", Moments(Scaled(narrowed(column, query.where)), True, by, query.where)),)
    return (cells((*by, Levels(column)), query.where),)


def _quantity(name: str, columns: Columns) -> Quantity:
    column = columns[name]
    assert isinstance(column, Quantity)  # the question was checked
    return column
