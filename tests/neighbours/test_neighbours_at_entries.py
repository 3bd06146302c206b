"""Every public entry, for every kind of source: odd records change nothing public, the vector that is sent by no more
than the plan claims for so many records, and no row of another record."""

import itertools
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from dpmpc.records import keys
from tests.neighbours.entries import ENTRIES, OF_FRAMES, OF_SITES, OF_TARGETS, Seen, differ
from tests.neighbours.tables import KINDS, SOURCES, UGLY, Rows, differing, neighbours

N = 60
GROUP = 12  # odd records of a table that is compared whole; at 400 records far from what a twentieth of them decides
ANOTHER_KEY = "another key"  # of JSON records: no value, but a column
_JSON = ("JSON lines", "JSON")
OF_TEXTS = ("CSV", "JSON lines", "JSON", "a folder of CSV")  # whose other columns may hold anything, too
_ALONE = ("nul", "very long", ANOTHER_KEY)  # which some source refuses with all that stands beside, or are no value
_BEFORE: dict[tuple[str, str, str, int], Seen] = {}  # of the table without odd records


@dataclass(frozen=True)
class Case:
    """An entry with a source and a kind of column x, and the odd values that stand together in x, or in the target."""

    entry: str
    source: str
    kind: str
    names: tuple[str, ...]
    column: str = "x"


def cases(part: int, of: int, group: int = GROUP) -> Iterator[Case]:
    """Every `of`-th of all entries, sources, kinds of columns and odd values, so many values together; those of one
    source and kind one after the other."""
    every = list[Case]()
    for source, kind, entry in itertools.product(SOURCES, KINDS, ENTRIES):
        if (entry == "estimator" and source not in OF_FRAMES) or (entry == "join" and source not in OF_SITES):
            continue
        together = [name for name in UGLY if name not in _ALONE]
        groups = [tuple(together[at : at + group]) for at in range(0, len(together), group)]
        alone = [
            name for name in _ALONE if (name != ANOTHER_KEY or source in _JSON) and (name != "very long" or of == 1)
        ]
        every += [Case(entry, source, kind, names) for names in (*groups, *((name,) for name in alone))]
        if entry in OF_TARGETS and source in OF_TEXTS and kind in ("whole", "fractions"):
            every += [Case(entry, source, kind, names, "z") for names in groups]
    yield from every[part::of]


@dataclass
class Found:
    """What came of cases: tables compared, values that a table is refused with, and what differs that must not."""

    tables: int = 0
    refused: int = 0
    wrong: tuple[str, ...] = ()


def held_against(case: Case, n: int, place: int, found: Found) -> None:
    """Compares a table with and without its odd records. A group that differs or is refused is split, until one value
    is found or all hold."""
    before = case.entry, case.source, case.kind, n
    places = [(place + k * (n // len(case.names))) % n for k in range(len(case.names))]
    one, other = differing(case.kind, n, dict(zip(places, map(UGLY.get, case.names), strict=True)), case.column)
    if case.names == (ANOTHER_KEY,):
        other[place] = {**one[place], "alone": 1}
    if before not in _BEFORE:
        _BEFORE.clear()
        _BEFORE[before] = seen(case, one)
    if _BEFORE[before].refused:  # a column of which nothing can be asked is refused with them and without
        return
    after = seen(case, other)
    found.tables += 1
    text = differ(_BEFORE[before], after, places)
    if (text or after.refused) and len(case.names) > 1:
        half = len(case.names) // 2
        for names in (case.names[:half], case.names[half:]):
            held_against(replace(case, names=names), n, place, found)
        return
    found.refused += bool(after.refused)
    if text:
        where = case.kind if case.column == "x" else "targets"
        found.wrong += (f"{case.entry} of {case.source}: {case.names[0]} among {where}: {text}",)


def seen(case: Case, rows: Rows) -> Seen:
    with tempfile.TemporaryDirectory() as folder:
        return ENTRIES[case.entry](SOURCES[case.source](rows, Path(folder)), Path(folder))


def all_held(made: Sequence[Case] | Iterator[Case]) -> Found:
    found = Found()
    for k, case in enumerate(made):
        held_against(case, N, (0, N // 2, N - 1)[k % 3], found)
    return found


@pytest.mark.usefixtures("small_tables")
@pytest.mark.parametrize("part", range(2))
def test_one_ugly_record_changes_nothing_public(part: int) -> None:
    """One value a table: of 60 records twelve are enough to decide."""
    found = all_held(cases(part * 1499, 2999, 1))
    assert not found.wrong and found.tables - found.refused > 16, found


@pytest.mark.usefixtures("small_tables")
@pytest.mark.parametrize("entry", ENTRIES)
def test_every_entry_is_called_and_holds(entry: str) -> None:
    source = "arrays" if entry == "estimator" else "JSON lines"
    held = ("fraction", "text", "date as text")
    found = all_held([Case(entry, source, "whole", (name,)) for name in held])
    assert not found.wrong and found.tables == len(held) and found.refused < len(held), found


@pytest.mark.usefixtures("small_tables")
@pytest.mark.parametrize("entry", OF_TARGETS)
def test_nor_does_a_target(entry: str) -> None:
    """A run with all records in one process is refused; an owner's own, figures and predictions go on without it."""
    found = all_held([Case(entry, "CSV", "whole", (name,), "z") for name in ("text", "fraction")])
    assert not found.wrong and found.tables == 2 and found.refused < 2, found


def json_pair(entry: str) -> tuple[str, ...]:
    _BEFORE.clear()
    return all_held([Case(entry, "JSON lines", "whole", (ANOTHER_KEY,))]).wrong


@pytest.mark.parametrize("entry", ["columns", "synth by a survey"])
def test_a_key_of_one_record_is_found_with_the_margin_taken_out(entry: str) -> None:
    assert not json_pair(entry)

    def every_key(self: keys.Keys, counts: Any, n: int, source: str) -> tuple[str, ...]:
        return tuple(sorted(counts))

    with mock.patch.object(keys.Keys, "columns", every_key):
        (text,) = json_pair(entry)
    assert "public: " in text


def test_a_vector_that_moves_too_far_is_found() -> None:
    """The generator itself: a claim of a twentieth of the distance does not hold."""
    entry, place = ENTRIES["stats"], 3
    with tempfile.TemporaryDirectory() as folder:
        tables = neighbours("whole", N, place, 7)
        one, other = (entry(SOURCES["CSV"](rows, Path(folder)), Path(folder) / str(k)) for k, rows in enumerate(tables))
    assert differ(one, other) == ""
    less = replace(one, claimed=one.claimed / 20)
    assert differ(less, other).startswith("moved ")


@pytest.mark.parametrize("entry", ["mapped", "predict"])
def test_a_group_is_split_until_its_one_value_is_found(entry: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A value that has all others read differently, among eleven that have not."""
    true, names = ENTRIES[entry], tuple(name for name in UGLY if name not in _ALONE)[:GROUP]

    def decided(source: Any, folder: Path) -> Seen:
        found = true(source, folder)
        text = any(value == UGLY["thousands"] for value in source["x"])
        return replace(found, rows=found.rows.round()) if text else found

    _BEFORE.clear()
    monkeypatch.setitem(ENTRIES, entry, decided)
    (text,) = all_held([Case(entry, "lists", "fractions", names)]).wrong
    _BEFORE.clear()
    assert text.startswith(f"{entry} of lists: thousands among fractions: rows of 59 other records differ")
