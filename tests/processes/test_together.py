"""Processes that are started together: separate in everything but their imports."""

import asyncio
import os
import signal
from pathlib import Path
from typing import Any

import pytest

from dpmpc.errors import PeerError
from dpmpc.mpc.transport.addresses import bound_socket
from dpmpc.processes.supervisor import Job, Supervisor, run_jobs
from dpmpc.processes.together import POSSIBLE
from tests.refusals import refuses
from tests.runs import HANG, alive, wait_until

together = pytest.mark.skipif(not POSSIBLE, reason="they are forked on Linux alone")
HERE = "tests.processes.roles"


@together
def test_each_is_a_process_with_a_session_chance_and_descriptors_of_its_own() -> None:
    bound = [bound_socket() for _ in range(3)]
    numbers = [s.fileno() for s in bound]
    jobs = [Job(str(k), f"{HERE}:described", {"other": numbers[(k + 1) % 3]}, [s]) for k, s in enumerate(bound)]
    found = run_jobs(jobs, HANG)
    assert len({one["pid"] for one in found}) == 3
    assert len({one["parent"] for one in found}) == 1 and found[0]["parent"] != os.getpid()
    assert all(one["session"] == one["pid"] and one["umask"] == 0o077 for one in found)
    assert len({bytes(value) for one in found for value in one["random"]}) == 3 * 3
    for one, number in zip(found, numbers, strict=True):
        assert number in one["descriptors"] and not one["holds"]
        assert not set(numbers) - {number} & set(one["descriptors"])
        # its streams, its socket, the pipe for events, and the listing of the folder itself
        assert len(one["descriptors"]) == 3 + 1 + 1 + 1, one["descriptors"]


@together
def test_after_an_import_that_started_a_thread_each_is_started_afresh() -> None:
    jobs = [Job("a", f"{HERE}:described", {}), Job("b", "tests.processes.threaded_at_import:nothing", {})]
    with refuses("failed", "AttributeError"):  # that module has no role; the other is done all the same
        run_jobs(jobs, HANG)
    fresh, forked = _modules("tests.processes.threaded_at_import"), _modules()
    assert fresh == {"dpmpc.processes.worker"} and forked == {"dpmpc.processes.nursery"}


@together
def test_no_extension_says_at_the_end_that_it_leaks(tmp_path: Path) -> None:
    """DuckDB's said so in parties' logs: what was frozen before the fork was not collected."""
    logs = [tmp_path / "a.log", tmp_path / "b.log"]
    assert _modules("duckdb", logs=logs) == {"dpmpc.processes.nursery"}
    assert [path.read_text() for path in logs] == ["", ""]


def _modules(*more: str, logs: list[Path] | None = None) -> set[str]:
    """The programs that two processes run which have imported these modules first."""

    async def body() -> set[str]:
        supervisor = Supervisor()
        try:
            started = await supervisor.start_together(["a", "b"], logs=logs, preload=[HERE, *more], sockets=[(), ()])
            for process in started:
                process.give(f"{HERE}:program", {})
            return set(await supervisor.done(HANG))
        finally:
            await supervisor.end()

    return asyncio.run(body())


@pytest.mark.parametrize("guilty", [0, 1, 2])
def test_an_error_and_a_bug_are_those_of_the_process_they_happened_in(guilty: int) -> None:
    def jobs(role: str) -> list[Job]:
        return [Job(f"job {k}", f"{HERE}:{role if k == guilty else 'described'}", {}) for k in range(3)]

    with refuses("usage", "nobody may ask"):
        run_jobs(jobs("refusing"), HANG)
    with refuses("failed", guilty, 1, "ZeroDivisionError"):
        run_jobs(jobs("broken"), HANG)


def test_a_module_that_cannot_be_imported_is_a_bug_that_is_told() -> None:
    with refuses("failed", 1, "tests.processes.absent"):
        run_jobs([Job(name, "tests.processes.absent:role", {}) for name in "ab"], HANG)


@together
@pytest.mark.parametrize("victim", ["one", "the one that forked them"])
def test_whoever_is_killed_none_is_left(victim: str) -> None:
    numbers: dict[str, int] = {}
    ready = asyncio.Event()

    async def body() -> str:
        def hear(process: Any, event: dict[str, Any]) -> None:
            numbers[process.name] = event["pid"]
            if len(numbers) == 3:
                ready.set()

        supervisor = Supervisor(hear)
        try:
            started = await supervisor.start_together("abc", preload=[HERE], sockets=[()] * 3)
            for process in started:
                process.give(f"{HERE}:waiting", {})
            await ready.wait()
            parent = int(Path(f"/proc/{numbers['b']}/stat").read_text().rsplit(")", 1)[1].split()[1])
            numbers["parent"] = parent
            assert [process.handle.pid for process in started] == [numbers[name] for name in "abc"]
            os.kill(numbers["b"] if victim == "one" else parent, signal.SIGKILL)
            with pytest.raises(PeerError) as raised:
                await supervisor.done(HANG)
            if victim == "one":  # its number stays taken until all have ended: nobody else can be signalled by it
                assert Path(f"/proc/{numbers['b']}").exists() and alive([numbers["b"]]) == []
            return str(raised.value)
        finally:
            await supervisor.end()

    name = "b" if victim == "one" else "a"
    assert f"{name} was killed (SIGKILL)" in asyncio.run(body())
    wait_until(lambda: alive(list(numbers.values())) == [])
