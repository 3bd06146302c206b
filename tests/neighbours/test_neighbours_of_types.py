"""One odd value of a column's own type: nothing public differs, the vector by no more than is claimed, no other row."""

import itertools
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.neighbours.entries import ENTRIES, Seen, differ
from tests.neighbours.types import HOLDERS, TYPES, declared, pairs, table_of

N, PLACES = 60, (0, 31, 59)
OF_TYPES = ("columns", "mapped", "predict", "stats", "synth by a survey", "train by a survey")
_BEFORE: dict[tuple[str, str, str, int], Seen] = {}


def cases(part: int, of: int) -> Iterator[tuple[str, str, str, Any]]:
    """Every `of`-th of all entries with every holder, type and value; by command, all of them."""
    every = ((entry, *pair) for pair in pairs() for entry in OF_TYPES)
    yield from itertools.islice(every, part, None, of)


def held_against(entry: str, holder: str, kind: str, value: Any, n: int, place: int) -> str:
    """What differs that must not; "" for nothing, "refused" where either is, and "another" where its holder declares
    another type for it."""
    with tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory() as other:
        tables = table_of(kind, n), table_of(kind, n, {place: value})
        sources = [HOLDERS[holder](table, Path(at)) for table, at in zip(tables, (one, other), strict=True)]
        if declared(sources[0]) != declared(sources[1]):
            return "another"
        key = entry, holder, kind, n
        if key not in _BEFORE:
            _BEFORE.clear()
            _BEFORE[key] = ENTRIES[entry](sources[0], Path(one))
        before, after = _BEFORE[key], ENTRIES[entry](sources[1], Path(other))
    if before.refused:
        return "refused" if after.refused == before.refused else f"refused otherwise: {before.refused} {after.refused}"
    if after.refused:
        return f"refused: {after.refused}"
    return differ(before, after, [place])


def all_held(part: int, of: int, n: int = N) -> tuple[Counter[str], list[str]]:
    """How many pairs held, and what did not."""
    seen, wrong = Counter[str](), list[str]()
    for k, (entry, holder, kind, value) in enumerate(cases(part, of)):
        text = held_against(entry, holder, kind, value, n, PLACES[k % 3] * n // N)
        seen[text if text in ("refused", "another") else entry] += 1
        if text not in ("", "refused", "another"):
            wrong.append(f"{entry} of {holder}: {str(value)[:40]} among {kind}: {text}")
    return seen, wrong


@pytest.mark.usefixtures("small_tables")
@pytest.mark.parametrize("part", range(2))
def test_one_odd_value_of_a_declared_type_changes_nothing_public(part: int) -> None:
    seen, wrong = all_held(part * 47, 97)
    assert not wrong and sum(seen.values()) > 30 and seen["refused"] < sum(seen.values()) / 2


@pytest.mark.parametrize("kind", ["double", "single", "decimal", "dictionary", "moment with a zone"])
def test_a_parquet_file_is_read_alike_with_and_without_ends(kind: str) -> None:
    """Of some columns its footer says that all values are numbers: one that is none is no matter of others."""
    for holder, value in itertools.product(("Parquet", "Parquet without ends"), (None, *TYPES[kind].odd)):
        assert held_against("mapped", holder, kind, value, N, 31) in ("", "refused")
