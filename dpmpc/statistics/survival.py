"""Survival from a table of arm, event and time: Kaplan-Meier curves and the log-rank test, with the noise in both.

Hazards are raw: events of a bin over those at risk when it begins, negative where the noise makes them so. Clipping
them would bend the curve, and intervals would miss it. The last level of the event's column is the event, the others
are ends of observation; records of which one of the two is not known are in no bin, those beyond the last edge are at
risk to the end. A curve ends, and the test stops, where those at risk are fewer than FEWEST deviations of their noise.
Where they are hardly more, a point is shown because noise has raised them, which has moved the curve too: within MARGIN
deviations of the end intervals are WIDER, and labelled conservative.
"""

import math
from typing import TYPE_CHECKING

import numpy as np

from dpmpc.statistics.blocks import Counts
from dpmpc.statistics.cells import Bins, spelled
from dpmpc.statistics.columns import MISSING, OTHER
from dpmpc.statistics.intervals import NO_ESTIMATE, Floats, Level, Number

if TYPE_CHECKING:
    from dpmpc.statistics.asking import Answer, Asking

FEWEST = 8.0
MARGIN, WIDER = 3.0, 1.5  # deviations: so near FEWEST, intervals reach further by so many
DRAWS = 400  # of the noise, for the variance of the log-rank statistic
_SEED = 20180  # of these draws: post-processing, the same for all who read the release


def kaplan_meier(asking: "Asking") -> "Answer":
    """The answer to `km(time, event) by arm`: each arm's survival at the ends of the bins, and the log-rank test."""
    block = next(asking.blocks)
    assert isinstance(block, Counts)
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
    notes = [f"event: {ends.labels[levels[-1]]}; survival to the end of each bin"]
    arms = [k for k, group in enumerate(asking.groups) if group and group[0] not in (OTHER, MISSING)]
    if len(arms) > 1:
        p = log_rank(deaths[arms], gone[arms], deviation, others)
        notes.append("log-rank test of the arms: " + ("no estimate" if p is None else f"p = {p:.3g}"))
    return asking.made((time,), asking.lines(found), *notes)


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
    found: list[Number] = []
    variance_of = np.concatenate([np.full(bins, deviation**2), np.full(bins + 1, others * deviation**2)])
    variance_of[-1] += deviation**2
    if level.population:
        variance_of = variance_of + np.maximum(np.concatenate([deaths, gone]), 0.0)
    near_the_end = np.minimum.accumulate(risk - (FEWEST + MARGIN) * noise) < 0
    rest = risk - deaths
    with np.errstate(divide="ignore", invalid="ignore"):
        by_risk, by_death = deaths / (risk * rest), 1 / rest
    value, through = 1.0, 0.0
    slope_deaths, slope_gone = np.zeros(bins), np.zeros(bins + 1)
    for j in range(bins):
        if j >= last or rest[j] <= 0:
            found.append(Number(0.0, None, 0.0, 0.0) if j < last and rest[j] == 0 and not deviation else
                         Number(None, None, None, None, NO_ESTIMATE))  # fmt: skip
            continue
        value *= rest[j] / risk[j]
        through += float(by_risk[j])
        # who dies or leaves in bin j or later is at risk in it; who dies in it is one death more
        slope_deaths[j:] += by_risk[j]
        slope_gone[j:] += by_risk[j]
        slope_deaths[j] -= by_death[j]
        slopes = np.concatenate([slope_deaths, slope_gone])
        spread = abs(value) * math.sqrt(float(slopes**2 @ variance_of))
        own = np.concatenate([np.full(bins, deviation**2), np.full(bins + 1, others * deviation**2)])
        made = abs(value) * math.sqrt(float(slopes**2 @ own))
        near = bool(deviation) and near_the_end[j]
        reach = (level.z + (WIDER if near else 0.0)) * spread
        found.append(Number(value, made, value - reach, value + reach, "conservative" if near else "").within(0.0, 1.0))
    return found


def log_rank(deaths: Floats, gone: Floats, deviation: float, others: int) -> float | None:
    """The p-value of the log-rank test of arms (arms, bins), (arms, bins + 1); None where too few are at risk.

    Every arm but the first has U = sum of deaths less those expected; its covariance is the hypergeometric one and that
    which the noise gives U, from draws of the noise. About the population, whose hazards are equal where arms do not
    matter.
    """
    bins, risk = deaths.shape[1], at_risk(deaths, gone)
    noise = deviation * np.sqrt((others + 1.0) * (np.arange(bins, 0, -1) + 1))
    usable = (risk > FEWEST * noise).all(axis=0) if deviation else (risk > 0.5).all(axis=0)
    last = int(np.argmin(usable)) if not usable.all() else bins
    if last == 0:
        return None
    u = _excess(deaths, gone, last)
    d, r = np.maximum(deaths.sum(axis=0), 0.0)[:last], risk.sum(axis=0)[:last]
    part = risk[1:, :last] / r
    each = d * np.maximum(r - d, 0.0) / np.maximum(r - 1, 1.0)
    covariance = np.diag(part @ each) - (part * each) @ part.T
    if deviation:
        rng = np.random.default_rng(_SEED)
        more = gone + deviation * math.sqrt(others) * rng.normal(size=(DRAWS, *gone.shape))
        more[..., -1] += deviation * rng.normal(size=(DRAWS, len(gone)))
        draws = _excess(deaths + deviation * rng.normal(size=(DRAWS, *deaths.shape)), more, last) - u
        covariance = covariance + draws.T @ draws / DRAWS
    if np.linalg.matrix_rank(covariance) < len(u):
        return None
    return chi_square_tail(float(u @ np.linalg.solve(covariance, u)), len(u))


def _excess(deaths: Floats, gone: Floats, last: int) -> Floats:
    """(..., arms - 1) deaths less those expected, over the first `last` bins, of (..., arms, bins)."""
    risk = at_risk(deaths, gone)[..., :last]
    total = risk.sum(axis=-2, keepdims=True)
    expected = risk * (deaths[..., :last].sum(axis=-2, keepdims=True) / np.where(total == 0, 1.0, total))
    return np.asarray((deaths[..., :last] - expected).sum(axis=-1)[..., 1:])


def chi_square_tail(x: float, degrees: int) -> float:
    """P(X > x) of chi^2 with these degrees of freedom: a finite sum where they are whole, without SciPy, whose import
    takes longer than the answers of most runs. Source: Abramowitz and Stegun 1964, 26.4.4 and 26.4.5."""
    half = max(x, 0.0) / 2
    total = math.erfc(math.sqrt(half)) if degrees % 2 else 0.0
    start = 0.5 if degrees % 2 else 0.0
    for i in range(degrees // 2):
        power = i + start
        total += math.exp(power * math.log(half) - half - math.lgamma(power + 1)) if half > 0 else float(power == 0)
    return total
