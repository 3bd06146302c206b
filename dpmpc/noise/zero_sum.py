"""Zero-sum noise on the grid: each site's part hides its vector, all parts together are exactly 0. Whole numbers
only.

With covariance kappa^2 (I - 11'/S) a coordinate (`privacy.cape` says what that keeps from colluders). `from_masks` is
the paper's way: every site draws x_s, one secure sum opens sum x, and each takes away its share of it.

Source: Imtiaz, Mohammadi and Sarwate 2019, Algorithm 1. Departure: theirs rounds real numbers stochastically into a
finite field and divides the sum by S; here all is in grid steps and the sum is split into whole parts.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
SecureSum = Callable[[Ints], Ints]  # (S, d) sites' secret integers -> (d,) their sum, and nothing else to anybody


def from_masks(draws: Ints, secure_sum: SecureSum) -> Ints:
    """e (S, d), in grid steps, from every site's own draws x (S, d): e_s = x_s - its part of sum x; columns sum to 0.

    Guarantees: what the protocol opens is sum x, which is independent of every e up to the parts' rounding, itself a
    function of sum x; `tests/privacy/cape_claims.py` has its guarantee.
    Cost: one draw a coordinate at each site and one secure sum of d numbers.
    """
    return np.asarray(draws - parts(secure_sum(draws), len(draws)), dtype=np.int64)


def parts(total: Ints, sites: int) -> Ints:
    """(S, d) whole numbers that sum to `total` (d,) and differ by at most one over the sites: public given the
    total."""
    base, left = np.divmod(total, sites)
    return np.asarray(base[None, :] + (np.arange(sites)[:, None] < left[None, :]), dtype=np.int64)
