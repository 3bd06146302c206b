"""Where commands of `dpmpc` are forked from: `forked_commands` starts it and says what it promises.

A message on the socket that is its standard input is a command: words, environment and folder, with the descriptors of
a pipe and of both standard outputs. Its process number goes into the pipe, and its exit code when it has ended. Who
calls at the listening socket whose descriptor is its argument sends one such message.
"""

import gc
import importlib
import json
import os
import select
import signal
import socket
import sys
from typing import Any

from dpmpc.aggregation.owner.imports import PRELOAD as OF_PARTIES
from dpmpc.cli.main import COMMANDS, program
from dpmpc.processes import nursery, standing
from dpmpc.processes.paths import keep_children_safe

MODULES = (
    *(f"dpmpc.cli.{name}" for name in COMMANDS),
    *OF_PARTIES,
    "dpmpc.consortium.start",
    "dpmpc.consortium.joining",
)


def _serve(asked: socket.socket, door: socket.socket) -> dict[str, Any] | None:
    """What each command that it forks is told; None at the end."""
    told: dict[int, int] = {}
    signal.signal(signal.SIGCHLD, lambda *_: nursery._tell(told))
    while True:
        at_door = asked not in select.select([asked, door], [], [])[0]
        caller = door.accept()[0] if at_door else asked
        size, files, _, _ = socket.recv_fds(caller, 8, 3)
        if not size and not at_door:
            return None
        if not size:  # it called, and ended
            caller.close()
            continue
        said: dict[str, Any] = json.loads(nursery._exactly(caller, int.from_bytes(size, "big")))
        if at_door:
            caller.close()
        pipe, *streams = files
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGCHLD})
        if (pid := os.fork()) == 0:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGCHLD})
            asked.close()
            door.close()
            for number in (pipe, *told.values()):
                os.close(number)
            os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
            for own, number in enumerate(streams, 1):
                os.dup2(number, own)
                os.close(number)
            return said
        told[pid] = pipe
        os.write(pipe, pid.to_bytes(8, "big"))
        for number in streams:
            os.close(number)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGCHLD})


def _main() -> None:
    for name in MODULES:
        importlib.import_module(name)
    assert len(os.listdir("/proc/self/task")) == 1, "an import has started a thread"
    gc.freeze()  # what all share is looked through by none
    door = socket.socket(fileno=int(sys.argv[1]))
    if (said := _serve(socket.socket(fileno=os.dup(0)), door)) is not None:
        os.chdir(said["folder"])
        os.environ.clear()
        os.environ.update(said["environment"])
        sys.argv = list(said["words"])
        keep_children_safe()  # as the command does before it starts any
        standing.fork(())
        program()


if __name__ == "__main__":
    _main()
