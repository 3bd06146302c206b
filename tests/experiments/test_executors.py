"""Grids of tasks on executors of every kind: the same rows, resumed as on processes; what is none is refused."""

import importlib
import io
from concurrent.futures import Executor, ThreadPoolExecutor
from pathlib import Path

import pytest
from dpmpc_experiments.runner import Workers, read_rows
from dpmpc_experiments.task import Row, Source, Task

from dpmpc.processes.executors import executor_maker
from dpmpc.show.terminal import Terminal
from tests.refusals import Rule, breaks, refuses

QUIET = Terminal(io.StringIO())
submitted: list[str] = []
made: list[Executor] = []
TASKS = [
    Task("t", Source("synthetic", 1, 0.1, 100, 0.5), "even:5", 1, method, "zcdp", (1.0,), 1e-3, 3, 1.0, (1,), (3,))
    for method in ("MPC Grad P", "Pathak", "MPC Out P")
]


class Counting(ThreadPoolExecutor):
    """A user's own executor."""

    def submit(self, fn, /, *args, **kwargs):  # type: ignore[no-untyped-def]
        submitted.append(args[0].method)
        return super().submit(fn, *args, **kwargs)


def threads() -> Executor:
    made.append(Counting(2))
    return made[-1]


def nothing() -> int:
    return 3


def run(path: Path, executor: str, tasks: list[Task] = TASKS) -> list[Row]:
    with Workers(2, None, executor) as workers:
        rows = workers.submit(tasks, path).finish(QUIET, "t")
    return sorted(rows, key=lambda row: str(row["task"]))


EXECUTOR = "tests.experiments.test_executors:threads"


def test_a_users_executor_gives_the_same_rows_and_resumes(tmp_path: Path) -> None:
    with Workers(1, None) as workers:
        workers.submit(TASKS, tmp_path / "here.csv").finish(QUIET, "t")
    run(tmp_path / "there.csv", EXECUTOR, TASKS[:2])
    run(tmp_path / "there.csv", EXECUTOR)  # two are done
    there, found = read_rows(tmp_path / "there.csv"), read_rows(tmp_path / "here.csv")
    assert sorted(found, key=lambda row: str(row["task"])) == sorted(there, key=lambda row: str(row["task"]))
    assert len(read_rows(tmp_path / "there.csv")) == 3
    assert importlib.import_module(EXECUTOR.partition(":")[0]).submitted == ["MPC Grad P", "Pathak", "MPC Out P"]


def test_the_workers_of_a_run_serve_all_its_experiments(tmp_path: Path) -> None:
    """They are made once, and the second one's tasks are theirs before the first one is finished."""
    home = importlib.import_module(EXECUTOR.partition(":")[0])
    home.made.clear()
    with Workers(2, None, EXECUTOR) as workers:
        first, second = (workers.submit(TASKS[:k], tmp_path / f"{k}.csv") for k in (1, 2))
        assert first.fresh == 1 and second.fresh == 2 and home.submitted[-3:] == ["MPC Grad P", "MPC Grad P", "Pathak"]
        assert len(first.finish(QUIET, "a")) == 1 and len(second.finish(QUIET, "b")) == 2
        assert second.seconds > 0
    assert len(home.made) == 1


def test_joblibs_workers_do_it_too(tmp_path: Path) -> None:
    assert len(run(tmp_path / "runs.csv", "joblib", TASKS[:1])) == 1


@pytest.mark.parametrize(
    ("name", "broken"),
    [
        ("cloud", breaks("choice", "cloud", setting="executor")),
        ("dask:", breaks("choice", "dask:", setting="executor")),
        ("no.such.module:f", breaks("usage", "no.such.module", setting="executor")),
        ("tests.experiments.test_executors:missing", breaks("unknown", "test_executors:missing", setting="executor")),
    ],
)
def test_what_is_no_executor_is_refused(name: str, broken: Rule) -> None:
    with refuses(broken):
        executor_maker(name)


def test_a_function_that_returns_something_else_is_refused() -> None:
    with refuses("type", "int", setting="executor"):
        executor_maker("tests.experiments.test_executors:nothing")(1)
