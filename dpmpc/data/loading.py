"""The one way from records, wherever they lie, to a data set: open, schema, split, features."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from dpmpc.data.blocks import Precision, Records, allocate
from dpmpc.data.database import open_database
from dpmpc.data.dataset import Dataset, split
from dpmpc.data.derive import Asked, PublicBounds, features_of, schema_of_bounds, schema_of_records
from dpmpc.data.files import open_file, open_files
from dpmpc.data.mapping import Mapping, complete, owner_numbers, owners_of
from dpmpc.data.memory import parse_memory, usual_memory
from dpmpc.data.objects import open_object
from dpmpc.data.schema import Schema, read_bounds
from dpmpc.data.scratch import scratch_folder
from dpmpc.data.table import Ints, Table, connect, held
from dpmpc.errors import UsageError


@dataclass(frozen=True)
class CsvFile:
    """A file that is CSV whatever its name."""

    path: Path


@dataclass(frozen=True)
class Query:
    """The rows of a query to a database."""

    url: str
    sql: str


@dataclass(frozen=True)
class OpenTable:
    """A table that somebody has open, and the private folder that goes with it."""

    table: Table
    private: Path


Source = Any  # OpenTable, CsvFile, Query, a path, folder or pattern, or a Python object that `objects` knows


@contextmanager
def opened(source: Source, *, memory: int | None = None, folder: Path | None = None) -> Iterator[tuple[Table, Path]]:
    """The table of a source while it is open, and a private folder that goes with it.

    memory: how many bytes DuckDB may hold, a quarter of what the process may use. folder: where the private folder is.
    Errors: as for each kind of source.
    """
    if isinstance(source, OpenTable):
        yield source.table, source.private
        return
    with scratch_folder(folder) as private:
        connection = connect(private, None if memory is None else memory // 4)
        try:
            yield open_source(source, connection, private), private
        finally:
            connection.close()


def open_source(source: Source, connection: Any, private: Path) -> Table:
    """The table of a source. Errors: as for each kind of source."""
    if isinstance(source, CsvFile):
        return open_file(Path(source.path), connection, private, kind=".csv")
    if isinstance(source, Query):
        return open_database(source.url, source.sql, connection, private)
    if isinstance(source, str | os.PathLike):
        return open_files(os.fspath(source), connection, private)
    return open_object(source, connection, private)


def load(
    source: Source,
    *,
    schema: Schema | None = None,
    target: str | None = None,
    owners_column: str | None = None,
    task: Any = None,
    seed: int = 1,
    test_fraction: float = 0.2,
    intercept: bool = True,
    max_rows: int | None = None,
    bounds: Path | PublicBounds | None = None,
    missing: Any = "fill",
    drop: Any = (),
    positive: str | None = None,
    memory: int | str | None = None,
    precision: Precision = "double",
    folder: Path | None = None,
    name: str | None = None,
) -> Dataset:
    """The data set of a source.

    source: `CsvFile`, `Query`, a path (file, folder or pattern; `files.KINDS`) or a Python object (`objects.KINDS`).
    schema: what maps the records; else `bounds` (a file, or a mapping) give a public one together with target, task,
    intercept, missing, drop and positive; else all is read off the records, and the schema's bounds are "data".
    memory: bytes, or 2GB, that the process may hold; features that need more than half of it lie in a file in `folder`.
    precision: "single" rounds every record to 32 bits when it is made, within the unit ball.
    Errors: what the source, the schema and the records refuse; see docs/data.md.
    """
    budget = parse_memory(memory) if isinstance(memory, str) else memory
    with opened(source, memory=budget, folder=folder) as (table, private):
        if schema is None:
            if target is None:
                raise UsageError("records need the name of the column to predict; none was given; add --target COLUMN")
            asked = Asked(target, owners_column, tuple(drop), task, positive, intercept, missing)
            public = read_bounds(bounds) if isinstance(bounds, Path) else bounds
            if public is None:
                features = features_of(table, asked)
                others = [name for name in (target, owners_column) if name is not None]
                table = held(table, [*features, *others])
                schema = schema_of_records(table, asked, features)
            else:
                schema = schema_of_bounds(table, asked, public)
        return build(
            table,
            schema,
            private,
            owners_column=owners_column,
            seed=seed,
            test_fraction=test_fraction,
            max_rows=max_rows,
            memory=budget or usual_memory(),
            precision=precision,
            name=name,
        )


def build(
    table: Table,
    schema: Schema,
    private: Path,
    *,
    owners_column: str | None = None,
    seed: int,
    test_fraction: float,
    max_rows: int | None = None,
    memory: int,
    precision: Precision = "double",
    name: str | None = None,
) -> Dataset:
    """The data set of a table's records through a schema, drawn and split by the seed."""
    Mapping(table, schema)  # refuses what does not fit before anything is read
    others = [name for name in (schema.target.name, owners_column) if name is not None and name in table]
    table = held(table, [*(column.name for column in schema.columns), *others])
    if schema.missing == "drop":
        table = complete(table, schema)
    mapping = Mapping(table, schema)
    groups: Ints | None = None
    names: tuple[str, ...] = ()
    if owners_column is not None:
        sql, names = owner_numbers(table, owners_column)
        groups = owners_of(table, sql)
    n = table.n
    train, test = split(n, test_fraction=test_fraction, max_rows=max_rows, seed=seed, groups=groups)
    order = np.concatenate([train, test])
    records = _filled(mapping, n, order, private, memory, precision)
    return Dataset(
        name or table.source,
        schema,
        records,
        len(train),
        None if groups is None else groups[train],
        names,
        tuple(mapping.counts.values()),
    )


def _filled(mapping: Mapping, n: int, order: Ints, private: Path, memory: int, precision: Precision) -> Records:
    """The records in this order: row k is record order[k]."""
    d = len(mapping.schema.feature_names)
    width = d * (8 if precision == "double" else 4)
    records = allocate(len(order), d, precision, private if len(order) * width > memory // 2 else None)
    straight = len(order) == n and bool((order == np.arange(n)).all())
    place = np.full(n, -1, dtype=np.int64)
    place[order] = np.arange(len(order))
    step = max(64, (1 << 18) // max(1, d))  # rows that stay in a core's cache while their columns are written
    seen = 0
    for values, labels, _ in mapping.blocks():
        for begin in range(0, len(labels), step):
            part = slice(begin, min(begin + step, len(labels)))
            _place(mapping.schema, records, [v[part] for v in values], labels[part], seen, place, straight)
            seen += part.stop - begin
    assert seen == n
    records.forget()
    return records


def _place(
    schema: Schema, records: Records, values: list[Any], labels: Any, seen: int, place: Ints, straight: bool
) -> None:
    if straight:
        rows = slice(seen, seen + len(labels))
        schema.rows(values, records.X[rows])
        records.y[rows] = labels
        records.forget(rows.start, rows.stop)
        return
    to = place[seen : seen + len(labels)]
    kept = np.flatnonzero(to >= 0)
    X = np.empty((len(labels), records.X.shape[1]), dtype=records.X.dtype)
    schema.rows(values, X)
    records.X[to[kept]] = X[kept]
    records.y[to[kept]] = labels[kept]
    records.forget()
