"""What commands write of a run is for its user alone: figures, verdicts and pages as the run itself."""

import os
from pathlib import Path

import pytest

from tests.runs import dpmpc

RUN = ("--csv", "hospitals.csv", "--owners-column", "site", "--epsilon", "8", "--delta", "1e-5")
CLEAR = ("--engine", "clear")
BOUNDS = ("--bounds", "bounds.toml")
COMMANDS: tuple[tuple[str, ...], ...] = (
    ("train", *RUN, *BOUNDS, "--target", "readmitted", "--preprocessing", "records", "--basis", "additive",
     "--iterations", "2", "--figures", "inside", "--out", "t"),
    ("predict", "t", "--csv", "new_patients.csv", "--out", "t/predicted.csv"),
    ("report", "t", "--curves", "t/curves.json"),
    ("verify", "t", "--structure"),
    ("stats", "mean(age)", "table(readmitted)", *RUN, *BOUNDS, *CLEAR, "--out", "s"),
    ("report", "s"),
    ("synth", *RUN, *BOUNDS, *CLEAR, "--out", "y.parquet", "--rows", "50"),
    ("synth", *RUN, *BOUNDS, *CLEAR, "--out", "z.csv", "--rows", "50"),
    ("meet", *RUN, *CLEAR, "--out", "m"),
    ("describe", "hospitals.csv", "--target", "readmitted", "--owners-column", "site", "--schema", "drawn.toml",
     "--html", "look.html"),
)  # fmt: skip
# What is public by what it is: made-up records, and nothing else that a command of a run writes.
GIVEN = ("hospitals.csv", "new_patients.csv", "bounds.toml", "north.csv", "south.csv", "west.csv")


def test_what_commands_write_of_a_run_is_for_its_user_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files have no bits for others; a folder that has keeps its files' own bits. By an umask that gives all away."""
    monkeypatch.chdir(tmp_path)
    assert dpmpc("example", "hospitals").returncode == 0
    before = os.umask(0)
    try:
        for command in COMMANDS:
            done = dpmpc(*command)
            assert done.returncode == 0, (command, done.stdout[-500:], done.stderr[-500:])
    finally:
        os.umask(before)
    written = [path for path in tmp_path.rglob("*") if path.is_file() and path.name not in GIVEN]
    assert {"report.html", "verify.json", "synthetic.md", "curves.json"} <= {path.name for path in written}
    open_to_others = [path.relative_to(tmp_path).as_posix() for path in written if path.stat().st_mode & 0o077]
    assert not open_to_others
