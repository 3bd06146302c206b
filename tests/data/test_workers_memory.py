"""A worker that reads parts of an owner's records holds so much memory as was asked for it, however many there are."""

import pickle
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from dpmpc.data.partitions import partitions_of
from dpmpc.data.ranges import ranges_of
from dpmpc.data.table import connect

_ASKED = "SELECT current_setting('memory_limit'), current_setting('threads')"


def of_files(folder: Path, memory: int) -> Any:
    with closing(connect(folder, None)) as connection:
        for k in range(2):
            connection.execute(f"COPY (SELECT i AS a FROM range(500) t(i)) TO '{folder}/part{k}.parquet'")
    return partitions_of(str(folder / "part*.parquet"), memory=memory)


def of_a_database(folder: Path, memory: int) -> Any:
    with closing(sqlite3.connect(folder / "records.sqlite")) as database, database:
        database.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, a REAL)")
        database.executemany("INSERT INTO t VALUES (?, ?)", [(k, float(k)) for k in range(1000)])
    return ranges_of(f"sqlite:///{folder}/records.sqlite", "SELECT * FROM t ORDER BY id", memory=memory)


@pytest.mark.parametrize("of", [of_files, of_a_database])
@pytest.mark.parametrize("memory", [400 << 20, 1 << 30])
def test_the_engine_of_a_worker_has_a_quarter_of_it_and_one_thread(of: Any, memory: int, tmp_path: Path) -> None:
    (tmp_path / "few").mkdir()
    with closing(connect(tmp_path / "few", memory // 4, threads=1)) as connection:
        wanted = connection.execute(_ASKED).fetchall()
    source = pickle.loads(pickle.dumps(of(tmp_path, memory)))  # noqa: S301  (our own bytes: as a worker gets it)
    with source.rows(0, 1000) as table:
        assert table.n == 1000
        assert table.connection.execute(_ASKED).fetchall() == wanted
