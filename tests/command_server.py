"""Commands of `dpmpc` forked from a process that has imported what they need: a module that gives many of them pays for
their imports once. What a command gets (arguments, environment, folder, standard streams) and how it ends are those of
a fresh program; BLAS has one thread, for a process with several is not forked."""

import contextlib
import importlib
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from dpmpc.cli.main import main
from tests.runs import HANG

Command = Callable[..., "subprocess.CompletedProcess[str]"]
PRELOAD = ("train", "predict", "report", "verify", "account", "advise", "sample", "kit", "rehearse", "bench")


@contextlib.contextmanager
def commands(environment: Callable[[], Mapping[str, str]]) -> Iterator[Command]:
    """As `tests.runs.dpmpc`, with the environment that holds at each call."""
    ours, theirs = socket.socketpair()
    with ours:
        with theirs:
            server = subprocess.Popen(
                [sys.executable, "-W", "error::ResourceWarning", "-m", "tests.command_server"],
                stdin=theirs.fileno(),
                cwd=Path(__file__).parents[1],
                env={**environment(), "OPENBLAS_NUM_THREADS": "1"},
            )

        def command(*arguments: str | Path | float) -> "subprocess.CompletedProcess[str]":
            words = ["dpmpc", *map(str, arguments)]
            with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
                said = json.dumps({"words": words, "environment": dict(environment()), "folder": os.getcwd()}).encode()
                socket.send_fds(ours, [len(said).to_bytes(8, "big")], [out.fileno(), err.fileno()])
                ours.sendall(said)
                code = int.from_bytes(_exactly(ours, 8), "big", signed=True)
                texts = []
                for file in (out, err):
                    file.seek(0)
                    texts.append(file.read().decode())
            return subprocess.CompletedProcess(words, code, *texts)

        try:
            yield command
        finally:
            ours.close()
            server.wait(HANG)


def _exactly(sock: socket.socket, length: int) -> bytes:
    body = b""
    while len(body) < length:
        part = sock.recv(length - len(body))
        if not part:
            raise EOFError("the other side has ended")
        body += part
    return body


def _serve(asked: socket.socket) -> list[str] | None:
    """Answers with the exit codes of commands; returns in each that it forks, with its arguments, and at the end."""
    while True:
        size, files, _, _ = socket.recv_fds(asked, 8, 2)
        if not size:
            return None
        said = json.loads(_exactly(asked, int.from_bytes(size, "big")))
        pid = os.fork()
        if pid == 0:
            asked.close()
            os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
            for number, file in enumerate(files, 1):
                os.dup2(file, number)
                os.close(file)
            os.chdir(said["folder"])
            os.environ.clear()
            os.environ.update(said["environment"])
            return list(said["words"])
        for file in files:
            os.close(file)
        late = threading.Timer(HANG, os.kill, (pid, signal.SIGKILL))
        late.start()
        code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        late.cancel()
        late.join()
        asked.sendall(code.to_bytes(8, "big", signed=True))


def _main() -> None:
    for name in PRELOAD:
        importlib.import_module(f"dpmpc.cli.{name}")
    importlib.import_module("dpmpc.aggregation.party.party")
    assert len(os.listdir("/proc/self/task")) == 1, "an import has started a thread"
    if (words := _serve(socket.socket(fileno=os.dup(0)))) is not None:
        sys.argv = words
        main()


if __name__ == "__main__":
    _main()
