"""The noise that was found, and the same as scores: standard normal numbers if the noise has its law."""

from dataclasses import replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from dpmpc.lazy import cached_property, dataclass
from dpmpc.privacy.exact import ExactLaw, Integers, Reals
from dpmpc.privacy.law import LAWS, Law

_LEAST = 1e-15  # a tail's probability, where doubles end


@dataclass(frozen=True)
class Sample:
    """The noise of K releases of m owners, as found: opened - exact sum (K, d), and the exact sums (K, d)."""

    owners: int
    law: str
    scale: float  # claimed, in grid steps
    discrete: bool
    noise: Integers
    sums: Integers
    bits: NDArray[np.bool_]  # (K, d - 1): which of two neighbouring data sets each canary's release had

    @property
    def name(self) -> str:
        return f"{self.law}, m = {self.owners}"

    @cached_property
    def exact(self) -> ExactLaw:
        """The claimed law."""
        return _exact(LAWS[self.law], self.scale, self.discrete)

    @cached_property
    def most_likely(self) -> float:
        """The largest probability of one value: that of 0."""
        ends = np.asarray(self.exact.cdf(np.array([-1, 0], dtype=np.int64)), dtype=np.float64)
        return float(ends[1] - ends[0])

    @cached_property
    def normal(self) -> Reals:
        """Normal scores (K, d) of the noise."""
        from scipy.special import ndtri

        x = self.noise
        middle = (self.exact.cdf(x) + self.exact.cdf(x - 1)) / 2
        return np.asarray(ndtri(np.clip(middle, _LEAST, 1 - _LEAST)), dtype=np.float64)

    @cached_property
    def ranks(self) -> Reals:
        """P(|X| <= |x|) (K, d): uniform on [0, 1] if the noise has its law."""
        a, cdf = np.abs(self.noise), self.exact.cdf
        inner, outer = cdf(a - 1) - cdf(-a), cdf(a) - cdf(-a - 1)  # P(|X| < a), P(|X| <= a)
        return np.asarray(np.clip((np.maximum(inner, 0.0) + outer) / 2, _LEAST, 1 - _LEAST), dtype=np.float64)

    @cached_property
    def sizes(self) -> Reals:
        """Normal scores (K, d) of the noise's magnitudes: they know nothing of signs."""
        from scipy.special import ndtri

        return np.asarray(ndtri(self.ranks), dtype=np.float64)

    def magnitudes(self, outward: int = 0) -> tuple[Reals, int, int]:
        """(statistics (K, d), degrees of each, power), as `Law.magnitudes`; of noise that lies `outward` steps further
        out. One step out or in bounds what rounding to the grid does to a few values, such as an exact 0."""
        moved = np.maximum(np.abs(self.noise) + outward, 0)
        return LAWS[self.law].magnitudes(moved, self.scale, self.discrete)

    def narrowed(self, factor: float) -> "Sample":
        """The same with `factor` times the noise."""
        return replace(self, noise=np.rint(factor * self.noise).astype(np.int64))


@lru_cache(maxsize=64)  # one object for all samples of a claim: what is worked out of it is kept too
def _exact(law: Law, scale: float, discrete: bool) -> ExactLaw:
    return law.exact(scale, discrete)
