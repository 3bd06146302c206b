"""Correlations and linear models from products of numbers, with the number of complete records opened as well.

The release holds M = sum z z', z = (1, t_1 / sqrt(q), ..., t_q / sqrt(q)) / sqrt(2), each entry of the diagonal with
noise of variance v, each other one with v / 2. Estimates are smooth functions of M; their variance is that of the noise
to first order, and there is no estimate where the noise is not small beside what is divided by.
"""

import math
from collections.abc import Mapping, Sequence

import numpy as np

from dpmpc.outcome import NONE, Answer, Level, Number
from dpmpc.statistics.asking import Asking
from dpmpc.statistics.blocks import Part, Products, Value, pairs
from dpmpc.statistics.columns import Columns, Quantity
from dpmpc.statistics.compile import by_of, scaled
from dpmpc.statistics.intervals import Floats
from dpmpc.statistics.kind import QuestionKind
from dpmpc.statistics.question import AskedQuestion
from dpmpc.statistics.reading import Reading
from dpmpc.statistics.scores import ScoreModel
from dpmpc.statistics.values import Indicator, Scaled

MOST = 12
CLEAR = 4.0  # deviations of the noise by which what is divided by must exceed 0


class Correlations(QuestionKind):
    """`corr(x, y, ...)`: of each pair. A category is the indicators of its levels but the first."""

    least, most = 2, MOST

    def check(self, reading: Reading, query: AskedQuestion) -> None:
        for token, name in zip(reading.written.parts, query.columns, strict=True):
            if len(values_of(name, reading.columns, query)) < 1:
                reading.refuse(token, "a category has two levels or more", "leave it out")
        many = sum(len(values_of(name, reading.columns, query)) for name in query.columns)
        if many > MOST:
            rule = f"{query.what} is about {MOST} numbers at most, and levels beside the first are {many} with them"
            reading.refuse(reading.written.what, rule, "leave a column out, or ask logit")

    def parts(self, query: AskedQuestion, columns: Columns, models: Mapping[str, ScoreModel]) -> tuple[Part, ...]:
        values = tuple(value for name in query.columns for value in values_of(name, columns, query))
        return (Part("products", Products(values, by_of(query, columns), query.where)),)

    def answer(self, asking: Asking) -> Answer:
        block, found = _products(asking), []
        names, deviation = [value.name for value in block.values], asking.opened.deviation(block)
        for group, raw in zip(asking.groups, asking.opened.raw(block), strict=True):
            sums = moments(raw, len(names))
            for i, j in pairs(len(names)):
                if i < j and not _alike(block.values[i], block.values[j]):
                    number = correlation(sums, i + 1, j + 1, deviation, asking.level)
                    found.append(((*group, names[i], names[j]), "correlation", number))
        assumed = _assumed(asking, "normal columns")
        return asking.made(("column", "with"), asking.lines(found), _bounds(block), *assumed)


class LinearModel(Correlations):
    """`lm(y, x, ...)`: least squares of the first column, a number, on the others, in their units. A category's
    coefficients are differences to its first level."""

    def read(self, reading: Reading) -> tuple[tuple[str, ...], tuple[float, ...]]:
        reading.names(0, 1, True, reading.written.parts[:1])
        return super().read(reading)

    def answer(self, asking: Asking) -> Answer:
        block, found = _products(asking), []
        y, *x = [value for value in block.values if isinstance(value, Scaled | Indicator)]
        values = block.values
        for group, raw in zip(asking.groups, asking.opened.raw(block), strict=True):
            M, v = moments(raw, len(values)), asking.opened.deviation(block) ** 2
            slopes = coefficients(M, v, asking.level)
            units = [y.half / value.half for value in x]
            intercept = _combined(M, v, x, y, asking.level)
            found.append(((*group, "(intercept)"), "coefficient", intercept))
            for value, number, unit in zip(x, slopes[1:], units, strict=True):
                found.append(((*group, value.name), "coefficient", number.mapped(unit)))
        assumed = _assumed(asking, "errors of one variance, whatever the columns are")
        return asking.made(("term",), asking.lines(found), _bounds(block), *assumed)


def moments(raw: Floats, q: int) -> Floats:
    """(q + 1, q + 1) sums of products of (1, t_1, ..., t_q), from the raw vector."""
    M = np.empty((q + 1, q + 1))
    for value, (i, j) in zip(raw, pairs(q + 1), strict=True):
        M[i, j] = M[j, i] = value if i == j else value / math.sqrt(2)
    return M * _factors(q)


def _factors(q: int) -> Floats:
    """What entries of M are multiplied with to be sums over records."""
    w = np.full(q + 1, math.sqrt(2.0 * q))
    w[0] = math.sqrt(2.0)
    return np.outer(w, w)


def noise_of(weights: Floats, v: float) -> float:
    """The variance of sum of weights * sums of products, for a symmetric matrix of weights of all entries."""
    w = weights * _factors(len(weights) - 1)
    return v * float(np.sum(w * w))  # an entry off the diagonal is there twice, with half the variance, in step


