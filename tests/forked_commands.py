"""Commands of `dpmpc` forked from a process that has imported what they need (`forking_server`): whoever gives many of
them pays for their imports once.

What a command gets (arguments, environment, folder, standard streams) and how it ends are those of a program of its
own, and so is the process that its parties are forked from, which needs no imports either. BLAS has one thread, for a
process with several is not forked. A server holds for one environment, as interpreter and libraries read it as they
start; where another is wanted, another server takes its place.
"""

import atexit
import contextlib
import json
import os
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any

from dpmpc.processes import standing

HANG = 300.0  # no time limit of anything that is tested: it ends a test that would otherwise wait for ever
Command = Callable[..., "subprocess.CompletedProcess[str]"]
_OWN = {"OPENBLAS_NUM_THREADS": "1"}
_CALLER = """
import json, os, signal, socket, sys
listen, told = os.pipe()
said = {"words": ["dpmpc", *sys.argv[2:]], "environment": dict(os.environ), "folder": os.getcwd()}
body = json.dumps(said).encode()
with socket.socket(socket.AF_UNIX) as door:
    door.connect(sys.argv[1])
    socket.send_fds(door, [len(body).to_bytes(8, "big")], [told, 1, 2])
    door.sendall(body)
os.close(told)
pid = int.from_bytes(os.read(listen, 8), "big")
for number in (signal.SIGINT, signal.SIGTERM):
    signal.signal(number, lambda number, _: os.kill(pid, number))
code = int(os.read(listen, 64) or -9)
sys.exit(code if code >= 0 else 128 - code)
"""


class Forked:
    """A command under way, handled as `subprocess.Popen` is."""

    def __init__(self, pid: int, told: int, words: Sequence[str], texts: Sequence[IO[bytes]]) -> None:
        """`told`: where its exit code comes; `texts`: what it says, on standard output and standard error."""
        self.pid, self.args, self._told, self._texts = pid, list(words), told, texts
        self.returncode: int | None = None

    def poll(self) -> int | None:
        """Its exit code; None while it lives."""
        return self._ended(0)

    def wait(self, timeout: float = HANG) -> int:
        """Its exit code. Errors: TimeoutExpired."""
        if (code := self._ended(timeout)) is None:
            raise subprocess.TimeoutExpired(self.args, timeout)
        return code

    def communicate(self, timeout: float = HANG) -> tuple[str, str]:
        """What it said, when it has ended. Errors: TimeoutExpired."""
        self.wait(timeout)
        found = []
        for file in self._texts:
            file.seek(0)
            found.append(file.read().decode())
        return found[0], found[1]

    def send_signal(self, number: int) -> None:
        """A signal, if it lives: its number stays its own until its exit is told."""
        if self.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def kill(self) -> None:
        """End it at once, if it lives."""
        self.send_signal(signal.SIGKILL)

    def __enter__(self) -> "Forked":
        return self

    def __exit__(self, *_: object) -> None:
        self.wait()
        for file in self._texts:
            file.close()

    def _ended(self, seconds: float) -> int | None:
        if self.returncode is None and select.select([self._told], [], [], seconds)[0]:
            said = os.read(self._told, 64)
            os.close(self._told)
            self.returncode = int(said) if said else -signal.SIGKILL  # the server itself is gone
        return self.returncode


class Server:
    """The process that commands are forked from."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="dpmpc-tests-"))
        self._asking, theirs = socket.socketpair()
        with theirs, socket.socket(socket.AF_UNIX) as door:
            door.bind(self._door)
            door.listen()
            self.process = subprocess.Popen(
                [sys.executable, "-W", "error::ResourceWarning", "-m", "tests.forking_server", str(door.fileno())],
                stdin=theirs.fileno(),
                pass_fds=[door.fileno()],
                cwd=Path(__file__).parents[1],
                env={**environment, **_OWN},
            )

    def start(self, words: Sequence[str], environment: Mapping[str, str]) -> Forked:
        """A command of these words, in the current folder."""
        texts = [tempfile.TemporaryFile() for _ in range(2)]
        listen, told = os.pipe()
        whole = ["dpmpc", *words]
        said = {"words": whole, "environment": dict(environment), "folder": os.getcwd()}
        body = json.dumps(said).encode()
        try:
            socket.send_fds(self._asking, [len(body).to_bytes(8, "big")], [told, *(file.fileno() for file in texts)])
            self._asking.sendall(body)
        finally:
            os.close(told)
        if not (number := os.read(listen, 8)):
            raise AssertionError("the server that forks commands has ended")
        return Forked(int.from_bytes(number, "big"), listen, whole, texts)

    @property
    def _door(self) -> str:
        return str(self._folder / "door")

    def program(self, path: Path) -> None:
        """Write a program that does what `dpmpc` does, for a shell: it has a command forked, and ends as that does."""
        caller = self._folder / "caller.py"
        caller.write_text(_CALLER)
        path.write_text(f'#!/bin/sh\nexec "{sys.executable}" -IS "{caller}" "{self._door}" "$@"\n')
        path.chmod(0o755)

    def end(self) -> None:
        """It ends; commands that it has forked do not."""
        self._asking.close()
        self.process.wait(HANG)
        shutil.rmtree(self._folder, ignore_errors=True)


def run(server: Server, words: Sequence[str], environment: Mapping[str, str]) -> "subprocess.CompletedProcess[str]":
    """What a command said and how it ended. Errors: TimeoutExpired for one that does not end, which is killed."""
    with server.start(words, environment) as process:
        try:
            out, err = process.communicate()
        finally:
            process.kill()
        assert process.returncode is not None
        return subprocess.CompletedProcess(process.args, process.returncode, out, err)


@contextlib.contextmanager
def commands(environment: Callable[[], Mapping[str, str]]) -> Iterator[Command]:
    """As `tests.runs.dpmpc`, with a server of its own and the environment that holds at each call."""
    server = Server(environment())

    def command(*arguments: str | Path | float) -> "subprocess.CompletedProcess[str]":
        return run(server, [*map(str, arguments)], environment())

    try:
        yield command
    finally:
        server.end()


_servers: list[tuple[tuple[Any, ...], Server]] = []  # this process's own, with what a start would be like


def here() -> Server:
    """The server of this process, for the environment of this moment."""
    kind = standing._kind(os.environ)
    if _servers and (_servers[0][0] != kind or _servers[0][1].process.poll() is not None):
        end()
    if not _servers:
        _servers.append((kind, Server(os.environ)))
    return _servers[0][1]


def end() -> None:
    """It ends, if there is one."""
    while _servers:
        kind, server = _servers.pop()
        if kind[0] == os.getpid():  # else a fork of the process that started it
            server.end()


def number() -> int | None:
    """Its process number, where there is one: no child that a test started."""
    return _servers[0][1].process.pid if _servers else None


atexit.register(end)
