"""An owner whose records workers read: the same as one machine to the last bit, whatever workers do."""

import os
import re
import secrets
import signal
import socket
import sys
import threading
from collections.abc import Callable
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from types import ModuleType
from typing import Any

import duckdb
import numpy as np
import pytest

from dpmpc.errors import UsageError, owner_text
from dpmpc.intake.partitions import partitions_of, places_of
from dpmpc.intake.spelling import PLAIN
from dpmpc.learning.away import Away, OwnerRows, Work, mean_away, owner_of
from dpmpc.learning.erm_blocks import optima, owner_coefficients, owner_gradients
from dpmpc.learning.losses import LOGISTIC
from dpmpc.learning.survey import Survey
from dpmpc.learning.tiled import tiles
from dpmpc.planning.request import Request
from dpmpc.processes.elsewhere import TRIES, Workers
from dpmpc.processes.executors import executor_maker
from dpmpc.records import Schema, load
from dpmpc.records.loading import opened
from dpmpc.records.schema import Labels, Numeric
from dpmpc.statistics.columns import Category, Columns, Quantity
from dpmpc.statistics.tables import Tables
from tests.endurance.canary_search import NUMBERS, WORDS
from tests.refusals import Rule, breaks, refuses

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("small_tables")]  # workers are processes

CANARY = re.compile("|".join(map(re.escape, (*WORDS, *NUMBERS))), re.I)
N, D = 40_000, 11
SCHEMA = Schema(tuple(Numeric(f"x{k}", -2.0, 2.0) for k in range(D)), Labels("label", ("yes",), ("no",)), True)


def threads(count: int = 2) -> Executor:
    """A user's own executor."""
    return ThreadPoolExecutor(count)


