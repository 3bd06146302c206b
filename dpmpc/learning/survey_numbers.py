"""The cells of a survey's numbers, and what their noisy counts and moments say: range, mean, deviation, pieces.

A number's cell is missing, zero, or a sign and an octave. Within an octave its place t in [-1, 1) tells the rest. The
arithmetic is that of `survey`, the same on every processor.
"""

import math

import numpy as np
from numpy.typing import NDArray

from dpmpc.lazy import dataclass
from dpmpc.learning.knots import Piece, knots_of, pieces_of

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

LOWEST, HIGHEST = -24, 40  # octaves: |v| below 2^-24 is zero, from 2^40 on it is the largest number below
OCTAVES = HIGHEST - LOWEST
MOMENT = 0.25
CELLS = 2 + 2 * OCTAVES  # missing, zero, then the negative and the positive octaves
NUMBER = CELLS + 4 * OCTAVES  # coordinates of a column's numbers: counts, then t and P2 of every octave
_LEAST, _LARGEST = math.ldexp(1.0, LOWEST), math.nextafter(math.ldexp(1.0, HIGHEST), 0.0)  # sizes with an octave
_FRACTION, _ONE = (1 << 52) - 1, 1023 << 52  # of the bits of a double: its fraction; 1.0
_UNITS = np.ldexp(1.0, np.arange(LOWEST, HIGHEST))
_FROM, _TO = np.concatenate([-2 * _UNITS, _UNITS]), np.concatenate([-_UNITS, 2 * _UNITS])  # of each octave
WIDEST = math.ldexp(1.0, HIGHEST)  # what a range reaches to that is not known
BESIDE = 2.5  # deviations of the noise that a cell beside a kept one must exceed
NEAR = 4.0  # deviations of a narrow column, from its mean, that such a cell begins within
SETTLED = 0.99  # of a deviation: with no less after another look it is found
WIDTH = 2.0  # of the scaled range, in standard deviations on either side of the centre
NARROWEST = 1e-4  # the least standard deviation, of the range: noise must not blow a constant column up
WIDEST_WINDOW = 10  # octaves
LONE = 5  # octaves above all others: the numbers of such a cell are more than 16 times theirs


@dataclass(frozen=True)
class Summary:
    """The numbers of a column as the noisy counts have them."""

    low: float
    high: float
    mean: float
    deviation: float
    pieces: tuple[Piece, ...] = ()  # where its numbers lie, in rising order

    @property
    def knots(self) -> tuple[float, ...]:
        """What the smooth functions of an additive schema bend at; () where two do not stand apart."""
        return knots_of(self.pieces, self.deviation)

    @property
    def bounds(self) -> tuple[float, float]:
        """The range that is mapped on [-1, 1]: WIDTH deviations about the mean, so that 0 is the mean."""
        return self.mean - WIDTH * self.deviation, self.mean + WIDTH * self.deviation


def cell_of(values: Floats) -> tuple[Ints, Floats]:
    """(cell (n,), t (n,)) of each number: cell 0 missing, 1 zero, then negative octaves by size, then positive
    ones."""
    size = np.minimum(np.abs(values), _LARGEST)
    bits = size.view(np.int64)  # exponent and fraction as IEEE 754 has them: no number here is subnormal
    cell = (bits >> 52) + (2 - 1023 - LOWEST)
    cell[values > 0] += OCTAVES
    t = 2.0 * ((bits & _FRACTION) | _ONE).view(np.float64) - 3.0
    small, gone = size < _LEAST, np.isnan(values)
    cell[small], cell[gone] = 1, 0
    t[small | gone] = 0.0
    return cell, t


def cells_of(values: Floats) -> tuple[NDArray[np.int32], Floats]:
    """(cell (n,), moments (n, 2)) of each number: what it adds to the counts and the moments of its group."""
    cell, t = cell_of(values)
    return cell.astype(np.int32), np.stack([MOMENT * t, MOMENT * (1.5 * t**2 - 0.5)], axis=1)


