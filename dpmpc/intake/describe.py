"""What a table holds, column by column, for its owner's own eyes: nothing here is protected."""

import datetime
from collections.abc import Sequence
from typing import Any

import numpy as np

from dpmpc.errors import Spelling as Said
from dpmpc.errors import number_of, python_spelling, spelt
from dpmpc.intake.batched import COLUMN, SMALL, alike
from dpmpc.intake.column_profile import ColumnProfile
from dpmpc.intake.once import once, selected
from dpmpc.intake.profile import TableProfile, explore
from dpmpc.intake.reading import literal
from dpmpc.intake.staging import held
from dpmpc.intake.table import Table
from dpmpc.lazy import dataclass

BINS = 20
_TOP = 12
_AT_ONCE = 8  # columns a query
_EPOCH = datetime.date(1970, 1, 1)
NOT_PUBLIC = (
    "ranges and lists that come from one's own data are not public: the guarantee does not cover them. Set them"
    " from what is known without the records, then set bounds to public"
)


@dataclass(frozen=True)
class Described:
    """One column and a picture of it. `bars`: a number's or a date's histogram over [least, greatest], or a text's most
    frequent values. `notes`: what its owner may want to look at."""

    looked: ColumnProfile
    bars: tuple[tuple[str, int], ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def ends(self) -> tuple[str, str]:
        """Its least and greatest value, as words."""
        c = self.looked
        if c.least is None or c.greatest is None or c.kind == "category":
            return "", ""
        if c.dates:
            return _day(c.least), _day(c.greatest)
        return f"{c.least:g}", f"{c.greatest:g}"

    def to_json(self, spelling: Said = python_spelling) -> dict[str, Any]:
        """The same as JSON values, with settings as a surface writes them."""
        c = self.looked
        return {
            "name": c.name,
            "kind": c.kind,
            "role": c.role,
            "type": c.type,
            "missing": c.missing,
            "not_read": c.unread,
            "distinct": c.distinct,
            "least": _day(c.least) if c.dates and c.least is not None else c.least,
            "greatest": _day(c.greatest) if c.dates and c.greatest is not None else c.greatest,
            "values": dict(self.bars),
            "used": c.used,
            "does": c.does,
            "change": spelt(c.change, spelling),
            "why": c.why,
            "notes": list(self.notes),
        }


@dataclass(frozen=True)
class Description:
    """A look at a source, with a picture of each column."""

    intake: TableProfile
    columns: tuple[Described, ...]

    def to_json(self, spelling: Said = python_spelling) -> dict[str, Any]:
        """The same as JSON values, with settings as a surface writes them."""
        found = self.intake
        return {
            "source": found.source,
            "records": found.rows,
            "stated": found.stated.options(),
            "proposed": found.proposed.options(),
            "findings": [spelt(line, spelling) for line in found.findings],
            "columns": [column.to_json(spelling) for column in self.columns],
        }


def describe(
    table: Table, *, target: str | None = None, owners: str | None = None, drop: Sequence[str] = ()
) -> Description:
    """All columns of a table, in its order, read as its owner stated and as is proposed beyond that.

    Errors: the source cannot be read; a named column is not there.
    """
    intake, plain = explore(table, target=target, owners=owners, drop=drop)
    plain = held(plain, plain.names)
    drawn = _histograms(plain, [c for c in intake.columns if _is_drawn(c)])
    columns = tuple(Described(c, drawn[c.name] if c.name in drawn else _bars(c), _notes(c)) for c in intake.columns)
    table.unchanged()
    return Description(intake, columns)


def _is_drawn(c: ColumnProfile) -> bool:
    """Whether the picture of a column is a histogram over its range."""
    ends = c.kind in ("number", "date", "identifier") and c.least is not None and c.greatest is not None
    return ends and not (c.listed and c.distinct <= BINS and c.kind == "number")


def _bars(c: ColumnProfile) -> tuple[tuple[str, int], ...]:
    if c.kind == "number" and c.least is not None and c.greatest is not None:
        return tuple(sorted(((v, k) for v, k in c.values if _is_float(v)), key=lambda item: float(item[0])))
    return tuple((value[:40], count) for value, count in c.values[:_TOP])


def _histograms(table: Table, columns: Sequence[ColumnProfile]) -> dict[str, tuple[tuple[str, int], ...]]:
    """Those of some columns; of a small table many a query: one that reads texts takes longer to plan than to run."""
    found, kinds = dict[str, dict[int, int]](), {c.name: c for c in columns}
    for dates in (True, False) if 0 < table.n <= SMALL else ():
        for some in alike(table, [c.name for c in columns if (c.kind == "date") is dates], table.n):
            found |= {name: {} for name in some.names}
            value = some.table.days(some.name) if dates else some.table.number(some.name)
            ends = ([repr(end(kinds[name])) for name in some.names] for end in (_low, _half))
            low, half = (f"CAST([{', '.join(map(literal, each))}][{COLUMN} + 1] AS DOUBLE)" for each in ends)
            values = selected(f"{COLUMN} AS c, {value} AS v, {low} AS low, {half} AS half", some.relation)
            place = _place("v", "low", "half")
            for c, at, count in table.rows(f"c, {place}, count(*)", "WHERE isfinite(v) GROUP BY 1, 2", values):
                found[some.names[c]][at] = count
    rest = [c for c in columns if c.name not in found]
    for begin in range(0, len(rest), _AT_ONCE):
        some_of = rest[begin : begin + _AT_ONCE]
        for c, counted in zip(some_of, table.one(*(_counted(table, c) for c in some_of)), strict=True):
            found[c.name] = dict(counted or {})
    return {c.name: _histogram(c, found[c.name]) for c in columns}


def _low(c: ColumnProfile) -> float:
    """Half of the least value: halves, for the width may overflow."""
    assert c.least is not None
    return c.least / 2


def _half(c: ColumnProfile) -> float:
    assert c.least is not None and c.greatest is not None
    return c.greatest / 2 - c.least / 2


def _place(value: str, low: str, half: str) -> str:
    share = f"CASE WHEN {half} = 0 THEN 0 ELSE ({value} / 2 - {low}) / {half} END"
    return f"least({BINS - 1}, CAST(floor({share} * {BINS}) AS INTEGER))"


def _counted(table: Table, c: ColumnProfile) -> str:
    """SQL for a map of how many values lie in each bin of a column's range."""
    value = once(table.days(c.name) if c.kind == "date" else table.number(c.name))
    place = _place(value, *(f"CAST('{end!r}' AS DOUBLE)" for end in (_low(c), _half(c))))
    return f"histogram(CASE WHEN isfinite({value}) THEN {place} END)"


def _histogram(c: ColumnProfile, counted: dict[int, int]) -> tuple[tuple[str, int], ...]:
    assert c.least is not None and c.greatest is not None
    low, high, dates = c.least, c.greatest, c.kind == "date"
    if low == high:
        return ((_day(low) if dates else f"{low:g}", sum(counted.values())),)
    ends = 2 * np.linspace(low / 2, high / 2, BINS + 1)[:-1]  # halves, as above
    return tuple((_day(v) if dates else f"{v:.4g}", int(counted.get(k, 0))) for k, v in enumerate(ends))


def _notes(c: ColumnProfile) -> tuple[str, ...]:
    notes = []
    if c.present and 2 * c.missing >= c.rows:
        notes.append("mostly missing")
    most = max((count for _, count in c.values), default=0)
    if c.kind in ("number", "category") and c.distinct > 1 and most >= 0.99 * c.present:
        notes.append("nearly constant")
    folded: dict[str, str] = {}
    for value, _ in c.values if c.kind == "category" else ():
        if (other := folded.setdefault(value.casefold(), value)) != value:
            notes.append(f"{other[:20]!r} and {value[:20]!r} differ in case only")
            break
    if c.kind in ("number", "date") and c.unread:
        notes.append(
            f"{number_of(c.unread, 'field is', 'fields are')} no {c.kind}"
            + (", such as " if c.odd else "")
            + ", ".join(f"{word[:20]!r}" for word in c.odd)
        )
    return tuple(notes)


def _is_float(value: str) -> bool:
    try:
        float(value)
    except ValueError:
        return False
    return True


def _day(days: float) -> str:
    """A date of days since 1970-01-01, with its time of day if it has one."""
    date = (_EPOCH + datetime.timedelta(days=int(np.floor(days)))).isoformat()
    return date
