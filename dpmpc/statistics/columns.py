"""The columns that questions may be about: numbers with bounds and categories with levels, all of them public.

They come from a schema, a survey or stated bounds, never from records: which cells a table has depends on nobody's
values. How a record is read is total: what is missing is missing, a text among numbers is missing too, a category that
no list has is a level of its own.
"""

import difflib
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dpmpc.errors import RecordError, UsageError
from dpmpc.intake.spelling import composed, listed
from dpmpc.lazy import dataclass
from dpmpc.records.schema import (
    Categorical,
    Classes,
    Date,
    Labels,
    Numeric,
    Range,
    Schema,
    Surveyed,
    column_of_bounds,
    is_name,
)  # fmt: skip
from dpmpc.records.schema import Column as SchemaColumn
from dpmpc.records.targets import repeated

if TYPE_CHECKING:
    from dpmpc.intake.table import Table  # a party derives a release without a database engine

Values = NDArray[Any]
MISSING, OTHER = "(missing)", "(other)"  # cells beside the levels
OWNER = "owner"  # the word for whose a record is, where no column is called so
_MOST_BUCKETS = 1 << 20
_WIDER = 2.0  # a survey maps two deviations on either side of the mean; statistics take four


@dataclass(frozen=True)
class Quantity:
    """A column of numbers; those outside [low, high] count as its ends where a statistic needs bounds. `cuts`: the
    public edges of its cells in tables; without them cells have equal widths. `dates`: texts that spell dates are read
    too, as days since 1970-01-01."""

    name: str
    low: float
    high: float
    cuts: tuple[float, ...] = ()
    dates: bool = False

    def __post_init__(self) -> None:
        if not all(math.isfinite(value) for value in (self.low, self.high, *self.cuts)) or self.low > self.high:
            raise UsageError(
                f"a column of numbers lies between finite bounds; those of '{self.name}' are {self.low:g} and "
                f"{self.high:g}; correct them"
            )

    def sql(self, table: "Table") -> list[str]:
        """The expressions that are read for it. Errors: RecordError for a column of dates that is asked for numbers,
        which as text in another file would be missing."""
        from dpmpc.intake.table import value_sql

        if table[self.name].kind == "date" and not self.dates:
            raise RecordError(
                f"a column that is asked for numbers holds numbers; '{self.name}' of {table.source} is a date; make it "
                "days since a fixed day, or ask nothing about it",
                "an owner has dates where numbers are asked for",
            )
        return [value_sql(table, self.name, read="either" if self.dates else "number")]

    def read(self, parts: list[Values]) -> Values:
        """(n,) numbers, NaN where there is none."""
        return np.where(np.isfinite(parts[0]), parts[0], np.nan)


@dataclass(frozen=True)
class Category:
    """A column of categories. `codes`: spelling and place of its level; `others`: the level of every other value, None
    for a cell of their own."""

    name: str
    levels: tuple[str, ...]
    codes: tuple[tuple[str, int], ...]
    others: int | None = None

    def __post_init__(self) -> None:
        _check_places(self.name, (*(k for _, k in self.codes), self.others), len(self.levels))

    def sql(self, table: "Table") -> list[str]:
        """The expressions that are read for it."""
        from dpmpc.intake.table import code_sql

        return [code_sql(table, self.name, dict(self.codes))]

    def read(self, parts: list[Values]) -> Values:
        """(n,) places of levels, -1 where a value is missing, -2 where it has no level."""
        codes = parts[0].astype(np.int64)
        return codes if self.others is None else np.where(codes == -2, self.others, codes)


