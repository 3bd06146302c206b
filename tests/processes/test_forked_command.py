"""The process that a command's parties are forked from is a fork of the command: made before a record is read, and
before the command has looked at what is asked."""

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from dpmpc.processes import standing
from dpmpc.processes.together import POSSIBLE
from tests.runs import HANG

pytestmark = pytest.mark.skipif(not POSSIBLE, reason="they are forked on Linux alone")
HERE = Path(__file__).parents[2]
SMALL = "--data synthetic --max-rows 60 --dimension 2 --owners 2 --delta 1e-3 --no-evaluate --iterations 1 -M 3"
NOTES = """
import os
with open({said!r}, "a") as file:
    print(os.getpid(), file=file)
"""
SECRET = "a" + os.urandom(8).hex()
KINDS = """
import json, os, sys, threading
from dpmpc.processes import standing
from dpmpc.processes.supervisor import Job, run_jobs
import numpy as np
os.chdir({folder!r})
os.environ["ASKED"] = "when it started"
inherited = os.dup2(os.open(os.devnull, os.O_RDONLY), 300)  # a number that no other file will have
standing.fork(["dpmpc.processes.worker", "numpy"])
big = np.ones((500, 500))
float((big @ big).sum())  # BLAS has its threads again, here
here = len(os.listdir("/proc/self/task"))
found = run_jobs([Job(name, "tests.processes.roles:described", dict(other=inherited)) for name in "ab"], {hang})
blas = run_jobs([Job(name, "tests.processes.roles:multiplied", dict()) for name in "ab"], {hang})
print(json.dumps([os.getpid(), standing._standing[0].process.pid, here, found, blas], default=str))
"""


@pytest.fixture
def starts(tmp_path: Path) -> Iterator[tuple[Path, dict[str, str]]]:
    """A file that has a line for each Python that starts with this environment."""
    said, folder = tmp_path / "starts", tmp_path / "noting"
    folder.mkdir()
    (folder / "sitecustomize.py").write_text(NOTES.format(said=str(said)))
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(folder), str(HERE)])}
    environment.pop("PYTHONSAFEPATH", None)
    yield said, environment


def command(folder: Path, environment: dict[str, str], *words: str, safe: bool = False) -> None:
    """`dpmpc` as a program of its own, in a folder."""
    start = [sys.executable, *(["-P"] if safe else []), "-m", "dpmpc", *words]
    done = subprocess.run(start, cwd=folder, env=environment, capture_output=True, text=True, timeout=HANG)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(("safe", "expected"), [(True, 1), (False, 2)])
def test_a_command_starts_one_python_unless_it_looks_into_the_current_folder_first(
    safe: bool, expected: int, tmp_path: Path, starts: tuple[Path, dict[str, str]]
) -> None:
    """A survey has parties of its own, and they are forked from the same process."""
    said, environment = starts
    where = tmp_path / "elsewhere"
    command(tmp_path, environment, "example", "hospitals", "--out", str(where), safe=True)
    said.unlink()
    words = f"train --csv {where}/hospitals.csv --target readmitted --owners-column site --epsilon 1 --delta 1e-5"
    command(where, environment, *words.split(), "--out", str(tmp_path / "run"), safe=safe)
    assert (tmp_path / "run" / "survey" / "party_0.log").exists()
    assert len(said.read_text().split()) == expected


def test_one_that_has_no_parties_forks_none(tmp_path: Path, starts: tuple[Path, dict[str, str]]) -> None:
    said, environment = starts
    command(tmp_path, environment, "train", *SMALL.split(), "--engine", "clear", "--out", str(tmp_path / "run"))
    assert len(said.read_text().split()) == 1


