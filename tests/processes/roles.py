"""Roles of processes that test_together starts; they import little."""

import os
import random
import secrets
import sys
import threading
from pathlib import Path
from typing import Any

from dpmpc.errors import UsageError


def described(*, other: int = -1, emit: Any, log: Any) -> dict[str, Any]:
    """A role: what this process is."""
    try:
        os.fstat(other)
        holds = True
    except OSError:
        holds = False
    log("here")
    return {
        "pid": os.getpid(),
        "parent": os.getppid(),
        "grandparent": int(Path(f"/proc/{os.getppid()}/stat").read_text().rsplit(")", 1)[1].split()[1]),
        "folder": os.getcwd(),
        "program": Path("/proc/self/cmdline").read_text().split("\0")[3:4],
        "account": os.environ["DPMPC_ACCOUNT"],
        "session": os.getsid(0),
        "descriptors": sorted(map(int, os.listdir("/proc/self/fd"))),
        "random": [os.urandom(16), secrets.token_bytes(16), random.randbytes(16)],
        "threads": threading.active_count(),
        "umask": os.umask(0o077),
        "holds": holds,
        "modules": len(sys.modules),
        "known": dict(KNOWN),
    }


KNOWN: dict[str, list[Any]] = {}


def kept(text: str) -> None:
    """What a standing process is to work out: it is told the process, and how often."""
    KNOWN[text] = [os.getpid(), len(KNOWN.get(text, ())) and KNOWN[text][1] + 1]


def failing(text: str) -> None:
    """No text will do."""
    raise UsageError(text)


def threaded(text: str) -> None:
    """It leaves a thread, with which no fork is safe."""
    threading.Thread(target=threading.Event().wait, daemon=True).start()


def stuck(text: str) -> None:
    """It says that it has begun, in the file of this name, and never ends."""
    Path(text).write_text("")
    threading.Event().wait()


def refusing(*, emit: Any, log: Any) -> None:
    """A role."""
    raise UsageError("nobody may ask; you did; don't")


def broken(*, emit: Any, log: Any) -> None:
    """A role with a bug."""
    raise ZeroDivisionError("mine")


def waiting(*, emit: Any, log: Any) -> None:
    """A role that says its number and stays."""
    emit("number", pid=os.getpid())
    threading.Event().wait()


def program(*, emit: Any, log: Any) -> str:
    """A role: the module that this process runs."""
    return Path("/proc/self/cmdline").read_bytes().split(b"\0")[2].decode()


def buggy(*, value: str, emit: Any, log: Any) -> None:
    """A bug whose message quotes what it was given."""
    int(value)


def multiplied(*, emit: Any, log: Any) -> int:
    """A role: a product that BLAS shares out over its threads; how many this process then has, besides the one that
    watches whoever started it."""
    import numpy as np

    big = np.ones((500, 500))
    assert float((big @ big).sum()) == 500.0**3
    return len(os.listdir("/proc/self/task")) - 1
