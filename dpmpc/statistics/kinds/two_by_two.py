"""Two groups and a yes or no: `or`, `rr`, `rd`, crude and over strata, and `chisq` of two columns.

With a exposed who have it, b who have not, c and d of the others, every hypothesis psi is a polynomial of counts that
noise leaves unbiased, as noises of cells are independent:

    odds ratio       a d - psi b c                          Mantel-Haenszel: sum over strata, times w_s
    risk ratio       a N0 - psi c N1                         N1 = a + b, N0 = c + d
    risk difference  a N0 - c N1 - psi N1 N0

Its variance is V = sum (sigma^2 + tau max(k, 0)) (dh / dk)^2, less for the odds ratio what the noise itself makes of
the squared slopes, sigma^4 (1 + psi^2), which it is at least. The set is all psi with h^2 <= z^2 V (Fieller 1954), its
hull where it has gaps, open where it has no end. No parameter but psi is in it, so nothing is minimised.

`chisq` of more than two by two is the joint test of a saturated model: independence of two columns.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np

from dpmpc.outcome import Answer, Forest, Level, Line, Number, Shape
from dpmpc.statistics.asking import Asking
from dpmpc.statistics.blocks import Part
from dpmpc.statistics.chi_square import chi_square_tail
from dpmpc.statistics.columns import Columns, Owners
from dpmpc.statistics.compile import by_of
from dpmpc.statistics.families import Logit
from dpmpc.statistics.foresight import Expected, Foreseeing
from dpmpc.statistics.heterogeneity import Apart
from dpmpc.statistics.intervals import Floats
from dpmpc.statistics.joint import Coded, counts, joint
from dpmpc.statistics.kind import QuestionKind, told
from dpmpc.statistics.kinds.regression import BETWEEN, between
from dpmpc.statistics.options import OfColumn, Option
from dpmpc.statistics.question import AskedQuestion
from dpmpc.statistics.reading import Reading
from dpmpc.statistics.scores import ScoreModel

_HALVINGS = 40  # of a step of the grid: an end is found to 1e-13
FEWEST = 5.0  # records that a stratum is taken to have at least, in its weight
_GRID = np.concatenate([[0.0], np.exp(np.arange(-8, 8.001, 0.02))])  # of ratios, to 3,000
_TWO = np.array([[[1.0, 0.0]], [[1.0, 1.0]]])  # the logistic model of two groups
_DIFFERENCES = np.linspace(-1.0, 1.0, 2001)
Polynomial = Callable[[Floats, Floats, float], tuple[Floats, Floats]]


def odds(k: Floats, psi: Floats, variance: float) -> tuple[Floats, Floats]:
    """(h (S, N), squares of slopes in a, b, c, d (S, 4, N)) of k (S, 4)."""
    a, b, c, d = (k[:, i, None] for i in range(4))
    one = np.ones_like(psi)[None]
    return a * d - psi * b * c, np.stack([d * one, -psi * c, -psi * b, a * one], axis=1)


def risks(k: Floats, psi: Floats, variance: float) -> tuple[Floats, Floats]:
    """As `odds`, of the ratio of risks."""
    a, b, c, d = (k[:, i, None] for i in range(4))
    N1, N0, one = a + b, c + d, np.ones_like(psi)[None]
    return a * N0 - psi * c * N1, np.stack([N0 - psi * c, -psi * c, a - psi * N1, a * one], axis=1)


def differences(k: Floats, psi: Floats, variance: float) -> tuple[Floats, Floats]:
    """As `odds`, of the difference of risks."""
    a, b, c, d = (k[:, i, None] for i in range(4))
    N1, N0 = a + b, c + d
    h = a * N0 - c * N1 - psi * N1 * N0
    return h, np.stack([N0 - c - psi * N0, -c - psi * N0, a - N1 - psi * N1, a - psi * N1], axis=1)


_POLYNOMIALS: dict[str, Polynomial] = {"or": odds, "rr": risks, "rd": differences}


def statistic(what: str, k: Floats, psi: Floats, variance: float, tau: float, weights: Floats) -> Floats:
    """(N,) h^2 / V of strata k (S, 4) at each psi."""
    h, slopes = _POLYNOMIALS[what](k, psi, variance)
    v = variance + tau * np.maximum(k, 0.0)
    V = np.einsum("si,sin->sn", v, slopes**2)
    if what == "or":
        alone = variance**2 * (1 + psi**2)  # of the noise's own products, which is known
        V = np.maximum(V - alone, alone)
    top = np.einsum("s,sn->n", weights, h)
    bottom = np.einsum("s,sn->n", weights**2, V)
    return np.asarray(np.divide(top**2, bottom, out=np.where(np.abs(top) > 1e-9, np.inf, 0.0), where=bottom > 0))


def interval(what: str, k: Floats, variance: float, level: Level, tau: float, weights: Floats) -> Number:
    """The estimate and the hull of all psi that are not rejected."""
    ratio = what != "rd"
    grid = _GRID if ratio else _DIFFERENCES
    exposed, others = k[:, :2].sum(), k[:, 2:].sum()
    if exposed <= 0 or others <= 0:  # products of what is below 0 are above it
        return Number(None, None, float(grid[0]), math.inf if ratio else 1.0, "not told")
    h, _ = _POLYNOMIALS[what](k, np.array([0.0, 1.0]), variance)
    at = np.einsum("s,sn->n", weights, h)  # linear in psi
    slope = at[0] - at[1]
    estimate = float(at[0] / slope) if slope > 0 and (at[0] >= 0 or not ratio) else None
    if estimate is not None and not variance and not tau:  # exact; a search would tell rounding
        return Number(estimate, 0.0, estimate, estimate)
    values = grid if estimate is None else np.sort(np.append(grid, min(max(estimate, grid[0]), grid[-1])))
    kept = statistic(what, k, values, variance, tau, weights) <= level.z**2
    inside = np.flatnonzero(kept)
    if not len(inside):  # what is not rejected lies beyond the grid, or is nothing that can be
        beyond = ratio and at[0] > 0
        low = float(grid[-1] if beyond else grid[0])
        return Number(low if beyond else None, None, low, math.inf if ratio else 1.0, "" if beyond else "not told")

    first, last = int(inside[0]), int(inside[-1])
    inner = values[[first, last]]
    outer = values[[max(first - 1, 0), min(last + 1, len(values) - 1)]]
    for _ in range(_HALVINGS):  # both ends at once
        middle = (inner + outer) / 2
        held = statistic(what, k, middle, variance, tau, weights) <= level.z**2
        inner, outer = np.where(held, middle, inner), np.where(held, outer, middle)
    top = math.inf if ratio else 1.0
    low = float(values[0] if first == 0 else outer[0])
    high = top if last == len(values) - 1 else float(outer[1])
    if low == grid[0] and high == top:
        return Number(None, None, low, high, "not told")
    note = "open below" if ratio and low == 0.0 else ""
    if estimate is None:
        return Number(low if high == math.inf else (low + high) / 2, None, low, high, note or "approximate")
    _, slopes = _POLYNOMIALS[what](k, np.array([estimate]), variance)
    noise = math.sqrt(variance * float(np.einsum("s,sin->", weights**2, slopes**2))) / slope
    return Number(min(max(estimate, low), high), noise, low, high, note)


class TwoByTwo(QuestionKind):
    """`or(outcome, exposure)`, `rr`, `rd`: crude, and with `strata=` each stratum's and Mantel and Haenszel's. Each
    level of the exposure against its first; of the outcome's last level."""

    least, most, numbers = 2, 2, False
    options: ClassVar[Mapping[str, Option]] = {"strata": OfColumn()}
    titles: ClassVar[Mapping[str, str]] = {"or": "odds ratio", "rr": "risk ratio", "rd": "risk difference"}

    def check(self, reading: Reading, query: AskedQuestion) -> None:
        for token, name in zip(reading.written.parts, query.columns, strict=True):
            column: Any = reading.columns[name]
            if len(column.levels) < 2:
                reading.refuse(token, f"{query.what} needs columns of two levels or more", "name another")
        strata = self.setting(query, "strata")
        if strata is not None and strata in (*query.columns, query.by):
            place = next(o.place for o in reading.written.options)
            reading.refuse(place, "strata are another column than what is asked", "leave one of them out")

    def _coded(self, query: AskedQuestion, columns: Columns) -> tuple[Coded, ...]:
        strata = self.setting(query, "strata")
        return tuple(Coded.of(name, columns) for name in (*query.columns, *([strata] if strata else [])))

    def parts(self, query: AskedQuestion, columns: Columns, models: Mapping[str, ScoreModel]) -> tuple[Part, ...]:
        return (joint(by_of(query, columns), self._coded(query, columns), query.where),)

    def answer(self, asking: Asking) -> Answer:
        query, name = asking.query, self.titles[asking.query.what]
        coded = self._coded(query, asking.columns)
        cells, _, variance, _ = counts(asking, coded)
        if len(coded) < 3:
            cells = cells[..., None]
        outcome, exposure = coded[:2]
        merged = len(outcome.labels) - 1  # levels that are no event are one
        lines: list[Line] = []
        for g, group in enumerate(asking.groups):
            for k, label in enumerate(exposure.labels[1:], 1):
                events, others = cells[g, -1], cells[g, :-1].sum(axis=0)
                strata = np.stack([events[k], others[k], events[0], others[0]], axis=-1)  # (S, 4)
                names = coded[2].labels if coded[2:] else ()
                for of, what, number in self._numbers(asking, name, strata, variance, merged, names):
                    lines.append(Line((*group, label, of), what, number))
                if query.what == "or" and self._over_owners(query, asking.columns):
                    cells_of = np.stack([strata[:, [3, 2]], strata[:, [1, 0]]], axis=1)  # (S, exposed, event)
                    apart = Apart(Logit(), _TWO, cells_of, variance * merged)
                    found = between(asking, apart, 1, (), name)
                    lines += [replace(line, labels=(*group, label, *line.labels)) for line in found]
        event = f"{outcome.name} = {outcome.labels[-1]}, against {exposure.name} {exposure.labels[0]}"
        said = [f"of {event}, of complete records"]
        if coded[2:]:
            said.append(f"crude, within strata of {coded[2].name}, and over them (Mantel-Haenszel weights)")
        if query.what == "or" and self._over_owners(query, asking.columns):
            said += BETWEEN[1:]
        return asking.made((exposure.name, "of"), lines, *said)

    def _over_owners(self, query: AskedQuestion, columns: Columns) -> bool:
        """Whether strata are owners."""
        strata = self.setting(query, "strata")
        return strata is not None and isinstance(columns[str(strata)], Owners)

    def _numbers(
        self, asking: Asking, name: str, strata: Floats, variance: float, merged: int, labels: Sequence[str]
    ) -> list[tuple[str, str, Number]]:
        """(of what, statistic, number)."""
        level, what, S = asking.level, asking.query.what, len(strata)
        tau = 1.0 if level.population else 0.0
        v = variance * merged  # an upper bound where levels of the outcome were summed
        one = np.ones(1)
        crude = strata.sum(axis=0, keepdims=True)
        found = [("crude", name, interval(what, crude, v * S, level, tau, one))]
        sums = strata.sum(axis=1)
        weights = 1 / np.maximum(sums, FEWEST)
        over = [("crude", crude, v * S, one)]
        if S > 1:
            found += [
                (of, name, interval(what, strata[[s]], v, level, tau, one)) for s, of in enumerate(labels)
            ]  # fmt: skip
            found.append(("all strata", name, interval(what, strata, v, level, tau, weights)))
            over.append(("all strata", strata, v, weights))
        if asking.named and asking.opened.rows == 1:
            null = np.array([0.0 if what == "rd" else 1.0])
            for of, k, each, w in over:
                Q = float(statistic(what, k, null, each, 1.0, w)[0])
                found.append((of, "p", Number(chi_square_tail(Q, 1), None, None, None)))
        return found

    def draw(self, answer: Answer) -> tuple[Shape, ...]:
        name = self.titles[answer.question.split("(")[0]]
        return (Forest(name, told(answer, name), ratios=name != "risk difference"),)

    def expect(self, asked: Foreseeing) -> Expected:
        """The standard error of a crude log odds ratio, were records spread evenly over four cells: at least this."""
        coded = self._coded(asked.query, asked.columns)
        groups = math.prod(len(axis.labels) for axis in asked.blocks[0].axes[:-1])
        many = math.prod(len(c.labels) for c in coded)
        cell = max(asked.n / groups / (2 * len(coded[1].labels)), 1e-9)
        deviation = asked.opened.deviation(asked.blocks[0])
        merged = math.prod(getattr(asked.blocks[0].axes[-1], "shape", (many,))) / (2 * len(coded[1].labels))

        def error(factor: float) -> float:
            return math.sqrt(4 * (1 / cell + (factor * deviation) ** 2 * merged / cell**2))

        made, needed = error(1.0), None
        if made > 0.5 > error(0.0):
            low, high = 0.0, 1.0
            for _ in range(30):
                middle = (low + high) / 2
                low, high = (low, middle) if error(middle) > 0.5 else (middle, high)
            needed = low
        also = f"a log odds ratio by at least {made:.2g} (standard error)"
        return Expected(str(asked.query), made, 1.0, also, asked.share, many, line=also, needed=needed)


