"""A user's word at places where it enters a query, names of columns above all: it is a word there, whatever stands in
it, or one line says that it cannot be. What is read is what is read with a harmless word in its place."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpmpc.errors import DpmpcError, owner_text
from dpmpc.intake import once
from dpmpc.intake.spelling import Spelling
from dpmpc.records import load
from dpmpc.records.loading import opened
from dpmpc.records.mapping import owners_in
from dpmpc.records.ownership import KeptOwners
from dpmpc.records.persons import kept, persons_of
from dpmpc.records.schema import Categorical, Labels, Numeric, Schema

pytestmark = pytest.mark.usefixtures("small_tables")

N = 60
HOSTILE = [
    "it's", "'", "''", '"', 'x"', "a\"; DROP TABLE held; --", "'; DROP TABLE held; --", "a' OR '1'='1", "--", "-- x",
    "/*",
    "*/", "/*once{*/", "/*}once*/", once._BEGIN, once._END, f"{once._BEGIN}x{once._END}", f"a{once._END}, 1 AS b",
    "{", "}", "{0}", "{{x}}", "\\", "\\'", "a\\", "\\1", "%s", "%", "$1", ":x", "?1", ";", "; SELECT 1", "(once 0.0)",
    "(value)", "(times)", "h0", "held", "NULL AS x", "E'\\n'", "$$", "$a$", "\u202eabc", "a\u200bb", "\x1b[31m", "a\0b",
    "x" * 10_000, "'" * 999, "\U0001f600", "e\u0301", "\ufb01", "a=b", "=", "[", ".*", "(?i)x", "^", "|", "a|b",
]  # fmt: skip
RNG = np.random.default_rng(5)
X, PICK = RNG.uniform(-1, 1, N).round(3), RNG.integers(0, 3, N)
PLAIN = (Numeric("x", -1.0, 1.0),)
Y = Labels("y", ("yes",), ("no",))


def texts(values: Any) -> Any:
    return np.array([str(value) for value in values], dtype=object)


def _loaded(records: dict[str, Any], schema: Schema, **spelling: Any) -> Any:
    data = load(records, schema=schema, test_fraction=0.0, spelling=Spelling(**spelling))
    return data.X.tobytes(), data.y.tobytes(), [(c.missing, c.unread, c.unknown, c.clipped) for c in data.counts]


def column(word: str, folder: Path) -> Any:
    """A column's name, of numbers and of categories."""
    levels = Categorical(f"{word} 2", ("a", "b"))
    records = {word: texts(X), f"{word} 2": texts("abc"[k] for k in PICK), "y": texts(np.where(PICK, "yes", "no"))}
    return _loaded(records, Schema((Numeric(word, -1.0, 1.0), levels), Y))


def label(word: str, folder: Path) -> Any:
    records = {"x": texts(X), word: texts(np.where(PICK, word, "no"))}
    return _loaded(records, Schema(PLAIN, Labels(word, (word,), ("no",))))


def kept_of(word: str, folder: Path) -> Any:
    records = {word: texts("NA" if k == 1 else "b" for k in PICK), "y": texts(["yes", "no"] * (N // 2))}
    return _loaded(records, Schema((Categorical(word, ("NA", "b")),), Y), kept=(f"{word}=NA",), words=(word,))


def decimal_of(word: str, folder: Path) -> Any:
    records = {word: texts(str(x).replace(".", ",") for x in X), "y": texts(["yes", "no"] * (N // 2))}
    return _loaded(records, Schema((Numeric(word, -1.0, 1.0),), Y), other_decimal=(word,))


def person(word: str, folder: Path) -> Any:
    """The column of persons, and a person."""
    records = {word: texts(f"{word}{k}" for k in PICK), "x": texts(X)}
    with opened(records) as (table, _):
        first = kept(table, KeptOwners(word, 2))
        return (
            first.n,
            first.beyond,
            [row[0] for row in first.rows(first.text("x"))],
            sorted(persons_of(first).tolist()),
        )


def owner(word: str, folder: Path) -> Any:
    """The column of owners, and an owner."""
    records = {word: texts(("k", "m", f"z{word}")[k] for k in PICK), "x": texts(X)}
    with opened(records) as (table, _):
        return owners_in(table, word)[0].tolist()


def level(word: str, folder: Path) -> Any:
    """A value that a list has; but for a mark of queries, which is another in every process."""
    if once._BEGIN in word:
        return None
    records = {"c": texts((word, "b", "other")[k] for k in PICK), "y": texts(["yes", "no"] * (N // 2))}
    return _loaded(records, Schema((Categorical("c", (word, "b")),), Y))


def missing(word: str, folder: Path) -> Any:
    """A word for what is missing, of all columns, and of one that is called so too."""
    if once._BEGIN in word:
        return None
    records = {"x": texts(word if k == 1 else x for k, x in zip(PICK, X, strict=True)), "y": texts(["yes", "no"] * 30)}
    every = _loaded(records, Schema(PLAIN, Y), missing=(word,))
    records[word] = records.pop("x")
    return every, _loaded(records, Schema((Numeric(word, -1.0, 1.0),), Y), missing=(f"{word}={word}",))


PLACES: list[Callable[[str, Path], Any]] = [column, label, kept_of, decimal_of, person, owner, level, missing]


@pytest.mark.slow
@pytest.mark.parametrize("place", PLACES, ids=lambda place: place.__name__)
def test_a_word_is_a_word_whatever_stands_in_it(place: Callable[[str, Path], Any], tmp_path: Path) -> None:
    harmless = place("qq", tmp_path)
    assert harmless is not None
    refused, wrong = [], []
    for word in HOSTILE:
        try:
            found = place(word, tmp_path)
        except DpmpcError as error:
            refused.append(word)
            if "\n" in owner_text(error):
                wrong.append((word[:40], owner_text(error)))
            continue
        if found is not None and found != harmless:
            wrong.append((word[:40], "reads otherwise"))
    assert not wrong, wrong
    assert len(refused) < 12, [word[:20] for word in refused]
