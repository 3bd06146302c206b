"""What a look finds beside kinds and spellings, a line each for the owner's own eyes: columns that are there twice, a
row of totals, persons with several records, words for what is missing; and numbers that seem to stand for something
else: codes of surveys, dates written as one number, limits of what is measured, two numbers in one field."""

import datetime
import itertools
import math
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from dpmpc.errors import number_of, some
from dpmpc.intake.batched import asked_of, none_of
from dpmpc.intake.calendars import Calendar
from dpmpc.intake.column_profile import ColumnProfile, dropping, quoted
from dpmpc.intake.dictionary import listed
from dpmpc.intake.footer import TOTAL
from dpmpc.intake.giving import giving
from dpmpc.intake.head import is_none
from dpmpc.intake.numbers import BELOW, BESIDE, Numbers, days_of, numbers_of
from dpmpc.intake.reading import count_where, literal, only_where
from dpmpc.intake.scripts import small, western
from dpmpc.intake.spelling import MISSING, Spelling, is_number, is_unit, stating
from dpmpc.intake.table import Table
from dpmpc.intake.text_facts import figures_of, points_of
from dpmpc.lazy import regex

_LEAST = 20  # records: among fewer nothing is odd
_VALUES = 5  # different ones: of fewer none is far from the others
_MANY_VALUES = 20  # of a column: fewer are categories
_SHARED = 0.01  # of the records: so many share a code
_MOST_CODES = 6
_FACTOR = 20  # so far apart are the middle ones of numbers that are not in the same unit
_FIELDS = 1000  # of the first records, of which units are looked at
_GAP = 5  # times the widest gap between other values: so far are codes from these
# What is below or above what can be measured, by a sign before it or a word after it, and what is not quite so: ~2.4.
LIMIT_WORDS = ("未満", "以下", "超", "以上", "미만", "이하", "초과", "이상")
LIMIT = regex(rf"(<=?|>=?|[≤≥≦≧＜＞~≈])?\s*[\d.,]*\d\s*({'|'.join(LIMIT_WORDS)}|\D*)")
_MARKED = regex(r"[\d.,]*\d\s*([*#!?†‡§¹ᵃᵇᶜ]|\([a-z]\)|\[[a-z]\])")  # a number that somebody marked
_OPEN = regex(r"[\d.,]*\d ?\+")  # a number and more: 90+
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
# A number with a raised point (36\u00b77), two numbers with a unit each (5 ft 3 in), and feet with inches (5'3"): never
# a category, however few there are.
_EACH = r"\d+([.,]\d+)? ?[^\W\d]{1,4}\.?"
_MEASURE = regex(
    rf"[+-]?\d+\u00b7\d+|({_EACH}[ ,]+)+{_EACH}"
    r"|\d ?['\u2019\u2032] ?(\d\d?([.,]\d+)? ?(\"|\u201d|\u2033|''|\u2019\u2019)?)?"
)
CODE = regex(r"(^|[^a-z])(plz|zip|npa|postcode|postal|postleitzahl|icd|code|ops)([^a-z]|$)", re.I)
_OF_EACH = 10  # lines that are alike
_ROWS_OF_TOTALS = 2  # more are a category of that name, unless they lack what most others have
_FEW_CLASSES = 10  # different numbers of a target: more are quantities
_PAIRS = 64  # at most so many columns are held against each other
_FEW = 64  # of the first records: they say how a column is spelled that has too many values to count
_FIRST = 1 << 14  # records that are looked at for words that may be values
_SHORT = 3  # letters of such words
_MUCH = 0.3  # of the fields: so many numbers among words are said
_PERSONS = 0.05  # of the records: fewer identifiers are wards, doctors and devices
SMALLEST, LARGEST = 2.0**-24, 2.0**40  # sizes of numbers that a survey knows
# The years in which dates of today's files lie, of each calendar; lunar years of Islamic countries are later ones.
LIKELY_YEARS: dict[Calendar, tuple[int, int]] = {"buddhist": (2400, 2650), "persian": (1250, 1420)}
MARK = "\ufeff"  # of byte order, between files that were put together
_IDENTIFIERS = frozenset(
    "id ids nr no nº n° num number nummer numero número numéro key code mrn ssn uuid guid pid case fall dossier "
    "prontuario prontuário matricula matrícula registro historia expediente folio cpf dni nhc ipp nip pesel lp bsn "
    "codice account konto conto compte cuenta conta rekening iban matricola aadhaar mpi zeile row index cpr uhid hn "
    "amka αμκα №".split()
)  # words that call an identifier
_OF_WHOM = frozenset(
    "patient patients patienten paciente pacientes paziente pazienten person persona personne subject study record "
    "visit encounter sample client kunde kunden cliente user member file chart card ticket order invoice bank clinical "
    "processo proceso clinica clínica med medical medico médico anonymous pseudonym hash".split()
)
_JOINING = frozenset("of de des du von vom der die das di do da del della av van the la el le los las and e y".split())
_CALLED = regex(
    r"^ת\.? ?ז|(?-i:[a-z]I[Dd])$"
    r"|(pat|patient(en)?|pseudo|record|case|fall|person|subject|study|visit|encounter|sample|client|kunden|user|row)id$"
    r"|(nr|nummer|number|szám|číslo|tunnus|זהות|#|号|號|番号|编号|编码|번호|رقم الملف|رقم الهوية|شماره پرونده|شناسه"
    r"|کد ملی|दर्ता नं)\.?$",
    re.I,
)  # how a column's name ends that calls an identifier


