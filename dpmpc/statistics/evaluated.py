"""The figures of a model from the one opened release of `evaluate(MODEL)`: post-processing, at no further cost."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmpc.outcome import NONE, Level, Number
from dpmpc.records.schema import Classes, Labels, Range, Schema
from dpmpc.statistics.asking import Asking
from dpmpc.statistics.blocks import CellCounts, Moments
from dpmpc.statistics.cells import Ints, RecordFields
from dpmpc.statistics.columns import Columns
from dpmpc.statistics.figures import Figures, Group, rule_of
from dpmpc.statistics.intervals import Floats, Pair, linear, ratio, share
from dpmpc.statistics.kinds.evaluation import regression, several_classes, two_classes, within
from dpmpc.statistics.opened import Opened
from dpmpc.statistics.scores import MAPPED, ScoreModel, Scores, task_of
from dpmpc.statistics.tables import Tables

NAME = "model"  # of the model in the one question of an evaluation
CELLS = (12, 20, 32)  # of a score: few add little noise, many tell its place well
GROUPS = 8  # of neighbouring cells, in a calibration
LOUD = 0.25  # a group's share that is off by more than this says nothing of calibration


def question(cells: int = CELLS[-1]) -> str:
    """The one question of an evaluation."""
    return f"evaluate({NAME}, cells={cells})"


def tables_of(
    schema: Schema,
    theta: Any,
    weights: Sequence[float] | None = None,
    *,
    cells: int = CELLS[-1],
    mapped: bool = False,
) -> Tables:
    """The one question about a model. `cells`: of its score. `mapped`: for records that are rows of features already;
    the vectors are the same."""
    model = replace(ScoreModel.of(schema, theta, weights), mapped=mapped)
    return Tables.of(Columns.of_schema(schema), [question(cells)], models={NAME: model})


def totals(
    schema: Schema,
    theta: Any,
    weights: Sequence[float] | None,
    X: Floats,
    y: Floats,
    owner: Ints,
    owners: int,
    *,
    cells: int = CELLS[-1],
) -> Ints:
    """(owners, dimension) the owners' vectors, from rows of features X (n, d), targets y (n,) on the schema's scale and
    the number of each row's owner. A zero row is a record without target. Secret."""
    tables = tables_of(schema, theta, weights, cells=cells, mapped=True)
    gone, target, column = ~X.any(axis=1), schema.target, tables.columns[schema.target.name]
    if isinstance(target, Range):
        values = np.where(gone, np.nan, target.original(y))
    elif isinstance(target, Labels):
        values = np.where(gone, -1, (y > 0).astype(np.int64))
    else:
        values = np.where(gone, -1, y.astype(np.int64))
    records = RecordFields(len(y), {field: X if field == MAPPED else values for field in (MAPPED, column)})
    return tables.layout.encode(records, owner, owners)


def figures_of(
    tables: Tables, total: NDArray[Any], sigma: float, sizes: Sequence[int], level: Level | None = None
) -> Figures:
    """The figures of the model that the release asked about. total (dimension,): the opened sum in grid steps, whose
    noise has deviation sigma a coordinate; sizes: held-out records of each owner."""
    opened = Opened(tables.layout, np.asarray(total, dtype=np.float64), sigma, tuple(sizes))
    (query,) = tables.queries
    models = dict(tables.models)
    asking = Asking(query, tables.columns, opened, level or Level(), tables.blocks_of(query), models)
    model, n = models[query.columns[0]], sum(sizes)
    target, blocks, kind = model.schema.target, list(asking.blocks), task_of(model)
    if kind == "number":
        first, second = (block for block in blocks if isinstance(block, Moments))
        numbers = {name: number for _, name, number in regression(asking, first, second, 0)}
        return Figures("number", True, n, target.name, numbers=numbers)
    counts = [_table(asking, block) for block in blocks if isinstance(block, CellCounts)]
    noise = [asking.opened.deviation(block) for block in blocks if isinstance(block, CellCounts)]
    rule = rule_of(target, model.weights)
    if kind == "two":
        assert isinstance(target, Labels)
        table = blocks[0]
        assert isinstance(table, CellCounts) and isinstance(table.axes[1], Scores)
        return _of_two(model, table.axes[1], counts[0], noise[0], n, rule, asking.level)
    assert isinstance(target, Classes)
    names, K = target.names, len(target.names)
    by_class: dict[str, dict[str, Number]] = {name: {} for name in names}
    numbers = {}
    for of, name, number in several_classes(names, counts, noise, asking.level):
        if not of:
            numbers[name] = number
        elif of in by_class:
            by_class[of][name] = number
    cells = tuple(tuple(_count(counts[0][a, b], noise[0], asking.level) for b in range(K)) for a in range(K))
    numbers["balanced accuracy"] = _mean([by_class[name]["recall"] for name in names], asking.level)
    ones, commonest = np.ones((K, K)), np.zeros((K, K))
    commonest[int(np.argmax(counts[0][:K].sum(axis=1)))] = 1.0
    numbers["base rate"] = within(counts[0][:K], commonest, ones, noise[0], asking.level)
    return Figures("several", True, n, target.name, names, rule, numbers, by_class, cells)


