"""Before anything is spent: how wide intervals will be, from public numbers alone, and what would be hopeless.

A number is hopeless where half its interval is as large as the count it is about: `n` records spread evenly over its
groups and cells. Widths go by the noise, and that by 1 / mu, so the mu that would do, and from it epsilon, follows; the
cells that would do follow from half the interval as it is.
"""

import math
from collections.abc import Sequence
from typing import Protocol

import numpy as np

from dpmpc.errors import UsageError
from dpmpc.outcome import Level
from dpmpc.privacy.gaussian import epsilon_of_mu, mu_of_budget
from dpmpc.statistics.blocks import Block
from dpmpc.statistics.columns import Columns, Owners
from dpmpc.statistics.foresight import Expected, Foreseeing
from dpmpc.statistics.kind import QUESTION_KINDS
from dpmpc.statistics.layout import Layout
from dpmpc.statistics.opened import Opened
from dpmpc.statistics.question import AskedQuestion
from dpmpc.statistics.where import Among

TOLD = 0.5  # half an interval over the count: above this an answer tells little, above 1 nothing
_PROTECTS = 100.0  # an epsilon above is no way out: nothing would be left of the promise


class Asks(Protocol):
    """What is known of a release of tables beforehand."""

    @property
    def columns(self) -> Columns:
        """The public columns."""

    @property
    def queries(self) -> Sequence[AskedQuestion]:
        """The questions, in order."""

    @property
    def layout(self) -> Layout:
        """Which coordinates the tables of their blocks are."""

    def blocks_of(self, query: AskedQuestion) -> Sequence[Block]:
        """The blocks that answer a question."""


def expected(
    tables: Asks, sizes: Sequence[int], sigma: float, level: Level | None = None, counted: bool = True
) -> tuple[Expected, ...]:
    """The widths of every question. sizes: records of each owner, or places, where records are not counted; sigma: the
    noise's deviation a coordinate, in grid steps. Records are taken to satisfy all conditions but those on owners,
    whose sizes are known; a question by owner is foreseen at the one with fewest."""
    layout, asked = tables.layout, level or Level()
    opened = Opened(layout, np.zeros(layout.dimension), sigma, tuple(sizes), counted)
    shares = dict(zip(layout.blocks, layout.shares(sizes), strict=True))
    found = []
    for query in tables.queries:
        blocks = tuple(dict.fromkeys(tables.blocks_of(query)))
        spent = math.fsum(shares[block] for block in blocks)
        n = _about(query, tables.columns, sizes)
        foreseeing = Foreseeing(query, tables.columns, blocks, opened, asked, n, spent)
        found.append(QUESTION_KINDS[query.what].expect(foreseeing))
    return tuple(found)


def _about(query: AskedQuestion, columns: Columns, sizes: Sequence[int]) -> float:
    """How many records a question is about; by owner: as if all owners had as many as the smallest."""
    kept = list(range(len(sizes)))
    for condition in query.where.conditions:
        if isinstance(condition, Among) and isinstance(condition.column, Owners):
            kept = [j for j in kept if j in condition.levels]
    mine = [sizes[j] for j in kept]
    if query.by is not None and mine and isinstance(columns[query.by], Owners):
        return float(min(mine) * len(sizes))
    return float(sum(mine))


def refuse_hopeless(found: Sequence[Expected], epsilon: float, delta: float) -> None:
    """Errors: UsageError where an interval would be as wide as the count itself; it names the question, and says which
    epsilon and how few cells would do."""
    hopeless = [item for item in found if item.ratio >= 1]
    if not hopeless:
        return
    worst = max(hopeless, key=lambda item: item.ratio)
    if worst.line:
        would = []
        if worst.needed is not None:
            need = epsilon_of_mu(mu_of_budget(epsilon, delta) / max(worst.needed, 1e-9), delta)
            would = [f"epsilon {need:.2g} would do"] if need <= _PROTECTS else []
        more = ", or ".join([*would, *worst.ways, "wider bands or fewer covariates"])
        raise UsageError(
            f"an answer must tell something; {worst.question} would tell {worst.line}; {more}, or ask fewer questions",
            code="enough",
        )
    total = worst.count * worst.cells
    need = epsilon_of_mu(mu_of_budget(epsilon, delta) * worst.ratio / TOLD, delta)
    ways = [f"epsilon {need:.2g} would do"]
    if worst.cells > 1 and (fewer := int(total / worst.half * TOLD)) >= 1:
        ways.append(f"or {fewer} cell{'s' if fewer > 1 else ''} in place of {worst.cells}")
    raise UsageError(
        f"an answer must tell something; {f'a cell of {worst.question}' if worst.cells > 1 else worst.question} would "
        f"be off by {worst.half:.3g} of some {worst.count:.3g}; {', '.join(ways)}, or ask fewer questions",
        code="enough",
    )


def lines(found: Sequence[Expected]) -> list[str]:
    """A line a question: its part of the promise, and how far counts and what follows from them will be off."""
    said = []
    for item in found:
        if item.line:
            said.append(f"{item.question}: {100 * item.share:.0f} % of the promise; off by: {item.line}")
            continue
        of = f"counts by {item.half:.3g} of some {item.count:.3g}" if item.half else "counts not at all"
        also = f", {item.also}" if item.also else ""
        little = "  (tells little)" if TOLD <= item.ratio < 1 else ""
        said.append(f"{item.question}: {100 * item.share:.0f} % of the promise; off by: {of}{also}{little}")
    return said
