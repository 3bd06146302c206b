"""Columns of which each alone nearly tells the target: it may have been known only afterwards, or say the same in other
words. For the owner's own eyes, before anything is spent: a look at some records, that nothing protects."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmpc.intake.column_profile import dropping
from dpmpc.intake.once import selected
from dpmpc.intake.spelling import canonical
from dpmpc.intake.table import Table

Values = NDArray[np.float64] | Sequence[str | None]
Places = NDArray[np.int64]
_RECORDS, _FIELDS = 2000, 100_000  # that are looked at, at most
_LEAST = 50  # records: of fewer a column may tell the target by chance
_OTHERS = 10  # records without the commonest class, at least
_WRONG = 0.05  # of the guesses that the commonest class gets wrong: so few are wrong by the column
_SQUARED = 0.999  # the squared correlation of two numbers from which on they are nearly the same
_PLACE = '"(place)"'  # no column of records has such a name
_FEW = 20  # different numbers: more are told by ranges, of so many records each


def giving(table: Table, target: str, features: Mapping[str, str], number: bool) -> Iterator[tuple[str, str]]:
    """Each of some columns that nearly gives the target by itself, with a line on it. `features`: what each is read
    as, "number", "date" or "text"; `number`: whether the target is a quantity. Cost: one reading of the table as it is
    held, but for what it keeps, or of the first records of a source."""
    features = {name: kind for name, kind in features.items() if name in table and name != target}
    if not features or target not in table:
        return
    most = looked_at(len(features))
    step = -(-table.n // most) or 1
    # of a column that the table keeps, the same records as of one that is read
    kept = {} if table.parsed else {
        name: column.part_of(slice(step - 1, None, step))
        for name, kind in features.items()
        if kind == "number" and table[name].kind == kind
        and (column := table.kept.of(table.relation, table.number(name))) is not None
    }  # fmt: skip
    names = [target, *(name for name in features if name not in kept)]
    asked = ", ".join(f"{_field(table, name)} AS f{k}" for k, name in enumerate(names))
    fields = ", ".join(f"f{k}" for k in range(len(names)))
    if table.parsed:
        looked = f"(SELECT * FROM {table.relation} LIMIT {most})"
    else:  # chosen as they stand: what is made of a field is made of few
        numbered = f"(SELECT *, row_number() OVER () AS {_PLACE} FROM {table.relation})"
        looked = f"(SELECT * FROM {numbered} WHERE {_PLACE} % {step} = 0)"
    if kept:
        asked, fields = f"{asked}, {_PLACE}", f"{fields}, {_PLACE}"
    rows = table.rows(fields, "WHERE f0 IS NOT NULL", selected(asked, looked))
    truth, *columns = zip(*rows, strict=True) if rows else ((), *([()] * (len(names) - 1 + bool(kept))))
    place = np.array(columns.pop() if kept else (), dtype=np.int64) // step - 1
    found = dict(zip(names[1:], columns, strict=True))
    read = {
        name: kept[name][place] if name in kept else _read(table, name, kind, found[name])
        for name, kind in features.items()
    }
    yield from giving_of(read, _read(table, target, "number" if number else "text", truth), number)


def looked_at(columns: int) -> int:
    """How many records are looked at, of so many columns."""
    return max(_LEAST, min(_RECORDS, _FIELDS // (1 + columns)))


def giving_of(columns: Mapping[str, Values], truth: Values, number: bool) -> Iterator[tuple[str, str]]:
    """The same of the values of columns and target, each an array of floats, or a list of texts."""
    classes = _coded(truth)
    for name, values in columns.items():
        if number:
            said = _alike(values, truth) if isinstance(values, np.ndarray) and isinstance(truth, np.ndarray) else ""
        else:
            ways = (_ranges(values), _sides(values, classes)) if isinstance(values, np.ndarray) else (_coded(values),)
            said = max((_told(way, classes) for way in ways), key=len)
        if said:
            way = f"leave it out: {dropping([name])}"
            yield name, f"column '{name}' alone {said}; where that is known only afterwards, or is the same, {way}"


def _field(table: Table, name: str) -> str:
    """SQL for a field as it is held; NULL where it is missing."""
    kind = table[name].kind
    value = table.number(name) if kind == "number" else table.days(name) if kind == "date" else table.text(name)
    return f"CASE WHEN NOT {table.missing(name)} THEN {value} END"


def _read(table: Table, name: str, kind: str, values: Sequence[Any]) -> Values:
    """The values of some fields: floats, NaN for none, of a column of numbers or dates; else texts."""
    if kind not in ("number", "date"):
        known = {each: None if each is None else canonical(str(each)) for each in {*values}}
        return [known[each] for each in values]
    of = table.spelling.of(name)
    said = of.number if kind == "number" else of.days
    read = (said(each) if isinstance(each, str) else each for each in values)
    return np.array([np.nan if each is None else each for each in read], dtype=np.float64)


def _coded(values: Sequence[Any] | NDArray[np.float64]) -> Places:
    """The number of each value among different ones."""
    known: dict[Any, int] = {}
    return np.fromiter((known.setdefault(value, len(known)) for value in values), np.int64, len(values))


def _ranges(values: NDArray[np.float64]) -> Places:
    """Which of the ranges of a column's numbers each is in; equal ones are in one."""
    there = np.isfinite(values)
    ends = np.unique(values[there])
    if len(ends) > _FEW:
        place = np.searchsorted(np.sort(values), values) // _FEW  # equal numbers have one place
    else:
        place = np.searchsorted(ends, values)
    return np.where(there, place, len(values))


