"""An owner whose records workers read out of a database by ranges of a key: the same as one machine to the last bit."""

import re
import shutil
import sqlite3
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpmpc.errors import UsageError, owner_text, public_text
from dpmpc.intake.database import reachable
from dpmpc.intake.ranges import Ranges, ordered, ranges_of
from dpmpc.intake.spelling import PLAIN
from dpmpc.learning.away import Away, OwnerRows, WorkerTask, mean_away, owner_of
from dpmpc.learning.erm_blocks import owner_gradients
from dpmpc.learning.losses import LOGISTIC
from dpmpc.learning.survey import Survey
from dpmpc.learning.tiled import tiles
from dpmpc.processes.elsewhere import Workers
from dpmpc.processes.executors import executor_maker
from dpmpc.records import Query, Schema, load
from dpmpc.records.loading import opened
from dpmpc.records.schema import Labels, Numeric
from tests.endurance.canary_search import WORDS
from tests.learning.test_away import CANARY, Once, Products, workers

sys.path.append(str(Path(__file__).resolve().parents[2] / "examples"))
from postgres_server import postgres_server, server_folder

from tests.refusals import Rule, breaks, refuses

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("small_tables")]  # workers are processes

STEP, N, D = 1 << 12, 8_250, 2  # three ranges, the last short, of two tiles each
SCHEMA = Schema(tuple(Numeric(f"x{k}", -2.0, 2.0) for k in range(D)), Labels("label", ("yes",), ("no",)), True)
SQL = "SELECT * FROM t ORDER BY id"


def rows(n: int = N) -> list[tuple[Any, ...]]:
    """Records in no order, with gaps between their keys, some of them negative; values that are missing or odd."""
    rng = np.random.default_rng(11)
    keys = rng.permutation(np.cumsum(rng.integers(1, 1000, n)) - 100_000)
    x = rng.normal(size=(n, D))
    labels = np.where(rng.normal(size=n) + x[:, 0] > 0, "yes", "no")
    wards = rng.choice(["north", "south", "east"], n)
    return [
        (int(keys[i]), *(None if (i + k) % 97 == 0 else float(x[i, k]) for k in range(D)), wards[i], labels[i])
        for i in range(n)
    ]


COLUMNS = ("id", *(f"x{k}" for k in range(D)), "ward", "label")


def sqlite_of(path: Path, records: list[tuple[Any, ...]]) -> str:
    with closing(sqlite3.connect(path)) as database, database:
        types = " REAL, ".join(f"x{k}" for k in range(D))
        database.execute(f"CREATE TABLE t (id INTEGER PRIMARY KEY, {types} REAL, ward TEXT, label TEXT)")
        database.executemany(f"INSERT INTO t VALUES ({', '.join('?' * len(COLUMNS))})", records)
    return f"sqlite:///{path}"


def changed(url: str, sql: str) -> None:
    with closing(sqlite3.connect(url.removeprefix("sqlite:///"))) as database, database:
        database.execute(sql)


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    sqlite_of(found := tmp_path_factory.mktemp("records") / "ä b.db", rows())
    return found


