"""Databases that tests are lent: nothing of one table is there for the next."""

import contextlib
import os
import sqlite3
from pathlib import Path

import pytest

from dpmpc.intake.engine import duckdb
from dpmpc.intake.spelling import Spelling
from dpmpc.intake.staging import held
from dpmpc.intake.table import connect
from dpmpc.records import CsvFile
from dpmpc.records.loading import Query, opened
from tests import databases


def test_a_database_is_lent_again_with_nothing_of_the_table_before(tmp_path: Path) -> None:
    with databases.kept() as counts:
        for k in range(3):
            with opened({"a": [k, k + 1], "b": ["x", "y"]}) as (table, private):
                held(table, ["a", "b"])
                assert [row[0] for row in table.rows(table.number("a"))] == [k, k + 1]
                assert table.run("SELECT current_setting('temp_directory')") == [(str(private),)]
        assert counts == [1, 2]
        with opened({"a": [1]}) as (first, _), opened({"a": [2]}) as (second, _):  # one has another's at no time
            assert first.rows("a") != second.rows("a")
        assert counts == [2, 3]
        again = connect(tmp_path, None)
        assert again.execute("SELECT count(*) FROM duckdb_views() WHERE NOT internal").fetchall() == [(0,)]
        again.close()
        again.close()
        assert counts == [2, 4]


def test_a_file_that_is_written_anew_is_read_anew(tmp_path: Path) -> None:
    """Of the same name and size, and of the same moment, as clocks of files may be coarse."""
    path = tmp_path / "t.csv"
    with databases.kept() as counts:
        for k in range(5):
            path.write_text(f"a,b\n{k},x\n{k + 1},y\n")
            os.utime(path, ns=(10**18, 10**18))
            with opened(CsvFile(path)) as (table, _):
                assert [row[0] for row in table.rows(table.number("a"))] == [k, k + 1]
        assert counts == [1, 4]
        with connect(tmp_path, None) as one:
            assert one.execute("SELECT 1").fetchall() == [(1,)]


def test_a_database_with_anything_left_is_not_lent_again(tmp_path: Path) -> None:
    before = duckdb.connect
    with databases.kept() as counts:
        for what in ("TABLE kept AS SELECT 1", "VIEW seen AS SELECT 1"):
            one = connect(tmp_path, None)
            one.execute(f"CREATE {what}")
            one.close()
        connect(tmp_path, 1 << 28).close()  # another limit is another database
        assert counts == [3, 0]
    assert duckdb.connect is before


@pytest.mark.parametrize("spelling", [Spelling(), Spelling(",", "."), Spelling(",", other_decimal=("v",))], ids=str)
def test_what_a_database_has_as_a_number_is_one_in_any_spelling(spelling: Spelling, tmp_path: Path) -> None:
    """Each field by itself: 1.234 is no 1234, and texts beside it are read as stated."""
    with contextlib.closing(sqlite3.connect(tmp_path / "a.db")) as base, base:
        base.execute("CREATE TABLE t (v)")
        base.executemany("INSERT INTO t VALUES (?)", [(v,) for v in (1.234, -2.5e-7, 1234, "1.234", "0,5", None)])
    with opened(Query(f"sqlite:///{tmp_path / 'a.db'}", "SELECT v FROM t"), spelling=spelling) as (table, _):
        found = [row[0] for row in table.rows(table.number("v"))]
        own = table.spelling.of("v")
        assert found == [1.234, -2.5e-7, 1234.0, own.number("1.234"), own.number("0,5"), None]
