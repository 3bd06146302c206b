"""One record's text moves the votes of words by what a promise of them claims, whatever the text is and whatever holds
the records: in one cell by at most 2 each, or in two by at most 1. Other records' votes stay as they are."""

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpmpc.errors import UsageError
from dpmpc.intake.spelling import PLAIN, Spelling
from dpmpc.learning import naming
from dpmpc.learning.naming import VOTES, NamingSource
from dpmpc.records.loading import opened
from tests.neighbours.tables import KINDS, MANY, SOURCES, UGLY, neighbours

pytestmark = pytest.mark.usefixtures("small_tables")
N, CELLS = 24, 8

# Texts that are alike once they are folded, cut, normalised or decoded; ends of what has votes; what drives a page.
ALIKE: dict[str, Any] = {
    "same": "a", "capital": "A", "blank before": " a", "blank after": "a ", "blanks within": "a  b",
    "no width": "a\u200b", "mark of order before": "\ufeffa", "composed": "\u00e9", "decomposed": "e\u0301",
    "wide": "\uff41", "dotless": "\u0131", "sharp": "\u00df", "long s": "\u017f", "kelvin": "\u212a",
    "ligature": "\ufb01", "right to left": "\u202ea", "nul after": "a\0", "nul alone": "\0", "true": "TRUE",
    "false": "False", "longest": "w" * 64, "longer": "w" * 65, "longest of two bytes": "\u00e9" * 32,
    "cut in a character": "a" * 63 + "\u00e9", "beyond planes": "\U0001f600", "private": "\ue000",
    "half a character": "\udc00", "number of another script": "\u0661\u0662", "minus": "\u22121",
    "hexadecimal": "0x10", "not a number": "NaN", "infinity": "-inf", "exponent": "1e5", "word for none": "n/a",
    "date": "31.12.2024", "hour": "24:00", "very long": "x" * MANY,
}  # fmt: skip


def moved(source: str, kind: str, odd: Any, n: int, place: int, folder: Path) -> float | None:
    """How far all cells' votes move together, each by its vote that moves most; None where a table is refused."""
    spelling, sums = Spelling(yyyymmdd=("x",)) if kind == "dates as numbers" else PLAIN, []
    for rows in neighbours(kind, n, place, odd):
        try:
            with opened(SOURCES[source](rows, folder), spelling=spelling) as (table, _):
                (total,) = NamingSource(("x",), CELLS).sums(table, np.zeros(table.n, dtype=np.int64), 1)
        except UsageError:
            return None
        sums.append(total.reshape(CELLS, VOTES))
    return float(np.abs(sums[0] - sums[1]).max(axis=1).sum())


def cases(part: int, of: int) -> Iterator[tuple[str, str, str]]:
    """Every `of`-th of all sources, kinds of columns, and odd or like texts."""
    everything = itertools.product(SOURCES, KINDS, [*UGLY, *(f"like: {name}" for name in ALIKE)])
    for source, kind, name in itertools.islice(everything, part, None, of):
        if not name.endswith("very long") or of == 1:
            yield source, kind, name


def all_held(part: int, of: int, n: int, folder: Path) -> tuple[int, int, list[str]]:
    """How many pairs were tried, how many were refused, and what of them moves further than is claimed."""
    tried = refused = 0
    wrong = list[str]()
    for k, (source, kind, name) in enumerate(cases(part, of)):
        odd = ALIKE[name[6:]] if name.startswith("like: ") else UGLY[name]
        far = moved(source, kind, odd, n, (0, n // 2, n - 1)[k % 3], folder)
        tried, refused = tried + 1, refused + (far is None)
        if far is not None and far > 2:
            wrong.append(f"{source}: {name} among {kind}: votes move by {far:g}")
    return tried, refused, wrong


@pytest.mark.parametrize("part", range(3))
def test_one_text_moves_votes_by_what_is_claimed(part: int, tmp_path: Path) -> None:
    tried, refused, wrong = all_held(61 * part, 199, N, tmp_path)
    assert not wrong and tried > 60 and refused < tried / 5


def test_it_sees_texts_that_have_more_than_one_vote_and_texts_that_decide_on_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first: a text counts once a letter. The second: a table's texts have votes only while none is a number."""
    counted, votes = NamingSource._counted, naming.votes_of

    def by_letters(name: str, text: str) -> Any:
        found = votes(name, text)
        return None if found is None else found * len(text)

    monkeypatch.setattr(naming, "votes_of", by_letters)
    assert (moved("CSV", "texts", "long", N, 3, tmp_path) or 0) > 2
    monkeypatch.setattr(naming, "votes_of", votes)

    def only_then(self: NamingSource, table: Any, name: str, owner: Any) -> Any:
        found = counted(self, table, name, owner)
        return found if sum(found.values()) == len(owner) else type(found)()

    monkeypatch.setattr(NamingSource, "_counted", only_then)
    assert (moved("CSV", "texts", "7", N, 3, tmp_path) or 0) > 2
