"""How often sets of ratios hold the truth, how wide they are, and how often nulls are rejected: releases drawn again.

A setting is a family, a design (levels of covariates, how many have each), how common the outcome is, and effects. Each
release draws records from the population, and the noise that parties would make, sampled by the same circuit in the
clear. Of every coefficient is counted whether the set held the records' own value and the population's, whether it was
open (of the first releases), and what it is wide by; of nulls, how often p was at most .05, and of how many releases
the noise hid no direction (`clear`); of effects, how often they were found. All sets count, open ones too: a set that
is open holds what lies beyond its grid.

    python -m dpmpc.benchmarks.studies.stats effects --repeat 1000 --out docs/experiments/stats
"""

import csv
import math
from collections.abc import Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from dpmpc.benchmarks.result_file import replace_rows
from dpmpc.circuits.sampler import discrete_gaussian
from dpmpc.lazy import dataclass
from dpmpc.mpc.clear.noise import clear_noise
from dpmpc.mpc.numbers.prg import Prg
from dpmpc.privacy.gaussian import gaussian_scale
from dpmpc.statistics.chi_square import mixed_tail
from dpmpc.statistics.families import Family, Hazard, Logit, Ordinal, Poisson, expit
from dpmpc.statistics.intervals import Floats
from dpmpc.statistics.layout import FINEST
from dpmpc.statistics.set_widths import foreseen
from dpmpc.statistics.sets import REACH, CellModel, Ints

_DELTA = 1e-5
_ENDED, _ENDED_OF_MANY, _MANY = 20, 8, 10  # releases of which ends are looked for, of few coefficients and of many;
# all tell whether they hold a value
_POWER = 250  # releases of which is told what was found, but where power is what is asked
_AT_ONCE = 250  # releases
_SAMPLES = 100_000
_TOP, _BINS = 9, 6  # of counts, and of hazards
FILE, FILE_AGAIN = "effects.csv", "effects_again.csv"
LEAST, MOST = 0.93, 0.06  # of releases: that sets hold, that a null is rejected
AGAIN, SEED_AGAIN = 4000, 2
DRAWN = 20  # designs that nobody chose
FIELDS = (
    "setting", "family", "n", "epsilon", "cells", "coefficient", "predicted", "releases", "seed", "data", "population",
    "open", "open_population", "hidden", "width", "over_predicted", "rejected", "rejected_m0", "power", "clear",
)  # fmt: skip