def write(folder: Path, parts: int = 3, **changes: Any) -> Path:
    """Partitions of uneven sizes, none of them a multiple of a tile."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    rng = np.random.default_rng(1)
    columns: dict[str, Any] = {f"x{k}": rng.normal(size=N) for k in range(D)}
    columns["ward"] = rng.choice(["north", "south", "east"], N)
    columns["label"] = np.where(rng.normal(size=N) + columns["x0"] > 0, "yes", "no")
    table = pa.table(columns | changes)
    folder.mkdir()
    borders = [0, *sorted(rng.choice(N, parts - 1, replace=False)), N]
    for k, (begin, end) in enumerate(pairwise(borders)):
        pq.write_table(table.slice(begin, end - begin), folder / f"part-{k}.parquet", row_group_size=7001)
    return folder


@pytest.fixture(scope="module")
def partitions(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write(tmp_path_factory.mktemp("records") / "partitions")


def workers(make: Callable[[int], Executor] = threads, patience: float = 600.0) -> Workers:
    return Workers(make, 2, patience)


def owner(source: Path, here: Workers, mine: Any = None, tiles: int = 1) -> OwnerRows:
    return replace(owner_of(here, str(source), PLAIN, None), mine=mine, tiles=tiles)


@pytest.mark.parametrize("precision", ["double", "single"])
@pytest.mark.parametrize("held_out", [False, True])
def test_sums_are_those_of_one_machine_to_the_last_bit(
    precision: Any, held_out: bool, partitions: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if precision == "double":
        monkeypatch.setattr("dpmpc.intake.engine.duckdb.connect", duckdb.connect)  # with threads of its own
    mine = np.random.default_rng(2).random(N) < 0.9 if held_out else None
    kept = np.arange(N) if mine is None else np.flatnonzero(mine)
    one = load(partitions, schema=SCHEMA, test_fraction=0.0, precision=precision,
               splitting=lambda table, groups, seed: (kept, seed[1]))  # fmt: skip
    here = workers()
    away = Away(owner(partitions, here, mine), SCHEMA, precision)
    assert (away.n, away.d) == (one.n, one.d) == (len(kept), D + 1)
    offsets = np.array([0, one.n])
    whole = list(tiles(offsets, away.d))
    assert len(whole) == 5
    *counts, target = away.looked_over(whole)
    assert [vars(each) for each in counts] == [vars(each) for each in one.counts]
    assert (target.name, target.missing) == (SCHEMA.target.name, one.misfits)
    for theta in (np.zeros(D + 1), np.linspace(-3, 3, D + 1)):
        found = owner_gradients(LOGISTIC, theta, away, offsets)
        assert found.tobytes() == owner_gradients(LOGISTIC, theta, one.train, offsets).tobytes()
    assert owner_coefficients(away, offsets).tobytes() == owner_coefficients(one.train, offsets).tobytes()
    with refuses("missing", setting="executor"):
        optima(LOGISTIC, away, offsets, 0.01)
    here.close()


def test_an_optimum_by_passes_is_that_of_one_machine(partitions: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dpmpc.learning.erm_blocks._STREAMED", 1000)
    one, here, offsets = load(partitions, schema=SCHEMA, test_fraction=0.0), workers(), np.array([0, N])
    away = Away(owner(partitions, here, tiles=4), SCHEMA, "double")
    for mine, theirs in zip(
        optima(LOGISTIC, away, offsets, 0.1), optima(LOGISTIC, one.train, offsets, 0.1), strict=True
    ):
        assert mine.tobytes() == theirs.tobytes()
    here.close()


def test_parts_whose_types_differ_are_read_as_one_machine_reads_them(tmp_path: Path) -> None:
    """What tools write that type each part by its own values: whole numbers beside fractions, and parts without any."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    rng, size = np.random.default_rng(7), 3000
    for k in range(4):
        whole, labels = rng.integers(-2, 3, size), rng.choice(["yes", "no"], size)
        numbers: Any = (pa.array(whole), pa.array(whole / 4), pa.nulls(size), pa.array(whole.astype(np.int8)))[k]
        days = pa.nulls(size) if k == 0 else pa.array(whole.astype("datetime64[D]"))
        table = pa.table({"x0": numbers, "day": days, "label": labels, "x1": pa.array(whole / (k + 1))})
        pq.write_table(table.select([*(("label", "x1", "x0", "day") if k == 2 else table.column_names)]),
                       tmp_path / f"part-{k}.parquet")  # fmt: skip
    schema = Schema((Numeric("x0", -2.0, 2.0), Numeric("x1", -2.0, 2.0)), Labels("label", ("yes",), ("no",)), True)
    one, here = load(tmp_path, schema=schema, test_fraction=0.0), workers()
    away, offsets = Away(owner(tmp_path, here), schema, "double"), np.array([0, 4 * size])
    whole_tiles = list(tiles(offsets, away.d))
    assert [vars(each) for each in away.looked_over(whole_tiles)[:-1]] == [vars(each) for each in one.counts]
    found = owner_gradients(LOGISTIC, np.linspace(-1, 1, 3), away, offsets)
    assert found.tobytes() == owner_gradients(LOGISTIC, np.linspace(-1, 1, 3), one.train, offsets).tobytes()
    survey = Survey(("x0", "x1"), ())
    with opened(tmp_path) as (table, _):
        (mean,) = survey.means(table, np.zeros(4 * size, dtype=np.int64), (4 * size,))
    assert mean_away(owner(tmp_path, here), survey).tobytes() == mean.tobytes()
    here.close()


