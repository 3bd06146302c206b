"""Vectors of counts: how many records of an owner lie in the upper half of each column, as shares of n."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from dpmpc.extend import Floats, Ints, Sensitivity, Source, Sum, Table, Weights, of_means


@dataclass(frozen=True)
class Halves(Source):
    """One share a column, each 0 to 1. `names`: of the columns; `middles`: where their upper halves begin."""

    KIND: ClassVar[str] = "halves"
    UNITS: ClassVar[tuple[str, ...]] = ("record", "owner")

    names: tuple[str, ...]
    middles: tuple[float, ...]

    @property
    def clip(self) -> float:
        return len(self.names) ** 0.5

    @property
    def coordinates(self) -> int:
        return len(self.names)

    @property
    def reads(self) -> tuple[str, ...]:
        return self.names

    def means(self, table: Table, owner: Ints, sizes: Sequence[int]) -> Iterator[Floats]:
        """A field that is no number counts as below the middle."""
        middles = zip(self.names, self.middles, strict=True)
        cells = [f"CAST(coalesce({table.number(name)} >= {middle!r}, FALSE) AS INTEGER)" for name, middle in middles]
        rows = np.concatenate([np.stack(block, axis=1) for block in table.blocks(cells)])
        yield np.stack([rows[owner == j].sum(axis=0) / size for j, size in enumerate(sizes)])

    def says(self, opened: Sum) -> dict[str, Any]:
        shares = opened.total / opened.count
        return {"upper halves": dict(zip(self.names, shares.tolist(), strict=True)), **super().says(opened)}

    def by_record(self, sizes: Sequence[int], weights: Weights, dimension: int) -> Sensitivity:
        """A record's row of zeros and ones, replaced by any other: every column may turn."""
        spread = Sensitivity(l1=float(len(self.names)), l2=self.clip, linf=1.0)
        return of_means(spread, self.clip, sizes, weights, dimension)