@dataclass(frozen=True)
class EffectDesign:
    """A design. `levels`: how records are spread over each covariate's levels; `common`: the share of the outcome, the
    mean of a count, the share that has the event by the end; `effects`: log ratios after the intercepts; `null`:
    coefficients whose effects are 0 and that are tested; `early`: who leaves before the end, by the first covariate's
    level; `family`: "logit", "poisson", "ordinal" of four levels, or "cox" of six bins; `together`: the log of how many
    times commoner records beyond the first level of both of the first two covariates are than if these were
    independent; `crossed`: whether the model has an interaction of their second levels, its last effect."""

    name: str
    levels: tuple[tuple[float, ...], ...]
    common: float
    effects: tuple[float, ...]
    null: tuple[int, ...] = ()
    family: str = "logit"
    early: tuple[float, ...] = ()
    together: float = 0.0
    crossed: bool = False

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(len(level) for level in self.levels)

    @property
    def model(self) -> Family:
        models: dict[str, Family] = {
            "logit": Logit(), "poisson": Poisson(tuple(float(k) for k in range(_TOP + 1))), "ordinal": Ordinal(4),
            "cox": Hazard(_BINS),
        }  # fmt: skip
        return models[self.family]

    @property
    def part(self) -> Floats:
        """(C,) the share of records in each combination."""
        part = np.ones(1)
        for level in self.levels:
            part = np.outer(part, level).ravel()
        if self.together:
            part = part * np.where((self._places[:, :2] > 0).all(axis=1), math.exp(self.together), 1.0)
        return np.asarray(part / part.sum())

    @property
    def marks(self) -> Floats:
        """(C, coefficients) all levels but the first of each covariate, and what is crossed."""
        places = self._places
        each = [places[:, k] == place for k, many in enumerate(self.shape) for place in range(1, many)]
        return np.stack([*each, *[(places[:, :2] == 1).all(axis=1)] * self.crossed], axis=1).astype(np.float64)

    @property
    def _places(self) -> Ints:
        """(C, covariates) the level of each."""
        return np.array(list(np.ndindex(*self.shape)))

    @property
    def design(self) -> Floats:
        """(C, B, P) intercepts first."""
        B, marks = self.model.predictors, self.marks
        found = np.zeros((len(marks), B, B + marks.shape[1]))
        found[:, :, :B] = np.eye(B)
        found[:, :, B:] = marks[:, None]
        return found

    @property
    def truth(self) -> Floats:
        """(P,) the population's coefficients; of cox baselines are those of exponential times."""
        marks, part = self.marks @ np.array(self.effects), self.part

        def middle(share: Any, wanted: float) -> float:
            low, high = -20.0, 20.0
            for _ in range(60):
                at = (low + high) / 2
                low, high = (at, high) if share(at + marks) < wanted else (low, at)
            return low

        if self.family == "poisson":
            first = [math.log(self.common / float(part @ np.exp(marks)))]
        elif self.family == "ordinal":
            first = [middle(lambda eta: float(part @ expit(eta)), 1 - (k + 1) * self.common) for k in range(3)]
        elif self.family == "cox":
            rate = middle(lambda eta: float(part @ -np.expm1(-np.exp(eta))), self.common)
            first = [rate - math.log(_BINS)] * _BINS
        else:
            first = [middle(lambda eta: float(part @ expit(eta)), self.common)]
        return np.array([*first, *self.effects])

    def drawn(self, n: int, many: int, rng: np.random.Generator) -> Floats:
        """(many, C, J) counts of n records drawn from the population."""
        return drawn(self, n, many, rng)

    def expected(self, n: int) -> Floats:
        """(C, J) the mean of these."""
        if self.family == "cox":
            return n * _mean_exits(self)
        chances = self.model.chances(np.einsum("cbp,p->cb", self.design, self.truth))
        return np.asarray(n * self.part[:, None] * chances)


def _even(many: int) -> tuple[float, ...]:
    return tuple([1 / many] * many)


