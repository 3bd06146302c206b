"""The columns of a synthetic table: from a public schema or bounds, or from a private survey."""

import datetime
import math
from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from pathlib import Path
from typing import Any

from dpmpc.errors import RecordError, UsageError, some
from dpmpc.intake.hashing import BUCKETS
from dpmpc.intake.reading import count_where
from dpmpc.intake.table import Table
from dpmpc.lazy import dataclass
from dpmpc.learning.survey import Survey
from dpmpc.learning.survey_numbers import CELLS, NUMBER
from dpmpc.learning.survey_words import check_words, known_words, stated_names
from dpmpc.records.margins import decided
from dpmpc.records.origins import Origin
from dpmpc.records.schema import Schema, checked_bounds, read_bounds
from dpmpc.statistics.cells import MOST_CELLS
from dpmpc.statistics.columns import Bucketed, Column, Columns, Quantity
from dpmpc.statistics.intervals import Floats
from dpmpc.synthesis import cuts as cells_of
from dpmpc.synthesis.asking import check_columns
from dpmpc.synthesis.constraints import Constraints
from dpmpc.synthesis.values import check_digits, digits_of, numbers_of

_MOST_FOUND = 6  # decimals; numbers with more are written as their cells say
_FEW = 20  # one of so many numbers may have more decimals than its column
_EPOCH = datetime.date(1970, 1, 1)


@dataclass(frozen=True)
class Public:
    """What is known before any release. `columns`: those that are public, without cuts where a survey is to find them;
    `survey`: what it asks, None where nothing is to be found; `names`: of all columns; `dates`: of those that a survey
    is to find, the ones that hold dates; `places`: decimals of the numbers whose cells a survey is to find; `words`:
    public ones that are tried as names of buckets, beside those that everybody knows; `spell`: columns whose words are
    opened before the survey."""

    columns: Columns | None
    survey: Survey | None
    names: tuple[str, ...]
    origin: Origin = Origin()
    dates: tuple[str, ...] = ()
    places: Mapping[str, int] = field(default_factory=dict)
    words: tuple[str, ...] = ()
    spell: tuple[str, ...] = ()

    @property
    def of_numbers(self) -> tuple[str, ...]:
        """The columns that may be of numbers: all, where a survey finds them."""
        return self.names if self.columns is None else tuple(numbers_of(self.columns))

    def check(self, target: str | None, constraints: Sequence[str], stated: Mapping[str, int]) -> None:
        """Errors: what is said of columns that are not there, or not such; before anything is spent."""
        if target is not None and not isinstance(target, str):
            raise UsageError(f"<<target>> is a column's name; got {target!r}; give one of {some(self.names)}")
        if self.columns is not None:
            Constraints.of(constraints, self.columns)
            if self.survey is None:
                check_columns(self.columns, target)
        elif constraints:
            raise UsageError("<<constraints>> name public values; a survey is to find these columns; give <<bounds>>")
        if target is not None and target not in self.names:
            raise UsageError(f"<<target>> is a column; there is no {target!r}; the columns are {some(self.names)}")
        check_digits(stated, self.of_numbers)

    def digits(self, columns: Columns, stated: Mapping[str, int]) -> dict[str, int]:
        """The decimals of every column of numbers, as stated, as its numbers have them, or by its cells."""
        return digits_of_columns(columns, {**self.places, **stated})


def digits_of_columns(columns: Columns, stated: Mapping[str, int]) -> dict[str, int]:
    """As `Public.digits`, of columns with cells."""
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
            raise UsageError(f"a synthetic table has at least two columns; got {some(names)}; name another file")
        return surveyed_first(table, names, stated or {}, touched, named, words, spell)
    if named or words or spell:
        raise UsageError(
            "words are named of columns whose values a survey finds; <<schema>> or <<bounds>> state them; leave "
            "<<named>>, its words and <<spell>> out"
        )
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
    return Public(columns, Survey(open_ones) if open_ones else None, columns.names, origin, places=places)