def test_surveys_and_tables_are_those_of_one_machine(partitions: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dpmpc.learning.survey.PART", 16384)  # so that records of a test have several terms
    monkeypatch.setattr("dpmpc.learning.away.PART", 16384)
    monkeypatch.setattr("dpmpc.learning.survey._BLOCK", 2048)
    columns = Columns(
        (
            Quantity("x0", -2.0, 2.0),
            Category("ward", ("north", "south", "east"), (("north", 0), ("south", 1), ("east", 2))),
        )
    )
    sources = [Survey(("x0", "x1"), ("ward",)), Tables.of(columns, ["table1 by ward", "median(x0) by ward"])]
    here, mine = workers(), np.random.default_rng(3).random(N) < 0.7
    for source in sources:
        for chosen in (None, mine):
            away = mean_away(owner(partitions, here, chosen), source)
            size = N if chosen is None else int(chosen.sum())
            with opened(partitions) as (table, _):
                whose = np.zeros(N, dtype=np.int64) if chosen is None else np.where(chosen, 0, -1)
                (one,) = source.means(table, whose, (size,))
            assert away.shape == one.shape == (1, source.coordinates) and away.tobytes() == one.tobytes()
    here.close()


def test_rows_are_found_again() -> None:
    rng = np.random.default_rng(5)
    for n, part in ((1, 1.0), (200_000, 0.3), (131_072, 0.999), (70_000, 0.0)):
        mine = rng.random(n) < part
        kept = sorted({0, int(mine.sum()), *rng.integers(0, int(mine.sum()) + 1, 20).tolist()})
        for number, place in zip(kept, places_of(mine, kept), strict=True):
            assert mine[:place].sum() == number and (place == n or mine[place])


class Once:
    """Work that kills its worker when it is first done."""

    def __init__(self, mark: Path, work: Work, after: int = 1) -> None:
        self.mark, self.work, self.after = mark, work, after

    def shapes(self, owners: int, d: int) -> Any:
        return self.work.shapes(owners, d)

    def __call__(self, tile: Any, X: Any, y: Any, weights: Any) -> Any:
        if tile.begin >= self.after:  # in the middle of a pass
            try:
                self.mark.touch(exist_ok=False)
            except FileExistsError:
                return self.work(tile, X, y, weights)
            os.kill(os.getpid(), signal.SIGKILL)
        return self.work(tile, X, y, weights)


class Products:
    """A sum that tells the records and their order."""

    def shapes(self, owners: int, d: int) -> Any:
        return ((owners, d),)

    def __call__(self, tile: Any, X: Any, y: Any, weights: Any) -> Any:
        return ((y @ X.rows())[None, :],)


def test_a_lost_workers_tiles_are_done_again(partitions: Path, tmp_path: Path) -> None:
    """A worker process is killed while it works on a tile; another does its tasks, with the same sums."""
    here = Workers(executor_maker("processes"), 2)
    away = Away(owner(partitions, here), SCHEMA, "double")
    whole = list(tiles(np.array([0, N]), away.d))
    found = [sums[0] for _, sums in away.sums(whole, Once(tmp_path / "killed", Products()))]
    assert (tmp_path / "killed").exists()
    here.close()
    threaded = workers()
    one = [sums[0] for _, sums in Away(owner(partitions, threaded), SCHEMA, "double").sums(whole, Products())]
    threaded.close()
    assert [part.tobytes() for part in found] == [part.tobytes() for part in one]


class Answering(Executor):
    """An executor whose answers to tasks after the first are somebody's own."""

    def __init__(self, answer: Callable[[Any], Any]) -> None:
        self.answer, self.asked = answer, 0

    def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> "Future[Any]":
        future: Future[Any] = Future()
        self.asked += 1
        try:
            *found, mark = fn()
            answer = self.answer(tuple(found)) if self.asked > 1 else tuple(found)
            future.set_result((*answer, mark) if isinstance(answer, tuple) else answer)
        except Exception as error:  # noqa: BLE001
            future.set_exception(error)
        return future


def lost(answer: Any) -> Any:
    raise ConnectionError(WORDS[0])


def spoiled(value: float) -> Callable[[Any], Any]:
    def answer(found: Any) -> Any:
        sums, digest, counts = found[1]
        return "sums", ([(np.full_like(part[0], value),) for part in sums], digest, counts)

    return answer


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (lambda found: None, breaks("worker", "NoneType")),
        (lambda found: ("sums", None), breaks("worker")),
        (lambda found: ("sums", (found[1][0][:-1], *found[1][1:])), breaks("worker")),
        (lambda found: ("sums", ([(part[0][:, :-1],) for part in found[1][0]], *found[1][1:])), breaks("worker")),
        (
            lambda found: ("sums", ([(part[0].astype(object),) for part in found[1][0]], *found[1][1:])),
            breaks("worker"),
        ),
        (lambda found: ("sums", (found[1][0], secrets.token_bytes(5), found[1][2])), breaks("worker")),
        (spoiled(float("nan")), breaks("worker", "NaN")),
        (spoiled(float("inf")), breaks("worker", "NaN")),
        (lost, breaks("worker", TRIES, "ConnectionError")),
    ],
)
def test_what_is_no_sum_is_refused(answer: Any, says: Rule, partitions: Path) -> None:
    here = workers(lambda count: Answering(answer))
    away = Away(owner(partitions, here), SCHEMA, "double")
    with refuses(says) as error:
        owner_gradients(LOGISTIC, np.zeros(D + 1), away, np.array([0, N]))
    assert not CANARY.search(owner_text(error.value))
    here.close()


