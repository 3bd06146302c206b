"""Two that do the same at once, in the order that would hurt."""

import fcntl
import threading
from collections.abc import Callable
from typing import Any

import pytest

from tests.forked_commands import HANG


def at_once(patch: pytest.MonkeyPatch, first: Callable[[], Any], at: tuple[Any, str], second: Callable[[], Any]) -> Any:
    """What `second` returned, which began when `first` came to the function `at`; `first` went on from there when
    `second` had ended, or had asked for the lock of a file."""
    goes_on, found = threading.Event(), list[Any]()
    original, flock = getattr(*at), fcntl.flock

    def beside() -> None:
        try:
            found.append(second())
        finally:
            goes_on.set()

    thread = threading.Thread(target=beside)

    def asked(descriptor: int, how: int) -> None:
        if threading.current_thread() is thread:
            goes_on.set()
        flock(descriptor, how)

    def here(*arguments: Any, **named: Any) -> Any:
        if thread.ident is None:
            thread.start()
            assert goes_on.wait(HANG)
        return original(*arguments, **named)

    with patch.context() as change:
        change.setattr(*at, here)
        change.setattr(fcntl, "flock", asked)
        first()
        thread.join(HANG)
    (result,) = found
    return result
