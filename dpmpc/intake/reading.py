"""SQL for what a text reads as: a number, or a date in days. The same as `intake.spelling` says in Python."""

import os
from collections.abc import Sequence
from pathlib import Path

from dpmpc.intake.calendars import BEFORE_DATE, CLOCK, DATE_PATTERNS, OURS, PERSIAN_EPOCH, SAID_CLOCKS, YEARS
from dpmpc.intake.once import let, once
from dpmpc.intake.scripts import (
    ARABIC_COMMA,
    ARABIC_POINT,
    ENGLISH_LIST,
    ERAS,
    FIRST,
    FROM,
    TO,
    TURNED,
    TURNS,
    WORDS_BEFORE,
    month_list,
)
from dpmpc.intake.spelling import GAPS, Spelling

# What stands for a value within an expression; no column of records has such a name, and one that had it would be read
# in its place.
TEXT, BARE, BELOW, PARTS, HOUR, DATE = '"(text)"', '"(bare)"', '"(below)"', '"(p)"', '"(hour)"', '"(date)"'


def literal(text: str) -> str:
    """An SQL string."""
    return "'" + text.replace("'", "''") + "'"


def path_literal(path: str | Path) -> str:
    """An SQL string for the one file of this name: DuckDB takes `*`, `?` and `[` for a pattern, and `~` for a home."""
    return literal("".join(f"[{sign}]" if sign in "*?[" else sign for sign in os.path.abspath(path)))


_OTHERS = literal(f"[{FROM}{ARABIC_POINT}{ARABIC_COMMA}]")  # what `scripts.western` has something else for


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
    """With a plain sign or none: as it stands, without its unit, or in parentheses with one."""
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
    two = ", ".join(sorted({word[:2] for word in WORDS_BEFORE}))  # of one text: a list of them is looked through slower
    led = f"{text} > ':' AND contains({literal(two)}, lower(left({text}, 2)))"
    return f"CASE WHEN {led} THEN regexp_replace({text}, {literal(BEFORE_DATE)}, '') ELSE {text} END"


def days_sql(text: str, spelling: Spelling) -> str:
    """SQL for the DOUBLE of days since 1970-01-01 of the date that a text spells, NULL where it spells none. What finds
    the parts of a date differs with their order; what makes days of them stands there once for all orders, as DuckDB
    takes longer to plan an expression than to work it out for some thousand texts."""
    other = f"CASE WHEN regexp_matches({text}, '\\pN') THEN {_turned(_western(text, '.'))} END"
    western = once(f"CASE WHEN {_foreign(text)} THEN {other} ELSE {text} END")
    plain = once(without_before_sql(western))  # within a lambda DuckDB compiles patterns again for each 2,048 fields
    # years of an era are ours, whatever calendar the others are of
    groups = [spelling.date_orders] if not spelling.calendar else [spelling.date_orders[:-1], spelling.date_orders[-1:]]
    calendars = (spelling.calendar, "")
    ways = [_days(plain, orders, spelling, calendar) for orders, calendar in zip(groups, calendars, strict=False)]
    return f"coalesce({', '.join(ways)})" if len(ways) > 1 else ways[0]


def clock_sql(text: str) -> str:
    """SQL for the part of a day that a time of day alone spells, NULL where a text spells none."""

    def read(text: str) -> str:
        part = f"regexp_extract({text}, {literal(f'^{CLOCK}$')}, ['h', 'i', 's', 'half'])"
        return let(PARTS, part, f"CASE WHEN {PARTS}.h <> '' THEN {_time()} END")

    marked = f"contains({TEXT}, ':') OR contains({TEXT}, 'h')"
    foreign = f"CASE WHEN {_foreign(text)} THEN {_turned(_western(text, '.'))} ELSE {text} END"
    plain = let(TEXT, foreign, _clock(TEXT))
    return let(TEXT, plain, f"CASE WHEN {marked} THEN {read(TEXT)} END")


def _turned(text: str) -> str:
    """SQL for `scripts.turned`. Most texts need one look."""
    other = TEXT
    for pattern, instead in TURNED:
        other = f"regexp_replace({other}, {literal(pattern.pattern)}, {literal(instead)}, 'g')"
    return let(TEXT, text, f"CASE WHEN regexp_matches({TEXT}, '{TURNS}') THEN {other} ELSE {TEXT} END")


def _clock(text: str) -> str:
    """SQL for a text with a colon where a word beside it says that it is a time of day."""
    for said in SAID_CLOCKS:
        text = f"regexp_replace({text}, {literal(said)}, '\\1:\\2\\3')"
    return text