def correlation(S: Floats, i: int, j: int, deviation: float, level: Level) -> Number:
    """The correlation of columns i and j, from the sums of products; its noise to first order."""
    v, n = deviation**2, S[0, 0]
    e = np.eye(len(S))
    if n <= CLEAR * math.sqrt(noise_of(np.outer(e[0], e[0]), v)):
        return NONE
    m = S[0] / n
    centred = S / n - np.outer(m, m)
    a, b, c = centred[i, i], centred[j, j], centred[i, j]
    u, w = e[i] - m[i] * e[0], e[j] - m[j] * e[0]  # weights of (t - mean)

    def slope(x: Floats, y: Floats) -> Floats:
        return np.asarray((np.outer(x, y) + np.outer(y, x)) / 2)

    one = np.outer(e[0], e[0])
    first, second = (slope(x, x) - k * one for x, k in ((u, a), (w, b)))
    if a * n <= CLEAR * math.sqrt(noise_of(first, v)) or b * n <= CLEAR * math.sqrt(noise_of(second, v)):
        return NONE
    r = c / math.sqrt(a * b)
    gradient = (slope(u, w) - c * one) / math.sqrt(a * b) - r / 2 * (first / a + second / b)
    noise = math.sqrt(noise_of(gradient, v)) / n
    spread = math.hypot(noise, (1 - min(r * r, 1.0)) / math.sqrt(n)) if level.population else noise
    return Number(float(r), noise, float(r - level.z * spread), float(r + level.z * spread)).within(-1.0, 1.0)


def coefficients(S: Floats, v: float, level: Level) -> list[Number]:
    """Least squares of t_1 on (1, t_2, ...), from the sums of products: the intercept, then the slopes."""
    k = [0, *range(2, len(S))]
    return [_functional(S, v, np.eye(len(k))[i], level) for i in range(len(k))]


def _functional(S: Floats, v: float, weight: Floats, level: Level) -> Number:
    """weight . beta. With A = X'X, b = X'y and noise E, beta moves by A^-1 (E_xy - E_xx beta) to first order."""
    k = [0, *range(2, len(S))]
    A, b = S[np.ix_(k, k)], S[k, 1]
    size = math.sqrt(v) * float(_factors(len(S) - 1)[-1, -1]) * math.sqrt(len(k))
    if np.linalg.eigvalsh(A)[0] <= CLEAR * size:
        return NONE
    beta = np.linalg.solve(A, b)
    row, residual = np.zeros(len(S)), np.zeros(len(S))
    row[k] = np.linalg.solve(A, weight)
    residual[k], residual[1] = -beta, 1.0
    noise = math.sqrt(noise_of((np.outer(row, residual) + np.outer(residual, row)) / 2, v))
    spread = noise
    if level.population:
        left = max(float(residual @ S @ residual), 0.0) / max(S[0, 0] - len(k), 1.0)
        spread = math.sqrt(noise**2 + left * float(weight @ np.linalg.solve(A, weight)))
    value = float(weight @ beta)
    return Number(value, noise, value - level.z * spread, value + level.z * spread)


def _combined(S: Floats, v: float, x: Sequence[Scaled | Indicator], y: Scaled | Indicator, level: Level) -> Number:
    """The intercept in the columns' own units."""
    weight = np.array([1.0, *(-value.middle / value.half for value in x)])
    return _functional(S, v, weight, level).mapped(y.half, y.middle)


def values_of(name: str, columns: Columns, query: AskedQuestion) -> tuple[Value, ...]:
    """What a column is in sums of products: itself, or the indicators of its levels but the first."""
    column = columns[name]
    if isinstance(column, Quantity):
        return (scaled(name, columns, query.where),)
    return tuple(Indicator(column, place) for place in range(1, len(column.levels)))


def _alike(one: Value, other: Value) -> bool:
    """Whether both are levels of one column, whose correlation is none of two columns."""
    return isinstance(one, Indicator) and isinstance(other, Indicator) and one.column == other.column


def _products(asking: Asking) -> Products:
    block = asking.blocks[0]
    assert isinstance(block, Products)
    return block


def _assumed(asking: Asking, what: str) -> tuple[str, ...]:
    """What intervals for a population take for granted: fourth moments, which would tell, are not in the release."""
    said = f"intervals for the population are those of {what}; where that is not so they may be too narrow"
    return (said,) if asking.level.population else ()


def _bounds(block: Products) -> str:
    each = (value.column for value in block.values if isinstance(value, Scaled))
    said = [f"{column.name} within {column.low:g} and {column.high:g}" for column in each]
    coded = {value.column.name: value.column.levels[0] for value in block.values if isinstance(value, Indicator)}
    said += [f"{name} against {level}" for name, level in coded.items()]
    return f"of the records that have all; {', '.join(said)}"


CORR, LM = Correlations(), LinearModel()
