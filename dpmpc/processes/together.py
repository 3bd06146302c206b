"""The starter's side of `nursery`: processes that share their imports, each with pipes of its own.

They are handled as `asyncio.subprocess.Process` is. On Linux only: elsewhere a fork without an exec is not safe.
"""

import asyncio
import contextlib
import json
import os
import signal
import socket
import sys
from collections.abc import Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import IO, Any

from dpmpc.lazy import dataclass
from dpmpc.processes import standing
from dpmpc.processes.standing import POSSIBLE as POSSIBLE


@dataclass
class Sibling:
    """One of them. `pid` is None until it lives; `returncode` until its end is heard of."""

    stdin: asyncio.WriteTransport
    stdout: asyncio.StreamReader
    reading: asyncio.ReadTransport  # what feeds `stdout`
    pid: int | None = None
    returncode: int | None = None
    ended: asyncio.Event = field(default_factory=asyncio.Event)

    async def wait(self) -> int:
        """Its exit code, as soon as there is one; negative for a signal."""
        await self.ended.wait()
        assert self.returncode is not None
        return self.returncode

    def end(self, code: int) -> None:
        """It ended so."""
        self.returncode = code
        self.ended.set()

    def close(self) -> None:
        """Our ends of its pipes; without them it ends."""
        self.stdin.close()
        self.reading.close()

    def send_signal(self, number: int) -> None:
        """Send a signal, if it lives. Its number stays its own until `Nursery.close`."""
        if self.pid is not None and self.returncode is None:
            os.kill(self.pid, number)

    def has_ended(self) -> bool:
        """Whether the kernel says that it has ended, be its exit heard of here or not."""
        if self.returncode is not None:
            return True
        if self.pid is None:
            return False
        try:
            return Path(f"/proc/{self.pid}/stat").read_text().rsplit(")", 1)[1].split()[0] == "Z"
        except OSError:
            return True


@dataclass
class Forked:
    """A nursery that `standing` forked, handled as one that was started for this alone."""

    stdin: asyncio.WriteTransport
    stdout: asyncio.StreamReader
    told: asyncio.StreamReader  # its number; its exit code
    reading: tuple[asyncio.ReadTransport, ...]
    pid: int | None = None
    returncode: int | None = None

    async def wait(self) -> int:
        """Its exit code; 1 where whoever forked it is gone."""
        while self.returncode is None:
            line = await self.told.readline()
            if line and self.pid is None:
                self.pid = int(line)
            else:
                self.returncode = int(line or b"1")
        for transport in self.reading:
            transport.close()
        return self.returncode

    def kill(self) -> None:
        """End it at once, if it lives."""
        if self.pid is not None and self.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)


@dataclass
class Nursery:
    """The process that they are forked from, and they."""

    handle: asyncio.subprocess.Process | Forked
    siblings: list[Sibling]
    listening: "asyncio.Task[None] | None" = None

    async def listen(self) -> None:
        """Hear who lives and who ended, until all have, or it is gone itself."""
        assert self.handle.stdout is not None
        while line := await self.handle.stdout.readline():
            k, pid, *code = json.loads(line)
            self.siblings[k].pid = pid
            if code:
                self.siblings[k].end(code[0])
            if all(sibling.returncode is not None for sibling in self.siblings):
                self.close()
        gone = await self.handle.wait()
        for sibling in self.siblings:  # where it died before them, or before they lived, none goes on
            if sibling.returncode is None:
                sibling.stdin.close()
                sibling.end(gone or 1)

    def close(self) -> None:
        """Their exits are heard of, or nobody listens any more: it may end when they have."""
        assert self.handle.stdin is not None
        self.handle.stdin.close()

    async def end(self, seconds: float) -> None:
        """When they have ended, or were told to: leave nothing of it."""
        self.close()
        for sibling in self.siblings:
            sibling.close()
        if self.listening is not None:
            await asyncio.wait([self.listening], timeout=seconds)
            if isinstance(self.handle, Forked):
                self.handle.kill()
            elif self.handle.returncode is None:
                signal_child(self.handle.pid, signal.SIGKILL)
            await self.listening


