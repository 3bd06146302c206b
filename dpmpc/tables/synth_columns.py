"""The columns of a synthetic table: from a public schema or bounds, or from a private survey."""

import datetime
from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from pathlib import Path
from typing import Any

from dpmpc.errors import RecordError, UsageError, some
from dpmpc.intake.reading import count_where
from dpmpc.intake.table import Table
from dpmpc.lazy import dataclass
from dpmpc.learning.naming import check_named, check_nothing_named
from dpmpc.records.margins import decided
from dpmpc.records.origins import Origin
from dpmpc.records.schema import Schema, checked_bounds, read_bounds
from dpmpc.statistics.columns import Column, Columns, Quantity
from dpmpc.synthesis import cuts as cells_of
from dpmpc.synthesis.asking import check_columns
from dpmpc.synthesis.constraints import Constraints
from dpmpc.synthesis.to_find import ToFind
from dpmpc.synthesis.values import check_digits, digits_of, numbers_of

_MOST_FOUND = 6  # decimals; numbers with more are written as their cells say
_FEW = 20  # one of so many numbers may have more decimals than its column
_EPOCH = datetime.date(1970, 1, 1)


@dataclass(frozen=True)
class Public:
    """What is known before any release: `columns` that are public, without cuts where a survey is to find them, or what
    a survey is `to_find` of all; `places`: decimals of the numbers whose cells a survey is
    to find; `spell`: columns whose words are opened before it."""

    columns: Columns | None
    to_find: ToFind | None = None
    origin: Origin = Origin()
    places: Mapping[str, int] = field(default_factory=dict)
    spell: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """Of all columns."""
        found = self.to_find if self.columns is None else self.columns
        return () if found is None else found.names

    @property
    def surveyed(self) -> tuple[str, ...]:
        """The columns of which a survey is to find something."""
        return self.names if self.columns is None else cells_of.without_cuts(self.columns)

    @property
    def of_numbers(self) -> tuple[str, ...]:
        """The columns that may be of numbers: all, where a survey finds them."""
        return self.names if self.columns is None else tuple(numbers_of(self.columns))

    def check(self, target: str | None, constraints: Sequence[str], stated: Mapping[str, int]) -> None:
        """Errors: what is said of columns that are not there, or not such; before anything is spent."""
        if target is not None and not isinstance(target, str):
            raise UsageError(
                f"<<target>> is a column's name; got {target!r}; give one of {some(self.names)}", code="type"
            )
        Constraints.of(constraints, self.columns)
        if self.columns is not None and not self.surveyed:
            check_columns(self.columns, target)
        if target is not None and target not in self.names:
            raise UsageError(
                f"<<target>> is a column; there is no {target!r}; the columns are {some(self.names)}", code="column"
            )
        check_digits(stated, self.of_numbers)


def digits_of_columns(columns: Columns, stated: Mapping[str, int]) -> dict[str, int]:
    """The decimals of every column of numbers, as stated, or by its cells."""
    found = {name: digits_of(column) for name, column in numbers_of(columns).items()}
    return found | {name: count for name, count in stated.items() if name in found}


def public_columns(
    table: Table, owners: str | None, schema: Schema | Path | str | None, bounds: Mapping[str, Any] | Path | str | None,
    cuts: Mapping[str, Any], cells: int | None, drop: Sequence[str], stated: Mapping[str, int] | None = None,
    touched: int = 1, named: Sequence[str] = (), words: Sequence[str] = (), spell: Sequence[str] = (),
) -> Public:  # fmt: skip
    """What is public of the columns of a table. stated: decimals; touched: how many records neighbours differ in;
    named, words: columns whose buckets are named, and public words to try; spell: those whose words are opened first.
    Errors: a column that is not there; columns that cannot be read."""
    for name in drop:
        table[name]
    if schema is None and bounds is None:
        if cuts:
            raise UsageError(
                "<<cuts>> go with <<schema>> or <<bounds>>; neither was given; a survey finds its own cells"
            )
        names = [name for name in table.names if name not in {*drop, owners}]
        if len(names) < 2:
            raise UsageError(
                f"a synthetic table has at least two columns; got {some(names)}; name another file", code="enough"
            )
        found = to_find(table, names, stated or {}, touched, named, words, spell)
        return Public(None, found, places=dict(found.digits), spell=tuple(spell))
    check_nothing_named(named, words, spell)
    origin = Origin()
    if schema is not None:
        public = schema if isinstance(schema, Schema) else Schema.read(Path(schema))
        columns, origin = Columns.of_schema(public), public.origin
    else:
        assert bounds is not None
        given = checked_bounds(dict(bounds), "bounds") if isinstance(bounds, Mapping) else read_bounds(Path(bounds))
        columns = columns_of_bounds(given)
    columns = Columns(tuple(c for c in columns.columns if c.name not in {*drop, owners}))
    columns = cells_of.stated(columns, cuts, cells)
    open_ones = cells_of.without_cuts(columns)
    numbers = [name for name in open_ones if name in table.names]
    places = decimals_of(table, numbers, stated or {}, touched)
    return Public(columns, None, origin, places)