def _of_two(
    model: ScoreModel, scores: Scores, counts: Floats, noise: float, n: int, rule: str, level: Level
) -> Figures:
    target = model.schema.target
    assert isinstance(target, Labels)
    negative, positive = counts[0], counts[1]
    numbers = {name: number for of, name, number in two_classes(negative, positive, noise, scores, level) if not of}
    percent = numbers.pop("percent positive")
    numbers.pop("records")
    numbers["positive"] = percent.mapped(0.01)
    recalls = (numbers[name] for name in ("sensitivity", "specificity"))
    numbers["balanced accuracy"] = _between(numbers["balanced accuracy"], *recalls)
    numbers["base rate"] = _larger(numbers["positive"])
    above = scores.above
    said = (~above, above)
    table = tuple(
        tuple(_count(float(row[cells].sum()), noise * int(cells.sum()) ** 0.5, level) for cells in said)
        for row in (negative, positive)
    )
    groups = tuple(_calibration(scores, negative, positive, noise, level))
    names = (target.negative_name, target.positive_name)
    return Figures("two", True, n, target.name, names, rule, numbers, {}, table, groups)


def _between(both: Number, *recalls: Number) -> Number:
    """The balanced accuracy, the mean of recalls that are possible where noise has carried one out of [0, 1]."""
    known = [number.estimate for number in recalls if number.estimate is not None]
    if both.estimate is None or len(known) < len(recalls) or all(0 <= value <= 1 for value in known):
        return both
    return replace(both, estimate=float(np.mean(np.clip(known, 0.0, 1.0))))


def _larger(positive: Number) -> Number:
    """The share of the commonest class, where that of the positive one is known so well."""
    p, low, high = positive.estimate, positive.low, positive.high
    if p is None or low is None or high is None:
        return positive
    if p >= 0.5:
        return Number(p, positive.noise, max(low, 0.5), high)
    return Number(1 - p, positive.noise, max(1 - high, 0.5), 1 - low)


def _calibration(scores: Scores, negative: Floats, positive: Floats, noise: float, level: Level) -> Iterator[Group]:
    """Groups of as many neighbouring cells each, which is public; those that noise drowns are left out, by public
    rule: their interval is wider than LOUD. The probability that a group predicts is weighed by its noisy counts."""
    p, _ = scores.probabilities
    cuts = np.linspace(0, len(p), GROUPS + 1).round().astype(int)
    for begin, end in pairwise(cuts):
        cells = slice(int(begin), int(end))
        both = negative[cells] + positive[cells]
        total, v, many = float(both.sum()), noise**2, end - begin
        observed = share(Pair(float(positive[cells].sum()), total, many * v, many * v, 2 * many * v), level)
        if observed.estimate is None or observed.low is None or observed.high is None:
            continue
        if observed.high - observed.low > 2 * LOUD:
            continue
        mean = ratio(Pair(float(p[cells] @ both), total, 0.0, 0.0, 0.0), level)
        expected = float(np.clip(mean.estimate or 0.0, p[cells].min(), p[cells].max()))
        yield Group(expected, observed, total)


def _mean(numbers: Sequence[Number], level: Level) -> Number:
    """The mean of recalls, as far as they are possible, whose errors are independent; none where one has none."""
    values = [number.estimate for number in numbers]
    known = [value for value in values if value is not None]
    if len(known) < len(values):
        return NONE
    noise = math.fsum((number.noise or 0.0) ** 2 for number in numbers) / len(values) ** 2
    mean = linear(float(np.mean(known)), noise, level).within(0.0, 1.0)
    return replace(mean, estimate=float(np.mean(np.clip(known, 0.0, 1.0))))


def _count(value: float, noise: float, level: Level) -> Number:
    return linear(float(value), noise**2, level).within(0.0, np.inf)


def _table(asking: Asking, block: CellCounts) -> Floats:
    shape = tuple(len(axis.labels) for axis in block.axes)
    return np.asarray(asking.opened.raw(block).reshape(shape))
