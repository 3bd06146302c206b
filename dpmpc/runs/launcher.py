"""The launcher: starts the owners' process and the parties of a run on this machine, watches them, ends them all when
one fails.

It holds no record and no share. Children are told of the launcher's end by the end of their standard input.
"""

import asyncio
import contextlib
import json
import os
import signal
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dpmpc.errors import DpmpcError, PeerError
from dpmpc.mpc.loopback import free_base_port
from dpmpc.mpc.session import Endpoint, endpoints_here
from dpmpc.runs.folder import alone, prepare
from dpmpc.runs.request import Options

Progress = Callable[[dict[str, Any]], None]
PROGRAM = ("-m", "dpmpc.runs.worker")
_GRACE = 1.5  # seconds in which other processes may still say what the cause was


class RunError(DpmpcError):
    """A run failed; carries the exit code of the process that failed first."""

    def __init__(self, message: str, code: int) -> None:
        super().__init__(message)
        self.exit_code = code


@dataclass
class _Child:
    name: str
    role: str
    log: Path
    process: asyncio.subprocess.Process
    reader: "asyncio.Task[None] | None" = None
    error: tuple[str, int] | None = None
    done: bool = False


@dataclass
class _Run:
    children: list[_Child] = field(default_factory=list)
    events: "asyncio.Queue[tuple[_Child, dict[str, Any]]]" = field(default_factory=asyncio.Queue)


def owner_endpoints(addresses: list[Endpoint]) -> list[Endpoint]:
    """Where each party listens for owners: its own host, port + n."""
    return [Endpoint(a.host, a.port + len(addresses)) for a in addresses]


def options_path(out: Path) -> Path:
    """Where a run keeps the options it was started with, for --resume."""
    return out / "options.json"


def train(
    options: Options,
    out: Path,
    *,
    base_port: int | None = None,
    overwrite: bool = False,
    resume: bool = False,
    wait: float = 10.0,
    progress: Progress = lambda event: None,
    program: Sequence[str] = PROGRAM,
) -> None:
    """Does a whole run on this machine and returns when report.json is written. `program`: what Python runs in a child.

    Errors: RunError with the one line that names the cause; UsageError for an unusable directory.
    """
    started = time.time()
    if not out.exists():
        prepare(out, overwrite=overwrite, resume=resume)
    with alone(out):
        prepare(out, overwrite=overwrite, resume=resume)
        options_path(out).write_text(json.dumps(options.to_json()), encoding="utf-8")
        asyncio.run(_train(options, out, base_port, resume, wait, started, progress, program))


async def _train(
    options: Options,
    out: Path,
    base_port: int | None,
    resume: bool,
    wait: float,
    started: float,
    progress: Progress,
    program: Sequence[str],
) -> None:
    n = options.parties if options.engine == "mpc" else 0
    addresses: list[Endpoint] = []
    if n:
        addresses = endpoints_here(n, free_base_port(2 * n) if base_port is None else base_port)
    owner_addresses = owner_endpoints(addresses)
    common = {
        "out": str(out),
        "wait": wait,
        "tls": None,
        "addresses": _pairs(addresses),
        "owner_addresses": _pairs(owner_addresses),
    }
    run = _Run()
    try:
        job = {**common, "options": options.to_json(), "started": started, "resume": resume}
        owners = await _start(run, "the owners' process", "owners", out / "owners.log", program)
        parties = [await _start(run, f"party {i}", "party", out / f"party_{i}.log", program) for i in range(n)]
        _send(owners, job)
        while not all(child.done for child in run.children):
            child, event = await run.events.get()
            kind = event["event"]
            if kind == "plan":
                for i, party in enumerate(parties):
                    _send(party, {**common, "plan": event["path"], "index": i})
                progress(event)
            elif kind == "exit":
                child.done = True
                if event["code"] != 0:
                    raise await _cause(run, child)
            elif kind == "error":
                child.error = event["message"], event["code"]
            elif child is owners:
                progress(event)
    finally:
        await _end(run)


def _pairs(endpoints: list[Endpoint]) -> list[list[Any]]:
    return [[e.host, e.port] for e in endpoints]


async def _start(run: _Run, name: str, role: str, log: Path, program: Sequence[str]) -> _Child:
    environment = dict(os.environ)
    if role == "party":  # parties do no linear algebra; more threads would only take the cores from each other
        environment |= {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    with log.open("ab") as stderr:
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            *program,
            role,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=stderr,
            env=environment,
            start_new_session=True,
        )
    child = _Child(name, role, log, process)
    run.children.append(child)
    child.reader = asyncio.create_task(_read(run, child))
    return child


def _send(child: _Child, job: dict[str, Any]) -> None:
    assert child.process.stdin is not None
    with contextlib.suppress(ConnectionError, RuntimeError):  # a child that has died says so by its exit
        child.process.stdin.write(json.dumps(job).encode() + b"\n")


async def _read(run: _Run, child: _Child) -> None:
    assert child.process.stdout is not None
    while line := await child.process.stdout.readline():
        run.events.put_nowait((child, json.loads(line)))
    code = await child.process.wait()
    run.events.put_nowait((child, {"event": "exit", "code": code}))


async def _cause(run: _Run, first: _Child) -> RunError:
    """The error to report: the failure that is a cause, not its echo at the others."""
    failed = [first]
    codes = {first.name: first.process.returncode or 1}
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(_GRACE):
            while not all(child.done for child in run.children):
                child, event = await run.events.get()
                if event["event"] == "error":
                    child.error = event["message"], event["code"]
                elif event["event"] == "exit":
                    child.done = True
                    if event["code"] != 0:
                        failed.append(child)
                        codes[child.name] = event["code"]
    for child in failed:
        if child.error is not None and child.error[1] != PeerError.exit_code:
            return RunError(child.error[0], child.error[1])
    for child in failed:
        if child.error is None:  # killed, or a bug
            return RunError(*_died(child, codes[child.name]))
    message, code = first.error or ("a process failed without a word", 1)
    return RunError(message, code)


def _died(child: _Child, code: int) -> tuple[str, int]:
    if code < 0:
        try:
            name = signal.Signals(-code).name
        except ValueError:
            name = f"signal {-code}"
        return (
            f"every process must live until the end of the run; {child.name} was killed ({name}); finished iterations "
            "are in history.csv, carry on with --resume"
        ), PeerError.exit_code
    return f"a bug in dpmpc: {child.name} ended with exit code {code}; its traceback is at the end of {child.log}", 1


async def _end(run: _Run) -> None:
    """End all children; none is left behind."""
    for child in run.children:
        if child.process.stdin is not None:
            child.process.stdin.close()
    alive = [child for child in run.children if child.process.returncode is None]
    for send, seconds in ((None, 0.5), (signal.SIGTERM, 2.0), (signal.SIGKILL, 2.0)):
        alive = [child for child in alive if child.process.returncode is None]
        if not alive:
            break
        for child in alive:
            if send is not None:
                with contextlib.suppress(ProcessLookupError):
                    child.process.send_signal(send)
        await asyncio.wait([asyncio.ensure_future(child.process.wait()) for child in alive], timeout=seconds)
    for child in run.children:
        if child.reader is not None:
            child.reader.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await child.reader