# none of them is one that the thresholds of `sets` were chosen on: other shapes, shares and effects
SETTINGS = (
    EffectDesign("8 cells", ((0.6, 0.4), (0.55, 0.45)), 0.35, (0.5, -0.4)),
    EffectDesign("three covariates", ((0.6, 0.4), (0.5, 0.3, 0.2), (0.7, 0.3)), 0.25, (0.5, -0.4, 0.7, 0.3)),
    EffectDesign("five levels, uneven", ((0.55, 0.45), (0.4, 0.25, 0.2, 0.1, 0.05)), 0.4, (0.7, 0.3, -0.5, 0.9, 0.0)),
    EffectDesign("a rare exposure", ((0.97, 0.03), (0.5, 0.5), (0.4, 0.3, 0.3)), 0.3, (0.8, 0.2, -0.3, 0.4)),
    EffectDesign("a rare outcome", ((0.5, 0.5), (0.5, 0.3, 0.2)), 0.03, (0.7, 0.4, -0.2)),
    EffectDesign("strong effects", ((0.5, 0.5), (0.4, 0.3, 0.3), (0.6, 0.4)), 0.2, (1.9, 1.2, -1.4, 0.9)),
    EffectDesign("40 cells", (_even(2), _even(2), _even(5)), 0.35, (0.4, -0.3, 0.5, 0.2, -0.6, 0.3)),
    EffectDesign("12 sites", ((0.65, 0.35), (0.5, 0.5), _even(12)), 0.3, (0.6, -0.3, *np.linspace(-0.6, 0.5, 11))),
    EffectDesign("480 cells", (_even(2), _even(3), _even(4), _even(10)), 0.4,
            (0.5, 0.3, -0.3, 0.2, 0.4, -0.4, *np.linspace(-0.5, 0.5, 9))),
    EffectDesign("a count", ((0.6, 0.4), (0.5, 0.3, 0.2)), 0.7, (0.5, 0.3, -0.4), family="poisson"),
    EffectDesign("four grades", ((0.5, 0.5), (0.5, 0.3, 0.2)), 0.25, (0.6, -0.5, 0.4), family="ordinal"),
    EffectDesign("survival", ((0.5, 0.5), (0.6, 0.4)), 0.5, (0.5, -0.3), family="cox", early=(0.1, 0.5)),
)  # fmt: skip
NULLS = (
    EffectDesign("null: rare exposure", ((0.96, 0.04), (0.5, 0.3, 0.2)), 0.3, (0.0, 0.4, -0.3), (0,)),
    EffectDesign("null: rare outcome", ((0.5, 0.5), (0.5, 0.3, 0.2)), 0.04, (0.0, 0.5, -0.3), (0,)),
    EffectDesign("null: strong others", ((0.5, 0.5), (0.4, 0.3, 0.3), (0.6, 0.4)), 0.3, (0.0, 1.6, -1.6, 1.2), (0,)),
    EffectDesign("null: separated level", ((0.5, 0.5), (0.6, 0.3, 0.1)), 0.3, (0.0, 0.4, -9.0), (0,)),
    EffectDesign("null: 20 sites", ((0.5, 0.5), _even(20)), 0.4, (0.0, *np.linspace(-0.5, 0.5, 19)), (0,)),
    EffectDesign("null: empty level", ((0.5, 0.5), (0.6, 0.4, 0.0)), 0.3, (0.0, 0.4, 0.2), (0,)),
    EffectDesign("null: a factor of four", ((0.4, 0.3, 0.2, 0.1), (0.6, 0.4)), 0.3, (0.0, 0.0, 0.0, 0.5), (0, 1, 2)),
    EffectDesign("null: survival", ((0.5, 0.5), (0.6, 0.4)), 0.5, (0.0, 0.6), (0,), "cox", (0.1, 0.5)),
    EffectDesign("null: a count", ((0.5, 0.5), (0.5, 0.3, 0.2)), 0.7, (0.0, 0.6, -0.4), (0,), "poisson"),
    EffectDesign("null: four grades", ((0.5, 0.5), (0.5, 0.3, 0.2)), 0.25, (0.0, 0.6, -0.4), (0,), "ordinal"),
)
POWER = (  # an odds ratio of 2
    EffectDesign("power: even", ((0.5, 0.5), (0.5, 0.3, 0.2)), 0.3, (math.log(2), 0.4, -0.3)),
    EffectDesign("power: a small exposure", ((0.9, 0.1), (0.5, 0.3, 0.2)), 0.3, (math.log(2), 0.4, -0.3)),
    EffectDesign("power: 40 cells", ((0.7, 0.3), _even(2), _even(5)), 0.35, (math.log(2), -0.3, 0.5, 0.2, -0.6, 0.3)),
)


def drawn_settings(many: int, seed: int = 56) -> Iterator[tuple[EffectDesign, int, float]]:
    """(design, records, epsilon) that nobody chose: shares of levels from one in twenty, common and rare outcomes,
    covariates that depend on each other, interactions, strata of up to eight sites. One that a dry run would refuse, as
    it tells nothing of a coefficient, is drawn again."""
    rng = np.random.default_rng(seed)
    for k in range(many):
        while True:
            family = ("logit", "cox", "logit", "poisson", "logit", "ordinal")[k % 6]
            rare = float(rng.uniform(0.05, 0.5))
            others = [tuple(np.round(rng.dirichlet([3.0] * int(rng.integers(2, 5))), 3).tolist())]
            if family == "logit" and rng.random() < 0.4:
                others.append(_even(int(rng.integers(3, 9))))  # sites
            common = {"logit": (0.05, 0.5), "poisson": (0.3, 1.2), "ordinal": (0.05, 0.3), "cox": (0.15, 0.8)}[family]
            crossed = bool(rng.random() < 0.3)
            levels = ((round(1 - rare, 3), round(rare, 3)), *others)
            effects = rng.normal(0, 0.7, sum(map(len, levels)) - len(levels) + crossed)
            early = tuple(np.round(rng.uniform(0, 0.6, 2), 2).tolist()) if family == "cox" else ()
            setting = EffectDesign(
                f"drawn: {k + 1}", levels, round(float(rng.uniform(*common)), 3),
                tuple(np.round(effects, 2).tolist()), (), family, early, round(float(rng.normal(0, 0.7)), 2), crossed,
            )  # fmt: skip
            n, epsilon = int(rng.choice([1000, 3000, 10_000, 30_000])), float(rng.choice([0.3, 1.0, 3.0]))
            if predicted_errors(setting, n, _sigma(epsilon)).max() <= 1.0:
                break
        yield setting, n, epsilon


