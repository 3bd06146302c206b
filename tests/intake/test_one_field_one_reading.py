"""Mends of sources in which one field once decided how others were read; each test fails with its mend taken out."""

import contextlib
import sqlite3
from pathlib import Path
from typing import Any
from unittest import mock

import pandas as pd
import pytest

from dpmpc.errors import UsageError
from dpmpc.intake import csvfile, missing
from dpmpc.intake.spelling import Spelling
from dpmpc.intake.table import Column, Table
from dpmpc.records.loading import Query, opened


def dates_of(texts: list[str]) -> tuple[str, list[Any]]:
    """The kind of a column of dates that are written as one number, and the days that its fields read as."""
    frame = pd.DataFrame({"c": texts, "k": range(len(texts))})
    with opened(frame, spelling=Spelling(yyyymmdd=("c",))) as (table, _):
        return table["c"].kind, [row[0] for row in table.rows(table.days("c"))]


def by_a_sample(table: Table, column: Column) -> Column:
    """As it was: a column is of dates where the first 1,000 fields have one."""
    if column.name != "c":
        return column
    some = f"(SELECT {column.sql} AS v FROM {table.relation} LIMIT 1000)"
    there = table.rows("count(*) FILTER (WHERE length(v) = 8)", relation=some)[0][0]
    return as_dates(table, column) if there else column


as_dates = missing._as_dates


def others_alike(one: list[str], place: int, odd: str) -> bool:
    """Whether a table and its neighbour have one kind of column, and all other records read alike."""
    other = [*one[:place], odd, *one[place + 1 :]]
    (kind, days), (its_kind, its_days) = dates_of(one), dates_of(other)
    days[place] = its_days[place] = None
    return kind == its_kind and days == its_days


@pytest.mark.parametrize("odd", ["20240131", "5", "x", "202401311259"])
def test_no_field_decides_whether_others_are_dates(odd: str) -> None:
    late = [""] * 1000 + ["20240201"] * 20  # nothing among the first thousand
    for one in (late, ["20240131"] * 30, ["5"] * 30, [""] * 30):
        assert others_alike(one, 3, odd)


def test_with_the_mend_of_dates_taken_out_one_field_decides() -> None:
    with mock.patch.object(missing, "_as_dates", by_a_sample):
        assert not others_alike([""] * 1000 + ["20240201"] * 20, 3, "20240131")


def texts_of_a_database(fields: list[str], folder: Path) -> list[str] | None:
    """The texts of a column in SQLite; None for a refusal."""
    path = folder / "t.db"
    path.unlink(missing_ok=True)
    with contextlib.closing(sqlite3.connect(path)) as base, base:
        base.execute("CREATE TABLE t (c TEXT, y TEXT)")
        base.executemany("INSERT INTO t VALUES (?, '1')", [(field,) for field in fields])
    try:
        with opened(Query(f"sqlite:///{path}", "SELECT * FROM t")) as (table, _):
            return [str(row[0]) for row in table.rows(table["c"].sql)]
    except UsageError:
        return None


RETURNS = ["5\r", "1", "2"]
LONG = ["x" * (1 << 22), "1"]


@pytest.mark.parametrize(("fields", "mend"), [(RETURNS, "ends"), (LONG, "longest")], ids=["return", "long"])
def test_texts_of_a_database_and_their_mends(fields: list[str], mend: str, tmp_path: Path) -> None:
    """A carriage return in the first row, which DuckDB takes for the end of all lines where none is named; and a field
    of more bytes than a line may usually have."""
    assert texts_of_a_database(fields, tmp_path) == fields
    relation = csvfile._relation

    def without(*of: Any, **given: Any) -> str:
        given.pop(mend, None)
        return relation(*of, **given)

    with mock.patch.object(csvfile, "_relation", without):
        assert texts_of_a_database(fields, tmp_path) != fields
