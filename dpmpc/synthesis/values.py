"""Values for drawn cells: a level's spelling, a number within its cell, nothing for what is missing.

Within the cells of a number the density is the one of greatest entropy, given the cells' masses, whose mean and second
moment are the released ones: proportional to exp(a t + b t^2) in every cell, t in [-1, 1], with one a and one b for
all. They minimise a convex function of two variables; the noise of the moments stands in it as a ridge, so that noise
alone does not bend the density. Below and above the bounds a number is drawn as the bound itself.
"""

from collections.abc import Collection, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmpc.errors import UsageError
from dpmpc.lazy import dataclass
from dpmpc.statistics.blocks import Moments
from dpmpc.statistics.cells import Bins, Ints
from dpmpc.statistics.columns import MISSING, Columns, Quantity
from dpmpc.statistics.compile import axis_of
from dpmpc.statistics.intervals import Floats
from dpmpc.statistics.opened import Opened
from dpmpc.statistics.values import Scaled

MOST_DIGITS = 12
_PARTS = 32  # of a cell, each of even density
_STEPS = 60  # of Newton's method


@dataclass(frozen=True)
class NoisyMoments:
    """The mean of t and of t^2, and the variances of their noise."""

    mean: float
    square: float
    mean_noise: float
    square_noise: float


def moments_of(opened: Opened, column: Quantity) -> NoisyMoments | None:
    """What a release says of a column's moments; None where it does not, or the noise drowns the count."""
    block = Moments(Scaled(column), True)
    if block not in opened.layout.blocks:
        return None
    (n, first, second), noise = opened.raw(block)[0], opened.variances(block)
    if n**2 <= 100 * noise[0]:
        return None
    mean = float(np.clip(first / n, -1, 1))
    square = float(np.clip((second / n + 1) / 2, mean**2, 1))
    return NoisyMoments(mean, square, float(noise[1] / n**2), float(noise[2] / (4 * n**2)))


def numbers_of(columns: Columns) -> dict[str, Quantity]:
    """The columns of numbers, by name."""
    return {column.name: column for column in columns.columns if isinstance(column, Quantity)}


def check_digits(stated: Mapping[str, Any], numbers: Collection[str]) -> None:
    """Errors: decimals of a column that is none of these, or that are no such number."""
    for name, count in stated.items():
        whole = isinstance(count, int) and not isinstance(count, bool)
        if name not in numbers or not whole or not 0 <= count <= MOST_DIGITS:
            raise UsageError(
                f"<<digits>> are 0 to {MOST_DIGITS} decimals of a column of numbers; got {name}={count!r}; correct it",
                code="range",
            )


def digits_of(column: Quantity) -> int:
    """How many decimals a column is written with: none where bounds and cuts are whole numbers, else so many that the
    narrowest cell has a hundred values."""
    edges = column.cuts or (column.low, column.high)
    if all(float(edge).is_integer() for edge in edges):
        return 0
    widths = np.diff(edges)
    return int(min(MOST_DIGITS, max(0, 2 - np.floor(np.log10(widths[widths > 1e-6].min(initial=np.inf))))))


def written(
    columns: Columns, drawn: Mapping[str, Ints], opened: Opened, digits: Mapping[str, int], rng: np.random.Generator
) -> dict[str, NDArray[Any]]:
    """The values of every column: (rows,) float64, NaN where missing, or objects: texts, None where missing."""
    found: dict[str, NDArray[Any]] = {}
    for name in columns.names:
        column, axis = columns[name], axis_of(name, columns)
        if isinstance(column, Quantity):
            assert isinstance(axis, Bins)
            numbers = _numbers(axis, drawn[name], moments_of(opened, column), digits[name], rng)
            found[name] = _spelt(numbers) if column.dates else numbers
        else:
            levels = [None if label == MISSING else label for label in axis.labels]
            found[name] = np.array(levels, dtype=object)[drawn[name]]
    return found


