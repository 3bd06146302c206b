"""Laws on the integers, exactly: what samples are held against. Touches no network and no file."""

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from dpmpc.lazy import dataclass

Integers = NDArray[np.int64]
Reals = NDArray[np.float64]

_SUMMED = 1 << 12  # discrete Gaussians up to this sigma are summed term by term


@dataclass(frozen=True)
class ExactLaw:
    """A law on the integers.

    `cdf` gives P(X <= x), absolute error below 1e-8; hardly any mass (< 1e-30) lies beyond +-reach.
    """

    name: str
    variance: float
    reach: int
    cdf: Callable[[Integers], Reals]

    def between(self, edges: Integers) -> Reals:
        """Probabilities of the len(edges) + 1 bins x <= edges[0], edges[0] < x <= edges[1], ..., x > edges[-1]."""
        return np.diff(self.cdf(edges), prepend=0.0, append=1.0)

    def quantiles(self, probabilities: Reals) -> Integers:
        """The least x with P(X <= x) >= p, for each p, by bisection."""
        low = np.full(probabilities.shape, -self.reach - 1, dtype=np.int64)
        high = np.full(probabilities.shape, self.reach, dtype=np.int64)
        while (high - low).max() > 1:
            middle = (low + high) >> 1
            reached = self.cdf(middle) >= probabilities
            low, high = np.where(reached, low, middle), np.where(reached, middle, high)
        return high


def from_pmf(first: int, pmf: Reals, name: str = "table") -> ExactLaw:
    """The law with P(X = first + k) = pmf[k]."""
    cumulative = np.concatenate([[0.0], np.cumsum(pmf)])
    values = first + np.arange(len(pmf))
    mean = float(values @ pmf)

    def cdf(x: Integers) -> Reals:
        return np.asarray(cumulative[np.clip(np.asarray(x) - first + 1, 0, len(pmf))])

    return ExactLaw(name, float((values - mean) ** 2 @ pmf), max(abs(first), abs(first + len(pmf) - 1)), cdf)


def discrete_gaussian(sigma: float) -> ExactLaw:
    """P(x) proportional to exp(-x^2 / 2 sigma^2).

    Up to sigma = 2^12 the terms are summed. Above, the sum up to x is replaced by the integral up to x + 1/2: the
    midpoint rule's error is at most 1/8 of the integral of |f''|, that is 0.121 / sigma^2 < 8e-9; the variance differs
    from sigma^2 by less than 100 sigma^4 exp(-2 pi^2 sigma^2).
    """
    if sigma > _SUMMED:
        return ExactLaw("discrete Gaussian", sigma**2, math.ceil(12 * sigma), rounded_normal(sigma).cdf)
    reach = math.ceil(12 * sigma) + 1
    values = np.arange(-reach, reach + 1)
    weights = np.exp(-((values / sigma) ** 2) / 2)
    return from_pmf(-reach, weights / math.fsum(weights), "discrete Gaussian")


def discrete_laplace(scale: float) -> ExactLaw:
    """P(x) proportional to exp(-|x| / scale)."""
    q = math.exp(-1 / scale)

    def cdf(x: Integers) -> Reals:
        tail = np.exp(-np.where(x >= 0, x + 1.0, -1.0 * x) / scale) / (1 + q)
        return np.where(x >= 0, 1 - tail, tail)

    return ExactLaw("discrete Laplace", 2 * q / math.expm1(-1 / scale) ** 2, math.ceil(70 * scale) + 1, cdf)


def rounded_normal(sigma: float) -> ExactLaw:
    """The continuous N(0, sigma^2) rounded to the nearest integer; sigma >= 1 (variance by Sheppard's correction)."""
    from scipy.special import ndtr

    def cdf(x: Integers) -> Reals:
        return np.asarray(ndtr((x + 0.5) / sigma), dtype=np.float64)

    return ExactLaw("rounded normal", sigma**2 + 1 / 12, math.ceil(12 * sigma) + 1, cdf)


def rounded_laplace(scale: float) -> ExactLaw:
    """The continuous Laplace law rounded to the nearest integer."""

    def cdf(x: Integers) -> Reals:
        at = (x + 0.5) / scale
        tail = np.exp(-np.abs(at)) / 2
        return np.asarray(np.where(at >= 0, 1 - tail, tail), dtype=np.float64)

    # sum over k >= 1 of 2 k^2 P(k), with P(k) = sinh(1 / 2b) exp(-k / b)
    q = math.exp(-1 / scale)
    variance = 2 * math.sinh(0.5 / scale) * q * (1 + q) / -(math.expm1(-1 / scale) ** 3)
    return ExactLaw("rounded Laplace", variance, math.ceil(70 * scale) + 1, cdf)
