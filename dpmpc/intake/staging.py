"""A table's records parsed once, as DuckDB holds them from then on.

Those of a large source lie in a file of the scratch folder that has no name, as its features do: DuckDB compresses them
there, and holds of them what it reads. Small ones lie in its memory.

Nothing is guessed from other rows: the first ones only say what to try first, and a column for which that was wrong is
held as text, cleaned row by row. What is cheap for most records is done for all of them. A number is read once; a text
that is one of few is held as it stands, where none of the few has to be mended.
"""

import contextlib
import secrets
from collections.abc import Iterator, Sequence, Set
from dataclasses import replace
from pathlib import Path

from dpmpc.errors import RecordError
from dpmpc.intake.batched import COLUMN, SMALL, alike, asked_of, in_lists
from dpmpc.intake.coded import Kept
from dpmpc.intake.dictionary import MOST, few_of, listed_together, texts_of
from dpmpc.intake.engine import duckdb
from dpmpc.intake.once import worked_out
from dpmpc.intake.reading import count_where, literal, number_sql
from dpmpc.intake.scripts import ZEROS
from dpmpc.intake.table import LIMIT, Column, Table, value_sql

HELD, _RAW, _BRIEFLY = "held", "raw", "briefly"
_FILE = "dpmpc_file"  # what a connection calls the database of that file
_LITTLE = "16MB"  # that DuckDB holds of such a file while nothing is asked of it
LARGE = 1 << 26  # bytes of a source: to set up a file takes longer than to hold less
_FIRST = 1000  # records that say what is tried first
_AT_ONCE = 256  # columns of one query: what it holds of each while it runs adds up
_SEVERAL = 16  # columns: of fewer it does not matter how long a plain expression is planned
_FEW = 2048  # records, that DuckDB reads at once: to plan what reads a stated spelling takes longer for two columns


def held(table: Table, names: Sequence[str]) -> Table:
    """The same table with these columns parsed once and held by DuckDB, in its memory or in its folder on disk.

    A column all of whose values are numbers is held as numbers, the others as text. The first rows only say what to try
    first: a column with one value that is no number is held as text. Cost: one parsing, and one or two more where the
    first rows said the wrong. A wide table is held as it stands first, and then some columns at a time.
    """
    if not table.parsed:
        return table
    if len(names) <= _AT_ONCE:
        return _held(table, names, HELD, 0)
    raw = _raw(table, names)
    parts = [
        _held(raw if at == 0 else replace(raw, along=""), names[at : at + _AT_ONCE], f"{HELD}{at}", at)
        for at in range(0, len(names), _AT_ONCE)
    ]
    joined = " POSITIONAL JOIN ".join(part.relation for part in parts)
    result = _kept(raw, [column for part in parts for column in part.columns], "*", HELD, joined)
    for part in parts:
        table.run(f"DROP TABLE {part.relation}")
        result.found.update(part.found)
    table.run(f"DROP TABLE {_RAW}")
    return result


def held_where_wide(table: Table, names: Sequence[str]) -> Table:
    """The same table; of a few thousand records with many columns, with these parsed once and held: else an expression
    a column is planned for each query, which takes longer than to read the records. Cost: as of `held`."""
    return held(table, names) if table.parsed and len(names) > _SEVERAL and _is_small(table) else table


@contextlib.contextmanager
def held_where_few(table: Table, names: Sequence[str]) -> Iterator[Table]:
    """The same table; of few records, with these columns parsed once and held for so long, under a name of its own: to
    plan what reads them as they are held takes DuckDB a quarter of the time, and longer than to read them."""
    if not (table.parsed and 1 < len(names) <= _AT_ONCE and _is_small(table, _FEW)):
        yield table
        return
    try:
        yield _held(table, names, _BRIEFLY, 0)
    finally:
        with contextlib.suppress(RecordError):  # who reads no further may have closed the connection
            table.run(f"DROP TABLE IF EXISTS {_BRIEFLY}")


