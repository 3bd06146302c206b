"""Groups compared: `ttest(x) by g`, `anova(x) by g`. Differences of means, with the noise of sums and counts in them.

A group's mean A / B has, to first order, the variance of A - theta B over B^2: that of the noise and, for a population,
of the group's own values, as Welch has it. Where a count is less than CLEAR deviations of its noise there is no
estimate. Tests are about a population of independent records, by the normal law: groups have some hundred records where
noise allows a test at all.
"""

import math
from collections.abc import Mapping
from typing import ClassVar

import numpy as np

from dpmpc.outcome import Answer, Forest, Level, Line, Number, Shape
from dpmpc.statistics.asking import Asking
from dpmpc.statistics.blocks import Moments, Part
from dpmpc.statistics.chi_square import chi_square_tail
from dpmpc.statistics.columns import MISSING, OTHER, Columns
from dpmpc.statistics.compile import by_of, scaled
from dpmpc.statistics.intervals import Floats
from dpmpc.statistics.kind import QuestionKind, told
from dpmpc.statistics.kinds.moments import RANGE, clipping, moments_of, scaled_of, variance_pair
from dpmpc.statistics.options import Option
from dpmpc.statistics.question import AskedQuestion
from dpmpc.statistics.reading import Reading
from dpmpc.statistics.scores import ScoreModel

CLEAR = 6.0


class GroupMeans(QuestionKind):
    """`ttest(x) by g`: each level's mean less the first's; `anova(x) by g`: whether all means are one."""

    least, most, numbers = 1, 1, True
    options: ClassVar[Mapping[str, Option]] = RANGE

    def check(self, reading: Reading, query: AskedQuestion) -> None:
        if query.by is None:
            way = f"write {query.what}({query.columns[0]}) by a column of categories"
            reading.refuse(reading.written.what, f"{query.what} compares groups", way)

    def parts(self, query: AskedQuestion, columns: Columns, models: Mapping[str, ScoreModel]) -> tuple[Part, ...]:
        value = scaled(query.columns[0], columns, query.where, self.setting(query, "range"))
        return (Part("moments", Moments(value, True, by_of(query, columns), query.where)),)

    def answer(self, asking: Asking) -> Answer:
        block = moments_of(asking.blocks[0])
        half, level = scaled_of(block).half, asking.level
        raw, variances = asking.opened.raw(block), asking.opened.variances(block)
        kept = [g for g, group in enumerate(asking.groups) if group[0] not in (OTHER, MISSING)]
        names = [asking.groups[g][0] for g in kept]
        each = [mean_and_variances(raw[g], variances) for g in kept]
        testable = asking.named and asking.opened.rows == 1
        lines: list[Line] = []
        if asking.query.what == "anova":
            known = [found for found in each if found is not None]
            lines += self._anova(known, testable and len(known) == len(each))
        else:
            first = each[0]
            for name, other in zip(names[1:], each[1:], strict=True):
                if first is None or other is None:
                    lines.append(Line((name,), "difference", Number(None, None, None, None, "no estimate")))
                    continue
                d, noise, sampled = (other[i] + sign * first[i] for i, sign in ((0, -1), (1, 1), (2, 1)))
                lines.append(Line((name,), "difference", _difference(d, noise, sampled, level).mapped(half)))
                if testable:
                    p = math.erfc(abs(d) / math.sqrt(2 * (noise + sampled)))
                    lines.append(Line((name,), "p", Number(p, None, None, None)))
        against = "" if asking.query.what == "anova" else f"mean less that of {asking.query.by} {names[0]}; "
        note = against + clipping(block)
        about = "p-values are about a population of independent records, by the normal law"
        none = "no p-values: the plan did not name this, or records of one person depend on each other"
        return asking.made((), lines, note, about if testable else none)

    @staticmethod
    def _anova(each: list[tuple[float, float, float]], testable: bool) -> list[Line]:
        if not testable or len(each) < 2:
            return [Line(("",), "p", Number(None, None, None, None, "no estimate"))]
        (m0, n0, s0), *rest = each
        d = np.array([m - m0 for m, _, _ in rest])
        W = np.diag([n + s for _, n, s in rest]) + n0 + s0
        Q = float(d @ np.linalg.solve(W, d))
        tail, degrees = chi_square_tail(Q, len(rest)), float(len(rest))
        said = (("chi-square", Q), ("degrees of freedom", degrees), ("p", tail))
        return [Line(("",), name, Number(value, None, None, None)) for name, value in said]

    def draw(self, answer: Answer) -> tuple[Shape, ...]:
        return (Forest("difference of means", told(answer, "difference")),)


def mean_and_variances(raw: Floats, variances: Floats) -> tuple[float, float, float] | None:
    """(mean in [-1, 1], the noise's variance, that of sampling) of one group; None where its count is hardly known."""
    n = float(raw[0])
    if n <= CLEAR * math.sqrt(float(variances[0])) or n < 2:
        return None
    mean = float(raw[1]) / n
    spread = variance_pair(raw, variances)
    value = min(max(spread.a / spread.b, 0.0), 1.0) if spread.b > 0 else 1.0
    return mean, float(variances[1] + mean**2 * variances[0]) / n**2, value / n


def _difference(d: float, noise: float, sampled: float, level: Level) -> Number:
    reach = level.z * math.sqrt(noise + (sampled if level.population else 0.0))
    return Number(d, math.sqrt(noise), d - reach, d + reach)


TTEST = ANOVA = GroupMeans()
