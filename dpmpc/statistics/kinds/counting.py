"""How many: `count`, `table`, `hist`, `missing`. Cells of one table, each record in one of them."""

from collections.abc import Iterator, Mapping, Sequence
from typing import ClassVar

import numpy as np

from dpmpc.lazy import dataclass
from dpmpc.outcome import Answer, Heat, Level, Line, Number, Shape
from dpmpc.statistics.asking import Asking
from dpmpc.statistics.blocks import Block, CellCounts, Part
from dpmpc.statistics.cells import Axis, Bins, Field, Ints, RecordFields, even, logarithmic, octaves
from dpmpc.statistics.columns import MISSING, OTHER, Columns, Quantity
from dpmpc.statistics.compile import DEFAULT_BINS, axis_of, by_of, cells, quantity
from dpmpc.statistics.intervals import Pair, linear, share
from dpmpc.statistics.kind import QuestionKind, told
from dpmpc.statistics.opened import Weights, unit_weights
from dpmpc.statistics.options import MOST_BINS, Choice, Increasing, Option, Whole
from dpmpc.statistics.question import AskedQuestion
from dpmpc.statistics.reading import Reading
from dpmpc.statistics.scores import ScoreModel

COMPLETE, MOST_PATTERNS = "(none)", 8


class Count(QuestionKind):
    """`count`: how many records."""

    def parts(self, query: AskedQuestion, columns: Columns, models: Mapping[str, ScoreModel]) -> tuple[Part, ...]:
        return (cells(by_of(query, columns), query.where),)

    def answer(self, asking: Asking) -> Answer:
        block = counts_of(asking.blocks[0])
        each = zip(asking.groups, numbers(asking, block), strict=True)
        return asking.made((), [Line(group, "count", number) for group, number in each])


class TableOfCounts(QuestionKind):
    """`table(a, b)`: counts, and percent within the group."""

    least, most = 1, 4
    options: ClassVar[Mapping[str, Option]] = {"bins": Whole(DEFAULT_BINS, 1, MOST_BINS)}

    def parts(self, query: AskedQuestion, columns: Columns, models: Mapping[str, ScoreModel]) -> tuple[Part, ...]:
        bins = dict(query.options).get("bins")
        axes = (axis_of(name, columns, bins) for name in query.columns)
        return (cells((*by_of(query, columns), *axes), query.where),)

    def answer(self, asking: Asking) -> Answer:
        block = counts_of(asking.blocks[0])
        axes = [*asking.by, *(next(a for a in block.axes if a.name == name) for name in asking.query.columns)]
        return asking.made(asking.query.columns, list(cell_lines(asking, block, axes)))

    def draw(self, answer: Answer) -> tuple[Shape, ...]:
        """Bars, and of two columns a heat map of each group's counts, what is in no level left out."""
        found = super().draw(answer)
        if len(answer.columns) != 2:
            return found
        lines = [line for line in told(answer, "count") if not {MISSING, OTHER} & set(line.labels)]
        heats = []
        for group in dict.fromkeys(line.labels[:-2] for line in lines):
            title = " by ".join(answer.columns[::-1]) + (f", {answer.headers[0]} = {group[0]}" if group else "")
            heats.append(Heat(title, tuple(line for line in lines if line.labels[:-2] == group)))
        return (*found, *heats)


class Histogram(TableOfCounts):
    """`hist(x)`: the table of a number's cells."""

    least, most, numbers = 1, 1, True
    options: ClassVar[Mapping[str, Option]] = {
        "bins": Whole(20.0, 1, MOST_BINS), "cuts": Increasing(), "cells": Choice(words=("octaves", "log")),
    }  # fmt: skip

    def check(self, reading: Reading, query: AskedQuestion) -> None:
        column = reading.columns[query.columns[0]]
        if dict(query.options).get("cells") == "log" and isinstance(column, Quantity) and column.low <= 0:
            place = next(option.place for option in reading.written.options if option.name.text == "cells")
            rule = f"logarithmic cells need a positive lower bound, and '{column.name}' has {column.low:g}"
            reading.refuse(place, rule, "write cells=octaves")

    def parts(self, query: AskedQuestion, columns: Columns, models: Mapping[str, ScoreModel]) -> tuple[Part, ...]:
        return (cells((*by_of(query, columns), self._axis(query, columns)), query.where),)

    def _axis(self, query: AskedQuestion, columns: Columns) -> Axis:
        column = quantity(query.columns[0], columns)
        if cuts := self.setting(query, "cuts"):
            return Bins(column, cuts)
        if self.setting(query, "cells") == "octaves":
            return octaves(column)
        bins = int(self.setting(query, "bins"))
        return logarithmic(column, bins) if self.setting(query, "cells") == "log" else even(column, bins)


