"""Averages: `mean`, `sd` and `var` of a number, clipped to its bounds, with Fieller's intervals."""

from collections.abc import Mapping
from typing import ClassVar

import numpy as np

from dpmpc.outcome import Answer, Line, Number
from dpmpc.statistics.asking import Asking
from dpmpc.statistics.blocks import Block, Moments, Part
from dpmpc.statistics.columns import Columns
from dpmpc.statistics.compile import by_of, scaled
from dpmpc.statistics.intervals import Floats, Pair, quadratic, ratio, symmetric
from dpmpc.statistics.kind import QuestionKind
from dpmpc.statistics.options import Increasing, Option
from dpmpc.statistics.question import AskedQuestion
from dpmpc.statistics.scores import ScoreModel
from dpmpc.statistics.values import Scaled

RANGE: Mapping[str, Option] = {"range": Increasing(two=True)}


class Average(QuestionKind):
    """`mean(x)`, `sd(x)` and `var(x)`: of the records that have a value."""

    least, most, numbers = 1, 1, True
    options: ClassVar[Mapping[str, Option]] = RANGE

    def parts(self, query: AskedQuestion, columns: Columns, models: Mapping[str, ScoreModel]) -> tuple[Part, ...]:
        value = scaled(query.columns[0], columns, query.where, self.setting(query, "range"))
        return (Part("moments", Moments(value, query.what != "mean", by_of(query, columns), query.where)),)

    def answer(self, asking: Asking) -> Answer:
        block, of = moments_of(asking.blocks[0]), {"mean": mean_of, "sd": sd_of, "var": var_of}[asking.query.what]
        lines = [
            Line(group, asking.query.what, of(asking, block, raw))
            for group, raw in zip(asking.groups, asking.opened.raw(block), strict=True)
        ]
        return asking.made((), lines, clipping(block))


def mean_of(asking: Asking, block: Moments, raw: Floats) -> Number:
    """The mean of one group from its count, sum and, if there is one, T2: Fieller's interval."""
    variances, value = asking.opened.variances(block), scaled_of(block)
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


def sd_of(asking: Asking, block: Moments, raw: Floats) -> Number:
    """The standard deviation of one group, as of a sample: the variance times N / (N - 1)."""
    variances, value = asking.opened.variances(block), scaled_of(block)
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


def var_of(asking: Asking, block: Moments, raw: Floats) -> Number:
    """The variance of one group: the square of its deviation, whose ends are not negative."""
    found = sd_of(asking, block, raw)
    if found.estimate is None or found.low is None or found.high is None:
        return found
    noise = None if found.noise is None else 2 * found.estimate * found.noise
    return Number(found.estimate**2, noise, found.low**2, found.high**2, found.note)


def clipping(block: Moments) -> str:
    """What is said of a mean's bounds."""
    column = scaled_of(block).column
    return f"of the records that have one; values beyond {column.low:g} and {column.high:g} count as these"


def moments_of(block: Block) -> Moments:
    """The block, which is one of moments."""
    assert isinstance(block, Moments)
    return block


def scaled_of(block: Moments) -> Scaled:
    """The number whose moments they are."""
    assert isinstance(block.value, Scaled)
    return block.value


MEAN = SD = VAR = Average()
