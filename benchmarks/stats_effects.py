"""How often sets of ratios hold the truth, how wide they are, and how often nulls are rejected: releases drawn again.

A setting is a design (levels of covariates, how many have each, the outcome's share, the size of effects), records and
epsilon. Each release draws records, for the population, and noise. Of every coefficient is counted whether the set held
the records' own value and the population's, whether it was open, its width over the one without noise; of the nulls,
how often p was at most .05. All sets count, open ones too.

    python -m dpmpc.benchmarks.stats effects --repeat 1000 --out docs/experiments/stats
"""

import csv
import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from dpmpc.lazy import dataclass
from dpmpc.privacy.gaussian import gaussian_scale
from dpmpc.statistics.families import Logit
from dpmpc.statistics.intervals import Floats
from dpmpc.statistics.sets import REACH, Table

_DELTA = 1e-5
_DRAWN = 10  # releases of which whole sets are made, for their ends; whether they hold a value is told without
FIELDS = (
    "setting", "n", "epsilon", "cells", "coefficient", "predicted", "releases", "data", "population", "open",
    "open_population", "hidden", "width", "rejected", "p_m0",
)  # fmt: skip


@dataclass(frozen=True)
class Setting:
    """A design. `levels`: how records are spread over each covariate's levels; `share`: of the outcome; `effects`: log
    ratios after the intercept; `null`: coefficients whose effects are 0 and that are tested."""

    name: str
    levels: tuple[tuple[float, ...], ...]
    share: float
    effects: tuple[float, ...]
    null: tuple[int, ...] = ()

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(len(level) for level in self.levels)


def _even(many: int) -> tuple[float, ...]:
    return tuple([1 / many] * many)


# none of them is one that the thresholds of `sets` were chosen on: other shapes, shares and effects
SETTINGS = (
    Setting("three covariates", ((0.6, 0.4), (0.5, 0.3, 0.2), (0.7, 0.3)), 0.25, (0.5, -0.4, 0.7, 0.3)),
    Setting("five levels, uneven", ((0.55, 0.45), (0.4, 0.25, 0.2, 0.1, 0.05)), 0.4, (0.7, 0.3, -0.5, 0.9, 0.0)),
    Setting("a rare exposure", ((0.97, 0.03), (0.5, 0.5), (0.4, 0.3, 0.3)), 0.3, (0.8, 0.2, -0.3, 0.4)),
    Setting("a rare outcome", ((0.5, 0.5), (0.5, 0.3, 0.2)), 0.03, (0.7, 0.4, -0.2)),
    Setting("strong effects", ((0.5, 0.5), (0.4, 0.3, 0.3), (0.6, 0.4)), 0.2, (1.9, 1.2, -1.4, 0.9)),
    Setting("40 cells", (_even(2), _even(2), _even(5)), 0.35, (0.4, -0.3, 0.5, 0.2, -0.6, 0.3)),
)
NULLS = (
    Setting("null: rare exposure", ((0.96, 0.04), (0.5, 0.3, 0.2)), 0.3, (0.0, 0.4, -0.3), (0,)),
    Setting("null: rare outcome", ((0.5, 0.5), (0.5, 0.3, 0.2)), 0.04, (0.0, 0.5, -0.3), (0,)),
    Setting("null: strong others", ((0.5, 0.5), (0.4, 0.3, 0.3), (0.6, 0.4)), 0.3, (0.0, 1.6, -1.6, 1.2), (0,)),
    Setting("null: separated level", ((0.5, 0.5), (0.6, 0.3, 0.1)), 0.3, (0.0, 0.4, -9.0), (0,)),
    Setting("null: 20 sites", ((0.5, 0.5), _even(20)), 0.4, (0.0, *np.linspace(-0.5, 0.5, 19)), (0,)),
    Setting("null: empty level", ((0.5, 0.5), (0.6, 0.4, 0.0)), 0.3, (0.0, 0.4, 0.2), (0,)),
)


def designed(setting: Setting) -> Floats:
    """(C, 1, P) intercept, then all levels but the first of each covariate."""
    places = np.array(list(np.ndindex(*setting.shape)))
    marks = [np.ones(len(places))]
    for k, many in enumerate(setting.shape):
        marks += [(places[:, k] == place).astype(np.float64) for place in range(1, many)]
    return np.stack(marks, axis=1)[:, None, :]


