"""An event loop in a thread of its own: connections live there, while the caller's thread computes or waits.

So that the library works in scripts, in threads and in notebooks, where a loop runs already; and so that connections
are served while vectors are computed.
"""

import asyncio
import threading
from collections.abc import Coroutine
from concurrent.futures import CancelledError
from typing import Any, Generic, TypeVar

from dpmpc.lazy import dataclass
from dpmpc.processes.exhausted import guard

T = TypeVar("T")
_LOOK = 10.0  # seconds after which who waits looks whether the loop is still there


@dataclass
class _Exhaustion:
    """Of a loop: the error of the first step of the loop itself that had no memory; whether that has ended it."""

    error: MemoryError | None = None
    ended: bool = False


class Pending(Generic[T]):
    """What a coroutine on the loop will return.

    Waits on a plain lock. An interrupt may strike between any two steps of the thread that waits; the condition inside
    a future of `concurrent.futures` can then stay locked for ever, and the loop that wants to set the future with it.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, body: Coroutine[Any, Any, T], memory: _Exhaustion) -> None:
        self._loop, self._body, self._memory = loop, body, memory
        self._task: asyncio.Task[T] | None = None
        self._value: list[T] = []
        self._error: BaseException | None = None
        self._over = False
        self._ended = threading.Lock()
        self._ended.acquire()

    def result(self) -> T:
        """What the coroutine returns, when it has ended. An interrupt while waiting cancels it."""
        try:
            if not self._over:
                while not self._ended.acquire(timeout=_LOOK):
                    if self._memory.ended:
                        raise MemoryError from self._memory.error
                self._ended.release()
        except BaseException:
            self.cancel()
            raise
        if self._error is not None:
            raise self._error
        return self._value[0]

    def cancel(self) -> None:
        """Cancels the coroutine, from any thread."""
        self._loop.call_soon_threadsafe(self._cancel)

    def begin(self) -> None:
        """To be called on the loop, once."""
        self._task = self._loop.create_task(self._body)
        self._task.add_done_callback(self._end)

    def _end(self, task: "asyncio.Task[T]") -> None:
        self._task = None  # the task dies here, on the loop: an interrupt in its finalizers would be lost
        if task.cancelled():
            self._error = self._memory.error or CancelledError()
        else:
            self._error = task.exception()
        if self._error is None:
            self._value.append(task.result())
        self._over = True
        self._ended.release()

    def _cancel(self) -> None:
        if self._task is not None:
            self._task.cancel()
        elif not self._over:
            self._body.close()  # it never began


@dataclass(frozen=True)
class Ready(Generic[T]):
    """A value that is there already, where a `Pending` could be."""

    value: T

    def result(self) -> T:
        return self.value


class Background:
    """One loop and its thread; `stop` ends both. Where memory ends in a step of the loop itself, all that runs on it
    fails with that, and so does what is begun later."""

    def __init__(self, name: str) -> None:
        self._loop, self._memory = asyncio.new_event_loop(), _Exhaustion()
        guard(self._loop, self._unwind)
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            self._loop.run_forever()
        finally:
            self._memory.ended = self._memory.error is not None

    def _unwind(self, error: MemoryError) -> None:
        self._memory.error = error
        for task in asyncio.all_tasks(self._loop):
            task.cancel()

    def submit(self, body: Coroutine[Any, Any, T]) -> Pending[T]:
        """Begins `body` on the loop. Errors: RuntimeError when the loop has ended."""
        if self._memory.error is not None:
            body.close()
            raise MemoryError from self._memory.error
        pending = Pending(self._loop, body, self._memory)
        try:
            self._loop.call_soon_threadsafe(pending.begin)
        except RuntimeError:
            body.close()
            raise
        except BaseException:
            pending.cancel()
            raise
        return pending

    def run(self, body: Coroutine[Any, Any, T]) -> T:
        """What `body` returns. An interrupt while waiting cancels it."""
        return self.submit(body).result()

    def stop(self) -> None:
        """Cancels what still runs, then ends loop and thread. May be called twice."""
        if not self._loop.is_closed():
            if self._memory.error is None:
                self.submit(_cancel_all()).result()
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
            self._loop.close()


async def _cancel_all() -> None:
    others = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)
    await asyncio.get_running_loop().shutdown_asyncgens()
