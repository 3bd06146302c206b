"""A question on its way to an answer."""

import math
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from dpmpc.errors import UsageError
from dpmpc.lazy import dataclass
from dpmpc.outcome import Answer, Level, Line, Number
from dpmpc.statistics.blocks import Block, CellCounts
from dpmpc.statistics.cells import Axis
from dpmpc.statistics.columns import Columns, Owners
from dpmpc.statistics.compile import by_of
from dpmpc.statistics.intervals import Floats
from dpmpc.statistics.opened import Opened
from dpmpc.statistics.question import AskedQuestion
from dpmpc.statistics.scores import ScoreModel


@dataclass(frozen=True, eq=False)
class Asking:
    """One question on its way to an answer. `blocks`: those that answer it, in the order of its parts. `named`:
    whether the release's plan asks it, and not who looked at what came."""

    query: AskedQuestion
    columns: Columns
    opened: Opened
    level: Level
    blocks: Sequence[Block]
    models: Mapping[str, ScoreModel]
    named: bool = True

    @property
    def by(self) -> tuple[Axis, ...]:
        return by_of(self.query, self.columns)

    @property
    def groups(self) -> tuple[tuple[str, ...], ...]:
        """The labels of the groups: one of none, without `by`."""
        return tuple((label,) for label in self.by[0].labels) if self.by else ((),)

    @property
    def by_owner(self) -> bool:
        """Whether its groups are owners."""
        return self.query.by is not None and isinstance(self.columns[self.query.by], Owners)

    def counts(self, axes: Sequence[Axis]) -> tuple[Floats, float]:
        """(cells of these axes in this order, the deviation of the noise in each, which is independent): every opened
        table of the question's condition that has these axes, summed over its others, weighted by inverse variances.

        No number of records that is known is used, which would make errors of cells depend on each other. Errors:
        UsageError where no table has them."""
        total, precision = np.zeros([len(axis.labels) for axis in axes]), 0.0
        exact = None
        for block in self.opened.layout.blocks:
            if not isinstance(block, CellCounts) or block.where != self.query.where or not set(axes) <= set(block.axes):
                continue
            table = self.opened.raw(block).reshape([len(axis.labels) for axis in block.axes])
            rest = tuple(k for k, axis in enumerate(block.axes) if axis not in axes)
            kept = [axis for axis in block.axes if axis in axes]
            table = table.sum(axis=rest).transpose([kept.index(axis) for axis in axes])
            variance = self.opened.deviation(block) ** 2 * math.prod(len(block.axes[k].labels) for k in rest)
            if not variance:
                exact = table
                continue
            total, precision = total + table / variance, precision + 1 / variance
        if exact is not None:
            return exact, 0.0
        if not precision:
            name = self.query.title
            raise UsageError(f"a question needs its table; none was opened for {name}; make a release for it")
        return np.asarray(total / precision), precision**-0.5

    @staticmethod
    def lines(found: Iterable[tuple[tuple[str, ...], str, Number]]) -> tuple[Line, ...]:
        """Lines of labels, names and numbers."""
        return tuple(Line(*each) for each in found)

    def made(self, headers: Sequence[str], lines: Sequence[Line], *notes: str) -> Answer:
        """The answer with these lines."""
        first = () if self.query.by is None else (self.query.by,)
        query = self.query
        return Answer(
            str(query), (*first, *headers), tuple(lines), bool(first), notes, what=query.what, columns=query.columns
        )