def give_back(table: Table) -> None:
    """Has DuckDB give back what it holds of a table that lies in a file: it reads it again where it is asked for."""
    if not table.relation.startswith(f"{_FILE}."):  # one in its memory it would write to the disk
        return
    with contextlib.suppress(duckdb.Error):  # what is in use it does not give back
        ((most,),) = table.connection.execute(f"SELECT getvariable('{LIMIT}')").fetchall()
        try:
            table.connection.execute(f"SET memory_limit = '{_LITTLE}'")
        finally:
            table.connection.execute("RESET memory_limit" if most is None else f"SET memory_limit = '{most}'")


@contextlib.contextmanager
def as_they_stand(table: Table) -> Iterator[Table]:
    """The same table with its fields as they stand, read once and held by DuckDB: what is then asked column by column
    reads the source no more. One of a few columns, or that is not parsed, stays."""
    if not table.parsed or len(table.columns) <= _SEVERAL:
        yield table
        return
    try:
        yield _raw(table, table.names)
    finally:
        table.run(f"DROP TABLE IF EXISTS {_RAW}")


def _raw(table: Table, names: Sequence[str]) -> Table:
    columns = tuple(replace(table[name], sql=f"r{k}") for k, name in enumerate(names))
    raw = _kept(table, columns, ", ".join(f"{table[name].sql} AS r{k}" for k, name in enumerate(names)), _RAW)
    table.unchanged()
    return replace(raw, parsed=True)


def _held(table: Table, names: Sequence[str], called: str, first: int) -> Table:
    """The same of columns that are held at once, in a table of this name, as h`first` and so on."""
    together = _is_small(table) if len(names) > _SEVERAL else not table.spelling.plain and _is_small(table, _FEW)
    if not (together or table.spelling.plain):
        table = _staged(table, names)
    numbers, few, bare = _tried(table, names)
    while True:
        named = enumerate(names, first)
        columns = tuple(_column(table[name], f"h{k}", name in numbers, name in few) for k, name in named)
        result = _as_typed(table, columns, bare, called) or _made(table, columns, called, together)
        table.unchanged()
        some = [c.name for c in columns if c.name in numbers]
        wrong = {name for name, (count,) in asked_of(result, some, _infinite, result.n).items() if count}
        if not wrong:
            break
        numbers -= wrong
    odd = few - _clean(result, [c.name for c in columns if c.name in few])
    known = result.found
    result = replace(result, columns=tuple(replace(c, clean=_held_clean(c) and c.name not in odd) for c in columns))
    if odd:
        result = _made(result, tuple(replace(c, clean=_held_clean(c)) for c in columns), called, together)
    result.found.update({key: texts for key, texts in known.items() if key not in map(texts_of, odd)})
    return result


def _infinite(table: Table, name: str) -> list[str]:
    ends = (f"isfinite({end}({table[name].sql}))" for end in ("min", "max"))  # NaN is the greatest
    return [f"NOT ({' AND '.join(ends)})"]


def _held_clean(column: Column) -> bool:
    """Whether a held column is one of texts, which have no space around them in the end."""
    return column.type == "VARCHAR" and column.kind == "text"


def _tried(table: Table, names: Sequence[str]) -> tuple[set[str], set[str], set[str]]:
    """Which columns seem to have numbers alone, which texts of which there are few, and which of those with numbers
    have no word for a missing one either, as the first records say. Columns that are spelled alike are asked about in
    one expression, over the values of all of them: to plan one a column takes longer than to run it."""
    texts = [name for name in names if table[name].kind in ("text", "number")]
    seen = dict[str, tuple[int, int, int]]()
    for some in alike(table, texts, _FIRST, f"LIMIT {_FIRST}"):
        value, one, name = some.value, some.table, some.name
        odd = count_where(f"isinf({value_sql(one, name)}) OR {_padded(one, name)}")
        word = f"CAST({value} AS VARCHAR) <> '' AND TRY_CAST({value} AS DOUBLE) IS NULL"
        asked = f"{COLUMN}, {odd}, count(DISTINCT {value}), {count_where(word)}"
        rows = table.rows(asked, f"GROUP BY {COLUMN}", some.relation)
        seen |= {some.names[at]: (*found,) for at, *found in rows}
    none = (0, 0, 0)  # of no records
    numbers = {name for name in texts if not (seen.get(name, none)[0] or table.worded(name) or table[name].texts)}
    plain = (name for name in texts if table[name].type == "VARCHAR" and table.spelling.plain)
    few = {name for name in plain if name not in numbers and seen.get(name, none)[1] <= MOST}
    return numbers, few, {name for name in numbers if not seen.get(name, none)[2]}


