"""Who is to blame when several processes end: the one that died, however late its exit is heard of."""

import asyncio
import os
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from dpmpc.errors import PeerError
from dpmpc.processes.supervisor import Job, Process, Supervisor, run_here, run_jobs
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


def test_memory_that_ends_in_a_step_of_the_loop_ends_what_runs_once() -> None:
    """A pipe that can be read is tried again at once, for ever; what ends the run comes to its own end."""
    tries, cleaned = list[int](), list[bool]()
    read, write = os.pipe()
    os.write(write, b"x")

    def starved() -> None:
        tries.append(1)
        raise MemoryError

    async def body() -> None:
        asyncio.get_running_loop().add_reader(read, starved)
        try:
            await asyncio.Event().wait()
        finally:
            while len(tries) < 5:
                await asyncio.sleep(0)
            cleaned.append(True)

    with pytest.raises(MemoryError):
        run_here(body)
    assert cleaned == [True]
    os.close(read)
    os.close(write)
