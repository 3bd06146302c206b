"""Starts processes of this machine, gives each its job, hears what they say, tells a cause from its echo, ends them.

Everything that runs in more than one process here goes through this: the parties of a run, measurements, tests. The
starter holds one pipe to each process; when the starter ends or dies, all of them end.
"""

import asyncio
import contextlib
import os
import signal
import socket
import sys
import tempfile
import threading
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import field
from pathlib import Path
from typing import IO, Any, TypeVar

from dpmpc.errors import DpmpcError, PeerError, error_of
from dpmpc.lazy import dataclass
from dpmpc.processes.exhausted import guard, left_by_loop
from dpmpc.processes.messages import dumps, loads
from dpmpc.processes.paths import child_environment
from dpmpc.processes.standing import ONE_THREAD
from dpmpc.processes.together import (
    POSSIBLE,
    Nursery,
    Sibling,
    child_has_ended,
    signal_child,
    start_together,
)

Event = dict[str, Any]
T = TypeVar("T")
GRACE = 1.5  # seconds in which other processes may still say what the cause was
LATE = 30.0  # seconds at most for the exit of a process that has ended to be heard of
_TAIL = 4000  # bytes of a temporary log that a bug's message carries


# One thread at a time starts a process: uvloop, the loop of every program that imports Ray, can do no more.
_STARTING = threading.Lock()


@dataclass
class Process:
    """One process. `name` is what messages call it."""

    name: str
    log: Path | None
    handle: asyncio.subprocess.Process | Sibling
    output: IO[bytes]  # its standard error
    reader: "asyncio.Task[None] | None" = None
    error: DpmpcError | None = None
    result: Any = None
    code: int | None = None  # of its exit

    def give(self, role: str, arguments: Mapping[str, Any]) -> None:
        """Its job: `role` is "module:function". A process that has died already says so by its exit."""
        assert self.handle.stdin is not None
        with contextlib.suppress(ConnectionError, RuntimeError):
            self.handle.stdin.write(dumps({"role": role, "arguments": arguments}) + b"\n")

    def has_ended(self) -> bool:
        """Whether the kernel says that it has ended, be its exit known here or not."""
        if isinstance(self.handle, Sibling):
            return self.handle.has_ended()
        return child_has_ended(self.handle.pid)

    def send_signal(self, number: int) -> None:
        """Send a signal, if it lives."""
        if not isinstance(self.handle, Sibling):
            signal_child(self.handle.pid, number)
            return
        with contextlib.suppress(ProcessLookupError):
            self.handle.send_signal(number)

    def death(self) -> DpmpcError:
        """What to say of its exit, where it said nothing itself."""
        assert self.code is not None
        if self.code < 0:
            try:
                how = signal.Signals(-self.code).name
            except ValueError:
                how = f"signal {-self.code}"
            return PeerError(f"every process must live until the end of the run; {self.name} was killed ({how})")
        where, below = f"; its traceback is at the end of {self.log}", ""
        if self.log is None:
            self.output.seek(max(0, self.output.seek(0, os.SEEK_END) - _TAIL))
            where, below = "", self.output.read().decode(errors="replace")
        return DpmpcError(f"a bug in dpmpc: {self.name} ended with exit code {self.code}{where}", below=below)


