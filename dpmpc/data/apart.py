"""What a look says of numbers that seem to stand for something else: codes of surveys, dates written as one number,
limits of what is measured, two numbers in one field."""

import itertools
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from dpmpc.data.reading import literal
from dpmpc.data.scripts import western
from dpmpc.data.spelling import is_number, is_unit, stating
from dpmpc.data.table import Table, some
from dpmpc.lazy import regex

if TYPE_CHECKING:
    from dpmpc.data.looked import Looked

_LEAST = 20  # records: among fewer nothing is odd
_VALUES = 5  # different ones: of fewer none is far from the others
_MANY_VALUES = 20  # of a column: fewer are categories
_SHARED = 0.01  # of the records: so many share a code
# Of surveys and registers, with either sign: 7, 88, 999; 97 and 98, which stand beside 99.
CODES = frozenset(float(str(digit) * times) for digit in (7, 8, 9) for times in range(1, 7))
_BESIDE = CODES | {float(f"{'9' * times}{digit}") for digit in (6, 7, 8) for times in range(1, 6)}
_BELOW = _BESIDE | set(map(float, range(1, 10)))  # of numbers none of which is below zero otherwise
_MOST_CODES = 6
_GAP = 5  # times the widest gap between other values: so far are codes from these
# What is below or above what can be measured, by a sign before it or a word after it, and what is not quite so: ~2.4.
LIMIT_WORDS = ("未満", "以下", "超", "以上", "미만", "이하", "초과", "이상")
LIMIT = regex(rf"(<=?|>=?|[≤≥≦≧＜＞~≈])?\s*[\d.,]*\d\s*({'|'.join(LIMIT_WORDS)}|\D*)")
_MARKED = regex(r"[\d.,]*\d\s*([*#!?†‡§])")  # a number that somebody marked
_WORD = r"( ?[^\W\d]{1,5})?"  # a unit: 120/80 mmHg
_PAIR = regex(rf"\d{{2,3}}{_WORD} ?[/／] ?\d{{2,3}}{_WORD}|\d{{1,3}}{_WORD} ?[xX×] ?\d{{1,3}}{_WORD}")
_D, _M = "(0[1-9]|[12]\\d|3[01])", "(0[1-9]|1[0-2])"
_DAYS = {
    8: {"yyyymmdd": rf"(19|20)\d\d{_M}{_D}", "ddmmyyyy": rf"{_D}{_M}(19|20)\d\d", "mmddyyyy": rf"{_M}{_D}(19|20)\d\d"},
    7: {"yyymmdd": rf"(0\d|1[0-2])\d{_M}{_D}"},  # of the Republic of China: 1130305
    4: {"hhmm": r"([01]\d|2[0-3])[0-5]\d"},
    6: {"yymmdd": rf"\d\d{_M}{_D}", "ddmmyy": rf"{_D}{_M}\d\d", "mmddyy": rf"{_M}{_D}\d\d"},
}
_TIMES = 100  # different times of day: fewer numbers may be anything
_LINES = 3  # columns with codes: more are said together
# A date with a year of the Republic of China.
_MINGUO = regex(r"(?:0?[5-9]\d|1[0-2]\d)[-/.年] ?(?:0?[1-9]|1[0-2])[-/.月] ?(?:0?[1-9]|[12]\d|3[01])[日.]?")
# An age and a sex in one field: 39Y/F, 39 yrs/male, F/39.
SEXES = frozenset("f m w h k ж м female male fem masc woman man women men frau mann femme homme mujer hombre".split())
_AGED = regex(r"\d{1,3} ?([^\W\d]{0,6})\.? ?/ ?([^\W\d]{1,6})|([^\W\d]{1,6}) ?/ ?\d{1,3} ?([^\W\d]{0,6})\.?")
# A number with a raised point (36\u00b77), and feet with inches (5'3"): never a category, however few there are.
_MEASURE = regex(r"[+-]?\d+\u00b7\d+|\d ?['\u2019\u2032] ?(\d\d?([.,]\d+)? ?(\"|\u201d|\u2033|''|\u2019\u2019)?)?")