def _as_typed(table: Table, columns: Sequence[Column], bare: Set[str], called: str) -> Table | None:
    """The table of these columns, held, of which the parser itself has read those of numbers that are `bare`: to the
    same bits, and no field of them is ever a text. None where that is not what was stated, or where some field of
    theirs is neither a number nor empty."""
    # a column that is worked out of a field (a date of eight digits, half of a pair) is none that the parser reads
    plain = {c.name for c in columns if table[c.name].type == "VARCHAR" and table[c.name].sql.isidentifier()}
    numbers = [c for c in columns if c.type == "DOUBLE" and c.name in bare and c.name in plain]
    spelling = table.spelling
    if table.typed is None or table.typed[0] != table.relation or table.along or not numbers:
        return None
    if table.loose or not spelling.plain or spelling.missing:
        return None
    select = ", ".join(f"{table[c.name].sql if c in numbers else _sql(table, c)} AS {c.sql}" for c in columns)
    relation = table.typed[1]({table[c.name].sql for c in numbers})
    try:
        return _kept(replace(table, repair=None), columns, select, called, relation)
    except RecordError:  # what is wrong is said, or mended, where all is read as text
        return None


def _made(table: Table, columns: Sequence[Column], called: str, together: bool) -> Table:
    """The table of these columns, held. `together`: whether those that are alike are worked out by one expression."""
    lists = [c.name for c in columns if together and _is_dear(table, c)]
    kinds = {c.name: c for c in columns}
    relation, listed = table.relation, dict[str, str]()
    if len(lists) > 1:
        said, key = (lambda one, name: _sql(one, kinds[name])), (lambda name: (kinds[name].type, kinds[name].clean))
        relation, listed = in_lists(table, lists, said, key)
    select = ", ".join(f"{listed.get(c.name) or _sql(table, c)} AS {c.sql}" for c in columns)
    return _kept(table, columns, select, called, relation)


def _is_dear(table: Table, column: Column) -> bool:
    """Whether the value of a column as it is to be held is more than the field itself, or a cast."""
    return column.clean or (column.type == "DOUBLE" and table[column.name].type != "DOUBLE")


def _is_small(table: Table, most: int = SMALL) -> bool:
    """Whether to work out a table's fields takes less than to plan it. Cost: a reading of its first records."""
    return bool(table.one("count(*)", relation=f"(SELECT 1 FROM {table.relation} LIMIT {most + 1})")[0] <= most)


def _kept(table: Table, columns: Sequence[Column], select: str, called: str, relation: str = "") -> Table:
    """The table of these columns as DuckDB holds what is selected of a relation, the table's own by default."""
    along = f", {table.along}" if table.along and select != "*" else ""
    select, relation = worked_out(select, relation or table.relation)
    filed = table.size >= LARGE and _has_file(table)
    name = f"{_FILE}.{called}" if filed else called
    table.run(f"CREATE OR REPLACE {'' if filed else 'TEMP '}TABLE {name} AS SELECT {select}{along} FROM {relation}")
    if filed:  # what was replaced is given back, and the log of what was written goes
        table.run(f"CHECKPOINT {_FILE}")
    return replace(
        table, columns=tuple(columns), relation=name, repair=None, parsed=False, unchanged=lambda: None,
        kept=Kept(table.kept.most),  # another table may have had this name
    )  # fmt: skip


