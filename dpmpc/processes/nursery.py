"""Several processes that another one started together: `python -m dpmpc.processes.nursery TABLE [MODULE ...]`.

It imports the modules named once and forks a process for each row of TABLE, which goes on as `worker` does: most of
what a process costs that does little is its imports. A row holds descriptors that were inherited: [standard input,
standard output, standard error, [those it keeps under their own numbers]]. All others a process closes.

`python -m dpmpc.processes.nursery standing [MODULE ...]` forks such processes themselves, one a message on the socket
that is its standard input (`standing` sends them), and ends with that. A message may instead name a function of public
numbers to call first. A command that has the imports is such a process by a fork of itself (`stand`).

It says on standard output who lives ([row, process number]) and who ended ([row, process number, exit code], negative
for a signal), and takes their exits when whoever started it has closed its standard input: until then no other process
can have got their numbers. It holds no job, key or record. Where an import has started a thread, a fork is not safe:
each process is then started afresh.
"""

import contextlib
import fcntl
import gc
import importlib
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import traceback
from typing import Any, NoReturn

from dpmpc.processes import exhausted, worker
from dpmpc.processes.paths import import_paths

Row = tuple[int, int, int, list[int]]
_OTHERS = 4  # of the descriptors that are sent: the three streams and the folder come first
_OWN = 3  # descriptors from here on are a row's
_modules: list[str] = []  # that a process of a row has imported


def main() -> None:
    """Entry point: of this process, and of those that it forks."""
    if sys.argv[1] == "standing":
        with contextlib.suppress(Exception):  # a nursery, which imports the same, says so where it is looked for
            worker.prepare(sys.argv[2:])
        _stand()
        return
    _modules[:] = sys.argv[2:]
    _raise_all(json.loads(sys.argv[1]))


def _raise_all(rows: list[Row]) -> NoReturn:
    """Imports what they need, then bears them. Where there is no memory for that, the first says so for all."""
    with exhausted.ending():
        worker.ready(rows[0][1])
        worker.prepare(_modules)
        _bear(rows)


def _bear(rows: list[Row]) -> NoReturn:
    """Fork a process for each row; ends when all have ended and the starter knows."""
    gc.freeze()  # what all share is looked through by none
    single = is_alone()
    born: list[int] = []
    for k, row in enumerate(rows):
        try:
            pid = os.fork() if single else _afresh(row)
        except OSError as error:
            worker.say_refused(row[1], error)
            os._exit(1)  # as whoever starts them ends those that live
        if pid == 0:
            _become(k, rows)
            worker.ready(1)
            worker.serve()
        born.append(pid)
        _say(k, pid)
    exhausted.make_ready(1, b"")  # what they end of they say themselves
    for descriptor in _descriptors(rows):
        os.close(descriptor)
    watching = [threading.Thread(target=_watch, args=(k, pid)) for k, pid in enumerate(born)]
    for thread in watching:
        thread.start()
    for thread in watching:
        thread.join()
    while os.read(0, 1 << 12):
        pass
    for pid in born:
        os.waitpid(pid, 0)
    sys.stderr.flush()
    os._exit(0)  # nothing is left to do, and to take all modules apart takes longer than the rest


def _descriptors(rows: list[Row]) -> set[int]:
    """All that were inherited for the rows."""
    return {number for *pipes, kept in rows for number in (*pipes, *kept)}


def _become(k: int, rows: list[Row]) -> None:
    """What the fork of row k starts with: a session, standard streams and descriptors of its own."""
    os.setsid()
    *pipes, kept = rows[k]
    for own, descriptor in enumerate(pipes):
        os.dup2(descriptor, own)
    for descriptor in _descriptors(rows) - set(kept):
        if descriptor >= _OWN:
            os.close(descriptor)


def _afresh(row: Row) -> int:
    """The number of a new process with the same modules, for a row."""
    stdin, stdout, stderr, kept = row
    command = [sys.executable, "-m", "dpmpc.processes.worker", *_modules]
    process = subprocess.Popen(
        command, stdin=stdin, stdout=stdout, stderr=stderr, pass_fds=kept, start_new_session=True
    )
    process.returncode = 0  # its exit is taken below
    return process.pid


def _watch(k: int, pid: int) -> None:
    """Say when it ends. Its exit is left to be taken later."""
    end = os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
    assert end is not None
    _say(k, pid, end.si_status if end.si_code == os.CLD_EXITED else -end.si_status)