def _sides(values: NDArray[np.float64], classes: Places) -> Places:
    """On which side each of a column's numbers is of the one that parts the classes best."""
    there = np.isfinite(values)
    ends, place = np.unique(values[there], return_inverse=True)
    if not len(ends):
        return np.zeros(len(values), dtype=np.int64)
    counts = np.zeros((len(ends), classes.max() + 1))
    np.add.at(counts, (place, classes[there]), 1)
    below = np.cumsum(counts, axis=0)
    right = below.max(axis=1, initial=0) + (counts.sum(axis=0) - below).max(axis=1, initial=0)
    return np.where(there, values > ends[np.argmax(right)], 2)


def _told(values: Places, classes: Places) -> str:
    """What a column says of classes, by the commonest one of other records with the same value."""
    if len(classes) < _LEAST:
        return ""
    several = classes.max() + 1
    pairs, counts = np.unique(values * several + classes, return_counts=True)
    order = np.lexsort((counts, pairs // several))  # of each value the commonest class is the last
    group, counts = pairs[order] // several, counts[order]
    last = np.append(group[1:] != group[:-1], True)
    before = np.where(np.append(False, group[1:] == group[:-1]), np.append(0, counts[:-1]), 0)  # the next to it
    right = int(counts[last & (counts > 1) & (counts - 1 >= before)].sum())
    wrong, without = len(classes) - right, len(classes) - int(np.bincount(classes).max())
    if without < _OTHERS or wrong > _WRONG * without:
        return ""
    return f"tells the target of {right} of {len(classes)} records that were looked at"


def _alike(values: NDArray[np.float64], truth: NDArray[np.float64]) -> str:
    """What a column of numbers says of a quantity, by a straight line."""
    both = np.isfinite(values) & np.isfinite(truth)
    if both.sum() < max(_LEAST, len(truth) / 2):
        return ""
    x, y = _of_one(values[both]), _of_one(truth[both])
    if not (np.ptp(x) and np.ptp(y)):
        return ""
    found = float(np.corrcoef(x, y)[0, 1] ** 2)
    return f"gives the target by a straight line (R2 {found:.4f})" if found >= _SQUARED else ""


def _of_one(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Finite numbers as parts of the largest, whose squares are no larger than a number may be: no record's value is
    a warning of its own."""
    return np.asarray(values / (np.abs(values).max() or 1.0))