class ChiSquare(QuestionKind):
    """`chisq(a, b)`: whether two columns depend on each other, by a test that knows the noise."""

    least, most, numbers = 2, 2, False

    def parts(self, query: AskedQuestion, columns: Columns, models: Mapping[str, ScoreModel]) -> tuple[Part, ...]:
        coded = tuple(Coded.of(name, columns) for name in query.columns)
        return (joint(by_of(query, columns), coded, query.where),)

    def answer(self, asking: Asking) -> Answer:
        cells, _, variance, _ = counts(asking, [Coded.of(name, asking.columns) for name in asking.query.columns])
        lines = []
        for g, group in enumerate(asking.groups):
            found = independence(cells[g], variance)
            degrees = (cells.shape[1] - 1) * (cells.shape[2] - 1)
            if found is None or asking.opened.rows > 1:
                lines.append(Line(group, "p", Number(None, None, None, None, "no estimate")))
                continue
            lines += [Line(group, "chi-square", Number(found, None, None, None)),
                      Line(group, "degrees of freedom", Number(degrees, None, None, None)),
                      Line(group, "p", Number(chi_square_tail(found, degrees), None, None, None))]  # fmt: skip
        note = "independence of complete records; the statistic's covariance has the noise in it, and no interval"
        return asking.made((), lines, note)

    def draw(self, answer: Answer) -> tuple[Shape, ...]:
        return ()