def signed(text: str) -> tuple[tuple[str, ...], bool]:
    """The units that make a number of a limit (<0.5), or of one that somebody marked (140*), and whether it is a limit;
    none of any other text."""
    plain = western(text, ".")
    if (found := LIMIT.fullmatch(plain)) and (found[1] or found[2] in LIMIT_WORDS):
        return tuple(unit for each in found.groups() if each and is_unit(unit := each.strip())), True
    return ((found[1],) if (found := _MARKED.fullmatch(plain)) else ()), False


def codes(table: Table, columns: Sequence["Looked"]) -> Iterator[str]:
    """Numbers such as 999 and -8 that many records share and that are apart from all others. Cost: one query for the
    columns of many values whose ends are such numbers."""
    numbers = [c for c in columns if c.kind == "number" and c.role != "owners" and c.present >= _LEAST]
    held = {c.name: {float(v): count for v, count in c.values if is_number(v)} for c in numbers if c.listed}
    many = [c for c in numbers if not c.listed and (_is_code(c.least, below=True) or _is_code(c.greatest))]
    known = ", ".join(repr(sign * code) for code in sorted(_BELOW) for sign in (1, -1))
    asked = list[str]()
    for value in (table.number(c.name) for c in many):
        asked += [f"histogram({value}) FILTER (WHERE {value} IN ({known}))"]
        asked += [f"{end}({value}) FILTER (WHERE {value} NOT IN ({known}))" for end in ("min", "max")]
    answers = iter(table.one(*asked) if asked else ())
    for c, codes, low, high in zip(many, answers, answers, answers, strict=True):
        if low is not None:
            held[c.name] = {float(v): int(count) for v, count in dict(codes or {}).items()} | {low: 0, high: 0}
    lines, short = list[str](), list[str]()
    missing = list[str]()
    for c in numbers:
        counts = held.get(c.name, {})
        found = _apart(counts, listed=c.listed)
        if found and all(counts[code] >= max(3, _SHARED * c.present) for code in found):
            have = sum(counts[code] for code in found)
            codes = ", ".join(f"{code:g}" for code in found)
            say = "that it says" if len(found) == 1 else "that they say"
            words = [f"{c.name}={code:g}" for code in found]
            lines.append(
                f"column '{c.name}': {have} records have {codes}, far from all other numbers; to state "
                f"{say} that there is none: {stating(missing=tuple(words))}"
            )
            missing += words
            short.append(f"'{c.name}' {codes}")
    if len(lines) <= _LINES:
        yield from lines
    else:
        yield (
            f"{len(lines)} columns have numbers far from all their others ({some(short, 6)}); to state that they say "
            f"that there is none: {stating(missing=tuple(missing))}"
        )


def _is_code(value: float | None, *, below: bool = False) -> bool:
    return value is not None and (-value in _BELOW if below else value in _BESIDE)


def _apart(counts: Mapping[float, int], *, listed: bool) -> list[float]:
    """Those of some values that are codes and apart from all others; of a column that is not `listed`, codes and the
    ends of the others are known alone."""
    values = sorted(counts)
    if listed and len(values) < _VALUES:
        return []
    below = [v for v in values if v < 0]
    if 0 < len(below) <= _MOST_CODES and all(-v in _BELOW for v in below) and len(values) - len(below) >= 2:
        run = [-float(k) for k in range(len(below), 0, -1)]
        if below != run or (below == [-1.0] and len(values) > _MANY_VALUES) or values[len(below)] > -below[0]:
            return below
    top = len(values)
    while top > 1 and values[top - 1] in _BESIDE and len(values) - top < _MOST_CODES:
        top -= 1
        rest = values[:top]
        widest = max((b - a for a, b in itertools.pairwise(rest)), default=0.0)
        far = values[top] - rest[-1] > rest[-1] - rest[0]
        if len(rest) < 2 or (far and len(rest) >= 2) or (listed and values[top] - rest[-1] > _GAP * widest > 0):
            return values[top:] if len(rest) >= 2 else []
    return []


