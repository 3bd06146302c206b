"""The process that nurseries are forked from: started once, and again where it no longer is what a start would be."""

import os
import resource
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from dpmpc.cli.main import main
from dpmpc.mpc.transport.addresses import bound_socket
from dpmpc.processes import standing
from dpmpc.processes.supervisor import Job, run_jobs
from dpmpc.processes.together import POSSIBLE
from tests.runs import HANG, children_of, wait_until

pytestmark = pytest.mark.skipif(not POSSIBLE, reason="they are forked on Linux alone")
ROLE = "tests.processes.roles:described"


def described(**arguments: Any) -> list[dict[str, Any]]:
    """Two processes of one start."""
    return run_jobs([Job(name, ROLE, arguments) for name in "ab"], HANG)


def origin(found: list[dict[str, Any]]) -> int:
    """Whom both were forked from: the parent of their nursery."""
    (number,) = {one["grandparent"] for one in found}
    return int(number)


def test_two_starts_share_it_and_each_gets_what_holds_when_it_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = set(children_of(os.getpid()))  # of other tests of this process
    first = described()
    monkeypatch.setenv("DPMPC_ACCOUNT", "/another")
    monkeypatch.chdir(tmp_path)
    second = described()
    assert origin(first) == origin(second) != os.getpid()
    assert len({one["parent"] for one in (*first, *second)}) == 2
    assert len({bytes(value) for one in (*first, *second) for value in one["random"]}) == 4 * 3
    assert {one["account"] for one in second} == {"/another"} != {one["account"] for one in first}
    assert {one["folder"] for one in second} == {os.path.realpath(tmp_path)} != {one["folder"] for one in first}
    wait_until(lambda: before.issuperset(children_of(os.getpid())))


