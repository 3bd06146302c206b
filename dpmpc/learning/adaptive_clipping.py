"""A clipping bound that follows the vectors: owners send one coordinate more, whether their vector fits.

In release t every owner clips its vector v to norm C_t and scales it by 1/C_t; its last coordinate is WEIGHT (1/2 if
|v| <= C_t, else -1/2). The opened mean tells, but for its noise, what fraction of owners fits, and the bound moves
towards the wanted quantile gamma: C_(t+1) = C_t exp(-rate (fraction - gamma)). All of it is public: the bound is a
function of what was opened. Scaling by the public C_t before rounding keeps the noise in the pool right for every
bound.

Guarantees: replacing one owner's vector moves an owner's row by at most SPREAD = sqrt(4 + WEIGHT^2) (the first part
runs over a ball of radius 1, the last coordinate over two points WEIGHT apart); attained. The mean with weights w_j
has sensitivity SPREAD max_j w_j, and a run of T releases is accounted for as any other. The noise of the vector's
mean is C_t sigma, a factor sqrt(1 + WEIGHT^2/4) more than with a bound that is known; the fraction's is sigma /
WEIGHT.
Source: Andrew, Thakkar, McMahan and Ramaswamy 2021, Algorithm 1 (geometric updates). Departures: one joint Gaussian
release instead of two with their own noise, which is the same trade; replace-one neighbours; no momentum.
"""

import math
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from dpmpc.errors import UsageError
from dpmpc.lazy import dataclass
from dpmpc.privacy.checks import check_positive

Floats = NDArray[np.float64]

WEIGHT = 0.5
SPREAD = math.sqrt(4.0 + WEIGHT**2)
NORM = math.sqrt(1.0 + WEIGHT**2 / 4)
"""The largest norm of an owner's row."""
_ROUNDING = 1e-9  # relative, of a product of so many factors
_FARTHEST = 1e9  # factors by which the bound may leave its start: a run cannot overflow


@dataclass(frozen=True)
class ClippingBound:
    """The state: the present bound C_t, the wanted fraction gamma of owners that fit, the rate, and where it
    began."""

    value: float
    quantile: float = 0.5
    rate: float = 0.2
    start: float = 0.0

    def __post_init__(self) -> None:
        check_positive("the clipping bound", self.value)
        check_positive("the rate", self.rate)
        if not 0 < self.quantile < 1:
            raise UsageError(
                f"the quantile lies between 0 and 1; got {self.quantile:g}; the median is 0.5", code="range"
            )
        if self.start == 0.0:
            object.__setattr__(self, "start", self.value)

    def at(self, value: object, releases: int) -> "ClippingBound":
        """The state with the bound `value`, after at most so many releases, some of which may be lost. Errors:
        UsageError for a bound that no opened means lead to: each moves it by a factor exp(rate (gamma - fraction)) with
        a fraction in [0, 1]."""
        lowest = max(self.start * math.exp(-self.rate * (1 - self.quantile) * releases), self.start / _FARTHEST)
        highest = min(self.start * math.exp(min(self.rate * self.quantile * releases, 700.0)), self.start * _FARTHEST)
        if type(value) not in (int, float) or not lowest * (1 - _ROUNDING) <= value <= highest * (1 + _ROUNDING):  # type: ignore[operator]
            raise UsageError(
                f"a clipping bound that adapts lies between {lowest:g} and {highest:g} after {releases} releases; the "
                f"one that was given is {value!r:.40}; take no part, or plan again"
            )
        return replace(self, value=float(value))  # type: ignore[arg-type]

    def encode(self, vectors: Floats) -> Floats:
        """(m, d + 1) what owners send for their vectors (m, d): rows of norm at most NORM. Secret."""
        norms = np.linalg.norm(vectors, axis=1)
        fits = norms <= self.value
        scale = np.where(fits, 1.0 / self.value, 1.0 / np.maximum(norms, 1e-300))
        return np.column_stack([vectors * scale[:, None], WEIGHT * np.where(fits, 0.5, -0.5)])

    def decode(self, mean: Floats) -> tuple[Floats, "ClippingBound"]:
        """(the noisy mean vector (d,) in its own units, the next bound) from an opened mean (d + 1,). Public."""
        fraction = min(1.0, max(0.0, float(mean[-1]) / WEIGHT + 0.5))
        moved = self.value * math.exp(-self.rate * (fraction - self.quantile))
        bounded = min(max(moved, self.start / _FARTHEST), self.start * _FARTHEST)
        return np.asarray(mean[:-1] * self.value), replace(self, value=bounded)