@dataclass
class Supervisor:
    """Processes started together; used within one event loop. `on_event` is told what they emit."""

    on_event: Callable[[Process, Event], None] = lambda process, event: None
    processes: list[Process] = field(default_factory=list)
    _nurseries: list[Nursery] = field(default_factory=list)
    _changed: asyncio.Event = field(default_factory=asyncio.Event)

    async def start(
        self,
        name: str,
        *,
        log: Path | None = None,
        preload: Sequence[str] = (),
        sockets: Sequence[socket.socket] = (),
        prefix: Sequence[str] = (),
        environment: Mapping[str, str] = ONE_THREAD,
    ) -> Process:
        """A process that has imported `preload` and waits for its job. It inherits `sockets` under their own numbers.

        `prefix`: a command that starts it somewhere else, such as `ip netns exec NAME`. Its log is appended to; without
        one, what it prints is kept for the message of a bug.
        """
        output = _output(log)
        async with _one_at_a_time():
            handle = await asyncio.create_subprocess_exec(
                *prefix,
                sys.executable,
                "-m",
                "dpmpc.processes.worker",
                *preload,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=output,
                pass_fds=[s.fileno() for s in sockets],
                **_settings(environment),
            )
        return self._watch(Process(name, log, handle, output))

    async def start_together(
        self,
        names: Sequence[str],
        *,
        logs: Sequence[Path | None] | None = None,
        preload: Sequence[str] = (),
        sockets: Sequence[Sequence[socket.socket]],
        environment: Mapping[str, str] = ONE_THREAD,
    ) -> list[Process]:
        """The same for several, each with its log and its own `sockets`: where that is possible, `preload` is imported
        once for all, which is most of what a process costs that does little."""
        where = logs or [None] * len(names)
        if len(names) == 1 or not POSSIBLE:
            return [
                await self.start(name, log=log, preload=preload, sockets=own, environment=environment)
                for name, log, own in zip(names, where, sockets, strict=True)
            ]
        outputs = [_output(log) for log in where]
        async with _one_at_a_time():
            nursery = await start_together(preload, outputs, sockets, **_settings(environment))
        self._nurseries.append(nursery)
        return [self._watch(Process(*given)) for given in zip(names, where, nursery.siblings, outputs, strict=True)]

    def _watch(self, process: Process) -> Process:
        self.processes.append(process)
        process.reader = asyncio.create_task(self._read(process))
        return process

    async def _read(self, process: Process) -> None:
        assert process.handle.stdout is not None
        while line := await process.handle.stdout.readline():
            event = loads(line)
            if event["event"] == "error":
                process.error = error_of(**{name: value for name, value in event.items() if name != "event"})
            elif event["event"] == "result":
                process.result = event["value"]
            else:
                self.on_event(process, event)
        process.code = await process.handle.wait()
        self._changed.set()

    async def done(self, seconds: float | None = None) -> list[Any]:
        """What every role returned, in the order of starting, when all have ended.

        Errors: the cause of the first failure; PeerError after `seconds`.
        """
        try:
            async with asyncio.timeout(seconds):
                while any(process.code is None for process in self.processes):
                    await self._change()
                    if self._failed():
                        raise await self.failure()
        except TimeoutError:
            late = ", ".join(process.name for process in self.processes if process.code is None)
            raise PeerError(f"all processes must end within {seconds:g} s; {late} did not; ask for less") from None
        if self._failed():
            raise await self.failure()
        return [process.result for process in self.processes]

    async def failure(self) -> DpmpcError:
        """Returns the cause when a process fails; waits for ever otherwise."""
        while not self._failed():
            await self._change()
        return await self.cause() or PeerError("every process must live until the end of the run; one failed")

    async def cause(self, seconds: float = GRACE) -> DpmpcError | None:
        """The error to report of processes that have failed or are about to: the cause, not its echo at the others.

        None where nobody fails within `seconds`.
        """
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while any(process.code is None for process in self.processes):
                    await self._change()
        # Whoever died first has died by now; on a busy machine its exit may not have been heard of yet.
        late = [p.reader for p in self.processes if p.code is None and p.reader is not None and p.has_ended()]
        if late:
            await asyncio.wait(late, timeout=LATE)
        failed = self._failed()
        for process in failed:
            if process.error is not None and not isinstance(process.error, PeerError):
                return process.error
        for process in failed:
            if process.error is None:  # killed, or a bug
                return process.death()
        return failed[0].error if failed else None

    def _failed(self) -> list[Process]:
        return [process for process in self.processes if process.code not in (None, 0)]

    async def _change(self) -> None:
        await self._changed.wait()
        self._changed.clear()

    async def end(self) -> None:
        """Ends all processes; none is left behind."""
        for process in self.processes:
            if process.handle.stdin is not None:
                process.handle.stdin.close()
        for send, seconds in ((None, 0.5), (signal.SIGTERM, 2.0), (signal.SIGKILL, 10.0)):
            alive = [process for process in self.processes if process.handle.returncode is None]
            if not alive:
                break
            for process in alive:
                if send is not None:
                    process.send_signal(send)
            await asyncio.wait([asyncio.ensure_future(process.handle.wait()) for process in alive], timeout=seconds)
        for process in self.processes:
            if process.reader is not None:
                process.reader.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await process.reader
            process.output.close()
        for nursery in self._nurseries:
            await nursery.end(10.0)


