"""One look at every column of a source before anything is spent, for its owner's own eyes: nothing here is protected.

What a column seems to hold, in which spelling, how much of it is missing or not read, and what a run does with it. The
look only proposes: what a field reads as follows from that field and from what was stated (`intake.spelling`).
"""

import itertools
import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

from dpmpc.errors import some
from dpmpc.intake.calendars import Calendar
from dpmpc.intake.column_facts import MOSTLY, TOP, Fact, facts_of
from dpmpc.intake.column_profile import ALIKE, ColumnProfile, Kind, Role, dropping
from dpmpc.intake.dictionary import few
from dpmpc.intake.forms import BOTH, FORMS, NAMED, NEGATIVE, SOME, Forms, months_in, proposed
from dpmpc.intake.lint import (
    CODE,
    LIKELY_YEARS,
    LIMIT_WORDS,
    factors,
    fewer,
    identifies,
    oddities,
    of_sexes,
    percents,
    years_of,
)
from dpmpc.intake.missing import as_stated
from dpmpc.intake.numbers import EXACT
from dpmpc.intake.spelling import (
    NUMBERED,
    PLAIN,
    Decimal,
    Negative,
    Spelling,
    Thousands,
    canonical,
    composed,
    is_number,
    is_unit,
    stating,
)
from dpmpc.intake.staging import held
from dpmpc.intake.table import Table, no_column
from dpmpc.intake.text_facts import plain_forms
from dpmpc.lazy import dataclass

MOST_LISTED = 100  # values of a category that a draft lists
_DROPPED = 50  # columns: of more a schema says which
_NEARLY = 0.9
_REMARKS = 3  # different words: as few among many different numbers are remarks
RESULTS = ("-", "--", "\u2013", "\u2212", "\uff0d", "\u30fc", "nil", "neg")  # beside + and ++
_FEW = 20  # records: fewer say nothing of identifiers
_LONG = 1e7  # numbers from here on that have as many digits as each other and are all different may be identifiers
_NUMBERS: tuple[tuple[Decimal, Thousands], ...] = (
    (".", ""), (",", ""), (".", ","), (",", "."), (".", " "), (",", " "), (".", "'"), (",", "'"),
)  # fmt: skip
_SAMPLE = 500  # different values on which a proposal is tried
_LEVELS = 20  # different values: as few that are no plain numbers are levels, such as 5-10 km
_WIDE = 5  # digits: numbers of so many with zeros before them that are all different may be identifiers
_PADDED = "numbers with zeros before them, such as 0123"
ONCE = 20_000  # records: of more, what a look found of a column stands where another spelling moves no field of it


@dataclass(frozen=True)
class TableProfile:
    """What the look found. `stated`: the spelling that it read by; `proposed`: the one that would read more; `asks`:
    what fields alone do not tell."""

    source: str
    rows: int
    columns: tuple[ColumnProfile, ...]
    stated: Spelling
    proposed: Spelling
    asks: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()  # `oddities`
    outside: tuple[tuple[str, int], ...] = ()  # what to state of lines of a text file that seem to be no records

    def __getitem__(self, name: str) -> ColumnProfile:
        """The column of this name. Errors: there is none."""
        for column in self.columns:
            if column.name == name:
                return column
        raise no_column(self.source, name, [column.name for column in self.columns])

    @property
    def findings(self) -> list[str]:
        """All that is to be said of the table, in the order in which every surface says it: what its owner must decide;
        what is odd; a line on each column that seems to hold nothing to learn from, as a survey asks about it all the
        same; and one with the setting that leaves them all out."""
        odd = [c for c in self.columns if c.role == "feature" and not c.used]
        padded, codes = _codes(self.columns)
        asks = [ask for ask in self.asks if ask != _ask_of(padded)]  # which is of a proposal
        if padded:
            way = f"to read them as words: {stating(words=tuple(padded))}"
            asks.append(f"{_are_padded(padded)}, read as numbers where nothing is stated; {way}")
        lines = fewer([f"column '{c.name}' looks like {c.kind} ({c.why})" for c in odd])
        if codes:
            lines.append(
                f"{some([repr(name) for name in codes], 6)} seem to be codes, and are read as numbers where they look "
                f"like numbers; to read them as words: {stating(words=tuple(codes))}"
            )
        leave = f"to leave them out: {self.to_drop}"
        last = f"where no schema leaves these out, a survey asks about them, which costs noise; {leave}"
        return [*(f"please decide: {ask}" for ask in asks), *self.notes, *lines, *([last] if odd else [])]

    @property
    def to_drop(self) -> str:
        """The setting that leaves out all columns that no features come of; empty where all columns give some."""
        odd = [c.name for c in self.columns if c.role == "feature" and not c.used]
        if len(odd) > _DROPPED:
            return f"a schema without these {len(odd):,} columns, as `dpmpc describe --schema FILE` drafts it"
        return dropping(odd) if odd else ""

    @property
    def features(self) -> tuple[ColumnProfile, ...]:
        """The columns that a run reads off the records as features."""
        return tuple(column for column in self.columns if column.used)


