"""An owner's Parquet files as rows in one order, any range of which can be read alone: by workers that see the files.

What a worker is sent is `Partitions`: names of files, how many rows each has, and what their columns are called. Row k
is the same record for everybody, and a file that is no longer what it was is refused wherever it is read.
"""

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dpmpc.errors import UsageError
from dpmpc.intake.engine import duckdb
from dpmpc.intake.files import open_file, paths_of
from dpmpc.intake.missing import as_stated
from dpmpc.intake.reading import path_literal
from dpmpc.intake.scratch import scratch_folder
from dpmpc.intake.spelling import PLAIN, Spelling
from dpmpc.intake.table import Column, Table, connect, no_column, quoted
from dpmpc.intake.union import cast, joint
from dpmpc.lazy import dataclass

_PLACE = "file_row_number"  # DuckDB's word for a row's place in its file


@dataclass(frozen=True)
class FilePart:
    """A file and its number of rows; its size and time of change tell that it is the same. `types`: of its columns,
    by name, where they are not those of all files together."""

    path: str
    rows: int
    size: int
    changed: int
    types: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Partitions:
    """Files with columns of the same names and kinds, in the order of their names. `source`: for messages, no path.
    `memory`: bytes that a worker may hold."""

    source: str
    parts: tuple[FilePart, ...]
    columns: tuple[tuple[str, str], ...]  # name and type
    spelling: Spelling = PLAIN
    memory: int | None = None

    @property
    def n(self) -> int:
        return sum(part.rows for part in self.parts)

    @property
    def pieces(self) -> int:
        """How many files there are."""
        return len(self.parts)

    def check(self, names: Sequence[str]) -> None:
        """Errors: a column is not there."""
        check_names_of(self.source, self.columns, names)

    def having(self, names: Sequence[str]) -> "Partitions":
        """The same rows, of which these columns alone are read. Errors: a column is not there."""
        self.check(names)
        types = dict(self.columns)
        return replace(self, columns=tuple((name, types[name]) for name in names))

    def part(self, begin: int, end: int) -> "Partitions":
        """The same: what rows begin ... end - 1 need is little."""
        return self

    @contextlib.contextmanager
    def rows(self, begin: int, end: int) -> Iterator[Table]:
        """The table of rows begin ... end - 1 while it is open, read by one thread. Errors: a file has changed."""
        with scratch_folder() as private:
            connection = connect(private, None if self.memory is None else self.memory // 4, threads=1)
            try:
                yield self._table(connection, begin, end)
            finally:
                connection.close()

    def _table(self, connection: "duckdb.DuckDBPyConnection", begin: int, end: int) -> Table:
        selects, first, touched = list[str](), 0, list[FilePart]()
        columns = tuple(Column(name, quoted(name), type_) for name, type_ in self.columns)
        for part in self.parts:
            low, high = max(begin - first, 0), min(end - first, part.rows)
            first += part.rows
            if low >= high:
                continue
            touched.append(part)
            own = tuple(replace(column, type=dict(part.types).get(column.name, column.type)) for column in columns)
            relation = f"read_parquet({path_literal(part.path)}, file_row_number=true)"
            table = Table(self.source, own, relation, connection)
            names = (
                column.sql if mine.type == column.type else f"{cast(table, column)} AS {column.sql}"
                for mine, column in zip(own, columns, strict=True)
            )
            selects.append(f"SELECT {', '.join(names)} FROM {relation} WHERE {_PLACE} >= {low} AND {_PLACE} < {high}")

        def unchanged() -> None:
            for part in touched:
                _check(part)

        unchanged()
        relation = f"({' UNION ALL '.join(selects)})"
        table = Table(self.source, columns, relation, connection, unchanged=unchanged, spelling=self.spelling)
        return as_stated(table)


def partitions_of(source: str, spelling: Spelling = PLAIN, memory: int | None = None) -> Partitions:
    """The partitions that a file, a folder or a pattern names. Reads names, types and numbers of rows alone. Errors: no
    such files; another kind than Parquet; files whose columns differ in name or kind."""
    paths = paths_of(source)
    with scratch_folder() as private:
        connection = connect(private, None if memory is None else memory // 4, threads=1)
        try:
            tables = [open_file(path, connection, private, whole=False) for path in paths]
            columns = joint([path.name for path in paths], [table.columns for table in tables])
            if any(column.name == _PLACE for column in columns):
                raise UsageError(f"no column of a partition is called {_PLACE}; {paths[0].name} has it; rename it")
            found = tuple(_seen(path, table, columns) for path, table in zip(paths, tables, strict=True))
        finally:
            connection.close()
    named = tuple((column.name, column.type) for column in columns)
    return Partitions(Path(source).name or source, found, named, spelling, memory)


def _seen(path: Path, table: Table, columns: tuple[Column, ...]) -> FilePart:
    size, changed = _state(path)
    own = ((column.name, table[column.name].type) for column in columns)
    others = tuple(each for each, column in zip(own, columns, strict=True) if each[1] != column.type)
    return FilePart(str(path.absolute()), table.n, size, changed, others)


def check_names_of(source: str, columns: Sequence[tuple[str, str]], names: Sequence[str]) -> None:
    """Errors: a column is not among these."""
    there = [name for name, _ in columns]
    for name in names:
        if name not in there:
            raise no_column(source, name, there)


def places_of(mine: NDArray[np.bool_], kept: list[int]) -> list[int]:
    """The row before which so many chosen ones lie, for each of these rising numbers: as many rows as needed."""
    step = 1 << 16
    starts = np.arange(0, len(mine), step)
    before = np.concatenate([[0], np.cumsum(np.add.reduceat(mine, starts, dtype=np.int64))])
    found = list[int]()
    for number in kept:
        block = min(int(np.searchsorted(before, number, side="right")) - 1, len(starts) - 1)
        inside = np.flatnonzero(mine[block * step : (block + 1) * step])
        at = number - int(before[block])
        found.append(block * step + int(inside[at]) if at < len(inside) else len(mine))
    return found


def _state(path: Path) -> tuple[int, int]:
    status = path.stat()
    return status.st_size, status.st_mtime_ns


def _check(part: FilePart) -> None:
    path = Path(part.path)
    try:
        same = _state(path) == (part.size, part.changed)
    except OSError:
        same = False
    if not same:
        raise UsageError(
            f"a partition must stay as it is while a run reads it, and be there for every worker; {path.name} is not "
            "what it was; run again when nobody writes to it"
        )
