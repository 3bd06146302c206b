"""The different values of a column. Those of a column of texts that has few are asked for once, and whatever is worked
out of them then needs no other reading of the records."""

from collections.abc import Sequence

from dpmpc.data.reading import literal
from dpmpc.data.table import Table

MOST = 256  # texts of one column
_LONGEST = 256  # characters of one
_SAMPLE = 1 << 14  # rows that say whether the others are looked at

TIMES, COLUMN = '"(times)"', '"(column)"'  # no column of records has such a name

Texts = tuple[tuple[str | None, int], ...]  # each text of a column, None for a field without one, and how often


def few(table: Table, name: str) -> Texts | None:
    """The different texts of a column; None where they do not lie ready, are many or long. Cost: one reading of the
    column, the first time. Errors: the source cannot be read."""
    column = table[name]
    if column.type != "VARCHAR" or table.parsed:
        return None
    key = texts_of(column.name)
    if key not in table.found:
        table.found[key] = _few(table, column.sql)
    found: Texts | None = table.found[key]
    return found


def texts_of(name: str) -> str:
    """What a table has the different texts of a column under (`Table.found`)."""
    return f"texts {name}"


def _few(table: Table, sql: str) -> Texts | None:
    found = list[tuple[str | None, int]]()
    for tail in (f"LIMIT {_SAMPLE}", ""):
        relation = f"(SELECT {sql} AS v FROM {table.relation} {tail})"
        rows = table.rows("v, count(*)", f"GROUP BY 1 ORDER BY 1 LIMIT {MOST + 2}", relation)
        found = [(None if row[0] is None else str(row[0]), int(row[1])) for row in rows]
        texts = [text for text, _ in found if text is not None]
        if not 0 < len(texts) <= MOST or any(len(text) > _LONGEST or "\0" in text for text in texts):
            return None
        if sum(count for _, count in found) < _SAMPLE:  # these were all
            break
    return tuple(found)


def listed(table: Table, name: str) -> str | None:
    """A relation of the different values of a column, missing ones too, each with how often (TIMES); None where they
    are not `few`."""
    return None if few(table, name) is None else listed_together(table, [name], table[name].sql)


def listed_together(table: Table, names: Sequence[str], sql: str) -> str:
    """The same as `sql` of several columns that have few, each with the number of its COLUMN."""
    rows = [(c, text, count) for c, name in enumerate(names) for text, count in few(table, name) or ()]
    columns = ", ".join(str(c) for c, _, _ in rows)
    texts = ", ".join("NULL" if text is None else literal(text) for _, text, _ in rows)
    counts = ", ".join(str(count) for _, _, count in rows)
    return (
        f"(SELECT unnest(CAST([{columns}] AS INTEGER[])) AS {COLUMN}, unnest(CAST([{texts}] AS VARCHAR[])) AS {sql},"
        f" unnest(CAST([{counts}] AS BIGINT[])) AS {TIMES})"
    )


def counted_together(table: Table, names: Sequence[str], sql: str) -> str:
    """The same of columns of one type that may have many."""
    parts = (
        f"SELECT {c} AS {COLUMN}, {table[name].sql} AS {sql}, count(*) AS {TIMES} FROM {table.relation} GROUP BY 2"
        for c, name in enumerate(names)
    )
    return f"({' UNION ALL '.join(parts)})"


def different(table: Table, name: str) -> str:
    """A relation of the different values of a column that are there, each with how often (TIMES): what is worked out of
    a value is then worked out once."""
    there, sql = f"WHERE NOT {table.missing(name)}", table[name].sql
    values = listed(table, name)
    if values is not None:
        return f"(SELECT {sql}, {TIMES} FROM {values} {there})"
    return f"(SELECT {sql}, count(*) AS {TIMES} FROM {table.relation} {there} GROUP BY 1)"


def lacks(table: Table, name: str) -> bool:
    """Whether it is known without a reading of the records that no value of a column is missing."""
    values = listed(table, name)
    return values is not None and not table.one(f"count(*) FILTER (WHERE {table.missing(name)})", relation=values)[0]
