"""Spellings that a look at a source recognises and proposes to its owner. Nothing here decides what a field reads as.

A field that reads as neither number nor date under what was stated is held against these forms; counts of them say what
to state. Patterns are RE2's, for DuckDB alone.
"""

import datetime
import re
from collections.abc import Iterable, Mapping
from dataclasses import replace

from dpmpc.errors import number_of, some
from dpmpc.intake.calendars import TIME, WORD, YEAR_WORD, bare_date
from dpmpc.intake.month_names import ENGLISH, IN_TWO, MONTHS
from dpmpc.intake.once import once
from dpmpc.intake.reading import literal
from dpmpc.intake.scripts import LIKELY_MISSING, month_list, quick, small
from dpmpc.intake.spelling import GAPS, NO_CENTS, Negative, Order, Spelling, composed, is_unit, stating
from dpmpc.lazy import dataclass

_GAP = GAPS[" "]
_TICK = GAPS["'"]
_DASH = "\u2013\u2014"
_YEAR = r"(\d{4}|\d{2})"
_LOW, _HIGH = "(0?[1-9]|1[0-2])", r"(1[3-9]|2\d|3[01])"
_DIGITED = r"\d{5,}X|[A-TV-Z]\d{2,3}(\.\d{1,2})?"  # a digit that checks the others (ISBN, ID cards); ICD-9 and -10
# Units with digits in them: m2, kg/m2, m3/h; mL/min/1.73m2; x10^9/L; mmol l-1.
_POWERS = (
    r"(?:[^\s\d]{1,8}/)?[cdkmµμ]?m[23](?:/[^\s\d]{1,5})?|[^\s\d]{1,9}/1[.,]73 ?m[²2]"
    r"|[x×*]10[*^eE]?\d{1,2}/[^\s\d]{1,4}|\pL{1,5}[ .·]?\pL{1,2}-[123]"
)
_AFTER = rf"{_POWERS}|[\pL°%‰\p{{Sc}}\p{{So}}][^\s\d]{{0,9}}[²³]?|/-|[.,](?:--?|[{_DASH}])"
SUFFIX = quick(rf"([\d.,])[{_GAP}]*({_AFTER})$")
# Before a number: what is known for a unit; another short word where the number has decimals or groups of digits.
_BROKEN = rf"[+-]?\d{{1,3}}(?:[{_GAP}]\d{{3}})+(?:[.,]\d+)?|[+-]?\d[\d.,{_TICK}]*[.,]\d+"
PREFIX = quick(
    rf"^([+-]?)(?:([A-Z]{{0,3}}\p{{Sc}}|[A-Z]{{3}}|%|(?:Rs|Fr|[Kk]r|Rp|RM)\.?)[{_GAP}]*([+-]?\d)"
    rf"|(\pL[\pL\pM.]{{0,4}}/?)(?:[{_GAP}]+({_BROKEN})|(\d{{1,3}}(?:[{_GAP}.,]\d{{3}})+[.,]\d\d))$)"
)
FORMS = {
    "comma": r"[+-]?((\d+,\d{1,2}|\d+,\d{4,}|\d{4,},\d+|0\d*,\d+|,\d+)|\d+,\d+[eE][+-]?\d+)",
    "point": r"[+-]?((\d+\.\d{1,2}|\d+\.\d{4,}|\d{4,}\.\d+|0\d*\.\d+|\.\d+)|\d+\.\d+[eE][+-]?\d+)",
    "comma groups": r"[+-]?[1-9]\d{0,2}(,\d{3}){2,}(\.\d+)?|[+-]?[1-9]\d{0,2},\d{3}\.\d+"
    r"|[+-]?\d{1,2}(,\d{2})+,\d{3}(\.\d+)?",
    "comma three": r"[+-]?[1-9]\d{0,2},\d{3}",
    "point three": r"[+-]?[1-9]\d{0,2}\.\d{3}",
    "point groups": r"[+-]?[1-9]\d{0,2}((\.\d{3}){2,}(,\d+)?|\.\d{3},\d+)",
    "gap": rf"[+-]?\d{{1,3}}([{_GAP}]\d{{3}})+([.,]\d+)?",
    "gap comma": rf"[+-]?\d{{1,3}}([{_GAP}]\d{{3}})+,\d+",
    "tick": rf"[+-]?\d{{1,3}}([{_TICK}]\d{{3}})+([.,]\d+)?",
    "tick comma": rf"[+-]?\d{{1,3}}([{_TICK}]\d{{3}})+,\d+",
    "day first": rf"{_HIGH}[-/.] ?{_LOW}[-/.] ?{_YEAR}{TIME}",
    "month first": rf"{_LOW}[-/.] ?{_HIGH}[-/.] ?{_YEAR}{TIME}",
    "day or month": rf"{_LOW}[-/.] ?{_LOW}[-/.] ?{_YEAR}{TIME}",
    "dots": rf"\d{{1,2}}\. ?\d{{1,2}}\. ?{_YEAR}{TIME}",
    "short year": rf"\d{{1,2}}[-/.] ?(\d{{1,2}}|(?i:{'|'.join(ENGLISH)}))[-/.] ?\d{{2}}{TIME}",
}
NAMED = {  # dates whose month is a word: one that is known, with a year of two digits; another
    "named short": (True, rf"\d{{1,2}}[-/. ]*{WORD}\.?[-/. ,]*\d{{2}}{TIME}"),
    "named otherwise": (False, rf"\d{{1,2}}\.?[-/. ]*{WORD}\.?[-/. ,]*(?:1[89]|20)\d\d{YEAR_WORD}{TIME}"),
}
_LINES = "\n".join(("", *LIKELY_MISSING, ""))  # no text has a line end
# A date, a time, a number with decimals or groups of digits, between words; one letter before it is a code's: K35.8.
_CORE = (
    rf"\d{{1,4}}[./-] ?\d{{1,2}}[./-] ?\d{{1,4}}|\d{{1,2}}[:.]\d\d(:\d\d)?"
    rf"|[+-]?\d{{1,3}}([{_GAP}.,{_TICK}]\d{{3}})+([.,]\d+)?|[+-]?\d+[.,]\d+"
)
# That, a number with signs around it, a time, a fraction, a date with a foreign word or a letter for its era.
FIGURES = quick(
    rf"(\P{{Nd}}{{2,14}}([23] )?)?({_CORE})(\P{{Nd}}{{1,14}}[23]?)?|"
    r"[^\pL\pN\s]{1,3}\pN[\pN.,' ]*[^\pL\pN]{0,2}|\pN[\pN.,' ]*[^\pL\pN\s.,']{1,2}"
    r"|(\pL[\pL\pM.]{0,9} ?)?\d+:\d+(:\d+)?( ?\pL[\pL\pM.]{0,9})?|\d+/\d+"
    r"|\pN ?m ?\pN\pN|[+-]?\pN+\x{b7}\pN+|\pN ?['\x{2019}\x{2032}] ?\pN[^\pL]{0,5}"
    r"|\pN+ ?\pL{1,9}\.?([, ]+\pN+ ?\pL{1,9}\.?)+|(\pL[\pL\pM.]{0,9} ?){1,2}\pN+([.,' ]\pN+)+"
    r"|\pN+([.,]\pN+)? ?(±|\+/-|\+-|[x×*]) ?\pN+([.,]\pN+)?( ?\pL{1,5})?|\pN{1,3} ?[-/\x{2013}] ?\pN{1,3}( ?\pL{1,5})?"
    r"|\pL{1,4}\pN{1,3}[年년]\pN{1,2}[月월]\pN{1,2}[日일]?|[+-]?\pN+([.,]\pN+)? ?[(\[]\pN[^)\]]{0,20}[)\]]"
    r"|(\pL[\pL\pM.,]{1,12} ){1,3} ?\pN{1,2}[ .,].{0,30}\b(\pN{4}|\pN\pN:\pN\pN)\b.{0,12}"
    r"|\d{1,4}[./-]\d{1,2}[./-]\d{1,4}\b.{0,20}|\d{1,2}\W{0,2}\pL[\pL\pM.]{1,13}\W{0,2}(\d{4}|\d{2})|\pL{1,2}\d{1,2}[./-]\d{1,2}[./-]\d{1,2}"
)
NEGATIVE: tuple[Negative, ...] = ("trailing", "parentheses", "triangle")  # counted beside FORMS
_MANY = 0.5  # of a column's fields: so many that are of a kind make a proposal
SOME = 0.02  # of a column's fields: so many must be in another spelling


