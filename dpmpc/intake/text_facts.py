"""What is asked of a column of texts at a look: how many fields read as numbers, dates and times, and how the others
are spelled."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

from dpmpc.intake.batched import COLUMN, SMALL, Alike, alike, asked_of, fields_of
from dpmpc.intake.dictionary import MOST, TIMES, Texts, different, few_of, figureless, listed_together
from dpmpc.intake.forms import (
    FIGURES,
    FORMS,
    NAMED,
    NEGATIVE,
    Forms,
    code_sql,
    core_sql,
    has_unit_sql,
    missing_sql,
    named_sql,
    plain_sql,
    triangle_sql,
    unit_sql,
    unmarked_sql,
)
from dpmpc.intake.once import once, selected
from dpmpc.intake.reading import clock_sql, count_where, literal, western_sql, without_before_sql
from dpmpc.intake.scripts import LETTERS, ZEROS
from dpmpc.intake.table import Table

_UNITS = 64
_VALUE = '"(value)"'  # no column of records has such a name
_ENDS = ("least", "greatest", "first", "last")  # of what is read as a number or a date; none where nothing is
_FIRST = 1000  # fields: they say whether the others are worth a look


def different_texts(table: Table, name: str) -> str:
    """The different texts `t` of a column that are there, each with how often (k), the number n and the date d that it
    reads as, and if neither, and it has digits, itself in ASCII digits as o, without what marks it as negative as u and
    without a unit as b."""
    return _read(table, name, different(table, name))


def _read(table: Table, name: str, relation: str, along: str = "") -> str:
    """The same of a relation of values; `along`: what else goes with each, as c."""
    text, figureless = table.text(name), table[name].figureless
    value = days = "CAST(NULL AS DOUBLE)"
    if not (figureless or table.worded(name)):
        value, days = table.number(name), table.days(name)
    number = f"CASE WHEN isfinite({_VALUE}) THEN {_VALUE} END AS n"
    day = f"CASE WHEN NOT coalesce(isfinite({_VALUE}), false) THEN {days} END AS d"
    values = f"(SELECT *, {value} AS {_VALUE} FROM {relation})"  # in one place: see `worked_out`
    read = selected(f"{along}{TIMES} AS k, {text} AS t, {number}, {day}", values)
    if figureless:
        return f"(SELECT *, {', '.join(f'CAST(NULL AS VARCHAR) AS {each}' for each in 'oub')} FROM {read})"
    foreign, carried = without_before_sql(once(western_sql("t"))), f"{'c, ' if along else ''}k, t, n, d"
    plain = f"CASE WHEN n IS NULL AND d IS NULL AND regexp_matches(t, '\\pN') THEN {foreign} END"
    odd = f"(SELECT *, {unmarked_sql('o')} AS u FROM {selected(f'{carried}, {plain} AS o', read)})"
    return selected(f"{carried}, o, u, {core_sql('u')} AS b", odd)


def fields(condition: str) -> str:
    """An aggregate over `different_texts`: the fields of which a condition holds; NULL where there is none."""
    return f"sum(CASE WHEN {condition} THEN k ELSE 0 END)"


def facts_of_texts(table: Table, names: Sequence[str]) -> dict[str, dict[str, Any]]:
    """What `_asked` has of each column. Those that have few texts, or all of a small table, are asked for together
    where they are spelled alike: such a query takes longer to plan than to run."""
    found = dict[str, dict[str, Any]]()
    none = {name: None if name in _ENDS else 0 for name, _ in _of_figures()}
    texts = few_of(table, names)
    plain = {name for name, each in texts.items() if each and figureless(text or "" for text, _ in each)}
    for figures in (False, True):
        asked = _asked(not figures)
        for each, values in _together(table, [n for n in names if (n not in plain) is figures], texts):
            column = replace(each.table.columns[0], figureless=not figures)
            read = _read(replace(each.table, columns=(column,)), each.name, values, f"{COLUMN} AS c, ")
            rows = table.rows(f"c, {', '.join(asked.values())}", "GROUP BY c", read)
            found |= {each.names[row[0]]: none | dict(zip(asked, row[1:], strict=True)) for row in rows}
    asked = _asked(figureless=False)
    for name in names:
        if name not in found:
            answers = table.one(*asked.values(), relation=different_texts(table, name))
            found[name] = dict(zip(asked, answers, strict=True))
            if found[name]["present"] is None:  # no field is there
                found[name] |= dict.fromkeys((key for key in asked if key not in _ENDS), 0)
    return found


def _asked(figureless: bool) -> dict[str, str]:
    """Aggregates over `different_texts`, by name; of texts without figures those that may find something."""
    return dict(_of_texts()) if figureless else dict([*_of_texts(), *_of_figures()])


def _of_texts() -> Iterator[tuple[str, str]]:
    yield from (("present", fields("true")), ("distinct", "count(*)"))
    yield "length", "sum(k * length(t)) / sum(k)"
    yield "spaced", fields("contains(t, ' ')")
    yield "likely", fields(missing_sql("t"))
    yield "signs", fields("regexp_full_match(t, '\\(?[+＋]+\\)?')")
    yield from (("narrow", "min(length(t))"), ("broad", "max(length(t))"))


def _of_figures() -> Iterator[tuple[str, str]]:
    yield from (("numbers", fields("n IS NOT NULL")), (_ENDS[0], "min(n)"), (_ENDS[1], "max(n)"))
    yield "whole", fields("n = floor(n)")
    foreign = "ascii(t) > 127 AND regexp_full_match(t, '{}\\pN+')"  # other digits than these
    coded = f"(t LIKE '0_%' AND NOT regexp_matches(t, '\\D')) OR ({foreign.format(f'[{ZEROS}]')})"
    yield "coded", fields(f"n IS NOT NULL AND ({coded})")
    yield "three", fields(f"regexp_full_match(t, {literal(FORMS['point three'])})")
    yield "pointed", fields("n IS NOT NULL AND contains(t, '.')")
    yield from (("dates", fields("d IS NOT NULL")), (_ENDS[2], "min(d)"), (_ENDS[3], "max(d)"))
    yield "odd", fields("o IS NOT NULL")
    yield "units", fields(has_unit_sql("u", "b"))
    yield "before", fields(f"regexp_matches(u, '^[{LETTERS}]') AND {has_unit_sql('u', 'b')}")
    yield "plain", fields(plain_sql("b"))
    yield "padded", fields(f"{has_unit_sql('u', 'b')} AND regexp_full_match(b, '0\\d+')")
    yield "lettered", fields(code_sql("o"))
    yield "flagged", fields("regexp_full_match(o, '[\\d.,]*\\d ?\\+')")
    yield "digits", fields(f"n IS NOT NULL AND (NOT regexp_matches(t, '\\D') OR ({foreign.format('')}))")
    timed = "strlen(o) <> length(o) OR contains(lower(o), 'h') OR contains(o, ':') OR lower(left(o, 2)) = 'kl'"
    yield "times", fields(f"CASE WHEN {timed} THEN {clock_sql('o')} IS NOT NULL END")
    under = triangle_sql("o")
    for mark, marked in zip(NEGATIVE, (f"NOT (ends_with(o, ')') OR {under})", "u = b AND ends_with(o, ')')", under),
                            strict=True):  # fmt: skip
        found = fields(f"u <> o AND {marked} AND {plain_sql('b')}")
        turned = "bool_or(left(o, 1) IN ('\u25bd', '\u25bc'))"  # triangles that say up and down are no signs
        yield mark, f"CASE WHEN {turned} THEN 0 ELSE {found} END" if marked == under else found
    for form, pattern in FORMS.items():
        yield form, fields(f"regexp_full_match(b, {literal(pattern)})")
    for form in NAMED:
        yield form, fields(named_sql("b", form))


def plain_forms(source: Table, present: Mapping[str, int], rows: int) -> list[Forms]:
    """How the points of columns of plain numbers stand in their texts. `present`: the columns, and how many numbers;
    `rows`: of the source."""
    found, none = points_of(source, list(present), rows), dict.fromkeys((*FORMS, *NAMED, *NEGATIVE), 0)
    return [Forms(n, none, {}, {}, found[name][::-1], (n, 0), name, 0) for name, n in present.items()]


def points_of(source: Table, names: Sequence[str], rows: int, limit: int | None = None) -> dict[str, tuple[int, int]]:
    """(fields with a point, those such as 1.234) of each of some columns; of the first records alone, if there is a
    limit. `rows`: of the source. Cost: one reading of it, however many columns; of a small one a few."""

    def asked(one: Table, name: str) -> list[str]:
        text = one.text(name)
        tests = (f"contains({text}, '.')", f"regexp_full_match({text}, {literal(FORMS['point three'])})")
        return [count_where(test) for test in tests]

    return {name: (pointed, three) for name, (pointed, three) in asked_of(source, names, asked, rows, limit).items()}


def _together(table: Table, names: Sequence[str], texts: Mapping[str, Texts | None]) -> Iterator[tuple[Alike, str]]:
    """(columns that are spelled alike, a relation of their different values that are there) of those that are asked for
    together: those that have few texts, and all of a small table."""
    names = [name for name in names if not table[name].value]
    ready = [name for name in names if texts.get(name) is not None]
    rest = [name for name in names if table.n <= SMALL and texts.get(name) is None]
    rows = (MOST * len(ready) + table.n * len(rest)) // max(1, len(ready) + len(rest))
    for some in alike(table, ready + rest, rows):
        known = [name for name in some.names if texts.get(name) is not None]
        parts = [listed_together(table, known, some.value)] if known else []
        if others := some.names[len(known) :]:
            parts.append(_counted(some, fields_of(table, others, table.relation, len(known))))
        values = parts[0] if len(parts) == 1 else f"(SELECT * FROM {' UNION ALL SELECT * FROM '.join(parts)})"
        yield some, _there(some, values)


def _counted(some: Alike, relation: str) -> str:
    """A relation of the different values of some columns, each with its COLUMN and how often."""
    return f"(SELECT {COLUMN}, {some.value}, count(*) AS {TIMES} FROM {relation} GROUP BY ALL)"


def _there(some: Alike, values: str) -> str:
    """Of such a relation those that are not missing."""
    return f"(SELECT * FROM {values} WHERE NOT {some.table.missing(some.name)})"


Said = Callable[[Table, str], str]  # SQL of a table and the name of a column
Counts = dict[str, dict[str, int]]


def counts_of(
    table: Table, names: Sequence[str], text: Said, where: Said | None = None, most: int | None = None
) -> Counts:
    """How many fields of each column, of a condition, have each text, worked out once of each different value; the
    commonest first, at most so many. The columns of a small table are asked for together."""

    def said(one: Table, name: str) -> str:
        return f"CASE WHEN {where(one, name)} THEN {text(one, name)} END" if where else text(one, name)

    found = Counts()
    if table.n <= SMALL and len(names) > 1:
        texts = few_of(table, [name for name in names if table[name].kind == "text"])
        for each, values in _together(table, names, texts):
            one = each.table
            asked = f"{COLUMN} AS c, {said(one, each.name)} AS t, CAST(sum({TIMES}) AS BIGINT) AS k"
            tail = "GROUP BY 1, 2 HAVING t IS NOT NULL"
            first = f" QUALIFY row_number() OVER (PARTITION BY c ORDER BY k DESC, t) <= {most}" if most else ""
            found |= {name: {} for name in each.names}
            for c, word, count in table.rows(asked, f"{tail}{first} ORDER BY 1, 3 DESC, 2", values):
                found[each.names[c]][str(word)] = int(count)
    for name in names:
        if name not in found:
            # no HAVING t IS NOT NULL: DuckDB would work out t of every record for it, not of each different value
            tail = "GROUP BY 1 ORDER BY 2 DESC, 1" + (f" LIMIT {most + 1}" if most else "")
            rows = table.rows(f"{said(table, name)} AS t, CAST(sum({TIMES}) AS BIGINT)", tail, different(table, name))
            found[name] = {str(word): int(count) for word, count in rows if word is not None}
            if most and len(found[name]) > most:
                found[name].popitem()
    return found


def listed_words(table: Table, names: Sequence[str]) -> Counts:
    """The words that look like "missing", and how many fields have each."""
    return counts_of(
        table, names, lambda one, name: f"lower({one.text(name)})", lambda one, name: missing_sql(one.text(name))
    )


def units_of(table: Table, names: Sequence[str]) -> Counts:
    """What looks like a unit, the commonest ones, and how many fields have each."""

    def western(one: Table, name: str) -> str:
        return once(western_sql(one.text(name)))

    def has(one: Table, name: str) -> str:
        return has_unit_sql(western(one, name), core_sql(western(one, name)))

    return counts_of(table, names, lambda one, name: unit_sql(western(one, name)), has, _UNITS)


def odd_texts(table: Table, names: Sequence[str], kind: Literal["number", "date"]) -> Counts:
    """The three commonest texts of each column that are there and are no number, or no date."""

    def odd(one: Table, name: str) -> str:
        read = f"isfinite({one.number(name)})" if kind == "number" else f"{one.days(name)} IS NOT NULL"
        return f"NOT coalesce({read}, false)"

    return counts_of(table, names, Table.text, odd, 3)


def figures_of(table: Table, names: Sequence[str]) -> dict[str, int]:
    """How many fields of each of some columns of texts look like a number, a time or a date that is read as none; 0 if
    less than a quarter of the first ones do."""
    found = dict.fromkeys(names, 0)
    first = _figures(table, names, f"LIMIT {_FIRST}")
    found |= {name: count for name, (present, count) in first.items() if 4 * count >= present}
    if table.n > _FIRST:
        some = [name for name, count in found.items() if count]
        found |= {name: count for name, (_, count) in _figures(table, some).items()}
    return found


def _figures(table: Table, names: Sequence[str], limit: str = "") -> dict[str, tuple[int, int]]:
    """(fields that are there, those that look like figures) of each column."""
    asked = f"{fields('true')}, {fields(f'regexp_full_match(o, {literal(FIGURES)})')}"
    found = dict.fromkeys(names, (0, 0))
    if not limit and table.n > SMALL:
        return {name: table.rows(asked, relation=different_texts(table, name))[0] for name in names}
    for each in alike(table, names, min(table.n, _FIRST) if limit else table.n, limit):
        read = _read(each.table, each.name, _there(each, _counted(each, each.relation)), f"{COLUMN} AS c, ")
        found |= {each.names[c]: (there, count) for c, there, count in table.rows(f"c, {asked}", "GROUP BY c", read)}
    return found
