"""DuckDB for tests that open small tables: a database is lent again when its table is closed, and has one thread.

To make one takes as long as to read a hundred small tables. All that the library makes in one is temporary or a
setting of the connection, and goes with it: each table gets a connection of its own, and a database serves one at a
time. One in which anything else is left, or whose folder for spilling was used, is not lent again. A table of fewer
rows than DuckDB hands to a thread at once (2,048) has nothing for a second one. Tests of memory, of threads and of
files that do not fit have databases as they are made.
"""

import contextlib
from collections.abc import Iterator
from typing import Any, Self

import pytest

from dpmpc.intake.dates import add_dates
from dpmpc.intake.engine import duckdb

_LEFT = "SELECT count(*) FROM (SELECT 1 FROM duckdb_tables() UNION ALL SELECT 1 FROM duckdb_views() WHERE NOT internal)"
Kind = tuple[tuple[str, str], ...]


class _Lent:
    """A connection to a database that nobody else has, as DuckDB's own."""

    def __init__(self, database: duckdb.DuckDBPyConnection, back: list[duckdb.DuckDBPyConnection]) -> None:
        self._database, self._own = database, database.cursor()
        self._back: list[duckdb.DuckDBPyConnection] | None = back

    def __getattr__(self, name: str) -> Any:
        return getattr(self._own, name)

    def create_function(self, *_: object, **__: object) -> None:
        """None: functions are a database's, and each that is lent has those of the library."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """It ends; the database goes back, once."""
        self._own.close()
        back, self._back = self._back, None
        if back is None:
            return
        (left,) = self._database.execute(_LEFT).fetchone() or (1,)
        if left:
            self._database.close()
        else:
            back.append(self._database)


@contextlib.contextmanager
def kept() -> Iterator[list[int]]:
    """While it lasts `duckdb.connect(config=...)` lends databases; how many were made, and how many lent again."""
    free: dict[Kind, list[duckdb.DuckDBPyConnection]] = {}
    counts, made = [0, 0], duckdb.connect

    def connect(*arguments: Any, **named: Any) -> Any:
        if arguments or named.keys() != {"config"}:
            return made(*arguments, **named)
        config = {**named["config"], "threads": 1}
        back = free.setdefault(tuple((k, str(v)) for k, v in sorted(config.items()) if k != "temp_directory"), [])
        while True:
            try:
                database = back.pop()  # sites of a test are threads
            except IndexError:
                break
            try:
                database.execute("SET temp_directory = $folder", {"folder": config.get("temp_directory", "")})
            except duckdb.Error:  # something was spilled to the last one
                database.close()
                continue
            counts[1] += 1
            return _Lent(database, back)
        counts[0] += 1
        database = made(config=config)
        add_dates(database)
        return _Lent(database, back)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(duckdb, "connect", connect)
        yield counts
    for database in (each for back in free.values() for each in back):
        database.close()