def count_numbers(values: Floats, group: Ints, groups: int) -> Floats:
    """(groups, NUMBER) the counts and moments of each group's numbers."""
    cell, moments = cells_of(values)
    at, octaves = cell + group * CELLS, slice(2, CELLS)  # those of the cells before are of nothing
    counts = np.bincount(at, minlength=groups * CELLS).reshape(groups, CELLS).astype(np.float64)
    first, second = (np.bincount(at, each, groups * CELLS).reshape(groups, CELLS) for each in moments.T)
    return np.concatenate([counts, first[:, octaves], second[:, octaves]], axis=1)


def summary_of(
    row: Floats, high: float, sure: float, noise: float, least: float, most: float, far: float = math.inf
) -> Summary:
    """Range, mean and deviation from the cells of one column that stand out of the noise, within least .. most.

    A cell stands out whose count exceeds `high`; if none does, those of the window that does most. One whose numbers
    are much larger than all others' must exceed `sure` (`_lone`). Cells beside these
    are kept from BESIDE deviations of the noise on, no further than `far` of the column's own from the mean: a law
    with one peak has less than 2.8 % beyond 4, and an empty cell there, kept by noise, would widen the column most.
    """
    count, zeros = np.where(_within(least, most), row[2:CELLS], 0.0), row[1] if least <= 0 <= most else 0.0
    kept, empty, loud = count > high, bool(zeros > high), BESIDE * noise
    if not kept.any() and not empty:
        kept = window(count)
    kept = _lone(count, kept, sure)
    while True:
        found = _narrowed(row, kept, zeros if empty else None, noise, (least, most), far)
        sides, reach = np.pad(kept.reshape(2, OCTAVES), ((0, 0), (1, 1))), far * found.deviation
        near = (sides[:, 2:] | sides[:, :-2]).reshape(-1) & (np.maximum(_FROM - found.mean, found.mean - _TO) <= reach)
        zero, grown = empty or bool(zeros > loud and abs(found.mean) <= reach), kept | (near & (count > loud))
        if zero == empty and (grown == kept).all():
            return found
        empty, kept = zero, grown


def _lone(count: Floats, kept: NDArray[np.bool_], sure: float) -> NDArray[np.bool_]:
    """What is kept without the largest octaves that noise alone may have raised: up to `sure`, and at least LONE above
    all others, so that such an octave would set the scale of the column, up to thousands of times too wide."""
    at: NDArray[np.bool_] = kept.reshape(2, OCTAVES).max(axis=0)
    counts = count.reshape(2, OCTAVES).max(axis=0)
    while at.sum() > 1:
        below, top = (int(place) for place in np.flatnonzero(at)[-2:])
        if top - below < LONE or counts[top] > sure:
            break
        at[top] = False
    return kept & np.tile(at, 2)


def _narrowed(
    row: Floats,
    kept: NDArray[np.bool_],
    zeros: float | None,
    noise: float,
    within: tuple[float, float],
    far: float,
) -> Summary:
    """The summary of cells whose records are looked for within `far` deviations of the mean, as far as cells reach
    there: what little an octave of few records tells of their place would set the scale of a narrow column else."""
    places = np.flatnonzero(kept)
    found = _of_cells(row, places, zeros, noise, within, within)
    while True:
        reach = far * found.deviation
        ends = max(within[0], found.mean - reach), min(within[1], found.mean + reach)
        narrower = _of_cells(row, places, zeros, noise, within, ends)
        if narrower.deviation >= SETTLED * found.deviation:
            return found
        found = narrower


