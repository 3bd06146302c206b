"""How far a question will be off, from public numbers, before anything is spent."""

from collections.abc import Callable, Sequence

import numpy as np

from dpmpc.lazy import dataclass
from dpmpc.outcome import Level
from dpmpc.statistics.blocks import Block, CellCounts, Moments, Tree, groups
from dpmpc.statistics.columns import Columns
from dpmpc.statistics.opened import Opened, Weights, unit_weights
from dpmpc.statistics.quantile import rank_variances
from dpmpc.statistics.question import AskedQuestion


@dataclass(frozen=True)
class Expected:
    """What one question's intervals will be. `half`: half the interval of a count, in records; `count`: what such a
    count is, were records spread evenly; `also`: what else is off by how much; `share`: its part of the promise.

    `line`: what is said in place of counts, where the question is of none: `half` is then a standard error of a log
    ratio, to be held against `count`; `needed`: the part of the noise with which it would do; `ways`: what else would.
    """

    question: str
    half: float
    count: float
    also: str
    share: float
    cells: int
    line: str = ""
    needed: float | None = None
    ways: tuple[str, ...] = ()

    @property
    def ratio(self) -> float:
        """Half the interval over the count."""
        return self.half / self.count if self.count else np.inf


@dataclass(frozen=True, eq=False)
class Foreseeing:
    """A question before its release. `opened`: a release of nothing but noise; `n`: records, or places for them;
    `share`: the question's part of the promise."""

    query: AskedQuestion
    columns: Columns
    blocks: Sequence[Block]
    opened: Opened
    level: Level
    n: float
    share: float


def widest(
    asked: Foreseeing, table: Callable[[Foreseeing, CellCounts], tuple[float, int]] | None = None
) -> Expected:  # fmt: skip
    """The widest of its blocks' intervals. Records are taken to satisfy all conditions, and to be spread evenly.
    `table`: half the interval that matters of a table of counts, and over how many cells; by default of a cell."""
    found: Expected | None = None
    for block in asked.blocks:
        at, also = groups(block), ""
        deviation, z, n = asked.opened.deviation(block), asked.level.z, asked.n
        if isinstance(block, CellCounts):
            half, at = (table or of_cells)(asked, block)
        elif isinstance(block, Moments):
            half = z * float(asked.opened.variances(block)[0]) ** 0.5
            scale = getattr(block.value, "half", 1.0)
            off = z * float(asked.opened.variances(block)[1]) ** 0.5 / (n / at) * scale
            also = f"a mean by {off:.3g}"
        elif isinstance(block, Tree):
            ranks = rank_variances(1 << block.depth, 0.5)
            half = z * deviation * float(rank_variances(1 << block.depth, 0.0)[-1]) ** 0.5
            off = 100 * z * deviation * float(ranks[len(ranks) // 2]) ** 0.5 / (n / at)
            also = f"the rank of a median by {off:.2g} points"
        else:
            half = z * deviation * 2.0  # the count is in the diagonal's first entry, times 1/2
            off = z * deviation * 2.0 * len(getattr(block, "values", ()))
            also = f"a sum of squares by {off:.3g}, where the widest column has {n / at:.3g} at most"
        this = Expected(str(asked.query), half, n / at, also, asked.share, at)
        if found is None or this.ratio > found.ratio:
            found = this
    assert found is not None
    return found


def of_cells(asked: Foreseeing, block: CellCounts) -> tuple[float, int]:
    """Half the interval of a cell's count, after least squares with all tables of its condition; and its cells."""
    first: Weights = {axis: unit_weights(axis, 0) for axis in block.axes}
    table = asked.opened.tables[block.where]
    return asked.level.z * max(table.covariance(block.axes, first, first), 0.0) ** 0.5, groups(block)
