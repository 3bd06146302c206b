"""Hazard ratios: `cox(time, event, arm, age)` and `hr(time, event, arm)`, from one table of exits by coded covariates.

Time is cut into bins (`bins=12`). A record leaves with an event in a bin, or without one at a boundary between bins,
the last of which is the end of what is looked at. Whoever is last seen within a bin at a share u of it counts (1 - u)
at the boundary before and u at the one after: so censoring that differs by arm does not bend ratios, as it does where
all of them count as of one boundary. An event at a boundary is one of the bin before it: of times in whole months those
who leave in a month were at risk for its events, as in Cox's own likelihood. The map is a function of the record alone.
Its vector has two entries that are not negative and add up to s, so its norm is at most s, and two records are at most
the root of 2 apart, as in any table.

The model is grouped proportional hazards, a complementary log-log link for each bin (Prentice and Gloeckler 1978). The
variance of a population's counts is taken as if each whole record were in one cell: for shares it is too large, never
too small.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import ClassVar

import numpy as np

from dpmpc.lazy import dataclass
from dpmpc.outcome import spelled
from dpmpc.statistics.asking import Asking
from dpmpc.statistics.blocks import Block, Distance, Part, Reach, group_of, groups
from dpmpc.statistics.cells import Axis, Field, Ints, Levels, RecordFields
from dpmpc.statistics.columns import Columns, Quantity
from dpmpc.statistics.compile import by_of, quantity
from dpmpc.statistics.families import Family, Hazard
from dpmpc.statistics.foresight import Foreseeing
from dpmpc.statistics.intervals import Floats
from dpmpc.statistics.joint import Coded, Complete, complete
from dpmpc.statistics.kinds.regression import HOPELESS, STRENGTH, Design, Regression
from dpmpc.statistics.options import Increasing, Option, Whole
from dpmpc.statistics.question import AskedQuestion
from dpmpc.statistics.reading import Reading
from dpmpc.statistics.scores import ScoreModel
from dpmpc.statistics.syntax import Token
from dpmpc.statistics.where import ALL, Where

_UP = 1 + 1e-12


@dataclass(frozen=True)
class Exits:
    """How records leave: with an event in bin 0 ... B - 1, then without one at boundary 0 ... B, in each group. The
    last of `axes` is of complete covariates, and its last cell has who lacks one, the time or the event too."""

    time: Quantity
    edges: tuple[float, ...]
    event: Levels
    axes: tuple[Axis, ...] = ()
    where: Where = ALL

    @property
    def bins(self) -> int:
        return len(self.edges) - 1

    @property
    def inner(self) -> int:
        return 2 * self.bins + 1

    @property
    def worth(self) -> float:
        """How many answers it gives: its part in the scales."""
        return groups(self) * self.inner

    @property
    def fields(self) -> tuple[Field, ...]:
        own = (*self.where.fields, *(field for axis in self.axes for field in axis.fields))
        return (*own, self.time, *self.event.fields)

    def reach(self, scale: int) -> Reach:
        """No entry is negative and they add up to s: |phi| <= s, and |phi - phi'|^2 <= 2 s^2."""
        s = float(scale)
        return Reach(Distance(2 * s, math.sqrt(2) * s * _UP, s), Distance(s, s, s))

    def entries(self, records: RecordFields, scale: int) -> Iterator[tuple[Ints, Ints]]:
        """Pairs of (n,) coordinates, -1 for the zero vector, and what is added there."""
        B, edges = self.bins, np.array(self.edges)
        t, event = records[self.time], records.place(self.event)
        levels = len(self.event.column.levels)
        unknown = np.isnan(t) | (t < edges[0]) | (event >= levels)
        axis = self.axes[-1]
        gone = unknown | (records.place(axis) == len(axis.labels) - 1)
        group = group_of(self, records)
        last = len(axis.labels) - 1
        group = np.where(gone & (group >= 0), group - records.place(axis) + last, group)
        t = np.where(unknown, edges[0], t)
        place = np.clip(np.searchsorted(edges, t, side="left") - 1, 0, B)  # B: beyond the last edge
        inside = t <= edges[-1]
        at = np.minimum(place, B - 1)
        died = (event == levels - 1) & inside
        share = np.where(inside, (t - edges[at]) / (edges[at + 1] - edges[at]), 1.0)
        upper = np.where(died, scale, np.rint(scale * share)).astype(np.int64)
        first = np.where(died, at, B + at + 1)
        upper, first = np.where(gone, scale, upper), np.where(gone, 0, first)
        yield np.where(group < 0, -1, group * self.inner + first), upper
        lower = np.where(died | gone, -1, B + at)
        yield np.where((group < 0) | (lower < 0), -1, group * self.inner + lower), scale - upper


