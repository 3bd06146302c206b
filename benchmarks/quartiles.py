"""Median and quartiles of repeated measurements, and slopes of growth with confidence intervals."""

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Figure:
    """Repetitions summed up: seconds, or whatever was measured."""

    median: float
    q1: float
    q3: float
    repetitions: int

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def figure(values: Sequence[float] | np.ndarray[Any, Any]) -> Figure:
    """Median, quartiles and number of `values`."""
    q1, median, q3 = (float(q) for q in np.percentile(np.asarray(values, dtype=np.float64), [25, 50, 75]))
    return Figure(median, q1, q3, len(values))


@dataclass(frozen=True)
class Slope:
    """The exponent of a power law: least squares of log cost on log size, with its 95 % confidence interval."""

    value: float
    low: float
    high: float
    points: int


def slope(sizes: Sequence[float], costs: Sequence[float]) -> Slope:
    """The slope through at least 3 points of distinct sizes; the interval is Student's, from the residuals."""
    from scipy import stats

    fit = stats.linregress(np.log(sizes), np.log(costs))
    half = float(fit.stderr) * float(stats.t.ppf(0.975, len(sizes) - 2)) if len(sizes) > 2 else math.inf
    return Slope(float(fit.slope), float(fit.slope) - half, float(fit.slope) + half, len(sizes))
