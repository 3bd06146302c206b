"""The smooth functions of a number that an additive schema has besides its straight line.

Between knots k_0 < .. < k_K-1 every function is linear, and constant beyond them. The K hats (1 at one knot, 0 at the
others) span them all; taken are K - 1 turns of the hats, the cosines

    b_q(k_j) = sqrt(2/K) cos(pi q (j + 1/2) / K) / q,    q = 1 .. K - 1,

which with the constant are orthogonal over the knots: with knots at quantiles they are nearly so over the records,
and an intercept is in none of them. The factor 1/q makes rough functions dear: where the noise is large a descent
learns the slow ones, and with many records all. Plain hats, which have no such order, lose on small sets
(docs/accuracy.md).

Guarantees: b(v) is linear between two knots, and a column's straight line between its ends, so |(line(v), b(v))|^2 is
convex between neighbours among these points, and largest at one of them: that is the bound of `records.schema`.
"""

import math
from functools import cache

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

KNOTS = 6  # of a column for which none are stated


def values_at_knots(count: int) -> Floats:
    """(count, count - 1) the functions' values at so many knots."""
    j, q = np.arange(count)[:, None] + 0.5, np.arange(1, count)[None, :]
    return np.asarray(math.sqrt(2 / count) * np.cos(np.pi * q * j / count) / q)


def usual(count: int) -> float:
    """The mean squared norm of the functions at so many knots; 0 for none."""
    return float(np.square(values_at_knots(count)).sum() / count) if count else 0.0


def bends(values: Floats, knots: Floats) -> Floats:
    """(n, len(knots) - 1) the functions at these values (n,); 0 where one is not finite. Each row depends on its value
    alone, to the last bit."""
    table = _by_function(len(knots))
    there = np.isfinite(values)
    whole = bool(there.all())
    held = np.clip(values if whole else np.where(there, values, knots[0]), knots[0], knots[-1])
    passed = np.zeros(len(values), dtype=np.uint8)
    for knot in knots[1:-1]:  # few: quicker than a search
        passed += held >= knot
    left = passed.astype(np.intp)
    share = (held - knots.take(left)) / np.diff(knots).take(left)
    out = table.take(left, axis=1)  # a function's values side by side: long loops
    out *= 1 - share
    left += 1
    after = table.take(left, axis=1)
    after *= share
    out += after
    if not whole:
        out[:, ~there] = 0.0
    return out.T


@cache
def _by_function(count: int) -> Floats:
    """`values_at_knots`, a function a row."""
    return np.ascontiguousarray(values_at_knots(count).T)


def evenly(low: float, high: float, log: bool = False) -> tuple[float, ...]:
    """KNOTS knots from low to high at even distances, or of logarithms as a schema's "log" has them."""
    steps = np.linspace(0.0, 1.0, KNOTS)
    if not log:
        inner = low + (high - low) * steps
    elif low > 0:
        inner = low * (high / low) ** steps
    else:
        inner = np.expm1(math.log1p(high) * steps)
    for digits in (6, 17):
        made = (low, *(float(f"{knot:.{digits}g}") for knot in inner[1:-1]), high)
        if sorted(set(made)) == list(made):
            return made
    return ()  # a range as narrow as a few roundings
