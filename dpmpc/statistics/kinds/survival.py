"""Survival from a table of arm, event and time: Kaplan-Meier curves and the log-rank test, with the noise in both.

Hazards are raw: events of a bin over those at risk when it begins, negative where the noise makes them so. Clipping
them would bend the curve, and intervals would miss it. The last level of the event's column is the event, the others
are ends of observation; records of which one of the two is not known are in no bin, those beyond the last edge are at
risk to the end. A curve ends, and the test stops, where those at risk are fewer than FEWEST deviations of their noise.
Where they are hardly more, a point is shown because noise has raised them, which has moved the curve too: within MARGIN
deviations of the end intervals are WIDER, and labelled conservative.

Who leaves within a bin is at risk to its end, as where times are whole months. In a population that leaves at any
moment such a curve lies too high: where hazards are even within a bin, d of r die and c leave, -log S grows in it by
-log(1 - (d + c) / r) d / (d + c), and not by -log(1 - d / r). Intervals for the population reach further down by that.
Where more than half of those at risk leave within a bin, as where observation ends at its first edge, next to nothing
is known of what happens in it: the test stops there, and curves for the population end. Not so in the last bin, whose
upper edge is in it: observation ends there, and who is there then was at risk all through.
"""

import math
from collections.abc import Mapping
from functools import lru_cache
from typing import ClassVar

import numpy as np

from dpmpc.outcome import NO_ESTIMATE, Answer, Curves, Level, Number, Shape, spelled
from dpmpc.statistics.asking import Asking
from dpmpc.statistics.blocks import CellCounts, Part
from dpmpc.statistics.cells import Bins, even
from dpmpc.statistics.chi_square import chi_square_tail
from dpmpc.statistics.columns import MISSING, OTHER, Columns, Quantity
from dpmpc.statistics.compile import axis_of, by_of, cells, quantity
from dpmpc.statistics.intervals import Floats
from dpmpc.statistics.kind import QuestionKind, told
from dpmpc.statistics.options import MOST_BINS, Increasing, Option, Whole
from dpmpc.statistics.question import AskedQuestion
from dpmpc.statistics.reading import Reading
from dpmpc.statistics.scores import ScoreModel

FEWEST = 8.0
MARGIN, WIDER = 3.0, 1.5  # deviations: so near FEWEST, intervals reach further by so many
DRAWS = 400  # of the noise, for the variance of the log-rank statistic
_SEED = 20180  # of these draws: post-processing, the same for all who read the release


TO = (
    "survival to just before the end of each bin, the last one's to its end; events at an end itself, as where times "
    "are whole months, are in the next one: set ends between them, such as cuts=[0, 0.5, 1.5, 2.5]"
)
WHOSE = (
    "intervals about the data are of the curve of these bins, in which who leaves within a bin is at risk to its end; "
    "that of exact times lies below it where many leave within a bin: ask for more bins, or about the population"
)


class KaplanMeier(QuestionKind):
    """`km(time, event) by arm`: each arm's survival at the ends of the bins, and the log-rank test."""

    least, most = 2, 2
    options: ClassVar[Mapping[str, Option]] = {"bins": Whole(30.0, 1, MOST_BINS), "cuts": Increasing()}

    def read(self, reading: Reading) -> tuple[tuple[str, ...], tuple[float, ...]]:
        found = reading.names(0, len(reading.written.parts))
        for k, (token, name) in enumerate(zip(reading.written.parts, found, strict=True)):
            if isinstance(reading.columns[name], Quantity) != (k == 0):
                reading.refuse(token, "km needs a time, a number, and an event, a category", "write km(time, event)")
        return reading.names(2, 2), ()

    def parts(self, query: AskedQuestion, columns: Columns, models: Mapping[str, ScoreModel]) -> tuple[Part, ...]:
        time, event = query.columns
        edges, column = self.setting(query, "cuts"), quantity(time, columns)
        axis = Bins(column, edges) if edges else even(column, int(self.setting(query, "bins")))
        return (cells((*by_of(query, columns), axis_of(event, columns), axis), query.where),)

    def answer(self, asking: Asking) -> Answer:
        block = asking.blocks[0]
        assert isinstance(block, CellCounts)
        time, event = asking.query.columns
        axes = {axis.name: axis for axis in block.axes}
        bins, ends = axes[time], axes[event]
        assert isinstance(bins, Bins)
        order = [*(axes[axis.name] for axis in asking.by), ends, bins]
        table = asking.opened.raw(block).reshape([len(axis.labels) for axis in block.axes])
        table = table.transpose([block.axes.index(axis) for axis in order])
        levels = [k for k, label in enumerate(ends.labels) if label not in (OTHER, MISSING)]
        if not asking.by:
            table = table[None]
        deaths = table[:, levels[-1], 1:-2]
        gone = table[:, levels[:-1], 1:-1].sum(axis=1)  # the last: beyond the last edge
        gone[:, -1] += table[:, levels[-1], -2]
        deviation, others = asking.opened.deviation(block), len(levels) - 1
        found = []
        for g, group in enumerate(asking.groups):
            curve = survival(deaths[g], gone[g], deviation, others, asking.level)
            for edge, number in zip(bins.edges[1:], curve, strict=True):
                found.append(((*group, spelled(edge)), "survival", number))
        notes = [f"event: {ends.labels[levels[-1]]}; {TO}"]
        arms = [k for k, group in enumerate(asking.groups) if group and group[0] not in (OTHER, MISSING)]
        if len(arms) > 1:
            p = log_rank_within(deaths[arms], gone[arms], deviation, others)
            notes.append("log-rank test of the arms: " + ("no estimate" if p is None else _p_value(*p)))
        return asking.made((time,), asking.lines(found), *notes, WHOSE)

    def draw(self, answer: Answer) -> tuple[Shape, ...]:
        lines = told(answer, "survival")
        return (Curves("survival", lines, answer.grouped),) if lines else ()


