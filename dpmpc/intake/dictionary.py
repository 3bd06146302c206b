"""The different values of a column. Those of a column of texts that has few are asked for once, and whatever is worked
out of them then needs no other reading of the records."""

import json
import re
from collections.abc import Iterable, Sequence

import numpy as np

from dpmpc.intake.batched import COLUMN, alike
from dpmpc.intake.reading import count_where, literal
from dpmpc.intake.table import Table, quoted

MOST = 256  # texts of one column
_LONGEST = 256  # characters of one
_SAMPLE = 1 << 14  # rows that say whether the others are looked at
_DIGIT = re.compile("[0-9]")
_LITERALS = 2000  # numbers that are listed in a query
_EXACT = ("DOUBLE", "FLOAT", "TINYINT", "SMALLINT", "INTEGER", "UTINYINT", "USMALLINT")  # a double has each number

TIMES = '"(times)"'  # no column of records has such a name

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


def few_of(table: Table, names: Sequence[str]) -> dict[str, Texts | None]:
    """The same of some columns, asked for together where the table is small."""
    texts = [name for name in names if table[name].type == "VARCHAR"]
    unknown = [name for name in texts if texts_of(table[name].name) not in table.found]
    if len(unknown) > 1 and not table.parsed and table.n < _SAMPLE:
        for some in alike(table, unknown, table.n):
            counted = f"(SELECT {COLUMN} AS c, {some.value} AS v, count(*) AS k FROM {some.relation} GROUP BY 1, 2)"
            counted = f"(SELECT *, count(v) OVER (PARTITION BY c) AS many FROM {counted})"
            found = dict[int, list[tuple[str | None, int]]]()
            for c, text, count in table.rows("c, v, k", f"WHERE many <= {MOST} ORDER BY c, v", counted):
                found.setdefault(c, []).append((text, int(count)))
            for c, name in enumerate(some.names):
                table.found[texts_of(table[name].name)] = _if_few(found.get(c, []))
    return {name: few(table, name) for name in names}


def figureless(texts: Iterable[str]) -> bool:
    """Whether no text has a digit of any script, as far as is sure: their characters are ASCII or letters."""
    together = "".join(texts)
    others = (sign for sign in together if not sign.isascii())
    return _DIGIT.search(together) is None and all(sign.isalpha() and not sign.isnumeric() for sign in others)


def texts_of(name: str) -> str:
    """What a table has the different texts of a column under (`Table.found`)."""
    return f"texts {name}"


def _few(table: Table, sql: str) -> Texts | None:
    found = list[tuple[str | None, int]]()
    for tail in (f"LIMIT {_SAMPLE}", ""):
        relation = f"(SELECT {sql} AS v FROM {table.relation} {tail})"
        rows = table.rows("v, count(*)", f"GROUP BY 1 ORDER BY 1 LIMIT {MOST + 2}", relation)
        found = [(None if row[0] is None else str(row[0]), int(row[1])) for row in rows]
        if _if_few(found) is None:
            return None
        if sum(count for _, count in found) < _SAMPLE:  # these were all
            break
    return tuple(found)


def _if_few(found: Sequence[tuple[str | None, int]]) -> Texts | None:
    """All texts of a column, if they are few."""
    texts = [text for text, _ in found if text is not None]
    if not 0 < len(texts) <= MOST or any(len(text) > _LONGEST or "\0" in text for text in texts):
        return None
    return tuple(found)


def listed(table: Table, name: str) -> str | None:
    """A relation of the different values of a column, missing ones too, each with how often (TIMES); None where they
    are not `few`."""
    return None if few(table, name) is None else listed_together(table, [name], table[name].sql)


def listed_together(table: Table, names: Sequence[str], sql: str) -> str:
    """The same as `sql` of several columns that have few, each with the number of its COLUMN."""
    rows = [(c, text, count) for c, name in enumerate(names) for text, count in few(table, name) or ()]
    columns, texts, counts = (literal(json.dumps(part, ensure_ascii=False)) for part in zip(*rows, strict=True))
    return (  # each list is one literal: DuckDB takes 40 us to plan a literal
        f"(SELECT unnest(CAST({columns} AS INTEGER[])) AS {COLUMN}, unnest(CAST(CAST({texts} AS JSON) AS VARCHAR[])) AS"
        f" {sql}, unnest(CAST({counts} AS BIGINT[])) AS {TIMES})"
    )


def different(table: Table, name: str) -> str:
    """A relation of the different values of a column that are there, each with how often (TIMES): what is worked out of
    a value is then worked out once."""
    there, sql = f"WHERE NOT {table.missing(name)}", table[name].sql
    values = listed(table, name)
    if values is not None:
        return f"(SELECT {sql}, {TIMES} FROM {values} {there})"
    if (known := _kept(table, name)) is not None:
        return known
    return f"(SELECT {sql}, count(*) AS {TIMES} FROM {table.relation} {there} GROUP BY 1)"


def _kept(table: Table, name: str) -> str | None:
    """The same of a column of few numbers that the table keeps; None of another."""
    column = table[name]
    if column.type not in _EXACT or not (column.sql.isidentifier() or column.sql == quoted(name)):
        return None
    found = table.kept.of(table.relation, table.number(name))
    if found is None or found.values is None or len(found.values) > _LITERALS:
        return None
    times = np.bincount(found.codes, minlength=len(found.values))[1:]
    values, which = np.unique(found.values[1:] + 0.0, return_inverse=True)  # a zero has one sign, NaN is one
    times = np.bincount(which.reshape(-1), times, len(values)).astype(np.int64)
    listed, often = ", ".join(f"'{value!r}'" for value in values.tolist()), ", ".join(map(str, times.tolist()))
    fields = f"CAST(CAST(unnest(CAST([{listed}] AS VARCHAR[])) AS DOUBLE) AS {column.type}) AS {column.sql}"
    return f"(SELECT {fields}, unnest(CAST([{often}] AS BIGINT[])) AS {TIMES})"


def lacks(table: Table, name: str) -> bool:
    """Whether it is known without a reading of the records that no value of a column is missing."""
    values = listed(table, name)
    return values is not None and not table.one(count_where(table.missing(name)), relation=values)[0]