def stand(asking: int) -> NoReturn:
    """What a fork of a command does that asks over the descriptor `asking`: what a process does that was started for
    this."""
    try:
        os.setsid()
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        nothing = os.open(os.devnull, os.O_RDWR)
        for own, descriptor in enumerate((asking, nothing, nothing)):
            os.dup2(descriptor, own)
        os.closerange(_OWN, max(map(int, os.listdir("/proc/self/fd"))) + 1)
        sys.path[:] = import_paths()
        sys.argv[:] = [__file__, "standing"]
        worker.prepare(())
        _stand()
    except BaseException:  # noqa: BLE001  (said as the interpreter does, not as the command around would)
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(1)


def _stand() -> None:
    """Fork a nursery a message, and say its number and, when it has ended, how, until nobody can ask any more."""
    alone = is_alone()
    asked = socket.socket(fileno=os.dup(0))
    told: dict[int, int] = {}
    signal.signal(signal.SIGCHLD, lambda *_: _tell(told))
    while (got := _heard(asked)) is not None:
        request, sent = got
        if "role" in request:
            _work_out(request["role"], request["argument"])
            alone = alone and is_alone()
            continue
        tell, *descriptors = sent
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGCHLD})
        try:
            pid = os.fork()
        except OSError as error:
            stdout = request["rows"][0][1]  # under the number that it has at the starter
            worker.say_refused(descriptors[_OTHERS + request["numbers"].index(stdout)], error)
            for number in sent:
                os.close(number)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGCHLD})
            continue
        if pid == 0:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGCHLD})
            asked.close()
            for number in (tell, *told.values()):
                os.close(number)
            _go_on(request, descriptors, alone)
            return
        told[pid] = tell
        _write(tell, pid)
        for number in descriptors:
            os.close(number)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGCHLD})
    os._exit(0)


def _work_out(role: str, argument: str) -> None:
    """Call it. Where it fails, so does whoever is forked and calls the same, and says so."""
    module, _, name = role.partition(":")
    with contextlib.suppress(Exception):
        getattr(importlib.import_module(module), name)(argument)


def is_alone() -> bool:
    """Whether there is one thread here: else a fork is not safe."""
    return len(os.listdir("/proc/self/task")) == 1


def _heard(asked: socket.socket) -> tuple[dict[str, Any], list[int]] | None:
    """The next message and its descriptors; None at the end."""
    sizes = _exactly(asked, 16)
    if len(sizes) < 16:
        return None
    length, count = int.from_bytes(sizes[:8], "big"), int.from_bytes(sizes[8:], "big")
    descriptors: list[int] = []
    while len(descriptors) < count:
        said, more, _, _ = socket.recv_fds(asked, 1, count)
        if not said:
            return None
        descriptors += more
    body = _exactly(asked, length)
    return (json.loads(body), descriptors) if len(body) == length else None


def _exactly(asked: socket.socket, length: int) -> bytes:
    body = b""
    while len(body) < length and (part := asked.recv(length - len(body))):
        body += part
    return body


def _go_on(request: dict[str, Any], descriptors: list[int], alone: bool) -> None:
    """What the fork of a standing process does: what a nursery does that was started for this alone. Where the standing
    one was not `alone`, or has descriptors of its own where the nursery's are to be, such a one takes its place."""
    numbers = request["numbers"]
    above = max((*numbers, *descriptors)) + 1
    moved = [fcntl.fcntl(number, fcntl.F_DUPFD_CLOEXEC, above) for number in descriptors]
    for number in descriptors:
        os.close(number)
    alone = alone and not any(map(_is_open, numbers))
    *streams, folder = moved[:_OTHERS]
    os.fchdir(folder)
    for number, wanted in zip((*streams, *moved[_OTHERS:]), (0, 1, 2, *numbers), strict=True):
        os.dup2(number, wanted)
    for number in moved:
        os.close(number)
    os.setsid()
    os.environ.clear()
    os.environ.update(request["environment"])
    if not alone:
        here = [sys.executable, "-m", "dpmpc.processes.nursery", json.dumps(request["rows"]), *request["preload"]]
        os.execve(here[0], here, request["environment"])
    _modules[:] = request["preload"]
    _raise_all(request["rows"])


def _is_open(number: int) -> bool:
    """Whether this process has a descriptor of that number. A list of all would have its own among them."""
    try:
        fcntl.fcntl(number, fcntl.F_GETFD)
    except OSError:
        return False
    return True


def _tell(told: dict[int, int]) -> None:
    """Say how those ended that have; nobody may listen any more."""
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if not pid:
            return
        number = told.pop(pid)
        _write(number, os.waitstatus_to_exitcode(status))
        os.close(number)


def _say(*numbers: int) -> None:
    _write(1, numbers)


def _write(descriptor: int, value: object) -> None:
    try:
        os.write(descriptor, json.dumps(value).encode() + b"\n")  # short, and so in one piece
    except OSError:
        pass  # the starter is gone; so will they be


if __name__ == "__main__":
    main()
