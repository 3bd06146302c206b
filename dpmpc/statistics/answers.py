"""Answers to questions, from what a release has opened: post-processing, at no further cost."""

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from dpmpc.outcome import Answer, Level, Line, Number
from dpmpc.statistics.asking import Asking
from dpmpc.statistics.blocks import Block, Counts, Moments, Tree
from dpmpc.statistics.cells import Axis
from dpmpc.statistics.compile import summarised
from dpmpc.statistics.evaluation import evaluate
from dpmpc.statistics.intervals import Floats, Pair, linear, quadratic, ratio, share, symmetric
from dpmpc.statistics.opened import Weights, unit_weights
from dpmpc.statistics.products import correlations, linear_model
from dpmpc.statistics.quantiles import quantile
from dpmpc.statistics.survival import kaplan_meier
from dpmpc.statistics.values import Scaled


def answer(asking: Asking) -> Answer:
    """The answer to a question."""
    return _KINDS[asking.query.what](asking)


def _count(asking: Asking) -> Answer:
    block = _counts(next(asking.blocks))
    lines = [Line(group, "count", number) for group, number in zip(asking.groups, _numbers(asking, block), strict=True)]
    return asking.made((), lines)


def _table(asking: Asking) -> Answer:
    block = _counts(next(asking.blocks))
    axes = [*asking.by, *(next(a for a in block.axes if a.name == name) for name in asking.query.columns)]
    lines = list(_cells(asking, block, axes))
    return asking.made(asking.query.columns, lines)


def _cells(asking: Asking, block: Counts, axes: Sequence[Axis]) -> Iterator[Line]:
    """Counts of cells, and the part that each has in its group."""
    counts = _numbers(asking, block, axes)
    shares = _shares(asking, block, axes)
    for place, count, part in zip(np.ndindex(*(len(a.labels) for a in axes)), counts, shares, strict=True):
        labels = tuple(axis.labels[k] for axis, k in zip(axes, place, strict=True))
        yield Line(labels, "count", count)
        yield Line(labels, "percent", part.mapped(100.0))


def _numbers(asking: Asking, block: Counts, axes: Sequence[Axis] | None = None) -> list[Number]:
    """The counts of the cells of a table, the last axis running fastest; all have one variance."""
    table = asking.opened.tables[block.where]
    order = block.axes if axes is None else tuple(axes)
    first: Weights = {axis: unit_weights(axis, 0) for axis in order}
    variance = max(table.covariance(order, first, first), 0.0)
    exact = Level(asking.level.confidence, "data", asking.level.answers)
    return [linear(float(v), variance, exact).within(0.0, np.inf) for v in table.value(order).ravel()]


def _shares(asking: Asking, block: Counts, axes: Sequence[Axis]) -> list[Number]:
    """The part of each cell in the count of its group, or of all records of the question."""
    table = asking.opened.tables[block.where]
    by, rest = list(asking.by), [axis for axis in axes if axis not in asking.by]
    cell: Weights = {axis: unit_weights(axis, 0) for axis in axes}
    whole: Weights = {axis: unit_weights(axis, 0) for axis in by}
    variances = [table.covariance(axes, *pair) for pair in ((cell, cell), (cell, whole), (whole, whole))]
    first, mixed, second = max(variances[0], 0.0), variances[1], max(variances[2], 0.0)
    sums = table.value(by)
    found = []
    for place, count in np.ndenumerate(table.value([*by, *rest])):
        pair = Pair(float(count), float(sums[place[: len(by)]]), first, mixed, second)
        found.append(share(pair, asking.level))
    return found


def _mean(asking: Asking) -> Answer:
    block = _moments(next(asking.blocks))
    lines = [
        Line(group, "mean", _mean_of(asking, block, raw))
        for group, raw in zip(asking.groups, asking.opened.raw(block), strict=True)
    ]
    return asking.made((), lines, clipping(block))


def _sd(asking: Asking) -> Answer:
    block = _moments(next(asking.blocks))
    lines = [
        Line(group, "sd", _sd_of(asking, block, raw))
        for group, raw in zip(asking.groups, asking.opened.raw(block), strict=True)
    ]
    return asking.made((), lines, clipping(block))