@dataclass(frozen=True)
class Bucketed:
    """A column of texts that a survey has hashed: its levels are numbers of buckets, with the word that most of a
    bucket's records have where it is known (`names`)."""

    name: str
    buckets: int
    kept: tuple[int, ...]
    others: int | None = None
    names: tuple[tuple[int, str], ...] = ()

    def __post_init__(self) -> None:
        words = dict(self.names)
        if len(words) < len(self.names) or not words.keys() <= set(self.kept) or not all(map(is_name, words.values())):
            raise UsageError(
                f"names are of kept buckets, each a line of text; those of '{self.name}' are others; plan again"
            )
        _check_places(self.name, self.kept, self.buckets)
        _check_places(self.name, (self.others,), len(self.kept))
        if len(set(self.kept)) < len(self.kept) or self.buckets > _MOST_BUCKETS:
            raise UsageError(
                f"a column's buckets differ, and are at most {_MOST_BUCKETS}; those of '{self.name}' do not; plan again"
            )

    @property
    def levels(self) -> tuple[str, ...]:
        words = dict(self.names)
        return tuple(f"{words[k]} [#{k}]" if k in words else f"bucket {k}" for k in self.kept)

    def sql(self, table: "Table") -> list[str]:
        """The expressions that are read for it: the number or date that a value is, and the bucket of its text."""
        from dpmpc.intake.hashing import bucket_sql
        from dpmpc.intake.table import value_sql

        return [value_sql(table, self.name, read="either"), bucket_sql(table, self.name, self.buckets)]

    def read(self, parts: list[Values]) -> Values:
        """(n,) places of levels, -1 where a value is missing, -2 where it has no level. A number is no text, as in the
        survey; whether it has a bucket depends on the other values of its column, which is held as numbers or texts."""
        place = np.full(self.buckets + 1, -2, dtype=np.int64)
        place[list(self.kept)] = np.arange(len(self.kept))
        place[-1] = -1
        found = place[parts[1].astype(np.int64)]
        return np.where(np.isnan(parts[0]), -1, np.where(np.isfinite(parts[0]), -2, found))


@dataclass(frozen=True)
class Owners:
    """Whose each record is: a category that no file has, as every process knows whose records it reads. `levels`: the
    owners' names, by number. A record is of one of them, so there is no cell beside these."""

    levels: tuple[str, ...] = (f"{OWNER} 0", f"{OWNER} 1")  # until it is known how many there are
    name: str = OWNER

    others = None

    def __post_init__(self) -> None:
        if len(self.levels) < 2 or len(set(self.levels)) < len(self.levels) or {MISSING, OTHER} & set(self.levels):
            raise UsageError(
                f"owners are two or more, and differ in their names; got {_some(self.levels)}; ask without '{OWNER}'"
            )

    def sql(self, table: "Table") -> list[str]:
        """Nothing is read: `Tables.encode` knows the number."""
        return []

    def read(self, parts: list[Values]) -> Values:
        """Errors: always; no part of a record says it."""
        raise NotImplementedError


class OwnersToCome(Owners):
    """Owners whose names are not known yet: `levels` are those that questions name, and others."""


Grouped = Category | Bucketed | Owners
Column = Quantity | Category | Bucketed | Owners