class Hanging(Executor):
    """An executor that takes no task until the test is over."""

    over = threading.Event()

    def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> "Future[Any]":
        self.over.wait()
        return Future()


class Silent(Executor):
    """An executor that never does one."""

    def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> "Future[Any]":
        return Future()


@pytest.mark.parametrize("kind", [Hanging, Silent])
def test_an_executor_that_hangs_does_not_hold_its_owner(kind: type[Executor], partitions: Path) -> None:
    Hanging.over.clear()
    here = workers(lambda count: kind(), patience=0.2)
    with refuses("worker", "0.2"):
        owner(partitions, here)
    here.close()
    Hanging.over.set()


def test_a_partition_that_changes_between_passes_ends_the_run(tmp_path: Path) -> None:
    """Whether its time of change tells it or not: then the digest of its records does."""
    folder = write(tmp_path / "partitions")
    here, offsets = workers(), np.array([0, N])
    away = Away(owner(folder, here), SCHEMA, "double")
    away.looked_over(list(tiles(offsets, away.d)))
    part = folder / "part-1.parquet"
    status, before = part.stat(), part.read_bytes()
    other = write(tmp_path / "other", x3=np.random.default_rng(9).normal(size=N)) / "part-1.parquet"
    part.write_bytes(other.read_bytes())
    with refuses("usage", "part-1.parquet"):
        owner_gradients(LOGISTIC, np.zeros(D + 1), away, offsets)
    part.write_bytes(before)
    os.utime(part, ns=(status.st_atime_ns, status.st_mtime_ns))
    owner_gradients(LOGISTIC, np.zeros(D + 1), away, offsets)
    part.write_bytes(other.read_bytes())
    unseen = replace(away._owner.partitions.parts[1], size=part.stat().st_size, changed=part.stat().st_mtime_ns)
    parts = (away._owner.partitions.parts[0], unseen, away._owner.partitions.parts[2])
    away._owner.partitions = replace(away._owner.partitions, parts=parts)
    with refuses("file"):
        owner_gradients(LOGISTIC, np.zeros(D + 1), away, offsets)
    here.close()


class Telling:
    """Work that fails with a record in its mouth."""

    def shapes(self, owners: int, d: int) -> Any:
        return ((),)

    def __call__(self, tile: Any, X: Any, y: Any, weights: Any) -> Any:
        raise ValueError(f"{WORDS[0]} {NUMBERS[0]}")


