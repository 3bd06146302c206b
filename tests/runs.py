"""Helpers of the tests that do whole runs: real processes, real sockets."""

import contextlib
import itertools
import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from dpmpc.aggregation.plan.asked import plan_path
from dpmpc.aggregation.plan.grid import Ints
from dpmpc.aggregation.plan.here import Here
from dpmpc.aggregation.plan.plan import Plan
from dpmpc.aggregation.wire.transcript import read_opened
from dpmpc.local.launcher import train
from dpmpc.planning.request import Request
from dpmpc.settings import declared
from tests import forked_commands
from tests.forked_commands import HANG, Forked

COMMAND = [sys.executable, "-W", "error::ResourceWarning", "-m", "dpmpc.cli.main"]
SERVER = b"tests.forking_server"  # of it, and of all that it forked
_hosts = itertools.count(1)
_networks: dict[tuple[int, int], tuple[str, socket.socket]] = {}  # and what keeps others off each


def small(**changes: Any) -> Request:
    """A small run: synthetic records, three parties."""
    base: dict[str, Any] = {
        "data": "synthetic",
        "max_rows": 200,
        "dimension": 4,
        "owners": 6,
        "iterations": 4,
        "delta": 1e-4,
        "evaluate": False,
    }
    return Request(**{**base, **changes})


def opened(out: Path) -> dict[int, Ints]:
    """What a finished run opened, by release."""
    return read_opened(out / "owners.opened.bin", Plan.read(plan_path(out)).dimension)


def same(a: dict[int, Ints], b: dict[int, Ints]) -> bool:
    """Whether two runs opened the same vectors."""
    return a.keys() == b.keys() and all(np.array_equal(a[k], b[k]) for k in a)


def run(request: Request, out: Path, **settings: Any) -> dict[str, Any]:
    """The report of a run done in `out`."""
    own = {name: settings.pop(name) for name in declared(Here) if name in settings}
    train(request, Here(out=out, **own), **settings)
    return dict(json.loads((out / "report.json").read_text()))


def dpmpc(*arguments: str | Path | float) -> "subprocess.CompletedProcess[str]":
    """The `dpmpc` command with these arguments: a process of its own, forked from one that has the imports."""
    return forked_commands.run(forked_commands.here(), [*map(str, arguments)], os.environ)


def program(*arguments: str | Path | float) -> "subprocess.CompletedProcess[str]":
    """The same as a program that starts from nothing, where the start is part of what is shown."""
    return subprocess.run([*COMMAND, *map(str, arguments)], capture_output=True, text=True, timeout=HANG, check=False)


@contextlib.contextmanager
def started(*arguments: str | Path | float) -> Iterator[Forked]:
    """The command under way; killed on leaving, if it has not ended."""
    with forked_commands.here().start([*map(str, arguments)], os.environ) as process:
        try:
            yield process
        finally:
            process.kill()


def errors_of(process: Forked) -> str:
    """What a process that is to end by itself wrote to standard error."""
    return process.communicate(timeout=HANG)[1]


def own_addresses(parties: int) -> list[str]:
    """-P options with addresses that nobody else has: a loopback host of this test alone (Linux has 2^24 of them), and
    ports that no program which listens on all hosts has by default, as those of MPyC."""
    k = next(_hosts)
    host = f"{_own_network(k // 250)}.{1 + k % 250}"
    return [part for i in range(parties) for part in ("-P", f"{host}:{21_365 + i}")]


def _own_network(number: int) -> str:
    """The first three numbers of this process's hosts, of which it has 250 in each network. It is its own for as long
    as it lives: a number of a process says too little, where others have numbers of their own or numbers wrapped."""
    me = (os.getpid(), number)
    for offset in range(250 * 250):
        if me in _networks:
            break
        at = os.getpid() + offset
        network, claim = f"127.{1 + at % 250}.{1 + at // 250 % 250}", socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        try:
            claim.bind((f"{network}.254", 21_364))
        except OSError:
            claim.close()
        else:
            _networks[me] = (network, claim)
    return _networks[me][0]


def children_of(pid: int) -> list[int]:
    """The living processes that `pid` started, in the order of their starts (process numbers may have wrapped); those
    that it started together, instead of the one that forked them."""
    return [child for number in _started_by(pid) for child in _forked_by(number)]


def _forked_by(pid: int) -> list[int]:
    words = _words(pid)
    if pid == forked_commands.number():
        return []
    if SERVER in words:
        nurseries = _started_by(pid)
    elif b"dpmpc.processes.nursery" in words[:3]:
        nurseries = _started_by(pid) if words[3] == b"standing" else [pid]
    else:
        return [pid]
    return [child for number in nurseries for child in _started_by(number)]


def _started_by(pid: int) -> list[int]:
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                stat = (entry / "stat").read_text().rsplit(")", 1)[1].split()
            except OSError:
                continue
            if int(stat[1]) == pid and stat[0] != "Z":
                found.append((int(stat[19]), int(entry.name)))
    return [number for _, number in sorted(found)]


def _words(pid: int) -> list[bytes]:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return []


def alive(pids: list[int]) -> list[int]:
    """Those of the processes that still run (zombies do not)."""
    result = []
    for pid in pids:
        try:
            if Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z":
                result.append(pid)
        except OSError:
            continue
    return result


def wait_until(condition: Callable[[], object]) -> None:
    """Returns when `condition()` is true; AssertionError where it never is."""
    end = time.monotonic() + HANG
    while not condition():
        assert time.monotonic() < end, "the condition never held"
        time.sleep(0.02)


def rows(out: Path) -> int:
    """Complete rows of history.csv."""
    path = out / "history.csv"
    return max(0, path.read_bytes().count(b"\n") - 1) if path.exists() else 0


def data_dir() -> Path:
    """Where the real data sets are."""
    return Path(os.environ.get("DPMPC_DATA", Path(__file__).parents[2] / "shared" / "data"))
