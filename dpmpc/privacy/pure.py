"""Optimal composition of pure releases: the best epsilon at a delta that knows nothing of them but their epsilons.

Every (e, 0)-private release is post-processing of randomised response, which answers with the truth with probability
e^e / (1 + e^e): its privacy loss is e with that probability, else -e. So k releases cost at most what k randomised
responses cost, and delta(epsilon) = sum over the losses L of P(L) (1 - e^(epsilon - L))+ is attained by them.

Guarantees: for releases whose epsilons are fixed beforehand; queries may depend on what was opened. It is no filter.
Source: Kairouz, Oh, Viswanath 2015, Theorem 3.3 (equal epsilons) and section 3.3. Different epsilons: each is rounded
up to a multiple of a common step, which can only cost more, and the laws are convolved (the exact problem is #P-hard:
Murtagh and Vadhan 2016).
"""

import math
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from dpmpc.privacy.gaussian import epsilon_of_mu

Losses = tuple[tuple[float, int], ...]  # (epsilon, how many releases have it), sorted
_POINTS = 1 << 17  # of the law of a sum
_MOST = 1 << 21  # releases
_BINS = 1 << 12  # of that law where it is held against Gaussian losses
_CUT = 1e-40  # probability of an atom that is moved into delta
_SAFE = 1 + 1e-9  # what the arithmetic may be off by, relative


def join(*parts: Losses) -> Losses:
    """The releases of all."""
    counts: dict[float, int] = {}
    for part in parts:
        for loss, count in part:
            counts[loss] = counts.get(loss, 0) + count
    return tuple(sorted(counts.items()))


def pure_epsilon(losses: Losses, delta: float) -> float:
    """The least epsilon at `delta` of releases that are (e, 0)-private each; at most the sum of all e.

    Rounded to the private side. Where the law of the sum is too large to be had, the sum of all e.
    """
    plain = math.fsum(loss * count for loss, count in losses)
    law = _law(losses) if delta > 0 and losses and math.isfinite(plain) else None
    if law is None:
        return plain
    largest, step, b, d, lost = law
    left = delta / _SAFE - lost
    if left <= 0:
        return plain
    i = int(np.searchsorted(d, left, side="right")) - 1
    share = (left - float(d[i])) / float(b[i])
    if share >= 1:
        return 0.0
    return min(plain, max(0.0, (largest - step * i + math.log1p(-share)) * _SAFE))


def mixed_epsilon(losses: Losses, mu: float, delta: float) -> float:
    """The least epsilon at `delta` of releases that are (e, 0)-private each, and of others that are mu-GDP together.

    Losses add: delta(epsilon) = sum over the losses L of the pure ones of P(L) delta_mu(epsilon - L), delta_mu being
    the Gaussian mechanism's, which is attained by randomised responses beside one Gaussian release. Rounded to the
    private side; where the law of the sum is too large to be had, the sum of all e on top of the Gaussian part.

    Guarantees: for costs that are fixed beforehand. It is no filter.
    """
    from scipy.special import log_ndtr, ndtr

    plain = math.fsum(loss * count for loss, count in losses)
    highest = epsilon_of_mu(mu, delta) + plain
    found = _atoms_of_sum(losses)
    if found is None:
        return highest
    largest, step, masses, lost = found
    many = max(1, len(masses) // _BINS)  # neighbours go up to the largest loss of their bin, which can only cost more
    binned = np.add.reduceat(masses, np.arange(0, len(masses), many))
    each = largest - step * many * np.arange(len(binned))

    def delta_at(epsilon: float) -> float:
        e = epsilon - each
        gaussian = ndtr(mu / 2 - e / mu) - np.exp(e + log_ndtr(-mu / 2 - e / mu))
        return float(binned @ np.maximum(gaussian, 0.0)) * _SAFE + lost

    low, high = 0.0, highest
    if delta_at(high) > delta:
        return highest
    while high - low > 1e-12 * high:
        middle = (low + high) / 2
        low, high = (low, middle) if delta_at(middle) <= delta else (middle, high)
    return min(highest, high * _SAFE)


@lru_cache(maxsize=64)
def _law(losses: Losses) -> tuple[float, float, NDArray[np.float64], NDArray[np.float64], float] | None:
    """(the largest loss L_0 of the sum, the step by which losses fall, B, D, cut probability); None: too large.

    B[i] = sum over L_j >= L_i of P_j e^(L_i - L_j). D[i] = delta(L_i) = sum of B[j] (1 - e^-step) over j < i: positive
    terms, so that small ones are exact. Between L_(i+1) and L_i, delta(e) = D[i] + (1 - e^(e - L_i)) B[i].
    """
    from scipy.signal import lfilter

    atoms = _atoms_of_sum(losses)
    if atoms is None:
        return None
    largest, step, masses, lost = atoms
    b = np.asarray(lfilter([1.0], [1.0, -math.exp(-step)], masses), dtype=np.float64)
    d = np.concatenate(([0.0], np.cumsum(b[:-1] * -math.expm1(-step))))
    return largest, step, b, d, lost


@lru_cache(maxsize=64)
def _atoms_of_sum(losses: Losses) -> tuple[float, float, NDArray[np.float64], float] | None:
    """(the largest loss of the sum, the step by which they fall, their probabilities, probability that was cut)."""
    counts = sum(count for _, count in losses)
    if counts > _MOST:
        return None
    if len(losses) == 1:
        ((loss, count),) = losses
        below, masses = _atoms(loss, count)
        below = below[masses > _CUT]
        first, last = int(below[0]), int(below[-1])
        return (count - 2.0 * first) * loss, 2 * loss, masses[first : last + 1], float(count * _CUT)
    plain = math.fsum(loss * count for loss, count in losses)
    if counts > _POINTS // 4:
        return None
    step = plain / (_POINTS - counts)
    total, lost, whole = np.ones(1), 0.0, 0
    for loss, count in losses:
        times = math.ceil(loss / step * (1 - 1e-12))
        below, masses = _atoms(times * step, count)  # of the loss that it is rounded up to, which is a law too
        keep = masses > _CUT
        lost += float(count * _CUT)
        if keep.sum() * len(total) > 1 << 30:
            return None
        wider = np.zeros(len(total) + times * count)
        for j, mass in zip(below[keep], masses[keep], strict=True):
            wider[times * int(j) : times * int(j) + len(total)] += mass * total
        total, whole = wider, whole + times * count
    first = int(np.nonzero(total)[0][0])
    return (whole - 2.0 * first) * step, 2 * step, total[first:], lost


def _atoms(loss: float, count: int) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """(number j of answers that are not the truth, its probability)."""
    from scipy.stats import binom

    below = np.arange(count + 1)
    return below, np.asarray(binom.pmf(below, count, 1 / (1 + math.exp(min(loss, 700.0)))), dtype=np.float64)