def look(
    table: Table, *, target: str | None = None, owners: str | None = None, drop: Sequence[str] = ()
) -> tuple[TableProfile, Table]:
    """What a table's columns seem to be under the spelling that was stated, and the table with its texts parsed once.

    Errors: the source cannot be read; a column that was named is not there. Cost: one parsing, some scans of it.
    """
    found, plain = _look(table, target, owners, drop)
    notes, outside = oddities(table, plain, found.columns, table.spelling, found.proposed)
    return replace(found, notes=notes, outside=outside), plain


def _look(
    table: Table, target: str | None, owners: str | None, drop: Sequence[str], before: TableProfile | None = None
) -> tuple[TableProfile, Table]:
    """The same without notes. `before`: what a look by another spelling found, which stands for columns of texts of
    which this one reads every field alike."""
    for name in (target, owners, *drop):
        if name is not None:
            table[name]
    plain = held(table, [name for name in table.names if name not in drop])
    roles: dict[str, Role] = dict.fromkeys(table.names, "feature")
    if owners is not None:
        roles[owners] = "owners"
    if target is not None:
        roles[target] = "target"
    columns = {
        name: ColumnProfile(name, table[name].type, "other", "dropped", plain.n, 0, 0, why="left out, as asked")
        for name in drop
    }
    seen = [column for column in plain.columns if column.name not in drop]
    again = _unmoved(plain, before)
    columns |= again
    seen = [column for column in seen if column.name not in again]
    facts = facts_of(plain, [column.name for column in seen])
    columns |= {
        column.name: _looked(plain, column.name, table[column.name].type, roles[column.name], facts[column.name])
        for column in seen
    }
    columns |= _of_one_family(columns)
    forms = [c.forms for c in columns.values() if c.forms is not None]
    if table.spelling.decimal == "." and any(each.commas for each in forms):  # are the points of others decimals?
        broken = [c for c in columns.values() if c.forms is None and c.kind == "number" and not c.whole]
        texts = {c.name: c.present - c.unread for c in broken if table[c.name].kind == "text"}
        forms += plain_forms(table, texts, plain.n)
    spelling, asks = proposed(table.spelling, forms)
    spelling, asks = _with_codes(spelling, asks, list(columns.values()))
    spelling, asks = _with_calendar(spelling, asks, list(columns.values()))
    table.unchanged()
    notes = {name: table[name].note for name in columns if name not in again}
    noted = (replace(c, why=f"{c.why}; {note}") if (note := notes.get(c.name)) else c for c in columns.values())
    columns = {column.name: column for column in noted}
    found = tuple(columns[name] for name in table.names)
    return TableProfile(table.source, plain.n, found, table.spelling, spelling, asks), plain


def _unmoved(table: Table, before: TableProfile | None) -> dict[str, ColumnProfile]:
    """What an earlier look found of the columns that have many texts, where its spelling reads each field as this
    table's does: whatever is asked of a column follows from its fields and what they read as. It saves what is dear,
    the forms of millions of different texts."""
    if before is None or table.n <= ONCE:
        return {}
    found: dict[str, ColumnProfile] = {}
    for column in before.columns:
        name, then = column.name, replace(table, spelling=before.stated)
        texts = column.role != "dropped" and column.forms is not None and table[name].kind == "text"
        if not texts or table[name].value or few(table, name) is not None or table.worded(name) != then.worded(name):
            continue
        ways = [(each.missing(name), each.number(name), each.days(name)) for each in (then, table)]
        moved = [f"{old} IS DISTINCT FROM {new}" for old, new in zip(*ways, strict=True) if old != new]
        if not moved or not table.rows("1", f"WHERE {' OR '.join(moved)} LIMIT 1"):
            found[name] = column
    return found