def at_risk(deaths: Floats, gone: Floats) -> Floats:
    """(..., bins) how many have neither died nor left before each bin; gone (..., bins + 1)."""
    left = gone[..., :-1] + deaths
    tail = np.cumsum(left[..., ::-1], axis=-1)[..., ::-1]
    return np.asarray(tail + gone[..., -1:])


def survival(deaths: Floats, gone: Floats, deviation: float, others: int, level: Level) -> list[Number]:
    """Survival to the end of each bin. deaths (bins,), gone (bins + 1,): raw counts; `others`: how many cells each of
    `gone` is the sum of; the last of them has one more.

    The variance is that of the noise to first order (Greenwood's formula is the same with the counts' own variance).
    """
    bins, risk = len(deaths), at_risk(deaths, gone)
    noise = deviation * np.sqrt((others + 1.0) * np.arange(bins, -1, -1)[:bins] + others + 1)
    alive = risk > FEWEST * noise if deviation else risk > 0
    last = int(np.argmin(alive)) if not alive.all() else bins
    if level.population:
        last = min(last, _emptied(risk, gone))
    rest = risk - deaths
    used = (np.arange(bins) < last) & (rest > 0)
    own = np.full(bins, deviation**2), np.append(np.full(bins, others), others + 1) * deviation**2
    near = np.minimum.accumulate(risk - (FEWEST + MARGIN) * noise) < 0
    by_risk, by_death = (np.divide(x, y, out=np.zeros(bins), where=used) for x, y in ((deaths, risk * rest), (1, rest)))
    values = np.cumprod(np.divide(rest, risk, out=np.ones(bins), where=used))
    made = np.abs(values) * _slopes(by_risk, by_death, *own)
    spread, early = made, np.zeros(bins)
    if level.population:
        sampled = own[0] + np.maximum(deaths, 0.0), own[1] + np.maximum(gone, 0.0)
        spread = np.abs(values) * _slopes(by_risk, by_death, *sampled)
        parts = ((deaths[j] / risk[j], gone[j] / risk[j]) for j in range(bins - 1) if used[j])
        early[:-1][used[:-1]] = [_early(*part) for part in parts]
        early = np.cumsum(early)
    found: list[Number] = []
    for j, value in enumerate(values.tolist()):
        if not used[j]:
            found.append(Number(0.0, None, 0.0, 0.0) if j < last and rest[j] == 0 and not deviation else
                         Number(None, None, None, None, NO_ESTIMATE))  # fmt: skip
            continue
        ending = bool(deviation) and bool(near[j])
        reach = (level.z + (WIDER if ending else 0.0)) * float(spread[j])
        high = abs(value) * -math.expm1(-max(float(early[j]), 0.0))
        note = "conservative" if ending or 4 * high > spread[j] else ""
        found.append(Number(value, float(made[j]), value - reach - high, value + reach, note).within(0.0, 1.0))
    return found


def _emptied(risk: Floats, gone: Floats) -> int:
    """The first bin, but the last, that more than half of those at risk leave, in any arm; without one, how many bins
    there are."""
    empty = np.any(np.atleast_2d(gone[..., :-1] > risk / 2), axis=0)[:-1]
    return int(np.argmax(empty)) if np.any(empty) else risk.shape[-1]


def _slopes(by_risk: Floats, by_death: Floats, deaths: Floats, gone: Floats) -> Floats:
    """(bins,) the deviation of log S to the end of each bin, to first order, where counts have these variances: who
    dies or leaves in a bin or later is at risk in it, and who dies in it is one death more."""
    through = np.cumsum(by_risk)
    before = np.cumsum((through - by_death) ** 2 * deaths + through**2 * gone[:-1])
    later = deaths.sum() + gone.sum() - np.cumsum(deaths + gone[:-1])
    return np.asarray(np.sqrt(before + through**2 * later))


