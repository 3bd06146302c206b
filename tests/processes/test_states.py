"""What a process says of itself, read while it lives, after its end, and after it was killed; logs by level and as
JSON."""

import json
import os
import signal
import subprocess
import sys
import threading
from io import StringIO
from pathlib import Path

import pytest

from dpmpc.errors import PeerError
from dpmpc.processes import logs, status
from dpmpc.processes.status import FAILED, FINISHED, GONE, Status, read_state

WRITER = """
import sys
from pathlib import Path
from dpmpc.processes.status import Status
with Status(Path(sys.argv[1]), "party 1", "r", 9) as s:
    s.notes("stage", phase="releasing", text="x")
    print("there", flush=True)
    sys.stdin.read()
"""


def test_a_process_that_is_left_out_keeps_saying_why(tmp_path: Path) -> None:
    """It waits for the end of the others, and whom it waits for says less."""
    path = tmp_path / "s.json"
    with Status(path, "party 1", "r", 9) as writer:
        for phase, shown in (("connecting", "waiting for owner 0"), (status.LEFT_OUT, "left out: the others go on")):
            writer.notes("stage", phase=phase, text="x")
            writer.says("left out: the others go on")
            writer.says("waiting for owner 0")
            state = read_state(path)
            assert state is not None and (state.phase, state.event) == (phase, shown)
        writer.says("the run is over")
        state = read_state(path)
        assert state is not None and state.event == "the run is over"


def test_a_process_is_read_beside_it_and_after_its_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [100.0]
    monkeypatch.setattr(status.time, "time", lambda: clock[0])
    path, heard = tmp_path / "s.json", []
    with Status(path, "party 0", "run", 5) as writer:

        def emit(event: str, **fields: object) -> None:
            if writer.notes(event, **fields):
                heard.append((event, fields))

        writer.says("connected")
        writer.says("debug: release 7 opened")
        emit("connections", of=lambda: ["party 2", "owner 0", "party 2"])
        emit("begin", phase="releasing", first=1)
        emit("stage", text="hello", phase="releasing")
        state = read_state(path)
        assert state is not None and state.alive and state.phase == "releasing" and state.event == "connected"
        assert state.connected == ["owner 0", "party 2"] and (state.release, state.releases) == (1, 5)
        for done in (2, 3):
            clock[0] += 0.25
            emit("release", done=done)
        state = read_state(path)
        assert state is not None and state.rate == 4.0 and state.release == 3
        clock[0] += 0.25
        emit("release", done=4)
        state = read_state(path)
        assert state is not None and state.release == 3  # half a second has not passed since
    state = read_state(path)
    assert state is not None and not state.alive and state.phase == FINISHED and state.connected == []
    assert state.release == 4 and state.rate == 4.0
    assert heard == [("stage", {"text": "hello", "phase": "releasing"})]  # the others go no further


def test_a_failure_is_kept_with_its_cause_and_a_bug_without_its_words(tmp_path: Path) -> None:
    for error, event in (
        (PeerError("party 2 left; see it"), "error: party 2 left; see it"),
        (KeyError("s"), "error: "),
    ):
        with pytest.raises(type(error)), Status(tmp_path / "s.json", "party 0"):
            raise error
        state = read_state(tmp_path / "s.json")
        assert state is not None and state.phase == FAILED and state.event.startswith(event)
        assert "'s'" not in state.event


def test_a_killed_process_is_known_to_be_gone(tmp_path: Path) -> None:
    path = tmp_path / "s.json"
    with subprocess.Popen(
        [sys.executable, "-c", WRITER, path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None and process.stdout.readline() == "there\n"
        state = read_state(path)
        assert state is not None and state.alive and state.phase == "releasing"
        os.kill(process.pid, signal.SIGKILL)
    state = read_state(path)
    assert state is not None and not state.alive and state.phase == GONE and state.releases == 9


def test_one_process_writes_and_what_is_no_status_is_none(tmp_path: Path) -> None:
    path = tmp_path / "s.json"
    with Status(path, "party 0", "first", 2):
        with Status(path, "party 0", "second", 3):
            state = read_state(path)
            assert state is not None and state.run == "first"
    path.write_text("{")
    assert read_state(path) is None and read_state(tmp_path / "absent") is None
    with Status(tmp_path / "no" / "folder", "party 0") as writer:  # a run does not depend on it
        writer.notes("release", done=1)


def test_a_reader_sees_whole_states_while_they_are_written(tmp_path: Path) -> None:
    path, end, seen = tmp_path / "s.json", threading.Event(), []

    def read() -> None:
        while not end.is_set():
            seen.append(read_state(path))

    with Status(path, "party 0", "run", 5) as writer:
        reader = threading.Thread(target=read)
        reader.start()
        for k in range(2000):
            writer.says("x" * (k * 37 % 1500))
        end.set()
        reader.join()
    assert seen and all(state is not None and set(state.event) <= {"x"} for state in seen)


# -- logs --------------------------------------------------------------------------------------------------------------
LINES = ("debug: release 3 opened", "connected", "refused a caller", "party: waiting for owner 1", "error: it ended")


@pytest.mark.parametrize(("level", "count"), [("debug", 5), ("info", 4), ("warning", 3), ("error", 1), ("loud", 4)])
def test_levels(monkeypatch: pytest.MonkeyPatch, level: str, count: int) -> None:
    monkeypatch.setenv(logs.LEVEL, level)
    assert [logs.level_of(line) for line in LINES] == ["debug", "info", "warning", "warning", "error"]
    assert len(written()) == count


def test_json_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(logs.LEVEL, raising=False)
    monkeypatch.setenv(logs.JSON, "1")
    found = [json.loads(line) for line in written()]
    assert [line["level"] for line in found] == ["info", "warning", "warning", "error"]
    assert found[0]["process"] == "party_0" and found[0]["text"] == "connected" and found[0]["time"].endswith("Z")


def written() -> list[str]:
    file = StringIO()
    file.name = "runs/party_0.log"  # type: ignore[misc]
    log = logs.log_to(file)
    for line in LINES:
        log(line)
    return file.getvalue().splitlines()