def names_read(
    schema: Schema | Path | str | None, bounds: Mapping[str, Any] | Path | str | None, owners: str | None,
    drop: Sequence[str],
) -> tuple[str, ...]:  # fmt: skip
    """The columns that are named before any record is read, where a schema or bounds say them all; () where none do.
    Errors: both schema and bounds."""
    if schema is not None and bounds is not None:
        raise UsageError(
            "the columns of a synthetic table come from <<schema>> or <<bounds>>; both were given; leave one out"
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


def surveyed_columns(
    public: Public, total: Floats, noise: float, least: int = 2, spelled: Mapping[str, Mapping[int, str]] | None = None
) -> Columns:
    """The columns after a survey. total: its opened sum; noise: its deviation a coordinate, in records; spelled: by
    column and bucket, words that were opened before it. Errors: fewer than `least` stand out."""
    survey = public.survey
    assert survey is not None
    if public.columns is not None:
        return cells_of.surveyed(public.columns, survey, total, noise, public.places)
    records = 0  # of no use where only what stands out is asked
    found = survey.findings(total, records, noise, narrow=survey.names)
    named = survey.named(total, noise, (*known_words(), *public.words)) if survey.words else {}
    made: list[Column] = []
    at, most = 0, most_levels(len(survey.names))
    for name in survey.names:
        counts, at = total[at : at + NUMBER], at + NUMBER
        filled = total[at : at + survey.buckets] if name in survey.texts else total[:0]
        at += len(filled)
        this = found.columns[name]
        numbers = this.numbers is not None and math.fsum(counts[1:CELLS]) > math.fsum(filled)
        if this.kept and not numbers:
            fullest = sorted(this.kept, key=lambda k: -filled[k])[:most]
            known = dict(stated_names(named.get(name, {}))) | dict((spelled or {}).get(name, {}))
            words = tuple(each for each in sorted(known.items()) if each[0] in fullest)
            made.append(Bucketed(name, this.buckets, tuple(sorted(fullest)), names=words))
        elif this.numbers is not None:
            places = 0 if name in public.dates else public.places.get(name)
            low, high = cells_of.bounds_of(counts, noise, this.numbers, places)
            column = Quantity(name, low, high, dates=name in public.dates)
            made.append(replace(column, cuts=cells_of.edges_of(counts, noise, low, high, places=places)))
    if len(made) < least:
        raise UsageError(
            f"{'two columns' if least == 2 else 'a column'} at least must stand out of the survey's noise; {len(made)} "
            "did; give <<bounds>>, or raise <<epsilon>>"
        )
    return Columns(tuple(sorted(made, key=lambda column: public.names.index(column.name))))


def most_levels(columns: int) -> int:
    """The most buckets of one column with which all tables of two such columns still fit into a release, with a cell
    for others and one for missing values."""
    pairs = columns * (columns + 1) // 2
    return min(BUCKETS, max(1, math.isqrt(MOST_CELLS // pairs) - 2))


def surveyed_first(
    table: Table, names: Sequence[str], stated: Mapping[str, int], touched: int, named: Sequence[str],
    words: Sequence[str], spell: Sequence[str] = (),
) -> Public:  # fmt: skip
    """Columns of which all is to be found, but for their kinds in the file. Errors: one that cannot be read; words of
    a column that is none, or holds no texts."""
    for name in names:
        if table[name].kind == "other":
            raise UsageError(table.refusal(table[name]))
    texts = tuple(name for name in names if table[name].kind == "text")  # whatever they hold
    if odd := [name for name in (*named, *spell) if name not in texts]:
        raise UsageError(
            f"words are named of columns of texts that a survey is to find; '{odd[0]}' is none; name one of "
            f"{some(texts)}, or leave it out of <<named>> and <<spell>>"
        )
    if words and not named:
        raise UsageError("words are tried as names of columns; none is named; say <<named>>, or give no words")
    check_words(words)
    survey = Survey(tuple(name for name in names if name not in texts), texts, words=tuple(named))
    dates = _with_dates(table, names, texts, touched)
    places = decimals_of(table, survey.names, stated, touched)
    spelled = tuple(dict.fromkeys(spell))
    return Public(None, survey, tuple(names), dates=dates, places=places, words=tuple(words), spell=spelled)


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
