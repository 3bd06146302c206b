"""A table of records, wherever it lies: column names, kinds, and streams of blocks of numbers. DuckDB reads it.

Rules, the same for every source. Space around a text does not belong to it, and an accent is part of its letter
(Unicode's form C), in values and in names of columns. A value that is null, or a text that is empty, `?`, `NA`, `N/A`
or `null` (any case), is missing. Numbers are decimal, with a point, finite: `nan` and `inf` are
none. A number's text is read as `float` reads it: rounded correctly. What its owner stated of a source's spelling
(`intake.spelling`) comes on top. Nothing is guessed from other rows: text is read as text, field by field, and other
sources keep their own types.
"""

from __future__ import annotations

import contextlib
import os
import secrets
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from dpmpc.errors import RecordError, UsageError, sayable, some
from dpmpc.intake.coded import AT_ONCE, IntegersSeen, Kept
from dpmpc.intake.dates import add_dates
from dpmpc.intake.engine import duckdb, explained, interrupted
from dpmpc.intake.once import asked, once
from dpmpc.intake.reading import clock_sql, days_sql, literal, number_sql
from dpmpc.intake.scripts import BLANKS, MARKS
from dpmpc.intake.spelling import PLAIN, Spelling, bare, composed, ended, is_number
from dpmpc.intake.streamed import streamed
from dpmpc.lazy import cached_property, dataclass, regex

Kind = Literal["text", "number", "date", "other"]
Reads = Literal["number", "date", "time", "either"]
Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Block = list[NDArray[Any]]

_SPACES = ("\\t", "\\n", "\\r")
# A time of day is read as its text is; a length of time is a number, of days.
_TEXT_TYPES = ("VARCHAR", "ENUM", "UUID", "BOOLEAN", "JSON")
_TIME_TYPES = ("TIME", "TIMETZ", "TIME WITH TIME ZONE", "TIME_NS")
_LENGTH_TYPE = "INTERVAL"
_NUMBER_TYPES = (
    "DECIMAL", "DOUBLE", "FLOAT", "REAL", "TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT", _LENGTH_TYPE,
)  # fmt: skip
_DATE_TYPES = ("DATE", "TIMESTAMP")
MOST_COLUMNS = 50_000  # to look at more takes hours; such a table lies on its side, or has to be cut
MOST_LETTERS = 1_000  # of a column's name: plans and models have it, and a text of these has up to 4,000
_EXACT_DIGITS = 15  # of a whole number: with as many it is a double, as a power of ten up to 10^22 is
LIMIT = "dpmpc_memory"  # a variable that a connection has: what DuckDB says of its limit is rounded
_AT_ONCE = 256  # aggregates of one query: of a thousand each costs twice as much, and at ten thousand DuckDB dies


@dataclass(frozen=True)
class Column:
    """A column as the source has it. `sql` names it in the table's relation, `type` is DuckDB's word for its type.

    `clean`: a text without space around it, NULL where it is missing, as `held` makes it. `note`: what its owner should
    know of its name. `value`: names the number that a text without space around it spells, where that is worked out
    already. `finite`: of a number, none of which is NaN or infinite. `figureless`: of texts, none of which has a digit
    of any script, so that none reads as a number, a date or a time. `texts`: whether its texts are needed, though all
    of them may be numbers: a list has some of them.
    """

    name: str
    sql: str
    type: str
    clean: bool = False
    note: str = ""
    value: str = ""
    finite: bool = False
    figureless: bool = False
    texts: bool = False

    @property
    def kind(self) -> Kind:
        word = self.type.upper().strip('"')
        if word.endswith("]") or word.startswith(("STRUCT", "MAP", "UNION")):
            return "other"
        if word.startswith(_TEXT_TYPES) or word in (*_TIME_TYPES, "NULL"):
            return "text"
        if word.removeprefix("U").startswith(_NUMBER_TYPES):
            return "number"
        return "date" if word.startswith(_DATE_TYPES) else "other"


