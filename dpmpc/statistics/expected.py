"""Before anything is spent: how wide intervals will be, from public numbers alone, and what would be hopeless.

A number is hopeless where half its interval is as large as the count it is about: `n` records spread evenly over its
groups and cells. Widths go by the noise, and that by 1 / mu, so the mu that would do, and from it epsilon, follows; the
cells that would do follow from half the interval as it is.
"""

import math
from collections.abc import Sequence

import numpy as np

from dpmpc.errors import UsageError
from dpmpc.lazy import dataclass
from dpmpc.outcome import Level
from dpmpc.privacy.gaussian import epsilon_of_mu, mu_of_budget
from dpmpc.statistics.blocks import Counts, Moments, Tree, groups
from dpmpc.statistics.opened import Opened, Weights, unit_weights
from dpmpc.statistics.quantiles import rank_variances
from dpmpc.statistics.tables import Tables

TOLD = 0.5  # half an interval over the count: above this an answer tells little, above 1 nothing


@dataclass(frozen=True)
class Expected:
    """What one question's intervals will be. `half`: half the interval of a count, in records; `count`: what such a
    count is, were records spread evenly; `also`: what else is off by how much; `share`: its part of the promise."""

    question: str
    half: float
    count: float
    also: str
    share: float
    cells: int

    @property
    def ratio(self) -> float:
        """Half the interval over the count."""
        return self.half / self.count if self.count else np.inf


def expected(
    tables: Tables, sizes: Sequence[int], sigma: float, level: Level | None = None, counted: bool = True
) -> tuple[Expected, ...]:
    """The widths of every question. sizes: records of each owner, or places, where records are not counted; sigma: the
    noise's deviation a coordinate, in grid steps. Records are taken to satisfy all conditions."""
    layout, asked = tables.layout, level or Level()
    opened = Opened(layout, np.zeros(layout.dimension), sigma, tuple(sizes), counted)
    shares = dict(zip(layout.blocks, layout.shares(sizes), strict=True))
    n, found = float(sum(sizes)), []
    for query in tables.queries:
        widest: Expected | None = None
        blocks = list(dict.fromkeys(tables.blocks_of(query)))
        spent = math.fsum(shares[block] for block in blocks)
        for block in blocks:
            at = groups(block)
            deviation = opened.deviation(block)
            also = ""
            if isinstance(block, Counts):
                first: Weights = {axis: unit_weights(axis, 0) for axis in block.axes}
                half = asked.z * max(opened.tables[block.where].covariance(block.axes, first, first), 0.0) ** 0.5
                if query.what == "evaluate":  # its figures are about the whole table, not about cells
                    half, at = asked.z * deviation * at**0.5, 1
            elif isinstance(block, Moments):
                half = asked.z * float(opened.variances(block)[0]) ** 0.5
                scale = getattr(block.value, "half", 1.0)
                off = asked.z * float(opened.variances(block)[1]) ** 0.5 / (n / at) * scale
                also = f"a mean by {off:.3g}"
            elif isinstance(block, Tree):
                ranks = rank_variances(1 << block.depth, 0.5)
                half = asked.z * deviation * float(rank_variances(1 << block.depth, 0.0)[-1]) ** 0.5
                off = 100 * asked.z * deviation * float(ranks[len(ranks) // 2]) ** 0.5 / (n / at)
                also = f"the rank of a median by {off:.2g} points"
            else:
                half = asked.z * deviation * 2.0  # the count is in the diagonal's first entry, times 1/2
                off = asked.z * deviation * 2.0 * len(getattr(block, "values", ()))
                also = f"a sum of squares by {off:.3g}, where the widest column has {n / at:.3g} at most"
            this = Expected(str(query), half, n / at, also, spent, at)
            if widest is None or this.ratio > widest.ratio:
                widest = this
        assert widest is not None
        found.append(widest)
    return tuple(found)


def refuse_hopeless(found: Sequence[Expected], epsilon: float, delta: float) -> None:
    """Errors: UsageError where an interval would be as wide as the count itself; it names the question, and says which
    epsilon and how few cells would do."""
    hopeless = [item for item in found if item.ratio >= 1]
    if not hopeless:
        return
    worst = max(hopeless, key=lambda item: item.ratio)
    total = worst.count * worst.cells
    need = epsilon_of_mu(mu_of_budget(epsilon, delta) * worst.ratio / TOLD, delta)
    ways = [f"epsilon {need:.2g} would do"]
    if worst.cells > 1 and (fewer := int(total / worst.half * TOLD)) >= 1:
        ways.append(f"or {fewer} cell{'s' if fewer > 1 else ''} in place of {worst.cells}")
    raise UsageError(
        f"an answer must tell something; {f'a cell of {worst.question}' if worst.cells > 1 else worst.question} would "
        f"be off by {worst.half:.3g} of some {worst.count:.3g}; {', '.join(ways)}, or ask fewer questions"
    )


def lines(found: Sequence[Expected]) -> list[str]:
    """A line a question: its part of the promise, and how far counts and what follows from them will be off."""
    said = []
    for item in found:
        of = f"counts by {item.half:.3g} of some {item.count:.3g}" if item.half else "counts not at all"
        also = f", {item.also}" if item.also else ""
        little = "  (tells little)" if TOLD <= item.ratio < 1 else ""
        said.append(f"{item.question}: {100 * item.share:.0f} % of the promise; off by: {of}{also}{little}")
    return said