def _of_one_family(columns: Mapping[str, ColumnProfile]) -> dict[str, ColumnProfile]:
    """The columns of numbers, as codes, that are called as one of codes is but for a number, and have no others than it
    may have, such as diag_2 beside diag_1: the same list of codes, of which these records have none with a letter.
    Columns that have no names of their own, but numbers, are no family."""

    def family(name: str) -> str:
        return re.sub(r"\d+", "#", name)

    def may_be(c: ColumnProfile, of: ColumnProfile) -> bool:
        ends = (c.least, c.greatest, of.least, of.greatest)
        return None not in ends and ends[2] / 2 <= ends[0] and ends[1] <= 2 * ends[3]  # type: ignore[operator]

    known = {name: c for name, c in columns.items() if not re.fullmatch(NUMBERED, name)}
    called = [c for c in known.values() if c.codes and c.why != _PADDED and re.search(r"\d", c.name)]
    codes, found = {family(c.name): c for c in called}, dict[str, ColumnProfile]()
    for name, c in known.items():
        of = codes.get(family(name))
        numbers = c.kind == "number" and c.role == "feature" and not c.codes and c.distinct > 2
        if of is not None and numbers and may_be(c, of):
            why = f"{c.distinct} different numbers that are codes, as those of '{of.name}' are"
            found[name] = replace(c, kind="category", why=why, codes=True)
    return found


def _with_codes(
    spelling: Spelling, asks: tuple[str, ...], columns: Sequence[ColumnProfile]
) -> tuple[Spelling, tuple[str, ...]]:
    """With the columns of codes among those that have words, those of shares, and what is asked of codes that are not
    called so."""
    shares = tuple(c.name for c in columns if any(c.shares))
    spelling = replace(spelling, percents=(*spelling.percents, *shares)) if shares else spelling
    padded, codes = _codes(columns)
    found = [c.name for c in columns if c.name in {*padded, *codes}]
    asks = (*asks, _ask_of(padded)) if padded else asks
    return (replace(spelling, words=(*spelling.words, *found)) if found else spelling), asks


def _codes(columns: Sequence[ColumnProfile]) -> tuple[list[str], list[str]]:
    """The columns of numbers with zeros before them, of which none but their owner knows whether they are codes; and
    those that seem to be of codes by more."""
    codes = [c for c in columns if c.codes and c.role == "feature"]
    return [c.name for c in codes if c.why == _PADDED], [c.name for c in codes if c.why != _PADDED]


def _are_padded(columns: Sequence[str]) -> str:
    return f"codes: {some(columns, 8)} {'has' if len(columns) == 1 else 'have'} {_PADDED}"


def _ask_of(padded: Sequence[str]) -> str:
    """What is asked where it is proposed to read these columns as words."""
    return f"{_are_padded(padded)}; where they are numbers, leave <<words>> out"


def _with_calendar(
    spelling: Spelling, asks: tuple[str, ...], columns: Sequence[ColumnProfile]
) -> tuple[Spelling, tuple[str, ...]]:
    """With the calendar that the years of all dates are of, and what is asked of it."""
    found = [c for c in columns if c.kind == "date" and c.forms is not None]
    if spelling.calendar or not found:
        return spelling, asks
    first, last = min(years_of(c)[0] for c in found), max(years_of(c)[1] for c in found)
    names: dict[Calendar, str] = {"buddhist": "Buddhist era", "persian": "Persian calendar"}
    for calendar, (low, high) in LIKELY_YEARS.items():
        if low <= first and last <= high:
            ask = (
                f"dates: the years {first} to {last} may be those of the {names[calendar]}; where they are not, leave "
                "<<calendar>> out"
            )
            return replace(spelling, calendar=calendar), (*asks, ask)
    return spelling, asks


def explore(
    table: Table, *, target: str | None = None, owners: str | None = None, drop: Sequence[str] = ()
) -> tuple[TableProfile, Table]:
    """The same under the spelling that it proposes, until it proposes no other. `stated` stays what was stated."""
    first, before = table, None
    asks: tuple[str, ...] = ()
    for _ in range(4):
        read = table
        found, plain = _look(read, target, owners, drop, before)
        asks = (*asks, *(ask for ask in found.asks if ask not in asks))
        if found.proposed == table.spelling:
            break
        before = found
        table = as_stated(replace(first, spelling=found.proposed))
    notes, outside = oddities(read, plain, found.columns, read.spelling, found.proposed)
    found = replace(found, stated=first.spelling, proposed=table.spelling, asks=asks, notes=notes, outside=outside)
    return found, plain


