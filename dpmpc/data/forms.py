"""Spellings that a look at a source recognises and proposes to its owner. Nothing here decides what a field reads as.

A field that reads as neither number nor date under what was stated is held against these forms; counts of them say what
to state. Patterns are RE2's, for DuckDB alone.
"""

import datetime
from collections.abc import Mapping
from dataclasses import dataclass, replace

from dpmpc.data.reading import literal
from dpmpc.data.scripts import ENGLISH
from dpmpc.data.spelling import GAPS, TIME, Negative, Order, Spelling
from dpmpc.errors import number_of

_GAP = GAPS[" "]
_TICK = GAPS["'"]
_YEAR = r"(\d{4}|\d{2})"
_LOW, _HIGH = "(0?[1-9]|1[0-2])", r"(1[3-9]|2\d|3[01])"
SUFFIX = rf"([\d.,])[{_GAP}]*([\pL°%\p{{Sc}}][^\s\d]{{0,9}}[²³23]?)$"
PREFIX = rf"^([+-]?)([A-Z]{{0,3}}\p{{Sc}}|[A-Z]{{3}}|Rs\.?|kr\.?)[{_GAP}]*([+-]?\d)"
FORMS = {
    "comma": r"[+-]?(\d+,\d{1,2}|\d+,\d{4,}|\d{4,},\d+|0\d*,\d+|,\d+)",
    "comma groups": r"[+-]?[1-9]\d{0,2}(,\d{3}){2,}(\.\d+)?|[+-]?[1-9]\d{0,2},\d{3}\.\d+"
    r"|[+-]?\d{1,2}(,\d{2})+,\d{3}(\.\d+)?",
    "comma three": r"[+-]?[1-9]\d{0,2},\d{3}",
    "point groups": r"[+-]?[1-9]\d{0,2}((\.\d{3}){2,}(,\d+)?|\.\d{3},\d+)",
    "gap": rf"[+-]?\d{{1,3}}([{_GAP}]\d{{3}})+([.,]\d+)?",
    "gap comma": rf"[+-]?\d{{1,3}}([{_GAP}]\d{{3}})+,\d+",
    "tick": rf"[+-]?\d{{1,3}}([{_TICK}]\d{{3}})+([.,]\d+)?",
    "tick comma": rf"[+-]?\d{{1,3}}([{_TICK}]\d{{3}})+,\d+",
    "day first": rf"{_HIGH}[-/.]{_LOW}[-/.]{_YEAR}{TIME}",
    "month first": rf"{_LOW}[-/.]{_HIGH}[-/.]{_YEAR}{TIME}",
    "day or month": rf"{_LOW}[-/.]{_LOW}[-/.]{_YEAR}{TIME}",
    "dots": rf"\d{{1,2}}\.\d{{1,2}}\.{_YEAR}{TIME}",
    "short year": rf"\d{{1,2}}[-/.](\d{{1,2}}|(?i:{'|'.join(ENGLISH)}))[-/.]\d{{2}}{TIME}",
}
LIKELY_MISSING = (
    "-", "--", "---", ".", "..", "...", "nan", "nil", "#n/a", "#na", "#n/v", "#value!", "#ref!", "#div/0!", "n.a.",
    "n. a.", "k.a.", "k. a.", "<na>", "(null)", "not available", "missing", "n/d", "n.d.", "s.o.", "\u2013", "\u2014",
)  # fmt: skip
# A number with signs around it, a time, a fraction, a date with a foreign word or a letter for its era.
FIGURES = (
    r"[^\pL\pN\s]{1,3}\pN[\pN.,' ]*[^\pL\pN]{0,2}|\pN[\pN.,' ]*[^\pL\pN\s.,']{1,2}|\d+:\d+(:\d+)?|\d+/\d+"
    r"|\d{1,2}\W{0,2}\pL{3,12}\W{0,2}(\d{4}|\d{2})|\pL{1,2}\d{1,2}[./-]\d{1,2}[./-]\d{1,2}"
)
NEGATIVE = ("trailing", "parentheses")  # counted beside FORMS
_MANY = 0.5  # of a column's fields: so many that are of a kind make a proposal
_SOME = 0.02  # of a column's fields: so many must be in another spelling


_PLAIN = rf"[+-]?\d[\d.,{_GAP}{_TICK}]*"


def unmarked_sql(text: str) -> str:
    """SQL for a number without what marks it as negative: a minus after it, or parentheses around it."""
    trailing = literal(rf"^(\d[\d.,{_GAP}{_TICK}]*?)[{_GAP}]*-$")
    bare = f"regexp_replace(regexp_replace({text}, '^\\(([\\d.,].*)\\)$', '\\1'), {trailing}, '\\1')"
    return f"CASE WHEN ends_with({text}, '-') OR ends_with({text}, ')') THEN {bare} ELSE {text} END"


def plain_sql(text: str) -> str:
    """SQL for whether a text is digits, and what stands between and within numbers."""
    return f"regexp_full_match({text}, {literal(_PLAIN)})"


def core_sql(text: str) -> str:
    """SQL for a text without what looks like a unit."""
    return f"regexp_replace(regexp_replace({text}, {literal(SUFFIX)}, '\\1'), {literal(PREFIX)}, '\\1\\3')"


def has_unit_sql(text: str, core: str) -> str:
    """SQL for whether a text is a number and a unit. `core`: SQL for the text without what looks like one."""
    return f"({core} <> {text} AND {plain_sql(core)})"


