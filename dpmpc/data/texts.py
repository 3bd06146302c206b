"""What is asked of a column of texts at a look: how many fields read as numbers, dates and times, and how the others
are spelled."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

from dpmpc.data.few import COLUMN, TIMES, counted_together, different, few, listed_together
from dpmpc.data.forms import (
    FIGURES,
    FORMS,
    NEGATIVE,
    Forms,
    code_sql,
    core_sql,
    has_unit_sql,
    missing_sql,
    plain_sql,
    unit_sql,
    unmarked_sql,
)
from dpmpc.data.reading import clock_sql, literal, western_sql, without_before_sql
from dpmpc.data.scripts import ZEROS
from dpmpc.data.table import Table

_UNITS = 64
_VALUE = '"(value)"'  # no column of records has such a name
_TOGETHER = 20_000  # records: the different values of all columns of more would need much memory at once
_FIRST = 1000  # fields: they say whether the others are worth a look


def different_texts(table: Table, name: str) -> str:
    """The different texts `t` of a column that are there, each with how often (k), the number n and the date d that it
    reads as, and if neither, and it has digits, itself in ASCII digits as o, without what marks it as negative as u and
    without a unit as b."""
    return _read(table, name, different(table, name))


def _read(table: Table, name: str, relation: str, along: str = "") -> str:
    """The same of a relation of values; `along`: what else goes with each."""
    text, value, days = table.text(name), table.number(name), table.days(name)
    if table.worded(name):
        value = days = "CAST(NULL AS DOUBLE)"
    number = f"CASE WHEN isfinite({_VALUE}) THEN {_VALUE} END AS n"
    day = f"CASE WHEN NOT coalesce(isfinite({_VALUE}), false) THEN {days} END AS d"
    values = f"(SELECT *, {value} AS {_VALUE} FROM {relation})"  # in one place: see `worked_out`
    read = f"(SELECT {along}{TIMES} AS k, {text} AS t, {number}, {day} FROM {values})"
    foreign = without_before_sql(western_sql("t"))
    plain = f"CASE WHEN n IS NULL AND d IS NULL AND regexp_matches(t, '\\pN') THEN {foreign} END"
    odd = f"(SELECT *, {plain} AS o FROM {read})"
    return f"(SELECT *, {core_sql('u')} AS b FROM (SELECT *, {unmarked_sql('o')} AS u FROM {odd}))"


def fields(condition: str) -> str:
    """An aggregate over `different_texts`: the fields of which a condition holds."""
    return f"CAST(coalesce(sum(k) FILTER (WHERE {condition}), 0) AS BIGINT)"


def facts_of_texts(table: Table, names: Sequence[str]) -> dict[str, dict[str, Any]]:
    """What `_asked` has of each column. Those that have few texts, or all of a small table, are asked for together
    where they are spelled alike: such a query takes longer to plan than to run."""
    asked, found = dict(_asked()), dict[str, dict[str, Any]]()
    alike: dict[tuple[bool, object], list[str]] = defaultdict(list)
    spelling = table.spelling
    for name in names:
        column, ready = table[name], few(table, name) is not None
        if (ready or table.n <= _TOGETHER) and not column.value:
            spelled = spelling.of(name), spelling.markers(name), table.worded(name)
            kind = ("" if ready else column.type, column.clean, *spelled)
            alike[ready, kind].append(name)
    for (ready, _), some in alike.items():
        column = replace(table[some[0]], sql="v")
        every = replace(table, columns=(column,))
        listed = listed_together(table, some, "v") if ready else counted_together(table, some, "v")
        values = f"(SELECT * FROM {listed} WHERE NOT {every.missing(column.name)})"
        rows = table.rows(
            f"c, {', '.join(asked.values())}", "GROUP BY c", _read(every, column.name, values, f"{COLUMN} AS c, ")
        )
        found |= {some[row[0]]: dict(zip(asked, row[1:], strict=True)) for row in rows}
    for name in names:
        if name not in found:
            answers = table.one(*asked.values(), relation=different_texts(table, name))
            found[name] = dict(zip(asked, answers, strict=True))
    return found


def _asked() -> Iterator[tuple[str, str]]:
    """Aggregates over `different_texts`, by name."""
    yield from (("present", fields("true")), ("distinct", "count(*)"))
    yield from (("numbers", fields("n IS NOT NULL")), ("least", "min(n)"), ("greatest", "max(n)"))
    yield "whole", fields("n = floor(n)")
    foreign = "ascii(t) > 127 AND regexp_full_match(t, '{}\\pN+')"  # other digits than these
    coded = f"(t LIKE '0_%' AND NOT regexp_matches(t, '\\D')) OR ({foreign.format(f'[{ZEROS}]')})"
    yield "coded", fields(f"n IS NOT NULL AND ({coded})")
    yield "three", fields(f"regexp_full_match(t, {literal(FORMS['point three'])})")
    yield "pointed", fields("n IS NOT NULL AND contains(t, '.')")
    yield from (("dates", fields("d IS NOT NULL")), ("first", "min(d)"), ("last", "max(d)"))
    yield "length", "sum(k * length(t)) / sum(k)"
    yield "spaced", fields("contains(t, ' ')")
    yield "likely", fields(missing_sql("t"))
    yield "odd", fields("o IS NOT NULL")
    yield "units", fields(has_unit_sql("u", "b"))
    yield "before", fields(f"regexp_matches(u, '^\\pL') AND {has_unit_sql('u', 'b')}")
    yield "plain", fields(plain_sql("b"))
    yield "padded", fields(f"{has_unit_sql('u', 'b')} AND regexp_full_match(b, '0\\d+')")
    yield "lettered", fields(code_sql("o"))
    yield "signs", fields("regexp_full_match(t, '\\++')")
    yield "digits", fields(f"n IS NOT NULL AND (NOT regexp_matches(t, '\\D') OR ({foreign.format('')}))")
    yield from (("narrow", "min(length(t))"), ("broad", "max(length(t))"))
    timed = "contains(o, ':') OR contains(o, 'h') OR lower(left(o, 2)) = 'kl'"
    yield "times", fields(f"CASE WHEN {timed} THEN {clock_sql('o')} IS NOT NULL END")
    for mark, sign in zip(NEGATIVE, ("-", ")"), strict=True):
        yield mark, fields(f"u <> o AND u = b AND ends_with(o, '{sign}') AND {plain_sql('b')}")
    for form, pattern in FORMS.items():
        yield form, fields(f"regexp_full_match(b, {literal(pattern)})")


def plain_forms(source: Table, present: Mapping[str, int]) -> list[Forms]:
    """How the points of columns of plain numbers stand in their texts. `present`: the columns, and how many numbers."""
    if not present:
        return []
    parts = []
    for text in map(source.text, present):
        tests = (f"contains({text}, '.')", f"regexp_full_match({text}, {literal(FORMS['point three'])})")
        parts += [f"count(*) FILTER (WHERE {test})" for test in tests]
    counts, none = iter(source.one(*parts)), dict.fromkeys((*FORMS, *NEGATIVE), 0)
    found = zip(present.items(), counts, counts, strict=True)
    return [Forms(n, none, {}, {}, (three, pointed), (n, 0), name, 0) for (name, n), pointed, three in found]


def listed_words(table: Table, name: str) -> dict[str, int]:
    """The words that look like "missing", and how many fields have each."""
    text = table.text(name)
    return _counts(table, name, f"lower({text})", missing_sql(text))


def units_of(table: Table, name: str) -> dict[str, int]:
    """What looks like a unit, the commonest ones, and how many fields have each."""
    text = western_sql(table.text(name))
    return _counts(table, name, unit_sql(text), has_unit_sql(text, core_sql(text)), most=_UNITS)


def odd_texts(table: Table, name: str, kind: Literal["number", "date"]) -> tuple[str, ...]:
    """The three commonest texts of a column that are there and are no number, or no date."""
    read = f"isfinite({table.number(name)})" if kind == "number" else f"{table.days(name)} IS NOT NULL"
    return tuple(_counts(table, name, table.text(name), f"NOT coalesce({read}, false)", most=3))


def figures_of(table: Table, name: str) -> int:
    """How many fields of a column of texts look like a number, a time or a date that is read as none; 0 if less than a
    quarter of the first ones do."""
    asked = fields(f"regexp_full_match(o, {literal(FIGURES)})")
    if table.n <= _FIRST:
        present, count = table.one(fields("true"), asked, relation=different_texts(table, name))
        return int(count) if 4 * count >= present else 0
    first = replace(table, relation=f"(SELECT * FROM {table.relation} LIMIT {_FIRST})")
    present, count = first.one(fields("true"), asked, relation=different_texts(first, name))
    return int(table.one(asked, relation=different_texts(table, name))[0]) if 4 * count >= present else 0


def _counts(table: Table, name: str, text: str, where: str, most: int | None = None) -> dict[str, int]:
    """How many fields of a condition have each text, worked out once of each different value; the commonest first."""
    tail = f"WHERE {where} GROUP BY 1 ORDER BY 2 DESC, 1" + (f" LIMIT {most}" if most else "")
    rows = table.rows(f"{text} AS t, CAST(sum({TIMES}) AS BIGINT)", tail, different(table, name))
    return {str(word): int(count) for word, count in rows}
