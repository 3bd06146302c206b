"""What a machine may lack when a command starts: descriptors, a home folder, characters, an output. Each is one line
and an exit code, and an answer that was paid for is printed, or kept. What it refuses later is drawn
(`tests.endurance.system_faults`)."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

# Runs the command with at most so many open files; 0: as many as the system allows.
PROGRAM = """
import resource, sys
files = int(sys.argv[1])
if files:
    resource.setrlimit(resource.RLIMIT_NOFILE, (files, files))
sys.argv = ["dpmpc", *sys.argv[2:]]
from dpmpc.cli.main import program
program()
"""
ASKED = ["--csv", "a.csv", "--owners-column", "site", "--bounds", "b.toml", "--epsilon", "2", "--delta", "1e-5"]
COMMANDS = {
    "stats": ["stats", "mean(age)", *ASKED, "--engine", "clear", "--out", "r"],
    "describe": ["describe", "a.csv"],
}


@pytest.fixture
def here(tmp_path: Path) -> Path:
    rows = [f"s{k % 3},{20 + k % 60},{('yes', 'no')[k % 2]}" for k in range(600)]
    (tmp_path / "a.csv").write_text("\n".join(["site,age,ill", *rows, ""]))
    (tmp_path / "b.toml").write_text('age = [0, 90]\nill = ["yes", "no"]\n')
    return tmp_path


def run(folder: Path, *words: str, files: int = 0, **env: str) -> tuple[int, str, str]:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(files), *words],
        cwd=folder,
        env={**os.environ, "DPMPC_ACCOUNT": str(folder / "account"), **env},
        capture_output=True,
        check=False,
    )
    return done.returncode, done.stdout.decode(errors="replace"), done.stderr.decode(errors="replace")


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
    words = [sys.executable, "-c", program, "0", *COMMANDS["stats"]]
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


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="a device that is always full")
@pytest.mark.parametrize("form", ["text", "json"])
def test_an_answer_that_a_full_output_refuses_is_kept(here: Path, form: str) -> None:
    """It was paid for when it is printed, and `stats` without a folder has it nowhere else."""
    words = [*COMMANDS["stats"][:-2], *(["--json"] if form == "json" else [])]
    program = [sys.executable, "-c", PROGRAM, "0", *words]
    env = {**os.environ, "DPMPC_ACCOUNT": str(here / "account")}
    with open("/dev/full", "w") as full:
        done = subprocess.run(program, cwd=here, env=env, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    (kept,) = here.glob("dpmpc-output-*.txt")
    assert done.returncode == 1 and "Traceback" not in done.stderr, done.stderr
    last = done.stderr.splitlines()[-1]
    said = json.loads(last)["text"] if form == "json" else last
    assert said.startswith("error: ") and said.endswith(str(kept)) and "No space left" in said, said
    assert kept.stat().st_mode & 0o077 == 0
    assert json.loads(kept.read_text()) if form == "json" else "mean" in kept.read_text()
