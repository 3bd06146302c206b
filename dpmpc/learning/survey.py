"""Private preprocessing: one noisy release from which ranges, centres, scales and category lists are made.

Without public bounds the constants of the preprocessing are somebody's values. Here owners first send one vector of
counts:

- a *number* v falls into one cell: missing, zero, or (sign, octave) with 2^k <= |v| < 2^(k+1). The cell counts it,
  and holds two moments of its place t in [-1, 1) in the octave, t and P2(t) = (3 t^2 - 1)/2, each times MOMENT:
  enough for means and variances that are exact but for the noise. Octaves run over a public range, so no bound is
  asked for.
- a *category* falls into one of B hashed buckets, or missing. What is kept is a bucket's number: texts are never
  sent.

The sum over all records, with Gaussian noise on it, is opened once; all else is post-processing (`findings`).

Guarantees: a record changes one cell of each column for another. In a number's cells its part of the vector has
squared norm 1 + MOMENT^2 (t^2 + P2(t)^2) <= 1 + 2 MOMENT^2 = 9/8 (t^2 + P2^2 grows to 2 at |t| = 1: P2 in [-1/2, 1]),
and two different cells are orthogonal; within one cell the counts cancel. So two records are sqrt(9/4 a + 2 b) apart
at most with a numeric and b categorical columns (`spread`), which a test attains in the limit t -> 1. Column names,
their kinds and the number of records are public. The guarantee covers the thresholds too: which cells exist does not
depend on records, so that no delta is spent on them; a list of *texts* would have to pay for texts that one record
alone holds.
"""

import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm

from dpmpc.data.preprocess import Raw, as_numbers, as_texts
from dpmpc.data.table import is_missing
from dpmpc.errors import UsageError
from dpmpc.privacy.checks import check_count, check_nonnegative

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

LOWEST, HIGHEST = -24, 40  # octaves: |v| below 2^-24 is zero, from 2^40 on it is the largest number below
OCTAVES = HIGHEST - LOWEST
MOMENT = 0.25
CELLS = 2 + 2 * OCTAVES  # missing, zero, then the negative and the positive octaves
NUMBER = CELLS + 4 * OCTAVES  # coordinates of a numeric column: counts, then t and P2 of every octave
FALSE_ALARMS = 1e-3  # expected number of cells kept by noise alone, over all columns
BESIDE = 2.5  # deviations of the noise that a cell beside a kept one must exceed
WIDTH = 2.0  # of the scaled range, in standard deviations on either side of the centre
NARROWEST = 1e-4  # the least standard deviation, of the range: noise must not blow a constant column up


@dataclass(frozen=True)
class Survey:
    """What is asked of every record; public. `buckets`: B of every categorical column."""

    numbers: tuple[str, ...]
    categories: tuple[str, ...] = ()
    buckets: int = 256

    def __post_init__(self) -> None:
        check_count("the number of buckets", self.buckets)
        if not self.numbers and not self.categories:
            raise UsageError("a survey asks about columns; none were named; name at least one")

    @property
    def coordinates(self) -> int:
        """The length of the vector."""
        return len(self.numbers) * NUMBER + len(self.categories) * (self.buckets + 1)

    @property
    def norm(self) -> float:
        """The largest norm of one record's vector: what an owner clips its mean to, to be safe from its own
        errors."""
        return math.sqrt((1 + 2 * MOMENT**2) * len(self.numbers) + len(self.categories))

    @property
    def spread(self) -> float:
        """How far two records' vectors can lie apart, L2: what 2G is for gradients."""
        return math.sqrt(2.0) * self.norm

    def encode(self, columns: Mapping[str, Raw]) -> Floats:
        """(coordinates,) the sum over one owner's records. Secret. Errors: a column that is missing, or no
        numbers."""
        parts = []
        for name in self.numbers:
            parts.append(_count_numbers(as_numbers(_column(columns, name), name)))
        for name in self.categories:
            raw = as_texts(_column(columns, name))
            place = bucket(name, raw, self.buckets)
            parts.append(np.bincount(place, minlength=self.buckets + 1).astype(np.float64))
        return np.concatenate(parts)

    def findings(self, total: Floats, records: int, noise: float) -> "Findings":
        """What the opened sum says: total (coordinates,), the number of records, the noise's deviation a
        coordinate."""
        if len(total) != self.coordinates:
            raise UsageError(f"this survey has {self.coordinates} coordinates; got {len(total)}; use the same survey")
        check_nonnegative("noise", noise)
        numbers = total[: len(self.numbers) * NUMBER].reshape(len(self.numbers), NUMBER)
        texts = total[len(self.numbers) * NUMBER :].reshape(len(self.categories), self.buckets + 1)
        cells = len(self.numbers) * CELLS + texts.size
        high = noise * float(norm.isf(min(0.5, FALSE_ALARMS / cells)))
        return Findings(
            {name: _summary(row, high, noise) for name, row in zip(self.numbers, numbers, strict=True)},
            {
                name: Buckets(
                    self.buckets, tuple(int(k) for k in np.flatnonzero(row[:-1] > high)), bool(row[-1] > high)
                )
                for name, row in zip(self.categories, texts, strict=True)
            },
        )


