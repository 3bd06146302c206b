"""Runs tasks in processes, writes every run to a CSV file and recomputes nothing that is already there."""

import csv
import io
import os
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]  # comes with scikit-learn

from dpmpc.experiments.task import COLUMNS, Row, Task, execute
from dpmpc.processes.executors import executor_maker

TEXT = frozenset({"task", "dataset", "label", "loss", "owners", "method", "calibration", "law"})


def run_tasks(
    tasks: Sequence[Task],
    path: Path,
    *,
    data_dir: Path | None,
    jobs: int,
    console: Console,
    name: str,
    executor: str = "processes",
) -> list[Row]:
    """The rows of all tasks, from the file where they are finished and computed where not.

    The file gets whole tasks only, each in one write; rows of a task cut short by a crash, and rows of tasks no
    longer asked for, are dropped when it is opened again. An interrupt loses the tasks under way. Errors of a task
    end the run. `executor`: where tasks run if there are several jobs, as `processes.executors` names it.
    """
    make = executor_maker(executor)
    wanted = {task.key: task for task in tasks}
    rows = [row for row in read_rows(path) if row["task"] in wanted]
    found = Counter(row["task"] for row in rows)
    done = {key for key, task in wanted.items() if found[key] == task.rows}
    rows = [row for row in rows if row["task"] in done]
    _rewrite(path, rows)
    todo = [task for key, task in wanted.items() if key not in done]
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console) as progress, path.open("a", newline="", encoding="utf-8") as file:
        bar = progress.add_task(name, total=len(wanted), completed=len(done))

        def keep(new: list[Row]) -> None:
            file.write(_text(new))
            file.flush()
            os.fsync(file.fileno())
            rows.extend(new)
            progress.advance(bar)

        if jobs == 1 and executor == "processes":
            for task in todo:
                keep(alone(task, data_dir))
        elif todo:
            pool = make(min(jobs, len(todo)))
            pending: set[Future[list[Row]]] = {pool.submit(alone, task, data_dir) for task in todo}
            try:
                while pending:
                    finished, pending = wait(pending, return_when=FIRST_COMPLETED)
                    for future in finished:
                        keep(future.result())
            finally:
                for future in pending:  # leaving a `with` block would wait for them
                    future.cancel()
                pool.shutdown()
    return rows


def read_rows(path: Path) -> list[Row]:
    """The rows of a runs file, without a cut last line, numbers as numbers; none if missing or of other columns."""
    if not path.is_file():
        return []
    with path.open(newline="", encoding="utf-8") as file:
        reader = csv.reader(file)
        if tuple(next(reader, ())) != COLUMNS:
            return []
        return [_typed(line) for line in reader if len(line) == len(COLUMNS) and line[-1]]


def _typed(line: list[str]) -> Row:
    return {name: text if name in TEXT else float(text) for name, text in zip(COLUMNS, line, strict=True)}


def _text(rows: Sequence[Row], header: bool = False) -> str:
    buffer = io.StringIO()
    writer = csv.DictWriter(buffer, COLUMNS, lineterminator="\n")
    if header:
        writer.writeheader()
    writer.writerows({name: f"{v:.10g}" if isinstance(v, float) else v for name, v in row.items()} for row in rows)
    return buffer.getvalue()


def _rewrite(path: Path, rows: Sequence[Row]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_suffix(".tmp")
    fresh.write_text(_text(rows, header=True), encoding="utf-8")
    fresh.replace(path)


def alone(task: Task, data_dir: Path | None) -> list[Row]:
    """The rows of a task, computed by one thread: as many tasks as there are cores run at once."""
    with threadpool_limits(1):
        return execute(task, data_dir)
