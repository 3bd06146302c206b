"""Knots of a number's smooth functions, from the noisy counts and moments of a survey.

Each octave that stands out becomes a piece: an even spread with the octave's count, mean and variance, within it. A
piece that holds more than one KNOTS-th of a column at one point, such as the zeros of a gain, is a knot by itself; the
others lie at quantiles of the rest, so that about as many records are between any two. The arithmetic is that of
`survey`, the same on every processor.
"""

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dpmpc.records.spline_basis import KNOTS

Floats = NDArray[np.float64]
Piece = tuple[float, float, float]  # count, low, high

TAIL = 0.01  # of the records beyond the outer knots
TOP = 0.95  # of what does not lie at points, below the highest knot
LEAST = 0.02  # of the records: fewer have no knots besides points
APART = 0.1  # of the standard deviation: knots are that far apart at least


def pieces_of(
    count: Floats, centre: Floats, variance: Floats, unit: Floats, within: tuple[float, float]
) -> tuple[Piece, ...]:
    """The pieces, in rising order, of octaves with these counts, means and variances; an octave begins at `unit`, 0 for
    the zeros, and no piece reaches beyond it or beyond the range `within`."""
    found = []
    for n, middle, spread, begin in zip(*(v.tolist() for v in (count, centre, variance, unit)), strict=True):
        if n <= 0:
            continue
        half = math.sqrt(3 * max(spread, 0.0))
        least, most = (begin, 2 * begin) if middle >= 0 else (-2 * begin, -begin)
        least, most = max(least, within[0]), min(most, within[1])
        low, high = (min(max(end, least), max(least, most)) for end in (middle - half, middle + half))
        found.append((n, low, high))
    return tuple(sorted(found, key=lambda piece: (piece[1] + piece[2], piece)))


def knots_of(pieces: Sequence[Piece], deviation: float) -> tuple[float, ...]:
    """At most KNOTS knots in rising order; () where fewer than three stand apart: what bends at two is straight."""
    total = math.fsum(n for n, _, _ in pieces)
    points = [(n, low) for n, low, high in pieces if low == high and n * KNOTS > total]
    rest = [piece for piece in pieces if not (piece[1] == piece[2] and piece[0] * KNOTS > total)]
    left = math.fsum(n for n, _, _ in rest)
    many = KNOTS - len(points)
    levels: list[float] = []
    if left > LEAST * total and many >= 2:
        if points:
            levels = [(i + 0.5) / many for i in range(many - 1)] + [TOP]
        else:
            levels = [TAIL, *(i / (many - 1) for i in range(1, many - 1)), 1 - TAIL]
    made: list[float] = []
    for knot in sorted([place for _, place in points] + [_quantile(rest, level * left) for level in levels]):
        if not made or knot - made[-1] >= APART * deviation:
            made.append(knot)
    return tuple(made) if len(made) > 2 else ()


def _quantile(pieces: Sequence[Piece], wanted: float) -> float:
    """Below which as many records lie."""
    for n, low, high in pieces:
        if wanted <= n:
            return low + (high - low) * (max(wanted, 0.0) / n)
        wanted -= n
    return pieces[-1][2]
