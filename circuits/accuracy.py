"""The error of Box-Muller and log-Laplace in fixed point, bounded step by step as in docs/box-muller.md. Public
numbers.

All bounds are absolute, in standard deviations (or in units of b), against the transform of exactly uniform inputs.
The last rounding, to the grid, is not part of them: it is less than C(n, t) / 2 grid steps.
"""

import functools
import math

from .approximation import LARGEST, Law, largest_coefficients
from .fixed import PART_BITS, SUB_BITS

TARGET = 2.0**-24
LEAST_FRACTION_BITS = 30
# Bounds that the tests derive from Lagrange's remainder by interval arithmetic over every segment.
INTERPOLATION_ERROR: dict[Law, float] = {"gaussian": 2.0**-27, "laplace": 2.0**-26.3}
# The finite bits of m: half its spacing times the largest slope of the function in m. No slope exceeds 1: it is 1 /
# (m R) for U below 1/2, where R >= sqrt(2 ln 2); V / (m (1 - V) R) <= sqrt(V) for U = 1 - V above; 1 / m for the
# logarithm.
PLACE_ERROR = 2.0 ** (-PART_BITS - SUB_BITS - 1)
_FLOAT_ANGLE = 2.0**-48  # cos and sin in double precision of a double-precision angle, and the angle's own 53 bits


@functools.cache
def transform_error(law: Law, fraction_bits: int, subsets: int, angles: int) -> float:
    """A bound for numbers of so many fraction bits; `subsets` is C(n, t), `angles` is t + 1."""
    unit, part_unit = 2.0**-fraction_bits, 2.0**-PART_BITS
    rounding = subsets / 2  # of one truncation, in its units
    # Powers of t: each inherits the errors of its factors, |t| <= 1, and adds a truncation.
    square = rounding * part_unit
    powers = (0.0, 0.0, square, 2 * square, 3 * square + square**2)
    largest = [c + unit for c in largest_coefficients(law)]
    function = INTERPOLATION_ERROR[law]
    function += (len(powers) * unit / 2) * (1 + powers[-1])  # rounded coefficients
    function += math.fsum(c * e for c, e in zip(largest, powers, strict=True))
    function += PLACE_ERROR
    if law == "laplace":
        return function
    function += rounding * unit
    vector = math.sqrt(0.5) * unit + _FLOAT_ANGLE
    growth = (1 + vector) ** angles
    truncations = (angles - 1) * math.sqrt(2) * rounding * unit
    return (function + truncations) * growth + LARGEST[law] * (growth - 1)


def fraction_bits(law: Law, subsets: int, angles: int) -> int:
    """The fewest fraction bits, from 30 on, whose `transform_error` stays below 2^-24."""
    bits = LEAST_FRACTION_BITS
    while transform_error(law, bits, subsets, angles) > TARGET:
        bits += 1
    return bits


def rounded_noise_tv(error: float, step: float, peak_density: float) -> float:
    """A total-variation bound, a coordinate, for an approximate continuous sampler that is rounded to a coarser grid.

    The sampler's value differs from an exact draw of a unimodal density (maximum `peak_density`: 1/(sigma sqrt(2 pi))
    or 1/(2b)) by at most `error`, and is rounded to multiples of `step`. Both rounded values agree unless the exact
    draw lies within `error` of a rounding boundary, which has probability at most (2 error / step) (1 + 3 step
    peak_density). Errors of the uniform inputs (a finite number of bits) belong to `error`, or to a total-variation
    term of their own. This is all that can be claimed for Box-Muller and log-Laplace in fixed point: an additive term
    that shrinks only linearly in the number of guard bits. Source: docs/privacy.md, "Approximate samplers".
    """
    assert error >= 0 and step > 0 and peak_density > 0
    return min(1.0, 2 * error / step * (1 + 3 * step * peak_density))
