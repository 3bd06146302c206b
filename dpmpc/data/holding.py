"""A table's records parsed once, as DuckDB holds them from then on.

Nothing is guessed from other rows: the first ones only say what to try first, and a column for which that was wrong is
held as text, cleaned row by row. What is cheap for most records is done for all of them. A number is read once; a text
that is one of few is held as it stands, where none of the few has to be mended.
"""

from collections.abc import Sequence
from dataclasses import replace

from dpmpc.data.few import MOST, listed, texts_of
from dpmpc.data.once import worked_out
from dpmpc.data.reading import number_sql
from dpmpc.data.table import Column, Table, value_sql

HELD = "held"
_FIRST = 1000  # records that say what is tried first


def held(table: Table, names: Sequence[str]) -> Table:
    """The same table with these columns parsed once and held by DuckDB, in its memory or in its folder on disk.

    A column all of whose values are numbers is held as numbers, the others as text. The first rows only say what to try
    first: a column with one value that is no number is held as text. Cost: one parsing, and a second one where the
    first rows said the wrong.
    """
    if not table.parsed:
        return table
    if not table.spelling.plain:
        table = _staged(table, names)
    numbers, few = _tried(table, names)
    while True:
        columns = tuple(_column(table[name], f"h{k}", name in numbers, name in few) for k, name in enumerate(names))
        result = _made(table, columns, table.relation)
        table.unchanged()
        counts = {c.name: f"count(*) FILTER (WHERE NOT isfinite({c.sql}))" for c in columns if c.name in numbers}
        wrong = {n for n, count in zip(counts, result.one(*counts.values()) if counts else (), strict=True) if count}
        if not wrong:
            break
        numbers -= wrong
    odd = {c.name for c in columns if c.name in few and not _clean(result, c)}
    known = result.found
    result = replace(result, columns=tuple(replace(c, clean=_held_clean(c) and c.name not in odd) for c in columns))
    if odd:
        result = _made(result, tuple(replace(c, clean=_held_clean(c)) for c in columns), HELD)
    result.found.update({key: texts for key, texts in known.items() if key not in map(texts_of, odd)})
    return result


def _held_clean(column: Column) -> bool:
    """Whether a held column is one of texts, which have no space around them in the end."""
    return column.type == "VARCHAR" and column.kind == "text"


def _tried(table: Table, names: Sequence[str]) -> tuple[set[str], set[str]]:
    """Which columns seem to have numbers alone, and which texts of which there are few, as the first records say."""
    texts = [name for name in names if table[name].kind in ("text", "number")]
    asked = list[str]()
    for name in texts:
        asked.append(f"count(*) FILTER (WHERE isinf({value_sql(table, name)}) OR {_padded(table, name)})")
        asked.append(f"count(DISTINCT {table[name].sql})")
    found = iter(table.one(*asked, relation=f"(SELECT * FROM {table.relation} LIMIT {_FIRST})") if asked else ())
    seen = {name: (odd, many) for name, odd, many in zip(texts, found, found, strict=True)}
    numbers = {name for name, (odd, _) in seen.items() if not odd and not table.worded(name)}
    plain = (name for name in texts if table[name].type == "VARCHAR" and not table[name].value)
    return numbers, {name for name in plain if name not in numbers and seen[name][1] <= MOST}


def _made(table: Table, columns: Sequence[Column], relation: str) -> Table:
    """The table of these columns, held."""
    select = ", ".join(f"{_sql(table, column)} AS {column.sql}" for column in columns)
    along = f", {table.along}" if table.along else ""
    select, relation = worked_out(select, relation)
    table.run(f"CREATE OR REPLACE TEMP TABLE {HELD} AS SELECT {select}{along} FROM {relation}")
    return replace(table, columns=tuple(columns), relation=HELD, repair=None, parsed=False, unchanged=lambda: None)


def _clean(table: Table, column: Column) -> bool:
    """Whether no text of a column that is held as it stands has to be mended: it has few, and none is missing."""
    texts = listed(table, column.name)
    if texts is None:
        return False
    there = f"{column.sql} IS NOT NULL AND"
    mended = f"{table.missing(column.name)} OR {table.text(column.name)} <> {column.sql}"
    return not table.one(f"count(*) FILTER (WHERE {there} ({mended}))", relation=texts)[0]


def _padded(table: Table, name: str) -> str:
    """SQL for whether a text is digits with a zero before them, which a code may be: a number would lose it."""
    return f"regexp_full_match({table.text(name)}, '0\\d+')" if table[name].kind == "text" else "false"


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
