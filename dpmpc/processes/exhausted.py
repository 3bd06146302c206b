"""The end of a process that has no memory left: a line that was made ready before, and an exit, which need none; and
what is passing goes, where records may lie, in memory that was kept for it.

One array too many is an error as any other: it unwinds, and is said where errors are said. Where nothing can be had any
more, what unwinds, says or handles it fails in turn: a line of an error, a thread's last word, the handler of an event
loop. All of these end here, at once: the line is written and the process exits, without a step that asks for memory.

The processes of a command are such (`make_ready`): whoever started one has its line. A program that uses this library
is not: there a MemoryError is raised as anywhere, and an event loop of ours in which steps go on failing stops.
"""

import contextlib
import os
import sys
import threading
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from dpmpc.errors import Spelling, machine_text, spelt
from dpmpc.folders import let_passing_go

if TYPE_CHECKING:
    import asyncio

EXIT_CODE = 1
MOST = 100  # steps of a loop that may fail while what runs on it unwinds: a pipe that is read is tried again each turn
# Address space that is kept until the end: to list a folder takes a buffer of the C library's, and objects an arena. It
# is never written to, so it takes no memory until then.
SPARE = 1 << 22
_ready: list[Any] = [-1, b"", EXIT_CODE]  # the descriptor and the line, and the exit code
_spare: list[bytearray] = []


class _LoopEnds(SystemExit):
    """Leaves an event loop, whatever still runs on it."""


def text(spelling: Spelling | None = None) -> str:
    """What is said."""
    said = machine_text(MemoryError())
    assert said is not None
    return said if spelling is None else spelt(said, spelling)


def make_ready(descriptor: int, line: bytes, code: int = EXIT_CODE) -> None:
    """From now on this process ends so when memory does, in whichever thread. For processes that are a command's own.
    An empty line: the last word has been said."""
    if _ready[0] < 0:
        threading.excepthook, sys.unraisablehook = _of_threads, _of_finalizers
    _ready[:] = descriptor, line, code
    if not _spare:
        _spare.append(bytearray(SPARE))


def end() -> None:
    """Ends this process if it was made ready, at once; returns otherwise."""
    descriptor, line, code = _ready
    if descriptor < 0:
        return
    try:
        if line:
            os.write(descriptor, line)  # short, and so in one piece
        _spare.clear()
        let_passing_go()
    finally:
        os._exit(code)


@contextlib.contextmanager
def ending() -> Iterator[None]:
    """A MemoryError that would leave this context ends the process, if it was made ready."""
    try:
        yield
    except MemoryError:
        end()
        raise


def guard(loop: "asyncio.AbstractEventLoop", unwind: Callable[[MemoryError], None]) -> None:
    """Has `loop` call `unwind` once, where memory ends in a step of the loop itself, which nothing that runs on it can
    catch. Where steps go on failing, or this fails, process or loop ends: none spins."""
    failed = 0

    def told(loop: "asyncio.AbstractEventLoop", context: dict[str, Any]) -> None:
        nonlocal failed
        try:
            error = context.get("exception")
            if not isinstance(error, MemoryError):
                loop.default_exception_handler(context)
                return
            failed += 1
            if failed == 1:  # what unwinds is not cut short by the next
                unwind(error)
            if failed <= MOST:
                return
        except MemoryError:
            pass
        end()
        raise _LoopEnds

    loop.set_exception_handler(told)


@contextlib.contextmanager
def left_by_loop() -> Iterator[None]:
    """A loop that ends for want of memory within is a MemoryError."""
    try:
        yield
    except _LoopEnds:
        raise MemoryError from None


def _of_threads(told: threading.ExceptHookArgs) -> None:
    """A thread that memory ends may be waited for for ever."""
    if isinstance(told.exc_value, MemoryError):
        end()
    threading.__excepthook__(told)


def _of_finalizers(told: "sys.UnraisableHookArgs") -> None:
    if isinstance(told.exc_value, MemoryError):
        end()
    sys.__unraisablehook__(told)
