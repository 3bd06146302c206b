"""Features made of a survey's findings: scaled numbers, missing indicators, hashed categories.

A number becomes (v - mean)/(2 deviations), clipped to [-1, 1], so that a missing value, which is 0, is the mean.
These are columns as `data.preprocess` has them (name, features, write, missing), so that a `Preprocessing` of them
scales rows into the unit ball as always; they move there, with their kinds in its JSON.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpmpc.data.preprocess import Numeric, Raw, as_numbers, as_texts
from dpmpc.errors import UsageError
from dpmpc.learning.survey import Findings, bucket

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
_SHRINK = 1.0 - 2.0**-44  # as `data.preprocess`: the exact norm is at most 1 in spite of rounding


@dataclass(frozen=True)
class MissingNumber:
    """One 0/1 feature: whether the number is missing."""

    name: str

    @property
    def features(self) -> tuple[str, ...]:
        return (f"{self.name} missing",)

    def write(self, raw: Raw, out: Floats) -> None:
        """Puts the indicator into out (n, 1)."""
        out[:, 0] = np.isnan(as_numbers(raw, self.name))

    def missing(self, raw: Raw) -> Bools:
        return np.zeros(len(raw), dtype=bool)


@dataclass(frozen=True)
class Hashed:
    """One 0/1 feature for each kept bucket, and one for missing if `with_missing`; other texts are all zeros."""

    name: str
    of: int
    kept: tuple[int, ...]
    with_missing: bool = False

    @property
    def features(self) -> tuple[str, ...]:
        names = tuple(f"{self.name}#{k}" for k in self.kept)
        return (*names, f"{self.name} missing") if self.with_missing else names

    def write(self, raw: Raw, out: Floats) -> None:
        """Puts the indicators into out (n, number of features)."""
        place = bucket(self.name, as_texts(raw), self.of)
        wanted = np.array((*self.kept, self.of) if self.with_missing else self.kept, dtype=np.int64)
        out[:] = place[:, None] == wanted[None, :]

    def missing(self, raw: Raw) -> Bools:
        return np.asarray(bucket(self.name, as_texts(raw), self.of) == self.of)


Feature = Numeric | MissingNumber | Hashed


def features(findings: Findings) -> tuple[Feature, ...]:
    """The columns of the preprocessing, in the survey's order. A categorical column without a kept bucket has
    none."""
    made: list[Feature] = []
    for name, summary in findings.numbers.items():
        low, high = summary.bounds
        made.append(Numeric(name, low, high, signed=True))
        if summary.missing:
            made.append(MissingNumber(name))
    for name, kept in findings.categories.items():
        if kept.kept or kept.missing:
            made.append(Hashed(name, kept.of, kept.kept, kept.missing))
    if not made:
        raise UsageError("no column stood out of the survey's noise; the budget is too small; give --bounds")
    return tuple(made)


def transform(made: tuple[Feature, ...], columns: Mapping[str, Raw], intercept: bool = True) -> Floats:
    """(n, d) rows in the unit ball: the features, an intercept, each row divided by max(1, its norm)."""
    n = len(columns[made[0].name])
    X = np.empty((n, sum(len(column.features) for column in made) + intercept))
    begin = 0
    for column in made:
        end = begin + len(column.features)
        column.write(columns[column.name], X[:, begin:end])
        begin = end
    X[:, begin:] = 1.0
    norms = np.sqrt(np.einsum("nd,nd->n", X, X))
    X *= (_SHRINK / np.maximum(1.0, norms))[:, None]
    return X
