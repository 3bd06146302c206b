"""Public facts of a table's columns, where the promise is of persons: with all records of one changed, they are the
same, or the table is refused."""

from collections.abc import Callable
from itertools import combinations
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from dpmpc.errors import RecordError
from dpmpc.records.loading import opened
from dpmpc.tables.synth_columns import public_columns

ROWS = 3  # of a person


def told(frame: pd.DataFrame, touched: int, fact: Callable[[Any], Any]) -> Any:
    """A public fact of the columns; "refused" where there is none."""
    with opened(frame) as (table, _):
        try:
            return fact(public_columns(table, None, None, None, {}, None, (), touched=touched))
        except RecordError:
            return "refused"


def apart(found: dict[int, Any], touched: int) -> list[tuple[int, int]]:
    """Tables that differ in a person's records and have different facts."""
    pairs = ((a, b) for a, b in combinations(found, 2) if b - a <= touched)
    return [(a, b) for a, b in pairs if "refused" not in (found[a], found[b]) and found[a] != found[b]]


def test_no_person_decides_whether_a_column_holds_dates(tmp_path: Path) -> None:
    n = 60
    found = {
        dates: told(
            pd.DataFrame({"c": ["2020-01-02"] * dates + ["Rome"] * (n - dates), "x": range(n)}), ROWS,
            lambda p: p.to_find.dates,
        )
        for dates in range(n // 2 - 6, n // 2 + 7)
    }  # fmt: skip
    assert {(), ("c",), "refused"} == set(found.values())
    assert not apart(found, ROWS)


@pytest.mark.parametrize("there", [60, 200])
def test_nor_how_many_decimals_its_numbers_have(there: int) -> None:
    """By how many are fine, and, below it, by how many numbers there are at all."""
    found = {
        fine: told(
            pd.DataFrame({"x": [5.25] * fine + [5.0] * (there - fine), "y": range(there)}), ROWS,
            lambda p: p.places.get("x"),
        )
        for fine in range(16)
    }  # fmt: skip
    assert not apart(found, ROWS)
    few = {
        k: told(pd.DataFrame({"x": [5.0] * k + [None] * (300 - k), "y": range(300)}), ROWS, lambda p: p.places.get("x"))
        for k in range(120, 134)
    }
    assert {None, 0, "refused"} == set(few.values()) and not apart(few, ROWS)
