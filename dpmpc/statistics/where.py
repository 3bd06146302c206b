"""Which records a question is about: an AND of conditions. A missing value satisfies none of them."""


import numpy as np
from numpy.typing import NDArray

from dpmpc.lazy import dataclass
from dpmpc.statistics.cells import Field, RecordFields
from dpmpc.statistics.columns import Grouped, Quantity

Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class Among:
    """The category is one of these levels, given by their places."""

    column: Grouped
    levels: tuple[int, ...]

    def holds(self, records: RecordFields) -> Mask:
        """(n,) whether it is."""
        return np.isin(records[self.column], self.levels)

    def __str__(self) -> str:
        names = [word(self.column.levels[k]) for k in self.levels]
        what = f"= {names[0]}" if len(names) == 1 else f"in {{{', '.join(names)}}}"
        return f"{word(self.column.name)} {what}"


@dataclass(frozen=True)
class Between:
    """The number lies in [low, high], both ends among them."""

    column: Quantity
    low: float
    high: float

    def holds(self, records: RecordFields) -> Mask:
        """(n,) whether it does; never for NaN."""
        values = records[self.column]
        return (values >= self.low) & (values <= self.high)

    def __str__(self) -> str:
        ends = f"= {_exact(self.low)}" if self.low == self.high else f"in {_exact(self.low)}..{_exact(self.high)}"
        return f"{word(self.column.name)} {ends}"


Condition = Among | Between


@dataclass(frozen=True)
class Where:
    """All conditions at once, in the order of their columns; none: every record."""

    conditions: tuple[Condition, ...] = ()

    @property
    def fields(self) -> tuple[Field, ...]:
        return tuple(condition.column for condition in self.conditions)

    def holds(self, records: RecordFields) -> Mask:
        """(n,) whether each record satisfies all of them."""
        inside = np.ones(records.n, dtype=bool)
        for condition in self.conditions:
            inside &= condition.holds(records)
        return inside

    def __bool__(self) -> bool:
        return bool(self.conditions)

    def __str__(self) -> str:
        return " and ".join(str(condition) for condition in self.conditions)


ALL = Where()
KEYWORDS = ("by", "where", "and", "in")
_DELIMITERS = frozenset('(){}[],="\\')


def word(text: str) -> str:
    """A name or a value as the language writes it: bare where it can be, else in quotes."""
    plain = text and not any(c in _DELIMITERS or c.isspace() for c in text) and ".." not in text
    if plain and text not in KEYWORDS:
        return text
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _exact(value: float) -> str:
    return f"{value!r}".removesuffix(".0")
