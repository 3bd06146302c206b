"""A worker that reads parts of an owner's records holds so much memory as was asked for it, however many there are."""

import pickle
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpmpc.intake import partitions, ranges
from dpmpc.intake.partitions import partitions_of
from dpmpc.intake.ranges import ranges_of
from dpmpc.intake.streamed import ONE
from dpmpc.intake.table import Table, connect
from dpmpc.learning import away
from dpmpc.learning.tiled import tile_rows, tiles
from dpmpc.processes.elsewhere import Workers
from dpmpc.records import Schema
from dpmpc.records.blocks import allocate
from dpmpc.records.schema import Labels, Numeric

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


@pytest.mark.parametrize(("of", "module"), [(of_files, partitions), (of_a_database, ranges)])
def test_and_so_has_the_look_that_finds_the_parts(
    of: Any, module: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Which an owner's own process takes, before there are workers."""
    made, usual = list[tuple[int | None, int | None]](), module.connect

    def noted(folder: Path | None, memory: int | None, threads: int | None = None) -> Any:
        made.append((memory, threads))
        return usual(folder, memory, threads)

    monkeypatch.setattr(module, "connect", noted)
    of(tmp_path, 1 << 30)
    assert made == [(1 << 28, 1)]


class Watching:
    """A sum of each tile that notes where the tile's rows lie."""

    def __init__(self) -> None:
        self.at, self.rows = set[int](), list[int]()

    def shapes(self, owners: int, d: int) -> Any:
        return ((d,),)

    def __call__(self, tile: Any, X: Any, y: Any, weights: Any) -> Any:
        self.at.add(X.compact.places.__array_interface__["data"][0])
        self.rows.append(len(X.compact.places))
        return (X.rows().sum(axis=0),)


def test_a_worker_has_room_for_the_rows_of_one_tile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A task of several tiles has one buffer, as long as a tile; DuckDB gives ONE rows at most at once."""
    d, made, read, blocks = 8, list[int](), list[int](), Table.blocks
    most = tile_rows(d)
    n = ONE + 2 * most + 3
    with closing(connect(tmp_path, None)) as connection:
        columns = ", ".join(f"(i + {k}) / {n}.0 AS x{k}" for k in range(d))
        connection.execute(f"COPY (SELECT {columns}, i % 2 AS y FROM range({n}) t(i)) TO '{tmp_path}/part.parquet'")

    def allocated(n: int, width: int, *how: Any) -> Any:
        made.append(n * width * 8)
        return allocate(n, width, *how)

    def noted(table: Table, *asked: Any, **how: Any) -> Any:
        for block in blocks(table, *asked, **how):
            read.append(len(block[0]))
            yield block

    monkeypatch.setattr(away, "allocate", allocated)
    monkeypatch.setattr(Table, "blocks", noted)
    schema = Schema(tuple(Numeric(f"x{k}", 0.0, 2.0) for k in range(d)), Labels("y", ("1",), ("0",)))
    whole, seen = tuple(tiles(np.array([0, n]), d)), Watching()
    owner = away.OwnerRows(
        Workers(lambda count: pytest.fail("no worker is asked"), 1), partitions_of(str(tmp_path / "*.parquet"))
    )
    found = owner.task(0, n, away._Tiled(schema, "double", whole, seen, b"key"))()
    assert found[0] == "sums", found
    sums = found[1][0]
    assert len(sums) == len(whole) == len(seen.rows)
    assert max(seen.rows) == most and sum(seen.rows) == n and len(seen.at) == 1
    assert made == [most * d * 8]
    assert sum(read) == n and max(read) <= ONE
