"""The records of a tile as a matrix: written out, or by their places (`records.design.Compact`)."""

from collections.abc import Iterator
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from dpmpc.lazy import dataclass
from dpmpc.learning.row_sums import row_sums
from dpmpc.records.blocks import Records
from dpmpc.records.design import Compact

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

_NUMBERS = 1 << 18  # 2 MB, which a core's cache holds
_ROWS = 1 << 13  # temporaries of as many doubles are below what malloc asks the system for
_LONG = 24  # features: from about here on, rows times theta are quicker one row at a time


class Matrix(Protocol):
    """(n, d) rows of records."""

    @property
    def shape(self) -> tuple[int, int]: ...

    def scores(self, theta: Floats) -> Floats:
        """(n,) the scores x . theta, or (n, K) for theta with d K numbers."""

    def sums(self, coefficients: Floats, cuts: Ints) -> Floats:
        """(m, d) row k: the sum of coefficients[i] x_i over rows cuts[k] : cuts[k + 1], from 0 to n; (m, d K) for
        coefficients (n, K)."""

    def rows(self) -> Floats:
        """(n, d), written out."""

    def part(self, begin: int, end: int) -> "Matrix":
        """Rows begin ... end - 1."""


def at_once(width: int) -> int:
    """How many rows of so many numbers are worked on at once: a power of two, 64 to 8,192, of some 2^18 numbers."""
    return min(_ROWS, 1 << max(6, (_NUMBERS // max(1, width)).bit_length() - 1))


def written(X: Matrix, begin: int = 0, end: int | None = None) -> Iterator[tuple[slice, Floats]]:
    """Rows begin ... end - 1 written out, as many at a time as a core's cache holds."""
    step, last = at_once(X.shape[1]), X.shape[0] if end is None else end
    for first in range(begin, last, step):
        rows = slice(first, min(first + step, last))
        yield rows, X.part(rows.start, rows.stop).rows()


@dataclass(frozen=True, eq=False)
class DenseRows:
    """Rows X (n, d) that are written out."""

    X: Floats

    @property
    def shape(self) -> tuple[int, int]:
        return int(self.X.shape[0]), int(self.X.shape[1])

    def scores(self, theta: Floats) -> Floats:
        return scored(self.X, theta)

    def sums(self, coefficients: Floats, cuts: Ints) -> Floats:
        return _sums(coefficients, self.X, cuts)

    def rows(self) -> Floats:
        return self.X

    def part(self, begin: int, end: int) -> "DenseRows":
        return DenseRows(self.X[begin:end])


@dataclass(frozen=True, eq=False)
class CompactRows:
    """Rows that are kept as places."""

    compact: Compact

    @property
    def shape(self) -> tuple[int, int]:
        return self.compact.shape

    def scores(self, theta: Floats) -> Floats:
        return self.compact.scores(theta)

    def sums(self, coefficients: Floats, cuts: Ints) -> Floats:
        """Of groups of fewer rows than `Design.few` the rows are written out for it, some groups at a time."""
        small = np.diff(cuts) < self.compact.design.few
        if not small.any():
            return self.compact.sums(coefficients, cuts)
        K = 1 if coefficients.ndim == 1 else coefficients.shape[1]
        found = np.empty((len(small), self.shape[1] * K)) if small.all() else self.compact.sums(coefficients, cuts)
        which, step = np.flatnonzero(small), at_once(self.shape[1])
        together = (np.cumsum(np.diff(cuts)[which]) - 1) // step
        for groups in np.split(which, np.flatnonzero(np.diff(together)) + 1):
            sizes = np.diff(cuts)[groups]
            own = np.concatenate([[0], np.cumsum(sizes)])
            rows = np.repeat(cuts[groups] - own[:-1], sizes) + np.arange(own[-1])
            found[groups] = _sums(np.ascontiguousarray(coefficients[rows]), self.compact.taken(rows).rows(), own)
        return found

    def rows(self) -> Floats:
        return self.compact.rows()

    def part(self, begin: int, end: int) -> "CompactRows":
        return CompactRows(self.compact.part(begin, end))


def matrix_of(records: Records, begin: int, end: int) -> Matrix:
    """Rows begin ... end - 1 of records, as they are kept."""
    compact = records.compact(begin, end)
    return DenseRows(records.rows(begin, end)) if compact is None else CompactRows(compact)


def scored(X: Floats, theta: Floats) -> Floats:
    """(n,) the scores x . theta of the rows X (n, d), or (n, K) for theta with d K numbers. Of one score a row has the
    same bits in every block: from some features on it is multiplied by itself, at about twice BLAS's speed."""
    d = X.shape[1]
    if len(theta) == d >= _LONG:
        return np.asarray(np.einsum("ij,j->i", X, theta), dtype=np.float64)
    return np.asarray(X @ (theta if len(theta) == d else theta.reshape(d, -1)), dtype=np.float64)


def _sums(coefficients: Floats, X: Floats, cuts: Ints) -> Floats:
    if coefficients.ndim == 2:
        columns = [_sums(np.ascontiguousarray(column), X, cuts) for column in coefficients.T]
        return np.stack(columns, axis=2).reshape(len(cuts) - 1, -1)
    if len(cuts) == 2:
        return np.asarray(coefficients @ X, dtype=np.float64)[None, :]
    return row_sums(coefficients, X, cuts)
