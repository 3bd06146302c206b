"""Ranks: `median`, `quantiles` and `iqr` of a number, from a noisy binary tree (`dpmpc.statistics.quantile`)."""

from collections.abc import Mapping
from dataclasses import replace
from typing import ClassVar

from dpmpc.outcome import Answer, Line, Number
from dpmpc.statistics.asking import Asking
from dpmpc.statistics.blocks import Part, Tree
from dpmpc.statistics.columns import Columns
from dpmpc.statistics.compile import by_of, scaled
from dpmpc.statistics.kind import QuestionKind
from dpmpc.statistics.options import LEAST_LEAVES, MOST_LEAVES, Increasing, Option, Whole
from dpmpc.statistics.quantile import quantile
from dpmpc.statistics.question import AskedQuestion
from dpmpc.statistics.reading import Reading
from dpmpc.statistics.scores import ScoreModel
from dpmpc.statistics.values import Scaled


class Median(QuestionKind):
    """`median(x)`: the least value that half of them reach."""

    least, most, numbers = 1, 1, True
    options: ClassVar[Mapping[str, Option]] = {
        "range": Increasing(two=True), "leaves": Whole(256.0, LEAST_LEAVES, MOST_LEAVES, power=True),
    }  # fmt: skip

    def parts(self, query: AskedQuestion, columns: Columns, models: Mapping[str, ScoreModel]) -> tuple[Part, ...]:
        depth = int(self.setting(query, "leaves")).bit_length() - 1
        value = scaled(query.columns[0], columns, query.where, self.setting(query, "range"))
        return (Part("tree", Tree(value, depth, by_of(query, columns), query.where)),)

    def answer(self, asking: Asking) -> Answer:
        block = asking.blocks[0]
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


class Quantiles(Median):
    """`quantiles(x, 0.1, 0.9)`: the least value that so many reach; by default the quartiles."""

    def read(self, reading: Reading) -> tuple[tuple[str, ...], tuple[float, ...]]:
        parts = reading.written.parts
        figures = [part for k, part in enumerate(parts) if k and part.number is not None]
        found = reading.names(1, 1, True, [part for part in parts if part not in figures])
        for token in figures:
            if token.number is None or not 0 < token.number < 1:
                reading.refuse(token, "a quantile lies between 0 and 1", "write for instance 0.25", "range")
        return found, tuple(sorted({float(token.text) for token in figures})) or (0.25, 0.5, 0.75)


class Spread(Median):
    """`iqr(x)`: how far the quartiles lie apart."""

    def answer(self, asking: Asking) -> Answer:
        """Both quartiles' intervals, each with half of the error, hold their difference with at least the level."""
        block = asking.blocks[0]
        assert isinstance(block, Tree) and isinstance(block.value, Scaled)
        column, level, lines = block.value.column, asking.level, []
        both = replace(level, confidence=(1 + level.confidence) / 2)
        deviation, width = asking.opened.deviation(block), column.high - column.low
        for group, nodes in zip(asking.groups, asking.opened.raw(block), strict=True):
            a, b = (quantile(nodes, deviation, q, both).mapped(width) for q in (0.25, 0.75))
            found = Number(None, None, None, None, a.note or b.note)
            if None not in (a.estimate, b.estimate, a.low, a.high, b.low, b.high):
                assert a.estimate is not None and a.low is not None and a.high is not None
                assert b.estimate is not None and b.low is not None and b.high is not None
                low = max(b.low - a.high, 0.0)
                found = Number(b.estimate - a.estimate, None, low, b.high - a.low, "conservative")
            lines.append(Line(group, "interquartile range", found))
        return asking.made((), lines, f"to {width / (1 << block.depth):.3g}, the width of a leaf")


MEDIAN, QUANTILES, IQR = Median(), Quantiles(), Spread()
