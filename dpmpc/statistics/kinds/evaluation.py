"""The figures of a public model: AUC, accuracy, Brier score and calibration, confusion, R2, with noise-aware intervals.

Of two classes everything comes from one table of label and score. Of pairs within a cell a half are taken to be in
order, and what densities that are straight lines through neighbouring cells add to that: AUC is off by the fourth order
in the width of cells; the Brier score, of records that are taken to be spread evenly in their cell, by the second.
AUC, balanced accuracy and R2 are ratios of quadratic forms in the raw counts (`intervals.quadratic`), the others
are ratios.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import ClassVar

import numpy as np

from dpmpc.outcome import Answer, Calibration, Forest, Level, Number, Shape
from dpmpc.statistics.asking import Asking
from dpmpc.statistics.blocks import CellCounts, Moments, Part, groups
from dpmpc.statistics.cells import Levels
from dpmpc.statistics.columns import Category, Columns, Quantity
from dpmpc.statistics.compile import by_of
from dpmpc.statistics.foresight import Expected, Foreseeing, widest
from dpmpc.statistics.intervals import Floats, Pair, linear, quadratic, ratio, share, symmetric
from dpmpc.statistics.kind import QuestionKind, told
from dpmpc.statistics.options import Option, Whole
from dpmpc.statistics.question import AskedQuestion
from dpmpc.statistics.reading import Reading
from dpmpc.statistics.scores import IsClass, Predicted, ScoreModel, Scores, Target, task_of

CALIBRATION = 10  # groups of probabilities
_Lines = Iterator[tuple[str, str, Number]]


class Evaluation(QuestionKind):
    """`evaluate(MODEL)`: the figures of a public model."""

    options: ClassVar[Mapping[str, Option]] = {"cells": Whole(40.0, 8, 512)}

    def read(self, reading: Reading) -> tuple[tuple[str, ...], tuple[float, ...]]:
        return (reading.model(),), ()

    def parts(self, query: AskedQuestion, columns: Columns, models: Mapping[str, ScoreModel]) -> tuple[Part, ...]:
        """Axes keep their order: groups, label, score."""
        model, by = models[query.columns[0]], by_of(query, columns)
        name, cells, target = query.columns[0], int(self.setting(query, "cells")), model.target
        if task_of(model) == "number":
            assert isinstance(target, Quantity)
            values = (Target(target), Target(target, model))
            return tuple(Part("moments", Moments(value, True, by, query.where)) for value in values)
        assert isinstance(target, Category)
        if task_of(model) == "two":
            axes = (*by, Levels(target), Scores(name, model, model.edges(cells)))
            return (Part("scores", CellCounts(axes, query.where)),)
        found = [Part("scores", CellCounts((*by, Levels(target), Predicted(name, model, target.levels)), query.where))]
        for k in range(len(target.levels)):
            axes = (*by, IsClass(target, k), Scores(name, model, model.edges(cells, k), k))
            found.append(Part("scores", CellCounts(axes, query.where)))
        return tuple(found)

    def answer(self, asking: Asking) -> Answer:
        blocks, model = asking.blocks, asking.models[asking.query.columns[0]]
        found = [
            ((*group, label), statistic, number)
            for g, group in enumerate(asking.groups)
            for label, statistic, number in _figures(asking, model, blocks, g)
        ]
        notes = {
            "two": "predicted positive above a score of 0; calibration by predicted probability",
            "several": "one against the rest for each class",
            "number": "predictions and targets within the target's range",
        }
        return asking.made(("of",), asking.lines(found), notes[task_of(model)])

    def draw(self, answer: Answer) -> tuple[Shape, ...]:
        scores = told(answer, "AUC", "accuracy", "balanced accuracy", "recall")
        bins = tuple(line for line in told(answer, "percent positive") if line.labels[-1].endswith("%"))
        found: list[Shape] = [Forest("figure", scores)] if scores else []
        title = "calibration: predicted percent across, observed percent up"
        return tuple(found + ([Calibration(title, bins)] if bins else []))

    def expect(self, asked: Foreseeing) -> Expected:
        """Its figures are about the whole table, not about cells."""

        def whole(asked: Foreseeing, block: CellCounts) -> tuple[float, int]:
            return asked.level.z * asked.opened.deviation(block) * groups(block) ** 0.5, 1

        return widest(asked, whole)


def _figures(asking: Asking, model: ScoreModel, blocks: Sequence[object], g: int) -> _Lines:
    level = asking.level
    if task_of(model) == "number":
        first, second = (block for block in blocks if isinstance(block, Moments))
        yield from regression(asking, first, second, g)
        return
    tables = [block for block in blocks if isinstance(block, CellCounts)]
    axes = tables[0].axes[len(asking.by) :]
    counts = [_group(asking, table, g) for table in tables]
    noise = [asking.opened.deviation(table) for table in tables]
    if task_of(model) == "two":
        assert isinstance(axes[1], Scores)
        yield from two_classes(counts[0][0], counts[0][1], noise[0], axes[1], level)
    else:
        yield from several_classes(axes[1].labels, counts, noise, level)


def several_classes(names: Sequence[str], counts: Sequence[Floats], noise: Sequence[float], level: Level) -> _Lines:
    """Label, name and value of each figure: from the table of true class and class that was said, then of each class
    those of whether a record has it and of its score, and the deviation of the noise of each table."""
    K, (table, *rest), deviation = len(names), counts, noise[0]
    ones, every = np.ones((K, K)), np.eye(K)
    yield "", "accuracy", within(table[:K], every, ones, deviation, level)
    for k, name in enumerate(names):
        hits = np.outer(every[k], every[k])
        row = np.outer(every[k], ones[k])
        yield name, "recall", within(table[:K], hits, row, deviation, level)
        yield name, "precision", within(table[:K], hits, row.T, deviation, level)
        yield name, "AUC", auc(rest[k][0], rest[k][1], noise[1 + k], level)
    for k, row_name in enumerate(names):
        for j, column_name in enumerate(names):
            count = linear(float(table[k, j]), deviation**2, level)
            yield f"{row_name} as {column_name}", "count", count.within(0.0, np.inf)


def two_classes(negative: Floats, positive: Floats, deviation: float, scores: Scores, level: Level) -> _Lines:
    """Label, name and value of each figure, from the counts of both classes in the cells of the score."""
    y = np.concatenate([negative, positive])
    K, v = len(negative), deviation**2
    above = scores.above.astype(np.float64)
    ones, zeros = np.ones(K), np.zeros(K)
    everyone, positives = np.ones(2 * K), np.concatenate([zeros, ones])
    right = np.concatenate([1 - above, above])

    def of(top: Floats, bottom: Floats, chance: bool = True) -> Number:
        pair = Pair(float(top @ y), float(bottom @ y), float(top @ top) * v, float(top @ bottom) * v,
                    float(bottom @ bottom) * v)  # fmt: skip
        if chance:
            return share(pair, level)
        n = np.maximum(y, 0.0)
        sampled = pair.plus(float(top**2 @ n), float(top * bottom @ n), float(bottom @ n))
        return ratio(pair, level, sampled if level.population else None, (0.0, 1.0))

    count = Number(float(everyone @ y), deviation * float(np.sqrt(2 * K)), 0.0, 0.0)
    assert count.estimate is not None and count.noise is not None
    reach = level.z * count.noise
    yield "", "records", replace(count, low=max(count.estimate - reach, 0.0), high=max(count.estimate + reach, 0.0))
    yield "", "percent positive", of(positives, everyone).mapped(100.0)
    yield "", "AUC", auc(negative, positive, deviation, level)
    yield "", "accuracy", of(right, everyone)
    yield "", "balanced accuracy", _balanced(y, above, v, level)
    yield "", "sensitivity", of(np.concatenate([zeros, above]), positives)
    yield "", "specificity", of(np.concatenate([1 - above, zeros]), np.concatenate([ones, zeros]))
    p, p2 = scores.probabilities
    brier = np.concatenate([p2, p2 - 2 * p + 1])
    yield "", "Brier score", of(brier, everyone, chance=False)
    group = np.minimum((p * CALIBRATION).astype(np.int64), CALIBRATION - 1)
    for k in range(CALIBRATION):
        inside = (group == k).astype(np.float64)
        if inside.any():
            label = f"{100 * k // CALIBRATION}-{100 * (k + 1) // CALIBRATION} %"
            both = np.concatenate([inside, inside])
            yield label, "percent positive", of(positives * both, both).mapped(100.0)


def auc(negative: Floats, positive: Floats, deviation: float, level: Level) -> Number:
    """The chance that a positive record's score is above a negative one's.

    Of n0 and n1 records of a cell whose densities rise by d0 and d1 over it, n0 n1 / 2 + (n0 d1 - n1 d0) / 12 pairs are
    in order, d being half of what the next cell has more than the one before: a bilinear form too.
    """
    K = len(negative)
    wins, pairs = np.zeros((2 * K, 2 * K)), np.zeros((2 * K, 2 * K))
    wins[K:, :K] = np.tril(np.ones((K, K)), -1) + np.eye(K) / 2 + (np.eye(K, k=-1) - np.eye(K, k=1)) / 12
    pairs[K:, :K] = 1.0
    return _forms(np.concatenate([negative, positive]), wins, pairs, deviation**2, level)


def _balanced(y: Floats, above: Floats, v: float, level: Level) -> Number:
    """The mean of both classes' recalls, (TP N + TN P) / (2 P N)."""
    K = len(above)
    zeros = np.zeros(K)
    P, N = np.concatenate([zeros, np.ones(K)]), np.concatenate([np.ones(K), zeros])
    TP, TN = np.concatenate([zeros, above]), np.concatenate([1 - above, zeros])
    top = (np.outer(TP, N) + np.outer(TN, P)) / 2
    return _forms(y, top, np.outer(P, N), v, level)


