"""Helpers of the tests that do whole runs: real processes, real sockets."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

from dpmpc.aggregation.plan import Plan, plan_path
from dpmpc.aggregation.transcript import read_opened
from dpmpc.mpc.field import Words
from dpmpc.runs.launcher import train
from dpmpc.runs.request import Options

COMMAND = [sys.executable, "-W", "error::ResourceWarning", "-m", "dpmpc.cli.main"]


def small(**changes: Any) -> Options:
    """Options of a small run: synthetic records, three parties."""
    base: dict[str, Any] = {
        "data": "synthetic",
        "max_rows": 200,
        "dimension": 4,
        "owners": 6,
        "iterations": 4,
        "delta": 1e-4,
        "evaluate": False,
    }
    return Options(**{**base, **changes})


def opened(out: Path) -> dict[int, Words]:
    """What a finished run opened, by release."""
    return read_opened(out / "owners.opened.bin", Plan.read(plan_path(out)).dimension)


def same(a: dict[int, Words], b: dict[int, Words]) -> bool:
    """Whether two runs opened the same vectors."""
    return a.keys() == b.keys() and all(np.array_equal(a[k], b[k]) for k in a)


def run(options: Options, out: Path, **settings: Any) -> dict[str, Any]:
    """The report of a run done in `out`."""
    train(options, out, **settings)
    return dict(json.loads((out / "report.json").read_text()))


def dpmpc(*arguments: str | Path, seconds: float = 60) -> "subprocess.CompletedProcess[str]":
    """The `dpmpc` command with these arguments."""
    return subprocess.run(
        [*COMMAND, *map(str, arguments)], capture_output=True, text=True, timeout=seconds, check=False
    )


def children_of(pid: int) -> list[int]:
    """The processes that `pid` started, in order."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                stat = (entry / "stat").read_text()
            except OSError:
                continue
            if int(stat.rsplit(")", 1)[1].split()[1]) == pid:
                found.append(int(entry.name))
    return sorted(found)


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


def wait_until(condition: Any, seconds: float = 20.0) -> None:
    """Returns when `condition()` is true; AssertionError after `seconds`."""
    end = time.monotonic() + seconds
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
