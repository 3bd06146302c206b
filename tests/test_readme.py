"""Every command in the README runs, in order, in an empty directory with the files it names. Iterations are cut where
a run is long.
"""

import re
import shlex
import shutil
from pathlib import Path

import numpy as np
import pytest

from tests.commands import parsed
from tests.runs import data_dir, dpmpc

README = Path(__file__).parents[1] / "README.md"
BESIDE_OTHERS = ("join", "status")  # tests/test_consortium_page.py starts these
ELSEWHERE = "-I "  # a process on another machine: tests/test_train.py starts these with addresses of this one


def commands() -> list[str]:
    """The dpmpc commands of the README's code blocks, continuation lines joined."""
    text = README.read_text(encoding="utf-8")
    blocks = re.findall(r"^```(\w*)\n(.*?)^```", text, flags=re.MULTILINE | re.DOTALL)
    lines = "\n".join(block for language, block in blocks if not language).replace("\\\n", " ").splitlines()
    return [line.removeprefix("$ ").split("  #")[0] for line in lines if line.removeprefix("$ ").startswith("dpmpc ")]


def _hospitals(folder: Path) -> None:
    rng = np.random.default_rng(5)
    rows = rng.normal(size=(300, 3))
    text = [
        f"{a:.3f},{b:.3f},{c:.3f},{'ill' if a - b > 0 else 'well'},{'ABC'[i % 3]}" for i, (a, b, c) in enumerate(rows)
    ]
    (folder / "hospital.csv").write_text("\n".join(["age,dose,weight,outcome,site", *text]) + "\n")
    (folder / "new_patients.csv").write_text("age,dose,weight\n0.5,1,0\n-1,0,2\n")
    columns = "".join(f'[[columns]]\nkind = "number"\nname = "{name}"\nlow = -4\nhigh = 4\n' for name in "xyz")
    target = '[target]\nkind = "label"\nname = "outcome"\npositive = ["ill"]\nnegative = ["well"]\n'
    (folder / "schema.toml").write_text(columns + target)
    mine = "".join(f"{i % 7 - 3},{i % 5},{i % 3},{('ill', 'well')[i % 2]}\n" for i in range(400))  # as the plan says
    (folder / "my_patients.csv").write_text("x,y,z,outcome\n" + mine)


@pytest.mark.slow
def test_every_command_of_the_readme_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    _hospitals(tmp_path)
    found = commands()
    assert len(found) >= 8
    for line in found:
        arguments = shlex.split(line)[1:]
        if ELSEWHERE in line or arguments[0] in BESIDE_OTHERS:
            continue
        if "adult" in arguments:
            if not (data_dir() / "adult").is_dir():
                continue  # no UCI files here; tests/test_sets.py says what is missing
            arguments[arguments.index("--data-dir") + 1] = str(data_dir())
            arguments += ["--max-rows", "8000"]
        result = dpmpc(*arguments)
        assert result.returncode == 0, (line, result.stderr)
        if "--plan-only" in arguments:
            shutil.copy(tmp_path / "plan" / "plan.json", tmp_path)  # as handed to an owner
        if "predict" in arguments:
            assert len(result.stdout.splitlines()) == 3
    shutil.rmtree(tmp_path / "runs")


def test_commands_for_other_machines_are_ones_that_train_knows() -> None:
    """They are parsed, and fail only for want of the plan."""
    beside = [words for words in map(shlex.split, commands()) if words[1] in BESIDE_OTHERS]
    assert [parsed(words[1:])["csv" if words[1] == "join" else "run"] for words in beside] == [
        Path("my_patients.csv"),
        Path("kits/owner1"),
    ]
    lines = [line for line in commands() if ELSEWHERE in line]
    assert len(lines) == 2
    for line in lines:
        result = dpmpc(*shlex.split(line)[1:])
        assert result.returncode == 2 and "plan.json" in result.stderr, result.stderr
