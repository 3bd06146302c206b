"""Which keys of JSON objects are columns: a table's columns are public, and one record alone makes none."""

from collections import Counter
from collections.abc import Collection, Mapping

from dpmpc.errors import RecordError, UsageError, sayable, some
from dpmpc.intake.spelling import composed, stating
from dpmpc.intake.table import check_width
from dpmpc.lazy import dataclass
from dpmpc.records.margins import decided

PART = 20  # a key is a column where more than one of so many records have it
_SHOWN = 40  # names that a message states whole


@dataclass(frozen=True)
class Keys:
    """The rule. `stated`: names that somebody said without the records: then these are the columns, where any record
    has them, and no others. `by_person`: neighbours differ in all records of a person."""

    stated: tuple[str, ...] = ()
    by_person: bool = False

    def columns(self, counts: Mapping[str, int], n: int, source: str) -> tuple[str, ...]:
        """The keys that are columns, by their names, of n records of which `counts` have each key.

        Guarantees: with one record replaced, added or left out the columns are the same, or this refuses. A key's count
        and n // PART move by one at most, and never towards each other by two: where another count could be on the
        other side of the bound, `decided` says None. A key that no record has is below every bound (max(..., 1)). Of
        persons, any number of whose records may change, every key is in every record.
        Errors: RecordError for a key of which that is not certain; UsageError for names that differ in case alone.
        """
        if self.stated:
            asked = set(map(composed, self.stated))
            return _apart(sorted(key for key in counts if composed(key) in asked), source)
        if self.by_person:
            answers = {key: True if count == n else None for key, count in counts.items()}
        else:
            answers = {key: decided(count, max(n // PART, 1), 1) for key, count in counts.items()}
        names = sorted(key for key, answer in answers.items() if answer is not False)
        if unsure := sorted(key for key, answer in answers.items() if answer is None):
            raise RecordError(
                f"{_RULES[self.by_person]}; {source} has '{unsure[0][:80]}' in {counts[unsure[0]]:,} of {n:,}; "
                f"{_way(names)}",
                f"{_RULES[self.by_person]}; an owner's have some of which that is not certain",
            )
        return _apart(names, source)


_RULES = {
    False: f"a key of JSON records is a column where clearly more than one of {PART} records have it",
    True: "where a promise is of persons, every JSON record has every key, or the columns are stated",
}


def _way(names: Collection[str]) -> str:
    if len(names) > _SHOWN:
        return "state which keys are columns with <<names>>"
    return f"state which keys are columns: {stating(names=tuple(names))}, without those that are none"


def _apart(names: list[str], source: str) -> tuple[str, ...]:
    """The names. Errors: there are none or too many; two differ in nothing but case."""
    check_width(len(names), source)
    if not names:
        raise UsageError(f"JSON records have keys that are columns; {sayable(source)} has none; correct the source")
    lowered = Counter(name.lower() for name in names)
    if double := [name for name in names if lowered[name.lower()] > 1]:
        raise UsageError(
            f"column names differ in more than case; {sayable(source)} has {sayable(some(double, 6))}; rename them"
        )
    return tuple(names)