def _has_file(table: Table) -> bool:
    """Whether the connection has a file for tables, which is made where it has a scratch folder. It loses its name at
    once: the system frees it when the process ends, however it ends."""
    known = "SELECT list(database_name) FROM duckdb_databases()"
    ((folder, names),) = table.connection.execute(f"SELECT current_setting('temp_directory'), ({known})").fetchall()
    there = _FILE in names
    if there or not folder:
        return there
    path = Path(folder) / f"{secrets.token_hex(8)}.held"
    with contextlib.suppress(duckdb.Error):  # a setting that older versions do not have
        table.connection.execute("SET write_buffer_row_group_count = 1")
    table.run(f"ATTACH {literal(str(path))} AS {_FILE}")
    path.unlink()
    return True


def _clean(table: Table, names: Sequence[str]) -> set[str]:
    """The columns of which no text, held as it stands, has to be mended: they have few, and none is missing."""
    ready = [name for name, texts in few_of(table, names).items() if texts is not None]
    clean = set[str]()
    for some in alike(table, ready, MOST):
        one, texts = some.table, listed_together(table, some.names, some.value)
        mended = f"{one.missing(some.name)} OR {one.text(some.name)} <> {some.value}"
        asked = f"{COLUMN}, {count_where(f'{some.value} IS NOT NULL AND ({mended})')}"
        rows = table.rows(asked, f"GROUP BY {COLUMN}", texts)
        clean |= {some.names[at] for at, count in rows if not count}
    return clean


def _padded(table: Table, name: str) -> str:
    """SQL for whether a text is digits with a zero before them, which a code may be: a number would lose it."""
    return f"regexp_full_match({table.text(name)}, '[0{ZEROS}]\\pN+')" if table[name].kind == "text" else "false"


def _staged(table: Table, names: Sequence[str]) -> Table:
    """The table of these columns with each text, and then the number that it spells, worked out once: an expression
    that stands in a query for each time that it is asked takes DuckDB longer to plan than to run."""
    columns, raw, read = list[Column](), list[str](), list[str]()
    for k, column in enumerate(table[name] for name in names):
        raw.append(f"{column.sql} AS r{k}")
        read.append(f"r{k}")
        if column.kind == "text":
            raw.append(f"{table.text(column.name)} AS x{k}")
            read.append(f"x{k}, {number_sql(f'x{k}', table.spelling.of(column.name), loose=table.loose)} AS v{k}")
            columns.append(replace(column, sql=f"x{k}", value=f"v{k}"))
        else:
            columns.append(replace(column, sql=f"r{k}"))
    along = [table.along] if table.along else []
    relation = f"(SELECT {', '.join(raw + along)} FROM {table.relation})"
    return replace(table, columns=tuple(columns), relation=f"(SELECT {', '.join(read + along)} FROM {relation})")


def _column(column: Column, sql: str, number: bool, few: bool) -> Column:
    if column.kind == "date":
        return Column(column.name, sql, "TIMESTAMP")
    if column.kind == "other":
        return Column(column.name, sql, column.type)
    return Column(column.name, sql, "DOUBLE" if number else "VARCHAR", not (number or few), finite=number)


def _sql(table: Table, column: Column) -> str:
    """SQL for the value of a column as it is to be held. That of a number is infinite or NaN where it is none and not
    missing either."""
    if column.type == "DOUBLE" and table[column.name].type != "DOUBLE":
        missing = f"CASE WHEN NOT {table.missing(column.name)} THEN CAST('inf' AS DOUBLE) END"
        return f"coalesce({table.number(column.name)}, {missing})"
    if column.type == "DOUBLE":
        return table[column.name].sql
    if column.clean:
        return f"CASE WHEN NOT {table.missing(column.name)} THEN {table.text(column.name)} END"
    return f"CAST({table[column.name].sql} AS {column.type})"