@dataclass(frozen=True)
class Patterns:
    """Which of some columns have no value: one cell for every set of them, the first column's bit the highest."""

    columns: tuple[Axis, ...]

    @property
    def name(self) -> str:
        return f"missing of {', '.join(axis.name for axis in self.columns)}"

    @property
    def labels(self) -> tuple[str, ...]:
        each = (
            [axis.name for axis, gone in zip(self.columns, bits, strict=True) if gone]
            for bits in np.ndindex(*(2 for _ in self.columns))
        )
        return tuple(" + ".join(names) or COMPLETE for names in each)

    @property
    def fields(self) -> tuple[Field, ...]:
        return tuple(field for axis in self.columns for field in axis.fields)

    def place(self, records: RecordFields) -> Ints:
        """(n,) cells."""
        found = np.zeros(records.n, dtype=np.int64)
        for axis in self.columns:
            found = 2 * found + (records.place(axis) == axis.labels.index(MISSING))
        return found


class Missing(QuestionKind):
    """`missing(a, b)`, or `missing` of all columns: how many records have no value, from the columns' tables.
    `patterns=yes`: which of up to eight columns have none together, from one table of all their sets."""

    most = 200
    options: ClassVar[Mapping[str, Option]] = {"patterns": Choice("no", words=("yes", "no"))}

    def check(self, reading: Reading, query: AskedQuestion) -> None:
        if self._together(query) and not 2 <= len(query.columns) <= MOST_PATTERNS:
            place = next(o.place for o in reading.written.options)
            rule = f"patterns are of 2 to {MOST_PATTERNS} columns; they double with each"
            reading.refuse(place, rule, "name them: missing(a, b, patterns=yes)")

    def _together(self, query: AskedQuestion) -> bool:
        return bool(self.setting(query, "patterns") == "yes")

    def _patterns(self, query: AskedQuestion, columns: Columns) -> Patterns:
        return Patterns(tuple(axis_of(name, columns) for name in query.columns))

    def _names(self, query: AskedQuestion, columns: Columns) -> tuple[str, ...]:
        return query.columns or tuple(name for name in columns.of_records if name != query.by)

    def parts(self, query: AskedQuestion, columns: Columns, models: Mapping[str, ScoreModel]) -> tuple[Part, ...]:
        by = by_of(query, columns)
        if self._together(query):
            return (cells((*by, self._patterns(query, columns)), query.where),)
        return tuple(cells((*by, axis_of(name, columns)), query.where) for name in self._names(query, columns))

    def answer(self, asking: Asking) -> Answer:
        if self._together(asking.query):
            joint = counts_of(asking.blocks[0])
            each = [*asking.by, self._patterns(asking.query, asking.columns)]
            note = "every set of columns is shown, whatever came; a text among numbers is missing too"
            return asking.made(("missing",), list(cell_lines(asking, joint, each)), note)
        lines: list[Line] = []
        for name, block in zip(self._names(asking.query, asking.columns), asking.blocks, strict=True):
            counts = counts_of(block)
            axes = [*asking.by, next(axis for axis in counts.axes if axis.name == name)]
            for line in cell_lines(asking, counts, axes):
                if line.labels[-1] == MISSING:
                    lines.append(Line((*line.labels[:-1], name), line.statistic, line.number))
        return asking.made(("column",), lines, "a text among numbers is missing too")


def cell_lines(asking: Asking, block: CellCounts, axes: Sequence[Axis]) -> Iterator[Line]:
    """Counts of cells, and the part that each has in its group."""
    counts = numbers(asking, block, axes)
    shares = shares_of(asking, block, axes)
    for place, count, part in zip(np.ndindex(*(len(a.labels) for a in axes)), counts, shares, strict=True):
        labels = tuple(axis.labels[k] for axis, k in zip(axes, place, strict=True))
        yield Line(labels, "count", count)
        yield Line(labels, "percent", part.mapped(100.0))


def numbers(asking: Asking, block: CellCounts, axes: Sequence[Axis] | None = None) -> list[Number]:
    """The counts of the cells of a table, the last axis running fastest; all have one variance."""
    table = asking.opened.tables[block.where]
    order = block.axes if axes is None else tuple(axes)
    first: Weights = {axis: unit_weights(axis, 0) for axis in order}
    variance = max(table.covariance(order, first, first), 0.0)
    exact = Level(asking.level.confidence, "data", asking.level.answers)
    return [linear(float(v), variance, exact).within(0.0, np.inf) for v in table.value(order).ravel()]


def shares_of(asking: Asking, block: CellCounts, axes: Sequence[Axis]) -> list[Number]:
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


def counts_of(block: Block) -> CellCounts:
    """The block, which is one of counts."""
    assert isinstance(block, CellCounts)
    return block


COUNT, TABLE, HIST, MISSING_OF = Count(), TableOfCounts(), Histogram(), Missing()