def _spelt(days: Floats) -> NDArray[Any]:
    """Dates as texts, None where missing."""
    known = np.isfinite(days)
    found = np.full(len(days), None, dtype=object)
    found[known] = np.datetime_as_string(days[known].astype("datetime64[D]"))
    return found


def _numbers(axis: Bins, cells: Ints, wanted: NoisyMoments | None, digits: int, rng: np.random.Generator) -> Floats:
    edges, unit = np.array(axis.edges), 10.0**-digits
    inner = len(edges) - 1
    # a cell has the numbers of so many decimals from the first that is at least its lower end to the next cell's
    firsts = np.round(np.ceil(edges / unit - 1e-9) * unit, digits)
    low, high = firsts[:-1], firsts[1:].copy()
    high[-1] = np.floor(edges[-1] / unit + 1e-9) * unit + unit  # the last cell holds its upper end
    empty = high <= low  # cells without such a number: their own ends then
    low, high = np.where(empty, edges[:-1], low), np.where(empty, edges[1:], high)
    width = high - low
    share = np.bincount(cells, minlength=inner + 3)[: inner + 2].astype(np.float64)
    parts = low[:, None] + width[:, None] * (np.arange(_PARTS) / _PARTS)
    law = _tilted(axis.column, parts, width / _PARTS, unit, share, wanted)
    values = np.full(len(cells), np.nan)
    values[cells == 0] = np.round(firsts[0], digits)
    values[cells == inner + 1] = np.round(np.floor(edges[-1] / unit + 1e-9) * unit, digits)
    inside = (cells > 0) & (cells <= inner)
    place = cells[inside] - 1
    # cumulative laws side by side, those of cell k in (k, k + 1]: one search finds the parts of all rows
    sums = np.cumsum(law, axis=1)
    flat = (sums / sums[:, -1:] + np.arange(inner)[:, None]).ravel()
    at = np.minimum(np.searchsorted(flat, place + rng.random(len(place)), side="right"), flat.size - 1)
    part = np.clip(at - place * _PARTS, 0, _PARTS - 1)
    raw = parts[place, part] + width[place] / _PARTS * rng.random(len(place))
    rounded = np.round(np.floor(raw / unit + 1e-9) * unit, digits)
    values[inside] = np.where(empty[place], np.clip(rounded, edges[place], edges[place + 1]), rounded)
    return values


def _tilted(
    column: Quantity, parts: Floats, width: Floats, unit: float, share: Floats, wanted: NoisyMoments | None
) -> Floats:
    """(cells, parts) the density of each part in its cell."""
    law = np.full(parts.shape, 1 / parts.shape[1])
    total = share.sum()
    if wanted is None or not total:
        return law
    fine = parts[:, :, None] + width[:, None, None] * ((np.arange(8) + 0.5) / 8)  # what rounding down makes of a part
    value = np.maximum(np.floor(fine / unit + 1e-9) * unit, parts[:, :1, None]).mean(axis=2)
    scaled = Scaled(column)
    t = np.clip((value - scaled.middle) / scaled.half, -1, 1)
    features = np.stack([t, t**2])
    mass = share[1:-1] / total
    outside = np.array([(share[-1] - share[0]), share[0] + share[-1]]) / total  # t = -1 below, 1 above
    goal = np.array([wanted.mean, wanted.square])
    noise = np.array([wanted.mean_noise, wanted.square_noise])
    tilt = np.zeros(2)
    for _ in range(_STEPS):
        power = np.tensordot(tilt, features, 1)
        law = np.exp(power - power.max(axis=1, keepdims=True))
        law /= law.sum(axis=1, keepdims=True)
        means = (features * law).sum(axis=2)
        gradient = means @ mass + outside - goal + noise * tilt
        away = features - means[:, :, None]
        curve = np.einsum("icp,jcp,cp,c->ij", away, away, law, mass) + np.diag(noise + 1e-12)
        step = np.linalg.solve(curve, gradient)
        tilt = tilt - step * min(1.0, 4.0 / max(float(np.abs(step).max()), 1e-300))
        if np.abs(step).max() < 1e-9:
            break
    return np.asarray(law)
