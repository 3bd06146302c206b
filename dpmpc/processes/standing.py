"""The process that this one's nurseries are forked from: what they import is imported once, not once a start.

A second fit, a training run after its survey and each case of a check of noise start their parties in some
milliseconds so. It imports modules of this package alone, for those do not change while a program runs; it holds no
job, key or record, and ends with this process. What several processes would work out each, from public numbers, it can
work out once for those that are forked later (`work_out`). A nursery gets the environment, the folder and the
descriptors of the moment it is asked for. What a fork cannot be given, because interpreter and libraries read it as
they start, or the kernel counts it by process, is compared (`_kind`): where it has changed, another process takes its
place.

A command may make it by a fork of itself instead (`fork`): before it has looked at what is asked, when it holds imports
and nothing else. What they need is imported once for both.
"""

import atexit
import contextlib
import importlib
import json
import math
import os
import resource
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Any

from dpmpc.lazy import dataclass
from dpmpc.processes.cores import one_thread
from dpmpc.processes.memory import importing
from dpmpc.processes.paths import child_environment, imports_from_current_folder

POSSIBLE = sys.platform == "linux"  # elsewhere a fork without an exec is not safe
ONE_THREAD = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}  # more would only take the cores from each other
Row = tuple[int, int, int, list[int]]  # of a nursery
# Read when something is done, not as a process starts; the last two, which scikit-learn sets as it is imported, by a
# library that no process here has loaded before it is given its environment.
_READ_LATER = (
    "DPMPC_ACCOUNT", "DPMPC_PROCESS_ACCOUNT", "DPMPC_LOG_LEVEL", "DPMPC_LOG_JSON", "DPMPC_LOG_SPELLING",
    "PYTEST_CURRENT_TEST", "KMP_DUPLICATE_LIB_OK", "KMP_INIT_AT_FORK",
)  # fmt: skip
_HERE = "dpmpc."
_WAIT = 10.0  # seconds for its end, which takes milliseconds
_KEPT = 15  # texts, and the last
_LONGEST = 1 << 15  # bytes of a text that waits for nobody: a socket holds several times as much
_AT_ONCE = 200  # descriptors in a message: the kernel takes 253


@dataclass
class _Child:
    """A fork of this process, asked as a `subprocess.Popen` is."""

    pid: int
    returncode: int | None = None

    def poll(self) -> int | None:
        """Its exit code; None while it lives."""
        if self.returncode is None:
            try:
                pid, status = os.waitpid(self.pid, os.WNOHANG)
            except ChildProcessError:  # somebody has taken its exit
                pid, status = self.pid, 0
            self.returncode = os.waitstatus_to_exitcode(status) if pid else None
        return self.returncode

    def wait(self, timeout: float = math.inf) -> int:
        """Its exit code, when it has ended. Errors: TimeoutExpired."""
        end = time.monotonic() + timeout
        while (code := self.poll()) is None:
            if time.monotonic() > end:
                raise subprocess.TimeoutExpired("a fork", timeout)
            time.sleep(0.001)
        return code

    def kill(self) -> None:
        """End it at once, if it lives."""
        if self.poll() is None:
            os.kill(self.pid, signal.SIGKILL)


@dataclass
class _Standing:
    kind: tuple[Any, ...]
    process: "subprocess.Popen[bytes] | _Child"
    asking: socket.socket
    asked: bool = False  # for a nursery; before that it only imports
    told: list[bytes] = field(default_factory=list)  # what it has worked out of late

    def end(self) -> None:
        """It ends; nurseries that it has forked do not."""
        self.asking.close()
        if not self.asked:
            self.process.kill()
        try:
            self.process.wait(_WAIT)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


_standing: list[_Standing] = []
_in_turn = threading.Lock()  # messages of several threads are whole
os.register_at_fork(before=_in_turn.acquire, after_in_parent=_in_turn.release, after_in_child=_in_turn.release)


def ahead(preload: Sequence[str]) -> None:
    """It starts, and imports what processes that are about to be started will need, while this one goes on with imports
    of its own. One that nothing was asked of is killed at the end."""
    if POSSIBLE:
        with contextlib.suppress(OSError):
            _found(preload, {**child_environment(), **ONE_THREAD})