class Cox(Regression):
    """`cox(time, event, a, b, a:b)`: hazard ratios of the event, the last level of its column."""

    least, most = 3, 14
    options: ClassVar[Mapping[str, Option]] = {
        "bins": Whole(12.0, 2, 40), "cuts": Increasing(), "strength": STRENGTH
    }  # fmt: skip
    statistic = "hazard ratio"
    leading = 2

    def read_outcome(self, reading: Reading, tokens: Sequence[Token]) -> tuple[str, ...]:
        found = reading.names(0, 2, None, tokens)
        for k, (token, name) in enumerate(zip(tokens, found, strict=True)):
            if isinstance(reading.columns[name], Quantity) != (k == 0):
                way = f"write {reading.what}(time, event, arm)"
                reading.refuse(token, f"{reading.what} needs a time, a number, and an event, a category", way)
        return found

    def what_of(self, reading: Reading) -> str:
        return f"{reading.what}(time, event, arm)"

    def setting(self, query: AskedQuestion, name: str) -> object:
        return None if name == "strata" else super().setting(query, name)

    def outcome(self, query: AskedQuestion, columns: Columns) -> tuple[Coded, ...]:
        return (Coded.of(query.columns[1], columns),)

    def _edges(self, query: AskedQuestion, columns: Columns) -> tuple[float, ...]:
        column, cuts = quantity(query.columns[0], columns), self.setting(query, "cuts")
        if isinstance(cuts, tuple):
            return cuts
        bins = self.setting(query, "bins")
        assert isinstance(bins, float)
        return tuple(float(f"{edge:.12g}") for edge in np.linspace(column.low, column.high, int(bins) + 1))

    def parts(self, query: AskedQuestion, columns: Columns, models: Mapping[str, ScoreModel]) -> tuple[Part, ...]:
        event = self.outcome(query, columns)[0].axis
        assert isinstance(event, Levels)
        axes = (*by_of(query, columns), complete(self.coded(query, columns)))
        time = quantity(query.columns[0], columns)
        return (Part("exits", Exits(time, self._edges(query, columns), event, axes, query.where)),)

    def family(self, query: AskedQuestion, columns: Columns) -> Family:
        return Hazard(len(self._edges(query, columns)) - 1)

    def cells_of(self, asking: Asking, outcome: Sequence[Coded], covariates: Sequence[Coded]) -> tuple[
        list[Floats], Floats, float, Floats
    ]:  # fmt: skip
        block: Block = asking.blocks[0]
        assert isinstance(block, Exits)
        axis = block.axes[-1]
        assert isinstance(axis, Complete)
        raw = asking.opened.raw(block).reshape(len(asking.groups), len(axis.labels), block.inner)
        cells = raw[:, :-1].reshape(len(asking.groups), *axis.shape, block.inner)
        names = [column.name for column in axis.columns]
        cells = cells.transpose(0, *(1 + names.index(c.name) for c in covariates), cells.ndim - 1)
        variance = asking.opened.deviation(block) ** 2
        flat = [each.reshape(-1, block.inner) for each in cells]
        return flat, raw[:, -1, 0], variance, np.full(len(flat), variance)

    def events(self, flat: Floats, variance: float) -> list[tuple[str, float, float]]:
        bins = flat.shape[1] // 2
        return [("events", float(flat[:, :bins].sum()), variance * len(flat) * bins)]

    def about(self, asking: Asking, outcome: Sequence[Coded]) -> str:
        edges = self._edges(asking.query, asking.columns)
        event = f"{outcome[0].name} = {outcome[0].labels[-1]}"
        return (
            f"hazard ratios of {event} from {spelled(edges[0])} to {spelled(edges[-1])}, in {len(edges) - 1} bins, of "
            "complete records; the same at all times is assumed"
        )

    def coarser(self, asked: Foreseeing, design: Design, deviation: float) -> tuple[str, ...]:
        """The largest number of bins with which it would do, of those above 1 and below what is asked."""
        for bins in range(self.family(asked.query, asked.columns).predictors - 1, 1, -1):
            family, query = Hazard(bins), asked.query
            others = tuple(option for option in query.options if option[0] not in ("bins", "cuts"))
            fewer = replace(query, options=tuple(sorted((*others, ("bins", float(bins))))))
            if self.predicted(family, self.design(fewer, asked.columns), asked, deviation) < 0.95 * HOPELESS:
                return (f"bins={bins}",)
        return ()

    def even(self, family: Family) -> Floats:
        """Half have the event by the end."""
        return np.full(family.predictors, math.log(math.log(2) / family.predictors))


class HazardRatio(Cox):
    """`hr(time, event, arm)`: of each arm against the first."""

    def check(self, reading: Reading, query: AskedQuestion) -> None:
        if len(query.columns) != 3:
            reading.refuse(reading.written.what, "hr is about one covariate", "ask cox(time, event, a, b)")
        super().check(reading, query)


COX, HR = Cox(), HazardRatio()