def identifies(name: str) -> bool:
    """Whether a column's name calls an identifier: a word for one, with nothing after it but whose it is. A number of
    visits, the balance of an account and NO2 are none."""
    if _CALLED.search(name):
        return True
    words = re.findall(r"n\.?[º°]|№|[^\W_]+", name.lower())
    words = [word.replace("n.º", "nº") for word in words]
    for k, word in enumerate(words):
        rest = [each for each in words[k + 1 :] if each not in _JOINING]
        if word in _IDENTIFIERS and all(each in _IDENTIFIERS | _OF_WHOM or each.isdigit() for each in rest):
            return True
    return False


def signed(text: str) -> tuple[tuple[str, ...], bool]:
    """The units that make a number of a limit (<0.5), or of one that somebody marked (140*), and whether it is a limit;
    none of any other text."""
    plain = western(text, ".")
    if (found := LIMIT.fullmatch(plain)) and (found[1] or found[2] in LIMIT_WORDS):
        return tuple(unit for each in found.groups() if each and is_unit(unit := each.strip())), True
    return ((found[1],) if (found := _MARKED.fullmatch(plain)) else ()), False


def codes(table: Table, columns: Sequence[ColumnProfile]) -> Iterator[str]:
    """Values that many records share, at an end of a column's numbers or dates and far from all others, such as 999, -8
    and 9999-12-31. Cost: a reading of the columns of many numbers, unless a look has it already, and one of dates."""
    seen = [c for c in columns if c.kind in ("number", "date") and c.role != "owners" and c.present >= _LEAST]
    counted = [c for c in seen if c.kind == "number" and c.listed]
    counts = {c.name: {float(v): count for v, count in c.values if is_number(v)} for c in counted}
    dates = [c for c in seen if c.kind == "date"]
    many = [c for c in seen if c.kind == "number" and not c.listed]
    counts |= _ends(numbers_of(table, [c.name for c in many]), many)
    counts |= _ends(days_of(table, [c.name for c in dates]), dates)
    each = {(v, *sorted(held)[:2], *sorted(held)[-2:]) for held in counts.values() for v in _lone(held)}
    alike = Counter(v for v, *_ in each)  # of columns that have other values beside it
    lines, short, missing = list[str](), list[str](), list[str]()
    for c in seen:
        held = counts.get(c.name, {})
        found = _apart(held, listed=c.listed) if c.kind == "number" else []
        found = found or [v for v in _lone(held) if c.kind == "date" or v < 0 or alike[v] > 1]
        have = sum(held[v] for v in found)
        if not found or have < _many(c.present) or have >= c.present - c.unread:
            continue
        words = [_written(table, c, v) for v in found]
        they = "that it says" if len(found) == 1 else "that they say"
        others = "numbers" if c.kind == "number" else "dates"
        lines.append(
            f"column '{c.name}': {have} records have {', '.join(words)}, far from all other {others}; to state {they} "
            f"that there is none: {stating(missing=tuple(f'{c.name}={word}' for word in words))}"
        )
        missing += [f"{c.name}={word}" for word in words]
        short.append(f"'{c.name}' {', '.join(words)}")
    if len(lines) <= _LINES:
        yield from lines
    else:
        yield (
            f"{len(lines)} columns have values far from all their others ({some(short, 6)}); to state that they say "
            f"that there is none: {stating(missing=tuple(missing))}"
        )


def _many(records: int) -> float:
    """How many of so many records share a code, at least."""
    return max(3, _SHARED * records)


def _ends(found: Mapping[str, Numbers], columns: Sequence[ColumnProfile]) -> dict[str, dict[float, int]]:
    """What is known of columns of many values: how often each end is there, and each code; of those in which enough
    share one, the next values too. Nothing of those whose values are all the same."""
    known = dict[str, dict[float, int]]()
    for c in columns:
        has = found[c.name]
        if has.least is None or has.greatest is None or has.least == has.greatest:
            continue
        held = has.codes | {has.least: has.at_least, has.greatest: has.at_most}
        # So many have an end or a code that one may be said, or may be the end of another column's too (`_lone`).
        ends = max(has.at_least, has.at_most)
        shared = sum(held.values()) >= _many(c.present) or ends >= _many(sum(held.values()))
        known[c.name] = (dict.fromkeys(has.beside, 0) if shared else {}) | held
    return known


def _lone(counts: Mapping[float, int]) -> list[float]:
    """The least or the greatest of some values, where many records share it and it is further from the others than
    these are from each other."""
    values, found = sorted(counts), list[float]()
    shared = _many(sum(counts.values()))
    for end, rest in ((values[0], values[1:]), (values[-1], values[:-1])) if len(values) > 2 else ():
        gap = rest[0] - end if end < rest[0] else end - rest[-1]
        if counts[end] >= shared and gap > rest[-1] - rest[0]:
            found.append(end)
    return found