def paired(c: "Looked") -> bool:
    """Whether most fields of a column have two numbers."""
    return 2 * sum(count for text, count in c.values if _PAIR.fullmatch(western(text, "."))) >= c.present


def of_sexes(units: Iterable[str]) -> bool:
    """Whether what looks like units, such as Y/F and Y/M, says who of two sexes a record is of."""
    held: dict[str, set[str]] = {}
    for unit in units:
        before, slash, after = unit.lower().rpartition("/")
        if slash and after in SEXES:
            held.setdefault(before, set()).add(after)
    return any(len(words) > 1 for words in held.values())


def aged(c: "Looked") -> str:
    """A field of a column most of which have an age and a sex in one, of at least two sexes; "" of another column."""
    first, counts = "", Counter[str]()
    for text, count in c.values:
        found = _AGED.fullmatch(western(text, "."))
        if found and (word := (found[2] or found[3]).lower()) in SEXES:
            first = first or text
            counts[word] += count
    return first if len(counts) > 1 and 2 * counts.total() >= c.present else ""


def minguo(c: "Looked") -> str:
    """A field of a column most of which are dates with years of the Republic of China; "" of another column."""
    fields = [(text, n) for text, n in c.values if _MINGUO.fullmatch(western(text, "."))]
    first = next((text for text, _ in fields if len(re.split(r"\D", western(text, "."))[0]) == 3), "")
    return first if 2 * sum(n for _, n in fields) >= c.present and c.kind not in ("number", "date") else ""


def measured(c: "Looked") -> bool:
    """Whether most fields of a column are numbers as no option reads them, which look like nothing else."""
    return 2 * sum(count for text, count in c.values if _MEASURE.fullmatch(text)) >= c.present > 0


def days(table: Table, columns: Sequence["Looked"]) -> Iterator[str]:
    """Dates and times of day that are written as one whole number, in any order. Cost: one query for columns of such
    numbers."""
    asked = list[tuple["Looked", str, str]]()
    for c in columns:
        if c.kind not in ("number", "identifier") or c.least is None or c.greatest is None:
            continue
        if not c.whole:
            if c.least >= 0 and c.greatest < 24 and c.distinct >= _TIMES:
                value = table.number(c.name)
                text = f"printf('%.4f', {value} - floor({value}))"
                asked.append((c, "hh.mm", f"count(*) FILTER (WHERE regexp_full_match({text}, '0\\.[0-5]\\d00'))"))
            continue
        ends = {8: (_VALUES, 101, 99999999), 7: (_LEAST, 101, 1999999), 6: (_LEAST, 101, 999999), 4: (_TIMES, 0, 9999)}
        width = 8 if c.greatest > 1999999 else 7 if c.greatest > 999999 else 6 if c.greatest > 9999 else 4
        least, low, high = ends[width]
        if low <= c.least and c.greatest <= high and c.distinct >= least:
            text = f"lpad(CAST(CAST({table.number(c.name)} AS BIGINT) AS VARCHAR), {width}, '0')"
            for order, pattern in _DAYS[width].items():
                test = f"regexp_full_match({text}, {literal(pattern)})"
                asked.append((c, order, f"count(*) FILTER (WHERE {test})"))
    counts = table.one(*(count for _, _, count in asked)) if asked else ()
    said = set[str]()
    for (c, order, _), count in zip(asked, counts, strict=True):
        if count == c.present - c.unread and c.name not in said:
            said.add(c.name)
            what, form = ("times of day", "hh:mm") if order[:2] == "hh" else ("dates", "yyyy-mm-dd")
            whole = "whole numbers" if "." not in order else "numbers"
            way = f"write them as {form} to have {what}"
            if order == "yyyymmdd":
                way = f"to read them as dates: {stating(yyyymmdd=(c.name,))}"
            yield f"column '{c.name}' has {whole} that look like {what} ({order}), and are read as numbers; {way}"


