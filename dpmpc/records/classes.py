"""What is predicted, read off the records by margins: with the records of one neighbour changed it is the same, or this
refuses.

Whether a target has two classes, some more or a quantity, and which classes, becomes public. Three counts of records
decide, each of which a neighbour moves by at most `moved` (1, or all records of a person that are kept): those that
have none of the two commonest values, those that have none of the MOST_CLASSES commonest, and those whose value is no
number. Each is 0 or more than `moved`, or nothing is read off (`margins.decided`). And each class is in more records
than `moved`, so that no neighbour lacks it, and none has another one.
"""

from collections.abc import Collection, Sequence
from typing import Any

from dpmpc.errors import RecordError, some
from dpmpc.intake.dictionary import TIMES, different
from dpmpc.intake.reading import only_where
from dpmpc.intake.spelling import canonical, is_number, stating
from dpmpc.intake.table import Table
from dpmpc.lazy import dataclass
from dpmpc.records.derive import TableSettings
from dpmpc.records.draft import MOST_CLASSES, label_of, one_or_none
from dpmpc.records.mapping import first_missing
from dpmpc.records.margins import decided
from dpmpc.records.schema import Classes, Kind, Labels, Range, Target


@dataclass(frozen=True)
class Values:
    """Of a column: how many records have a value, how many of these no number, and the commonest values as they are
    compared, MOST_CLASSES + 1 at most, with how many records have each, in falling order."""

    there: int
    words: int
    common: tuple[tuple[str, int], ...]

    def beyond(self, most: int) -> int:
        """How many records have none of the commonest values, of which there are `most`. Replacing a record changes it
        by one at most: what the commonest hold together does by one, and in the same direction as all that is there."""
        return self.there - sum(count for _, count in self.common[:most])


def values_of(table: Table, name: str) -> Values:
    """The values of a column that are there. Each record's is its own field's: a number whatever its spelling, true and
    false in any case, else the text."""
    number, text = table.number(name), table.text(name)
    finite = f"coalesce(isfinite({number}), false)"
    truth = f"CASE WHEN lower({text}) IN ('true', 'false') THEN lower({text}) ELSE {text} END"
    key = f"CASE WHEN {finite} THEN CAST({number} + 0.0 AS VARCHAR) ELSE {truth} END"
    own = f"(SELECT {key} AS k, NOT {finite} AS word, {TIMES} AS c FROM {different(table, name)})"
    total = "CAST(coalesce(sum(c), 0) AS BIGINT)"
    there, words = table.one(total, f"CAST(coalesce(sum({only_where('word', 'c')}), 0) AS BIGINT)", relation=own)
    common = table.rows(f"k, {total} AS held", f"GROUP BY k ORDER BY held DESC, k LIMIT {MOST_CLASSES + 1}", own)
    return Values(int(there), int(words), tuple((canonical(str(k)), int(held)) for k, held in common))


def target_read(table: Table, asked: TableSettings, moved: int, quantity: Range) -> Target:
    """What is predicted: `quantity` where it is one, else a label or classes.

    Guarantees: see above; tests/records/test_classes.py tries neighbours.
    Errors: RecordError where a neighbour could have another answer; a target that suits no task.
    """
    if asked.kind == "number":
        return quantity
    seen = values_of(table, asked.target)
    kind = asked.kind or ("two" if asked.positive is not None else _kind(seen, moved))
    if kind == "number":
        return quantity
    return _classes(table, asked, seen, moved) if kind == "several" else _labels(table, asked, seen, moved)


def _kind(seen: Values, moved: int) -> Kind:
    """What a target is of which no task was stated. Where that is not certain, one that `_labels` or `_classes` then
    refuses: for it has values beyond theirs, or one in few records."""
    counts = seen.beyond(2), seen.beyond(MOST_CLASSES), seen.words
    more, many, words = (decided(count, moved, moved) for count in counts)
    if more and many and words is False:
        return "number"
    return "several" if more and words else "two"


def _labels(table: Table, asked: TableSettings, seen: Values, moved: int) -> Labels:
    name, held = asked.target, dict(seen.common)
    if len(held) == 1 and first_missing(table, name):
        raise RecordError(*one_or_none(name, next(iter(held))))
    _check_there(table, name)
    if len(held) != 2 or _rare(held, moved):
        more = " or more" if len(held) > MOST_CLASSES else ""
        what = f"has {len(held)}{more}" if len(held) != 2 else f"has one in {_few(_rare(held, moved), held)}"
        raise RecordError(
            f"a label has two values, each in {_enough(moved)}; target '{name}' {what} ({some(sorted(held), 6)}); "
            "state its <<classes>>, choose a binary target, <<task=ridge>> for a quantity, or <<task=softmax>> for "
            "classes"
        )
    return label_of(name, _ordered(held), asked.positive)


def _classes(table: Table, asked: TableSettings, seen: Values, moved: int) -> Classes:
    name, held = asked.target, dict(seen.common)
    _check_there(table, name)
    rare = _rare(held, moved)
    if not 2 <= len(held) <= MOST_CLASSES or rare:
        alone = len(held) <= MOST_CLASSES and rare
        what = f"{_few(rare, held)} {'has' if _few(rare, held) == 'one record alone' else 'have'} {some(rare, 3)}"
        raise RecordError(
            f"a target has 2 to {MOST_CLASSES} classes, each in {_enough(moved)}; of '{name}' "
            f"{what if alone else f'it has {len(held)} or more'}; correct it, "
            "state its <<classes>> without a schema or in one, or choose <<task=ridge>> for a quantity"
        )
    return Classes(name, tuple(_ordered(held)))


def _rare(held: dict[str, int], moved: int) -> list[str]:
    """The values of which it is not certain that every neighbour has them."""
    return [value for value, count in held.items() if not decided(count, moved, moved)]


def _enough(moved: int) -> str:
    return "two records at least" if moved == 1 else f"more than {moved:,} records, as many as a person has"


def _few(rare: Sequence[str], held: dict[str, int]) -> str:
    most = max((held[value] for value in rare), default=0)
    return "one record alone" if most == 1 else f"{most:,} records at most"


def _ordered(names: Collection[Any]) -> list[str]:
    """Numbers in their order, else texts in theirs."""
    return sorted(names, key=float) if all(map(is_number, names)) else sorted(names, key=str.encode)


def _check_there(table: Table, name: str) -> None:
    """Errors: a record misses its target, as a line of totals does, and is not stated to count as the zero vector."""
    if table.spelling.misfits != "zero" and (record := first_missing(table, name)):
        raise RecordError(
            f"the target is never missing; '{name}' is in record {record}; remove such records, or let them count as "
            f"zero vectors: {stating(misfits='zero')}",
            f"the target is never missing; '{name}' is in some owner's records",
        )
