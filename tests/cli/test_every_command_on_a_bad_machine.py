"""Every command on machines that refuse something: one line each, no traceback, and nothing spent that cannot be told.

The generator crosses commands with faults: a call of the system that fails by each errno it may have, an output that is
closed or full, an encoding that lacks characters, a user without a home, few descriptors, a folder that is read-only.
"""

import errno
import json
import os
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from dpmpc.cli.main import COMMANDS
from tests.endurance.system_faults import WORDS

FAULTS: dict[str, dict[str, Any]] = {
    "a closed output": {"stdout": "closed"},
    "a full output": {"stdout": "full"},
    "a Latin-1 pipe": {"encoding": "latin-1"},
    "an ASCII pipe": {"encoding": "ascii"},
    "no home": {"nobody": True, "env": {"PATH": os.environ["PATH"], "TMPDIR": "HERE"}},
    "few descriptors": {"files": 32},
    "a file system without flock": {"call": ["flock", errno.ENOLCK, 0]},
    "a file system whose locks end": {"call": ["flock", errno.EOPNOTSUPP, 2]},
    "a disk that fails": {"call": ["fsync", errno.EIO, 0]},
    "a disk that fails later": {"call": ["fsync", errno.EIO, 3]},
    "a full disk": {"call": ["write", errno.ENOSPC, 0]},
    "no rename": {"call": ["replace", errno.EIO, 0]},
    "a folder that is read-only": {"call": ["mkdir", errno.EROFS, 0]},
}
PLAIN = {"stdout": "file", "encoding": "utf-8", "nobody": False, "files": 0, "call": None}


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A folder with records, a run, a consortium and its kits; and the process that plays cases in copies of it."""
    folder = tmp_path_factory.mktemp("machine") / "given"
    folder.mkdir()
    rows = [f"s{k % 3},{20 + k % 60},{('yes', 'no')[k % 2]}" for k in range(600)]
    (folder / "a.csv").write_text("\n".join(["site,größe,ill", *rows, ""]), encoding="utf-8")
    (folder / "b.toml").write_text('"größe" = [0, 90]\nill = ["yes", "no"]\n', encoding="utf-8")
    program = [sys.executable, "-m", "dpmpc"]
    env = {**os.environ, "DPMPC_ACCOUNT": str(folder / "account"), "PYTHONPATH": str(Path(__file__).parents[2])}

    def do(*words: str, within: str = ".") -> None:
        subprocess.run([*program, *words], cwd=folder / within, env=env, capture_output=True, check=True)

    do("describe", "a.csv", "--schema", "s.toml", "--target", "ill", "--owners-column", "site")
    do(*WORDS["train"][:-1], "run")
    do("train", "--data", "synthetic", "--max-rows", "200", "--dimension", "4", "--owners", "3", "--delta", "1e-4",
       "--iterations", "2", "--no-evaluate", "--epsilon", "1", "--out", "run2")  # fmt: skip
    (folder / "c").mkdir()
    do(*WORDS["init"], within="c")
    do("plan", "consortium.toml", within="c")
    do("kit", "consortium.toml", "--out", "kits", within="c")
    with subprocess.Popen(
        [sys.executable, "-m", "tests.cli.bad_machine", folder], cwd=Path(__file__).parents[2], env=env,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    ) as process:  # fmt: skip
        assert process.stdin is not None and process.stdout is not None

        @cache
        def play(command: str, fault: str | None) -> dict[str, Any]:
            case = PLAIN | ({} if fault is None else FAULTS[fault])
            own = {"PATH": env["PATH"], "HOME": "HERE", "TMPDIR": "HERE", "DPMPC_ACCOUNT": "HERE/account",
                   "OPENBLAS_NUM_THREADS": "1"}  # fmt: skip
            print(json.dumps({"env": own, **case, "words": WORDS[command]}), file=process.stdin, flush=True)
            found: dict[str, Any] = json.loads(process.stdout.readline())  # type: ignore[union-attr]
            return found

        yield play
        process.stdin.close()


def test_every_command_is_played() -> None:
    assert WORDS.keys() == COMMANDS.keys()


@pytest.mark.slow
@pytest.mark.parametrize("command", WORDS)
def test_what_a_machine_refuses_is_one_line_and_nothing_is_spent_for_nothing(command: str, machine: Any) -> None:
    well = machine(command, None)
    assert (well["code"] == 0) != (command == "join"), well
    for fault in FAULTS:
        found = machine(command, fault)
        case = (command, fault, found)
        assert "Traceback" not in found["out"] + found["said"] and found["code"] >= 0, case
        if found["code"]:
            lines = [line for line in found["said"].splitlines() if line.startswith("error: ")]
            assert len(lines) == 1 or fault == "a closed output", case
            assert found["said"].rstrip().splitlines()[-1].startswith("error: "), case
        elif fault in ("a Latin-1 pipe", "an ASCII pipe"):
            assert len(found["out"]) > 0.5 * len(well["out"]), case  # what was asked for is there
        if fault in ("a folder that is read-only", "no home"):
            assert found["spent"] == machine(command, None)["spent"] or found["code"], case
        if found["code"] and fault in ("a folder that is read-only", "a file system without flock", "no rename"):
            assert found["spent"] <= well["spent"], case