BOTH = "\x1f"
_DOTTED = r"\d{1,2}\. ?\d{1,2}\. ?(\d{4}|\d{2})"  # a date and what stands after it
_PLAIN = rf"[+-]?[.,]?\d[\d.,{_GAP}{_TICK}]*([eE][+-]?\d+)?"


def missing_sql(text: str) -> str:
    """SQL for whether a text looks like a word for "missing": one of LIKELY_MISSING, a spreadsheet's error, or a code
    of SAS or Stata (.a, .A to .z, ._)."""
    listed = f"contains({literal(_LINES)}, concat(chr(10), lower({text}), chr(10)))"  # plans as one, not as a word each
    error = f"starts_with({text}, '#') AND regexp_full_match({text}, '#[\\p{{Lu}}\u00a1/]+0?[!?]|###+')"
    code = f"starts_with({text}, '.') AND regexp_full_match({text}, '\\.[A-Za-z_]')"
    return f"(strlen({text}) < 24 AND ({listed} OR {error} OR {code}))"


def unmarked_sql(text: str) -> str:
    """SQL for a number without what marks it as negative: a minus after it, with a unit or without, parentheses around
    it, or a triangle before it."""
    minus = literal(quick(rf"(\d)[{_GAP}]*-(?:[{_GAP}]+({_AFTER})|(\p{{Sc}}))?$"))  # 5,20-, 5,20- EUR
    owed = f"WHEN ends_with({text}, ')') THEN regexp_replace({text}, '^\\(([\\d.,].*)\\)$', '\\1')"
    below = f"WHEN contains({text}, '-') THEN regexp_replace({text}, {minus}, '\\1\\2\\3')"
    under = f"WHEN {triangle_sql(text)} THEN ltrim(substr({text}, 2))"
    return f"CASE {owed} {below} {under} ELSE {text} END"