def independence(k: Floats, variance: float) -> float | None:
    """The statistic of independence of a noisy table k (R, K): d' W^-1 d of n_ij n - n_i n_j, which independent noise
    moves by a known slope; None where noise hides a margin.

    d_ij = k_ij N - k_i. k_.j for all but the first level of each has the slope N e_ij - k_.j 1_i - k_i. 1_j + k_ij 1 in
    the cells, at independence with k_ij = k_i. k_.j / N; Poisson's variance of cells, at independence too, and that of
    the noise."""
    R, K = k.shape
    N, rows, columns = float(k.sum()), k.sum(axis=1), k.sum(axis=0)
    noise = math.sqrt(variance)
    if N <= 4 * noise * math.sqrt(R * K) or rows.min() <= 2 * noise * math.sqrt(K) or (
        columns.min() <= 2 * noise * math.sqrt(R)
    ):  # fmt: skip
        return None
    even = np.outer(rows, columns) / N
    slopes, d = [], []
    for i in range(1, R):
        for j in range(1, K):
            slope = np.full((R, K), even[i, j])
            slope[i, :] -= columns[j]
            slope[:, j] -= rows[i]
            slope[i, j] += N
            slopes.append(slope.ravel() / N)
            d.append(k[i, j] - rows[i] * columns[j] / N)
    J, v = np.array(slopes), variance + even.ravel()
    W = (J * v) @ J.T
    return float(np.array(d) @ np.linalg.solve(W, np.array(d)))


OR = RR = RD = TwoByTwo()
CHISQ = ChiSquare()
