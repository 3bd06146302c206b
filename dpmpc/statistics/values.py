"""Numbers in [-1, 1] that moments, trees and products are made of."""


import numpy as np

from dpmpc.lazy import dataclass
from dpmpc.statistics.cells import Field, RecordFields, Values
from dpmpc.statistics.columns import Grouped, Quantity


@dataclass(frozen=True)
class Scaled:
    """A column of numbers, clipped to its bounds and mapped linearly on [-1, 1]; NaN where it is missing."""

    column: Quantity

    @property
    def name(self) -> str:
        return self.column.name

    @property
    def fields(self) -> tuple[Field, ...]:
        return (self.column,)

    @property
    def middle(self) -> float:
        """What 0 stands for."""
        return (self.column.low + self.column.high) / 2

    @property
    def half(self) -> float:
        """What 1 stands for, away from the middle."""
        return (self.column.high - self.column.low) / 2

    def of(self, records: RecordFields) -> Values:
        """(n,) numbers."""
        with np.errstate(divide="ignore", invalid="ignore"):  # bounds that a plan has as near each other as doubles are
            t = (np.clip(records[self.column], self.column.low, self.column.high) - self.middle) / self.half
        return np.asarray(np.clip(t, -1.0, 1.0))


@dataclass(frozen=True)
class Indicator:
    """Whether a category is one of its levels: 1, else -1; NaN where it has none. In units: 1 and 0."""

    column: Grouped
    level: int

    middle = half = 0.5

    @property
    def name(self) -> str:
        return f"{self.column.name} {self.column.levels[self.level]}"

    @property
    def fields(self) -> tuple[Field, ...]:
        return (self.column,)

    def of(self, records: RecordFields) -> Values:
        """(n,) numbers."""
        codes = records[self.column]
        return np.where(codes < 0, np.nan, np.where(codes == self.level, 1.0, -1.0))
