"""What a look finds beside kinds and spellings, a line each for the owner's own eyes: columns that are there twice, a
row of totals, persons with several records, words for what is missing."""

import datetime
import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from dpmpc.data.apart import (
    aged,
    codes,
    days,
    limited,
    limits,
    measured,
    minguo,
    paired,
    signed,
    units_row,
    words_for_none,
)
from dpmpc.data.calendars import Calendar
from dpmpc.data.edges import TOTAL
from dpmpc.data.few import listed
from dpmpc.data.reading import literal
from dpmpc.data.scripts import small
from dpmpc.data.spelling import MISSING, Spelling, is_number, stating
from dpmpc.data.table import Table, some
from dpmpc.data.texts import figures_of, points_of
from dpmpc.data.together import asked_of
from dpmpc.errors import number_of
from dpmpc.lazy import regex

if TYPE_CHECKING:
    from dpmpc.data.looked import Looked

CODE = regex(r"(^|[^a-z])(plz|zip|npa|postcode|postal|postleitzahl|icd|code|ops)([^a-z]|$)", re.I)
_OF_EACH = 10  # lines that are alike
_ROWS_OF_TOTALS = 2  # more are a category of that name
_LEAST = 20  # records: among fewer nothing is odd
_PAIRS = 64  # at most so many columns are held against each other
_FEW = 64  # of the first records: they say how a column is spelled that has too many values to count
_MANY_VALUES = 20  # of a column: fewer are categories
_VALUES = 5  # different ones: of fewer none is far from the others
_FIRST = 1 << 14  # records that are looked at for words that may be values
_SHORT = 3  # letters of such words
_SHARED = 0.01  # of the records: so many share a code
_MUCH = 0.3  # of the fields: so many numbers among words are said
_PERSONS = 0.05  # of the records: fewer identifiers are wards, doctors and devices
SMALLEST, LARGEST = 2.0**-24, 2.0**40  # sizes of numbers that a survey knows
# The years in which dates of today's files lie, of each calendar; lunar years of Islamic countries are later ones.
LIKELY_YEARS: dict[Calendar, tuple[int, int]] = {"buddhist": (2400, 2650), "persian": (1250, 1420)}
MARK = "\ufeff"  # of byte order, between files that were put together
IDENTIFIER = regex(
    r"(^|[^a-z])(id|ids|nr|no|n[°º]|n\.º|num|number|nummer|n[uú]mero|num[eé]ro|key|code|mrn|ssn|uuid|guid|pid|case|fall"
    r"|dossier|prontu[aá]rio|matr[ií]cula|registro|historia|expediente|folio|cpf|dni|nhc|ipp|nip|pesel|lp|bsn|codice"
    r"|account|konto|conto|compte|cuenta|conta|rekening|iban"
    r"|matricola|aadhaar|mpi|zeile|row|index|cpr|uhid|hn|amka|αμκα|№)([^a-z]|$)|^ת\.? ?ז"
    r"|(?-i:[a-z]I[Dd])$"
    r"|(pat|patient(en)?|pseudo|record|case|fall|person|subject|study|visit|encounter|sample|client|kunden|user|row)id$"
    r"|(nr|nummer|number|szám|číslo|tunnus|זהות|#|号|號|番号|编号|编码|번호|رقم الملف|رقم الهوية|شماره پرونده|شناسه"
    r"|کد ملی|दर्ता नं)\.?$",
    re.I,
)  # in a column's name


def dropping(names: Sequence[str]) -> str:
    """How a note says that its reader leaves these columns out: a setting, its value as Python writes it."""
    return f"<<drop={quoted(list(names))}>>"


def quoted(value: object) -> str:
    """A value as Python writes it, in which no mark of a setting ends."""
    return repr(value).replace(">>", ">\\x3e")


