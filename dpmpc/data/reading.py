"""SQL for what a text reads as: a number, or a date in days. The same as `data.spelling` says in Python."""

import os
from pathlib import Path

from dpmpc.data.calendars import BEFORE_DATE, CLOCK, DATE_PATTERNS, OURS, PERSIAN_EPOCH, SAID_CLOCKS, YEARS
from dpmpc.data.once import let
from dpmpc.data.scripts import (
    ARABIC_COMMA,
    ARABIC_POINT,
    ENGLISH,
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
from dpmpc.data.spelling import GAPS, Spelling

_FOREIGN = ("era", "tháng")  # orders of dates that have letters which are not ASCII

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
    """SQL for a text without a day of the week before it, if it is one of a date."""
    return f"CASE WHEN {_led(text)} THEN regexp_replace({text}, {literal(BEFORE_DATE)}, '') ELSE {text} END"


def _led(text: str) -> str:
    """SQL for whether a text may begin with a word that stands before a date: a look at two letters is cheap."""
    return f"lower(left({text}, 2)) IN ({', '.join(sorted({literal(word[:2]) for word in WORDS_BEFORE}))})"


def days_sql(text: str, spelling: Spelling) -> str:
    """SQL for the DOUBLE of days since 1970-01-01 of the date that a text spells, NULL where it spells none."""
    months = ", ".join(literal(word) for word in ENGLISH if len(word) == 3)
    eras = ", ".join(map(literal, ERAS))

    def read(text: str, western: bool) -> str:
        """Most texts are no dates, and a look at the first characters is cheap."""
        ways = {
            order: _days(text, order, spelling) for order in spelling.date_orders if western or order not in _FOREIGN
        }
        words, era = ways.pop("bdy"), ways.pop("era", "")
        return (
            f"CASE WHEN left({text}, 1) BETWEEN '0' AND '9' THEN coalesce({', '.join(ways.values())})"
            f" WHEN lower(left({text}, 3)) IN ({months}) THEN {words}"
            + (f" WHEN left({text}, 2) IN ({eras}) THEN {era}" if era else "")
            + " END"
        )

    led = let(TEXT, _turned(_western(text, ".")), without_before_sql(TEXT))
    other = let(TEXT, led, read(TEXT, western=True))
    return (
        f"CASE WHEN {_foreign(text)} OR {_led(text)} THEN CASE WHEN regexp_matches({text}, '\\pN') THEN {other} END"
        f" ELSE {read(text, western=False)} END"
    )


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


def _days(text: str, order: str, spelling: Spelling) -> str:
    pattern, names = DATE_PATTERNS[order]
    listed = ", ".join(literal(name) for name in names)
    part = f"regexp_extract({text}, {literal(f'^{pattern}$')}, [{listed}])"
    year = f"{PARTS}.y"
    if order == "era":
        base = " ".join(f"WHEN {literal(era)} THEN {first}" for era, first in ERAS.items())
        within = f"CASE WHEN {PARTS}.y = {literal(FIRST)} THEN 1 ELSE TRY_CAST({PARTS}.y AS INTEGER) END"
        year = f"CAST(CASE {PARTS}.e {base} END + {within} AS VARCHAR)"
    elif order not in ("ymd", "roc"):
        short = "NULL"
        if spelling.century is not None:
            first, rest = spelling.century - spelling.century % 100, spelling.century % 100
            two = f"CAST({PARTS}.y AS INTEGER)"
            short = f"CAST({two} + {first} + CASE WHEN {two} < {rest} THEN 100 ELSE 0 END AS VARCHAR)"
        year = f"CASE WHEN strlen({PARTS}.y) = 2 THEN {short} ELSE {PARTS}.y END"
    month = f"{PARTS}.m"
    if order == "bdy":
        month = f"(strpos({literal(ENGLISH_LIST)}, lower(left({PARTS}.m, 3))) + 2) // 3"
    elif order in ("dby", "ybd"):
        listed = literal(month_list(spelling.month_numbers))
        month = f"left(split_part({listed}, concat(',', lower({PARTS}.m), '='), 2), 2)"
    date = _date(year, month, spelling.calendar if order != "era" else "")
    time = f"CASE WHEN {PARTS}.h = '' THEN 0 ELSE {_time()} END"
    return let(PARTS, part, f"CASE WHEN {PARTS}.y NOT IN ('', '0000') THEN {date} + {time} END")


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