def _of_cells(
    row: Floats, places: Ints, zeros: float | None, noise: float, within: tuple[float, float], ends: tuple[float, float]
) -> Summary:
    """The summary of these octaves, and of so many zeros (None: they do not count).

    Moments of an octave are shrunk towards those of a uniform law on its part between `ends` (all of it where it has
    none there), by their variance in that law beside the noise's. The deviation is at least what noise leaves unknown
    of it after that, so that a constant column is not blown up.
    """
    count, first, second = row[2:CELLS], row[CELLS : CELLS + 2 * OCTAVES], row[CELLS + 2 * OCTAVES :]
    unit, sign = _UNITS[places % OCTAVES], np.where(places < OCTAVES, -1.0, 1.0)
    n = np.maximum(count[places], 0.0)
    error = np.square(noise / MOMENT / np.maximum(n, 1.0))
    likely, half = _places(_FROM[places], _TO[places], unit, ends)
    square = half * half / 3  # the variance of t
    trust, trust2 = square / (square + error), 0.6 * square / (0.6 * square + error)
    t = likely + trust * (np.clip(first[places] / MOMENT / np.maximum(n, 1.0), -1.0, 1.0) - likely)
    q = 1.5 * (likely * likely + square) - 0.5
    q = q + trust2 * (np.clip(second[places] / MOMENT / np.maximum(n, 1.0), -0.5, 1.0) - q)
    centre, inside = sign * unit * (1.5 + 0.5 * t), unit * unit / 4 * np.maximum((2 * q + 1) / 3 - t * t, 0.0)
    edges = [*_FROM[places].tolist(), *_TO[places].tolist()]
    if zeros is not None:
        n, unit, centre, inside, trust, trust2 = (
            np.append(v, e) for v, e in ((n, max(zeros, 0.0)), *((v, 0) for v in (unit, centre, inside, trust, trust2)))
        )
        edges.append(0.0)
    low, top = (min(max(end, within[0]), within[1]) for end in (min(edges), max(edges)))
    total = math.fsum(n)
    if total <= 0 or low == top:
        return Summary(low, top, low, 1.0)
    mean = min(max(math.fsum(n * centre) / total, low), top)
    away = centre - mean
    variance = math.fsum(n * (away * away + inside)) / total
    moments = np.sqrt(trust) * away * unit / MOMENT, np.sqrt(trust2) * unit * unit / 6 / MOMENT
    feigned = np.concatenate([away * away + inside - variance, *moments])
    feint = noise / total * math.sqrt(math.fsum(feigned * feigned))
    smallest = NARROWEST * (top - low)
    deviation = math.sqrt(max(variance, feint, smallest * smallest))
    pieces = pieces_of(n, centre, inside, np.abs(unit), within)
    return Summary(low, top, mean, min(deviation, (top - low) / 2), pieces)


def _places(begin: Floats, end: Floats, unit: Floats, ends: tuple[float, float]) -> tuple[Floats, Floats]:
    """(middle, half the width) of t in each octave, begin .. end, of its part between `ends`; of all of it where it
    has no part there."""
    low, high = np.maximum(begin, ends[0]), np.minimum(end, ends[1])
    none = low >= high
    low, high = np.where(none, begin, low), np.where(none, end, high)
    return np.abs(low + high) / unit - 3.0, (high - low) / unit


def _within(least: float, most: float) -> NDArray[np.bool_]:
    """(2 OCTAVES,) whether a cell has a number of the range."""
    return np.concatenate([(-_UNITS >= least) & (-2 * _UNITS < most), (_UNITS <= most) & (2 * _UNITS > least)])


def window(count: Floats) -> NDArray[np.bool_]:
    """The neighbouring octaves of one sign or of both whose sum is largest for its noise: a column whose values are
    spread over many cells, none of which stands out, shows here."""
    signs = count.reshape(2, OCTAVES)
    best, kept = -math.inf, np.zeros((2, OCTAVES), dtype=bool)
    for rows in ((0,), (1,), (0, 1)):
        sums = np.concatenate([[0.0], np.cumsum(signs[list(rows)].sum(axis=0))])
        for width in range(1, WIDEST_WINDOW + 1):
            found = (sums[width:] - sums[:-width]) / math.sqrt(width * len(rows))
            at = int(np.argmax(found))
            if found[at] > best:
                best = float(found[at])
                kept[:] = False
                kept[list(rows), at : at + width] = True
    return kept.reshape(-1)