def _written(table: Table, c: ColumnProfile, value: float) -> str:
    """A value of a column as its owner writes it."""
    if c.kind == "number":
        return f"{value:.17g}" if value % 1 else f"{value:.0f}"
    days = table.days(c.name)
    text = table.text(c.name) if table[c.name].kind == "text" else f"CAST(CAST({table[c.name].sql} AS DATE) AS VARCHAR)"
    ((found,),) = table.rows(f"min({text})", f"WHERE {days} = CAST('{value!r}' AS DOUBLE)")
    return str(found)


def _apart(counts: Mapping[float, int], *, listed: bool) -> list[float]:
    """Those of some values that are codes and apart from all others; of a column that is not `listed`, codes and the
    ends of the others are known alone."""
    values = sorted(counts)
    below = [v for v in values if v < 0]
    if 0 < len(below) <= _MOST_CODES and all(-v in BELOW for v in below) and len(values) - len(below) >= 2:
        run, few = [-float(k) for k in range(len(below), 0, -1)], listed and len(values) < _VALUES
        even = below == run or (few and -below[0] <= values[-1] + 1)  # -1, 0, 1 are no codes
        if not even or (below == [-1.0] and len(values) > _MANY_VALUES) or values[len(below)] > -below[0]:
            return below
    top = len(values)
    while top > 1 and values[top - 1] in BESIDE and len(values) - top < _MOST_CODES:
        top -= 1
        rest = values[:top]
        widest = max((b - a for a, b in itertools.pairwise(rest)), default=0.0)
        gap, span = values[top] - rest[-1], rest[-1] - rest[0]
        far = gap > (2 * span if listed and len(values) < _VALUES else span)
        if len(rest) < 2 or far or (listed and len(values) >= _VALUES and gap > _GAP * widest > 0):
            return values[top:] if len(rest) >= 2 else []
    return []


def percents(counts: Mapping[str, int]) -> tuple[str, str]:
    """Two fields of a column of texts, of those that have a sign of per cent and of others, which are a hundredth as
    large; empty where there are none."""
    marked = {text for text in counts if text.rstrip().endswith(("%", "％", "٪"))}
    read = {text: western(text, ".").rstrip("% ").replace(",", ".") for text in counts}
    numbers = {text: float(number) for text, number in read.items() if is_number(number)}
    with_sign, without = _scale(numbers, marked, counts)
    return (with_sign, without) if with_sign and numbers[with_sign] > numbers[without] else ("", "")