def _days(text: str, orders: Sequence[str], spelling: Spelling, calendar: str) -> str:
    """SQL for the days of the date that a text spells in one of some orders; NULL where it spells none. Most texts are
    no dates, and a look at the first characters is cheap."""
    ways = {order: _parts(text, order) for order in orders}
    words, era = ways.pop("bdy", ""), ways.pop("era", "")
    begun = [
        (f"left({text}, 1) BETWEEN '0' AND '9'", f"coalesce({', '.join(ways.values())})" if ways else ""),
        (f"contains({literal(ENGLISH_LIST)}, lower(left({text}, 3)))", words),
        (f"contains({literal(', '.join(ERAS))}, left({text}, 2))", era),
    ]
    parts = " ".join(f"WHEN {begins} THEN {way}" for begins, way in begun if way)
    short = "NULL"
    if spelling.century is not None:
        first, rest = spelling.century - spelling.century % 100, spelling.century % 100
        two = f"CAST({PARTS}.y AS INTEGER)"
        short = f"CAST({two} + {first} + CASE WHEN {two} < {rest} THEN 100 ELSE 0 END AS VARCHAR)"
    year = f"CASE WHEN strlen({PARTS}.y) = 2 THEN {short} ELSE {PARTS}.y END"
    named = f"left(split_part({literal(month_list(spelling.month_numbers))}, concat(',', lower({PARTS}.m), '='), 2), 2)"
    month = f"CASE WHEN left({PARTS}.m, 1) BETWEEN '0' AND '9' THEN {PARTS}.m ELSE {named} END"
    time = f"CASE WHEN {PARTS}.h = '' THEN 0 ELSE {_time()} END"
    there = f"{PARTS}.y NOT IN ('', '0000')"
    return let(PARTS, f"CASE {parts} END", f"CASE WHEN {there} THEN {_date(year, month, calendar)} + {time} END")


def _parts(text: str, order: str) -> str:
    """SQL for the parts of a date of this order, as texts: a STRUCT of all that `_days` asks for; NULL where the text
    is none. A year of two digits lacks its century; one of an era, or of the Republic of China, has more."""
    pattern, names = DATE_PATTERNS[order]
    found = f"regexp_extract({text}, {literal(f'^{pattern}$')}, [{', '.join(map(literal, names))}])"
    year = f"{PARTS}.y"
    if order == "era":
        base = " ".join(f"WHEN {literal(era)} THEN {first}" for era, first in ERAS.items())
        within = f"CASE WHEN {PARTS}.y = {literal(FIRST)} THEN 1 ELSE TRY_CAST({PARTS}.y AS INTEGER) END"
        year = f"CAST(CASE {PARTS}.e {base} END + {within} AS VARCHAR)"
    elif order == "roc":
        year = f"lpad({PARTS}.y, 3, '0')"
    others = ", ".join(f"{part} := {PARTS}.{part}" for part in ("m", "d", "h", "i", "s", "half"))
    return let(PARTS, found, f"CASE WHEN {PARTS}.y <> '' THEN struct_pack(y := {year}, {others}) END")


def _date(year: str, month: str, calendar: str) -> str:
    """SQL for the days since 1970-01-01 of a date of a calendar, whose day is that of PARTS; NULL if there is none."""
    if not calendar:
        return f"CAST(TRY_CAST(concat({year}, '-', {month}, '-', {PARTS}.d) AS DATE) - DATE '1970-01-01' AS DOUBLE)"
    first, last = YEARS[calendar]
    whole = f"TRY_CAST({year} AS INTEGER)"
    if calendar in OURS:
        ours = _date(f"CAST({DATE} + ({OURS[calendar]}) AS VARCHAR)", month, "")
        return let(DATE, whole, f"CASE WHEN {DATE} BETWEEN {first} AND {last} THEN {ours} END")
    y, m, d = (f"{DATE}[{k}]" for k in (1, 2, 3))

    def new_year(year: str) -> str:
        since = f"({year} + 1595)"
        return f"(365 * {since} + {since} // 33 * 8 + ({since} % 33 + 3) // 4 - {PERSIAN_EPOCH})"

    before = f"CASE WHEN {m} < 7 THEN 31 * ({m} - 1) ELSE 30 * ({m} - 1) + 6 END"
    there = f"{y} BETWEEN {first} AND {last} AND {m} BETWEEN 1 AND 12 AND {d} BETWEEN 1 AND CASE WHEN {m} < 7 THEN 31"
    there += f" ELSE 30 END AND {before} + {d} <= {new_year(f'({y} + 1)')} - {new_year(y)}"
    days = f"CASE WHEN {there} THEN CAST({new_year(y)} + {before} + {d} - 1 AS DOUBLE) END"
    return let(DATE, f"[{whole}, TRY_CAST({month} AS INTEGER), TRY_CAST({PARTS}.d AS INTEGER)]", days)


def _time() -> str:
    """SQL for the part of a day that the PARTS h, i, s and half say, NULL where there is no such time."""
    hour = f"TRY_CAST({PARTS}.h AS INTEGER)"
    later = f"CASE WHEN lower({PARTS}.half) = 'p' THEN 12 ELSE 0 END"
    clock = f"CASE WHEN {PARTS}.half = '' THEN {hour} WHEN {hour} BETWEEN 1 AND 12 THEN {hour} % 12 + {later} END"
    second, minute = f"coalesce(TRY_CAST({PARTS}.s AS INTEGER), 0)", f"TRY_CAST({PARTS}.i AS INTEGER)"
    within = f"{HOUR} <= 23 AND {minute} <= 59 AND {second} <= 60"
    return let(HOUR, clock, f"CASE WHEN {within} THEN ({HOUR} * 3600 + {minute} * 60 + {second}) / 86400 END")
