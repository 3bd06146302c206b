"""Vectors of counts: how many records of an owner lie in the upper half of each column, as shares of n."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from dpmpc.extend import Sensitivity, Source, Weights, of_means


@dataclass(frozen=True)
class Halves(Source):
    """One share a column, each 0 to 1."""

    KIND: ClassVar[str] = "halves"
    UNITS: ClassVar[tuple[str, ...]] = ("record", "owner")

    columns: int

    @property
    def clip(self) -> float:
        return self.columns**0.5

    @property
    def coordinates(self) -> int:
        return self.columns

    def by_record(self, sizes: Sequence[int], weights: Weights, dimension: int) -> Sensitivity:
        """A record's row of zeros and ones, replaced by any other: every column may turn."""
        spread = Sensitivity(l1=float(self.columns), l2=self.clip, linf=1.0)
        return of_means(spread, self.clip, sizes, weights, dimension)
