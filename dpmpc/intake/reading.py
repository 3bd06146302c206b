"""SQL for what a text reads as. A number is read as `intake.spelling` reads it in Python; a date or a time of day is
read by Python itself, but for dates as ISO 8601 writes them."""

import os
from dataclasses import replace
from pathlib import Path

from dpmpc.intake.calendars import BEFORE_DATE
from dpmpc.intake.dates import CLOCK, DAYS, LONGEST, way_of
from dpmpc.intake.month_names import WEEKDAYS
from dpmpc.intake.once import let
from dpmpc.intake.scripts import ARABIC_COMMA, ARABIC_POINT, ENGLISH_LIST, FROM, TO, quick
from dpmpc.intake.spelling import GAPS, SHARE, Spelling

# What stands for a value within an expression; no column of records has such a name, and one that had it would be read
# in its place.
TEXT, BARE, BELOW = '"(text)"', '"(bare)"', '"(below)"'


def literal(text: str) -> str:
    """An SQL string."""
    return "'" + text.replace("'", "''") + "'"


def only_where(test: str, value: str) -> str:
    """SQL for a value where a test holds, NULL elsewhere: aggregates leave that out. With a FILTER in its place each
    aggregate has DuckDB pick the rows of every column of the query, so that a wide one's cost is quadratic in them."""
    return f"CASE WHEN {test} THEN {value} END"


def count_where(test: str) -> str:
    """SQL for how many rows a test holds of; 0 of no rows."""
    return f"count({only_where(test, '1')})"


def path_literal(path: str | Path) -> str:
    """An SQL string for the one file of this name: DuckDB takes `*`, `?` and `[` for a pattern, and `~` for a home."""
    return literal("".join(f"[{sign}]" if sign in "*?[" else sign for sign in os.path.abspath(path)))


_OTHERS = literal(f"[{FROM}{ARABIC_POINT}{ARABIC_COMMA}]")  # what `scripts.western` has something else for
_FIGURE = literal(quick(r"\pN"))
# Two numbers with more than a point or a comma between them, or three of these: all dates have that, few numbers do.
_DATES = literal(quick(r"\pN[^\pN]*[^\pN.,][^\pN]*\pN|\pN[.,]\pN+[.,]\pN"))
_ISO = r"[1-9]\d{3}-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])([ T]([01]\d|2[0-3]):[0-5]\d(:[0-5]\d)?)?"
_PADDED = "CASE WHEN length({}) = 16 THEN ':00' ELSE '' END"


def number_sql(text: str, spelling: Spelling, *, loose: bool) -> str:
    """SQL for the DOUBLE that a text without space around it spells, NULL where it spells none (NaN and infinity may
    come out). `loose`: whether a text may hold `_` or `+-`, which DuckDB allows within numbers."""
    value = _signed(text, spelling)
    other = let(TEXT, _western(text, spelling.decimal), _signed(TEXT, spelling))
    signs = f"{_foreign(text)} AND regexp_matches({text}, {_OTHERS})"  # without any it would read the same once more
    value = f"coalesce({value}, CASE WHEN {signs} THEN {other} END)"
    return f"CASE WHEN contains({text}, '_') OR contains({text}, '+-') THEN NULL ELSE {value} END" if loose else value


def _foreign(text: str) -> str:
    """SQL for whether a text has characters that are not ASCII."""
    return f"strlen({text}) <> length({text})"


def western_sql(text: str) -> str:
    """SQL for a text with ASCII digits and signs in place of others."""
    return f"CASE WHEN {_foreign(text)} THEN {_western(text, '.')} ELSE {text} END"


def _western(text: str, decimal: str) -> str:
    """SQL for `scripts.western`. Letters with marks are what is foreign in most texts, and `translate` is slow."""
    plain = f"replace(translate({text}, {literal(FROM)}, {literal(TO)}), '{ARABIC_POINT}', '{decimal}')"
    whole = f"trim(regexp_replace({plain}, '{ARABIC_COMMA}(\\d{{3}})', '\\1', 'g'))"
    return f"CASE WHEN regexp_matches({text}, {_OTHERS}) THEN {whole} ELSE trim({text}) END"


def _signed(text: str, spelling: Spelling) -> str:
    """With a plain sign or none: a share by its sign of per cent, as it stands, without its unit, or in parentheses
    with one."""
    if spelling.percents:
        marked = " OR ".join(f"contains({text}, '{sign}')" for sign in "%\uff05\u066a")
        bare = f"regexp_replace({text}, {literal(f'^(?:{SHARE})$')}, '\\1\\2', 's')"
        share = f"{let(BARE, bare, _read(BARE, spelling))} / 100"
        return f"CASE WHEN {marked} THEN {share} ELSE {_signed(text, replace(spelling, percents=()))} END"
    ways = [_read(text, spelling)]
    if spelling.units:
        units = [f"contains({text}, {literal(unit)})" for unit in spelling.units]
        gaps = literal(f"^[+-]?[{GAPS[' ']}]|[{GAPS[' ']}]$")  # which go with a unit, or without one
        there = f"{' OR '.join(units)} OR regexp_matches({text}, {gaps})"  # the pattern itself is slow on long texts
        ways.append(f"CASE WHEN {there} THEN {_without_unit(text, spelling)} END")
        owed = literal(rf"^{spelling.owed_pattern}$")
        inner = _without_unit(f"regexp_replace({text}, {owed}, '-\\1\\2\\3\\4', 's')", spelling)
        ways.append(f"CASE WHEN contains({text}, '(') AND regexp_matches({text}, {owed}, 's') THEN {inner} END")
    return f"coalesce({', '.join(ways)})" if len(ways) > 1 else ways[0]