def test_what_it_forks_is_as_if_it_were_started(tmp_path: Path) -> None:
    """Sessions, descriptors, chance, folder and environment are each one's own, and BLAS has one thread."""
    environment = {**os.environ, "PYTHONPATH": str(HERE), "PYTHONSAFEPATH": "1", "OPENBLAS_NUM_THREADS": "2"}
    program = KINDS.format(folder=str(tmp_path), hang=HANG)
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    me, stands, threads, found, blas = json.loads(done.stdout)
    assert {one["grandparent"] for one in found} == {stands} and stands != me
    assert all(one["session"] == one["pid"] and one["umask"] == 0o077 for one in found)
    assert not any(one["holds"] for one in found) and len({one["descriptors"][-1] for one in found}) == 1
    assert len({value for one in found for value in one["random"]}) == 2 * 3
    assert {one["folder"] for one in found} == {str(tmp_path.resolve())}
    assert threads == 2 and blas == [1, 1], "BLAS has threads of its own"


def test_a_thread_that_goes_on_keeps_it_from_being_forked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(standing, "_standing", [])
    done = threading.Event()
    waiting = threading.Thread(target=done.wait)
    waiting.start()
    try:
        standing.fork(["dpmpc.processes.worker"])
        assert isinstance(standing._standing[0].process, subprocess.Popen)
    finally:
        done.set()
        waiting.join()
        standing.end()


def test_no_record_is_in_the_memory_of_what_parties_are_forked_from_nor_in_theirs(tmp_path: Path) -> None:
    """The command is stopped when its records are read and its parties have started, which wait for it; another one is
    asked where this machine was busy and that moment is over. The command's own memory has the record."""
    rows = "".join(f"{20 + k % 60},{'yes' if k % 3 else 'no'},{'abc'[k % 3]},{SECRET}\n" for k in range(600))
    (tmp_path / "records.csv").write_text("age,outcome,site,word\n" + rows)
    assert any(stopped_with_parties(tmp_path, tmp_path / f"run{k}") for k in range(20))


def stopped_with_parties(folder: Path, out: Path) -> bool:
    """Whether a command was stopped in that moment; then nobody's memory has the record but its own."""
    words = f"train --csv {folder}/records.csv --target outcome --owners-column site --epsilon 1 --delta 1e-5"
    environment = {**os.environ, "PYTHONPATH": str(HERE), "PYTHONSAFEPATH": "1", "DPMPC_ACCOUNT": str(out) + ".account"}
    start = [sys.executable, "-m", "dpmpc", *words.split(), "--out", str(out)]
    with subprocess.Popen(start, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as process:
        try:
            while process.poll() is None and len(below(process.pid)) < 1 + 1 + 3:  # standing, nursery and parties
                pass
            assert process.poll() is None or not process.wait(), process.stderr and process.stderr.read()
            process.send_signal(signal.SIGSTOP)
            others = below(process.pid)
            if len(others) < 1 + 1 + 3:
                return False
            held = {number: SECRET.encode() in memory(number) for number in (process.pid, *others)}
        finally:
            process.kill()
    assert held == {process.pid: True, **dict.fromkeys(others, False)}
    return True


def below(pid: int) -> list[int]:
    """The processes that it started, and theirs."""
    found = []
    with contextlib.suppress(OSError):  # it has ended
        for task in Path(f"/proc/{pid}/task").iterdir():
            for child in map(int, (task / "children").read_text().split()):
                found += [child, *below(child)]
    return found


def memory(pid: int) -> bytes:
    """All that a process may write to."""
    parts = []
    with Path(f"/proc/{pid}/mem").open("rb", buffering=0) as file:
        for line in Path(f"/proc/{pid}/maps").read_text().splitlines():
            if span := re.match(r"([0-9a-f]+)-([0-9a-f]+) rw", line):
                begin, end = (int(part, 16) for part in span.groups())
                file.seek(begin)
                try:
                    parts.append(file.read(end - begin))
                except OSError:  # of the kernel's own
                    continue
    return b"".join(parts)


def test_a_fork_is_asked_as_what_is_started_is() -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        child = standing._Child(process.pid)
        assert child.poll() is None
        with pytest.raises(subprocess.TimeoutExpired):
            child.wait(0)
        child.kill()
        assert child.wait(HANG) == child.poll() == -signal.SIGKILL