def oddities(
    source: Table, table: Table, columns: Sequence["Looked"], stated: Spelling, proposed: Spelling
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
        *_contents(table, seen),
        *totals,
        *_titles(table, seen),
        *units,
        *_persons(seen),
        *codes(table, seen),
        *days(table, seen),
        *limits(seen),
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


def _totals(
    source: Table, table: Table, columns: Sequence["Looked"], proposed: Spelling
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
        counts = table.one(*(f"count(*) FILTER (WHERE {each})" for each in called))
        held |= dict(zip(rest, counts, strict=True))
    for name in texts:
        count = held[name]
        if 0 < count <= _ROWS_OF_TOTALS:
            way, at_end = "take it out of the source", False
            if source.parsed and count == 1:
                ((last,),) = table.rows(f"coalesce(lower({table.text(name)}), '')", f"LIMIT 1 OFFSET {table.n - 1}")
                if at_end := bool(TOTAL.fullmatch(last)):
                    way = f"it is the last line; state {stating(footer=proposed.footer + 1)}"
            line = (
                f"{number_of(count, 'record')} of '{name}' {'is' if count == 1 else 'are'} called a total or a sum; a "
                f"row of totals is no record: {way}"
            )
            return (line,), at_end
    return (), False


def _titles(table: Table, columns: Sequence["Looked"]) -> Iterator[str]:
    """Rows that name the columns again, as files have that were put together of several."""
    texts = [c.name for c in columns if table[c.name].kind == "text"][:_PAIRS]
    tests = {name: f"{table.text(name)} IN ({literal(name)}, {literal(MARK + name)})" for name in texts}
    few = {name: values for name in texts if (values := listed(table, name)) is not None}
    naming = [f"(SELECT count(*) FILTER (WHERE {tests[name]}) FROM {values})" for name, values in few.items()]
    for name, count in zip(few, table.one(*naming, relation="(SELECT 1)") if few else (), strict=True):
        if not count:
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
            if (1250 <= first and last <= 1500) or first > datetime.date.today().year + 1:
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
        return [f"count(*) FILTER (WHERE isfinite({value}) AND {test})" for test in off]

    found = asked_of(table, names, asked, table.n, _FIRST)
    if table.n > _FIRST:
        found = asked_of(table, [name for name, (_, _, finer) in found.items() if not finer], asked, table.n)
    return [n for n, (broken, hundredths, finer) in found.items() if not finer and 0 < broken <= 2 * hundredths]


def _figures(table: Table, columns: Sequence["Looked"], otherwise: bool) -> Iterator[str]:
    """Columns whose fields look like numbers or dates and are read as neither. `otherwise`: a spelling is proposed,
    which may read some of them."""
    seen = []
    for c in columns:
        worded = c.role == "feature" and c.kind in ("category", "free text", "identifier")
        worded = worded and not (c.forms and c.forms.unnamed) and (c.distinct > _MANY_VALUES or measured(c))
        if not worded or 2 * c.digits < c.present or c.forms is None or (otherwise and c.forms.otherwise):
            continue
        if not (IDENTIFIER.search(c.name) or CODE.search(c.name) or table[c.name].kind != "text" or _named(c)):
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


def _by_the_first(table: Table, c: "Looked") -> "Looked":
    """A column with the values of its first records, where it has too many to count."""
    texts = [text for (text,) in table.rows(table.text(c.name), f"LIMIT {_FEW}") if text]
    return replace(c, values=tuple(Counter(texts).items()), rows=len(texts), missing=0)


def _named(c: "Looked") -> bool:
    """Whether `limits` says what most fields of a column are."""
    limit = {*limited(c, True), *limited(c, False)}
    return paired(c) or bool(aged(c) or minguo(c)) or 2 * sum(n for text, n in c.values if text in limit) >= c.present


def _mixed(columns: Sequence["Looked"]) -> Iterator[str]:
    """Columns of words many of which are numbers."""
    for c in columns:
        if c.role == "feature" and c.forms is not None and c.kind in ("category", "free text", "identifier"):
            numbers = 0 if c.worded or c.codes else c.forms.read[0]
            other = next((text for text, _ in c.values if not is_number(text)), "")
            mixed = _MUCH * c.present <= numbers < c.present and c.distinct > _MANY_VALUES
            if mixed and other and not signed(other)[0]:
                yield (
                    f"column '{c.name}': {numbers} of {number_of(c.present, 'field')} are numbers, and it is read as "
                    f"words for the others, such as '{other[:20]}'; a schema with kind = \"number\" for it reads the "
                    "numbers, and has the others missing"
                )


def _kept(source: Table, columns: Sequence["Looked"], rows: int) -> Iterator[str]:
    """Words such as NA that count as missing where they may be values: short ones among short ones, or beside fields
    that are empty. Of the first records alone."""
    seen = [c for c in columns if c.kind in ("category", "identifier", "free text") and source[c.name].kind == "text"]

    def asked(one: Table, name: str) -> list[str]:
        text = one.text(name)
        kept = ", ".join(literal(word) for word in one.spelling.markers(name)[1:] if word in MISSING)
        gone = f"count(*) FILTER (WHERE lower({text}) IN ({kept}))" if kept else "0"
        return [gone, f"count(*) FILTER (WHERE {text} IS NULL OR {text} = '')"]

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


def _words(columns: Sequence["Looked"], words: Sequence[str]) -> Iterator[str]:
    """Words that look like "missing" and were not stated to be."""
    found = {c.name: sum(c.forms.words.values()) for c in columns if c.forms is not None and c.forms.words}
    if found and words:
        fields = number_of(sum(found.values()), "field")
        yield (
            f"{fields} of {some(list(found), 6)} look like words for what is missing, and count as values or as not "
            f"read; to state that they are: {stating(missing=tuple(words))}"
        )