def _without_unit(text: str, spelling: Spelling) -> str:
    pattern = literal(rf"^{spelling.unit_pattern}$")
    stripped = f"regexp_replace({text}, {pattern}, '\\1\\2', 's')"
    return let(BARE, stripped, f"CASE WHEN NOT regexp_matches({BARE}, '^[+-]{{2}}') THEN {_read(BARE, spelling)} END")


def _read(text: str, spelling: Spelling) -> str:
    value = _digits(text, spelling)
    if not spelling.negative:
        return value
    pattern = literal(rf"^{spelling.negative_pattern}$")
    below = let(BELOW, f"regexp_replace({text}, {pattern}, '-\\1', 's')", _digits(BELOW, spelling))
    return f"coalesce({value}, CASE WHEN regexp_matches({text}, {pattern}, 's') THEN {below} END)"


def _digits(text: str, spelling: Spelling) -> str:
    plain = f"TRY_CAST({text} AS DOUBLE)"
    if spelling.decimal == ",":
        plain = f"CASE WHEN contains({text}, '.') THEN NULL ELSE TRY_CAST(replace({text}, ',', '.') AS DOUBLE) END"
    if not spelling.thousands:
        return plain
    joined = f"regexp_replace({text}, {literal(f'[{GAPS[spelling.thousands]}]')}, '', 'g')"
    if spelling.decimal == ",":
        joined = f"replace({joined}, ',', '.')"
    whole = f"regexp_full_match({text}, {literal(spelling.group_pattern)})"
    return f"coalesce({plain}, CASE WHEN {whole} THEN TRY_CAST({joined} AS DOUBLE) END)"


def without_before_sql(text: str) -> str:
    """SQL for a text without a day of the week before it, if it is one of a date: a look at two letters is cheap."""
    led = f"{text} > ':' AND {_led(text)}"
    return f"CASE WHEN {led} THEN regexp_replace({text}, {literal(BEFORE_DATE)}, '') ELSE {text} END"


def _led(text: str) -> str:
    """SQL for whether a text begins as some day of the week does."""
    two = ", ".join(sorted({word[:2] for word in WEEKDAYS}))  # of one text: a list of them is looked through slower
    return f"contains({literal(two)}, lower(left({text}, 2)))"


def days_sql(text: str, spelling: Spelling) -> str:
    """SQL for the DOUBLE of days since 1970-01-01 of the date that a text spells, NULL where it spells none. DuckDB
    reads those that are written as ISO 8601 has it; `intake.dates` the others, each different text once. What cannot be
    a date by its looks, as numbers cannot, reaches neither."""
    begun = f"left({text}, 1) BETWEEN '0' AND '9' OR {_foreign(text)}"
    begun += f" OR ({_led(text)} AND regexp_matches({text}, {literal(BEFORE_DATE)}))"
    begun += f" OR contains({literal(ENGLISH_LIST)}, lower(left({text}, 3)))"
    other = f"CASE WHEN ({begun}) AND length({text}) <= {LONGEST} AND regexp_matches({text}, {_DATES}) THEN "
    other += f"{DAYS}({text}, {literal(way_of(spelling))}) END"
    if spelling.calendar:
        return other
    iso = f"starts_with(right({text}, length({text}) - 4), '-') AND regexp_full_match({text}, {literal(_ISO)})"
    date = f"CAST(TRY_CAST(left({text}, 10) AS DATE) - DATE '1970-01-01' AS DOUBLE)"
    second = f"coalesce(epoch(TRY_CAST(substr({text}, 12) || {_PADDED.format(text)} AS TIME)), 0) / 86400"
    return f"coalesce(CASE WHEN {iso} THEN {date} + {second} END, {other})"


def clock_sql(text: str) -> str:
    """SQL for the part of a day that a time of day alone spells, NULL where a text spells none."""
    marked = f"strlen({text}) <> length({text}) OR contains(lower({text}), 'h') OR contains({text}, ':')"
    marked = f"({marked} OR lower(left({text}, 2)) = 'kl') AND length({text}) <= {LONGEST}"
    return f"CASE WHEN {marked} AND regexp_matches({text}, {_FIGURE}) THEN {CLOCK}({text}) END"