def drawn(setting: EffectDesign, n: int, many: int, rng: np.random.Generator) -> Floats:
    """(many, C, J) counts of records drawn from the population."""
    model, part, theta = setting.model, setting.part, setting.truth
    eta = np.einsum("cbp,p->cb", setting.design, theta)
    if setting.family != "cox":
        chances = part[:, None] * model.chances(eta)
        flat = chances.ravel() / (1.0 if setting.family == "poisson" else chances.sum())
        rest = max(0.0, 1.0 - flat.sum())  # counts above the last are left out
        found = rng.multinomial(n, [*flat, rest] / (flat.sum() + rest), many)[:, :-1]
        return found.reshape(many, len(part), -1).astype(np.float64)
    exits = np.empty((many, len(part), model.cells))
    for t in range(many):
        exits[t] = _followed(setting, n, np.exp(eta[:, 0]), rng)
    return exits


@lru_cache(maxsize=64)
def _mean_exits(setting: EffectDesign) -> Floats:
    """(C, J) the mean of a record, from 200,000."""
    return np.asarray(drawn(setting, 200_000, 1, np.random.default_rng(1))[0] / 200_000)


def _followed(setting: EffectDesign, n: int, rates: Floats, rng: np.random.Generator) -> Floats:
    """(C, 2 bins + 1) exits of records that are followed for all bins: exponential times, of some an early leave at any
    moment, counted at the two boundaries of its bin."""
    B = _BINS
    c = rng.choice(len(rates), n, p=setting.part)
    time = rng.exponential(1 / rates[c])
    first = np.array(list(np.ndindex(*setting.shape)))[c, 0]
    leaves = np.where(rng.random(n) < np.array(setting.early)[first], rng.uniform(0, B, n), float(B))
    died, at = time <= leaves, np.minimum(time, leaves)
    place = np.minimum(at.astype(np.int64), B - 1)
    share = np.where(died, 1.0, at - place)
    cells = 2 * B + 1
    upper = c * cells + np.where(died, place, B + place + 1)
    lower = c * cells + B + place
    found = np.bincount(upper, share, len(rates) * cells) + np.bincount(lower, 1 - share, len(rates) * cells)
    return np.asarray(found.reshape(-1, cells))


def noise(sigma: float, shape: tuple[int, ...], prg: Prg) -> Floats:
    """Discrete noise of this deviation, in records, from the circuit that parties evaluate."""
    many, steps = math.prod(shape), float(1 << FINEST)
    sampler = discrete_gaussian(sigma * steps)
    parts = [clear_noise(sampler, min(_SAMPLES, many - k), prg) for k in range(0, many, _SAMPLES)]
    return np.concatenate(parts).reshape(shape) / steps


