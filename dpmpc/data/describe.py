"""What a table holds, column by column, for its owner's own eyes: nothing here is protected."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpmpc.data.derive import DATE, MOST_CLASSES, survey
from dpmpc.data.schema import Categorical, Classes, Column, Labels, Numeric, Range, Schema
from dpmpc.data.spelling import canonical, is_number
from dpmpc.data.table import Table, held
from dpmpc.errors import UsageError

BINS = 20
_TOP = 12
_LISTED = 1000
NOT_PUBLIC = (
    "ranges and lists that are typed in from one's own data are not public: the guarantee does not cover them. Set them"
    " from what is known without the records, then set bounds to public"
)


@dataclass(frozen=True)
class Described:
    """One column. `bars`: a number's histogram over [least, greatest], or a text's most frequent values."""

    name: str
    kind: str  # number, text, date, other
    type: str
    rows: int
    missing: int
    distinct: int  # exact up to a thousand, then an estimate within a few percent
    least: Any = None
    greatest: Any = None
    middle: float | None = None
    bars: tuple[tuple[str, int], ...] = ()
    notes: tuple[str, ...] = ()
    values: tuple[str, ...] = ()  # a text's distinct values, if they are few

    @property
    def present(self) -> int:
        return self.rows - self.missing


def describe(table: Table) -> list[Described]:
    """All columns of a table, in its order. Errors: the source cannot be read."""
    plain = held(table, table.names)
    usable = [column.name for column in plain.columns if column.kind in ("text", "number")]
    seen = survey(plain, usable) if usable else {}
    rows = plain.n
    result = []
    for column in plain.columns:
        if column.name not in seen:
            kinds, present = plain.one(f"approx_count_distinct({column.sql})", f"count({column.sql})")
            note = plain.refusal(column).partition("; ")[2]
            result.append(Described(column.name, column.kind, column.type, rows, rows - present, kinds, notes=(note,)))
            continue
        present, odd, low, high = seen[column.name]
        numeric = present > 0 and odd == 0
        describer = _number if numeric else _text
        result.append(describer(plain, column.name, table[column.name].type, rows, present, low, high))
    table.unchanged()
    return result


def _number(table: Table, name: str, type_: str, rows: int, present: int, low: Any, high: Any) -> Described:
    value = table.number(name)
    distinct, middle = table.one(f"approx_count_distinct({value})", f"approx_quantile({value}, 0.5)")
    if distinct <= _LISTED:
        distinct = table.one(f"count(DISTINCT {value})")[0]
    if distinct <= BINS:
        found = table.rows(f"{value} AS v, count(*)", f"WHERE isfinite({value}) GROUP BY 1 ORDER BY 1")
        bars = tuple((f"{number:.6g}", int(count)) for number, count in found)
    else:
        share = f"({value} / 2 - {low / 2!r}) / {high / 2 - low / 2!r}"  # halves, for the width may overflow
        place = f"least({BINS - 1}, CAST(floor({share} * {BINS}) AS INTEGER))"
        counted = dict(table.rows(f"{place} AS k, count(*)", f"WHERE isfinite({value}) GROUP BY 1"))
        bars = tuple((f"{v:.4g}", int(counted.get(k, 0))) for k, v in enumerate(np.linspace(low, high, BINS + 1)[:-1]))
    most = max((count for _, count in bars), default=0)
    notes = _notes(rows, present, distinct, most if distinct <= BINS else 0, number=True)
    return Described(name, "number", type_, rows, rows - present, distinct, low, high, middle, bars, notes)


def _text(table: Table, name: str, type_: str, rows: int, present: int, low: Any, high: Any) -> Described:
    text, where = table.text(name), f"WHERE NOT {table.missing(name)}"
    if not present:
        return Described(name, "text", type_, rows, rows, 0, notes=("empty",))
    distinct = table.one(f"approx_count_distinct({text})")[0]
    top = table.rows(f"{text} AS t, count(*) AS k", f"{where} GROUP BY 1 ORDER BY k DESC, t LIMIT {_LISTED + 1}")
    if len(top) <= _LISTED:
        distinct = len(top)
    bars = tuple((str(value)[:40], int(count)) for value, count in top[:_TOP])
    ordered = sorted(str(value) for value, _ in top)
    notes = _notes(rows, present, distinct, int(top[0][1]), number=False)
    odd = [value for value in ordered if is_number(value)]
    if odd and len(odd) < len(ordered):
        words = [value for value in ordered if not is_number(value)]
        notes += (f"mostly numbers but for {words[0][:20]!r}",) if 2 * len(odd) > len(ordered) else ()
    folded: dict[str, str] = {}
    for value in ordered:
        if (other := folded.setdefault(value.casefold(), value)) != value:
            notes += (f"{other[:20]!r} and {value[:20]!r} differ in case only",)
            break
    if all(DATE.fullmatch(value) for value in ordered):
        notes += ("dates: make them numbers, such as days since a fixed day",)
    spelled = tuple(sorted({canonical(value) for value in ordered})) if len(top) <= _LISTED else ()
    shortest = ordered[0][:40], ordered[-1][:40]
    return Described(name, "text", type_, rows, rows - present, distinct, *shortest, None, bars, notes, spelled)


def _notes(rows: int, present: int, distinct: int, most: int, *, number: bool) -> tuple[str, ...]:
    notes = []
    if not present:
        return ("empty",)
    if distinct <= 1:
        notes.append("constant")
    elif most >= 0.99 * present:
        notes.append("nearly constant")
    if distinct > 2 and distinct >= 0.9 * present:
        notes.append("nearly every value is there once: an identifier?" if not number else "nearly all values differ")
    if rows > present and rows - present >= 0.5 * rows:
        notes.append("mostly missing")
    return tuple(notes)


def draft(columns: list[Described], target: str | None, drop: tuple[str, ...] = ()) -> Schema:
    """A first schema, read off the records (bounds "data"), to be edited. Errors: no such target, or not of two classes
    and no number."""
    by_name = {column.name: column for column in columns}
    if target is None or target not in by_name:
        raise UsageError(
            f"a schema names the column to predict; got {target or 'none'}; add --target with one of"
            f" {', '.join(list(by_name)[:12])}"
        )
    kept: list[Column] = []
    for column in columns:
        if column.name in (target, *drop) or column.kind in ("date", "other") or not column.present:
            continue
        if column.kind == "number":
            kept.append(Numeric(column.name, float(column.least), float(column.greatest)))
        elif (
            column.values
            and not any(note.startswith("dates") for note in column.notes)
            and not (column.distinct > 2 and column.distinct >= 0.9 * column.present)
        ):
            kept.append(Categorical(column.name, column.values))
    return Schema(tuple(kept), _goal(by_name[target]), bounds="data")


def _goal(column: Described) -> Labels | Classes | Range:
    if column.kind == "number" and column.distinct > 2:
        return Range(column.name, float(column.least), float(column.greatest))
    values = (
        column.values if column.kind == "text" else tuple(canonical(repr(v)) for v in (column.least, column.greatest))
    )
    if column.kind == "text" and 2 < len(values) == column.distinct <= MOST_CLASSES:
        return Classes(column.name, values)
    if len(values) != 2 or column.distinct != 2:
        raise UsageError(
            f"a target has two classes or numbers; '{column.name}' has {column.distinct} values; name another"
        )
    return Labels(column.name, (values[1],), (values[0],))


def balance(columns: list[Described], target: str) -> Mapping[str, int]:
    """How many records have each value of a target with few values."""
    column = next((column for column in columns if column.name == target), None)
    if column is None:
        raise UsageError(f"a column must exist to be used; there is no '{target}'; check --target")
    if column.kind == "text":
        return dict(column.bars)
    return dict(column.bars) if column.distinct <= BINS else {}
