"""What a machine may refuse, anywhere in a command: locks, writes that last, descriptors, a home folder, characters.
Each is one line and an exit code, and an answer that was paid for is printed."""

import errno
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

# Runs the command with one call of the system failing from the K-th time on.
PROGRAM = """
import errno, fcntl, os, sys, resource
what, number, after, files = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
if files:
    resource.setrlimit(resource.RLIMIT_NOFILE, (files, files))
if what:
    home, name = (fcntl, "flock") if what == "flock" else (os, what)
    real, calls = getattr(home, name), [0]
    def failing(*arguments, **more):
        calls[0] += 1
        if calls[0] > after:
            raise OSError(number, os.strerror(number))
        return real(*arguments, **more)
    setattr(home, name, failing)
sys.argv = ["dpmpc", *sys.argv[5:]]
from dpmpc.cli.main import program
program()
"""
ASKED = ["--csv", "a.csv", "--owners-column", "site", "--bounds", "b.toml", "--epsilon", "2", "--delta", "1e-5"]
COMMANDS = {
    "stats": ["stats", "mean(age)", *ASKED, "--engine", "clear", "--out", "r"],
    "train": ["train", *ASKED, "--target", "ill", "--engine", "clear", "--iterations", "2", "--out", "r"],
    "describe": ["describe", "a.csv"],
    "check": ["check", "a.csv", "--schema", "s.json"],
    "budget": ["budget", "r"],
}
FAULTS = [
    ("flock", errno.ENOLCK, 0),
    ("flock", errno.EOPNOTSUPP, 3),
    ("fsync", errno.EIO, 0),
    ("fsync", errno.EIO, 4),
    ("fsync", errno.ENOSPC, 2),
    ("replace", errno.EIO, 0),
]


@pytest.fixture
def here(tmp_path: Path) -> Path:
    rows = [f"s{k % 3},{20 + k % 60},{('yes', 'no')[k % 2]}" for k in range(600)]
    (tmp_path / "a.csv").write_text("\n".join(["site,age,ill", *rows, ""]))
    (tmp_path / "b.toml").write_text('age = [0, 90]\nill = ["yes", "no"]\n')
    return tmp_path


def run(folder: Path, *words: str, what: str = "", number: int = 0, after: int = 0, files: int = 0, **env: str) -> tuple[int, str, str]:  # fmt: skip  # noqa: E501
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, what, str(number), str(after), str(files), *words],
        cwd=folder,
        env={**os.environ, "DPMPC_ACCOUNT": str(folder / "account"), **env},
        capture_output=True,
        check=False,
    )
    return done.returncode, done.stdout.decode(errors="replace"), done.stderr.decode(errors="replace")


@pytest.mark.slow
@pytest.mark.parametrize("command", COMMANDS)
def test_what_the_machine_refuses_is_one_line(here: Path, command: str) -> None:
    for what, number, after in FAULTS:
        code, out, said = run(here, *COMMANDS[command], what=what, number=number, after=after)
        case = (command, what, os.strerror(number), after, said[-2000:])
        assert "Traceback" not in said and "Traceback" not in out, case
        if code:
            assert said.rstrip().splitlines()[-1].startswith("error: "), case
        for path in here.glob("r*"):
            path.rename(here / f"old{len(list(here.iterdir()))}")


@pytest.mark.parametrize("command", ["stats", "describe"])
def test_few_descriptors_are_one_line(here: Path, command: str) -> None:
    code, _, said = run(here, *COMMANDS[command], files=24)
    assert "Traceback" not in said and (code == 0 or "error: " in said), said


def test_a_pipe_that_lacks_characters_gets_what_was_paid_for(here: Path) -> None:
    (here / "a.csv").write_text((here / "a.csv").read_text().replace("age", "年齢"), encoding="utf-8")
    (here / "b.toml").write_text('"年齢" = [0, 90]\n', encoding="utf-8")
    words = ["stats", 'mean("年齢")', *ASKED, "--engine", "clear", "--out", "r"]
    code, out, said = run(here, *words, PYTHONIOENCODING="latin-1")
    assert code == 0 and "mean" in out and "Traceback" not in said, said
    assert (here / "r" / "answers.json").is_file()


def test_a_file_name_in_other_bytes_is_read(here: Path) -> None:
    os.rename(here / "a.csv", os.fsencode(here) + b"/klinik\xe9.csv")
    words = [word if word != "a.csv" else "klinik\udce9.csv" for word in COMMANDS["stats"]]
    code, out, said = run(here, *words)
    assert code == 0 and "mean" in out, said
    assert json.loads((here / "r" / "plan.json").read_text())["data"] == "klinik.csv"


def test_a_user_without_a_home_is_told_what_to_say(here: Path) -> None:
    """HOME unset, and no entry of this user among those of the machine."""
    program = f"import pwd\ndef nobody(*user): raise KeyError(user)\npwd.getpwuid = nobody\n{PROGRAM}"
    env = {name: value for name, value in os.environ.items() if name not in ("HOME", "DPMPC_ACCOUNT", "XDG_DATA_HOME")}
    words = [sys.executable, "-c", program, "", "0", "0", "0", *COMMANDS["stats"]]
    done = subprocess.run(words, cwd=here, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 2 and "DPMPC_ACCOUNT" in done.stderr and "Traceback" not in done.stderr, done.stderr


@pytest.mark.parametrize("words", [COMMANDS["stats"], ["example", "hospitals"]])
def test_a_closed_output_is_refused_before_anything_is_spent(here: Path, words: list[str]) -> None:
    """As `command >&-` has it: a file that is opened later would have the number of standard output."""
    shell = ["bash", "-c", '"$@" >&-', "bash", sys.executable, "-m", "dpmpc", *words]
    env = {**os.environ, "DPMPC_ACCOUNT": str(here / "account")}
    done = subprocess.run(shell, cwd=here, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 2 and done.stderr.startswith("error: ") and done.stderr.count("\n") == 1, done.stderr
    assert "standard output is closed" in done.stderr
    assert not (here / "r").exists() and not (here / "account").exists() and not (here / "hospitals.csv").exists()
