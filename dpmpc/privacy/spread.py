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

import numpy as np

from dpmpc.privacy.checks import check_nonnegative

_SAFE = 1e-12


def logistic_spread(norm: float) -> float:
    """Delta(|theta|), in [1, 2): the largest L2 distance of two records' logistic gradients at a theta of this norm.

    Records lie in the unit ball, labels are +-1. Rounded up by 1e-12. Increases with `norm`.
    """
    r = check_nonnegative("the norm of theta", norm)
    x = _level(r)
    return min(2.0, 2.0 / (1.0 + math.exp(-x)) * math.sqrt(max(0.0, 1.0 - (x / r) ** 2)) * (1 + _SAFE)) if r else 1.0


def amplification(norm: float) -> float:
    """2 / Delta(|theta|), in (1, 2]: what owners multiply their mean gradients by before rounding; public."""
    return 2.0 / logistic_spread(norm)


def logistic_pair(theta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Two records (x, x'), both with label +1, whose gradients at theta (d,), d >= 2, differ by Delta(|theta|).

    For tests and for verification: the bound is attained.
    """
    r = float(np.linalg.norm(theta))
    direction = theta / r if r else np.eye(1, len(theta))[0]
    other = np.eye(1, len(theta), int(np.argmin(np.abs(direction))))[0]
    other = other - (other @ direction) * direction
    other /= np.linalg.norm(other)
    p = _level(r) / r if r else 0.0
    rest = math.sqrt(max(0.0, 1.0 - p * p))
    return -p * direction + rest * other, -p * direction - rest * other


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
