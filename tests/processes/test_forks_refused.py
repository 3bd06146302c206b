"""A machine that starts no more processes: one line of what it refused, wherever the starter of processes was, and
nobody is left."""

import asyncio
import errno
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from dpmpc.errors import DpmpcError
from dpmpc.processes import standing
from dpmpc.processes.supervisor import Job, Supervisor, run_jobs
from dpmpc.processes.together import POSSIBLE
from tests.runs import HANG, alive, wait_until

pytestmark = pytest.mark.skipif(not POSSIBLE, reason="they are forked on Linux alone")
ROLE = "tests.processes.roles:described"
# In the standing process and all that it forks: the fork of this number, counted down the line, fails.
REFUSING = """
import os, sys
if "standing" in sys.orig_argv:
    forks, real = 0, os.fork

    def fork():
        global forks
        forks += 1
        if forks == {number}:
            raise OSError({error}, os.strerror({error}))
        return real()

    os.fork = fork
"""


@pytest.fixture
def afresh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder whose `sitecustomize` a standing process reads that starts now."""
    monkeypatch.setattr(standing, "_standing", [])
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    yield tmp_path
    standing.end()


async def refused() -> tuple[DpmpcError, list[int]]:
    """What is said where one of three cannot be started, and the numbers of those that were."""
    supervisor = Supervisor()
    try:
        started = await supervisor.start_together("abc", preload=[ROLE.partition(":")[0]], sockets=[()] * 3)
        for process in started:
            process.give(ROLE, {})
        with pytest.raises(DpmpcError) as raised:
            await supervisor.done(HANG)
    finally:
        await supervisor.end()
    return raised.value, [process.handle.pid for process in started if process.handle.pid is not None]


@pytest.mark.parametrize("number", [1, 2, 3, 4], ids=["their nursery", "the first", "the second", "the third"])
def test_one_line_says_so_and_none_is_left(number: int, afresh: Path) -> None:
    """Those that were born before it end with it; the standing process lives, and forks what is asked for next."""
    error = (errno.EAGAIN, errno.ENOMEM)[number % 2]
    (afresh / "sitecustomize.py").write_text(REFUSING.format(number=number, error=error))
    found, born = asyncio.run(refused())
    said = f"this machine must do what is asked of it; {os.strerror(error)}; mend that and try again"
    assert (found.message, found.exit_code) == (said, 1)
    assert len(born) == max(0, number - 2)
    wait_until(lambda: alive(born) == [])
    own = standing._standing[0].process
    assert own.poll() is None
    if number == 1:  # it has forked once by now, in vain
        assert {one["grandparent"] for one in run_jobs([Job(name, ROLE, {}) for name in "ab"], HANG)} == {own.pid}
