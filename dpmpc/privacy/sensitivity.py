"""How far one record can move the aggregate: the L2 sensitivity of a release, and the parts it is made of.

Neighbours differ in one record of one owner (replaced); the sizes n_j are public; records lie in the unit ball and the
loss is G-Lipschitz in theta there. The aggregate is sum_j w_j v_j with w_j = 1/m ("equal") or n_j/n ("size").
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from dpmpc.errors import UsageError
from dpmpc.privacy.checks import check_count, check_nonnegative, check_positive

Weights = Literal["equal", "size"]


@dataclass(frozen=True)
class Sensitivity:
    """An L2 sensitivity and the parts that add up to it (`loss`, `solver`, `rounding`), in units of the aggregate."""

    l2: float
    parts: dict[str, float]

    def l1(self, dimension: int) -> float:
        """The bound sqrt(d) * l2 on the L1 sensitivity in `dimension` coordinates (Cauchy-Schwarz; attained)."""
        return math.sqrt(check_count("dimension", dimension)) * self.l2

    def steps(self, step: float) -> float:
        """The L2 sensitivity in units of `step` (for the opened integer sum: step = gamma / divisor)."""
        return self.l2 / check_positive("grid step", step)


def owner_weights(sizes: Sequence[int] | NDArray[np.int64], weights: Weights) -> NDArray[np.float64]:
    """(m,) weights w_j of the aggregate: 1/m each, or n_j/n."""
    counts = np.asarray(sizes, dtype=np.float64)
    if counts.ndim != 1 or counts.size == 0:
        raise UsageError(
            f"there must be at least one owner; got sizes of shape {counts.shape}; give one size per owner"
        )
    if not np.all(counts >= 1):
        raise UsageError(
            f"every owner must hold at least one record; the smallest holds {counts.min():g}; leave empty owners out"
        )
    if weights == "equal":
        return np.full(counts.size, 1.0 / counts.size)
    if weights == "size":
        w: NDArray[np.float64] = counts / counts.sum()
        return w
    raise UsageError(f"weights must be 'equal' or 'size'; got {weights!r}; use 'size' to weight owners by n_j/n")


def rounding_bound(dimension: int, step: float, divisor: float) -> float:
    """The most that rounding on the grid can add to the L2 sensitivity of the aggregate: sqrt(d) * step / divisor.

    `divisor` is what the opened integer sum is divided by: m, or n when owners pre-weight by n_j. Rounding moves each
    coordinate by at most step/2, on both neighbours, and only one owner's vector differs between them.
    """
    check_count("dimension", dimension)
    return math.sqrt(dimension) * check_positive("grid step", step) / check_positive("divisor", divisor)


def arithmetic_bound(scale: float, sizes: Sequence[int] | NDArray[np.int64], weights: Weights) -> float:
    """The most that double precision can add to the L2 sensitivity of the aggregate.

    An owner's vector is a mean of n_j terms of norm at most `scale`, summed in any order in doubles: it is within
    (n_j + 2) 2^-53 scale of the exact mean, on either of two neighbours, and only one owner's vector differs between
    them. So 2 max_j w_j (n_j + 2) 2^-53 scale: n_j^2 2^-53 of the rest of the sensitivity.
    Source: Higham, Accuracy and Stability of Numerical Algorithms, section 4.2 (any order of summation), normwise.
    """
    counts = np.asarray(sizes, dtype=np.float64)
    return float(2 * scale * 2.0**-53 * (owner_weights(sizes, weights) * (counts + 2)).max())


def owner_sensitivity(clip: float, factors: Sequence[int], divisor: int, rounding: float = 0.0) -> Sensitivity:
    """The L2 sensitivity of the weighted mean of vectors of norm at most `clip`, one owner's replaced by any other: the
    opened sum moves by at most 2 clip times the largest factor."""
    return sum_of_parts({"vector": 2 * clip * max(factors) / divisor}, rounding)


def output_sensitivity(
    *,
    G: float,
    lam: float,
    sizes: Sequence[int] | NDArray[np.int64],
    weights: Weights = "equal",
    rounding: float = 0.0,
    solver_gradient_norm: float = 0.0,
) -> Sensitivity:
    """The L2 sensitivity of the weighted mean of the owners' local optima.

    `solver_gradient_norm` is the *public* bound g on |grad J_j| at the returned local model that every owner enforces
    on any data (the solver's tolerance, not a value measured on this data: a measured one would depend on the
    records). `rounding` is `rounding_bound(...)`.

    Guarantees: the local objective J_j = mean loss + lam/2 |theta|^2 is lam-strongly convex, so replacing one of n_j
    records moves its exact minimiser by at most 2G/(n_j lam), and |theta_hat - theta*| <= |grad J_j(theta_hat)|/lam on
    either neighbour. Hence max_j w_j (2G/(n_j lam) + 2g/lam) + rounding. With weights 1/m the loss part is
    2G/(m n_(1) lam); with n_j/n it is 2G/(n lam) whatever the sizes.
    Source: Chaudhuri, Monteleoni, Sarwate 2011, Corollary 8; Jayaraman et al. 2018, Theorem 3.1 (equal weights, exact
    minimisers).
    """
    check_positive("Lipschitz constant G", G)
    check_positive("regularisation lam", lam)
    check_nonnegative("solver gradient norm", solver_gradient_norm)
    w = owner_weights(sizes, weights)
    counts = np.asarray(sizes, dtype=np.float64)
    total = w * (2 * G / (counts * lam) + 2 * solver_gradient_norm / lam)
    worst = int(np.argmax(total))
    solver = float(w[worst]) * 2 * solver_gradient_norm / lam
    return sum_of_parts({"loss": 2 * G / lam * _weight_per_record(counts, weights, worst), "solver": solver}, rounding)


def gradient_sensitivity(
    *,
    G: float,
    sizes: Sequence[int] | NDArray[np.int64],
    weights: Weights = "equal",
    rounding: float = 0.0,
) -> Sensitivity:
    """The L2 sensitivity of one aggregate of the owners' mean gradients at a public theta.

    Guarantees: each record's gradient has norm at most G, so replacing one moves owner j's mean by at most 2G/n_j and
    the aggregate by max_j w_j 2G/n_j: 2G/(m n_(1)) with equal weights, 2G/n with weights n_j/n.
    Source: Jayaraman et al. 2018, proof of Theorem 3.4; Kang et al. 2019, proof of Theorem 1.
    """
    check_positive("Lipschitz constant G", G)
    owner_weights(sizes, weights)
    counts = np.asarray(sizes, dtype=np.float64)
    smallest = int(np.argmin(counts))
    return sum_of_parts({"loss": 2 * G * _weight_per_record(counts, weights, smallest)}, rounding)


def _weight_per_record(counts: NDArray[np.float64], weights: Weights, owner: int) -> float:
    """w_j / n_j of one owner, without the rounding error of forming n_j/n first."""
    if weights == "size":
        return 1.0 / float(counts.sum())
    return 1.0 / (counts.size * float(counts[owner]))


def sum_of_parts(parts: dict[str, float], rounding: float) -> Sensitivity:
    """The sensitivity whose parts these are, and that of rounding."""
    parts = {**parts, "rounding": check_nonnegative("rounding part of the sensitivity", rounding)}
    return Sensitivity(l2=math.fsum(parts.values()), parts=parts)
