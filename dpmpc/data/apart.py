"""What a look says of numbers that seem to stand for something else: codes of surveys, dates written as one number,
limits of what is measured, two numbers in one field."""

import itertools
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from dpmpc.data.reading import literal
from dpmpc.data.spelling import is_number, is_unit, stating
from dpmpc.data.table import Table

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
LIMIT = re.compile(r"(<=?|>=?|≤|≥)\s*[\d.,]*\d\s*(\D*)")  # what is below or above what can be measured
_PAIR = re.compile(r"\d{2,3} ?[/xX×] ?\d{2,3}")
_DAY = re.compile(r"(19|20)\d\d(0[1-9]|1[0-2])(0[1-9]|[12]\d|3[01])")


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


def paired(c: "Looked") -> bool:
    """Whether most fields of a column have two numbers."""
    return 2 * sum(count for text, count in c.values if _PAIR.fullmatch(text)) >= c.present


def days(table: Table, columns: Sequence["Looked"]) -> Iterator[str]:
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


def limits(columns: Sequence["Looked"]) -> Iterator[str]:
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
        if paired(c):
            yield (
                f"column '{c.name}' has two numbers in a field, such as blood pressure, and is read as words; to read "
                f"it as two columns: {stating(pairs=(c.name,))}"
            )