def triangle_sql(text: str) -> str:
    """SQL for whether a text begins with a triangle, as numbers below zero do in Japan."""
    return f"left({text}, 1) IN ('\u25b3', '\u25b2')"


def code_sql(text: str) -> str:
    """SQL for whether a text is a code among others that are digits and points alone."""
    return f"regexp_full_match({text}, {literal(_DIGITED)})"


def plain_sql(text: str) -> str:
    """SQL for whether a text is digits, and what stands between and within numbers."""
    return f"regexp_full_match({text}, {literal(_PLAIN)})"


def named_sql(text: str, form: str) -> str:
    """SQL for whether a text is one of NAMED."""
    known, pattern = NAMED[form]
    word = f"lower(regexp_extract({text}, {literal(f'^{pattern}$')}, 1))"  # empty where it is none
    listed = literal(month_list(MONTHS) + ("" if known else ",="))
    return f"{'' if known else 'NOT '}contains({listed}, concat(',', {word}, '='))"


def months_in(texts: Iterable[str]) -> tuple[tuple[str, int], ...]:
    """The words of "named otherwise" among some texts, in small letters, each with its number where that is the one
    that no other word among them has, of those that it may have; else with 0."""
    found = (re.fullmatch(NAMED["named otherwise"][1], bare_date(text), re.ASCII) for text in texts)
    words = sorted({small(each[1]) for each in found if each})
    rest = set(range(1, 13)) - {MONTHS[word] for word in words if word in MONTHS}
    unknown = [word for word in words if word not in MONTHS]
    may = {word: rest & set(map(int, re.findall(r"(\d+) in", IN_TWO.get(word, "")))) for word in unknown}
    may |= {word: rest for word in unknown if word not in IN_TWO and len(unknown) == 1}
    return tuple((word, next(iter(may[word])) if len(may.get(word, ())) == 1 else 0) for word in unknown)


