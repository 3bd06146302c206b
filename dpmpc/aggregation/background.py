"""An event loop in a thread of its own: connections live there, while the caller's thread computes or waits.

So that the library works in scripts, in threads and in notebooks, where a loop runs already; and so that connections
are served while vectors are computed.
"""

import asyncio
import threading
from collections.abc import Coroutine
from concurrent.futures import Future
from typing import Any, TypeVar

T = TypeVar("T")


class Background:
    """One loop and its thread; `stop` ends both."""

    def __init__(self, name: str) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name=name, daemon=True)
        self._thread.start()

    def submit(self, body: Coroutine[Any, Any, T]) -> "Future[T]":
        """Begins `body` on the loop."""
        return asyncio.run_coroutine_threadsafe(body, self._loop)

    def run(self, body: Coroutine[Any, Any, T]) -> T:
        """What `body` returns. An interrupt while waiting cancels it."""
        future = self.submit(body)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    def stop(self) -> None:
        """Cancels what still runs, then ends loop and thread. May be called twice."""
        if not self._loop.is_closed():
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
