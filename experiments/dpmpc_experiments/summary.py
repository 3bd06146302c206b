"""Means and bands over seeds, and the small CSV files that are committed."""

import csv
import math
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from dpmpc.lazy import dataclass
from dpmpc_experiments.task import Row


@dataclass(frozen=True)
class Curve:
    """A metric over x: mean, and the 95 % confidence band of the mean over runs (Student's t)."""

    x: tuple[float, ...]
    mean: tuple[float, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]
    count: int

    def at(self, x: float) -> float:
        """The mean at the recorded x nearest to this one."""
        return self.mean[int(np.argmin([abs(value - x) for value in self.x]))]


def select(rows: Sequence[Row], **equal: object) -> list[Row]:
    """The rows whose columns have these values."""
    return [row for row in rows if all(row[name] == value for name, value in equal.items())]


def values(rows: Sequence[Row], column: str) -> list[str | float]:
    """The distinct values of a column, in order of appearance."""
    return list(dict.fromkeys(row[column] for row in rows))


def curve(
    rows: Sequence[Row],
    metric: str,
    x: str | Callable[[Row], float] = "iteration",
    within: tuple[float, float] = (-math.inf, math.inf),
) -> Curve:
    """The metric of these rows against x (a column or a function of a row), over whatever else differs between them.

    within: the metric's range, which its band is cut to ((0, 1) for accuracies).
    """
    groups: dict[float, list[float]] = {}
    for row in rows:
        groups.setdefault(float(row[x]) if isinstance(x, str) else x(row), []).append(float(row[metric]))
    xs = sorted(groups)
    mean, half = zip(*(interval(groups[value]) for value in xs), strict=True) if xs else ((), ())
    low = tuple(max(within[0], a - b) for a, b in zip(mean, half, strict=True))
    high = tuple(min(within[1], a + b) for a, b in zip(mean, half, strict=True))
    return Curve(tuple(xs), tuple(mean), low, high, min((len(groups[value]) for value in xs), default=0))


def spread(a: Curve, b: Curve, i: int) -> tuple[float, float]:
    """(a - b, half the width of its 95 % interval) at the i-th x of each; i may be negative. Independent runs."""
    halves = [max(line.high[i] - line.mean[i], line.mean[i] - line.low[i]) for line in (a, b)]
    return a.mean[i] - b.mean[i], math.hypot(*halves)


def change(line: Curve) -> tuple[float, float]:
    """(last - first, half the width of its 95 % interval) of a curve whose points are of independent runs."""
    halves = [max(line.high[i] - line.mean[i], line.mean[i] - line.low[i]) for i in (0, -1)]
    return line.mean[-1] - line.mean[0], math.hypot(*halves)


def alike(difference: float, half: float, margin: float) -> str:
    """An equivalence test at 95 %: "alike" if the whole interval lies within the margin, "apart" if none of it does,
    else "undecided": a wide interval decides nothing."""
    if abs(difference) + half < margin:
        return "alike"
    return "apart" if abs(difference) - half > margin else "undecided"


def interval(sample: Sequence[float]) -> tuple[float, float]:
    """(mean, half the width of its 95 % interval) of independent values (Student's t)."""
    from scipy.stats import t  # slow to import

    n = len(sample)
    mean = math.fsum(sample) / n
    if n < 2 or not math.isfinite(mean):
        return mean, 0.0
    return mean, float(t.ppf(0.975, n - 1)) * float(np.std(sample, ddof=1)) / math.sqrt(n)


def write_summary(rows: Sequence[Row], keys: Sequence[str], metrics: Sequence[str], path: Path) -> None:
    """A CSV with one line for each combination of keys: the number of runs, and mean and deviation of each metric."""
    groups: dict[tuple[str | float, ...], list[Row]] = {}
    for row in rows:
        groups.setdefault(tuple(row[key] for key in keys), []).append(row)
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow([*keys, "runs", *(f"{metric}_{what}" for metric in metrics for what in ("mean", "sd"))])
        for key, members in groups.items():
            cells = [f"{cell:g}" if isinstance(cell, float) else cell for cell in key]
            for metric in metrics:
                sample = np.array([float(row[metric]) for row in members])
                spread = float(sample.std(ddof=1)) if len(sample) > 1 else 0.0
                cells += [f"{sample.mean():.4g}", f"{spread:.3g}"]
            writer.writerow([*cells[: len(keys)], len(members), *cells[len(keys) :]])
