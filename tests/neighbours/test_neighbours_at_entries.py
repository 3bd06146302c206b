"""Every public entry, for every kind of source: one ugly record changes nothing public, and the vector that is sent by
no more than the plan claims."""

import itertools
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from dpmpc.records import keys
from tests.neighbours.entries import ENTRIES, OF_FRAMES, Seen, differ
from tests.neighbours.tables import KINDS, SOURCES, UGLY, Rows, neighbours

N = 60
ANOTHER_KEY = "another key"  # of JSON records: no value, but a column
_JSON = ("JSON lines", "JSON")
_BEFORE: dict[tuple[str, str, str, int], Seen] = {}  # of the table without the odd record


def pairs(part: int, of: int) -> Iterator[tuple[str, str, str, str]]:
    """Every `of`-th of all entries, sources, kinds of columns and odd values; those of one source and kind together."""
    every = itertools.product(SOURCES, KINDS, ENTRIES, (*UGLY, ANOTHER_KEY))
    for source, kind, entry, name in itertools.islice(every, part, None, of):
        here = (entry != "estimator" or source in OF_FRAMES) and (name != ANOTHER_KEY or source in _JSON)
        if here and (name != "very long" or of == 1):
            yield entry, source, kind, name


def held_against(entry: str, source: str, kind: str, name: str, n: int, place: int) -> tuple[str, str]:
    """(what of a pair differs that must not, "" for nothing; why the table with the odd record is refused)."""
    one, other = neighbours(kind, n, place, UGLY.get(name))
    if name == ANOTHER_KEY:
        other[place] = {**one[place], "alone": 1}

    def seen(rows: Rows) -> Seen:
        with tempfile.TemporaryDirectory() as folder:
            return ENTRIES[entry](SOURCES[source](rows, Path(folder)), Path(folder))

    before = entry, source, kind, n
    if before not in _BEFORE:
        _BEFORE.clear()
        _BEFORE[before] = seen(one)
    if _BEFORE[before].refused:  # a column of which nothing can be asked is refused with it and without
        return "", ""
    found = seen(other)
    return differ(_BEFORE[before], found), found.refused


@pytest.mark.usefixtures("small_tables")
@pytest.mark.parametrize("part", range(2))
def test_one_ugly_record_changes_nothing_public(part: int) -> None:
    wrong, read = list[str](), 0
    for k, (entry, source, kind, name) in enumerate(pairs(part * 1499, 2999)):
        text, refused = held_against(entry, source, kind, name, N, (0, N // 2, N - 1)[k % 3])
        read += not refused
        if text:
            wrong.append(f"{entry} of {source}: {name} among {kind}: {text}")
    assert not wrong and read > 12


def json_pair(entry: str) -> tuple[str, str]:
    _BEFORE.clear()
    return held_against(entry, "JSON lines", "whole", ANOTHER_KEY, N, 7)


@pytest.mark.parametrize("entry", ["columns", "synth by a survey"])
def test_a_key_of_one_record_is_found_with_the_margin_taken_out(entry: str) -> None:
    assert json_pair(entry) == ("", "")

    def every_key(self: keys.Keys, counts: Any, n: int, source: str) -> tuple[str, ...]:
        return tuple(sorted(counts))

    with mock.patch.object(keys.Keys, "columns", every_key):
        assert json_pair(entry)[0].startswith("public: ")


def test_a_vector_that_moves_too_far_is_found() -> None:
    """The generator itself: a claim of half the distance does not hold."""
    entry, place = ENTRIES["stats"], 3
    with tempfile.TemporaryDirectory() as folder:
        tables = neighbours("whole", N, place, 7)
        one, other = (entry(SOURCES["CSV"](rows, Path(folder)), Path(folder) / str(k)) for k, rows in enumerate(tables))
    assert differ(one, other) == ""
    less = Seen(one.public, one.vector, one.claimed / 20)
    assert differ(less, other).startswith("moved ")