def fork(preload: Sequence[str]) -> None:
    """As `ahead`, by a fork of this process, which has the imports then. For a program of its own that has read nothing
    yet: what it holds now, all processes here will hold. Where a fork is not safe, or this process looks for modules in
    the current folder, which those may not do first, one is started instead."""
    complete = None not in (sys.stdin, sys.stdout, sys.stderr)  # whose numbers a fork's are given
    if not POSSIBLE or _standing or not complete or imports_from_current_folder():
        ahead(preload)
        return
    from dpmpc.processes import nursery

    with importing():
        for name in preload:
            importlib.import_module(name)
    ours, theirs = socket.socketpair()
    with one_thread(), theirs:
        try:
            pid = os.fork()
        except OSError:  # what needs processes says so
            ours.close()
            return
        if pid == 0:
            nursery.stand(theirs.detach())
        child, alone = _Child(pid), nursery.is_alone()  # BLAS ends its threads before a fork; any others go on here
    if alone:
        _standing.append(_Standing(_kind({**child_environment(), **ONE_THREAD}), child, ours))
        return
    ours.close()
    child.kill()
    child.wait()
    ahead(preload)


def ask(
    rows: Sequence[Row],
    preload: Sequence[str],
    streams: tuple[int, int, int],
    told: int,
    environment: Mapping[str, str],
) -> None:
    """A nursery for `rows`, with these standard `streams`; its number, and then its exit code, negative for a signal,
    come over `told`, a line each. Errors: OSError where there is none to be had."""
    numbers = sorted({number for *pipes, kept in rows for number in (*pipes, *kept)})
    if numbers[0] <= 2:  # this process has no standard streams; those of a fork would stand in the way
        raise OSError("descriptors of standard streams are in use")
    with _in_turn:
        standing = _found(preload, environment)
        standing.asked = True
        folder = os.open(os.curdir, os.O_PATH)
        try:
            sent = [told, *streams, folder, *numbers]
            said = {"rows": rows, "preload": list(preload), "numbers": numbers, "environment": dict(environment)}
            body = _line(said)
            standing.asking.sendall(_sizes(body, len(sent)))
            for first in range(0, len(sent), _AT_ONCE):
                socket.send_fds(standing.asking, [b"\0"], sent[first : first + _AT_ONCE])
            standing.asking.sendall(body)
        except OSError:
            end()
            raise
        finally:
            os.close(folder)


def work_out(preload: Sequence[str], role: str, argument: str) -> None:
    """It calls `role`, "module:function" of this package, with a text of public numbers before it forks again, so that
    what the role keeps is known to whatever it forks then. This process goes on at once. A long text would have to wait
    until it is read: nothing is done for one."""
    body = _line({"role": role, "argument": argument})
    if POSSIBLE and len(body) < _LONGEST:
        with contextlib.suppress(OSError), _in_turn:  # processes work it out themselves
            standing = _found(preload, {**child_environment(), **ONE_THREAD})
            if body not in standing.told:
                standing.asking.sendall(_sizes(body, 0) + body)
                standing.told[:] = [*standing.told[-_KEPT:], body]


def end() -> None:
    """It ends, if there is one; the next that is asked of starts."""
    while _standing:
        standing = _standing.pop()
        if standing.kind[0] == os.getpid():  # else a fork of the process that started it
            standing.end()
        else:
            standing.asking.close()
            standing.process.returncode = 0


def _line(said: Mapping[str, Any]) -> bytes:
    return json.dumps(said).encode()


def _sizes(body: bytes, descriptors: int) -> bytes:
    """What a message begins with."""
    return len(body).to_bytes(8, "big") + descriptors.to_bytes(8, "big")


def _found(preload: Sequence[str], environment: Mapping[str, str]) -> _Standing:
    kind = _kind(environment)
    if _standing and (_standing[0].kind != kind or _standing[0].process.poll() is not None):
        end()
    if not _standing:
        own = [name for name in preload if name.startswith(_HERE)]
        ours, theirs = socket.socketpair()
        with theirs:
            try:
                process = subprocess.Popen(
                    [sys.executable, "-m", "dpmpc.processes.nursery", "standing", *own],
                    stdin=theirs.fileno(),
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,  # what cannot be imported, a nursery's own start says
                    env=dict(environment),
                    start_new_session=True,
                )
            except BaseException:
                ours.close()
                raise
        _standing.append(_Standing(kind, process, ours))
    return _standing[0]


def _kind(environment: Mapping[str, str]) -> tuple[Any, ...]:
    """What processes have in common that can be forked from the same one."""
    limits = [name for name in dir(resource) if name.startswith("RLIMIT_")]
    return (
        os.getpid(),
        sys.executable,
        {name: value for name, value in environment.items() if name not in _READ_LATER},
        [resource.getrlimit(getattr(resource, name)) for name in limits],
        os.sched_getaffinity(0),
        os.getpriority(os.PRIO_PROCESS, 0),
        os.geteuid(),
        [_link(f"/proc/self/ns/{name}") for name in ("net", "mnt", "user")],
    )


def _link(path: str) -> str:
    with contextlib.suppress(OSError):
        return os.readlink(path)
    return ""


atexit.register(end)
