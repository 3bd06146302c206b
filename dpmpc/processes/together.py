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
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

POSSIBLE = sys.platform == "linux"


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
class Nursery:
    """The process that they are forked from, and they."""

    handle: asyncio.subprocess.Process
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
            if self.handle.returncode is None:
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
    their own numbers. They have imported `preload`. `settings`: those of `asyncio.create_subprocess_exec`."""
    rows: list[tuple[int, int, int, list[int]]] = []
    siblings: list[Sibling] = []
    with contextlib.ExitStack() as ours, contextlib.ExitStack() as theirs:  # what only they keep open
        for output, own in zip(outputs, sockets, strict=True):
            (stdin, give), (hear, stdout) = os.pipe(), os.pipe()
            theirs.callback(os.close, stdin)
            theirs.callback(os.close, stdout)
            siblings.append(sibling := await _sibling(give, hear))
            ours.callback(sibling.close)
            rows.append((stdin, stdout, output.fileno(), [s.fileno() for s in own]))
        handle = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "dpmpc.processes.nursery",
            json.dumps(rows),
            *preload,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=outputs[0],  # a module that cannot be imported says so there
            pass_fds=sorted({number for *pipes, kept in rows for number in (*pipes, *kept)}),
            **settings,
        )
        ours.pop_all()
    nursery = Nursery(handle, siblings)
    nursery.listening = asyncio.create_task(nursery.listen())
    return nursery


async def _sibling(give: int, hear: int) -> Sibling:
    """The ends of its pipes that are ours, as asyncio has them."""
    loop, reader = asyncio.get_running_loop(), asyncio.StreamReader(limit=1 << 30)
    reading, _ = await loop.connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(hear, "rb", buffering=0)
    )
    stdin, _ = await loop.connect_write_pipe(asyncio.Protocol, os.fdopen(give, "wb", buffering=0))
    return Sibling(stdin, reader, reading)
