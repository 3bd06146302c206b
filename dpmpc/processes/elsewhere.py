"""An owner's tasks, worked out by workers elsewhere: results in the tasks' order, and a lost worker's tasks again.

A worker answers ("sums", value), or says in public words why not (`answering`): nothing that it raised travels, for a
stack and a message may quote records. What is raised all the same is an executor's own: its task was lost. With an
answer comes the mark that its task was sent with, drawn for each: an executor that hands out an answer twice, another
task's, or one of a pass before is found out.
"""

import queue
import secrets
import threading
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import BrokenExecutor, CancelledError, Executor, Future
from dataclasses import field
from pathlib import PurePath
from typing import Any

from dpmpc.errors import CODES, DpmpcError, UsageError, machine_text, public_message
from dpmpc.lazy import dataclass
from dpmpc.processes.executors import Make

TRIES = 4  # of a task, until it is given up
PATIENCE = 3600.0  # seconds without any answer
_LEAVING = 10.0  # seconds that an executor has to let its workers go
AHEAD = 4  # tasks for each worker that are out at once
Answer = tuple[str, Any]
_MARK = 16  # bytes


@dataclass(frozen=True)
class _Marked:
    """A task as it is sent: its answer is followed by its mark."""

    task: Callable[[], Answer]
    mark: bytes = field(default_factory=lambda: secrets.token_bytes(_MARK))

    def __call__(self) -> tuple[str, Any, bytes]:
        return *self.task(), self.mark


def answering(task: Callable[[], Any]) -> Answer:
    """What a task gives, as an answer that carries no record: at a worker."""
    try:
        return "sums", task()
    except DpmpcError as error:
        return "refused", (public_message(error), error.code)
    except Exception as error:  # noqa: BLE001  (a bug, of any type; its message may quote a record)
        last = traceback.extract_tb(error.__traceback__)[-1]
        met = f"a worker met {type(error).__name__} at line {last.lineno} of {PurePath(last.filename).name}"
        return "refused", (machine_text(error) or met, UsageError.code)


class Workers:
    """Workers of one owner, made when first needed and again when they are broken."""

    def __init__(self, make: Make, count: int, patience: float = PATIENCE) -> None:
        """`count`: of workers, where an executor is made with so many."""
        self.count = count
        self._make, self._patience = make, patience
        self._executor: Executor | None = None
        self._orders: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        self._out = set[Future[Any]]()

    def results(self, tasks: Sequence[Callable[[], Answer]], check: Callable[[int, Any], None]) -> Iterator[Any]:
        """What every task gives, in order. `check` refuses a value that is none of its task's; tasks can be pickled.

        Errors: UsageError that a worker said; for a task that was lost `TRIES` times, for an answer that is none, and
        for workers that bring nothing in so long a time.
        """
        marked = [_Marked(task) for task in tasks]
        events: queue.SimpleQueue[tuple[int, Future[Any] | BaseException]] = queue.SimpleQueue()
        lost, ready = Counter[int](), dict[int, Any]()
        sent = done = 0
        over = threading.Event()
        try:
            while done < len(tasks):
                while sent < min(len(tasks), done + max(64, AHEAD * self.count)):
                    self._send(sent, marked[sent], events, over)
                    sent += 1
                k, came = self._next(events)
                failed = came if isinstance(came, BaseException) else _failure(came)
                if failed is not None:
                    lost[k] += 1
                    _check_lost(failed, lost[k])
                    self._send(k, marked[k], events, over)
                    continue
                assert isinstance(came, Future)
                ready[k] = _opened(came.result(), marked[k].mark)
                check(k, ready[k])
                while done in ready:
                    yield ready.pop(done)
                    done += 1
        finally:
            over.set()
            for future in list(self._out):  # of a pass that ends early
                future.cancel()

    def _next(self, events: "queue.SimpleQueue[Any]") -> Any:
        try:
            return events.get(timeout=self._patience)
        except queue.Empty:
            raise UsageError(
                f"workers bring sums; for {self._patience:g} s none did; look at the executor, then start again",
                code="worker",
            ) from None

    def _send(self, k: int, task: _Marked, events: "queue.SimpleQueue[Any]", over: threading.Event) -> None:
        """Has a thread submit the task: an executor that hangs there must not hold its owner. `over`: nobody waits."""

        def order() -> None:
            if over.is_set():
                return
            try:
                if self._executor is None:
                    try:
                        self._executor = self._make(self.count)
                    except DpmpcError as error:  # no scheduler, no package: nothing that another try mends
                        events.put((k, _NoExecutor(error)))
                        return
                used = self._executor
                future = used.submit(task)
                self._out.add(future)
                future.add_done_callback(lambda future: self._came(used, k, future, events))
            except BrokenExecutor as error:
                self._drop(self._executor)
                events.put((k, error))
            except Exception as error:  # noqa: BLE001  (an executor's own, of any type)
                events.put((k, error))

        if self._thread is None:
            self._thread = threading.Thread(target=self._submit, daemon=True, name="submits")
            self._thread.start()
        self._orders.put(order)

    def _submit(self) -> None:
        while (order := self._orders.get()) is not None:
            order()

    def _came(self, used: Executor, k: int, future: "Future[Any]", events: "queue.SimpleQueue[Any]") -> None:
        self._out.discard(future)
        if not future.cancelled() and isinstance(future.exception(), BrokenExecutor):
            self._orders.put(lambda: self._drop(used))
        events.put((k, future))

    def _drop(self, used: Executor | None) -> None:
        """Has a broken executor replaced by the next task: in the thread that submits."""
        if used is not None and self._executor is used:
            self._executor = None
            used.shutdown(wait=False)

    def close(self) -> None:
        """Lets workers go; an executor that hangs is left behind."""
        if self._thread is None:
            return
        executor = self._executor
        if executor is not None:
            ends = threading.Thread(target=executor.shutdown, kwargs={"wait": False}, daemon=True)
            ends.start()
            ends.join(min(self._patience, _LEAVING))
        self._orders.put(None)
        self._thread.join(min(self._patience, _LEAVING))
        self._thread = None


class _NoExecutor(Exception):
    """The executor cannot be made: `args` has the error."""


def _check_lost(failed: BaseException, times: int) -> None:
    """Errors: there is no executor, or the task was lost too often."""
    if isinstance(failed, _NoExecutor):
        raise failed.args[0] from None
    if times >= TRIES:
        raise UsageError(
            f"a lost worker's part is done again; one was lost {TRIES} times, at last by {type(failed).__name__}; see "
            "that workers have dpmpc, memory and the records",
            code="worker",
        ) from None


def _failure(future: "Future[Any]") -> BaseException | None:
    return CancelledError() if future.cancelled() else future.exception()


def _opened(answer: Any, mark: bytes) -> Any:
    """The value of an answer to the task with this mark. Errors: what a worker said, or an answer that is none."""
    match answer:
        case (_, _, bytes(other)) if other != mark:
            raise UsageError("a worker answers the task that it was sent; one gave another's answer; mend the executor")
        case ("sums", value, bytes()):
            return value
        case ("refused", (str(text), str(code)), bytes()) if code in CODES:
            raise UsageError(text, code=code)
    raise UsageError(f"a worker answers with sums; one gave {type(answer).__name__}; mend the executor", code="worker")
