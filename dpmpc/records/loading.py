"""The one way from records, wherever they lie, to a data set: open, schema, split, features."""

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from dpmpc.errors import RecordError, UsageError
from dpmpc.folders import said_path
from dpmpc.intake.coded import Kept
from dpmpc.intake.database import open_database
from dpmpc.intake.engine import duckdb, explained
from dpmpc.intake.files import open_file, open_files
from dpmpc.intake.head import UnstatedError
from dpmpc.intake.missing import as_stated, keeping
from dpmpc.intake.objects import open_object
from dpmpc.intake.profile import look
from dpmpc.intake.scratch import scratch_folder
from dpmpc.intake.spelling import COLUMNS, PLAIN, Spelling, stating
from dpmpc.intake.staging import give_back, held
from dpmpc.intake.table import Ints, Table, connect
from dpmpc.lazy import dataclass
from dpmpc.records.blocks import Precision
from dpmpc.records.check import given
from dpmpc.records.dataset import Dataset, Rows, Split, split
from dpmpc.records.derive import PublicBounds, TableSettings, looked, schema_of_bounds, schema_of_records, task_of
from dpmpc.records.filling import filled, placed
from dpmpc.records.keys import Keys
from dpmpc.records.mapping import Mapping, complete, owners_in
from dpmpc.records.memory import kept_within, parse_memory, usual_memory
from dpmpc.records.ownership import EMPTY, KeptOwners
from dpmpc.records.persons import drawn_apart, kept, persons_of
from dpmpc.records.schema import NOTHING_STOOD_OUT, OFF_THE_RECORDS, USUAL_GOALS, Basis, Goal, Schema, read_bounds


@dataclass(frozen=True)
class CsvFile:
    """A file that is CSV whatever its name."""

    path: Path | str


@dataclass(frozen=True)
class Query:
    """The rows of a query to a database."""

    url: str
    sql: str


@dataclass(frozen=True)
class OpenTable:
    """A table that somebody has open, the private folder that goes with it, and which of its rows are for training
    and for the test, where that is decided already."""

    table: Table
    private: Path
    rows: Rows | None = None


# (number of training rows, the number of each one's person, of each one's owner) -> which of them each place has
Arranging = Callable[[int, Ints | None, Ints | None], Ints]
Source = Any  # OpenTable, CsvFile, Query, a path, folder or pattern, or a Python object that `objects` knows


