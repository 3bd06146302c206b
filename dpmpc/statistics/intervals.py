"""Estimates with intervals that know the noise: linear ones, ratios, and ratios of quadratic forms.

All start from raw values, which are normal about the true ones with a known covariance; nothing is projected, clamped
or left out before. An interval is the set of values that a test at the level does not reject (Fieller 1954): for a
ratio theta = A / B the test looks at A - theta B, whose variance is known at theta, so that the coverage holds however
noisy B is; where B itself may be 0 the set is no interval, and there is no estimate.

Quadratic forms: with y ~ N(m, S), y'Ay - tr(AS) has mean m'Am and variance 4 m'ASAm + 2 tr(ASAS), of which
4 y'ASAy - 2 tr(ASAS) is an unbiased estimate; what noise alone makes is never subtracted below 0.
"""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmpc.lazy import dataclass
from dpmpc.outcome import NONE, Level, Number

Floats = NDArray[np.float64]
Ends = tuple[float, float]
FAR = 4.0  # deviations beyond which a ratio is left out whatever else is known
_STEPS = 129


@dataclass(frozen=True)
class Pair:
    """Estimates of A and B, and the covariance of their errors. `first`, `mixed`, `second` may hold variances that
    depend on theta: the variance of A - theta B is first - 2 theta mixed + theta^2 second."""

    a: float
    b: float
    first: float
    mixed: float
    second: float

    def variance(self, theta: Any) -> Any:
        """Of A - theta B."""
        return self.first - 2 * theta * self.mixed + theta**2 * self.second

    def plus(self, first: float, mixed: float = 0.0, second: float = 0.0) -> "Pair":
        """The same with more variance."""
        return Pair(self.a, self.b, self.first + first, self.mixed + mixed, self.second + second)


def linear(estimate: float, variance: float, level: Level) -> Number:
    """A number whose error is normal with this variance."""
    noise = math.sqrt(variance)
    return Number(estimate, noise, estimate - level.z * noise, estimate + level.z * noise)


def ratio(noisy: Pair, level: Level, sampled: Pair | None = None, within: Ends = (-math.inf, math.inf)) -> Number:
    """A / B, B positive. `sampled`: with the variance of sampling too, where the interval is about the population.
    `within`: where the ratio can lie; the interval is cut to it.

    Fieller's set: (A - theta B)^2 <= z^2 (variance at theta), an interval where B^2 > z^2 times B's variance, and wider
    where B is hardly larger than that (`_shown`).
    """
    p = sampled or noisy
    ends = _fieller(p, level.z)
    if noisy.b <= 0 or noisy.b**2 <= level.z**2 * noisy.second or ends is None:
        return NONE
    theta = noisy.a / noisy.b
    low, high = _shown(noisy, p, level.z, ends, within)
    made = math.sqrt(max(noisy.variance(theta), 0.0)) / noisy.b
    note = "" if (low, high) == ends else "conservative"
    return Number(theta, made, low, high, note).within(*within)


def _fieller(p: Pair, z: float) -> Ends | None:
    """The ends of {theta: (A - theta B)^2 <= z^2 variance}; None where it is no interval."""
    lead = p.b**2 - z**2 * p.second
    if lead <= 0:
        return None
    middle, last = p.a * p.b - z**2 * p.mixed, p.a**2 - z**2 * p.first
    spread = math.sqrt(max(middle**2 - lead * last, 0.0)) / lead
    return middle / lead - spread, middle / lead + spread


def _shown(noisy: Pair, p: Pair, z: float, ends: Ends, within: Ends) -> Ends:
    """The ends of an interval that holds the truth often enough among those that are shown.

    A ratio is shown if B is above z deviations of its noise. Where the true B is below that, noise has raised it in all
    that are shown, and has moved A - theta B too, as far as both are correlated. At the true theta
    S = B - cov(B, A - theta B) / var(A - theta B) (A - theta B) is independent of A - theta B and estimates B better
    than B does. So theta is left out only if |A - theta B| is above z deviations and S above z + 1/2 deviations of B:
    the chance of a miss is then at most 5 % of that of the second event, which is about that of being shown. Whatever S
    is, theta is left out at FAR deviations. If B is above z + 1/2 + FAR deviations, nothing changes.
    """
    deviation = math.sqrt(noisy.second)
    least = (z + 0.5) * deviation
    if deviation == 0 or noisy.b >= least + FAR * deviation:
        return ends
    wide = _fieller(p, max(FAR, z))
    width = ends[1] - ends[0]
    outer = (ends[0] - 20 * width, ends[1] + 20 * width) if wide is None else wide
    found = []
    for inner, end in zip(ends, (max(outer[0], within[0]), min(outer[1], within[1])), strict=True):
        theta = np.linspace(inner, end, _STEPS)
        variance = np.maximum(p.variance(theta), 1e-300)
        s = noisy.b - (noisy.mixed - theta * noisy.second) / variance * (noisy.a - theta * noisy.b)
        kept = np.flatnonzero(s <= least)
        found.append(float(theta[kept[-1]]) if len(kept) else inner)
    return min(found[0], ends[0]), max(found[1], ends[1])


def share(noisy: Pair, level: Level) -> Number:
    """A part A of a count B, between 0 and 1. About the population: the score interval, whose sampling variance
    theta (1 - theta) B is that at theta, as Wilson's is."""
    n = max(noisy.b, 0.0)
    return ratio(noisy, level, noisy.plus(0.0, -n / 2, -n) if level.population else None, (0.0, 1.0))


def quadratic(y: Floats, covariance: Floats, A: Floats, B: Floats) -> Pair:
    """Unbiased estimates of m'Am and m'Bm for y ~ N(m, covariance), with the covariance of their errors. A, B
    symmetric."""
    forms = (A, B)
    spread = [form @ covariance for form in forms]
    values = [float(y @ form @ y) - float(np.trace(s)) for form, s in zip(forms, spread, strict=True)]
    seen = np.array([[4 * float(y @ s @ form @ y) for form in forms] for s in spread])
    alone = np.array([[float(np.sum(s * r.T)) for r in spread] for s in spread])
    eigenvalues, vectors = np.linalg.eigh((seen + seen.T) / 2 - 4 * alone)
    kept = (vectors * np.maximum(eigenvalues, 0.0)) @ vectors.T + 2 * alone
    return Pair(values[0], values[1], float(kept[0, 0]), float(kept[0, 1]), float(kept[1, 1]))


def symmetric(A: Floats) -> Floats:
    """The symmetric matrix of the same quadratic form."""
    return np.asarray((A + A.T) / 2)