def drawn(setting: Setting, n: int, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """(counts (C, 2) of records drawn from the population, its coefficients)."""
    X = designed(setting)[:, 0]
    part = np.ones(1)
    for level in setting.levels:
        part = np.outer(part, level).ravel()
    effects = np.array(setting.effects)
    low, high = -20.0, 20.0
    for _ in range(60):
        middle = (low + high) / 2
        share = float(part @ (1 / (1 + np.exp(-(middle + X[:, 1:] @ effects)))))
        low, high = (middle, high) if share < setting.share else (low, middle)
    theta = np.array([low, *effects])
    p = 1 / (1 + np.exp(-X @ theta))
    counts = rng.multinomial(n, np.stack([part * (1 - p), part * p], axis=1).ravel() / part.sum())
    return counts.reshape(-1, 2).astype(np.float64), theta


def measured(setting: Setting, n: int, epsilon: float, repeat: int, seed: int = 1) -> Iterator[dict[str, Any]]:
    """A row a coefficient: the shares of releases, and medians."""
    rng, design = np.random.default_rng([seed, n, round(1000 * epsilon), len(setting.name)]), designed(setting)
    sigma = gaussian_scale(epsilon, _DELTA, math.sqrt(2))
    P = design.shape[2]
    which = list(range(1, P))
    tests = [1 + k for k in setting.null]
    held = {about: np.zeros(P) for about in ("data", "population")}
    opened, apart, hidden = np.zeros(P), np.zeros(P), np.zeros(P)
    widths: list[list[float]] = [[] for _ in range(P)]
    rejected, clear, clear_rejected = np.zeros(P), np.zeros(P), np.zeros(P)
    drawn_sets = 0
    for k in range(repeat):
        counts, theta = drawn(setting, n, rng)
        noisy = counts + np.rint(rng.normal(0, sigma, counts.shape))
        tables = [Table(Logit(), design, noisy, sigma**2, 0.0, tau) for tau in (0.0, 1.0)]
        for j in tests:
            chance, m = tables[1].p_of([j])
            rejected[j] += chance <= 0.05
            clear[j] += m == 0
            clear_rejected[j] += chance <= 0.05 and m == 0
        if tests:
            continue
        own = Table(Logit(), design, counts, 0.0).point()
        # the records' own ratio has no bound where a level is separated: only an open set holds it
        data = [float("nan") if own is None else float(own[j]) for j in which]
        far = [math.copysign(REACH, theta[j]) if math.isnan(v) else v for j, v in zip(which, data, strict=True)]
        held["data"][1:] += tables[0].keeps(which, far, 0.05)
        held["population"][1:] += tables[1].keeps(which, list(theta[1:]), 0.05)
        if k >= _DRAWN:
            continue
        drawn_sets += 1
        for table, found in zip(tables, [table.sets(which, 0.05) for table in tables], strict=True):
            infinite = np.array([math.isinf(each.low) or math.isinf(each.high) for each in found])
            (opened if table.tau == 0 else apart)[1:] += infinite
            hidden[1:] += [bool(each.hidden) and table.tau == 1 for each in found]
            if table.tau and own is not None:
                plain = Table(Logit(), design, counts, 0.0, 0.0, 1.0).deviations(own)
                for j, each in zip(which, found, strict=True):
                    widths[j].append((each.high - each.low) / (2 * 1.96 * plain[j]))
    X, part = design[:, 0], np.ones(1)
    for level in setting.levels:
        part = np.outer(part, level).ravel()
    counts, theta = drawn(setting, n, rng)
    p = 1 / (1 + np.exp(-X @ theta))
    expected = n * np.stack([part * (1 - p), part * p], axis=1)
    predicted = Table(Logit(), design, expected, sigma**2, 0.0, 1.0).deviations(theta)
    for j in tests or which:
        yield {
            "setting": setting.name, "n": n, "epsilon": epsilon, "cells": 2 * len(design), "coefficient": j,
            "predicted": round(float(predicted[j]), 4), "releases": repeat,
            "data": "" if tests else held["data"][j] / repeat,
            "population": "" if tests else held["population"][j] / repeat,
            "open": "" if tests else opened[j] / drawn_sets,
            "open_population": "" if tests else apart[j] / drawn_sets,
            "hidden": "" if tests else hidden[j] / drawn_sets,
            "width": "" if tests else round(float(np.median(widths[j])), 3) if widths[j] else "",
            "rejected": rejected[j] / repeat if tests else "",
            "p_m0": clear_rejected[j] / clear[j] if tests and clear[j] else "",
        }  # fmt: skip


def effects(
    out: Path | None, repeat: int, sizes: Sequence[int] = (2000, 5000, 20_000), epsilons: Sequence[float] = (0.3, 1.0),
    settings: Sequence[str] = (), seed: int = 1,
) -> list[dict[str, Any]]:  # fmt: skip
    """All settings, written as they come."""
    rows: list[dict[str, Any]] = []
    for setting in (*SETTINGS, *NULLS):
        if settings and setting.name not in settings:
            continue
        for n in sizes:
            for epsilon in epsilons:
                for row in measured(setting, n, epsilon, repeat, seed):
                    rows.append(row)
                    print(",".join(str(row[name]) for name in FIELDS), flush=True)
                if out is not None:
                    with (out / "effects.csv").open("w", newline="", encoding="utf-8") as file:
                        writer = csv.DictWriter(file, FIELDS, lineterminator="\n")
                        writer.writeheader()
                        writer.writerows(rows)
    return rows