def words_for_none(columns: Sequence["Looked"], proposed: Sequence[str]) -> Iterator[str]:
    """Words that stand in several columns of numbers and dates, where these have neither."""
    held: dict[str, list[str]] = {}
    for c in columns:
        if c.role == "feature" and c.kind in ("number", "date") and c.unread >= max(3, _SHARED * c.present):
            for word in c.odd:
                if not re.search(r"\d", word) and word.lower() not in proposed:
                    held.setdefault(word, []).append(repr(c.name))
    for word, names in held.items():
        if len(names) > 1:
            yield (
                f"{some(names, 6)} have '{word[:20]}' where others have numbers or dates; to state that it says that "
                f"there is none, in columns of words too: {stating(missing=(word,))}"
            )


def units_row(table: Table, columns: Sequence["Looked"], way: str) -> tuple[str, ...]:
    """A line on a first record that has words where all others have numbers: their units, below the names. `way`: how
    to leave it out, if an option does. Cost: one record."""
    numbers = [c.name for c in columns if c.kind == "number" and c.rows >= _LEAST and table[c.name].kind == "text"]
    odd = [c.name for c in columns if c.name in numbers and c.unread]
    if len(odd) < 2:
        return ()
    ((*first,),) = table.rows(", ".join(f"coalesce({table.text(name)}, '')" for name in odd), "LIMIT 1")
    words = [word for word in first if word and (is_unit(word) or not re.search(r"\d", word))]
    if len(set(words)) < 2 or 2 * len(words) < len(numbers):
        return ()
    return (
        f"the first record has words where others have numbers ({some(list(dict.fromkeys(words)), 4)}); a row of "
        f"units is no record: {way or 'take it out of the source'}",
    )


def limited(c: "Looked", limit: bool) -> dict[str, tuple[str, ...]]:
    """Fields of a column that say a limit, or that somebody marked, each with the units that make a number of it; none
    where they are too few to be worth a word."""
    counts = {value: count for value, count in c.values if not is_number(value)} or dict.fromkeys(c.odd, 1)
    read = {text: signed(text) for text in counts}
    found = {text: units for text, (units, is_limit) in read.items() if units and is_limit is limit}
    enough = not c.listed or sum(counts[text] for text in found) >= max(3, _SHARED * c.present)
    return found if enough else {}


def limits(columns: Sequence["Looked"]) -> Iterator[str]:
    """Fields that say that a number is below or above a limit, and two values in one field."""
    for c in columns:
        if c.role in ("owners", "dropped") or c.forms is None or not c.digits:
            continue
        for limit, what in ((True, ", the limit"), (False, "")):
            if some_of := limited(c, limit):
                units = dict.fromkeys(unit for each in some_of.values() for unit in each)
                as_what = "missing" if c.kind == "number" else "words"
                yield (
                    f"column '{c.name}' has fields such as '{next(iter(some_of))[:20]}', which count as {as_what}; to "
                    f"read the number that stands in them{what}: {stating(units=tuple(units))}"
                )
        if text := minguo(c):
            yield (
                f"column '{c.name}' has dates such as '{text[:20]}', as years of the Republic of China are counted; to "
                f"read them: {stating(calendar='minguo')}"
            )
        if text := aged(c):
            yield (
                f"column '{c.name}' has an age and a sex in one field, such as '{text[:20]}', and is read as words; no "
                "option parts them: write them as two columns"
            )
        if paired(c):
            found_units = (_PAIR.fullmatch(western(text, ".")) for text, _ in c.values)
            words = sorted({word.strip() for found in found_units if found for word in found.groups() if word})
            more: dict[str, tuple[str, ...]] = {"units": tuple(words)} if words else {}
            yield (
                f"column '{c.name}' has two numbers in a field, such as blood pressure, and is read as words; to read "
                f"it as two columns: {stating(pairs=(c.name,), **more)}"
            )
