"""Sensitivity that knows theta: how far two records' logistic gradients can lie apart at a *public* theta.

G-Lipschitz gives 2G. At theta, with z = y x in the unit ball, a record's gradient is -h(z), h(z) = sigma(-theta . z)
z, so that two records' gradients differ by at most Delta(|theta|) = max_phi 2 sigma(|theta| sin phi) cos phi: 1 at
theta = 0, 2 in the limit.

Proof. Let r = |theta|, p = -theta . z / r and q the rest of z, |q|^2 <= 1 - p^2; write s = sigma(r p). Then
|h(z) - h(z')|^2 = (s p - s' p')^2 + |s q - s' q'|^2 is largest for q' opposite to q and |q|^2 = 1 - p^2, and there is

    s^2 + s'^2 + 2 s s' (sqrt((1 - p^2)(1 - p'^2)) - p p') <= (s + s')^2 - s s' (p + p')^2,

since sqrt(u v) <= (u + v)/2. With a = r p, b = r p', m = (a + b)/2, M = (a - b)/2, C = cosh m, S = sinh m and
t = 1/(C + cosh M): s + s' = 1 + S t and (s - s')^2 = (sinh M)^2 t^2 = 1 - 2 C t + S^2 t^2. So with k = m^2/r^2 the
right-hand side, (1 - k)(s + s')^2 + k (s - s')^2, is 1 + 2 t ((1 - k) S - k C) + S^2 t^2: convex in t. For fixed m, t
runs over (0, 1/(1 + C)], so the largest value is at an end: 1 as t -> 0, which is phi = 0 below, or M = 0, which is 4
sigma(m)^2 (1 - m^2/r^2), phi = arcsin(m / r). Both are values of (2 sigma(r sin phi) cos phi)^2. Attained (d >= 2) by
z, z' with -theta . z = -theta . z' = r sin phi and opposite rests of length cos phi.

Guarantees: an owner multiplies its clipped mean gradient by 2G / Delta(|theta_t|) *before* rounding, and divides the
opened sum by the same public number. The released vector then has the sensitivity 2G w_j/n_j that the pool's noise
was made for, whatever theta_t is, and the noise on the gradient is smaller by Delta/2G. theta_t is computed from
opened sums, so adaptivity is that of `gaussian` (the bound holds conditionally on the past).
"""

import math
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from dpmpc.privacy.checks import check_nonnegative

_SAFE = 1e-12


def logistic_spread(norm: float) -> float:
    """Delta(|theta|), in [1, 2): the largest L2 distance of two records' logistic gradients at a theta of this norm.

    Records lie in the unit ball, labels are +-1. Rounded up by 1e-12. Increases with `norm`.
    """
    r = check_nonnegative("the norm of theta", norm)
    x = _level(r)
    return min(2.0, 2.0 / (1.0 + math.exp(-x)) * math.sqrt(max(0.0, 1.0 - (x / r) ** 2)) * (1 + _SAFE)) if r else 1.0


def logistic_reach(norm: float) -> float:
    """sigma(|theta|), in [1/2, 1): the largest norm of a record's logistic gradient at a theta of this norm, which is
    how far it lies from the zero vector of a record that is absent.

    |h(z)| = sigma(-theta . z) |z| <= sigma(|theta|); attained by z = -theta/|theta|. Rounded up by 1e-12. Two gradients
    lie at most twice as far apart, and at least as far: logistic_reach <= logistic_spread <= 2 logistic_reach.
    """
    return min(1.0, (1 + _SAFE) / (1.0 + math.exp(-check_nonnegative("the norm of theta", norm))))


def softmax_reach(theta: NDArray[np.float64]) -> float:
    """R(D), in [sqrt(1 - 1/K), sqrt(2)): the largest norm of a record's softmax gradient at theta (d, K), where no two
    columns of it lie further apart than D. Two gradients lie at most 2 R apart, and one at most R from the zero vector.

    Guarantees: the gradient is x (p - e_y)', p the softmax of the scores, so its norm is |x| |p - e_y|. With a_k the
    score of class k over that of y, |a_k| <= |theta_k - theta_y| |x| <= D. Of one a_k, t = e^{a_k}, all others fixed,
    |p - e_y| = |(b + t, c_1, ..., t)| / (1 + b + t): a norm of an affine function, which is convex, over a positive
    affine one, hence quasi-convex: over |a_k| <= D largest at an end. So all a_k are at +D or -D: m and K - 1 - m of
    them; m = 0 is no more than m = K - 1, which has the larger 1 - p_y, evenly shared too. Rounded up by 1e-12.
    At D = 0 two records x and -x of one class attain 2 R = 2 sqrt(1 - 1/K): 0.58 of 2 sqrt(2) for K = 3.
    """
    K = int(theta.shape[1])
    far = max(float(np.linalg.norm(theta - theta[:, [k]], axis=0).max()) for k in range(K)) * (1 + _SAFE)
    down, own = math.exp(-2 * far), math.exp(-far)  # over e^D, so that nothing overflows

    def square(m: int) -> float:
        wrong, rest = m + (K - 1 - m) * down, m + (K - 1 - m) * down * down
        return float((wrong * wrong + rest) / (own + wrong) ** 2)

    return min(math.sqrt(2), math.sqrt(max(square(m) for m in range(1, K))) * (1 + _SAFE))


def amplification(norm: float) -> float:
    """2 / Delta(|theta|), in (1, 2]: what owners multiply their mean gradients by before rounding; public."""
    return 2.0 / logistic_spread(norm)


@lru_cache(maxsize=64)  # an iterate's owners, and its opened mean, ask for the same
def _level(r: float) -> float:
    """The x = r sin phi that maximises sigma(x)^2 (1 - x^2/r^2), whose logarithm is strictly concave.

    It is the root of sigma(-x) (r^2 - x^2) = x.
    """
    low, high = 0.0, min(r, 700.0)
    while True:
        x = 0.5 * (low + high)
        if not low < x < high:
            return x
        low, high = (x, high) if (r * r - x * x) / (1.0 + math.exp(x)) > x else (low, x)