@dataclass(frozen=True)
class Summary:
    """A numeric column as the noisy counts have it. missing: whether enough values are missing to be a feature."""

    low: float
    high: float
    mean: float
    deviation: float
    missing: bool

    @property
    def bounds(self) -> tuple[float, float]:
        """The range that is mapped on [-1, 1]: WIDTH deviations about the mean, so that 0 is the mean."""
        return self.mean - WIDTH * self.deviation, self.mean + WIDTH * self.deviation


@dataclass(frozen=True)
class Buckets:
    """A categorical column: the buckets that became features, of how many, and whether missing is one."""

    of: int
    kept: tuple[int, ...]
    missing: bool


@dataclass(frozen=True)
class Findings:
    """What one release told of every column; public."""

    numbers: dict[str, Summary]
    categories: dict[str, Buckets]


def bucket(name: str, texts: NDArray[np.bytes_], buckets: int) -> Ints:
    """(n,) the bucket of each text of column `name`: SHA-256 of both, modulo `buckets`; `buckets` itself for
    missing."""
    distinct, index = np.unique(texts, return_inverse=True)
    place = np.empty(len(distinct), dtype=np.int64)
    for i, text in enumerate(distinct):
        digest = hashlib.sha256(name.encode() + b"\0" + bytes(text)).digest()
        place[i] = int.from_bytes(digest[:8], "little") % buckets
    place[is_missing(distinct)] = buckets
    return np.asarray(place[index.reshape(-1)], dtype=np.int64)


def cell_of(values: Floats) -> tuple[Ints, Floats]:
    """(cell (n,), t (n,)) of each number: cell 0 missing, 1 zero, then negative octaves by size, then positive
    ones."""
    size = np.abs(values)
    gone = np.isnan(values)
    with np.errstate(invalid="ignore"):
        capped = np.minimum(size, np.nextafter(math.ldexp(1.0, HIGHEST), 0.0))
        fraction, exponent = np.frexp(np.where(gone | (capped < math.ldexp(1.0, LOWEST)), 1.0, capped))
    octave = exponent.astype(np.int64) - 1 - LOWEST
    cell = 2 + octave + np.where(values > 0, OCTAVES, 0)
    nothing = ~gone & (size < math.ldexp(1.0, LOWEST))
    cell = np.where(gone, 0, np.where(nothing, 1, cell))
    return cell, np.where(cell > 1, 4.0 * fraction - 3.0, 0.0)