@pytest.fixture(scope="module")
def url(path: Path) -> str:
    return f"sqlite:///{path}"


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch) -> Iterator[Workers]:
    """Threads of this process; ranges and tiles have a quarter of their rows."""
    for name, size in (("intake.ranges.STEP", STEP), ("learning.matrix._ROWS", STEP // 2)):
        monkeypatch.setattr(f"dpmpc.{name}", size)
    found = workers()
    yield found
    found.close()


def owner(url: str, here: Workers, mine: Any = None, tiles: int = 2, sql: str = SQL) -> OwnerRows:
    found = owner_of(here, reachable(url), PLAIN, None, sql)
    return OwnerRows(here, found.partitions, mine, tiles)


def check_same(url: str, here: Workers, mine: Any, tiles_of_task: int) -> None:
    """Gradients, what did not fit, and a survey, beside those of one machine that reads the same query."""
    kept = np.arange(N) if mine is None else np.flatnonzero(mine)
    one = load(Query(url, SQL), schema=SCHEMA, test_fraction=0.0,
               splitting=lambda table, groups, seed: (kept, seed[1]))  # fmt: skip
    mine_here = owner(url, here, mine, tiles_of_task)
    away, offsets = Away(mine_here, SCHEMA, "double"), np.array([0, len(kept)])
    assert (away.n, away.d) == (one.n, one.d) == (len(kept), D + 1)
    whole = list(tiles(offsets, away.d))
    assert len(whole) == 5
    *columns, target = away.looked_over(whole)
    assert [vars(each) for each in columns] == [vars(each) for each in one.counts] and target.missing == one.misfits
    assert sum(each.missing for each in one.counts) > 100
    for theta in (np.zeros(D + 1), np.linspace(-3, 3, D + 1)):
        found = owner_gradients(LOGISTIC, theta, away, offsets)
        assert found.tobytes() == owner_gradients(LOGISTIC, theta, one.train, offsets).tobytes()
    source = Survey(("x0", "x1"), ("ward",))
    with opened(Query(url, SQL)) as (table, _):
        whose = np.zeros(N, dtype=np.int64) if mine is None else np.where(mine, 0, -1)
        (expected,) = source.means(table, whose, (len(kept),))
    assert mean_away(mine_here, source).tobytes() == expected.tobytes()


@pytest.mark.parametrize(("held_out", "tiles_of_task"), [(False, 1), (True, 2)])
def test_sums_over_ranges_are_those_of_one_machine(
    held_out: bool, tiles_of_task: int, url: str, here: Workers, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, rows in (("survey.PART", 3072), ("away.PART", 3072), ("survey._BLOCK", 512)):  # terms cross ranges
        monkeypatch.setattr(f"dpmpc.learning.{name}", rows)
    mine = np.random.default_rng(2).random(N) < 0.998 if held_out else None
    check_same(url, here, mine, tiles_of_task)


def test_any_range_is_what_one_machine_has_there(url: str, here: Workers) -> None:
    found = ranges_of(url, SQL)
    assert (found.n, found.pieces) == (N, 3)
    with opened(Query(url, SQL)) as (table, _):
        names = table.names
        whole = table.rows(", ".join(table.text(name) for name in names))
    ends = [(0, 1), (0, STEP), (STEP - 1, STEP + 1), (STEP, 2 * STEP), (2 * STEP + 5, N), (N - 1, N), (7, N)]
    for begin, end in ends:
        part = found.part(begin, end)
        assert part.pieces <= (end - begin) // STEP + 2
        with part.rows(begin, end) as table:
            assert table.names == names and table.n == end - begin
            assert table.rows(", ".join(table.text(name) for name in names)) == whole[begin:end]
    with found.having(["ward"]).rows(0, N) as table:
        assert table.names == ("ward",) and [row[0] for row in table.rows("c0")] == [row[-2] for row in whole]


@pytest.mark.skipif(server_folder() is None, reason="Debian's package postgresql is not installed")
@pytest.mark.slow
def test_ranges_of_postgresql(here: Workers, monkeypatch: pytest.MonkeyPatch) -> None:
    import psycopg

    with postgres_server() as server:
        for name, value in server.environment.items():
            monkeypatch.setenv(name, value)
        with psycopg.connect(server.url) as database:
            types = " float8, ".join(f"x{k}" for k in range(D))
            database.execute(f"CREATE TABLE t (id int8 PRIMARY KEY, {types} float8, ward text, label text)")
            with database.cursor().copy("COPY t FROM STDIN") as copy:
                for row in rows():
                    copy.write_row(row)
        check_same(server.url, here, None, 2)
        away, whole = Away(owner(server.url, here), SCHEMA, "double"), list(tiles(np.array([0, N]), D + 1))
        away.looked_over(whole)
        with psycopg.connect(server.url) as database:
            database.execute("DELETE FROM t WHERE id = (SELECT max(id) FROM t)")
        with refuses("usage", "a range of its keys"):
            away.looked_over(whole)
        for sql, says in (
            ("SELECT * FROM t ORDER BY ward", breaks("usage", "ward", setting="sql")),
            ("SELECT * FROM u ORDER BY id", breaks("usage", "u", setting="sql")),
        ):
            with refuses(says):
                owner(server.url, here, sql=sql)
        with refuses("together", setting="database"):
            reachable(server.url.replace("127.0.0.1", f"owner:{server.password}@127.0.0.1"))


@pytest.mark.parametrize(
    ("sql", "says"),
    [
        (
            "DELETE FROM t WHERE id = (SELECT id FROM t ORDER BY id LIMIT 1 OFFSET 5000)",
            breaks("usage", "a range of its keys"),
        ),
        ("INSERT INTO t (id, label) VALUES (-1000000, 'yes')", breaks("usage", "a range of its keys")),
        ("INSERT INTO t (id, label) SELECT max(id) + 1, 'no' FROM t", breaks("usage", "a range of its keys")),
        ("UPDATE t SET x1 = 1.5 WHERE id = (SELECT max(id) FROM t)", breaks("file")),
        (
            "UPDATE t SET label = 'no' WHERE rowid IN (SELECT rowid FROM t WHERE label = 'yes' LIMIT 1)",
            breaks("file"),
        ),
    ],
)
def test_a_table_that_changes_between_passes_ends_the_run(
    sql: str, says: Rule, path: Path, tmp_path: Path, here: Workers
) -> None:
    url = f"sqlite:///{shutil.copy(path, tmp_path / 'a.db')}"
    away, offsets = Away(owner(url, here), SCHEMA, "double"), np.array([0, N])
    away.looked_over(list(tiles(offsets, away.d)))
    changed(url, sql)
    with refuses(says) as error:
        owner_gradients(LOGISTIC, np.zeros(D + 1), away, offsets)
    assert not re.search(r"\d", public_text(error.value))  # no key, no value, no number of rows


def test_a_lost_workers_ranges_are_done_again(tmp_path: Path) -> None:
    url, here = sqlite_of(tmp_path / "a.db", rows(4 * N)), workers()
    processes = Workers(executor_maker("processes"), 2)
    away = Away(owner(url, processes), SCHEMA, "double")
    whole = list(tiles(np.array([0, 4 * N]), away.d))
    found = [sums[0].tobytes() for _, sums in away.sums(whole, Once(tmp_path / "killed", Products()))]
    processes.close()
    assert (tmp_path / "killed").exists()
    assert found == [sums[0].tobytes() for _, sums in Away(owner(url, here), SCHEMA, "double").sums(whole, Products())]
    here.close()


def test_what_is_no_key_is_refused_and_no_value_is_told(tmp_path: Path, here: Workers) -> None:
    path = tmp_path / "a.db"
    url = f"sqlite:///{path}"
    with closing(sqlite3.connect(path)) as database, database:
        database.execute(
            'CREATE TABLE t (id INTEGER PRIMARY KEY, twice INT, gone INT, word, half REAL, "Odd ""key" INT)'
        )
        for k in range(6):
            database.execute(
                "INSERT INTO t VALUES (?, ?, ?, ?, ?, ?)", (k, k // 2, k or None, WORDS[k % len(WORDS)], k + 0.5, -k)
            )
    for column in ("gone", "word"):
        with refuses("usage", column, setting="sql") as error:
            owner(url, here, sql=f"SELECT * FROM t ORDER BY {column}")
        assert not CANARY.search(owner_text(error.value))
    for column in ("twice", "half"):  # of so few the first look reads one key
        found = owner(url, here, sql=f"SELECT * FROM t ORDER BY {column}").task(0, 6, lambda table, mine: [table.n])()
        if column == "twice":
            assert found[0] == "refused" and "'twice' is none" in found[1][0]
    for sql, says in (
        ("SELECT word FROM t ORDER BY id", breaks("usage", setting="sql")),
        ("SELECT * FROM t", breaks("usage", "ORDER", setting="sql")),
        ("SELECT * FROM t ORDER BY id DESC", breaks("usage", setting="sql")),
        ("SELECT * FROM t ORDER BY id, twice", breaks("usage", setting="sql")),
        ("SELECT * FROM t ORDER BY id LIMIT 5", breaks("usage", setting="sql")),
        ("SELECT * FROM (SELECT * FROM t ORDER BY id)", breaks("usage", setting="sql")),
        ("SELECT * FROM absent ORDER BY id", breaks("records", setting="sql", kind=UsageError)),
        ("SELECT * FROM t WHERE 0 ORDER BY id", breaks("enough", setting="sql")),
    ):
        with refuses(says) as error:
            owner(url, here, sql=sql)
        assert "\n" not in owner_text(error.value) and not CANARY.search(owner_text(error.value))
    for sql in ('select * from t order  by "Odd ""key" ;', "SELECT * FROM t\nORDER BY ID ASC"):
        assert owner(url, here, sql=sql).partitions.n == 6
    with refuses("path", setting="database"):
        owner("sqlite:///nowhere.db", here)
    assert ordered("SELECT a FROM t -- x\n ORDER BY a") == ("SELECT a FROM t -- x", "a")


def test_a_task_knows_its_own_keys_alone(url: str, here: Workers) -> None:
    """Of a table of 10^9 rows there are 61,000 keys; a task takes those at its ends."""
    task = owner(url, here).task(STEP + 3, STEP + 5, lambda table, mine: [])
    assert isinstance(task, WorkerTask) and isinstance(task.partitions, Ranges)
    assert task.partitions.pieces == 1 and None not in task.partitions.keys and task() == ("sums", [])