def _output(log: Path | None) -> IO[bytes]:
    return tempfile.TemporaryFile() if log is None else log.open("ab")


def _settings(environment: Mapping[str, str]) -> dict[str, Any]:
    """Of every start."""
    return {
        "env": {**child_environment(), **environment},
        "start_new_session": True,  # an interrupt on the terminal goes to the starter alone
        "limit": 1 << 30,
    }


@contextlib.asynccontextmanager
async def _one_at_a_time() -> AsyncIterator[None]:
    while not _STARTING.acquire(blocking=False):
        await asyncio.sleep(0.001)
    try:
        yield
    finally:
        _STARTING.release()


@dataclass(frozen=True)
class Job:
    """What one process does: a role "module:function" and its arguments."""

    name: str
    role: str
    arguments: Mapping[str, Any]
    sockets: Sequence[socket.socket] = ()
    prefix: Sequence[str] = ()


def run_jobs(
    jobs: Sequence[Job],
    seconds: float | None = 600.0,
    background: Sequence[Job] = (),
    preload: Sequence[str] = (),
) -> list[Any]:
    """What every job returned, in order. Jobs in the `background` run as long as the others, and end all where one of
    them fails. `preload`: modules that the jobs will need, besides those of their roles. No process is left behind.

    Works where an event loop runs in this thread, too. Errors: the cause of the first failure; PeerError after
    `seconds`.
    """

    async def run() -> list[Any]:
        supervisor, beside = Supervisor(), Supervisor()
        try:
            for group, where, modules in ((background, beside, ()), (jobs, supervisor, preload)):
                for job, process in zip(group, await _start(where, group, modules), strict=True):
                    process.give(job.role, job.arguments)
            for job in (*jobs, *background):
                for s in job.sockets:
                    s.close()
            results, broken = asyncio.ensure_future(supervisor.done(seconds)), asyncio.ensure_future(beside.failure())
            try:
                await asyncio.wait([results, broken], return_when=asyncio.FIRST_COMPLETED)
                if broken.done():
                    raise broken.result()
                return results.result()
            finally:
                for task in (results, broken):
                    task.cancel()
                await asyncio.gather(results, broken, return_exceptions=True)
        finally:
            await supervisor.end()
            await beside.end()

    return run_here(run)


async def _start(supervisor: Supervisor, jobs: Sequence[Job], preload: Sequence[str]) -> list[Process]:
    """A process for each job."""
    modules = [job.role.partition(":")[0] for job in jobs]
    if any(job.prefix for job in jobs):
        return [
            await supervisor.start(job.name, preload=[*preload, module], sockets=job.sockets, prefix=job.prefix)
            for job, module in zip(jobs, modules, strict=True)
        ]
    names, sockets = [job.name for job in jobs], [job.sockets for job in jobs]
    return (
        await supervisor.start_together(names, preload=[*preload, *sorted(set(modules))], sockets=sockets)
        if jobs
        else []
    )


def run_here(body: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """What the coroutine `body()` returns, run to its end on an event loop of its own.

    In this thread if no loop runs in it, else (a notebook) in another, while this one waits. The loop's task returns
    nothing: at its end asyncio gives Ctrl-C back, for which Python writes out that task and with it what it returns,
    ten milliseconds an array, and nobody reads it.

    Where memory ends in a step of the loop itself, it ends `body` (`exhausted.guard`). All loops that a task of ours
    runs on to its end are made here.
    """
    found: list[T] = []

    async def main() -> None:
        ended: list[MemoryError] = []
        mine = asyncio.current_task()
        assert mine is not None

        def unwind(error: MemoryError) -> None:
            ended.append(error)
            mine.cancel()

        guard(asyncio.get_running_loop(), unwind)
        try:
            found.append(await body())
        except asyncio.CancelledError:
            if ended:
                raise ended[0] from None
            raise

    def run() -> None:
        with left_by_loop():
            asyncio.run(main())

    try:
        asyncio.get_running_loop()
    except RuntimeError:
        run()
    else:
        with ThreadPoolExecutor(1) as thread:
            thread.submit(run).result()
    return found[0]