def _looked(table: Table, name: str, type_: str, role: Role, fact: Fact) -> ColumnProfile:
    kind_of = {"number": _number, "text": _text, "date": _date}.get(table[name].kind, _other)
    present, rows = int(fact["present"]), table.n
    worded = table.worded(name)
    base = ColumnProfile(name, type_, "empty", role, rows, rows - present, 0, why="no field has a value", worded=worded)
    if not present:
        return base
    found = kind_of(table, replace(base, distinct=min(int(fact["distinct"]), present)), fact)
    if found.distinct == 1 and found.kind in ("category", "number", "identifier") and found.listed:
        if SOME * rows <= present <= (1 - SOME) * rows:
            return replace(found, kind="category", why="one value or none")
    if found.distinct == 1 and found.kind != "other":
        return replace(found, kind="constant", why="all its values are the same", day=found.kind == "date")
    return found


def _number(table: Table, base: ColumnProfile, fact: Fact) -> ColumnProfile:
    found = replace(
        base, kind="number", least=fact["least"], greatest=fact["greatest"], why="all its values are numbers",
        whole=fact["whole"] == fact["numbers"],
    )  # fmt: skip
    if fact["numbers"] < base.present:
        found = replace(found, unread=base.present - int(fact["numbers"]), why="its values are numbers")
    if base.distinct <= TOP:
        found = _counted(table, found, fact)
    return _numbered(table, found, fact)


def _numbered(table: Table, found: ColumnProfile, fact: Fact) -> ColumnProfile:
    """Whole numbers that are all different are an identifier if the column's name says so; if they follow each other,
    that is asked."""
    if CODE.search(found.name) and fact["whole"] == found.present - found.unread and 2 < found.distinct:
        why = f"{found.distinct} different numbers that are codes, by their name"
        return replace(found, kind="category", why=why, codes=True)
    if found.present < _FEW or fact["whole"] < found.present - found.unread or found.distinct < _NEARLY * found.present:
        return found
    assert found.least is not None and found.greatest is not None
    dense = found.greatest - found.least < 1.1 * found.present
    padded = bool(fact.get("coded")) and fact["narrow"] == fact["broad"] >= _WIDE
    long = found.least >= _LONG and math.floor(math.log10(found.least)) == math.floor(math.log10(found.greatest))
    named = identifies(found.name) or (dense and re.fullmatch(NUMBERED, found.name) is not None)  # numbers of rows
    if not (dense or long or padded or named) or not _all_different(table, found, fact):
        return found
    why = "whole numbers, all different" + ", one after the other" * dense
    return replace(found, kind="identifier", why=why) if named else replace(found, why=f"{why}: an identifier?")


def _all_different(table: Table, found: ColumnProfile, fact: Fact) -> bool:
    known = table.n <= EXACT and table[found.name].kind == "number"
    exact = fact["distinct"] if known else table.one(f"count(DISTINCT {table[found.name].sql})")[0]
    return bool(exact >= 0.99 * found.present)


def _date(table: Table, base: ColumnProfile, fact: Fact) -> ColumnProfile:
    if "dates" not in fact:
        return replace(base, kind="other", why=f"of type {table[base.name].type.lower()[:40]}")
    return replace(base, kind="date", least=fact["first"], greatest=fact["last"], why="all its values are dates")


def _other(table: Table, base: ColumnProfile, fact: Fact) -> ColumnProfile:
    return replace(base, kind="other", why=f"of type {base.type.lower()[:40]}")


