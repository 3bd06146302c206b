"""Zero-sum noise on the grid: each site's part hides its vector, all parts together are exactly 0. Whole numbers
only.

Two ways, with the same covariance kappa^2 (I - 11'/S) a coordinate (`privacy.cape` says what each keeps from
colluders):

- `from_pairs`: every two sites expand one discrete Gaussian vector from a key that only they share; one adds it, the
  other subtracts it. No message at all.
- `from_masks`: the paper's way. Every site draws x_s, one secure sum opens sum x, and each takes away its share of
  it.

Source: Imtiaz, Mohammadi and Sarwate 2019, Algorithm 1. Departure: theirs rounds real numbers stochastically into a
finite field and divides the sum by S; here all is in grid steps and the sum is split into whole parts.
"""

from collections.abc import Callable, Mapping

import numpy as np
from numpy.typing import NDArray

from dpmpc.circuits.sampler import Sampler
from dpmpc.errors import UsageError
from dpmpc.mpc.clear.noise import clear_noise
from dpmpc.mpc.numbers.prg import Prg

Ints = NDArray[np.int64]
SecureSum = Callable[[Ints], Ints]  # (S, d) sites' secret integers -> (d,) their sum, and nothing else to anybody


def from_pairs(
    site: int, keys: Mapping[int, bytes], sampler: Sampler, run: bytes, release: int, dimension: int
) -> Ints:
    """e_s (d,) of one site, in grid steps: secret; over all sites the e_s sum to exactly 0.

    keys: for every other site r the key that `site` and r alone hold. `run` and `release` name the streams: a vector
    is used for one release of one run, for the difference of two messages under one e_s shows the difference of the
    data.
    Guarantees: e_s is a sum of S - 1 independent draws of the sampler, so Var e_s = (S - 1) scale^2 and
    Cov(e_r, e_s) = -scale^2; with scale = kappa/sqrt(S) these are Algorithm 1's.
    Cost: S - 1 draws a coordinate at each site, no message, no round.
    """
    if site in keys:
        raise UsageError(f"a site shares no key with itself; keys of site {site} name it; give those of the others")
    total = np.zeros(dimension, dtype=np.int64)
    for other, key in keys.items():
        low, high = min(site, other), max(site, other)
        shared = clear_noise(sampler, dimension, Prg(key, "zero-sum", run, release, low, high))
        total += shared if site == low else -shared
    return total


def from_masks(draws: Ints, secure_sum: SecureSum) -> Ints:
    """e (S, d), in grid steps, from every site's own draws x (S, d): e_s = x_s - its part of sum x; columns sum to 0.

    Guarantees: what the protocol opens is sum x, which is independent of every e up to the parts' rounding, itself a
    function of sum x; see `privacy.cape.discrete_guarantee`.
    Cost: one draw a coordinate at each site and one secure sum of d numbers.
    """
    return np.asarray(draws - parts(secure_sum(draws), len(draws)), dtype=np.int64)


def parts(total: Ints, sites: int) -> Ints:
    """(S, d) whole numbers that sum to `total` (d,) and differ by at most one over the sites: public given the
    total."""
    base, left = np.divmod(total, sites)
    return np.asarray(base[None, :] + (np.arange(sites)[:, None] < left[None, :]), dtype=np.int64)
