"""A full disk, a folder that cannot be written and no memory are one line each, from the command and from a child."""

import errno
import os
from pathlib import Path
from typing import Any

import pytest

from dpmpc.cli import describe
from dpmpc.cli.main import main
from dpmpc.errors import machine_text
from dpmpc.processes.worker import run_role
from tests.tables import write

FULL = Path("/dev/full")


def full() -> OSError:
    """What the system says where there is no room."""
    with pytest.raises(OSError, match="No space") as error, FULL.open("wb", buffering=0) as file:
        file.write(b"x")
    return error.value


def role(emit: Any, log: Any) -> None:
    """A child's work on a full disk."""
    raise full()


needs_full = pytest.mark.skipif(not FULL.exists(), reason="a device that is always full")


@needs_full
def test_a_child_on_a_full_disk_says_so_in_one_line() -> None:
    events: list[tuple[str, dict[str, Any]]] = []
    code = run_role(f"{__name__}:role", {}, lambda event, **rest: events.append((event, rest)), lambda text: None)
    said = {"message": "files need room on the disk; none is left; free some, or name another folder", "exit_code": 1}
    assert code == 1 and events == [("error", said)]


@needs_full
def test_a_command_on_a_full_disk_says_so_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refused(*_: object) -> None:
        raise full()

    monkeypatch.setattr(describe, "_write", refused)
    table = write(tmp_path, "a,y\n" + "".join(f"{k},{k % 2}\n" for k in range(30)))
    with pytest.raises(SystemExit) as end:
        main(["describe", str(table), "--target", "y", "--schema", str(tmp_path / "s.toml")])
    said = capsys.readouterr().err.splitlines()
    assert end.value.code == 1 and said[-1].startswith("error: files need room on the disk; none is left")


def test_only_what_the_machine_refused_is_said_so() -> None:
    for number in (errno.EROFS, errno.EACCES, errno.EPERM, errno.ENOSPC, errno.EDQUOT):
        text = machine_text(OSError(number, os.strerror(number), "runs/first/history.csv"))
        assert text is not None and "runs/first/history.csv" in text and text.count(";") == 2 and "\n" not in text
    assert "memory" in (machine_text(MemoryError()) or "")
    assert "ulimit -u" in (machine_text(RuntimeError("can't start new thread")) or "")
    assert machine_text(RuntimeError("a bug")) is None
    assert machine_text(OSError(errno.ECONNRESET, "reset")) is None  # a bug or a peer: its stack is of use
