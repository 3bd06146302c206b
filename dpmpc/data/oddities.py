"""What a look finds beside kinds and spellings, a line each for the owner's own eyes: columns that are there twice, a
row of totals, persons with several records, words for what is missing."""

import itertools
import math
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from dpmpc.data.edges import TOTAL
from dpmpc.data.few import listed
from dpmpc.data.reading import literal
from dpmpc.data.spelling import MISSING, Calendar, Spelling, is_number, is_unit, stating
from dpmpc.data.table import Table, some
from dpmpc.data.texts import figures_of
from dpmpc.errors import number_of

if TYPE_CHECKING:
    from dpmpc.data.looked import Looked

CODE = re.compile(r"(^|[^a-z])(plz|zip|npa|postcode|postal|postleitzahl|icd|code|ops)([^a-z]|$)", re.I)
_ROWS_OF_TOTALS = 2  # more are a category of that name
_LEAST = 20  # records: among fewer nothing is odd
_PAIRS = 64  # at most so many columns are held against each other
_MANY_VALUES = 20  # of a column: fewer are categories
_VALUES = 5  # different ones: of fewer none is far from the others
_FIRST = 1 << 14  # records that are looked at for words that may be values
_SHORT = 3  # letters of such words
_SHARED = 0.01  # of the records: so many share a code
_PERSONS = 0.05  # of the records: fewer identifiers are wards, doctors and devices
SMALLEST, LARGEST = 2.0**-24, 2.0**40  # sizes of numbers that a survey knows
# Of surveys and registers, with either sign: 7, 88, 999; 97 and 98, which stand beside 99.
CODES = frozenset(float(str(digit) * times) for digit in (7, 8, 9) for times in range(1, 7))
_BESIDE = CODES | {float(f"{'9' * times}{digit}") for digit in (6, 7, 8) for times in range(1, 6)}
_BELOW = _BESIDE | set(map(float, range(1, 10)))  # of numbers none of which is below zero otherwise
_MOST_CODES = 6
_GAP = 5  # times the widest gap between other values: so far are codes from these
# The years in which dates of today's files lie, of each calendar; lunar years of Islamic countries are later ones.
LIKELY_YEARS: dict[Calendar, tuple[int, int]] = {"buddhist": (2400, 2650), "persian": (1250, 1420)}
LIMIT = re.compile(r"(<=?|>=?|≤|≥)\s*[\d.,]*\d\s*(\D*)")  # what is below or above what can be measured
_PAIR = re.compile(r"\d{2,3} ?/ ?\d{2,3}")
MARK = "\ufeff"  # of byte order, between files that were put together
IDENTIFIER = re.compile(
    r"(^|[^a-z])(id|ids|nr|no|n[°º]|n\.º|num|number|nummer|n[uú]mero|num[eé]ro|key|code|mrn|ssn|uuid|guid|pid|case|fall"
    r"|dossier|prontu[aá]rio|matr[ií]cula|registro|historia|expediente|folio|cpf|dni|nhc|ipp|nip|pesel|lp|bsn|codice"
    r"|account|konto|conto|compte|cuenta|conta|rekening|iban"
    r"|matricola|aadhaar|mpi|zeile|row|index|cpr|uhid|hn|amka|αμκα|№)([^a-z]|$)|^ת\.? ?ז"
    r"|(id|nr|nummer|number|szám|číslo|tunnus|זהות|#|号|番号|编号|编码|번호|رقم الملف)\.?$",
    re.I,
)  # in a column's name
_DAY = re.compile(r"(19|20)\d\d(0[1-9]|1[0-2])(0[1-9]|[12]\d|3[01])")


def dropping(names: Sequence[str]) -> str:
    """How a note says that its reader leaves these columns out: a setting, its value as Python writes it."""
    return f"<<drop={quoted(list(names))}>>"


def quoted(value: object) -> str:
    """A value as Python writes it, in which no mark of a setting ends."""
    return repr(value).replace(">>", ">\\x3e")


def oddities(
    source: Table, table: Table, columns: Sequence["Looked"], stated: Spelling, proposed: Spelling
) -> tuple[str, ...]:
    """The lines on columns that were looked at; `table` is the source as it is held. Cost: one scan of the texts."""
    seen = [column for column in columns if column.role != "dropped"]
    words = [word for word in proposed.missing if word not in stated.missing]
    return (
        *_names(source, seen),
        *_typed(seen),
        *_contents(table, seen),
        *_totals(source, table, seen, proposed),
        *_titles(table, seen),
        *_persons(seen),
        *_codes(table, seen),
        *_days(table, seen),
        *_limits(seen),
        *_sizes(seen),
        *_calendars(seen, proposed, stated),
        *_groups(source, table, seen, stated),
        *_figures(table, seen),
        *_words(seen, words),
        *_kept(source, seen),
    )