def _widths(table: CellModel, which: Ints, of: Ints, deviations: Floats, truth: Floats) -> Floats:
    """(N,) how long sets are, from their roots outward to where values are rejected, to some 4 % of a deviation;
    infinite where an end of the grid is kept. Where there is no root it begins at the truth, and where that is rejected
    the set is made whole."""
    centre = table.roots()[of, which]
    found = np.full(len(which), np.inf)
    closed = np.ones(len(which), dtype=bool)
    for side in (-1.0, 1.0):
        at = np.flatnonzero(closed)
        closed[at] = ~table.keeps(which[at].tolist(), [side * REACH] * len(at), 0.05, of[at])
    far = np.flatnonzero(closed & ~(np.abs(centre) < REACH))
    centre[far] = truth[far]
    rest = far[~table.keeps(which[far].tolist(), truth[far].tolist(), 0.05, of[far])]
    closed[rest] = False
    rows = np.flatnonzero(closed)
    ends = []
    for side in (-1.0, 1.0):
        inner, step = centre[rows].copy(), np.minimum(deviations[which[rows]], 1.0)
        outer, open_ = inner + side * 1.5 * step, np.ones(len(rows), dtype=bool)
        while open_.any():  # to the first value that is rejected
            at = np.flatnonzero(open_)
            outer[at] = np.clip(outer[at], -REACH, REACH)
            kept = table.keeps(which[rows[at]].tolist(), outer[at].tolist(), 0.05, of[rows[at]])
            inner[at[kept]] = outer[at[kept]]
            outer[at[kept]] += side * step[at[kept]]
            open_[at[~kept | (np.abs(inner[at]) >= REACH)]] = False
        for _ in range(5):
            middle = (inner + outer) / 2
            kept = table.keeps(which[rows].tolist(), middle.tolist(), 0.05, of[rows])
            inner, outer = np.where(kept, middle, inner), np.where(kept, outer, middle)
        ends.append((inner + outer) / 2)
    found[rows] = ends[1] - ends[0]
    if len(rest):
        whole = table.sets(which[rest].tolist(), 0.05, of[rest])
        found[rest] = [each.high - each.low for each in whole]
    return found


def _sigma(epsilon: float) -> float:
    """The deviation of a cell's noise, in records."""
    return gaussian_scale(epsilon, _DELTA, math.sqrt(2) * (1 << FINEST)) / (1 << FINEST)


def predicted_errors(setting: EffectDesign, n: int, sigma: float) -> Floats:
    """(P,) the standard errors that a dry run would tell of the true parameters and shares, intercepts left out."""
    B, P = setting.model.predictors, setting.design.shape[2]
    found, which = np.zeros(P), np.arange(B, P)
    expected = CellModel(setting.model, setting.design, setting.expected(n), sigma**2, 0.0, 1.0)
    found[B:] = foreseen(expected, setting.truth, which)
    return found


