"""Several coroutines at once, none of whose failures gets lost or shouts twice."""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


async def together(*bodies: Coroutine[Any, Any, T]) -> list[T]:
    """What all return, in order. When one fails, the others are cancelled, and the first failure is raised; what the
    others raise while they are cancelled is its echo."""
    tasks = [asyncio.ensure_future(body) for body in bodies]
    if not tasks:
        return []
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_EXCEPTION)
        failed = [task for task in tasks if task in done and not task.cancelled() and task.exception() is not None]
        if not failed:
            return [task.result() for task in tasks]
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    error = failed[0].exception()
    assert error is not None
    raise error
