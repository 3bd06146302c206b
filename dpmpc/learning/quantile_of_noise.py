"""The quantile of the normal law, correctly rounded: what stands out of noise is the same on every machine."""

from functools import cache

import gmpy2
from gmpy2 import mpfr

_BITS = 200  # of the computation


@cache
def upper_quantile(p: float) -> float:
    """x with P(X > x) = p <= 1/2 for a standard normal X: correctly rounded but for one case in 2^50, everywhere."""
    with gmpy2.context(precision=_BITS):  # of this thread, and of this call alone
        x, root, tau = mpfr(0), gmpy2.sqrt(mpfr(2)), 2 * gmpy2.const_pi()
        while True:  # Newton from below the root, where Q is convex: it climbs, until a step is lost in rounding
            step = (gmpy2.erfc(x / root) / 2 - mpfr(p)) * gmpy2.sqrt(tau) * gmpy2.exp(x * x / 2)
            if abs(step) <= abs(x) * mpfr(2) ** -100:
                return float(x + step)
            x += step