def test_no_error_of_a_worker_holds_a_record(
    tmp_path: Path, partitions: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    labels = np.where(np.arange(N) % 2 == 0, "yes", "no").astype(object)
    labels[5], labels[N - 5] = WORDS[:2]
    here = Workers(executor_maker("processes"), 1)
    away = Away(owner(write(tmp_path / "partitions", label=labels.astype(str)), here), SCHEMA, "double")
    whole = list(tiles(np.array([0, N]), away.d))
    with refuses("records", "label", kind=UsageError) as misfit:
        away.looked_over(whole)
    with refuses("usage", "ValueError", "test_away.py") as bug:
        list(Away(owner(partitions, here), SCHEMA, "double").sums(whole, Telling()))
    (tmp_path / "partitions" / "part-0.parquet").write_text(WORDS[1])
    with pytest.raises(UsageError) as damaged:
        owner(tmp_path / "partitions", here)
    here.close()
    said = capfd.readouterr()
    for text in (*(str(each.value) for each in (misfit, bug, damaged)), said.out, said.err):
        assert not CANARY.search(text), text


def test_workers_have_the_owners_versions_or_are_refused(partitions: Path) -> None:
    here = workers()
    task = owner(partitions, here).task(0, 10, lambda table, mine: [])
    assert task() == ("sums", [])
    kind, said = replace(task, versions=("dpmpc 0.0", "numpy 1.0", "duckdb 1.0"))()
    assert kind == "refused" and "workers have the versions of the owner's process, dpmpc 0.0, numpy 1.0" in said[0]
    here.close()


def test_an_executor_that_cannot_be_made_is_said_at_once(partitions: Path) -> None:
    asked = []

    def make(count: int) -> Executor:
        asked.append(count)
        raise UsageError("no scheduler")

    here = workers(make)
    with refuses("usage", "no scheduler"):
        owner(partitions, here)
    assert asked == [2]
    here.close()


def test_what_partitions_cannot_be_is_refused(tmp_path: Path, partitions: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    csv = tmp_path / "records.csv"
    csv.write_text("a,b\n1,2\n")
    with refuses("together", "records.csv", setting="executor"):
        partitions_of(str(csv))
    mixed = tmp_path / "mixed"
    mixed.mkdir()
    for k, values in enumerate(([1, 2], ["a", "b"])):
        pq.write_table(pa.table({"x": values}), mixed / f"{k}.parquet")
    with refuses("column", "x", "0.parquet", "1.parquet"):
        partitions_of(str(mixed))
    with refuses("column", "weight"):
        partitions_of(str(partitions)).check(["x0", "weight"])


@pytest.mark.parametrize(
    ("address", "refused"),
    [
        ("tcp://10.0.0.7:8786", True),
        ("tcp://scheduler.example:8786", True),
        ("scheduler:8786", True),
        ("ucx://127.0.0.1:8786", True),
        ("tcp://127.0.0.1:8786", False),
        ("tcp://[::1]:8786", False),
        ("localhost:8786", False),
        ("tls://scheduler.example:8786", False),
    ],
)
def test_dask_is_reached_on_this_machine_or_by_tls(address: str, refused: bool) -> None:
    if not refused:
        assert callable(executor_maker(f"dask:{address}"))
        return
    with refuses("addresses"):
        executor_maker(f"dask:{address}")


@pytest.mark.parametrize("address", ["10.0.0.7:6379", "head.example:6379", "ray://10.0.0.7:10001", "auto"])
def test_ray_is_reached_on_this_machine_or_by_tls(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with refuses("addresses", 6379, "RAY_USE_TLS"):
        executor_maker(f"ray:{address}")
    assert callable(executor_maker("ray:127.0.0.1:6379"))
    monkeypatch.setenv("RAY_USE_TLS", "1")
    assert callable(executor_maker(f"ray:{address}"))


def test_a_cluster_of_ray_with_a_node_elsewhere_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """A head of this machine says nothing of the others: their addresses are looked at when it is joined."""
    ray, left = ModuleType("ray"), list[str]()
    nodes = [
        {"NodeManagerAddress": host, "Alive": host != "10.0.0.8"} for host in ("127.0.0.1", "10.0.0.8", "10.0.0.7")
    ]
    of = {"is_initialized": lambda: False, "init": lambda **how: None, "nodes": lambda: nodes}
    vars(ray).update(of, shutdown=lambda: left.append("shutdown"))
    monkeypatch.setitem(sys.modules, "ray", ray)
    with socket.create_server(("127.0.0.1", 0)) as head:
        name = f"ray:127.0.0.1:{head.getsockname()[1]}"
        with refuses("addresses", "10.0.0.7", "RAY_USE_TLS", 1):
            executor_maker(name)(2)
    assert left == ["shutdown"]
    with refuses("missing", "127.0.0.1", "ConnectionRefusedError", setting="executor"):
        executor_maker(name)(2)


def test_dask_by_tls_without_certificates_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    distributed = ModuleType("distributed")

    def client(address: str) -> None:
        raise TypeError("TLS expects a `ssl_context` argument")

    vars(distributed).update(Client=client)
    monkeypatch.setitem(sys.modules, "distributed", distributed)
    with refuses("keys", 8786, setting="executor"):
        executor_maker("dask:tls://bank.example:8786")(2)


def test_an_executor_is_for_an_owner_alone() -> None:
    for more in ({"executor": "processes"}, {"workers": 2}):
        with refuses("together", "executor", setting="workers"):
            Request(records="x.parquet", target="y", owners=3, epsilon=1.0, delta=1e-5, **more)
