"""The loop in a thread of its own: results, errors, interrupts at any moment, the end."""

import asyncio
import subprocess
import sys
from concurrent.futures import CancelledError, ThreadPoolExecutor

import pytest

from dpmpc.errors import PeerError
from dpmpc.processes.background import Background, Ready
from tests.refusals import refuses
from tests.runs import HANG

INTERRUPTED = """
import random, signal
from dpmpc.processes.background import Background

def interrupt(*_):
    raise KeyboardInterrupt

async def nothing():
    return 1

signal.signal(signal.SIGALRM, interrupt)
background, interrupts = Background("test"), 0
while interrupts < 1000:
    try:
        signal.setitimer(signal.ITIMER_REAL, 1e-6 + random.random() * 0.0004)
        while True:
            assert background.run(nothing()) == 1
    except KeyboardInterrupt:
        signal.setitimer(signal.ITIMER_REAL, 0)
        interrupts += 1
        assert background.run(nothing()) == 1
background.stop()
print("still alive after", interrupts)
"""


def test_an_interrupt_at_any_moment_leaves_the_loop_alive() -> None:
    """A thousand of them; a loop that waits on a future's condition is locked up after some twenty."""
    command = [sys.executable, "-W", "ignore::RuntimeWarning", "-c", INTERRUPTED]
    result = subprocess.run(command, capture_output=True, text=True, timeout=HANG, check=False)
    assert (result.returncode, result.stdout) == (0, "still alive after 1000\n"), result.stderr
    assert "Exception ignored" not in result.stderr  # an interrupt that nobody heard of


def test_results_and_errors_come_back() -> None:
    async def fails() -> None:
        raise PeerError("as it was")

    background = Background("test")
    pending = [background.submit(asyncio.sleep(0, k)) for k in range(5)]
    assert [p.result() for p in pending] == [p.result() for p in pending] == list(range(5))
    for _ in range(2):
        with refuses("peer", "as it was"):
            background.run(fails())
    with ThreadPoolExecutor(4) as threads:
        assert list(threads.map(lambda k: background.run(asyncio.sleep(0, k)), range(50))) == list(range(50))
    assert Ready(3).result() == 3
    background.stop()


def test_what_is_cancelled_ends_and_so_does_all_the_rest() -> None:
    ended: list[str] = []

    async def for_ever(name: str) -> None:
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            ended.append(name)

    background = Background("test")
    first, second = background.submit(for_ever("first")), background.submit(for_ever("second"))
    background.run(asyncio.sleep(0))
    first.cancel()
    with pytest.raises(CancelledError):
        first.result()
    assert ended == ["first"]
    background.stop()
    with pytest.raises(CancelledError):
        second.result()
    assert ended == ["first", "second"]
    background.stop()  # twice is once
    with pytest.raises(RuntimeError, match="closed"):
        background.run(for_ever("never"))
    assert ended == ["first", "second"]