def _early(died: float, left: float) -> float:
    """How much more than a curve of those at risk says -log S grows in a bin in which these parts of them die and
    leave, at any moment."""

    def per(part: float) -> float:  # -log(1 - part) / part
        part = min(part, 0.99)
        return -math.log1p(-part) / part if abs(part) > 1e-6 else 1 + part / 2

    return died * (per(died + left) - per(died))


def log_rank(deaths: Floats, gone: Floats, deviation: float, others: int) -> float | None:
    """The p-value of the log-rank test of arms (arms, bins), (arms, bins + 1), where who leaves within a bin is at risk
    to its end; None where too few are at risk."""
    found = log_rank_within(deaths, gone, deviation, others)
    return None if found is None else found[0]


def log_rank_within(deaths: Floats, gone: Floats, deviation: float, others: int) -> tuple[float, float] | None:
    """The same, and the largest p-value there is, at whatever moments within their bins the people of each arm left.

    Every arm but the first has U = sum of deaths less those expected; its covariance is the hypergeometric one and that
    which the noise gives U, from draws of the noise. About the population, whose hazards are equal where arms do not
    matter.
    """
    bins, risk = deaths.shape[1], at_risk(deaths, gone)
    noise = deviation * np.sqrt((others + 1.0) * (np.arange(bins, 0, -1) + 1))
    usable = (risk > FEWEST * noise).all(axis=0) if deviation else (risk > 0.5).all(axis=0)
    last = min(int(np.argmin(usable)) if not usable.all() else bins, _emptied(risk, gone))
    if last == 0:
        return None
    u = _excess(deaths[:, :last], risk[:, :last])
    d, r = np.maximum(deaths.sum(axis=0), 0.0)[:last], risk.sum(axis=0)[:last]
    part = risk[1:, :last] / r
    each = d * np.maximum(r - d, 0.0) / np.maximum(r - 1, 1.0)
    covariance = np.diag(part @ each) - (part * each) @ part.T
    if deviation:
        more = _noise(*deaths.shape, others)
        noisy = (x[:, :last, None] + deviation * y[:, :last] for x, y in zip((deaths, risk), more, strict=True))
        draws = (_excess(*noisy) - u[:, None]).T
        covariance = covariance + draws.T @ draws / DRAWS
    if np.linalg.matrix_rank(covariance) < len(u):
        return None
    inverse = np.linalg.inv(covariance)
    p = chi_square_tail(float(u @ inverse @ u), len(u))
    left = np.where(np.arange(last) < bins - 1, gone[:, :last], 0.0)  # the last bin is closed: they leave at its end
    moved = []
    for arm in range(len(deaths)):
        there = risk[:, :last].copy()
        there[arm] -= left[arm]
        moved.append(_excess(deaths[:, :last], there) - u)
    nearest = _nearest(u, np.array(moved), inverse)
    return p, max(p, chi_square_tail(float(nearest @ inverse @ nearest), len(u)))


def _nearest(u: Floats, moved: Floats, inverse: Floats) -> Floats:
    """u + f moved, f in [0, 1] for each of its rows, that is nearest to 0 in this metric: a convex problem, solved one
    part at a time."""
    f, squares = np.zeros(len(moved)), np.einsum("ai,ij,aj->a", moved, inverse, moved)
    for _ in range(100):
        before = f.copy()
        for a in np.flatnonzero(squares > 0):
            rest = u + f @ moved - f[a] * moved[a]
            f[a] = min(max(-float(moved[a] @ inverse @ rest) / float(squares[a]), 0.0), 1.0)
        if np.array_equal(f, before):  # no more moves it
            break
    return np.asarray(u + f @ moved)


def _p_value(p: float, most: float) -> str:
    more = f"; at most {most:.3g}, at whatever moments within their bins people left" if most > 1.1 * p else ""
    return f"p = {p:.3g}{more}"


@lru_cache(maxsize=8)
def _noise(arms: int, bins: int, others: int) -> tuple[Floats, Floats]:
    """(arms, bins, DRAWS) draws of what noise of deviation 1 adds to deaths and to those at risk: the same for each
    table of this shape."""
    rng = np.random.default_rng(_SEED)
    gone = math.sqrt(others) * rng.normal(size=(DRAWS, arms, bins + 1))
    gone[..., -1] += rng.normal(size=(DRAWS, arms))
    deaths = rng.normal(size=(DRAWS, arms, bins))
    first, second = (np.ascontiguousarray(np.moveaxis(x, 0, -1)) for x in (deaths, at_risk(deaths, gone)))
    return first, second


def _excess(deaths: Floats, risk: Floats) -> Floats:
    """(arms - 1, ...) deaths less those expected of those at risk, each (arms, bins, ...), over all bins."""
    total = risk.sum(axis=0)
    hazard = deaths.sum(axis=0) / np.where(total == 0, 1.0, total)
    return np.asarray((deaths[1:] - risk[1:] * hazard).sum(axis=1))


KM = KaplanMeier()
