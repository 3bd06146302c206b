"""One record's value changes how that record is read, and nothing else, whatever holds the records."""

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpmpc.errors import UsageError, public_text
from dpmpc.intake.spelling import PLAIN, Spelling
from dpmpc.intake.table import value_sql
from dpmpc.records.loading import opened
from tests.neighbours.tables import KINDS, SOURCES, UGLY, neighbours

pytestmark = pytest.mark.usefixtures("small_tables")
N = 24


def seen(source: Any, spelling: Spelling = PLAIN) -> Any:
    """What is public of a table, and how each record's x reads; or the refusal."""
    try:
        with opened(source, spelling=spelling) as (table, _):
            read = [value_sql(table, "x", read="either")]
            values = np.concatenate([block[0] for block in table.blocks(read)])
            texts = [row[0] for row in table.rows(table.text("x"))] if table["x"].kind == "text" else [""] * table.n
            return [(c.name, c.type, c.kind) for c in table.columns], values, texts
    except UsageError as error:
        return public_text(error)


def differing(one: Any, other: Any) -> list[int]:
    """The records that are read differently."""
    values = ~((one[1] == other[1]) | (np.isnan(one[1]) & np.isnan(other[1])))
    return [k for k, odd in enumerate(values) if odd or one[2][k] != other[2][k]]


def held_against(source: str, kind: str, name: str, n: int, place: int, folder: Path) -> str:
    """What of a pair is not as it should be; "" for nothing. A table that is refused for its one odd record is as it
    should be where the refusal says so of that record alone: no other table comes of it."""
    if "looked at" in kind:
        n = max(n, 3000)  # of which every third was looked at; of a few all were
    spelling = Spelling(yyyymmdd=("x",)) if kind == "dates as numbers" else PLAIN
    one, other = (seen(SOURCES[source](rows, folder), spelling) for rows in neighbours(kind, n, place, UGLY[name]))
    if isinstance(one, str):
        return f"refused without it: {one}"
    if isinstance(other, str):
        return "" if (source, name) in REFUSED else f"refused: {other}"
    if one[0] != other[0]:
        return f"columns {one[0]} and {other[0]}"
    return "" if set(differing(one, other)) <= {place} else f"{len(differing(one, other))} records read differently"


# A field of more bytes than a row of text may have is refused, with the line, as quotes that do not pair up are; so are
# bytes that no text has in a file of texts.
REFUSED = {
    *((source, "very long") for source in ("CSV", "a folder of CSV")),
    *((source, "nul") for source in ("CSV", "a folder of CSV")),
}


def pairs(part: int, of: int) -> Iterator[tuple[str, str, str]]:
    """Every `of`-th of all sources, kinds of columns and odd values; by command, all of them."""
    everything = itertools.product(SOURCES, UGLY, KINDS)
    for source, name, kind in itertools.islice(everything, part, None, of):
        if name != "very long" or of == 1:
            yield source, kind, name


@pytest.mark.parametrize("part", range(4))
def test_one_value_changes_its_own_record_alone(part: int, tmp_path: Path) -> None:
    wrong = list[str]()
    for k, (source, kind, name) in enumerate(pairs(part * 37, 149)):
        if text := held_against(source, kind, name, N, (0, N // 2, N - 1)[k % 3], tmp_path):
            wrong.append(f"{source}: {name} among {kind}: {text}")
    assert not wrong


@pytest.mark.parametrize(
    ("source", "kind", "name"),
    [
        ("pandas objects", "whole where looked at", "fraction"), ("pandas objects", "whole", "text"),
        ("lists", "whole", "fraction"), ("SQLite", "texts", "bytes"), ("SQLite", "dates", "return"),
        ("SQLite", "whole", "very long"), ("Polars objects", "whole", "text"), ("series", "whole", "text"),
        ("pandas category", "whole", "text"), ("pandas objects beside Arrow", "nothing", "text"),
    ],
)  # fmt: skip
def test_a_record_that_once_decided_for_others(source: str, kind: str, name: str, tmp_path: Path) -> None:
    assert held_against(source, kind, name, N, 0, tmp_path) == ""


def test_a_relation_of_duckdb_over_a_frame_is_typed_before_it_comes_here() -> None:
    """What docs/data.md says of it, and the way out: the frame itself."""
    import duckdb

    kinds = list[list[str]]()
    for rows in neighbours("whole", 2001, 0, "text"):
        frame = SOURCES["pandas objects"](rows, Path())
        assert len(frame) == 2001
        tables = [duckdb.sql("SELECT * FROM frame"), frame]
        kinds.append([seen(each)[0][0][2] for each in tables])
    assert kinds == [["number", "text"], ["text", "text"]]