@pytest.fixture
def none_yet(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """As in a program that has started none; the numbers of those that start."""
    started: list[int] = []

    class Noted(subprocess.Popen):  # type: ignore[type-arg]
        def __init__(self, *given: Any, **more: Any) -> None:
            super().__init__(*given, **more)
            if "standing" in given[0]:
                started.append(self.pid)

    monkeypatch.setattr(standing, "_standing", [])
    monkeypatch.setattr(standing.subprocess, "Popen", Noted)
    yield started
    standing.end()


def test_what_was_started_ahead_is_what_is_forked_from(none_yet: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where a program imports scikit-learn meanwhile, which sets variables of its own."""
    for name in ("KMP_DUPLICATE_LIB_OK", "KMP_INIT_AT_FORK"):
        monkeypatch.delenv(name, raising=False)
    standing.ahead(["dpmpc.processes.worker"])
    monkeypatch.setenv("KMP_DUPLICATE_LIB_OK", "True")
    monkeypatch.setenv("KMP_INIT_AT_FORK", "FALSE")
    assert [origin(described())] == none_yet


def test_one_that_was_asked_nothing_is_gone_at_once(none_yet: list[int]) -> None:
    standing.ahead(["dpmpc.processes.worker"])
    process = standing._standing[0].process
    standing.end()
    assert process.returncode == -signal.SIGKILL and len(none_yet) == 1


TRAIN = "train --data synthetic --max-rows 60 --dimension 2 --owners 2 --delta 1e-3 --no-evaluate --iterations 1 -M 3"


@pytest.mark.parametrize(("more", "starts"), [([], 1), (["--engine", "clear"], 0), (["--plan-only"], 0)])
def test_a_command_starts_its_parties_imports_first_and_once(
    more: list[str], starts: int, none_yet: list[int], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main([*TRAIN.split(), *more, "--out", str(tmp_path / "run")])
    assert not ended.value.code and len(none_yet) == starts, capsys.readouterr().err


def other_core() -> str:
    """A kind of core other than the one that this machine's environment may state."""
    return "Nehalem" if os.environ.get("OPENBLAS_CORETYPE") == "Haswell" else "Haswell"


def narrowed(_: pytest.MonkeyPatch) -> None:
    """The most descriptors that a process may have, one less than before."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft - 1, hard))


def killed(_: pytest.MonkeyPatch) -> None:
    """It dies."""
    process = standing._standing[0].process
    process.send_signal(signal.SIGKILL)
    process.wait()


@pytest.mark.parametrize(
    "change",
    [
        lambda patch: patch.setenv("OPENBLAS_CORETYPE", other_core()),
        lambda patch: patch.setattr(sys, "path", [*sys.path, "/another"]),
        narrowed,
        killed,
    ],
    ids=["a variable that a library reads as it starts", "where modules come from", "a limit", "killed"],
)
def test_another_takes_its_place_where_a_start_would_differ(
    change: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    before, limits = origin(described()), resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        change(monkeypatch)
        after = origin(described())
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
    assert after != before
    wait_until(lambda: not Path(f"/proc/{before}").exists())


def test_where_there_is_none_a_start_has_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    def none(*_: Any) -> None:
        raise BrokenPipeError

    monkeypatch.setattr(standing, "ask", none)
    assert origin(described()) == os.getpid()


LOW = f"""
from dpmpc.mpc.transport.addresses import bound_socket
from dpmpc.processes.supervisor import Job, run_jobs
if __name__ == "__main__":
    bound = [bound_socket(), bound_socket()]
    lowest = bound[0].fileno()
    jobs = [Job(str(k), "{ROLE}", {{"other": one.fileno()}}, [one]) for k, one in enumerate(bound)]
    print(lowest, *((found["holds"], *found["program"]) for found in run_jobs(jobs, {HANG})))
"""


def test_a_program_with_few_descriptors_has_its_processes_forked(tmp_path: Path) -> None:
    """What the standing process opens for a moment, as a list of its descriptors, gets the lowest number too."""
    (tmp_path / "program.py").write_text(LOW)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    done = subprocess.run(
        [sys.executable, str(tmp_path / "program.py")], capture_output=True, text=True, timeout=HANG, env=environment
    )
    assert done.stdout.strip() == "3 (True, 'standing') (True, 'standing')", done.stdout + done.stderr


@pytest.mark.parametrize("odd", ["a thread", "an open file"])
def test_one_that_cannot_be_forked_safely_starts_a_nursery_instead(
    odd: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A descriptor that the interpreter opened for itself, with the number that a job's socket has here, and a thread:
    such a nursery is a new program, which imports all itself, and has neither."""
    bound = [bound_socket(), bound_socket()]
    number = bound[0].fileno()
    done = {
        "a thread": "import threading\nthreading.Thread(target=threading.Event().wait, daemon=True).start()\n",
        "an open file": f"import os\nos.dup2(os.open(os.devnull, os.O_RDONLY), {number}, inheritable=False)\n",
    }[odd]
    once = f"import sys\nif 'standing' in sys.orig_argv:\n    {done.strip().replace(chr(10), chr(10) + '    ')}\n"
    (tmp_path / "sitecustomize.py").write_text(once)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    found = run_jobs([Job(str(k), ROLE, {"other": one.fileno()}, [one]) for k, one in enumerate(bound)], HANG)
    assert [one["holds"] for one in found] == [True, True]
    assert [one["program"] for one in found] != [["standing"]] * 2
    assert origin(found) == standing._standing[0].process.pid


WORKS = "tests.processes.roles:"


def told(role: str, text: str) -> None:
    standing.work_out(["dpmpc.processes.worker"], WORKS + role, text)


def test_what_it_works_out_is_known_to_all_that_are_forked_later(none_yet: list[int]) -> None:
    """Once, however often it is told; what fails ends nothing, and a long text is not sent."""
    told("kept", "a")
    first = described()
    for role, text in (("failing", "b"), ("kept", "a"), ("kept", "c" * (1 << 16)), ("kept", "d"), ("nowhere", "e")):
        told(role, text)
    second = described()
    number = origin(first)
    assert [one["known"] for one in first] == [{"a": [number, 0]}] * 2
    assert [one["known"] for one in second] == [{"a": [number, 0], "d": [number, 0]}] * 2
    assert none_yet == [number == origin(second) and number]
    assert len({bytes(value) for one in (*first, *second) for value in one["random"]}) == 4 * 3


def test_where_it_has_a_thread_since_it_forks_no_more(none_yet: list[int]) -> None:
    told("threaded", "")
    found = described()
    assert [one["program"] for one in found] != [["standing"]] * 2 and origin(found) == none_yet[0]


def test_it_is_ended_in_the_midst_of_work(none_yet: list[int], tmp_path: Path) -> None:
    told("stuck", str(tmp_path / "begun"))
    wait_until((tmp_path / "begun").exists)
    process = standing._standing[0].process
    standing.end()
    assert process.returncode == -signal.SIGKILL
    assert origin(described()) not in (process.pid, os.getpid())


def test_messages_of_several_threads_are_whole(none_yet: list[int]) -> None:
    texts = [f"{k} " * 500 for k in range(24)]
    threads = [threading.Thread(target=told, args=("kept", text)) for text in texts]
    for thread in threads:
        thread.start()
    found = described()
    for thread in threads:
        thread.join()
    assert all(one["known"].keys() <= set(texts) for one in found)
    assert described()[0]["known"].keys() == set(texts)