@dataclass(frozen=True)
class Columns:
    """All columns by name."""

    columns: tuple[Column, ...]

    def __post_init__(self) -> None:
        names = [column.name for column in self.columns]
        if len(set(names)) < len(names) or not names:
            raise UsageError(f"statistics name each column once, and at least one; got {_some(names)}; correct it")

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(column.name for column in self.columns)

    @property
    def of_records(self) -> tuple[str, ...]:
        """The names of those that records have themselves."""
        return tuple(column.name for column in self.columns if not isinstance(column, Owners))

    @property
    def owners(self) -> Owners | None:
        """Whose records are, where it is asked."""
        return next((column for column in self.columns if isinstance(column, Owners)), None)

    def or_owners(self, named: Iterable[str] = ()) -> "Columns":
        """What questions may name: these, and whose records are where no column has the word. `named`: owners that
        questions name."""
        if OWNER in self:
            return self
        known = Owners().levels
        return self.with_owners(OwnersToCome((*dict.fromkeys(n for n in named if n not in known), *known)))

    def with_owners(self, owners: Owners | None) -> "Columns":
        """The same with whose records are, or without."""
        others = tuple(column for column in self.columns if not isinstance(column, Owners))
        return Columns((*others, *(() if owners is None else (owners,))))

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and any(composed(known) == composed(name) for known in self.names)

    def __getitem__(self, name: str) -> Column:
        """The column of this name. Errors: there is none; the nearest name."""
        for column in self.columns:
            if composed(column.name) == composed(name):
                return column
        raise UsageError(f"a column must be in the schema; there is no {name!r}; {self.nearest(name)}", code="column")

    def nearest(self, name: str) -> str:
        """What to write for a name that no column has."""
        plain = {known.casefold(): known for known in self.names}
        near = difflib.get_close_matches(name.casefold(), plain, 1, 0.5)
        return f"did you mean '{plain[near[0]]}'?" if near else f"the columns are {_some(self.names)}"

    def as_read(self, names: Sequence[str]) -> list["SchemaColumn"]:
        """The columns of these names as a schema has them, for a look at records."""
        found: list[SchemaColumn] = []
        for column in self.columns:
            if column.name in names:
                match column:
                    case Quantity(name, low, high, dates=True):
                        found.append(Surveyed(name, number=True, low=low, high=high, missing=True))
                    case Quantity(name, low, high):
                        found.append(Numeric(name, low, high))
                    case Category(name, _, codes):
                        found.append(Categorical(name, tuple(spelled for spelled, _ in codes)))
                    case Bucketed(name, buckets, kept):
                        found.append(Surveyed(name, buckets=buckets, kept=kept, missing=True))
        return found

    @property
    def listed(self) -> dict[str, tuple[str, ...]]:
        """The values that have a level of their own, of each category."""
        return {c.name: tuple(spelled for spelled, _ in c.codes) for c in self.columns if isinstance(c, Category)}

    @property
    def invented(self) -> Iterator[tuple[str, tuple[float, float] | list[str]]]:
        """What made-up records hold: (column, what its values lie between, or are one of)."""
        for column in self.columns:
            match column:
                case Quantity(name, low, high):
                    yield name, (low, high)
                case Category(name, _, codes):
                    yield name, [spelled for spelled, _ in codes]
                case Bucketed(name):
                    yield name, [f"made up {k}" for k in range(8)]

    @property
    def open_lists(self) -> tuple[str, ...]:
        """The categories of which a value without a level counts as one of the levels."""
        return tuple(c.name for c in self.columns if not isinstance(c, Quantity) and c.others is not None)

    @staticmethod
    def of_schema(schema: Schema) -> "Columns":
        """The columns of a schema and its target. A surveyed number's bounds are four deviations from its mean; one
        whose numbers do not stand out has its buckets for levels."""
        return Columns(tuple(found for part in (*schema.columns, schema.target) for found in _of(part)))

    @staticmethod
    def of_bounds(bounds: Mapping[str, list[float] | list[str]]) -> "Columns":
        """The columns of public bounds (`records.schema.read_bounds`): [low, high], or a list of texts. Two dates are a
        range of days, which no question is about: there is no column of them, as of a schema's dates."""
        made: list[Column] = []
        for name, entry in bounds.items():
            if isinstance(column_of_bounds(name, entry), Date):
                continue
            texts = [value for value in entry if isinstance(value, str)]
            made.append(category(name, texts) if texts else Quantity(name, float(entry[0]), float(entry[1])))
        return Columns(tuple(made))


def category(name: str, values: list[str] | tuple[str, ...]) -> Category:
    """A category each of whose levels is one value. Errors: two are the same, or one is called as a cell is."""
    levels = tuple(map(listed, values))
    taken = [level for level in levels if level in (MISSING, OTHER)]
    if repeated(levels) or taken:
        raise UsageError(
            f"levels differ, and none is called '{MISSING}' or '{OTHER}'; those of '{name}' are {_some(levels)}; "
            "correct them"
        )
    return Category(name, levels, tuple((level, k) for k, level in enumerate(levels)))


def _check_places(name: str, places: Iterable[int | None], many: int) -> None:
    """Errors: one lies beyond the levels: what a plan says is held here, for else a record of that value would end its
    owner's process, and tell of itself."""
    if not all(place is None or 0 <= place < many for place in places):
        raise UsageError(f"a value has one of its column's {many} levels; '{name}' names another; plan again")


def _of(part: Any) -> list[Column]:
    """What statistics ask of one column of a schema."""
    match part:
        case Numeric(name=name, low=low, high=high) | Range(name=name, low=low, high=high):
            return [Quantity(name, low, high)] if low < high else []
        case Categorical(name=name):
            return [_listed(name, part.values)]
        case Classes(name=name):
            return [_listed(name, part.names)]
        case Surveyed(name=name, number=True, low=low, high=high) if low < high:
            away = (high - low) / 2 * (_WIDER - 1)
            return [Quantity(name, low - away, high + away, dates=True)]
        case Surveyed(name=name, kept=kept) if kept:
            return [Bucketed(name, part.buckets, kept, names=part.names)]
        case Labels(name=name):
            levels = (part.negative_name, part.positive_name)
            return [Category(name, levels, tuple(part.codes.items()), None if part.negative is not None else 0)]
    return []


def _listed(name: str, values: tuple[str, ...]) -> Category:
    """A category of a schema, which may list '(missing)' or '(other)' itself: such values are in the cell '(other)'."""
    return category(name, [value for value in values if value not in (MISSING, OTHER)])


def _some(names: Sequence[str]) -> str:
    return ", ".join(names[:12]) + (", ..." if len(names) > 12 else "")