def _names(table: Table, columns: Sequence["Looked"]) -> Iterator[str]:
    for note in dict.fromkeys(table[c.name].note for c in columns if "are called" in table[c.name].note):
        alike = [c.name for c in columns if table[c.name].note == note]
        yield f"{note}, and are {some([repr(name) for name in alike], 4)} here; leave out what is not meant"


def _typed(columns: Sequence["Looked"]) -> Iterator[str]:
    """Columns whose types no model reads."""
    odd = [c.name for c in columns if c.kind == "other" and c.role == "feature"]
    if odd:
        yield (
            f"{number_of(len(odd), 'column holds', 'columns hold')} neither numbers nor texts; a run that is given no "
            f"schema stops at them; leave them out: {dropping(odd)}"
        )


def _contents(table: Table, columns: Sequence["Looked"]) -> Iterator[str]:
    """Columns of the same values in every record: those that are alike in all that was counted are compared."""
    alike: dict[object, list[Looked]] = defaultdict(list)
    for c in columns:
        if c.distinct > 1 and c.rows >= _LEAST and table[c.name].kind != "other":
            alike[(table[c.name].kind, c.missing, c.distinct, c.least, c.greatest, c.values[:8])].append(c)
    pairs = [(one[0], each) for one in alike.values() for each in one[1:]][:_PAIRS]
    if not pairs:
        return
    differ = [f"count(*) FILTER (WHERE {table[a.name].sql} IS DISTINCT FROM {table[b.name].sql})" for a, b in pairs]
    for (a, b), count in zip(pairs, table.one(*differ), strict=True):
        if not count:
            kept, other = (b, a) if b.role == "target" else (a, b)
            what = "the target" if kept.role == "target" else "column"
            yield (
                f"column '{other.name}' has the same value as {what} '{kept.name}' in every record; leave it out: "
                f"{dropping([other.name])}"
            )


def _totals(source: Table, table: Table, columns: Sequence["Looked"], proposed: Spelling) -> Iterator[str]:
    texts = [c.name for c in columns if table[c.name].kind == "text" and c.rows >= _LEAST]
    if not texts:
        return
    listed = {c.name: c.values for c in columns if c.listed}
    held = {
        name: sum(count for word, count in values if TOTAL.fullmatch(word.lower())) for name, values in listed.items()
    }
    if rest := [name for name in texts if name not in held]:
        called = [f"regexp_full_match(lower({table.text(name)}), {literal(TOTAL.pattern)})" for name in rest]
        counts = table.one(*(f"count(*) FILTER (WHERE {each})" for each in called))
        held |= dict(zip(rest, counts, strict=True))
    for name in texts:
        count = held[name]
        if 0 < count <= _ROWS_OF_TOTALS:
            way = "take it out of the source"
            if source.parsed and count == 1:
                ((last,),) = table.rows(f"coalesce(lower({table.text(name)}), '')", f"LIMIT 1 OFFSET {table.n - 1}")
                if TOTAL.fullmatch(last):
                    way = f"it is the last line; state {stating(footer=proposed.footer + 1)}"
            yield (
                f"{number_of(count, 'record')} of '{name}' {'is' if count == 1 else 'are'} called a total or a sum; a "
                f"row of totals is no record: {way}"
            )
            return