def core_sql(text: str) -> str:
    """SQL for a text without what looks like a unit."""
    return once(f"regexp_replace({_first(text)}, {literal(PREFIX)}, '\\1\\3\\5\\6')")


def _first(text: str) -> str:
    """SQL for a text without what looks like a unit after it."""
    return once(f"regexp_replace({text}, {literal(SUFFIX)}, '\\1')")


def has_unit_sql(text: str, core: str) -> str:
    """SQL for whether a text is a number and a unit. `core`: SQL for the text without what looks like one."""
    return f"({core} <> {text} AND {plain_sql(core)} AND NOT regexp_full_match({core}, {literal(_DOTTED)}))"


def unit_sql(text: str) -> str:
    """SQL for what looks like the unit of a text; empty if nothing does. One before and one after have BOTH between."""
    first = _first(text)
    before = f"concat(regexp_extract({first}, {literal(PREFIX)}, 2), regexp_extract({first}, {literal(PREFIX)}, 4))"
    after = f"regexp_extract({text}, {literal(SUFFIX)}, 2)"
    return f"concat_ws('{BOTH}', nullif({before}, ''), nullif({after}, ''))"


@dataclass(frozen=True)
class Forms:
    """What one column's fields look like. `counts`: of each of FORMS, of fields that are neither number nor date;
    `present`: of all that are there; `units`, `words`: what looks like a unit, or a missing value, and how often;
    `points`: numbers such as 1.234, which decimal commas would make thousands, and all with a point; `read`: fields
    that are read as numbers, and as dates, as it is; `name`: of the column."""

    present: int
    counts: Mapping[str, int]
    units: Mapping[str, int]
    words: Mapping[str, int]
    points: tuple[int, int] = (0, 0)
    read: tuple[int, int] = (0, 0)
    name: str = ""
    plain: int = 0  # fields that are digits and what stands between them, with or without a unit
    codes: bool = False  # numbers that stand for something else
    months: tuple[tuple[str, int], ...] = ()  # the words in dates whose months are not known, as of `months_in`
    results: tuple[str, ...] = ()  # words such as - that are values here, beside +

    @property
    def numbers(self) -> int:
        """Fields that would be numbers in another spelling."""
        commas = ("comma", "comma groups", "comma three", "point groups", "point three", "gap", "tick")
        below = sum(self.counts.get(k, 0) for k in NEGATIVE)
        return max(sum(self.counts[k] for k in commas), below, self.counts["point"])

    @property
    def commas(self) -> int:
        """Fields that would be numbers with a decimal comma."""
        return sum(self.counts[k] for k in ("comma", "point groups", "gap comma", "tick comma"))

    @property
    def odd(self) -> int:
        """Fields that would be numbers in another spelling, with or without a unit: no more than look like any."""
        return min(self.numbers + sum(self.units.values()), self.plain)

    @property
    def dates(self) -> int:
        """Fields that would be dates if the order of day and month were stated."""
        return sum(self.counts[k] for k in ("day first", "month first", "day or month", "named short"))

    @property
    def otherwise(self) -> bool:
        """Whether these are mostly numbers, or dates, of which some are spelled otherwise than was stated."""
        return (
            _mostly(self.odd, self.read[0], self.present)
            or _mostly(self.dates, self.read[1], self.present)
            or self.unnamed
        )

    @property
    def unnamed(self) -> bool:
        """Whether these are mostly dates, of which some have months whose names are not known."""
        return _mostly(self.counts.get("named otherwise", 0), self.read[1] + self.dates, self.present)