def child_has_ended(pid: int) -> bool:
    """Whether the kernel says that this process's child has ended; its exit stays for whoever waits for it."""
    try:
        return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
    except ChildProcessError:  # somebody has taken its exit already, and is about to tell
        return True


def signal_child(pid: int, number: int) -> None:
    """Sends a signal to this process's child, unless it has ended. `subprocess` would take the exit of one that has,
    and asyncio, which waits for it, would complain of an unknown child."""
    if not child_has_ended(pid):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)


async def start_together(
    preload: Sequence[str], outputs: Sequence[IO[bytes]], sockets: Sequence[Sequence[socket.socket]], **settings: Any
) -> Nursery:
    """As many processes as there are `outputs`, their standard errors; each inherits its own of the `sockets` under
    their own numbers. They have imported `preload`. `settings`: those of `asyncio.create_subprocess_exec`, of which
    the standing process, where there is one, heeds the environment."""
    rows: list[standing.Row] = []
    siblings: list[Sibling] = []
    with contextlib.ExitStack() as ours, contextlib.ExitStack() as theirs:  # what only they keep open
        for output, own in zip(outputs, sockets, strict=True):
            (stdin, give), (hear, stdout) = os.pipe(), os.pipe()
            theirs.callback(os.close, stdin)
            theirs.callback(os.close, stdout)
            siblings.append(sibling := await _sibling(give, hear))
            ours.callback(sibling.close)
            rows.append((stdin, stdout, output.fileno(), [s.fileno() for s in own]))
        handle: asyncio.subprocess.Process | Forked
        try:
            handle = await _forked(rows, preload, outputs[0].fileno(), settings["env"])
        except OSError:
            handle = await _started(rows, preload, outputs[0], **settings)
        ours.pop_all()
    nursery = Nursery(handle, siblings)
    nursery.listening = asyncio.create_task(nursery.listen())
    return nursery


async def _started(rows: list[standing.Row], preload: Sequence[str], output: IO[bytes], **settings: Any) -> Any:
    """A nursery that imports all itself."""
    return await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "dpmpc.processes.nursery",
        json.dumps(rows),
        *preload,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=output,  # a module that cannot be imported says so there
        pass_fds=sorted({number for *pipes, kept in rows for number in (*pipes, *kept)}),
        **settings,
    )


async def _forked(
    rows: list[standing.Row], preload: Sequence[str], output: int, environment: Mapping[str, str]
) -> Forked:
    """A nursery that a standing process forks, with `output` as its standard error. Errors: OSError."""
    with contextlib.ExitStack() as ours, contextlib.ExitStack() as theirs:
        (stdin, give), (hear, stdout), (listen, told) = os.pipe(), os.pipe(), os.pipe()
        for number in (stdin, stdout, told):
            theirs.callback(os.close, number)
        made = await _sibling(give, hear)
        ours.callback(made.close)
        answers, reading = await _reader(listen)
        ours.callback(reading.close)
        standing.ask(rows, preload, (stdin, stdout, output), told, environment)
        ours.pop_all()
    return Forked(made.stdin, made.stdout, answers, (made.reading, reading))


async def _sibling(give: int, hear: int) -> Sibling:
    """The ends of its pipes that are ours, as asyncio has them."""
    reader, reading = await _reader(hear)
    loop = asyncio.get_running_loop()
    stdin, _ = await loop.connect_write_pipe(asyncio.Protocol, os.fdopen(give, "wb", buffering=0))
    return Sibling(stdin, reader, reading)


async def _reader(hear: int) -> tuple[asyncio.StreamReader, asyncio.ReadTransport]:
    reader = asyncio.StreamReader(limit=1 << 30)
    reading, _ = await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(hear, "rb", buffering=0)
    )
    return reader, reading
