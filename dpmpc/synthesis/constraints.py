"""Combinations of two columns' values that are impossible, as everybody knows: structural zeros."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmpc.errors import UsageError
from dpmpc.lazy import dataclass
from dpmpc.statistics.cells import Axis, Bins
from dpmpc.statistics.columns import MISSING, OTHER, Columns
from dpmpc.statistics.compile import axis_of
from dpmpc.statistics.intervals import Floats
from dpmpc.statistics.query import parse
from dpmpc.statistics.where import Among, Condition
from dpmpc.synthesis.tree import Edge

Cells = NDArray[np.bool_]
_STEPS = 100_000  # of a search for a possible row; one that takes more is left to drawing


@dataclass(frozen=True)
class Constraints:
    """`impossible`: conditions of one or two columns that no record meets."""

    impossible: tuple[tuple[Condition, ...], ...]

    @staticmethod
    def of(lines: Sequence[str], columns: Columns | None) -> "Constraints":
        """The constraints of lines such as `sex = M and relationship = Wife`. `columns`: None where a survey is to find
        them. Errors: UsageError for what is none, is about more than two columns, or cuts a cell of a number in two."""
        if columns is None:
            if lines:
                raise UsageError(
                    "<<constraints>> name public values; a survey is to find these columns; give <<bounds>>",
                    code="together",
                )
            return Constraints(())
        found = []
        for line in lines:
            if not isinstance(line, str):
                raise UsageError(
                    f'a constraint is a line such as "sex = M and relationship = Wife"; got {line!r}; write one'
                )
            where = parse(f"count where {line}", columns).where
            if not 1 <= len(where.conditions) <= 2:
                raise UsageError(f"a constraint is about one or two columns; got {line}; split it, or leave it out")
            for condition in where.conditions:
                _check_range(condition, line)
            found.append(where.conditions)
        made = Constraints(tuple(found))
        made.check(columns)
        return made

    def check(self, columns: Columns) -> None:
        """Errors: UsageError where no choice of a level or a cell of every column is possible."""
        names = list(dict.fromkeys(condition.column.name for each in self.impossible for condition in each))
        axes = {name: axis_of(name, columns) for name in names}
        free = {name: ~beside(axes[name]) & ~self.of_one(name, axes) for name in names}
        tables = {edge: ~self.of_two(edge, axes) for edge in self.edges}
        tables |= {(b, a): table.T for (a, b), table in tables.items()}
        if not _some_choice(free, tables, [_STEPS]):
            last = names[-1]
            told = f"'{last}'" if len(names) == 1 else f"{', '.join(names[:6])} together"
            raise UsageError(
                f"some level of every column must be possible; <<constraints>> leave none of {told}; mend them",
                code="together",
            )

    def of_one(self, name: str, axes: Mapping[str, Axis]) -> Cells:
        """(cells,) which cells of a column are impossible."""
        found = np.zeros(len(axes[name].labels), dtype=bool)
        for conditions in self.impossible:
            if [condition.column.name for condition in conditions] == [name]:
                found |= _cells(conditions[0], axes[name])
        return found

    def of_two(self, edge: Edge, axes: Mapping[str, Axis]) -> Cells:
        """(cells, cells) which cells of a table of two columns are impossible."""
        rows, columns = (self.of_one(name, axes) for name in edge)
        found = rows[:, None] | columns[None, :]
        for conditions in self.impossible:
            each = {condition.column.name: condition for condition in conditions}
            if set(each) == set(edge):
                found |= np.outer(_cells(each[edge[0]], axes[edge[0]]), _cells(each[edge[1]], axes[edge[1]]))
        return found

    @property
    def edges(self) -> tuple[Edge, ...]:
        """The pairs of columns that constraints join."""
        found = [
            tuple(sorted(c.column.name for c in conditions)) for conditions in self.impossible if len(conditions) == 2
        ]
        return tuple(dict.fromkeys(found))  # type: ignore[arg-type]


def beside(axis: Axis) -> Cells:
    """(cells,) which cells of an axis are no level and lie in no bounds: missing, other, below and above."""
    found = np.array([label in (MISSING, OTHER) for label in axis.labels])
    if isinstance(axis, Bins):
        found[[0, -2]] = True
    return found


def _some_choice(free: Mapping[str, Cells], tables: Mapping[Edge, Cells], left: list[int]) -> bool:
    """Whether each column has a cell among `free` such that every two of them are possible by `tables`, which hold a
    pair in both orders. A search with looking ahead; True where it takes more than `left` steps."""
    if not all(cells.any() for cells in free.values()):
        return False
    if not free or left[0] <= 0:
        return True
    name = min(free, key=lambda each: int(free[each].sum()))
    for cell in np.flatnonzero(free[name]):
        left[0] -= 1
        rest = {
            other: cells & tables[name, other][cell] if (name, other) in tables else cells
            for other, cells in free.items()
            if other != name
        }
        if _some_choice(rest, tables, left):
            return True
    return False


def _cells(condition: Condition, axis: Axis) -> Cells:
    """(cells,) the cells of an axis all of whose values meet a condition."""
    found = np.zeros(len(axis.labels), dtype=bool)
    if isinstance(condition, Among):
        found[list(condition.levels)] = True
        return found
    edges = np.array(getattr(axis, "edges"))  # noqa: B009  a number's axis
    inside = (edges[:-1] >= condition.low) & (edges[1:] <= _end(condition.high, edges))
    found[1 : len(edges)] = inside
    # what lies beside the bounds is written as the bound
    found[0], found[len(edges)] = condition.low <= edges[0], condition.high >= edges[-1]
    return found


def _end(high: float, edges: Floats) -> float:
    """Where a range ends among the cells: at an edge, or at the whole number before one where all edges are whole."""
    whole = high + 1 in edges and high not in edges and bool((edges == np.rint(edges)).all())
    return high + 1 if whole else high


def _check_range(condition: Condition, line: str) -> None:
    """Errors: a range that does not consist of whole cells, or of a number whose cells are not public: it could not be
    held."""
    if isinstance(condition, Among):
        return
    edges = np.array(getattr(condition.column, "cuts", ()))
    low, high = condition.low, condition.high
    ends = len(edges) and (low in edges or low <= edges[0]) and (_end(high, edges) in edges or high >= edges[-1])
    if not ends or low >= _end(high, edges):
        known = f"its cells end at {', '.join(f'{edge:g}' for edge in edges[:12])}" if len(edges) else "it has none"
        raise UsageError(
            f"a range in a constraint is made of public cells; got {line}, and of '{condition.column.name}' {known}; "
            "give it <<cuts>> at the ends",
            code="range",
        )


def from_file(value: Any) -> list[str]:
    """The lines of a file of constraints: `impossible = [...]`. Errors: there are none."""
    lines = value.get("impossible") if isinstance(value, dict) else None
    if not isinstance(lines, list) or not lines:
        raise UsageError(
            'constraints are a list, impossible = ["sex = M and relationship = Wife"]; there is none; write it'
        )
    return lines