def proposed(stated: Spelling, columns: list[Forms]) -> tuple[Spelling, tuple[str, ...]]:
    """The spelling that would read most of these columns, where nothing else was stated; and what must be asked because
    fields alone do not tell."""
    dates = [c for c in columns if _mostly(c.dates, c.read[1], c.present)]
    asks: list[str] = []
    result = _numbers(stated, [c for c in columns if not c.codes], asks)
    if any(c.dates > c.counts["named short"] for c in dates) and not stated.dates:
        day, month = (sum(c.counts[k] for c in dates) for k in ("day first", "month first"))
        dotted = any(c.counts["dots"] for c in dates)
        if day and month:
            asks.append(f"dates: {number_of(day, 'field has', 'fields have')} the day first and {month} the month")
        elif not (day or month or dotted):
            asks.append("dates: no field tells day from month; state <<dates=dmy>> or <<dates=mdy>>")
        order: Order = "mdy" if month > day or not (day or month or dotted) else "dmy"
        result = replace(result, dates=order)
    if dates and stated.century is None and any(c.counts["short year"] + c.counts["named short"] for c in dates):
        result = replace(result, century=datetime.date.today().year - 99)
        asks.append("dates: years of two digits; <<century>> says of which hundred years")
    if any(c.unnamed for c in columns):
        words = dict(sorted({each for c in columns if c.unnamed for each in c.months}))
        said = some([f"{word} ({IN_TWO[word]})" if word in IN_TWO else word for word in words], 12)
        guessed = tuple(f"{word}={number}" for word, number in words.items() if number)
        if guessed and len(guessed) == len(words):
            result = replace(result, months=(*stated.months, *guessed))
            why = "which no other word there names; if it is another, correct <<months>>"
            asks.append(f"dates: months have names that are not known, {said}; read as {', '.join(guessed)}, {why}")
        else:
            way = stating(months=(f"{next((word for word in words), 'WORD')}=N",))
            known = f", {said}" if said else ""
            asks.append(f"dates: months have names that are not known{known}; say which number each has: {way}")
    return replace(result, missing=(*stated.missing, *_words(columns))), tuple(asks)


def _mostly(odd: int, read: int, present: int) -> bool:
    """Whether a column is mostly of a kind, of which some fields are spelled otherwise than was stated."""
    return odd >= SOME * present and odd + read >= _MANY * present > 0