def _titles(table: Table, columns: Sequence["Looked"]) -> Iterator[str]:
    """Rows that name the columns again, as files have that were put together of several."""
    texts = [c.name for c in columns if table[c.name].kind == "text"][:_PAIRS]
    tests = {name: f"{table.text(name)} IN ({literal(name)}, {literal(MARK + name)})" for name in texts}
    for name in texts:
        values = listed(table, name)
        if values is not None and not table.one(f"count(*) FILTER (WHERE {tests[name]})", relation=values)[0]:
            del tests[name]  # no record names this column
    if len(texts) < 2 or len(tests) < max(2, len(texts) // 2):
        return
    same = (f"CAST(coalesce({test}, false) AS INTEGER)" for test in tests.values())
    (count,) = table.one(f"count(*) FILTER (WHERE {' + '.join(same)} >= {max(2, len(texts) // 2)})")
    if count:
        named = number_of(count, "record names", "records name")
        yield f"{named} the columns again; a second row of names is no record: take it out of the source"


def _persons(columns: Sequence["Looked"]) -> Iterator[str]:
    """Columns of identifiers, by their names, of which many stand in several records."""
    for c in columns:
        several = max(_LEAST, _PERSONS * c.present) <= c.distinct < (1 - _SHARED) * c.present
        if (
            c.role == "feature"
            and c.kind in ("number", "category")
            and c.whole
            and several
            and IDENTIFIER.search(c.name)
        ):
            yield (
                f"column '{c.name}' has {c.distinct} different values in {number_of(c.present, 'record')}; if it says "
                "whose records they are, a promise of records is weaker for who has several: "
                f"<<person={quoted(c.name)}>> makes a run's one of persons; else leave it out: {dropping([c.name])}"
            )


def _codes(table: Table, columns: Sequence["Looked"]) -> Iterator[str]:
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
    for c in numbers:
        counts = held.get(c.name, {})
        found = _apart(counts, listed=c.listed)
        if found and all(counts[code] >= max(3, _SHARED * c.present) for code in found):
            have = sum(counts[code] for code in found)
            codes = ", ".join(f"{code:g}" for code in found)
            say = "that it says" if len(found) == 1 else "that they say"
            yield (
                f"column '{c.name}': {have} records have {codes}, far from all other numbers; to state "
                f"{say} that there is none: {stating(missing=tuple(f'{c.name}={code:g}' for code in found))}"
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


def _paired(c: "Looked") -> bool:
    """Whether most fields of a column have two numbers."""
    return 2 * sum(count for text, count in c.values if _PAIR.fullmatch(text)) >= c.present


def _days(table: Table, columns: Sequence["Looked"]) -> Iterator[str]:
    """Dates that are written as one whole number. Cost: one query for columns of such numbers."""
    seen = [
        c
        for c in columns
        if c.kind in ("number", "identifier") and c.whole and c.distinct >= _VALUES
        and c.least is not None and c.greatest is not None and 19000101 <= c.least <= c.greatest <= 20991231
    ]  # fmt: skip
    texts = (f"CAST(CAST({table.number(c.name)} AS BIGINT) AS VARCHAR)" for c in seen)
    days = [f"count(*) FILTER (WHERE regexp_full_match({text}, {literal(_DAY.pattern)}))" for text in texts]
    for c, count in zip(seen, table.one(*days) if days else (), strict=True):
        if count == c.present - c.unread:
            yield (
                f"column '{c.name}' has whole numbers that look like dates (yyyymmdd), and are read as numbers; to "
                f"read them as dates: {stating(yyyymmdd=(c.name,))}"
            )


def _limits(columns: Sequence["Looked"]) -> Iterator[str]:
    """Fields that say that a number is below or above a limit, and two numbers in one field."""
    for c in columns:
        if c.role in ("owners", "dropped") or c.forms is None or not c.digits:
            continue
        counts = {value: count for value, count in c.values if not is_number(value)} or dict.fromkeys(c.odd, 1)
        limits = {text: found for text in counts if (found := LIMIT.fullmatch(text))}
        have = sum(counts[text] for text in limits)
        if limits and (have >= max(3, _SHARED * c.present) or not c.listed):
            units = dict.fromkeys(found[1] for found in limits.values())
            units |= dict.fromkeys(unit for found in limits.values() if is_unit(unit := found[2].strip()))
            as_what = "missing" if c.kind == "number" else "words"
            yield (
                f"column '{c.name}' has fields such as '{next(iter(limits))[:20]}', which count as {as_what}; to read "
                f"the number that stands in them, the limit: {stating(units=tuple(units))}"
            )
        if _paired(c):
            yield (
                f"column '{c.name}' has two numbers in a field, such as blood pressure, and is read as words; to read "
                f"it as two columns: {stating(pairs=(c.name,))}"
            )


def _sizes(columns: Sequence["Looked"]) -> Iterator[str]:
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


def years_of(c: "Looked") -> tuple[int, int]:
    """The first and the last year of a column of dates."""
    assert c.least is not None and c.greatest is not None
    first, last = (1970 + math.floor(days / 365.2425) for days in (c.least, c.greatest))
    return first, last


def _calendars(columns: Sequence["Looked"], proposed: Spelling, stated: Spelling) -> Iterator[str]:
    """Dates whose years are those of another calendar."""
    if stated.calendar:
        return
    way = stating(calendar=proposed.calendar) if proposed.calendar else ""
    for c in columns:
        if c.kind == "date" and c.least is not None and c.greatest is not None:
            first, last = years_of(c)
            if (1250 <= first and last <= 1500) or first >= 2400:
                yield (
                    f"column '{c.name}' has the years {first} to {last}, and is read as if these were of the Gregorian "
                    f"calendar; if they are of another, {f'state it: {way}' if way else 'write Gregorian dates'}"
                )


def _groups(source: Table, table: Table, columns: Sequence["Looked"], stated: Spelling) -> Iterator[str]:
    """Numbers all of which have three digits after the point, which may then stand between thousands."""
    if stated.decimal != "." or stated.thousands == ".":
        return
    seen = [
        c.name
        for c in columns
        if c.kind == "number" and not c.whole and c.rows >= _LEAST and c.least is not None and c.greatest is not None
        and source[c.name].kind == "text" and max(abs(c.least), abs(c.greatest)) < 1000
    ]  # fmt: skip
    names = _of_three_digits(table, seen)
    asked = list[str]()  # all at once: each reading may parse the file
    for text in map(source.text, names):
        three = f"regexp_full_match({text}, '[+-]?[1-9]\\d{{0,2}}\\.\\d{{3}}')"
        asked += [f"count(*) FILTER (WHERE {test})" for test in (f"contains({text}, '.')", three)]
    counts = iter(source.one(*asked) if asked else ())
    for name, pointed, grouped in zip(names, counts, counts, strict=True):
        if pointed == grouped >= _LEAST:
            yield (
                f"column '{name}': all {grouped} numbers with a point have three digits after it, read as decimals; "
                f"if the point stands between thousands: {stating(decimal=',', thousands='.')}"
            )


def _of_three_digits(table: Table, names: Sequence[str]) -> list[str]:
    """The columns of numbers whose values are thousandths, half of those that are not whole no hundredths. Cost: a
    reading of those of which the first records have none that is finer."""
    first = f"(SELECT * FROM {table.relation} LIMIT {_FIRST})"
    for relation in (first, None):
        if not names:
            return []
        parts = []
        for value in map(table.number, names):
            off = (f"abs({value} * {scale} - round({value} * {scale})) > 1e-6" for scale in (1, 100, 1000))
            parts += [f"count(*) FILTER (WHERE isfinite({value}) AND {test})" for test in off]
        counts = iter(table.one(*parts, relation=relation))
        found = list(zip(names, counts, counts, counts, strict=True))
        names = [name for name, _, _, finer in found if not finer]
    return [name for name, broken, hundredths, finer in found if not finer and 0 < broken <= 2 * hundredths]


def _figures(table: Table, columns: Sequence["Looked"]) -> Iterator[str]:
    """Columns whose fields look like numbers or dates and are read as neither."""
    for c in columns:
        worded = c.role == "feature" and c.kind in ("category", "free text", "identifier") and c.distinct > _MANY_VALUES
        if not worded or 2 * c.digits < c.present or c.forms is None or c.forms.otherwise:
            continue
        if IDENTIFIER.search(c.name) or CODE.search(c.name) or table[c.name].kind != "text" or _paired(c):
            continue
        count = figures_of(table, c.name)
        if 2 * count >= c.present:
            yield (
                f"column '{c.name}': {count} fields have digits and signs that no option reads as numbers, "
                "dates or times, and count as words; write such numbers plainly, and dates as yyyy-mm-dd"
            )


def _kept(source: Table, columns: Sequence["Looked"]) -> Iterator[str]:
    """Words such as NA that count as missing where they may be values: short ones among short ones, or beside fields
    that are empty. Of the first records alone."""
    seen = [c for c in columns if c.kind in ("category", "identifier", "free text") and source[c.name].kind == "text"]
    parts = list[str]()
    for c in seen:
        text = source.text(c.name)
        kept = ", ".join(literal(word) for word in source.spelling.markers(c.name)[1:] if word in MISSING)
        parts += [f"count(*) FILTER (WHERE lower({text}) IN ({kept}))"] if kept else ["0"]
        parts += [f"count(*) FILTER (WHERE {text} IS NULL OR {text} = '')"]
    first = f"(SELECT * FROM {source.relation} LIMIT {_FIRST})"
    counts = iter(source.one(*parts, relation=first) if parts else ())
    for c, gone, empty in zip(seen, counts, counts, strict=True):
        short = c.listed and c.distinct > _VALUES and all(len(value) <= _SHORT for value, _ in c.values)
        short |= c.listed and c.distinct > 2 and all(re.fullmatch("[A-Z]{2}", value) for value, _ in c.values)
        if gone and (short or empty):
            fields = number_of(gone, "field is", "fields are")
            yield (
                f"column '{c.name}': {fields} NA, N/A, null or ?, and count as missing; where that is a value, as of "
                f"Namibia or Napoli: {stating(kept=(f'{c.name}=NA',))}"
            )


def _words(columns: Sequence["Looked"], words: Sequence[str]) -> Iterator[str]:
    """Words that look like "missing" and were not stated to be."""
    found = {c.name: sum(c.forms.words.values()) for c in columns if c.forms is not None and c.forms.words}
    if found and words:
        fields = number_of(sum(found.values()), "field")
        yield (
            f"{fields} of {some(list(found), 6)} look like words for what is missing, and count as values or as not "
            f"read; to state that they are: {stating(missing=tuple(words))}"
        )