def names_read(
    schema: Schema | Path | str | None, bounds: Mapping[str, Any] | Path | str | None, owners: str | None,
    drop: Sequence[str],
) -> tuple[str, ...]:  # fmt: skip
    """The columns that are named before any record is read, where a schema or bounds say them all; () where none do.
    Errors: both schema and bounds."""
    if schema is not None and bounds is not None:
        raise UsageError(
            "the columns of a synthetic table come from <<schema>> or <<bounds>>; both were given; leave one out",
            code="together",
        )
    if schema is not None:
        known = (schema if isinstance(schema, Schema) else Schema.read(Path(schema))).names
    elif bounds is not None:
        known = tuple(bounds if isinstance(bounds, Mapping) else read_bounds(Path(bounds)))
    else:
        return ()
    return (*known, *drop, *([owners] if owners else []))


def columns_of_bounds(given: Mapping[str, Any]) -> Columns:
    """The columns of checked bounds, two dates as a range of dates. Errors: a range of dates that runs backwards."""
    others = {column.name: column for column in Columns.of_bounds(given).columns}
    return Columns(tuple(others[name] if name in others else _days(name, entry) for name, entry in given.items()))


def to_find(
    table: Table, names: Sequence[str], stated: Mapping[str, int], touched: int, named: Sequence[str],
    words: Sequence[str], spell: Sequence[str] = (),
) -> ToFind:  # fmt: skip
    """Columns of which all is to be found, but for their kinds in the file. Errors: one that cannot be read; words of
    a column, `named` or to be opened (`spell`), that is none, or holds no texts."""
    for name in names:
        if table[name].kind == "other":
            raise UsageError(table.refusal(table[name]))
    texts = tuple(name for name in names if table[name].kind == "text")  # whatever they hold
    check_named((*named, *spell), texts)
    dates = _with_dates(table, names, texts, touched)
    found = ToFind(tuple(names), texts, dates, named=tuple(named), words=tuple(words))
    return replace(found, digits=tuple(decimals_of(table, found.survey.names, stated, touched).items()))


def _with_dates(table: Table, names: Sequence[str], texts: Sequence[str], touched: int) -> tuple[str, ...]:
    """Those of the columns that hold dates: typed ones, and texts of which more than half are dates and no numbers. An
    odd value decides nothing: with `touched` records changed the answer is the same, or this refuses, for each moves
    twice the dates less all that is there by 2 at most. Errors: a column where it might change."""
    found = [name for name in names if table[name].kind == "date"]
    parts = []
    for name in texts:
        dates, there = f"{table.days(name)} IS NOT NULL AND {table.number(name)} IS NULL", table.missing(name)
        parts += [count_where(dates), count_where(f"NOT {there}")]
    counts = table.one(*parts) if parts else ()
    for name, dates, there in zip(texts, counts[::2], counts[1::2], strict=True):
        mostly = decided(2 * dates - there, 2 * touched, 2 * touched)
        if mostly is None:
            raise RecordError(
                f"a column holds dates or none; of '{name}' {dates} of {there} values are dates; correct it, or leave "
                "the column out with <<drop>>"
            )
        if mostly:
            found.append(name)
    return tuple(found)


def decimals_of(
    table: Table, names: Sequence[str], stated: Mapping[str, int], touched: int = 1
) -> dict[str, int]:  # fmt: skip
    """With how many decimals numbers are written: as stated, or the least that all but a twentieth of them do with.

    Like a column's kind this is taken for public, and an odd value does not decide it: with the records of one person
    changed, `touched` at most, the answer is the same, or this refuses. A column with too few numbers to tell has none.
    Errors: a column where it might change."""
    asked = [name for name in names if name not in stated and table[name].kind in ("number", "text")]
    parts = []
    for name in asked:
        value = table.number(name)
        parts.append(count_where(f"isfinite({value})"))
        for places in range(_MOST_FOUND + 1):
            finer = f"abs({value} - round({value}, {places})) > 1e-12 * abs({value})"
            parts.append(count_where(f"isfinite({value}) AND {finer}"))
    counts = list(table.one(*parts)) if parts else []
    found = {name: places for name, places in stated.items() if name in names}
    for name in asked:
        there, *finer_ones = (int(counts.pop(0)) for _ in range(_MOST_FOUND + 2))
        sure = (_FEW + 1) * touched  # how far a person's records move the difference below
        enough = decided(there, 2 * sure, touched)
        if enough is None:
            raise RecordError(
                f"a column of {2 * sure} numbers or more says with how many decimals they are written; '{name}' has "
                f"about so many, {there}; state <<digits>> of it"
            )
        for places, finer_than in enumerate(finer_ones if enough else ()):
            do = decided(there - _FEW * finer_than, sure, sure)
            if do is None:
                raise RecordError(
                    f"all but a twentieth of a column's numbers have so many decimals, or a finer spelling is stated; "
                    f"of '{name}' just about a twentieth have more than {places}; state <<digits>> of it"
                )
            if do:
                found[name] = places
                break
    return found


def _days(name: str, given: Sequence[Any]) -> Column:
    """The range of two dates."""
    low, high = (datetime.date.fromisoformat(part) for part in given)
    if not low < high:
        raise UsageError(f"a range of dates runs from the first to the last; '{name}' has {list(given)}; turn it round")
    return Quantity(name, float((low - _EPOCH).days), float((high - _EPOCH).days), dates=True)