@contextmanager
def opened(
    source: Source,
    *,
    memory: int | None = None,
    folder: Path | None = None,
    spelling: Spelling = PLAIN,
    person: KeptOwners | None = None,
    guess: bool = False,
    unsaid: str = "",
    names: Iterable[str | None] = (),
) -> Iterator[tuple[Table, Path]]:
    """The table of a source while it is open, and a private folder that goes with it.

    memory: how many bytes DuckDB may hold, a quarter of what the process may use. folder: where the private folder is.
    spelling: what its owner states of its texts; a table that is open already keeps its own, and its own persons.
    person: what is kept of each person's records. guess: whether a text file is read by the encoding, the line of
    names and the last lines that it seems to have where none was stated, which then are of the table's spelling.
    unsaid: a target of which no task was stated, which a refusal then asks for too. names: the columns that will be
    read, where a schema, a plan or questions say them all: of JSON objects then these keys are columns, and no others.
    Errors: as for each kind of source; a file that must be guessed, with all that its fields need stated.
    """
    if isinstance(source, OpenTable):
        yield source.table, source.private
        return
    try:
        with scratch_folder(folder) as private:
            connection = connect(private, None if memory is None else memory // 4)
            try:
                keys = keys_of(spelling, names, person)
                table = _guessed(source, connection, private, spelling, keys, refused=not guess, unsaid=unsaid)
                table = replace(table, kept=Kept(kept_within(usual_memory() if memory is None else memory)))
                yield (table if person is None else kept(table, person)), private
            finally:
                connection.close()
    except duckdb.Error as error:  # of a query that no other place answers for; its words may quote a row
        raise RecordError(explained(error, "the source"), "the records of an owner cannot be read") from None


def _guessed(
    source: Source,
    connection: Any,
    private: Path,
    spelling: Spelling,
    keys: Keys,
    *,
    refused: bool,
    unsaid: str = "",
) -> Table:
    """The table of a source, with the encoding and the lines around its records that it seems to have. `refused`:
    whether these must have been stated; then the error says all else that the fields need stated, too."""
    first: UnstatedError | None = None
    guessed = spelling
    while True:
        try:
            table = open_source(source, connection, private, guessed, keys)
            break
        except UnstatedError as error:
            first = first or error
            before, guessed = guessed, replace(guessed, **error.likely)
            if guessed == before:
                raise first from None
        except (RecordError, UsageError):  # what was guessed does not fit, and nobody stated it
            if first is None:
                raise
            raise first from None
    if first is None or not refused:
        return table
    found, _ = look(table)
    stated = {name for name, value in spelling.options().items() if found.proposed.options().get(name) == value}
    more = {name: value for name, value in found.proposed.options().items() if name not in stated}
    if more.keys() - {"missing"} <= first.likely.keys() and not task_of(found, unsaid):
        raise first
    asks = "".join(f" ({ask})" for ask in found.asks) + task_of(found, unsaid)
    raise RecordError(f"{first.rule}; its fields need more: state {stating(**more)}{asks}", first.message) from None


def keys_of(spelling: Spelling, names: Iterable[str | None], person: KeptOwners | None) -> Keys:
    """Which keys of JSON objects are columns: as the owner stated, else the names that are known, with persons' own."""
    known = [name for name in names if name]
    if known and person is not None:
        known += [name for name in (person.column, person.owners) if name]
    return Keys(spelling.names or tuple(dict.fromkeys(known)), person is not None)


def open_source(
    source: Source, connection: Any, private: Path, spelling: Spelling = PLAIN, keys: Keys | None = None
) -> Table:
    """The table of a source. Errors: as for each kind of source."""
    if isinstance(source, CsvFile):
        table = open_file(Path(source.path), connection, private, kind=".csv", spelling=spelling)
    elif isinstance(source, str | os.PathLike):
        keys = keys_of(spelling, (), None) if keys is None else keys
        table = open_files(os.fspath(source), connection, private, spelling, chosen=keys.columns)
    elif isinstance(source, Query):
        table = open_database(source.url, source.sql, connection, private, spelling=spelling)
    else:
        table = replace(open_object(source, connection, private), spelling=spelling)
    if isinstance(source, CsvFile | Query | str | os.PathLike):
        for name in (name for setting in COLUMNS for name in getattr(spelling, setting)):
            if not name.endswith((" (1)", " (2)")) or name[:-4] not in spelling.pairs:
                table[name]
    return as_stated(table)


def load(
    source: Source,
    *,
    schema: Schema | None = None,
    target: str | None = None,
    owners_column: str | None = None,
    task: Goal | str | None = None,
    seed: int = 1,
    test_fraction: float = 0.2,
    intercept: bool = True,
    max_rows: int | None = None,
    bounds: Path | str | PublicBounds | None = None,
    missing: Any = "fill",
    drop: Any = (),
    positive: str | None = None,
    classes: Sequence[str] = (),
    memory: int | str | None = None,
    precision: Precision = "double",
    folder: Path | str | None = None,
    name: str | None = None,
    spelling: Spelling = PLAIN,
    splitting: Split | None = None,
    person: KeptOwners | None = None,
    basis: Basis | None = None,
    arranging: Arranging | None = None,
    held_out: bool = True,
) -> Dataset:
    """The data set of a source.

    source: `CsvFile`, `Query`, a path (file, folder or pattern; `files.KINDS`) or a Python object (`objects.KINDS`).
    task: a usual one by name, or another (`learning.tasks`).
    schema: what maps the records; else `bounds` (a file, or a mapping) give a public one together with target, task,
    intercept, missing, drop, positive and classes; else all is read off the records, the schema's bounds are "data".
    memory: bytes, or 2GB, that the process may hold; features that need more than half of it lie in a file in `folder`.
    spelling: what the owner of the records states of their numbers, dates and missing words; its own business.
    splitting: what says which rows are for training and which for the test, instead of the seed.
    person: what is kept of each person's records; a person's are all for training, or all for the test.
    precision: "single" rounds every record to 32 bits when it is made, within the unit ball.
    basis: of the schema's numbers; None: as the schema says.
    held_out: whether the records for the test are loaded too; else it is only said how many there are.
    arranging: which training rows the records hold, in their order; None: all, as they are drawn.
    Errors: what the source, the schema and the records refuse; see docs/data.md.
    """
    left: dict[str, str] = dict.fromkeys(drop, "as asked")
    folder = None if folder is None else said_path(folder, "folder")
    budget = parse_memory(memory) if isinstance(memory, str) else memory
    unsaid = (target or "") * (schema is None and task is None and not classes)
    public = read_bounds(bounds) if isinstance(bounds, Path | str) else bounds
    names: Iterable[str | None] = ()
    if schema is not None:
        names = (*schema.names, owners_column)
    elif public is not None:
        names = (*public, target, owners_column, *drop)
    opening = opened(
        source, memory=budget, folder=folder, spelling=spelling, person=person, unsaid=unsaid, names=names
    )  # fmt: skip
    with opening as (table, private):
        whole = table  # ids are a column of it; a look leaves out those that tell nothing

        def parted(_: Table, groups: Ints | None, by_seed: Rows) -> Rows:
            assert splitting is not None
            return splitting(whole, groups, by_seed)

        if schema is None:
            if target is None:
                raise UsageError(
                    "records need the name of the column to predict; none was given; add <<target=COLUMN>>"
                )
            goal = USUAL_GOALS[task] if isinstance(task, str) else task
            asked = TableSettings(target, owners_column, tuple(drop), goal, positive, intercept, missing, classes)
            if public is None:
                intake, table = looked(table, asked)
                schema = schema_of_records(intake, asked)
                left |= {c.name: OFF_THE_RECORDS for c in intake.columns if c.role == "feature" and not c.used}
            else:
                schema = schema_of_bounds(table, asked, public)
        elif schema.bounds == "survey":
            known = {column.name for column in schema.columns} | {schema.target.name, owners_column}
            left |= {name: NOTHING_STOOD_OUT for name in table.names if name not in known and name not in left}
        return build(
            table,
            schema.on(basis),
            private,
            left_out=tuple(left.items()),
            owners_column=owners_column,
            seed=seed,
            test_fraction=test_fraction,
            max_rows=max_rows,
            memory=budget or usual_memory(),
            precision=precision,
            name=name,
            splitting=None if splitting is None else parted,
            rows=source.rows if isinstance(source, OpenTable) else None,
            by_person=person is not None,
            arranging=arranging,
            held_out=held_out,
        )


def build(
    table: Table,
    schema: Schema,
    private: Path,
    *,
    left_out: tuple[tuple[str, str], ...] = (),
    owners_column: str | None = None,
    seed: int,
    test_fraction: float,
    max_rows: int | None = None,
    memory: int,
    precision: Precision = "double",
    name: str | None = None,
    splitting: Split | None = None,
    rows: Rows | None = None,
    by_person: bool = False,
    arranging: Arranging | None = None,
    held_out: bool = True,
) -> Dataset:
    """The data set of a table's records through a schema, drawn and split by the seed, or by `splitting`, or into
    `rows`, where that is decided already.
    `by_person`: of a table that `persons.kept` made. `arranging`, `held_out`: as of `load`."""
    whole = table
    persons = persons_of(table) if by_person else None
    if by_person and (schema.missing == "drop" or max_rows is not None):
        raise UsageError(
            "persons have places that do not depend on their records; <<missing=drop>> or <<max_rows>> leaves records "
            "out; leave it out"
        )
    Mapping(table, schema)  # refuses what does not fit before anything is read
    others = [name for name in (schema.target.name, owners_column) if name is not None and name in table]
    table = held(keeping(table, schema.listed), [*(column.name for column in schema.columns), *others])
    if schema.missing == "drop":
        table = complete(table, schema)
    mapping = Mapping(table, schema)
    groups: Ints | None = None
    names: tuple[str, ...] = ()
    if owners_column is not None:
        groups, names = owners_in(table, owners_column)
    n, decided = table.n, rows is not None
    if rows is None and persons is not None:
        rows = drawn_apart(persons, test_fraction, seed)
    elif rows is None:
        rows = split(n, test_fraction=test_fraction, max_rows=max_rows, seed=seed, groups=groups)
    train, test = rows if decided or splitting is None else splitting(whole, groups, rows)
    own = None if groups is None else groups[train]
    order, training = train, len(train)
    if arranging is not None:
        chosen = arranging(len(train), None if persons is None else persons[train], own)
        order, training = np.where(chosen < 0, EMPTY, train[chosen]), len(chosen)
        del chosen
    if held_out:
        order = np.concatenate([order, test])
    places = placed(order, n)
    give_back(table)
    del order  # a number a record, as long as they are read
    records = filled(mapping, places, training, private, memory, precision)
    return Dataset(
        name or table.source,
        schema,
        records,
        training,
        len(test),
        own,
        names,
        tuple(mapping.counts.values()),
        left_out,
        None if groups is None else groups[test],
        None if persons is None else (persons[train], persons[test]),
        whole.beyond,
        mapping.misfits,
        mapping.ends,
        () if decided else tuple(each.text for each in given(schema, table)),  # else it was said before
    )
