"""The Laplace mechanism: i.i.d. Laplace noise a coordinate, calibrated by the L1 sensitivity; pure epsilon.

A release of L1 sensitivity D with independent Laplace(b) noise has privacy loss at most sum_i |x_i - x'_i| / b <=
D/b, so T releases are (T D / b, 0)-private. In d coordinates D can be sqrt(d) times the L2 sensitivity; Jayaraman et
al. 2018, Theorem 3.1, calibrates by L2 and so promises sqrt(d) too little (dpmpc.privacy.literature gives the
numbers).
"""

import math

from dpmpc.privacy.checks import check_count, check_delta, check_epsilon, check_positive
from dpmpc.privacy.gaussian import epsilon_of_mu
from dpmpc.privacy.pure import pure_epsilon


def laplace_scale(epsilon: float, l1_sensitivity: float, releases: int = 1) -> float:
    """The Laplace scale b = releases * l1_sensitivity / epsilon, in the units of the sensitivity (standard deviation
    sqrt(2) b).

    Guarantees: (epsilon, 0) for the whole adaptive sequence.
    """
    check_positive("L1 sensitivity", l1_sensitivity)
    return check_count("releases", releases) * l1_sensitivity / check_epsilon(epsilon)


def laplace_epsilon(scale: float, l1_sensitivity: float, releases: int = 1, delta: float = 0.0) -> float:
    """The epsilon of `releases` Laplace releases: T*D/b, or less when a positive `delta` is allowed.

    Guarantees: with delta > 0 by optimal composition of (D/b, 0)-private releases (`pure`), or the zCDP bound with
    rho = T (D/b)^2 / 2 where there are too many for that.
    """
    check_positive("noise scale", scale)
    check_positive("L1 sensitivity", l1_sensitivity)
    one = l1_sensitivity / scale
    pure = check_count("releases", releases) * one
    if delta == 0:
        return pure
    zcdp = epsilon_of_mu(math.sqrt(releases) * one, check_delta(delta), "zcdp")
    return min(zcdp, pure_epsilon(((one, releases),), delta))


def laplace_releases(scale: float, epsilon: float, l1_sensitivity: float) -> int:
    """The largest number of Laplace releases with scale b within (epsilon, 0)."""
    check_positive("L1 sensitivity", l1_sensitivity)
    return math.floor(check_epsilon(epsilon) * check_positive("noise scale", scale) / l1_sensitivity * (1 + 1e-13))