def measured(
    setting: EffectDesign, n: int, epsilon: float, repeat: int, seed: int = 1, ended: int | None = None
) -> Iterator[dict[str, Any]]:
    """A row a coefficient: the shares of releases, and medians. `ended`: of how many releases sets are followed to
    their ends, which takes longer than all else; of none: the row says nothing of that."""
    own_seed = [seed, n, round(1000 * epsilon), *setting.name.encode()]
    rng, design, model, theta = np.random.default_rng(own_seed), setting.design, setting.model, setting.truth
    prg = Prg(rng.bytes(32))
    sigma = _sigma(epsilon)
    B, P = model.predictors, design.shape[2]
    which = np.arange(B, P)
    tests = [B + k for k in setting.null]
    predicted = predicted_errors(setting, n, sigma)
    names = "data", "population", "open", "open_population", "hidden", "power", "rejected", "clear", "rejected_m0"
    sums: dict[str, Floats] = {name: np.zeros(P) for name in names}
    widths, over = [], []
    ended = ended if ended is not None else _ENDED_OF_MANY if P > _MANY else _ENDED
    tried = repeat if setting in POWER else _POWER
    for first in range(0, repeat, _AT_ONCE):
        T = min(_AT_ONCE, repeat - first)
        counts = setting.drawn(n, T, rng)
        noisy = counts + noise(sigma, counts.shape, prg)
        tables = [CellModel(model, design, noisy, sigma**2, 0.0, tau) for tau in (0.0, 1.0)]
        if tests:
            for j in [*tests, *([0] if len(tests) > 1 else [])]:  # 0: all of them together
                Q, m = tables[1].at_zero(tests if j == 0 else [j])
                q = len(tests) if j == 0 else 1
                low = np.array([mixed_tail(float(a), q, int(b)) <= 0.05 for a, b in zip(Q, m, strict=True)])
                sums["rejected"][j] += low.sum()
                sums["clear"][j] += np.sum(m == 0)
                sums["rejected_m0"][j] += np.sum(low & (m == 0))
            continue
        of, each = np.repeat(np.arange(T), len(which)), np.tile(which, T)
        own = CellModel(model, design, counts, 0.0).roots()
        # the records' own ratio has no bound where a level is separated: only an open set holds it
        data = np.where(np.isnan(own), np.copysign(REACH, theta), own)[:, which].ravel()
        truths = {"data": data, "population": np.tile(theta[which], T)}
        for table, about in zip(tables, truths, strict=True):
            inside = table.keeps(each.tolist(), truths[about].tolist(), 0.05, of)
            sums[about][which] += inside.reshape(T, -1).sum(axis=0)
        if first < tried:
            low = ~tables[1].keeps(each.tolist(), [0.0] * len(each), 0.05, of)  # p at most .05
            sums["power"][which] += low.reshape(T, -1).sum(axis=0)
        some = max(0, min(T, ended - first))
        if some:
            for j in which.tolist():
                few = CellModel(model, design, noisy[:some], sigma**2, 0.0, 1.0)
                sums["hidden"][j] += np.sum(few.at_zero([j])[1] > 0)
            rows = slice(0, some * len(which))
            reach = _widths(tables[1], each[rows], of[rows], predicted, truths["population"][rows])
            own_ends = [tables[0].keeps(each[rows].tolist(), [side * REACH] * len(reach), 0.05, of[rows])
                        for side in (-1, 1)]  # fmt: skip
            sums["open"][which] += (own_ends[0] | own_ends[1]).reshape(some, -1).sum(axis=0)
            reach = reach.reshape(some, -1) / (2 * 1.96)
            sums["open_population"][which] += np.sum(np.isinf(reach), axis=0)
            plain = CellModel(model, design, counts[:some], 0.0, 0.0, 1.0)
            known = plain.deviations(np.nan_to_num(own[:some]), np.arange(some))[:, which]
            widths.append(reach / np.where(np.isnan(own[:some, which]), np.inf, known))
            over.append(reach)
    wide = np.median(np.concatenate(widths), axis=0) if widths else np.zeros(0)
    reached = np.median(np.concatenate(over), axis=0) if over else np.zeros(0)
    for j in tests + ([0] if len(tests) > 1 else []) if tests else which.tolist():
        row: dict[str, Any] = {
            "setting": setting.name, "family": setting.family, "n": n, "epsilon": epsilon,
            "cells": design.shape[0] * model.cells, "coefficient": j - B + 1 if j else "all",
            "predicted": f"{predicted[j]:.4g}" if j else "", "releases": repeat, "seed": seed,
        }  # fmt: skip
        if tests:
            part = sums["rejected_m0"][j] / sums["clear"][j] if sums["clear"][j] else math.nan
            row |= {"rejected": f"{sums['rejected'][j] / repeat:.4g}", "clear": int(sums["clear"][j])}
            row |= {} if math.isnan(part) else {"rejected_m0": f"{part:.4g}"}
        else:
            looked = {"open": ended, "open_population": ended, "hidden": ended, "power": tried}
            of_each = {name: min(repeat, looked.get(name, repeat)) for name in names[:6]}
            row |= {name: f"{sums[name][j] / many:.4g}" for name, many in of_each.items() if many}
            if len(wide):
                row |= {"width": f"{wide[j - B]:.4g}", "over_predicted": f"{reached[j - B] / predicted[j]:.4g}"}
        yield {name: row.get(name, "") for name in FIELDS}