def _forms(y: Floats, A: Floats, B: Floats, v: float, level: Level) -> Number:
    """A ratio of quadratic forms of counts with noise of variance v, and Poisson's where it is about the population."""
    A, B, noise = symmetric(A), symmetric(B), v * np.eye(len(y))
    noisy = quadratic(y, noise, A, B)
    sampled = None
    if level.population:
        n = np.maximum(y, 0.0)
        slopes = [2 * form @ y for form in (A, B)]
        each = [[float(a * b @ n) for a in slopes] for b in slopes]
        sampled = noisy.plus(each[0][0], each[0][1], each[1][1])
    return ratio(noisy, level, sampled, (0.0, 1.0))


def within(counts: Floats, top: Floats, bottom: Floats, deviation: float, level: Level) -> Number:
    """A part of some cells in others."""
    v = deviation**2
    a, b = float((top * counts).sum()), float((bottom * counts).sum())
    return share(Pair(a, b, float((top**2).sum()) * v, float((top * bottom).sum()) * v, float((bottom**2).sum()) * v),
                 level)  # fmt: skip


def regression(asking: Asking, target: Moments, error: Moments, g: int) -> _Lines:
    """Root mean squared error, mean error and R2 = 1 - N sum e^2 / (N sum y^2 - (sum y)^2), in the target's units."""
    assert isinstance(target.value, Target)
    half = (target.value.column.high - target.value.column.low) / 2
    y, e = asking.opened.raw(target)[g], asking.opened.raw(error)[g]
    vy, ve = asking.opened.variances(target), asking.opened.variances(error)
    level = asking.level
    count, sums, squares = float(e[0]), float(e[1]), float(e[2] + e[0]) / 2
    n = max(count, 0.0)
    missing = Pair(squares, count, float(ve[2] + ve[0]) / 4, float(ve[0]) / 2, float(ve[0]))
    bias = Pair(sums, count, float(ve[1]), 0.0, float(ve[0]))
    population = level.population
    square = ratio(missing, level, missing.plus(0.0, -n / 2, -n) if population else None, (0.0, 1.0))
    yield "", "rmse", _noted(square.root().mapped(2 * half), population)
    mean = ratio(bias, level, bias.plus(n, 0.0, -n) if population else None, (-1.0, 1.0))
    yield "", "mean error", _noted(mean.mapped(2 * half), population)
    # e is half of y - prediction: 4 N sum e^2 over N sum y^2 - (sum y)^2
    both = np.concatenate([y, e])
    A, B = np.zeros((6, 6)), np.zeros((6, 6))
    A[0, 3] = A[0, 5] = 2.0
    B[0, 0], B[0, 2], B[1, 1] = 0.5, 0.5, -1.0
    pair = quadratic(both, np.diag(np.concatenate([vy, ve])), symmetric(A), symmetric(B))
    if population:  # the covariance of squares and squared errors is not in the release
        yield "", "R2", Number(None, None, None, None, "no estimate about the population; ask about the data")
        return
    left = ratio(pair, level)
    if left.estimate is None or left.low is None or left.high is None:
        yield "", "R2", left
        return
    yield "", "R2", Number(1 - left.estimate, left.noise, 1 - left.high, min(1 - left.low, 1.0))


def _noted(number: Number, conservative: bool) -> Number:
    return replace(number, note="conservative") if conservative and number.estimate is not None else number


def _group(asking: Asking, block: CellCounts, g: int) -> Floats:
    """The raw counts (label, score) of one group."""
    shape = tuple(len(axis.labels) for axis in block.axes[len(asking.by) :])
    return np.asarray(asking.opened.raw(block).reshape(len(asking.groups), *shape)[g])


EVALUATE = Evaluation()
