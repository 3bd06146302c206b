"""Tails and quantiles of the chi-square law with a whole number of degrees of freedom, without SciPy, whose import
takes longer than the answers of most runs."""

import math
from functools import lru_cache


def chi_square_tail(x: float, degrees: int) -> float:
    """P(X > x), a finite sum. Source: Abramowitz and Stegun 1964, 26.4.4 and 26.4.5."""
    half = max(x, 0.0) / 2
    total = math.erfc(math.sqrt(half)) if degrees % 2 else 0.0
    start = 0.5 if degrees % 2 else 0.0
    for i in range(degrees // 2):
        power = i + start
        total += math.exp(power * math.log(half) - half - math.lgamma(power + 1)) if half > 0 else float(power == 0)
    return total


def mixed_tail(x: float, degrees: int, halves: int) -> float:
    """P(X > x) of chi-square with `degrees` and as many more as tosses of a coin come up, of `halves` tosses: what is
    left where each of so many parameters lies at an end of its range (Chernoff 1954)."""
    chances = (math.comb(halves, j) * 0.5**halves * chi_square_tail(x, degrees + j) for j in range(halves + 1))
    return math.fsum(chances)


def chi_square_quantile(error: float, degrees: int) -> float:
    """The x that is exceeded with this chance."""
    return mixed_quantile(error, degrees, 0)


@lru_cache(maxsize=4096)
def mixed_quantile(error: float, degrees: int, halves: int) -> float:
    """The x that `mixed_tail` exceeds with this chance, by bisection to 1e-12 of it."""
    low, high = 0.0, 1.0
    while mixed_tail(high, degrees, halves) > error:
        high *= 2
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if mixed_tail(middle, degrees, halves) > error else (low, middle)
    return high