def unit_sql(text: str) -> str:
    """SQL for what looks like the unit of a text; empty if nothing does."""
    return (
        f"coalesce(nullif(regexp_extract({text}, {literal(SUFFIX)}, 2), ''),"
        f" regexp_extract({text}, {literal(PREFIX)}, 2))"
    )


@dataclass(frozen=True)
class Forms:
    """What one column's fields look like. `counts`: of each of FORMS, of fields that are neither number nor date;
    `present`: of all that are there; `units`, `words`: what looks like a unit, or a missing value, and how often;
    `point_three`: numbers such as 1.234, which decimal commas would make thousands; `read`: fields that are read as
    numbers, and as dates, as it is."""

    present: int
    counts: Mapping[str, int]
    units: Mapping[str, int]
    words: Mapping[str, int]
    point_three: int = 0
    read: tuple[int, int] = (0, 0)

    @property
    def numbers(self) -> int:
        """Fields that would be numbers in another spelling."""
        commas = ("comma", "comma groups", "comma three", "point groups", "gap", "tick")
        return max(sum(self.counts[k] for k in commas), sum(self.counts.get(k, 0) for k in NEGATIVE))

    @property
    def dates(self) -> int:
        """Fields that would be dates if the order of day and month were stated."""
        return sum(self.counts[k] for k in ("day first", "month first", "day or month"))

    @property
    def otherwise(self) -> bool:
        """Whether these are mostly numbers, or dates, of which some are spelled otherwise than was stated."""
        numbers = self.numbers + sum(self.units.values())
        return _mostly(numbers, self.read[0], self.present) or _mostly(self.dates, self.read[1], self.present)


def proposed(stated: Spelling, columns: list[Forms]) -> tuple[Spelling, tuple[str, ...]]:
    """The spelling that would read most of these columns, where nothing else was stated; and what must be asked because
    fields alone do not tell."""
    dates = [c for c in columns if _mostly(c.dates, c.read[1], c.present)]
    asks: list[str] = []
    result = _numbers(stated, columns, asks)
    if dates and not stated.dates:
        day, month = (sum(c.counts[k] for c in dates) for k in ("day first", "month first"))
        dotted = any(c.counts["dots"] for c in dates)
        if day and month:
            asks.append(f"dates: {number_of(day, 'field has', 'fields have')} the day first and {month} the month")
        elif not (day or month or dotted):
            asks.append("dates: no field tells day from month; state <<dates=dmy>> or <<dates=mdy>>")
        order: Order = "mdy" if month > day or not (day or month or dotted) else "dmy"
        result = replace(result, dates=order)
    if dates and stated.century is None and any(c.counts["short year"] for c in dates):
        result = replace(result, century=datetime.date.today().year - 99)
        asks.append("dates: years of two digits; <<century>> says of which hundred years")
    return replace(result, missing=(*stated.missing, *_words(columns))), tuple(asks)


def _mostly(odd: int, read: int, present: int) -> bool:
    """Whether a column is mostly of a kind, of which some fields are spelled otherwise than was stated."""
    return odd >= _SOME * present and odd + read >= _MANY * present > 0


def _numbers(stated: Spelling, columns: list[Forms], asks: list[str]) -> Spelling:
    """Decimal sign, thousands and units. A decimal sign is that of columns that it makes readable for the most part:
    another one unmakes numbers; signs between thousands and units only add some."""
    unread = [c for c in columns if c.numbers + sum(c.units.values()) >= _MANY * c.present]
    columns = [c for c in columns if _mostly(c.numbers + sum(c.units.values()), c.read[0], c.present)]
    commas = {form: sum(c.counts[form] for c in unread) for form in FORMS}
    comma = commas["comma"] + commas["point groups"] + commas["gap comma"] + commas["tick comma"]
    total = {form: sum(c.counts[form] for c in columns) for form in FORMS}
    groups = total["comma groups"]
    result = stated
    if comma and groups:
        have = number_of(comma, "field has", "fields have")
        asks.append(f"numbers: {have} a decimal comma and {groups} commas between thousands")
    if stated.decimal == "." and comma > groups:
        result = replace(result, decimal=",", thousands="" if stated.thousands == "," else stated.thousands)
    if not stated.thousands:
        if result.decimal == "," and (total["point groups"] or sum(c.point_three for c in columns)):
            result = replace(result, thousands=".")
        elif result.decimal == "." and (groups or total["comma three"]):
            result = replace(result, thousands=",")
            if not groups:
                asks.append("numbers: fields such as 1,234 have decimal commas, or commas between thousands")
        elif total["gap"] or total["tick"]:
            result = replace(result, thousands=" " if total["gap"] >= total["tick"] else "'")
    below = {mark: sum(c.counts.get(mark, 0) for c in columns) for mark in NEGATIVE}
    if any(below.values()) and not stated.negative:
        mark: Negative = "trailing" if below["trailing"] >= below["parentheses"] else "parentheses"
        result = replace(result, negative=mark)
        if all(below.values()):
            asks.append(f"numbers: {below['trailing']} have a minus after them and {below['parentheses']} parentheses")
    units: dict[str, int] = {}
    for c in columns:
        common = {unit: count for unit, count in c.units.items() if 10 * count >= c.present}
        if len(common) > 1:
            asks.append(f"units: one column has {' and '.join(sorted(common))}; state one of them")
            common = dict([max(common.items(), key=lambda item: item[1])])
        units |= common
    return replace(result, units=(*stated.units, *sorted(units)))


def _words(columns: list[Forms]) -> tuple[str, ...]:
    found: dict[str, int] = {}
    for c in columns:
        for word, count in c.words.items():
            found[word] = found.get(word, 0) + count
    return tuple(sorted(found))