def _mean_of(asking: Asking, block: Moments, raw: Floats) -> Number:
    """The mean of one group from its count, sum and, if there is one, T2: Fieller's interval."""
    variances, value = asking.opened.variances(block), _scaled(block)
    noisy = Pair(float(raw[1]), float(raw[0]), float(variances[1]), 0.0, float(variances[0]))
    sampled = None
    if asking.level.population:
        n = max(noisy.b, 0.0)
        spread = variance_pair(raw, variances) if block.second else None
        if spread is not None and spread.b > 0:
            sampled = noisy.plus(n * min(max(spread.a / spread.b, 0.0), 1.0))
        else:
            sampled = noisy.plus(n, 0.0, -n)  # numbers in [-1, 1] of mean theta: 1 - theta^2 at most
    found = ratio(noisy, asking.level, sampled, (-1.0, 1.0)).mapped(value.half, value.middle)
    if sampled is not None and not block.second and found.estimate is not None:
        return Number(found.estimate, found.noise, found.low, found.high, "conservative")
    return found


def variance_pair(raw: Floats, variances: Floats) -> Pair:
    """N sum t^2 - (sum t)^2 and N^2: their ratio is the variance of t."""
    A = symmetric(np.array([[0.5, 0.0, 0.5], [0.0, -1.0, 0.0], [0.0, 0.0, 0.0]]))
    return quadratic(raw, np.diag(variances), A, np.diag([1.0, 0.0, 0.0]))


def _sd_of(asking: Asking, block: Moments, raw: Floats) -> Number:
    """The standard deviation of one group, as of a sample: the variance times N / (N - 1)."""
    variances, value = asking.opened.variances(block), _scaled(block)
    noisy = variance_pair(raw, variances)
    n, note = float(raw[0]), ""
    sampled = None
    if asking.level.population and noisy.b > 0:
        v = min(max(noisy.a / noisy.b, 0.0), 1.0)
        m = min(abs(float(raw[1])) / max(n, 1.0), 1.0)
        sampled, note = noisy.plus(n**3 * ((1 + m) ** 2 * v - v**2)), "conservative"  # the fourth moment at most
    found = ratio(noisy, asking.level, sampled, (0.0, 1.0))
    if n > 2:
        found = found.mapped(n / (n - 1))
    found = found.root().mapped(value.half)
    return Number(found.estimate, found.noise, found.low, found.high, found.note or note)


def _quantiles(asking: Asking) -> Answer:
    block = next(asking.blocks)
    assert isinstance(block, Tree) and isinstance(block.value, Scaled)
    column, levels = block.value.column, asking.query.levels or (0.5,)
    deviation = asking.opened.deviation(block)
    tree = asking.opened.raw(block)
    lines = []
    for group, nodes in zip(asking.groups, tree, strict=True):
        for q in levels:
            found = quantile(nodes, deviation, q, asking.level).mapped(column.high - column.low, column.low)
            lines.append(Line(group, "median" if q == 0.5 else f"quantile {q:g}", found))
    width = (column.high - column.low) / (1 << block.depth)
    return asking.made((), lines, f"to {width:.3g}, the width of a leaf; the least value that q N of N reach")


def _table1(asking: Asking) -> Answer:
    lines = []
    for name, block in zip(summarised(asking.query, asking.columns), asking.blocks, strict=True):
        if isinstance(block, Moments):
            for group, raw in zip(asking.groups, asking.opened.raw(block), strict=True):
                lines.append(Line((*group, name, ""), "mean", _mean_of(asking, block, raw)))
                lines.append(Line((*group, name, ""), "sd", _sd_of(asking, block, raw)))
            continue
        counts = _counts(block)
        axes = [*asking.by, next(axis for axis in counts.axes if axis.name == name)]
        for line in _cells(asking, counts, axes):
            lines.append(Line((*line.labels[:-1], name, line.labels[-1]), line.statistic, line.number))
    return asking.made(("column", "level"), lines)


def clipping(block: Moments) -> str:
    """What is said of a mean's bounds."""
    column = _scaled(block).column
    return f"of the records that have one; values beyond {column.low:g} and {column.high:g} count as these"


def _counts(block: Block) -> Counts:
    assert isinstance(block, Counts)
    return block


def _moments(block: Block) -> Moments:
    assert isinstance(block, Moments)
    return block


def _scaled(block: Moments) -> Scaled:
    assert isinstance(block.value, Scaled)
    return block.value


_KINDS: dict[str, Callable[[Asking], Answer]] = {
    "count": _count, "table": _table, "mean": _mean, "sd": _sd, "median": _quantiles, "quantiles": _quantiles,
    "hist": _table, "table1": _table1, "evaluate": evaluate,
    "km": kaplan_meier, "corr": correlations, "lm": linear_model,
}  # fmt: skip
