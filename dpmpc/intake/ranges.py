"""An owner's table in a database as rows in one order, any range of which can be read alone: by workers that reach it.

The order is that of a key which the query names: a whole number that no two records share. What a worker is sent is
`Ranges`: the query, how many rows it has, and the keys at which ranges of STEP rows begin, those that its task needs.
Row k is the same record for everybody, as one machine reads the same query. A range that has lost or gained rows since
the first look is refused wherever it is read. Workers log in as their environment says (`intake.database`).
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from dpmpc.errors import UsageError, sayable
from dpmpc.intake.database import open_database
from dpmpc.intake.partitions import check_names_of
from dpmpc.intake.scratch import scratch_folder
from dpmpc.intake.spelling import PLAIN, Spelling
from dpmpc.intake.table import Table, connect, quoted
from dpmpc.lazy import dataclass, regex

if TYPE_CHECKING:
    from dpmpc.intake.engine import duckdb

STEP = 1 << 14  # rows between two keys that are known
_ORDERED = regex(r'\A(.*\S)\s+order\s+by\s+(\w+|"(?:[^"]|"")+")(?:\s+asc)?\s*\Z', re.I | re.S)


@dataclass(frozen=True)
class Ranges:
    """The rows of a query in the order of a key. `keys`: those of rows first, first + STEP, ...; None at the table's
    two ends, where rows of any key are read. `source`: for messages, no URL."""

    source: str
    url: str
    query: str  # without its order
    key: str
    n: int
    keys: tuple[int | None, ...]
    columns: tuple[tuple[str, str], ...]  # name and type
    spelling: Spelling = PLAIN
    memory: int | None = None
    first: int = 0

    @property
    def pieces(self) -> int:
        """How many ranges there are."""
        return len(self.keys) - 1

    def check(self, names: Sequence[str]) -> None:
        """Errors: a column is not there."""
        check_names_of(self.source, self.columns, names)

    def having(self, names: Sequence[str]) -> Ranges:
        """The same rows, of which these columns alone are read. Errors: a column is not there."""
        self.check(names)
        return replace(self, columns=tuple((name, dict(self.columns)[name]) for name in names))

    def part(self, begin: int, end: int) -> Ranges:
        """The same, of which no more is known than rows begin ... end - 1 need."""
        low, high = self._between(begin, end)
        return replace(self, keys=self.keys[low : high + 1], first=self.first + low * STEP)

    @contextlib.contextmanager
    def rows(self, begin: int, end: int) -> Iterator[Table]:
        """The table of rows begin ... end - 1 while it is open, read by one thread. Errors: the database refuses, or
        the range has other rows than at the first look."""
        with scratch_folder() as private:
            connection = connect(private, None if self.memory is None else self.memory // 4, threads=1)
            try:
                low, high = self._between(begin, end)
                begins, ends = self.first + low * STEP, min(self.n, self.first + high * STEP)
                names = [name for name, _ in self.columns]
                table = open_database(
                    self.url, self._query(low, high), connection, private, empty=True, spelling=self.spelling,
                    names=names,
                )  # fmt: skip
                self._check_rows(table, ends - begins)
                columns = tuple(replace(c, name=name) for c, name in zip(table.columns[:-1], names, strict=True))
                relation = table.relation
                if (begin, end) != (begins, ends):
                    relation = f"(SELECT * FROM {relation} LIMIT {end - begin} OFFSET {begin - begins})"
                yield replace(table, columns=columns, relation=relation)
            finally:
                connection.close()

    def _between(self, begin: int, end: int) -> tuple[int, int]:
        """The ranges that have these rows: the first, and the one after the last."""
        return (begin - self.first) // STEP, max(-(-(end - self.first) // STEP), (begin - self.first) // STEP + 1)

    def _query(self, low: int, high: int) -> str:
        key = quoted(self.key)
        ends = ((">=", self.keys[low]), ("<", self.keys[high]))
        bounds = [f"{key} {sign} {at}" for sign, at in ends if at is not None]
        names = ", ".join(f"{quoted(name)} AS c{k}" for k, (name, _) in enumerate(self.columns))
        where = f" WHERE {' AND '.join(bounds)}" if bounds else ""
        return f"SELECT {names}, {key} AS key_of_rows FROM ({self.query}) AS records{where} ORDER BY {key}"

    def _check_rows(self, table: Table, expected: int) -> None:
        rows, different = table.one("count(*)", f"count(DISTINCT {_integer(table.columns[-1].sql)})")
        if rows != expected:
            raise UsageError(
                "a table must stay as it is while a run reads it; a range of its keys has not the rows that it had at "
                "the first look; run again when nobody writes to it"
            )
        if different != rows:
            _no_key(self.key)


def ranges_of(url: str, sql: str, spelling: Spelling = PLAIN, memory: int | None = None) -> Ranges:
    """The ranges of a query, which ends with ORDER BY and its key. Reads the keys in their order, and the first record.
    Errors: another query; a column that is no key; as `open_database`."""
    query, named = ordered(sql)
    with scratch_folder() as private:
        connection = connect(private, None if memory is None else memory // 4, threads=1)
        try:
            first = open_database(url, f"SELECT * FROM ({query}) AS records LIMIT 1", connection, private)
            key = _column(first, named)
            counted = f"SELECT count(*) AS n, count({quoted(key)}) AS keys FROM ({query}) AS records"
            n, keys = _whole(url, counted, connection, private, key)[0]
            if n != keys:
                _no_key(key)
            numbered = f"SELECT {quoted(key)} AS k, row_number() OVER (ORDER BY {quoted(key)}) AS r FROM ({query}) AS t"
            each = f"SELECT k, r FROM ({numbered}) AS numbered WHERE (r - 1) % {STEP} = 0 ORDER BY r"
            begins = [k for k, _ in _whole(url, each, connection, private, key)]
            if begins != sorted(set(begins)):
                _no_key(key)
        finally:
            connection.close()
    columns = tuple((column.name, column.type) for column in first.columns)
    return Ranges(first.source, url, query, key, n, (None, *begins[1:], None), columns, spelling, memory)


def ordered(sql: str) -> tuple[str, str]:
    """A query without its order, and the key of the order as it is spelled. Errors: it has none."""
    found = _ORDERED.match(sql.strip().rstrip(";").strip())
    if found is None:
        raise UsageError(
            "workers of an executor read ranges of a key; <<sql>> names none; end it with ORDER BY and one column of "
            "the query, a whole number that no two records share"
        )
    return found[1], found[2]


def _column(table: Table, named: str) -> str:
    """The name of the column that is spelled so in a query."""
    plain = named[1:-1].replace('""', '"') if named.startswith('"') else named
    for name in [name for name in table.names if name == plain] or [
        name for name in table.names if name.lower() == plain.lower() and plain == named
    ]:
        return name
    raise UsageError("<<sql>> is ordered by a column that it gives; this one is not among them; add it to the SELECT")


def _whole(
    url: str, query: str, connection: duckdb.DuckDBPyConnection, private: Path, key: str
) -> list[tuple[int, int]]:
    """The rows of two whole numbers that a query gives. Errors: others."""
    table = open_database(url, query, connection, private)
    found = table.rows(", ".join(_integer(column.sql) for column in table.columns))
    if any(value is None for row in found for value in row):
        _no_key(key)
    return [(int(a), int(b)) for a, b in found]


def _integer(sql: str) -> str:
    """SQL for the whole number that a text spells, NULL where it spells none. A bare cast of a field would become the
    type that the file is read by, and an error."""
    return f"TRY_CAST(trim({sql}) AS BIGINT)"


def _no_key(name: str) -> NoReturn:
    raise UsageError(
        "workers of an executor read ranges of a key, a whole number that every record has and no two share; "
        f"'{sayable(name)}' "
        "is none; order <<sql>> by another column"
    )