def _text(table: Table, base: ColumnProfile, fact: Fact) -> ColumnProfile:
    present, numbers, dates = base.present, int(fact["numbers"]), int(fact["dates"])
    words: dict[str, int] = fact["words"]
    there = present - sum(words.values())
    worth = 2 * (fact["odd"] + numbers) >= there and fact["odd"] >= SOME * there
    results = RESULTS if int(fact["signs"]) >= SOME * present else ()
    words = {word: count for word, count in words.items() if word not in results}
    codes = bool(fact["padded"] and numbers)  # 0001A among 99213
    lettered = int(fact["lettered"]) >= SOME * there and numbers + fact["point"] + fact["comma"] >= SOME * there > 0
    timed = int(fact["times"]) >= MOSTLY * there
    units: dict[str, int] = fact["unit counts"] if worth and not (codes or lettered or timed) else {}
    units = {unit: count for unit, count in units.items() if not set(unit.split(BOTH)) & {*LIMIT_WORDS}}
    if of_sexes(units):  # 39Y/F: two values in one field
        units = {}
    if len(units) > 2 and base.distinct <= 2 * len(units):  # 1234 AB, 9711 LM: each has a unit of its own
        units = {}
    broken = any(int(fact[form]) for form in FORMS if form.split()[0] in ("comma", "point", "gap", "tick"))
    numbered = fact["narrow"] == fact["broad"] and fact["before"] >= _NEARLY * present
    if (
        units and (numbered or identifies(base.name)) and not broken and base.distinct >= _NEARLY * present >= _FEW
    ):  # PID00271828
        units = {}
    seen: Mapping[str, int] = fact["counts"] if base.distinct <= 20 * TOP else {}
    if not seen and (units or table.spelling.units):
        seen = Counter(text for (text,) in table.rows(table.text(base.name), f"LIMIT {_SAMPLE}") if text)
    if not base.worded and composed(base.name) not in table.spelling.percents:
        base = replace(base, shares=percents(seen))
    if seen and (units or table.spelling.units):
        units, base = _tried(table, base, seen, units)
    levels = bool(fact["units"]) and not units and base.distinct <= _LEVELS
    other = timed or levels or base.worded
    counts = {form: 0 if other else int(fact[form]) for form in (*FORMS, *NAMED, *NEGATIVE)}
    if int(fact["flagged"]) >= SOME * there:  # 14.4+ and 3.1-: marks of what is high and low
        counts["trailing"] = 0
    points = (int(fact["three"]), int(fact["pointed"]))
    months = months_in(fact.get("counts", ())) if counts["named otherwise"] else ()
    forms = Forms(
        there, counts, units, words, points, (numbers, dates), base.name, int(fact["plain"]), lettered, months, results
    )
    base = replace(base, forms=forms, digits=int(fact["odd"]), whole=fact["whole"] == numbers)
    if base.distinct <= 20 * TOP:
        base = _counted(table, base, fact)
    remarks = sum(not is_number(value) for value, _ in base.values) if base.listed else base.distinct
    many = base.distinct > MOST_LISTED or (remarks <= _REMARKS and base.distinct - remarks >= _FEW)
    mostly = MOSTLY if many else _NEARLY  # words among many numbers are remarks
    if lettered:
        return replace(_worded(base, fact, there), codes=numbers > 0)
    if levels and _levels(base, fact["counts"]):
        return _worded(base, fact, there)
    if numbers >= mostly * there > 0 and _padded(base, fact):
        return replace(_worded(base, fact, there), why=_PADDED, codes=True)
    if numbers >= mostly * there > 0:
        why = f"{numbers} of {there} values are numbers" if numbers < there else "its values are numbers"
        odd = fact["odd texts"] if numbers < there else ()
        found = replace(base, kind="number", unread=present - numbers, least=fact["least"], greatest=fact["greatest"])
        found = replace(found, odd=odd)
        return _numbered(table, replace(found, why=why), {**fact, "whole": fact["whole"]})
    if dates >= mostly * there > 0:
        found = replace(base, kind="date", unread=present - dates, least=fact["first"], greatest=fact["last"])
        found = replace(found, odd=fact["odd texts"] if dates < there else ())
        return replace(found, why=f"{dates} of {there} values are dates" if dates < there else "its values are dates")
    if (times := int(fact["times"])) >= mostly * there > 0:
        why = f"{times} of {there} values are times of day" if times < there else "its values are times of day"
        return replace(base, kind="time", unread=present - times, why=why)
    return _worded(base, fact, there)


def _levels(base: ColumnProfile, counts: Mapping[str, int]) -> bool:
    """Whether a column of few values has levels: most of the different ones are no plain numbers."""
    return base.distinct <= _LEVELS and 2 * sum(map(is_number, counts)) <= len(counts)