def effects(
    out: Path | None, repeat: int, sizes: Sequence[int] = (2000, 5000, 20_000, 100_000),
    epsilons: Sequence[float] = (0.3, 1.0, 3.0), settings: Sequence[str] = (), seed: int = 1,
    more: Sequence[EffectDesign] = (), missing: bool = False, drawn_ones: int = 0,
) -> list[dict[str, Any]]:  # fmt: skip
    """All settings and `more`, written as they come; rows of the same setting, size, epsilon and seed are replaced.
    `missing`: only those of which the file has fewer releases; `drawn_ones`: how many of `drawn_settings` besides."""
    rows: list[dict[str, Any]] = []
    runs = [(each, n, e) for each in (*SETTINGS, *NULLS, *POWER, *more) for n in sizes for e in epsilons]
    had = {_key(row): int(row["releases"]) for row in read_rows(out / FILE)} if out is not None and missing else {}
    for setting, n, epsilon in (*runs, *drawn_settings(drawn_ones)):
        if (settings and setting.name not in settings) or had.get((setting.name, n, epsilon), 0) >= repeat:
            continue
        ended = 0 if setting.name.startswith("drawn") else None
        rows += _kept(out / FILE if out is not None else None, measured(setting, n, epsilon, repeat, seed, ended))
    return rows


def effects_again(out: Path, more: Sequence[EffectDesign] = ()) -> list[dict[str, Any]]:
    """What fell short in the file of `effects` is run again, once, with AGAIN releases of another seed, and that
    counts: coefficients whose sets held less than LEAST, nulls that were rejected more than MOST."""
    designs = _named(more)
    done = {_key(row) for row in read_rows(out / FILE_AGAIN) if int(row["releases"]) >= AGAIN}
    rows: list[dict[str, Any]] = []
    for name, n, epsilon in dict.fromkeys(_key(row) for row in read_rows(out / FILE) if short(row)):
        if (name, n, epsilon) not in done and name in designs:
            rows += _kept(out / FILE_AGAIN, measured(designs[name], n, epsilon, AGAIN, SEED_AGAIN))
    return rows


def predict_again(out: Path, more: Sequence[EffectDesign] = ()) -> None:
    """Writes what is predicted now into the files of `effects`, of the same releases."""
    designs = _named(more)
    for name in (FILE, FILE_AGAIN):
        rows = read_rows(out / name)
        told: dict[tuple[str, int, float], Floats] = {}
        for row in rows:
            key = _key(row)
            if key[0] not in designs or not row["coefficient"].isdigit():
                continue
            if key not in told:
                told[key] = predicted_errors(designs[key[0]], key[1], _sigma(key[2]))
            now = float(told[key][designs[key[0]].model.predictors + int(row["coefficient"]) - 1])
            if row["over_predicted"]:
                row["over_predicted"] = f"{float(row['over_predicted']) * float(row['predicted']) / now:.4g}"
            row["predicted"] = f"{now:.4g}"
        for key in dict.fromkeys(_key(row) for row in rows):
            mine = [{each: row.get(each) or "" for each in FIELDS} for row in rows if _key(row) == key]
            replace_rows(out / name, mine, ("setting", "n", "epsilon"))


def _named(more: Sequence[EffectDesign]) -> dict[str, EffectDesign]:
    return {each.name: each for each in (*SETTINGS, *NULLS, *POWER, *more, *(of[0] for of in drawn_settings(DRAWN)))}


def short(row: dict[str, str]) -> bool:
    """Whether sets held too rarely, or a null was rejected too often."""
    if row["rejected"]:
        return float(row["rejected"]) > MOST
    return min(float(row["data"]), float(row["population"])) < LEAST


def read_rows(path: Path) -> list[dict[str, str]]:
    if not path.exists():
        return []
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def _key(row: dict[str, str]) -> tuple[str, int, float]:
    return row["setting"], int(row["n"]), float(row["epsilon"])


def _kept(path: Path | None, rows: Iterator[dict[str, Any]]) -> list[dict[str, Any]]:
    found = list(rows)
    for row in found:
        print(",".join(str(row[name]) for name in FIELDS), flush=True)
    if path is not None:
        replace_rows(path, found, ("setting", "n", "epsilon"))
    return found
