"""What the two releases of a synthetic table ask: all tables of one and two columns, then those of a tree.

Both are `Tables`, so that owners' vectors, distances and answers are those of statistics. Questions are public: the
second release's follow from what the first has opened.
"""

import math
from collections.abc import Iterable
from itertools import combinations

from dpmpc.errors import UsageError
from dpmpc.statistics.cells import MOST_CELLS
from dpmpc.statistics.columns import Columns, Quantity
from dpmpc.statistics.compile import axis_of
from dpmpc.statistics.tables import Tables
from dpmpc.statistics.where import word

FIRST = 0.25  # the part of mu^2 that the first release takes
TOLD = 3.0  # the weight of a table with the target beside another's
MOMENTS = 0.1  # the weight of a number's mean and deviation beside a table's
Edge = tuple[str, str]


def check_columns(columns: Columns, target: str | None) -> None:
    """Errors: fewer than two columns; a target that is none of them; more cells than a release has."""
    if len(columns.names) < 2:
        raise UsageError(
            f"a synthetic table has at least two columns; got {', '.join(columns.names)}; name more in <<bounds>>",
            code="enough",
        )
    if target is not None:
        columns[target]
    cells = cells_of(columns)
    whole = sum(cells.values())
    total = (whole**2 - sum(size**2 for size in cells.values())) // 2 + whole
    if total > MOST_CELLS:
        widest = max(cells, key=lambda name: cells[name])
        raise UsageError(
            f"all tables of two columns have at most {MOST_CELLS} cells in all; these {len(cells)} columns have "
            f"{total}, '{widest}' alone {cells[widest]} levels; group its levels, or leave it out with <<drop>>",
            code="range",
        )


def cells_of(columns: Columns) -> dict[str, int]:
    """How many cells each column has."""
    return {name: len(axis_of(name, columns).labels) for name in columns.names}


def first(columns: Columns) -> Tables:
    """All tables of one and of two columns."""
    return Tables.of(columns, [*map(table_of, ((name,) for name in columns.names)), *pairs(columns)])


def second(columns: Columns, edges: Iterable[Edge], target: str | None = None) -> Tables:
    """The tables of a tree's edges, of single columns, and means and deviations of numbers; those with the target with
    less noise."""
    moments = [f"{line} weight={MOMENTS}" for line in single(columns) if line.startswith("sd")]
    tables = [table_of(edge) for edge in ((name,) for name in columns.names)]
    pairs = [table_of(edge) + (f" weight={TOLD}" if target in edge else "") for edge in edges]
    return Tables.of(columns, [*tables, *pairs, *moments])


def widest(columns: Columns, target: str | None) -> list[Edge]:
    """The edges of the tree of cliques with most cells: every column joined to the two, A and B, that have most.

    A table has the product of its columns' cells a >= b >= c >= ... No 2-tree has more in all. A column that hangs from
    two others alone, and is neither A nor B, has at most its cells times (a + b), and the rest is a 2-tree with one
    column less. Where there is none, A and B are the only two that hang so, and are not joined: B has at most b (c +
    d), and of the rest, by induction, the star of A and C has most, which together is less than the star of A and B by
    a b + b c - b (c + d) >= 0 at least. A tree that lacks second parents is a part of a 2-tree."""
    cells = cells_of(columns)
    others = [name for name in columns.names if name != target]
    hubs = sorted(others, key=lambda name: -cells[name])[:2]
    star = [(hub, name) for name in others if name not in hubs for hub in hubs]
    joined = [(hubs[0], hubs[1])] if len(hubs) == 2 else []
    return [*joined, *star, *((name, target) for name in others if target is not None)]


def quieter(columns: int, target: bool) -> float:
    """The deviation of the noise in a table of the second release, as a part of that in one of the first, if all tables
    have the same scale: tables T at a part p of mu^2 have a deviation in proportion to sqrt(T / p)."""
    others = columns - target
    tables = columns + max(1, 2 * others - 3) + (others if target else 0)
    return math.sqrt(tables / (1 - FIRST) / (columns * (columns + 1) / 2 / FIRST))


def single(columns: Columns) -> list[str]:
    """Questions about single columns: their tables, and mean and deviation of numbers."""
    numbers = [word(name) for name in columns.names if isinstance(columns[name], Quantity)]
    moments = [f"{what}({name})" for name in numbers for what in ("mean", "sd")]
    return [*(table_of((name,)) for name in columns.names), *moments]


def pairs(columns: Columns) -> list[str]:
    """Questions for all tables of two columns."""
    return [table_of(pair) for pair in combinations(columns.names, 2)]


def table_of(names: Iterable[str]) -> str:
    """The question for the table of some columns."""
    return f"table({', '.join(map(word, names))})"
