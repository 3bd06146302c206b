"""The noisy tables that a model is fitted to: made possible, one by one, from what was opened."""

import math
from collections.abc import Sequence
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from dpmpc.errors import UsageError
from dpmpc.lazy import cached_property
from dpmpc.statistics.cells import Axis
from dpmpc.statistics.columns import Columns
from dpmpc.statistics.compile import axis_of
from dpmpc.statistics.intervals import Floats
from dpmpc.statistics.opened import Consistent, Opened, Weights, unit_weights
from dpmpc.statistics.where import ALL
from dpmpc.synthesis.constraints import Constraints, beside
from dpmpc.synthesis.model import on_simplex
from dpmpc.synthesis.tree import Edge, dependence, shrunk

_SURE = 4.0  # deviations of the noise that records beside a column's cells must exceed to be drawn


class Noisy:
    """Tables of one and two columns, by least squares over all that was opened, public. `zeros`: impossible cells."""

    def __init__(self, columns: Columns, opened: Opened, zeros: Constraints | None = None) -> None:
        self.columns, self.opened, self.zeros = columns, opened, zeros or Constraints(())
        self.axes: dict[str, Axis] = {name: axis_of(name, columns) for name in columns.names}

    @cached_property
    def n(self) -> float:
        """The number of records; where it is private, as all tables together tell it, one at least."""
        known = self.opened.known
        return max(1.0, float(self._tables.value([]))) if known is None else known

    @cached_property
    def _tables(self) -> Consistent:
        return self.opened.tables[ALL]

    def raw(self, names: Sequence[str]) -> Floats:
        """The counts as least squares have them, with negative ones."""
        return self._tables.value([self.axes[name] for name in names])

    def deviation(self, names: Sequence[str]) -> float:
        """Of the noise in a cell of such a table, in records."""
        axes = [self.axes[name] for name in names]
        first: Weights = {axis: unit_weights(axis, 0) for axis in axes}
        return float(max(self._tables.covariance(axes, first, first), 0.0) ** 0.5)

    def one(self, name: str) -> Floats:
        """(cells,) of a column, at least 0, the number of records in all. Cells beside its levels and bounds (missing,
        other, below, above) are 0 unless they stand out of the noise."""
        values, possible = self.raw([name]), self.possible(name)
        found = np.zeros(len(values))
        found[possible] = on_simplex(values[possible], self.n)
        return found

    def possible(self, name: str) -> NDArray[np.bool_]:
        """(cells,) those of a column that a row may have. Errors: UsageError where none is left."""
        least = _SURE * self.deviation([name])
        faint = beside(self.axes[name]) & (self.raw([name]) < least)
        found = np.asarray(~faint & ~self.zeros.of_one(name, self.axes))
        if not found.any():
            raise UsageError(
                f"some level of a column must be possible; <<constraints>> leave none of '{name}'; mend them"
            )
        return found

    def apart(self, edge: Edge) -> float:
        """The deviation a cell of the noise in what a table of two columns has beside its margins: centred along both
        axes, noise of deviation d a cell has d^2 (1 - 1/rows) (1 - 1/columns) in each."""
        axes = [self.axes[name] for name in edge]
        centred: Weights = {axis: unit_weights(axis, 0) - 1 / len(axis.labels) for axis in axes}
        left = math.prod(1 - 1 / len(axis.labels) for axis in axes)
        return math.sqrt(max(self._tables.covariance(axes, centred, centred), 0.0) / left) if left else 0.0

    def two(self, edge: Edge) -> Floats:
        """The table of two columns as far as it stands out of the noise (`tree.shrunk`), at least 0, the number of
        records in all; 0 where constraints say so, and beside what either column may have."""
        found = np.zeros([len(self.axes[name].labels) for name in edge])
        inside = self._inside(edge)
        values = found[inside]
        possible = ~self.zeros.of_two(edge, self.axes)[inside]
        values[possible] = on_simplex(shrunk(self.raw(edge)[inside], self.apart(edge))[possible], self.n)
        found[inside] = values
        return found

    def dependence(self) -> dict[Edge, float]:
        """How much every two columns depend on each other, as far as it stands out of the noise."""
        each = combinations(self.columns.names, 2)
        return {edge: dependence(self.raw(edge)[self._inside(edge)], self.apart(edge)) for edge in each}

    def size(self, name: str) -> int:
        """How many cells of a column a row may have."""
        return int(self._possible[name].sum())

    @cached_property
    def _possible(self) -> dict[str, NDArray[np.bool_]]:
        return {name: self.possible(name) for name in self.columns.names}

    def _inside(self, edge: Edge) -> tuple[NDArray[np.int64], ...]:
        """The cells of a table whose row and column are possible."""
        return np.ix_(*(np.flatnonzero(self._possible[name]) for name in edge))