def _tried(
    table: Table, base: ColumnProfile, counts: Mapping[str, int], units: Mapping[str, int]
) -> tuple[dict[str, int], ColumnProfile]:
    """(the units that are worth stating of a column, whose proposal was tried on its values: it makes no two different
    ones one, reads more fields, those of no column of levels, and is no factor; the column with what units make of it
    that they should not)."""
    if base.worded:
        return {}, base
    numeric = dict(itertools.islice(counts.items(), _SAMPLE))  # the commonest
    spread = dict(itertools.islice(counts.items(), 0, None, 1 + len(counts) // _SAMPLE))
    now = table.spelling.of(base.name)
    if merged := _merged(numeric, now):
        return {}, replace(base, merging=merged)
    if not units or any(base.shares) or _levels(base, counts):
        return {}, base
    parts = tuple(unit for both in units for unit in both.split(BOTH) if is_unit(unit))
    read = sum(count for text, count in numeric.items() if now.number(text) is not None)
    below: tuple[Negative, ...] = (now.negative,) if now.negative else ("", *NEGATIVE)
    for (decimal, thousands), negative in itertools.product(_NUMBERS, below):  # what else is proposed is tried with it
        tried = replace(now, units=(*now.units, *parts), decimal=decimal, thousands=thousands, negative=negative)
        if _merged(numeric, tried):
            return {}, base
        if read < sum(count for text, count in numeric.items() if tried.number(text) is not None):
            factor = factors(spread, tried)
            return ({} if any(factor) else dict(units)), replace(base, scales=factor)
    return {}, base


def _merged(counts: Mapping[str, int], spelling: Spelling) -> str:
    """Two texts of which units make one number, with different ones beside it: <30 and >30; "" where there are none.
    One with a unit and one without are the same value."""
    if not spelling.units:
        return ""
    bare_of, seen = replace(spelling, units=()), dict[float, tuple[str, str]]()
    for text in counts:
        number = spelling.number(text)
        if number is None or bare_of.number(text) is not None:
            continue
        beside = re.sub(r"[\d\s.,]+", "", text)
        other, first = seen.setdefault(number, (beside, text))
        if other != beside and (set(other) | set(beside)) & set("<>≤≥"):
            return f"'{first[:20]}' and '{text[:20]}'"
    return ""


def _padded(base: ColumnProfile, fact: Fact) -> bool:
    """Whether numbers are codes: digits alone, some with zeros before them, of one width or not by chance, that several
    records share."""
    if fact["digits"] < fact["numbers"] or not 2 < base.distinct <= base.present / 2:
        return False
    even = fact["narrow"] == fact["broad"] and fact["coded"] >= ALIKE
    return bool(fact["coded"] >= SOME * fact["numbers"] or even)


def _worded(base: ColumnProfile, fact: Fact, there: int) -> ColumnProfile:
    """What a column of words is."""
    prose = fact["length"] >= 25 or (fact["length"] >= 12 and 2 * fact["spaced"] >= base.present)
    once = base.present - sum(count for _, count in base.values if count > 1) if base.listed else base.distinct
    if base.present >= _FEW and (base.distinct >= _NEARLY * there or 2 * once > there):
        what: Kind = "free text" if prose else "identifier"
        how = "there once" if base.listed else "different"
        return replace(base, kind=what, why=f"{once} of {base.present} values are {how}")
    if prose and base.distinct > MOST_LISTED:
        return replace(base, kind="free text", why=f"{base.distinct} different texts")
    if base.distinct > MOST_LISTED:
        return replace(base, kind="category", listed=False, why=f"{base.distinct} different values: too many to list")
    mixed = f", {int(fact['numbers'])} of them numbers" if fact["numbers"] else ""
    base = replace(base, least=fact["least"], greatest=fact["greatest"])  # of those that are numbers
    return replace(base, kind="category", why=f"{base.distinct} different values{mixed}")


def _counted(table: Table, base: ColumnProfile, fact: Fact) -> ColumnProfile:
    """With its most frequent values, as they are compared; all of them if they are few."""
    rows: dict[str, int] = fact["counts"]
    counts: dict[str, int] = {}
    worded, number = table.worded(base.name), table[base.name].kind == "number"
    spelling = PLAIN if number else table.spelling.of(base.name)
    for value, count in rows.items():
        spelled = value if worded else canonical(value, spelling)
        counts[spelled] = counts.get(spelled, 0) + count
    ordered = tuple(sorted(counts.items(), key=lambda item: (-item[1], item[0])))
    listed = len(rows) <= TOP
    return replace(base, values=ordered, listed=listed, distinct=len(counts) if listed else base.distinct)
