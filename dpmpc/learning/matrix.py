"""The records of a tile as a matrix: written out, or by their places (`records.design.Compact`)."""

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from dpmpc.lazy import dataclass
from dpmpc.learning.row_sums import row_sums
from dpmpc.records.blocks import Records
from dpmpc.records.design import Compact

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

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


@dataclass(frozen=True, eq=False)
class Written:
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


@dataclass(frozen=True, eq=False)
class Kept:
    """Rows that are kept as places."""

    compact: Compact

    @property
    def shape(self) -> tuple[int, int]:
        return self.compact.shape

    def scores(self, theta: Floats) -> Floats:
        return self.compact.scores(theta)

    def sums(self, coefficients: Floats, cuts: Ints) -> Floats:
        """Of groups of fewer rows than `Design.few` the rows are written out for it."""
        small = np.diff(cuts) < self.compact.design.few
        if not small.any():
            return self.compact.sums(coefficients, cuts)
        if small.all():
            return _sums(coefficients, self.rows(), cuts)
        found = self.compact.sums(coefficients, cuts)
        mine = np.repeat(small, np.diff(cuts))
        own = np.concatenate([[0], np.cumsum(np.diff(cuts)[small])])
        rows = np.flatnonzero(mine) + cuts[0]
        found[small] = _sums(np.ascontiguousarray(coefficients[rows]), self.compact.taken(rows).rows(), own)
        return found

    def rows(self) -> Floats:
        return self.compact.rows()


def matrix_of(records: Records, begin: int, end: int) -> Matrix:
    """Rows begin ... end - 1 of records, as they are kept."""
    compact = records.compact(begin, end)
    return Written(records.rows(begin, end)) if compact is None else Kept(compact)


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