def _scale(numbers: Mapping[str, float], marked: Collection[str], counts: Mapping[str, int]) -> tuple[str, str]:
    """Two fields of a column, of those with a sign or a word beside their number (`marked`) and of those without, where
    the middle ones lie so far apart that what is beside it seems to be a factor: 85% and 0.85, 1.5K and 900. Empty
    where there are none. `numbers`: what fields read as; nought needs no unit."""
    there, plain = (
        sorted((number, text) for text, number in numbers.items() if number and (text in marked) is sign)
        for sign in (True, False)
    )
    enough = all(sum(counts[t] for _, t in part) >= _SHARED * sum(counts.values()) for part in (there, plain))
    if not (there and plain and enough):
        return "", ""
    (one, with_sign), (other, without) = there[len(there) // 2], plain[len(plain) // 2]
    near = abs(one) < _FACTOR * abs(other) and abs(other) < _FACTOR * abs(one)
    return ("", "") if near else (with_sign, without)


def _beyond(columns: Sequence[ColumnProfile]) -> Iterator[str]:
    """Numbers with a sign that others are beyond them: 90+, 12 +; of levels too, where all others are numbers."""
    for c in columns:
        open_ = [text for text, _ in c.values if not is_number(text)] if c.listed and c.kind == "category" else []
        if open_ and all(map(_OPEN.fullmatch, open_)) and len(c.values) - len(open_) >= _VALUES:
            yield (
                f"column '{c.name}' has '{open_[0][:20]}' among numbers, and is read as words; write the number that "
                "stands in it to have all read as numbers"
            )
        held = [(text, n) for text, n in c.values if _OPEN.fullmatch(text)] if c.values else []
        many = sum(n for _, n in held) if c.listed else c.unread * any(map(_OPEN.fullmatch, c.odd))
        if c.kind == "number" and c.role != "owners" and many >= _many(c.present):
            text = held[0][0] if held else next(filter(_OPEN.fullmatch, c.odd))
            yield (
                f"column '{c.name}': {number_of(c.unread, 'field is', 'fields are')} no number, such as "
                f"'{text[:20]}', and count as missing, at one end of the others; write the number that stands in them, "
                f"or have the column read as words: {stating(words=(c.name,))}"
            )


def factors(counts: Mapping[str, int], spelling: Spelling) -> tuple[str, str]:
    """Two fields of some, with and without a unit, where units seem to be factors; empty where there are none."""
    bare_of = replace(spelling, units=())
    numbers = {text: number for text in counts if (number := spelling.number(text)) is not None}
    return _scale(numbers, {text for text in numbers if bare_of.number(text) is None}, counts)


def _scales(source: Table, columns: Sequence[ColumnProfile], spelling: Spelling) -> Iterator[str]:
    """Fields with and without a sign or a word that is a factor. Of columns that are read with units the first records
    say it. Cost: a query for these."""
    read = [c for c in columns if c.kind == "number" and source[c.name].kind == "text" and not any(c.scales)]
    read = [c for c in read if c.role != "owners" and spelling.units and c.name not in spelling.percents]
    texts = (
        zip(*source.rows(", ".join(source.text(c.name) for c in read), f"LIMIT {_FIELDS}"), strict=True) if read else ()
    )
    pairs = {c.name: factors(Counter(filter(None, t)), spelling.of(c.name)) for c, t in zip(read, texts, strict=True)}
    for c in columns:
        pair = pairs.get(c.name, c.scales)
        if any(c.shares):
            yield (
                f"column '{c.name}' has fields such as '{c.shares[0][:20]}' beside '{c.shares[1][:20]}': with and "
                "without a sign of per cent they differ by a factor of 100; to read both as shares: "
                f"{stating(percents=(c.name,))}"
            )
        elif any(pair) and c.role != "owners":
            yield (
                f"column '{c.name}' has fields such as '{pair[0][:20]}' beside '{pair[1][:20]}': what stands beside a "
                "number seems to be a factor, which no unit is; write all of them as plain numbers, or have them read "
                f"as words: {stating(words=(c.name,))}"
            )


def paired(c: ColumnProfile) -> bool:
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


def aged(c: ColumnProfile) -> str:
    """A field of a column most of which have an age and a sex in one, of at least two sexes; "" of another column."""
    first, counts = "", Counter[str]()
    for text, count in c.values:
        found = _AGED.fullmatch(western(text, "."))
        if found and (word := (found[2] or found[3]).lower()) in SEXES:
            first = first or text
            counts[word] += count
    return first if len(counts) > 1 and 2 * counts.total() >= c.present else ""


def minguo(c: ColumnProfile) -> str:
    """A field of a column most of which are dates with years of the Republic of China; "" of another column."""
    fields = [(text, n) for text, n in c.values if _MINGUO.fullmatch(western(text, "."))]
    first = next((text for text, _ in fields if len(re.split(r"\D", western(text, "."))[0]) == 3), "")
    return first if 2 * sum(n for _, n in fields) >= c.present and c.kind not in ("number", "date") else ""


def measured(c: ColumnProfile) -> bool:
    """Whether most fields of a column are numbers as no option reads them, which look like nothing else."""
    return 2 * sum(count for text, count in c.values if _MEASURE.fullmatch(text)) >= c.present > 0


def days(table: Table, columns: Sequence[ColumnProfile]) -> Iterator[str]:
    """Dates and times of day that are written as one whole number, in any order. Cost: a query for the first records
    of columns of such numbers, and one for all records of those of which it refutes nothing."""
    seen = list[tuple[ColumnProfile, str, bool]]()  # whether all of a column's numbers are such dates
    asked = list[tuple[ColumnProfile, str, str]]()

    def ask(c: ColumnProfile, order: str, pattern: str, shown: Callable[[float], str], text: str) -> None:
        """Of a column whose values are known these are looked at; of others the records are asked."""
        if c.listed and c.values:
            values = (float(value) for value, _ in c.values if is_number(value))
            seen.append((c, order, all(re.fullmatch(pattern, shown(value)) for value in values)))
        else:
            odd = f"isfinite({table.number(c.name)}) AND NOT regexp_full_match({text}, {literal(pattern)})"
            asked.append((c, order, odd))

    for c in columns:
        if c.kind not in ("number", "identifier") or c.least is None or c.greatest is None:
            continue
        value = table.number(c.name)
        if not c.whole:
            if c.least >= 0 and c.greatest < 24 and c.distinct >= _TIMES:
                text = f"printf('%.4f', {value} - floor({value}))"
                ask(c, "hh.mm", r"0\.[0-5]\d00", lambda v: f"{v - math.floor(v):.4f}", text)
            continue
        ends = {8: (_VALUES, 101, 99999999), 7: (_LEAST, 101, 1999999), 6: (_LEAST, 101, 999999), 4: (_TIMES, 0, 9999)}
        width = 8 if c.greatest > 1999999 else 7 if c.greatest > 999999 else 6 if c.greatest > 9999 else 4
        least, low, high = ends[width]
        if low <= c.least and c.greatest <= high and c.distinct >= least:
            text = f"lpad(CAST(CAST({only_where(f'isfinite({value})', value)} AS BIGINT) AS VARCHAR), {width}, '0')"
            for order, pattern in _DAYS[width].items():
                ask(c, order, pattern, lambda v, width=width: f"{v:0{width}.0f}", text)  # type: ignore[misc]
    told = zip(asked, none_of(table, [test for _, _, test in asked]), strict=True)
    seen += [(c, order, odd) for (c, order, _), odd in told]
    place = {c.name: k for k, c in enumerate(columns)}
    said = set[str]()
    for c, order, odd in sorted(seen, key=lambda each: place[each[0].name]):
        if odd and c.name not in said:
            said.add(c.name)
            what, form = ("times of day", "hh:mm") if order[:2] == "hh" else ("dates", "yyyy-mm-dd")
            whole = "whole numbers" if "." not in order else "numbers"
            way = f"write them as {form} to have {what}"
            if order == "yyyymmdd":
                way = f"to read them as dates: {stating(yyyymmdd=(c.name,))}"
            yield f"column '{c.name}' has {whole} that look like {what} ({order}), and are read as numbers; {way}"


def words_for_none(columns: Sequence[ColumnProfile], proposed: Sequence[str]) -> Iterator[str]:
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


def units_row(table: Table, columns: Sequence[ColumnProfile], way: str) -> tuple[str, ...]:
    """A line on a first record that has words where all others have numbers: their units, below the names. `way`: how
    to leave it out, if an option does. Cost: one record."""
    numbers = [c.name for c in columns if c.kind == "number" and c.rows >= _LEAST and table[c.name].kind == "text"]
    odd = [c.name for c in columns if c.name in numbers and c.unread]
    if len(odd) < 2:
        return ()
    ((*first,),) = table.rows(", ".join(f"coalesce({table.text(name)}, '')" for name in odd), "LIMIT 1")
    words = [word for word in first if not is_none(word) and (is_unit(word) or not re.search(r"\d", word))]
    if len(set(words)) < 2 or 2 * len(words) < len(numbers):
        return ()
    return (
        f"the first record has words where others have numbers ({some(list(dict.fromkeys(words)), 4)}); a row of "
        f"units is no record: {way or 'take it out of the source'}",
    )


def limited(c: ColumnProfile, limit: bool) -> dict[str, tuple[str, ...]]:
    """Fields of a column that say a limit, or that somebody marked, each with the units that make a number of it; none
    where they are too few to be worth a word."""
    counts = {value: count for value, count in c.values if not is_number(value)} or dict.fromkeys(c.odd, 1)
    read = {text: signed(text) for text in counts}
    found = {text: units for text, (units, is_limit) in read.items() if units and is_limit is limit}
    numbers = Counter(re.sub(r"[^\d.,]", "", western(text, ".")) for text in found)
    if c.listed and (c.distinct <= _MANY_VALUES or any(count > 1 for count in numbers.values())):
        return {}  # levels; or two of them, such as <30 and >30, would be one number
    enough = not c.listed or sum(counts[text] for text in found) >= max(3, _SHARED * c.present)
    return found if enough else {}


def limits(columns: Sequence[ColumnProfile]) -> Iterator[str]:
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


def oddities(
    source: Table, table: Table, columns: Sequence[ColumnProfile], stated: Spelling, proposed: Spelling
) -> tuple[tuple[str, ...], tuple[tuple[str, int], ...]]:
    """The lines on columns that were looked at, and what to state of lines of a text file that seem to be no records;
    `table` is the source as it is held. Cost: one scan of the texts."""
    seen = [column for column in columns if column.role != "dropped"]
    totals, last = _totals(source, table, seen, proposed)
    units = units_row(table, seen, f"state {stating(below=proposed.below + 1)}" if source.parsed else "")
    outside = (("footer", proposed.footer + 1),) * last + (("below", proposed.below + 1),) * bool(units)
    words = [word for word in proposed.missing if word not in stated.missing]
    lines = (
        *_names(source, seen),
        *_typed(seen),
        *(contents := list(_contents(table, seen))),
        *_giving(table, seen, contents),
        *totals,
        *_titles(table, seen),
        *units,
        *_persons(seen),
        *codes(table, seen),
        *days(table, seen),
        *limits(seen),
        *_beyond(seen),
        *_scales(source, seen, proposed),
        *_sizes(seen),
        *_calendars(seen, proposed, stated),
        *_groups(source, table, seen, stated),
        *_figures(table, seen, proposed != stated),
        *_mixed(seen),
        *_words(seen, words),
        *words_for_none(seen, proposed.missing),
        *_kept(source, seen, table.n),
    )
    return tuple(fewer(lines)), outside if source.parsed else ()


def fewer(lines: Sequence[str]) -> list[str]:
    """The lines without those beyond the first ones of which the same is said, of each column, but for names and
    numbers."""
    said = [re.sub(r"'[^']*'|\(.*?\)|<<.*?>>|\d[\d.e+-]*", "", line) for line in lines]
    groups: dict[str, list[str]] = defaultdict(list)
    for same, line in zip(said, lines, strict=True):
        groups[same].append(line)
    found, before = list[str](), Counter[str]()
    for same, line in zip(said, lines, strict=True):
        before[same] += 1
        if before[same] <= _OF_EACH:
            found.append(line)
        if before[same] == _OF_EACH and (rest := groups[same][_OF_EACH:]):
            named = [match[0] for line in rest if (match := re.search(r"'[^']*'", line))]
            many = number_of(len(rest), "more line is", "more lines are")
            found.append(f"{many} as the one before, but of {some(named) or 'other columns'}")
    return found


def _names(table: Table, columns: Sequence[ColumnProfile]) -> Iterator[str]:
    for note in dict.fromkeys(table[c.name].note for c in columns if "are called" in table[c.name].note):
        alike = [c.name for c in columns if table[c.name].note == note]
        yield f"{note}, and are {some([repr(name) for name in alike], 4)} here; leave out what is not meant"


def _typed(columns: Sequence[ColumnProfile]) -> Iterator[str]:
    """Columns whose types no model reads."""
    odd = [c.name for c in columns if c.kind == "other" and c.role == "feature"]
    if odd:
        yield (
            f"{number_of(len(odd), 'column holds', 'columns hold')} neither numbers nor texts; a run that is given no "
            f"schema stops at them; leave them out: {dropping(odd)}"
        )


def _contents(table: Table, columns: Sequence[ColumnProfile]) -> Iterator[str]:
    """Columns of the same values in every record: those that are alike in all that was counted are compared."""
    alike: dict[object, list[ColumnProfile]] = defaultdict(list)
    for c in columns:
        if c.distinct > 1 and c.rows >= _LEAST and table[c.name].kind != "other":
            alike[(table[c.name].kind, c.missing, c.distinct, c.least, c.greatest, c.values[:8])].append(c)
    pairs = [(one[0], each) for one in alike.values() for each in one[1:]][:_PAIRS]
    if not pairs:
        return
    differ = [f"{table[a.name].sql} IS DISTINCT FROM {table[b.name].sql}" for a, b in pairs]
    for (a, b), same in zip(pairs, none_of(table, differ), strict=True):
        if same:
            kept, other = (b, a) if b.role == "target" else (a, b)
            what = "the target" if kept.role == "target" else "column"
            yield (
                f"column '{other.name}' has the same value as {what} '{kept.name}' in every record; leave it out: "
                f"{dropping([other.name])}"
            )


def _giving(table: Table, columns: Sequence[ColumnProfile], said: Sequence[str]) -> Iterator[str]:
    """Columns that nearly give the target, each by itself; of those that are the target it was `said`."""
    target = next(
        (c for c in columns if c.role == "target" and c.kind in ("number", "category") and c.distinct > 1), None
    )
    if target is None:
        return
    kinds = {
        c.name: c.kind
        for c in columns
        if c.used and not any(f"column '{c.name}' has the same" in line for line in said)
    }
    number = target.kind == "number" and target.distinct > _FEW_CLASSES
    yield from (line for _, line in giving(table, target.name, kinds, number))


def _totals(
    source: Table, table: Table, columns: Sequence[ColumnProfile], proposed: Spelling
) -> tuple[tuple[str, ...], bool]:
    """A line on rows of totals, if there are any; whether there is one, and it is the last line of a text file."""
    texts = [c.name for c in columns if table[c.name].kind == "text" and c.rows >= _LEAST]
    if not texts:
        return (), False
    listed = {c.name: c.values for c in columns if c.listed and table[c.name].kind == "text"}
    held = {
        name: sum(count for word, count in values if TOTAL.fullmatch(small(word))) for name, values in listed.items()
    }
    if rest := [name for name in texts if name not in held]:
        called = [f"regexp_full_match(lower({table.text(name)}), {literal(TOTAL.pattern)})" for name in rest]
        counts = table.one(*(count_where(each) for each in called))
        held |= dict(zip(rest, counts, strict=True))
    for name in texts:
        count = held[name]
        if 0 < count <= _ROWS_OF_TOTALS or (count and _lacking(table, name, count, columns)):
            way, at_end = f"take {'it' if count == 1 else 'them'} out of the source", False
            if source.parsed and count == 1:
                ((last,),) = table.rows(f"coalesce(lower({table.text(name)}), '')", f"LIMIT 1 OFFSET {table.n - 1}")
                if at_end := bool(TOTAL.fullmatch(last)):
                    way = f"it is the last line; state {stating(footer=proposed.footer + 1)}"
            line = (
                f"{number_of(count, 'record')} of '{name}' {'is' if count == 1 else 'are'} called a total or a sum; a "
                f"row of totals is no record, and its numbers count with the others: {way}"
            )
            return (line,), at_end
    return (), False


def _lacking(table: Table, name: str, count: int, columns: Sequence[ColumnProfile]) -> bool:
    """Whether all so many rows that a column calls totals have no value in some column where most others have one."""
    total = f"regexp_full_match(lower({table.text(name)}), {literal(TOTAL.pattern)})"
    lacks = [c.name for c in columns if count <= c.missing <= (c.rows - count) / 2 + count][:_PAIRS]
    gone = (f"coalesce(lower(CAST({table[each].sql} AS VARCHAR)), '') IN ('', 'nan')" for each in lacks)
    return bool(lacks) and count in table.one(*(count_where(f"{total} AND {each}") for each in gone))


def _titles(table: Table, columns: Sequence[ColumnProfile]) -> Iterator[str]:
    """Rows that name the columns again, as files have that were put together of several."""
    texts = [c.name for c in columns if table[c.name].kind == "text"][:_PAIRS]
    tests = {name: f"{table.text(name)} IN ({literal(name)}, {literal(MARK + name)})" for name in texts}
    few = {name: values for name in texts if (values := listed(table, name)) is not None}
    naming = [f"(SELECT {count_where(tests[name])} FROM {values})" for name, values in few.items()]
    for name, count in zip(few, table.one(*naming, relation="(SELECT 1)") if few else (), strict=True):
        if not count:
            del tests[name]  # no record names this column
    if len(texts) < 2 or len(tests) < max(2, len(texts) // 2):
        return
    same = (f"CAST(coalesce({test}, false) AS INTEGER)" for test in tests.values())
    (count,) = table.one(count_where(f"{' + '.join(same)} >= {max(2, len(texts) // 2)}"))
    if count:
        named = number_of(count, "record names", "records name")
        yield f"{named} the columns again; a second row of names is no record: take it out of the source"


def _persons(columns: Sequence[ColumnProfile]) -> Iterator[str]:
    """Columns of identifiers, by their names, of which many stand in several records."""
    for c in columns:
        several = max(_LEAST, _PERSONS * c.present) <= c.distinct < (1 - _SHARED) * c.present
        if c.role == "feature" and c.kind in ("number", "category") and c.whole and several and identifies(c.name):
            yield (
                f"column '{c.name}' has {c.distinct} different values in {number_of(c.present, 'record')}; if it says "
                "whose records they are, a promise of records is weaker for who has several: "
                f"<<person={quoted(c.name)}>> makes a run's one of persons; else leave it out: {dropping([c.name])}"
            )


def _sizes(columns: Sequence[ColumnProfile]) -> Iterator[str]:
    """Numbers that a survey cannot tell apart, since all are larger than what it knows, or smaller."""
    for c in columns:
        if c.kind != "number" or c.role == "owners" or c.least is None or c.greatest is None or c.least == c.greatest:
            continue
        size, nearest = max(abs(c.least), abs(c.greatest)), min(abs(c.least), abs(c.greatest))
        if size < SMALLEST or (nearest >= LARGEST and (c.least > 0) == (c.greatest > 0)):
            yield (
                f"column '{c.name}' has numbers from {c.least:g} to {c.greatest:g}; a survey tells none apart that are "
                f"below {SMALLEST:.0e} in size, or above {LARGEST:.0e}; write them in another unit, such as days in "
                "place of milliseconds"
            )


def years_of(c: ColumnProfile) -> tuple[int, int]:
    """The first and the last year of a column of dates."""
    assert c.least is not None and c.greatest is not None
    first, last = (1970 + math.floor(days / 365.2425) for days in (c.least, c.greatest))
    return first, last


def _calendars(columns: Sequence[ColumnProfile], proposed: Spelling, stated: Spelling) -> Iterator[str]:
    """Dates whose years are those of another calendar."""
    if stated.calendar:
        return
    way = stating(calendar=proposed.calendar) if proposed.calendar else ""
    for c in columns:
        if c.kind == "date" and c.least is not None and c.greatest is not None:
            first, last = years_of(c)
            if (1250 <= first and last <= 1500) or first > datetime.date.today().year + 1:
                yield (
                    f"column '{c.name}' has the years {first} to {last}, and is read as if these were of the Gregorian "
                    f"calendar; if they are of another, {f'state it: {way}' if way else 'write Gregorian dates'}"
                )


def _groups(source: Table, table: Table, columns: Sequence[ColumnProfile], stated: Spelling) -> Iterator[str]:
    """Numbers all of which have three digits after the point, which may then stand between thousands."""
    if stated.decimal != "." or stated.thousands == ".":
        return
    seen = [
        c.name
        for c in columns
        if c.kind == "number" and not c.whole and c.rows >= _LEAST and c.least is not None and c.greatest is not None
        and source[c.name].kind == "text" and max(abs(c.least), abs(c.greatest)) < 1000
    ]  # fmt: skip
    first = points_of(source, seen, table.n, _FIRST)  # that nearly all have other numbers, the first records say
    names = _of_three_digits(table, [name for name, (pointed, grouped) in first.items() if pointed == grouped])
    for name, (pointed, grouped) in points_of(source, names, table.n).items():
        if pointed == grouped >= _LEAST:
            yield (
                f"column '{name}': all {grouped} numbers with a point have three digits after it, read as decimals; "
                f"if the point stands between thousands: {stating(decimal=',', thousands='.')}"
            )


def _of_three_digits(table: Table, names: Sequence[str]) -> list[str]:
    """The columns of numbers whose values are thousandths, half of those that are not whole no hundredths. Cost: a
    reading of those of which the first records have none that is finer."""

    def asked(one: Table, name: str) -> list[str]:
        value = one.number(name)
        off = (f"abs({value} * {scale} - round({value} * {scale})) > 1e-6" for scale in (1, 100, 1000))
        return [count_where(f"isfinite({value}) AND {test}") for test in off]

    found = asked_of(table, names, asked, table.n, _FIRST)
    if table.n > _FIRST:
        found = asked_of(table, [name for name, (_, _, finer) in found.items() if not finer], asked, table.n)
    return [n for n, (broken, hundredths, finer) in found.items() if not finer and 0 < broken <= 2 * hundredths]


def _figures(table: Table, columns: Sequence[ColumnProfile], otherwise: bool) -> Iterator[str]:
    """Columns whose fields look like numbers or dates and are read as neither. `otherwise`: a spelling is proposed,
    which may read some of them."""
    seen = []
    for c in columns:
        worded = c.role == "feature" and c.kind in ("category", "free text", "identifier")
        worded = worded and not any((*c.shares, *c.scales)) and not (c.forms and c.forms.unnamed)
        worded = worded and (c.distinct > _MANY_VALUES or measured(c))
        if not worded or 2 * c.digits < c.present or c.forms is None or (otherwise and c.forms.otherwise):
            continue
        if not (identifies(c.name) or CODE.search(c.name) or table[c.name].kind != "text" or _named(c)):
            seen.append(c)
    counts = figures_of(table, [c.name for c in seen])
    for c in seen:
        count = counts[c.name]
        if 2 * count >= c.present and not c.values and _named(first := _by_the_first(table, c)):
            yield from limits([first])
        elif 2 * count >= c.present:
            yield (
                f"column '{c.name}': {count} fields have digits and signs that no option reads as numbers, "
                "dates or times, and count as words; write such numbers plainly, and dates as yyyy-mm-dd"
            )


def _by_the_first(table: Table, c: ColumnProfile) -> ColumnProfile:
    """A column with the values of its first records, where it has too many to count."""
    texts = [text for (text,) in table.rows(table.text(c.name), f"LIMIT {_FEW}") if text]
    return replace(c, values=tuple(Counter(texts).items()), rows=len(texts), missing=0)


def _named(c: ColumnProfile) -> bool:
    """Whether `limits` says what most fields of a column are."""
    limit = {*limited(c, True), *limited(c, False)}
    return paired(c) or bool(aged(c) or minguo(c)) or 2 * sum(n for text, n in c.values if text in limit) >= c.present


def _mixed(columns: Sequence[ColumnProfile]) -> Iterator[str]:
    """Columns of words many of which are numbers."""
    for c in columns:
        if c.role == "feature" and c.forms is not None and c.kind in ("category", "free text", "identifier"):
            numbers = 0 if c.worded or c.codes or any((*c.shares, *c.scales)) else c.forms.read[0]
            other = next((text for text, _ in c.values if not is_number(text)), "")
            mixed = _MUCH * c.present <= numbers < c.present and c.distinct > _MANY_VALUES
            if mixed and other and not signed(other)[0]:
                yield (
                    f"column '{c.name}': {numbers} of {number_of(c.present, 'field')} are numbers, and it is read as "
                    f"words for the others, such as '{other[:20]}'; a schema with kind = \"number\" for it reads the "
                    "numbers, and has the others missing"
                )


def _kept(source: Table, columns: Sequence[ColumnProfile], rows: int) -> Iterator[str]:
    """Words such as NA that count as missing where they may be values: short ones among short ones, or beside fields
    that are empty. Of the first records alone."""
    seen = [c for c in columns if c.kind in ("category", "identifier", "free text") and source[c.name].kind == "text"]

    def asked(one: Table, name: str) -> list[str]:
        text = one.text(name)
        kept = ", ".join(literal(word) for word in one.spelling.markers(name)[1:] if word in MISSING)
        gone = count_where(f"lower({text}) IN ({kept})") if kept else "0"
        return [gone, count_where(f"{text} IS NULL OR {text} = ''")]

    counts = asked_of(source, [c.name for c in seen], asked, rows, _FIRST)
    for c in seen:
        gone, empty = counts[c.name]
        short = c.listed and c.distinct > _VALUES and all(len(value) <= _SHORT for value, _ in c.values)
        short |= c.listed and c.distinct > 2 and all(re.fullmatch("[A-Z]{2}", value) for value, _ in c.values)
        if gone and (short or empty):
            fields = number_of(gone, "field is", "fields are")
            yield (
                f"column '{c.name}': {fields} NA, N/A, null or ?, and count as missing; where that is a value, as of "
                f"Namibia or Napoli: {stating(kept=(f'{c.name}=NA',))}"
            )


def _words(columns: Sequence[ColumnProfile], words: Sequence[str]) -> Iterator[str]:
    """Words that look like "missing" and were not stated to be."""
    found = {c.name: sum(c.forms.words.values()) for c in columns if c.forms is not None and c.forms.words}
    if found and words:
        fields = number_of(sum(found.values()), "field")
        yield (
            f"{fields} of {some(list(found), 6)} look like words for what is missing, and count as values or as not "
            f"read; to state that they are: {stating(missing=tuple(words))}"
        )
