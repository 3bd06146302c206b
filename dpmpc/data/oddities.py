"""What a look finds beside kinds and spellings, a line each for the owner's own eyes: columns that are there twice, a
row of totals, persons with several records, words for what is missing."""

import math
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from dpmpc.data.few import listed
from dpmpc.data.reading import literal
from dpmpc.data.spelling import MISSING, Spelling, is_number, stating
from dpmpc.data.table import Table, some
from dpmpc.data.texts import figures_of
from dpmpc.errors import number_of

if TYPE_CHECKING:
    from dpmpc.data.looked import Looked

TOTALS = (
    "total", "totals", "total:", "grand total", "subtotal", "sum", "sums", "sum:", "summe", "summe:", "gesamt",
    "gesamt:", "gesamtsumme", "insgesamt", "somme", "total g\u00e9n\u00e9ral", "suma", "total general", "totale",
    "somma", "soma", "total geral", "totaal", "som", "totalt", "toplam", "genel toplam", "razem", "celkem",
    "\u0438\u0442\u043e\u0433\u043e", "\u0432\u0441\u0435\u0433\u043e", "\u5408\u8ba1", "\u5408\u8a08",
    "\u603b\u8ba1", "\u7dcf\u8a08", "\u5c0f\u8ba1", "\ud569\uacc4",
)  # fmt: skip
_TOTAL = re.compile(rf"({'|'.join(re.escape(word) for word in dict.fromkeys(TOTALS))})[ :]*(\d[\d.,' ]*.*|\(.*\))?")
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
CODES = frozenset(float(str(digit) * times) for digit in (7, 8, 9) for times in range(1, 7))  # with either sign
MARK = "\ufeff"  # of byte order, between files that were put together
IDENTIFIER = re.compile(
    r"(^|[^a-z])(id|ids|nr|no|n[°º]|n\.º|num|number|nummer|n[uú]mero|num[eé]ro|key|code|mrn|ssn|uuid|guid|pid|case|fall"
    r"|dossier|prontu[aá]rio|matr[ií]cula|registro|historia|expediente|folio|cpf|dni|nhc|ipp|nip|pesel|lp|bsn|codice"
    r"|matricola|aadhaar|mpi|zeile|row|index|cpr|uhid|hn|amka|αμκα|№)([^a-z]|$)|^ת\.? ?ז"
    r"|(id|nr|nummer|number|#|号|番号|编号|编码|번호|رقم الملف)$",
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
        *_totals(table, seen),
        *_titles(table, seen),
        *_persons(seen),
        *_codes(seen),
        *_days(seen),
        *_calendars(seen),
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


def _totals(table: Table, columns: Sequence["Looked"]) -> Iterator[str]:
    texts = [c.name for c in columns if table[c.name].kind == "text" and c.rows >= _LEAST]
    if not texts:
        return
    listed = {c.name: c.values for c in columns if c.listed}
    held = {
        name: sum(count for word, count in values if _TOTAL.fullmatch(word.lower())) for name, values in listed.items()
    }
    if rest := [name for name in texts if name not in held]:
        called = [f"regexp_full_match(lower({table.text(name)}), {literal(_TOTAL.pattern)})" for name in rest]
        counts = table.one(*(f"count(*) FILTER (WHERE {each})" for each in called))
        held |= dict(zip(rest, counts, strict=True))
    for name in texts:
        count = held[name]
        if 0 < count <= _ROWS_OF_TOTALS:
            yield (
                f"{number_of(count, 'record')} of '{name}' {'is' if count == 1 else 'are'} called a total or a sum; a "
                "row of totals is no record: take it out of the source"
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


def _codes(columns: Sequence["Looked"]) -> Iterator[str]:
    """Numbers such as 999 that many records share, further from all others than these are from each other."""
    for c in columns:
        counts = {float(value): count for value, count in c.values if is_number(value)}
        if c.kind != "number" or c.role != "feature" or len(counts) < _VALUES:
            continue
        values = sorted(counts)
        for code, rest in ((values[-1], values[:-1]), (values[0], values[1:])):
            far = min(abs(code - rest[0]), abs(code - rest[-1])) > rest[-1] - rest[0]
            if far and abs(code) in CODES and counts[code] >= max(3, _SHARED * c.present):
                yield (
                    f"column '{c.name}': {counts[code]} records have {code:g}, far from all other numbers; to state "
                    f"that it says that there is none: {stating(missing=(f'{c.name}={code:g}',))}"
                )


def _days(columns: Sequence["Looked"]) -> Iterator[str]:
    """Dates that are written as one whole number."""
    for c in columns:
        days = [value for value, _ in c.values if _DAY.fullmatch(value)]
        if c.kind in ("number", "identifier") and len(c.values) >= _VALUES and len(days) == len(c.values):
            yield (
                f"column '{c.name}' has whole numbers that look like dates (yyyymmdd), and are read as numbers; write "
                "yyyy-mm-dd for dates, or leave it out"
            )


def _calendars(columns: Sequence["Looked"]) -> Iterator[str]:
    """Dates whose years are those of another calendar."""
    for c in columns:
        if c.kind == "date" and c.least is not None and c.greatest is not None:
            first, last = (1970 + math.floor(days / 365.2425) for days in (c.least, c.greatest))
            if (1300 <= first and last <= 1500) or first >= 2400:
                yield (
                    f"column '{c.name}' has the years {first} to {last}, and is read as if these were of the Gregorian "
                    "calendar; if they are of another, write Gregorian dates"
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
    for name in _of_three_digits(table, seen):
        text = source.text(name)
        three = f"regexp_full_match({text}, '[+-]?[1-9]\\d{{0,2}}\\.\\d{{3}}')"
        asked = (f"count(*) FILTER (WHERE {test})" for test in (f"contains({text}, '.')", three))
        pointed, grouped = source.one(*asked)
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
        if IDENTIFIER.search(c.name) or CODE.search(c.name) or table[c.name].kind != "text":
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
