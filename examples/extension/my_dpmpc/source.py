"""Vectors of counts: how many records of an owner lie in the upper half of each column, as shares of n."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from dpmpc.extend import (
    Answer,
    Floats,
    Ints,
    Invented,
    Line,
    Opening,
    Outcome,
    Schema,
    Sensitivity,
    Source,
    Table,
    Weights,
    of_means,
)


@dataclass(frozen=True)
class Halves(Source):
    """One share a column, each 0 to 1. `names`: of the columns; `middles`: where their upper halves begin."""

    KIND: ClassVar[str] = "halves"
    UNITS: ClassVar[tuple[str, ...]] = ("record", "owner")
    MAKES: ClassVar[str] = "the shares"
    DOES: ClassVar[str] = "counting upper halves"

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

    def outcome(self, opened: Opening) -> Outcome:
        """A share a column, with the interval that the noise gives it, cut to what a share can be."""
        shares = zip(self.names, opened.mean.tolist(), strict=True)
        lines = [Line((name,), "share", opened.number(share).within(0.0, 1.0)) for name, share in shares]
        answer = Answer("upper halves", ("column",), tuple(lines), notes=("at or above the middle of each column",))
        found = {line.labels[0]: line.number.estimate for line in lines}
        said = {"upper halves": found}
        return Outcome((answer,), title="Shares of the upper halves", about=(opened.guarantee,), section=said)

    def purpose(self, data: str, schema: Schema | None) -> str:
        return f"the shares of records in the upper halves of {', '.join(self.names)} ('{data}')"

    def invented(self, schema: Schema | None) -> Iterator[tuple[str, Invented]]:
        """Numbers on both sides of each middle."""
        yield from ((name, (middle - 1, middle + 1)) for name, middle in zip(self.names, self.middles, strict=True))

    def by_record(self, sizes: Sequence[int], weights: Weights, dimension: int) -> Sensitivity:
        """A record's row of zeros and ones, replaced by any other: every column may turn."""
        spread = Sensitivity(l1=float(len(self.names)), l2=self.clip, linf=1.0)
        return of_means(spread, self.clip, sizes, weights, dimension)
