"""Runs tasks in processes, writes every run to a CSV file and recomputes nothing that is already there."""

import csv
import io
import os
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, Future, wait
from functools import partial
from pathlib import Path

from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from dpmpc.folders import OUT, make_folder, write_file
from dpmpc.processes.closing import Closing
from dpmpc.processes.executors import executor_maker
from dpmpc.show.terminal import Bar, Terminal
from dpmpc_experiments.task import COLUMNS, Row, Task, execute

Computed = tuple[list[Row], float]  # rows, and seconds of processor
TEXT = frozenset({"task", "dataset", "label", "loss", "owners", "method", "calibration", "law"})


class Workers(Closing):
    """Where tasks run: in this process, or where an executor says. The workers of a run serve all its experiments, so
    that what they have read stays read, and the next experiment's tasks run while this one's figures are drawn."""

    def __init__(self, jobs: int, data_dir: Path | None, executor: str = "processes") -> None:
        """`executor`: where tasks run if there are several jobs, as `processes.executors` names it."""
        self._make, self._jobs, self._data_dir = executor_maker(executor), jobs, data_dir
        self._here = jobs == 1 and executor == "processes"
        self._pool: Executor | None = None

    def submit(self, tasks: Sequence[Task], path: Path) -> "Batch":
        """These tasks, less those that the file has; what is to be computed may be under way from now on.

        The file gets whole tasks only; rows of a task cut short by a crash, and rows of tasks no longer asked for, are
        dropped when it is opened again.
        """
        wanted = {task.key: task for task in tasks}
        rows = [row for row in read_rows(path) if row["task"] in wanted]
        found = Counter(row["task"] for row in rows)
        done = {key for key, task in wanted.items() if found[key] == task.rows}
        rows = [row for row in rows if row["task"] in done]
        _rewrite(path, rows)
        todo = [task for key, task in wanted.items() if key not in done]
        if self._pool is None and todo and not self._here:
            self._pool = self._make(self._jobs)
        if self._pool is None:
            return Batch(path, rows, [partial(alone, task, self._data_dir) for task in todo], set())
        return Batch(path, rows, [], {self._pool.submit(alone, task, self._data_dir) for task in todo})

    def close(self) -> None:
        if self._pool is not None:
            self._pool.shutdown()


class Batch:
    """The tasks of one experiment. `fresh`: how many were not in the file; `seconds`: of processor that they took."""

    def __init__(
        self, path: Path, rows: list[Row], here: Sequence[Callable[[], Computed]], pending: set[Future[Computed]]
    ) -> None:
        self._path, self._rows, self._here, self._pending = path, rows, here, pending
        self.fresh, self.seconds = len(here) + len(pending), 0.0

    def finish(self, terminal: Terminal, name: str) -> list[Row]:
        """The rows of all tasks; each task's go to the file in one write. An interrupt loses those under way. Errors of
        a task end the run."""
        known = len({row["task"] for row in self._rows})
        with (
            Bar(terminal, name, known + self.fresh, known) as bar,
            self._path.open("a", newline="", encoding="utf-8") as file,
        ):
            for new, seconds in self._computed():
                file.write(_text(new))
                file.flush()
                os.fsync(file.fileno())
                self._rows.extend(new)
                self.seconds += seconds
                bar.done += 1
        return self._rows

    def _computed(self) -> Iterator[Computed]:
        yield from (task() for task in self._here)
        try:
            while self._pending:
                finished, self._pending = wait(self._pending, return_when=FIRST_COMPLETED)
                yield from (future.result() for future in finished)
        finally:
            self.cancel()

    def cancel(self) -> None:
        """Those that have not begun are not done any more."""
        for future in self._pending:
            future.cancel()


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
    make_folder(path.parent, OUT)
    write_file(path, _text(rows, header=True), public=True)


def alone(task: Task, data_dir: Path | None) -> Computed:
    """The rows of a task and the seconds of processor that it took, by one thread: as many tasks as there are cores run
    at once."""
    begin = time.process_time()
    with threadpool_limits(1):
        return execute(task, data_dir), time.process_time() - begin