def _numbers(stated: Spelling, columns: list[Forms], asks: list[str]) -> Spelling:
    """Decimal sign, thousands and units. A decimal sign is that of columns that it makes readable for the most part:
    another one unmakes numbers; signs between thousands and units only add some."""
    result = _decimal(stated, columns, asks)
    three = sum(_in_thousands(c) for c in columns if composed(c.name) not in result.other_decimal)
    three += sum(c.counts["point three"] for c in columns if c.units and not _pointed(c))
    columns = [c for c in columns if _mostly(c.odd, c.read[0], c.present)]
    other = [c for c in columns if composed(c.name) in result.other_decimal]
    own = [c for c in columns if c not in other]
    total = {form: sum(c.counts[form] for c in own) for form in FORMS}
    swapped = {form: sum(c.counts[form] for c in other) for form in FORMS}
    if not stated.thousands:
        if result.decimal == ",":
            between = total["point groups"] or three or swapped["comma groups"]
            if three and not (total["point groups"] or swapped["comma groups"]):
                asks.append("numbers: fields such as 1.234 have decimal points, or points between thousands")
        else:
            between = total["comma groups"] or total["comma three"] or swapped["point groups"]
            if total["comma three"] and not (total["comma groups"] or swapped["point groups"]):
                asks.append("numbers: fields such as 1,234 have decimal commas, or commas between thousands")
        gap, tick = (total[form] + swapped[form] for form in ("gap", "tick"))
        if between:
            result = replace(result, thousands="." if result.decimal == "," else ",")
        elif gap or tick:
            result = replace(result, thousands=" " if gap >= tick else "'")
        kinds = {"spaces": gap, "apostrophes": tick, "points or commas": between}
        if sum(map(bool, kinds.values())) > 1:
            found = " and ".join(f"{count} {kind}" for kind, count in kinds.items() if count)
            asks.append(f"numbers: between thousands {found} stand; a source has one of them")
    below = {mark: sum(c.counts.get(mark, 0) for c in columns) for mark in NEGATIVE}
    if any(below.values()) and not stated.negative:
        result = replace(result, negative=max(NEGATIVE, key=lambda mark: below[mark]))
        if sum(map(bool, below.values())) > 1:
            marks = {"trailing": "a minus after them", "parentheses": "parentheses", "triangle": "a triangle"}
            asks.append("numbers: " + " and ".join(f"{n} have {marks[mark]}" for mark, n in below.items() if n))
    units: dict[str, int] = {}
    for c in columns:
        often = {unit: count for unit, count in c.units.items() if 10 * count >= c.present}
        common = {unit: count for unit, count in often.items() if all(map(is_unit, unit.split(BOTH)))}
        real = {tuple(part for part in unit.split(BOTH) if part not in NO_CENTS) for unit in common}
        if len(real - {()}) > 1:
            words = " and ".join(unit.replace(BOTH, " with ") for unit in sorted(common))
            asks.append(f"units: one column has {words}; state one of them, or all that leave the number as it is")
            common = dict([max(common.items(), key=lambda item: item[1])])
        units |= {part: count for unit, count in common.items() for part in unit.split(BOTH)}
    return replace(result, units=(*stated.units, *sorted(units)))


def _decimal(stated: Spelling, columns: list[Forms], asks: list[str]) -> Spelling:
    """With the decimal sign of most columns, and those that have the other one. Whether a point among plain numbers is
    one of decimals follows from those that have not three digits after it."""
    known = {*stated.other_decimal}
    columns = [c for c in columns if composed(c.name) not in known]
    unread = [c for c in columns if c.odd >= _MANY * c.present > 0]
    if stated.decimal == ",":
        other = [c for c in unread if c.counts["point"] + c.counts["comma groups"] >= _MANY * c.present]
        result = stated
    else:
        groups = sum(c.counts["comma groups"] for c in columns if _mostly(c.odd, c.read[0], c.present))
        comma = [c for c in columns if c.commas > _pointed(c) and _mostly(c.odd, c.read[0], c.present)]
        point = [c for c in columns if c not in comma and _pointed(c) >= SOME * c.present > 0 and _numeric(c)]
        if len(comma) > len(point):
            between = "" if stated.thousands == "," else stated.thousands
            result, other = replace(stated, decimal=",", thousands=between), point
        else:
            result, other = stated, comma
        commas = sum(c.commas for c in unread)
        if commas and groups and not other:
            have = number_of(commas, "field has", "fields have")
            asks.append(f"numbers: {have} a decimal comma and {groups} commas between thousands")
    if other:
        sign = "commas" if result.decimal == "." else "points"
        asks.append(f"numbers: {some([c.name for c in other], 8)} may have decimal {sign}, other columns have not")
    return replace(result, other_decimal=(*stated.other_decimal, *sorted(c.name for c in other)))


def _in_thousands(c: Forms) -> int:
    """Fields of a column of numbers that may all have points between thousands."""
    return c.points[0] if c.points[0] >= SOME * c.present and _numeric(c) and not _pointed(c) else 0


def _pointed(c: Forms) -> int:
    """Fields of a column that have a decimal point."""
    return max(0, c.points[1] - c.points[0]) + c.counts["point"] + c.counts["comma groups"]


def _numeric(c: Forms) -> bool:
    return c.odd + c.read[0] >= _MANY * c.present


def _words(columns: list[Forms]) -> tuple[str, ...]:
    results = {word for c in columns for word in c.results}
    return tuple(sorted({f"{c.name}={word}" if word in results else word for c in columns for word in c.words}))