@dataclass(frozen=True, eq=False)
class Table:
    """Records that DuckDB can read again and again in the same order.

    `relation` is a FROM clause. `loose`: whether a text may hold `_` or `+-` (DuckDB takes 1_0 and +-1 for numbers, we
    do not). `spelling`: what the owner stated of its texts. `unchanged` raises if the source is no longer what it was
    when it was opened.
    """

    source: str  # for messages; never a path or a URL
    columns: tuple[Column, ...]
    relation: str
    connection: duckdb.DuckDBPyConnection = field(repr=False)
    loose: bool = True
    unchanged: Callable[[], None] = field(default=lambda: None, repr=False)
    repair: Callable[[], None] | None = field(default=None, repr=False)  # tried once when DuckDB cannot read the source
    parsed: bool = False  # every reading parses text: worth holding
    spelling: Spelling = PLAIN
    # a relation of texts, and what gives the same with some columns read as DOUBLE, which fails where a field is none
    typed: tuple[str, Callable[[Collection[str]], str]] | None = field(default=None, repr=False)
    along: str = ""  # a column of the relation that is none of the table's, and that goes where its rows go
    found: dict[str, Any] = field(default_factory=dict, init=False, repr=False)  # what was asked for before
    kept: Kept = field(default_factory=Kept, repr=False)  # columns that were read, of this relation and of others
    uncounted: frozenset[str] = frozenset()  # keys of JSON objects that are no columns, for so few records have them
    size: int = 0  # bytes of what each reading parses
    beyond: int = 0  # records of persons who have more than are kept: none of these is read; for their owner alone

    def __post_init__(self) -> None:
        check_names(self.names, self.source)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(column.name for column in self.columns)

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and composed(name) in self._called

    def __getitem__(self, name: str) -> Column:
        """The column of this name. Errors: there is none."""
        if (column := self._called.get(name) or self._called.get(composed(name))) is not None:
            return column
        if name in self.uncounted:
            raise RecordError(
                f"a key that few JSON records have is a column where it is stated; {self.source} has '{name}' in few; "
                "state all columns with <<names>>",
                "a column must exist to be used; an owner's records have not all that were named",
            )
        raise no_column(self.source, name, self.names)

    @cached_property
    def _called(self) -> dict[str, Column]:
        """The columns by their names as they are compared: tables may have thousands."""
        return {composed(column.name): column for column in reversed(self.columns)}

    def number(self, name: str) -> str:
        """SQL for a column's value as DOUBLE, NULL where it is none. A column of numbers may hold NaN or infinity."""
        column = self[name]
        if column.kind == "number":
            if column.type.upper().startswith("DECIMAL") and not _divides(column.type):
                return f"CAST(CAST({column.sql} AS VARCHAR) AS DOUBLE)"
            if column.type.upper() == _LENGTH_TYPE:
                return f"(epoch({column.sql}) / 86400.0)"
            return f"CAST({column.sql} AS DOUBLE)"
        if column.value:
            return column.value
        if column.kind == "text":
            text = _as_text(column)
            # to trim a plain number would be for nothing: the cast does
            spelling = self.spelling.of(column.name)
            return number_sql(text if spelling.plain else self.text(name), spelling, loose=self.loose)
        raise UsageError(self.refusal(column))

    def days(self, name: str) -> str:
        """SQL for a column's value as a date, in DOUBLE days since 1970-01-01, NULL where it is none."""
        column = self[name]
        if column.kind == "date":
            return f"(epoch(CAST({column.sql} AS TIMESTAMP)) / 86400.0)"
        return days_sql(self.text(name), self.spelling)

    def text(self, name: str) -> str:
        """SQL for a column's value as text, in Unicode's form C, without space around it; each end of a line
        (`\\n`, `\\r\\n` or `\\r`) is a space, so that the same text is the same value whoever wrote it."""
        column = self[name]
        if column.kind == "number":
            value = self.number(name) if column.type.upper() == _LENGTH_TYPE else column.sql
            return f"CAST({value} AS VARCHAR)"
        if column.clean or column.value:
            return column.sql
        if column.kind == "text":
            text = _as_text(column)
            odd = " OR ".join(f"contains({text}, E'{mark}')" for mark in _SPACES)  # rare, and trimming them is slow
            bare = f"trim({text}, E' {''.join(_SPACES)}{BLANKS}{MARKS}')"
            lined = f"translate(replace({bare}, E'\\r\\n', ' '), E'\\n\\r', '  ')"
            foreign = f"strlen({text}) <> length({text}) THEN {bare}"
            ways = f"WHEN {odd} THEN {lined} WHEN {foreign}"
            return once(f"nfc_normalize(CASE {ways} ELSE trim({text}) END)")
        raise UsageError(self.refusal(column))

    def missing(self, name: str) -> str:
        """SQL for whether a column's value is missing."""
        column = self[name]
        if column.kind == "text" and column.type != "BOOLEAN" and not column.clean:
            markers = ", ".join(literal(marker) for marker in self.spelling.markers(column.name))
            return f"({column.sql} IS NULL OR lower({self.text(name)}) IN ({markers}))"
        return f"({column.sql} IS NULL)"

    def worded(self, name: str) -> bool:
        """Whether a column of no stated kind has words alone, as its owner stated, whatever they look like."""
        return bool(self.spelling.words) and composed(name) in self.spelling.words

    def refusal(self, column: Column) -> str:
        """Why a column of dates, lists or bytes is not used."""
        what = "a date" if column.kind == "date" else f"of type {column.type.lower()[:40]}"
        way = "make it a number, such as days since a fixed day" if column.kind == "date" else "give numbers or texts"
        return (
            f"columns hold numbers or texts; '{column.name}' of {self.source} is {what}; {way}, or leave it out with"
            " <<drop>>"
        )

    def one(self, *expressions: str, relation: str | None = None) -> tuple[Any, ...]:
        """The values of aggregate expressions over the table's rows, or over part of them."""
        values: tuple[Any, ...] = ()
        for first in range(0, len(expressions), _AT_ONCE):
            values += self.rows(", ".join(expressions[first : first + _AT_ONCE]), relation=relation)[0]
        return values

    def rows(self, select: str, tail: str = "", relation: str | None = None) -> list[tuple[Any, ...]]:
        """All rows of SELECT select FROM the table tail, for small results. Errors: the source cannot be read."""
        return self.run(asked(select, relation or self.relation, tail))

    def run(self, query: str) -> list[tuple[Any, ...]]:
        """The rows that a query over this table's relation gives. Errors: the source cannot be read."""
        if self.repair is not None:
            try:
                return self.connection.execute(query).fetchall()
            except duckdb.OutOfMemoryException:
                pass
            except (duckdb.Error, RuntimeError) as error:
                if interrupted(error):
                    raise KeyboardInterrupt from None
                if not isinstance(error, duckdb.Error):
                    raise
                self.repair()  # says what is wrong, or makes a copy that DuckDB can read
        with self.reading():
            return self.connection.execute(query).fetchall()

    def blocks(self, expressions: Sequence[str], tail: str = "", quick: bool = False) -> Iterator[Block]:
        """The values of expressions (DOUBLE or INTEGER, never NULL) for every row in order, some at a time. `quick`:
        whether to read them takes less than what becomes of them, as of numbers. Errors: the source cannot be read, or
        has changed when all was read."""
        kept = [None if tail else self.kept.of(self.relation, expression) for expression in expressions]
        left = [expression for expression, one in zip(expressions, kept, strict=True) if one is None]
        if expressions and not left:
            for begin in range(0, self.n, AT_ONCE):
                yield [one.part(begin, min(self.n, begin + AT_ONCE)) for one in kept if one is not None]
            self.unchanged()
            return
        select = ", ".join(f"{expression} AS e{k}" for k, expression in enumerate(left))
        query = asked(select, self.relation, tail)
        if self.repair is not None:
            self.n  # noqa: B018  reads everything once, so that what needs repair is repaired before the first block
        known = self.n if "n" in vars(self) or not self.parsed else None
        noted = dict[str, IntegersSeen]()
        with self.reading(), self.by_one_thread() if quick else contextlib.nullcontext():
            seen = 0
            for block in streamed(self.connection, query, len(left), known):
                if not seen and not tail and known is not None and known > AT_ONCE:
                    whole = [each for each, values in zip(left, block, strict=True) if values.dtype == np.int32]
                    noted = {each: IntegersSeen(known) for each in whole[: max(0, self.kept.room) // (2 * known)]}
                for each, values in zip(left, block, strict=True):
                    if each in noted:
                        noted[each].add(values)
                end, own = seen + len(block[0]), iter(block)
                yield [next(own) if one is None else one.part(seen, end) for one in kept]
                seen = end
        self.unchanged()
        for each, one in noted.items():
            if (column := one.coded) is not None:
                self.kept.put(self.relation, each, column)

    @contextlib.contextmanager
    def by_one_thread(self) -> Iterator[None]:
        """What is read within is read by one thread, unless reading parses text: each thread has a group of rows of all
        columns in memory, some 50 MB of 20 numbers, which is worth it where reading is what takes time. Others make of
        one part what they make of it while it reads the next."""
        if self.parsed:
            yield
            return
        ((before,),) = self.connection.execute("SELECT current_setting('threads')").fetchall()
        self.connection.execute("SET threads = 1")
        try:
            yield
        finally:
            with contextlib.suppress(duckdb.Error):  # who reads no further may have closed the connection
                self.connection.execute(f"SET threads = {before}")

    @contextlib.contextmanager
    def reading(self) -> Iterator[None]:
        """Errors of DuckDB within become UsageErrors."""
        try:
            yield
        except (duckdb.Error, OSError, RuntimeError) as error:  # DuckDB's words may quote a row
            raise RecordError(explained(error, self.source), f"{self.source} cannot be read") from None

    @cached_property
    def n(self) -> int:
        """The number of rows; reads the source once."""
        return int(self.one("count(*)")[0])


def no_column(source: str, name: str, names: Sequence[str]) -> UsageError:
    """What to raise where records have no column of this name: with the nearest one, or those that there are."""
    import difflib

    near = difflib.get_close_matches(name, names, 1)
    hint = f"did you mean '{near[0]}'?" if near else f"its columns are {some(names)}"
    return UsageError(
        f"a column must exist to be used; {sayable(source)} has no '{sayable(name)}'; {sayable(hint)}", code="column"
    )


def _divides(decimal: str) -> bool:
    """Whether a DECIMAL becomes the nearest double by dividing it by a power of ten, as DuckDB does: of so few digits
    both are doubles themselves, and only the quotient is rounded. With more it would be rounded twice."""
    digits = regex(r"DECIMAL\((\d+)").match(decimal.upper())
    return digits is not None and int(digits[1]) <= _EXACT_DIGITS


def _as_text(column: Column) -> str:
    """SQL for the text of a column of texts; of a time of day without its zone."""
    if column.type == "VARCHAR":
        return column.sql
    text = f"CAST({column.sql} AS VARCHAR)"
    return f"regexp_replace({text}, '[+-].*', '')" if column.type.upper() in _TIME_TYPES[1:3] else text


def connect(folder: Path | None, memory: int | None, threads: int | None = None) -> duckdb.DuckDBPyConnection:
    """A DuckDB that holds at most `memory` bytes, spills to `folder`, loads no extension and stays off the network."""
    config: dict[str, Any] = {
        "autoinstall_known_extensions": False,
        "autoload_known_extensions": False,
        "allow_community_extensions": False,
        "preserve_insertion_order": True,
        "enable_external_file_cache": False,  # the system has what it read in a cache of its own
        "allocator_flush_threshold": "16MB",  # what a query held goes back to the system at its end
        "pandas_analyze_sample": 0,  # no type is found in values: a column of objects is one of texts
        "disabled_optimizers": "in_clause",  # it makes a join of `x IN (...)`, and so works out x where nobody needs it
        "threads": threads or os.cpu_count() or 1,
    }
    if memory is not None:
        config["memory_limit"] = f"{memory}B"
    if folder is not None:
        config["temp_directory"] = str(folder)
    connection = duckdb.connect(config=config)
    if memory is not None:
        connection.execute(f"SET VARIABLE {LIMIT} = '{memory}B'")
    add_dates(connection)
    # standard output is for results and, in a run's processes, for events; in a notebook without ipywidgets DuckDB
    # cannot even switch its bar off, and draws none
    with contextlib.suppress(ImportError, duckdb.Error):
        connection.execute("SET enable_progress_bar = false")
    return connection


def numbers_up_to(n: int) -> type[np.signedinteger[Any]]:
    """What arrays of numbers of n records are of: as long as all are held at once, four bytes each are enough."""
    return np.int32 if n <= np.iinfo(np.int32).max else np.int64


def unused(kind: str) -> str:
    """A name for a view that its database does not have. To list those it has takes DuckDB 20 ms the first time."""
    return f"{kind}{secrets.token_hex(8)}"


def check_names(names: Sequence[str], source: str) -> None:
    """Errors: too many columns, two of one name, or a name that is empty or longer than files of names take."""
    check_width(len(names), source)
    if (longest := max(map(len, names), default=0)) > MOST_LETTERS:
        raise UsageError(
            f"a column's name has at most {MOST_LETTERS:,} characters; {sayable(source)} has one of "
            f"{sayable(longest):,}; shorten it, or "
            "state the line of names with <<header>>"
        )
    double = sorted(name for name, count in Counter(map(composed, names)).items() if count > 1)
    if double or "" in names:
        shown = some([repr(name) for name in double or [""]])
        raise UsageError(
            f"column names are unique and not empty; {sayable(source)} has {sayable(shown)}; rename them", code="unique"
        )


def check_width(columns: int, source: str) -> None:
    """Errors: more columns than are read."""
    if columns > MOST_COLUMNS:
        raise UsageError(
            f"a table has at most {MOST_COLUMNS:,} columns; {sayable(source)} has {sayable(columns):,}; write the "
            "columns that may "
            "matter to a file of their own",
            code="range",
        )


def quoted(name: str) -> str:
    """An SQL identifier."""
    return '"' + name.replace('"', '""') + '"'


def code_sql(table: Table, name: str, values: Mapping[str, int]) -> str:
    """SQL for a column's value as an INTEGER: the code of the listed value that it is, -1 if it is missing, -2 if it is
    none of them. Where "" is one of the values, a missing one is that.

    The one rule by which fields are held against a public list, whatever the list is for. A listed value is spelled
    plainly, a field as its owner stated, and both are compared under their `canonical` spellings: numbers as numbers,
    all else as text; true and false in any case. So a field that is no number as its owner writes them (401.9, a code,
    beside decimal commas) is the listed value whose text it has, zeros at its ends aside, as of a number, unless they
    tell two values of the list apart (`ended`). Each is one look-up in a hash table.
    """
    codes = ended(values)
    numbers = {text: k for text, k in values.items() if is_number(text) and bare(text) not in codes}
    words = {text: k for text, k in values.items() if text not in numbers}
    text = text_of_field = table.text(name)
    parts = list[str]()
    if words:
        if {"true", "false"} & words.keys():
            text = f"CASE WHEN lower({text}) IN ('true', 'false') THEN lower({text}) ELSE {text} END"
        parts.append(_look_up(text, words))
    if numbers:
        spelled = {
            str(row[0]): numbers[text] for text in numbers for row in duckdb_spelling(table.connection, float(text))
        }
        number = table.number(name)
        if table[name].kind == "text" and table.spelling.of(name).decimal != PLAIN.decimal:
            number = f"coalesce({number}, {number_sql(text_of_field, PLAIN, loose=table.loose)})"
        parts.append(_look_up(f"CAST({number} + 0.0 AS VARCHAR)", spelled))
    parts.append(f"CASE WHEN {table.missing(name)} THEN {values.get('', -1)} ELSE -2 END")
    return f"CAST(coalesce({', '.join(parts)}) AS INTEGER)"


def duckdb_spelling(connection: duckdb.DuckDBPyConnection, value: float) -> list[tuple[Any, ...]]:
    """How DuckDB writes this number."""
    return connection.execute("SELECT CAST(CAST(? AS DOUBLE) + 0.0 AS VARCHAR)", [value]).fetchall()


def _look_up(text: str, codes: Mapping[str, int]) -> str:
    listed = ", ".join(literal(key) for key in codes)
    place = f"enum_code(TRY_CAST({text} AS ENUM({listed})))"
    if list(codes.values()) == list(range(len(codes))):
        return place
    return f"list_extract([{', '.join(map(str, codes.values()))}], {place} + 1)"


def value_sql(table: Table, name: str, missing: str = "CAST('nan' AS DOUBLE)", read: Reads = "number") -> str:
    """SQL for a column's value as a DOUBLE: NaN (or `missing`) if it is missing, infinite if it is no finite number.

    `read`: what a value is read as: a number; a date, in days since 1970-01-01; a time of day, alone or of a date, in
    days; or any of these, for a column of which nothing was stated (a number first)."""
    kind = table[name].kind
    if table[name].figureless or (read == "either" and table.worded(name)):
        return f"CASE WHEN {table.missing(name)} THEN {missing} ELSE CAST('inf' AS DOUBLE) END"
    value = table.days(name) if read in ("date", "time") or kind == "date" else table.number(name)
    if read == "either" and kind == "text":
        value = f"coalesce({value}, {table.days(name)}, {clock_sql(table.text(name))})"
    if read == "time" and kind == "text":
        value = f"coalesce({value}, {clock_sql(table.text(name))})"
    if kind == "number" and table[name].finite:
        return f"coalesce({value}, {missing})"
    value = once(value)
    return (
        f"CASE WHEN isfinite({value}) THEN {value} WHEN {value} IS NULL AND {table.missing(name)} THEN {missing}"
        " ELSE CAST('inf' AS DOUBLE) END"
    )
