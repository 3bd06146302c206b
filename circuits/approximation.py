"""Piecewise polynomials of a floating-like uniform: public tables, from mpmath, the same on every machine. No engine
here.

Segment 16 k + 2 part + bit, place t in (-1, 1): m = 1 + (part + (1 + t) / 2) / 8 in [1, 2), and
- gaussian: V = 2^-(k+2) m in (0, 1/2); U = V or 1 - V by `bit`; the radius sqrt(-2 ln U), resolved at both ends;
- laplace: U = 2^-(k+1) m in (0, 1); -ln U or ln U by `bit`: the sign is part of the table.
"""

import functools
import math
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from dpmpc.lazy import cached_property, dataclass

from .fixed import SUB_BITS, ZERO_BITS

if TYPE_CHECKING:  # each function imports it: a process that draws by other samplers does without
    import mpmath

Law = Literal["gaussian", "laplace"]

DEGREE = 4
SEGMENTS = (ZERO_BITS + 1) << (SUB_BITS + 1)
LARGEST = {"gaussian": math.sqrt(130 * math.log(2)), "laplace": 64 * math.log(2)}  # at U = 2^-65 and 2^-64
_PRECISION = 100  # bits of mpmath


@dataclass(frozen=True, eq=False)
class Piecewise:
    """round(coefficient 2^fraction_bits) of each segment's polynomial in t, as nonnegative integers after adding
    `offset`."""

    coefficients: NDArray[np.int64]  # (SEGMENTS, DEGREE + 1)
    fraction_bits: int

    @property
    def width(self) -> int:
        """Bits of a coefficient plus `offset`. The polynomials stay below 2^(width - 1) / (1 + 2^-16) in absolute
        value."""
        largest = int(np.abs(self.coefficients).sum(axis=1).max())
        return (largest + (largest >> 15)).bit_length() + 1

    @property
    def offset(self) -> int:
        """What makes every coefficient nonnegative."""
        return 1 << (self.width - 1)

    @cached_property
    def bits(self) -> NDArray[np.bool_]:
        """(SEGMENTS, width (DEGREE + 1)): bit i of coefficient j at column i (DEGREE + 1) + j."""
        numbers = self.coefficients + self.offset
        planes = numbers[:, None, :] >> np.arange(self.width)[None, :, None] & 1
        return planes.reshape(SEGMENTS, -1).astype(bool)


def segment_value(law: Law, segment: int, t: "mpmath.mpf") -> "mpmath.mpf":
    """The function that the polynomial of `segment` approximates, at t."""
    exact = t.context
    k, fine = divmod(segment, 2 << SUB_BITS)
    part, bit = divmod(fine, 2)
    m = 1 + (part + (1 + t) / 2) / exact.mpf(1 << SUB_BITS)
    if law == "gaussian":
        v = exact.ldexp(m, -2 - k)
        return exact.sqrt(-2 * (exact.log1p(-v) if bit else exact.log(v)))
    value = (k + 1) * exact.ln2 - exact.log(m)
    return -value if bit else value


def _precise() -> "mpmath.MPContext":
    """A context of the caller's alone: mpmath's own precision is shared by all threads."""
    import mpmath

    exact = mpmath.MPContext()
    exact.prec = _PRECISION
    return exact


@functools.cache
def _polynomials(law: Law) -> "list[list[mpmath.mpf]]":
    """Coefficients of the interpolants at the Chebyshev nodes of t in [-1, 1], lowest first."""
    exact = _precise()
    count = DEGREE + 1
    nodes = [exact.cos((2 * i + 1) * exact.pi / (2 * count)) for i in range(count)]
    inverse = exact.matrix([[node**j for j in range(count)] for node in nodes]) ** -1
    rows = [[inverse[j, i] for i in range(count)] for j in range(count)]
    result = []
    for segment in range(SEGMENTS):
        values = [segment_value(law, segment, node) for node in nodes]
        result.append([exact.fdot(row, values) for row in rows])
    return result


@functools.lru_cache(maxsize=16)
def piecewise(law: Law, factor: float, fraction_bits: int) -> Piecewise:
    """Tables of `factor` times the law's function, 1 <= factor < 2."""
    assert 1 <= factor < 2
    exact = _precise()
    scale = exact.ldexp(exact.mpf(factor), fraction_bits)
    rows = [[int(exact.nint(exact.mpf(c) * scale)) for c in row] for row in _polynomials(law)]
    return Piecewise(np.array(rows, dtype=np.int64), fraction_bits)


@functools.cache
def largest_coefficients(law: Law) -> list[float]:
    """The largest absolute value of each power's coefficient over all segments."""
    return [max(abs(float(c)) for c in column) for column in zip(*_polynomials(law), strict=True)]
