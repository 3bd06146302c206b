"""Who is to blame when several processes end: the one that died, however late its exit is heard of."""

import asyncio
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from dpmpc.errors import PeerError
from dpmpc.processes.supervisor import Job, Process, Supervisor, run_jobs
from tests.runs import HANG


def test_the_cause_is_the_process_that_was_killed_though_its_echo_came_first() -> None:
    """On a busy machine the exit of the killed one may be noticed after that of those who miss it."""

    async def body() -> str:
        supervisor = Supervisor()

        async def ended(name: str, code: str) -> Process:
            handle = await asyncio.create_subprocess_exec(sys.executable, "-c", code)
            await handle.wait()
            return Process(name, None, handle, tempfile.TemporaryFile())

        kill = "import os, signal; os.kill(os.getpid(), signal.SIGKILL)"
        killed, echo = await ended("party 1", kill), await ended("party 0", "raise SystemExit(3)")
        echo.code, echo.error = 3, PeerError("party 1 left the run without a word (ConnectionResetError)")
        heard = asyncio.Event()

        async def late() -> None:
            await heard.wait()
            killed.code = killed.handle.returncode

        def asked() -> bool:
            """The kernel, which knows: only now its exit is heard of."""
            heard.set()
            return Process.has_ended(killed)

        killed.has_ended = asked  # type: ignore[method-assign]
        killed.reader = asyncio.ensure_future(late())
        supervisor.processes += [echo, killed]
        cause = await supervisor.cause(0.0)
        assert heard.is_set()
        for process in supervisor.processes:
            process.output.close()
        return str(cause)

    assert asyncio.run(body()) == "every process must live until the end of the run; party 1 was killed (SIGKILL)"


def nothing(**_: Any) -> None:
    """A role."""


def test_threads_start_their_processes_one_after_the_other(monkeypatch: pytest.MonkeyPatch) -> None:
    start, under_way, most = asyncio.create_subprocess_exec, [0], [0]

    async def counted(*command: Any, **settings: Any) -> Any:
        under_way[0] += 1
        most[0] = max(most[0], under_way[0])
        await asyncio.sleep(0)
        try:
            return await start(*command, **settings)
        finally:
            under_way[0] -= 1

    monkeypatch.setattr(asyncio, "create_subprocess_exec", counted)
    jobs = [Job("one", f"{__name__}:nothing", {})]
    with ThreadPoolExecutor(3) as pool:
        assert list(pool.map(lambda _: run_jobs(jobs, HANG), range(3))) == [[None]] * 3
    assert most == [1]
