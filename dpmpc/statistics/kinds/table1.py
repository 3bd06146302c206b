"""`table1`: percentages of categories, mean and deviation of numbers, of all columns or some, as a paper's Table 1."""

from collections.abc import Mapping
from dataclasses import replace

from dpmpc.outcome import Answer, Line, Shape
from dpmpc.statistics.asking import Asking
from dpmpc.statistics.blocks import Moments, Part
from dpmpc.statistics.cells import Axis, Levels
from dpmpc.statistics.columns import Columns, Quantity
from dpmpc.statistics.compile import by_of, cells, scaled
from dpmpc.statistics.kind import QuestionKind
from dpmpc.statistics.kinds.counting import cell_lines, counts_of
from dpmpc.statistics.kinds.moments import mean_of, sd_of
from dpmpc.statistics.question import AskedQuestion
from dpmpc.statistics.scores import ScoreModel


class Table1(QuestionKind):
    """`table1 by g`, `table1(a, b) by g`."""

    most = 200

    def parts(self, query: AskedQuestion, columns: Columns, models: Mapping[str, ScoreModel]) -> tuple[Part, ...]:
        return tuple(_summary(name, query, columns, by_of(query, columns)) for name in _summarised(query, columns))

    def answer(self, asking: Asking) -> Answer:
        lines = []
        for name, block in zip(_summarised(asking.query, asking.columns), asking.blocks, strict=True):
            if isinstance(block, Moments):
                for group, raw in zip(asking.groups, asking.opened.raw(block), strict=True):
                    lines.append(Line((*group, name, ""), "mean", mean_of(asking, block, raw)))
                    lines.append(Line((*group, name, ""), "sd", sd_of(asking, block, raw)))
                continue
            counts = counts_of(block)
            axes = [*asking.by, next(axis for axis in counts.axes if axis.name == name)]
            for line in cell_lines(asking, counts, axes):
                lines.append(Line((*line.labels[:-1], name, line.labels[-1]), line.statistic, line.number))
        return asking.made(("column", "level"), lines)

    def draw(self, answer: Answer) -> tuple[Shape, ...]:
        rows = tuple(line for line in answer.lines if line.statistic in ("count", "percent"))
        return super().draw(replace(answer, lines=rows))


def _summarised(query: AskedQuestion, columns: Columns) -> tuple[str, ...]:
    """The columns of a `table1`: those named, or all but the one to group by."""
    return query.columns or tuple(name for name in columns.of_records if name != query.by)


def _summary(name: str, query: AskedQuestion, columns: Columns, by: tuple[Axis, ...]) -> Part:
    column = columns[name]
    if isinstance(column, Quantity):
        return Part("moments", Moments(scaled(name, columns, query.where), True, by, query.where))
    return cells((*by, Levels(column)), query.where)


TABLE1 = Table1()