def _count_numbers(values: Floats) -> Floats:
    cell, t = cell_of(values)
    counts = np.bincount(cell, minlength=CELLS).astype(np.float64)
    in_octave = cell > 1
    place = cell[in_octave] - 2
    first = np.bincount(place, weights=MOMENT * t[in_octave], minlength=2 * OCTAVES)
    second = np.bincount(place, weights=MOMENT * (1.5 * t[in_octave] ** 2 - 0.5), minlength=2 * OCTAVES)
    return np.concatenate([counts, first, second])


def _summary(row: Floats, high: float, noise: float) -> Summary:
    """Range, mean and deviation from the cells of one column that stand out of the noise.

    Moments of an octave are shrunk towards those of a uniform law, by their variance there (1/3 of t, 1/5 of P2)
    beside the noise's. The deviation is at least what the noise could feign, so that a constant column is not blown
    up.
    """
    count, first, second = row[2:CELLS], row[CELLS : CELLS + 2 * OCTAVES], row[CELLS + 2 * OCTAVES :]
    places = np.flatnonzero(_standing_out(count, row[1], high, BESIDE * noise))
    unit = np.ldexp(1.0, (LOWEST + places % OCTAVES).astype(np.int64))
    sign = np.where(places < OCTAVES, -1.0, 1.0)
    n = np.maximum(count[places], 0.0)
    error = (noise / MOMENT / np.maximum(n, 1.0)) ** 2
    t = np.clip(first[places] / MOMENT / np.maximum(n, 1.0), -1.0, 1.0) * (1 / 3) / (1 / 3 + error)
    q = np.clip(second[places] / MOMENT / np.maximum(n, 1.0), -0.5, 1.0) * (1 / 5) / (1 / 5 + error)
    centre, inside = sign * unit * (1.5 + 0.5 * t), unit**2 / 4 * np.maximum((2 * q + 1) / 3 - t * t, 0.0)
    ends = np.concatenate([sign * unit, sign * 2 * unit])
    if row[1] > BESIDE * noise or not len(places):
        n, unit, centre, inside = (
            np.append(v, e) for v, e in ((n, max(row[1], 0.0)), (unit, 0), (centre, 0), (inside, 0))
        )
        ends = np.append(ends, 0.0)
    low, top, total = float(ends.min()), float(ends.max()), float(n.sum())
    missing = bool(row[0] > high)
    if total <= 0 or low == top:
        return Summary(low, top, low, 1.0, missing)
    mean = float(n @ centre) / total
    away = centre - mean
    variance = float(n @ (away**2 + inside)) / total
    feigned = [away**2 + inside - variance, away * unit / MOMENT, unit**2 / 6 / MOMENT]
    least = noise / total * math.sqrt(math.fsum(float(part @ part) for part in feigned))
    deviation = math.sqrt(max(variance, least, (NARROWEST * (top - low)) ** 2))
    return Summary(low, top, mean, min(deviation, (top - low) / 2), missing)


def _standing_out(count: Floats, zeros: float, high: float, beside: float) -> NDArray[np.bool_]:
    """Octaves whose count exceeds `high`, or `beside` and lie next to a kept one; the fullest if nothing stands
    out."""
    kept = count > high
    if not kept.any() and zeros <= beside:
        kept[int(np.argmax(count))] = True
    for start in (0, OCTAVES):
        part, filled = kept[start : start + OCTAVES], count[start : start + OCTAVES] > beside
        while True:
            grown = part | (filled & (np.append(part[1:], False) | np.append(False, part[:-1])))
            if (grown == part).all():
                break
            part[:] = grown
    return kept


def _column(columns: Mapping[str, Raw], name: str) -> Raw:
    if name not in columns:
        raise UsageError(f"a survey needs its columns; '{name}' is not in the data; add it or leave it out")
    return columns[name]


def kinds(names: Sequence[str], categories: Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """(numbers, categories) of public column names, when the user names those that are categories."""
    unknown = [name for name in categories if name not in names]
    if unknown:
        raise UsageError(f"categories are columns of the data; '{unknown[0]}' is none; check its spelling")
    return tuple(n for n in names if n not in categories), tuple(categories)
