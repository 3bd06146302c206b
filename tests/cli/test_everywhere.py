"""What every command has: one file of settings, its result as JSON, quiet; delta and a folder where none was said."""

import json
import os
import tomllib
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result

from dpmpc.cli.defaults import DELTA
from dpmpc.cli.main import COMMANDS, group, main, named
from dpmpc.cli.run_file import keys_of
from dpmpc.records.example import hospitals

RECORDS = (
    "--csv", "hospitals.csv", "--owners-column", "site", "--bounds", "bounds.toml", "--engine", "clear"
)  # fmt: skip
TRAIN = ("train", *RECORDS, "--target", "readmitted", "--iterations", "3")


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the example's records, which is the current one, and an account of its own."""
    hospitals(tmp_path, 400)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DPMPC_ACCOUNT", str(tmp_path / "account"))
    return tmp_path


def run(*words: str) -> Result:
    return CliRunner().invoke(group, list(words))


def said(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[object, str]:
    """(exit code, what stands on standard error)."""
    with pytest.raises(SystemExit) as end:
        main(list(words))
    return end.value.code, capsys.readouterr().err


def leaves(command: click.Command) -> Iterator[click.Command]:
    if isinstance(command, click.Group):
        for each in command.commands.values():
            yield from leaves(each)
    else:
        yield command


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_the_four_options_and_keys_of_one_meaning(name: str) -> None:
    for command in leaves(named(name)):
        flags = [flag for each in command.params for flag in each.opts if flag.startswith("-")]
        assert {"--config", "--save-config", "--json", "--quiet"} <= set(flags)
        assert len(set(flags)) == len(flags)
        kept = [
            each
            for each in command.params
            if each.name not in ("config", "save_config", "as_json", "quiet", "help_all")
        ]
        assert len(keys_of(command)) == len(kept)  # no two options have one key
        for each in kept:
            assert isinstance(each, click.Argument) or "--json" not in each.opts


def test_what_was_said_is_a_file_that_says_it_again(place: Path) -> None:
    """Saved by one command, read by it and by others; a second file of what the first said is the first."""
    first = run(*TRAIN, "--decimal", ".", "--epsilon", "2", "--save-config", "run.toml", "--out", "a", "--drop", "ward")
    assert first.exit_code == 0, first.output
    file = tomllib.loads(Path("run.toml").read_text())
    assert file["csv"] == "hospitals.csv" and file["drop"] == ["ward"] and file["decimal"] == "."
    assert file["train"] == {"epsilon": 2.0, "engine": "clear", "iterations": 3, "out": "a"}
    assert os.stat("run.toml").st_mode & 0o077 == 0
    again = run("train", "--config", "run.toml", "--out", "b", "--save-config", "again.toml", "--json")
    assert again.exit_code == 0, again.output
    assert tomllib.loads(Path("again.toml").read_text()) == {**file, "train": {**file["train"], "out": "b"}}
    report = json.loads(again.stdout)
    assert report["folder"] == "b" and report["privacy"]["epsilon"] == 2.0
    asked = run("stats", "mean(age)", "--config", "run.toml", "--dry", "--json")
    assert asked.exit_code == 0 and "not of `dpmpc stats`: target, drop" in asked.stderr, asked.stderr
    assert json.loads(asked.stdout)["expected"]


def test_a_section_comes_before_what_is_shared_and_the_command_line_before_both(place: Path) -> None:
    Path("run.toml").write_text('seed = 5\nrecords = 300\nname = "hospitals"\n[example]\nseed = 6\n')
    for words, seed in (((), 6), (("--seed", "7"), 7)):
        out = f"made{seed}"
        assert run("example", "--config", "run.toml", "--out", out, *words).exit_code == 0
        hospitals(place / f"by{seed}", 300, seed)
        assert (place / out / "hospitals.csv").read_text() == (place / f"by{seed}/hospitals.csv").read_text()


def test_another_source_on_the_command_line_is_the_only_one(place: Path) -> None:
    Path("run.toml").write_text('csv = "nowhere.csv"\n')
    assert run("describe", "--config", "run.toml", "hospitals.csv").exit_code == 0
    assert run("describe", "--config", "run.toml", "--records", "hospitals.csv").exit_code == 0


def test_a_file_of_spelling_is_named_and_describe_does_not_write_it_unasked(place: Path) -> None:
    Path("how.toml").write_text('missing = ["-"]\n')
    assert run("describe", "hospitals.csv", "--spelling", "how.toml", "--save-config", "run.toml").exit_code == 0
    file = tomllib.loads(Path("run.toml").read_text())
    assert file == {"spelling": "how.toml", "describe": {"source": "hospitals.csv"}}
    before = Path("how.toml").read_bytes()
    Path("run.toml").write_text('spelling = "how.toml"\n')
    assert run("describe", "hospitals.csv", "--config", "run.toml").exit_code == 0
    assert Path("how.toml").read_bytes() == before


@pytest.mark.parametrize(("text", "words"), [
    ('targte = "a"\n', ("'targte'", "did you mean 'target'?")),
    ("[train]\nepsiln = 1\n", ("'epsiln'", "`dpmpc train` does not have it", "did you mean 'epsilon'?")),
    ("[trian]\nepsilon = 1\n", ("[trian]", "did you mean [train]?")),
    ('epsilon = "x"\n', ("epsilon", "'x' is not a valid float")),
    ("epsilon = true\n", ("epsilon", "True is not a value of it")),
    ("target = [1]\n", ("target", "not a value of it")),
    ('overwrite = "yes"\n', ("overwrite", "true or false")),
    ("[train.records]\na = 1\n[train]\nx = \n", ("TOML",)),
    ("drop = [\n", ("TOML",)),
])  # fmt: skip
def test_a_wrong_line_of_the_file_is_one_clear_line(
    place: Path, text: str, words: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    Path("run.toml").write_text(text)
    code, line = said(capsys, "train", "--config", "run.toml")
    assert code == 2 and line.count("\n") == 1 and "run.toml" in line and all(each in line for each in words), line
    code, line = said(capsys, "train", "--config", "none.toml")
    assert code == 2 and line.count("\n") == 1 and "none.toml" in line


def test_a_promise_of_the_file_is_not_silently_another(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A unit of privacy that a command does not have stops it: it would promise less than the file says."""
    Path("run.toml").write_text('person = "ward"\ncsv = "hospitals.csv"\nowners_column = "site"\n')
    code, line = said(capsys, "meet", "--config", "run.toml", "--dry")
    assert code == 2 and "person" in line and "promise" in line


def test_a_password_is_not_saved(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ("--database", "postgresql://me:hidden@host/db", "--sql", "select 1", "--save-config", "run.toml")
    code, line = said(capsys, "describe", *words)
    assert code == 2 and "hidden" not in line and not Path("run.toml").exists()


ONCE = (
    ("example", "hospitals", "--out", "more"),
    ("describe", "hospitals.csv"),
    ("check", "--schema", "schema.json", "--csv", "hospitals.csv"),
    ("stats", "mean(age)", *RECORDS, "--epsilon", "4"),
    ("synth", *RECORDS, "--epsilon", "4"),
    ("advise", "--epsilon", "1", "--delta", "1e-5", "--owners", "3", "--total", "3000", "--dimension", "4"),
    ("account", "--epsilon", "0.5", "--delta", "1e-3", "--iterations", "10", "--owners", "10", "--smallest", "500"),
    ("circuit", "gaussian"),
    ("init", "--out", "c.toml", "-P", "127.0.0.1:11365", "-P", "127.0.0.1:11366", "-P", "127.0.0.1:11367"),
    ("plan", "c.toml"),
    ("kit", "c.toml"),
    ("keys", "-M", "3", "--out", "keys"),
    (*TRAIN, "--epsilon", "1"),
    ("predict", "runs/train-1", "--csv", "new_patients.csv"),
    ("predict", "runs/train-1", "--csv", "new_patients.csv", "--out", "said.csv"),
    ("report", "runs/train-1"),
    ("status", "runs/train-1"),
    ("budget", "runs"),
)  # fmt: skip


def test_json_is_all_that_is_printed_and_quiet_leaves_no_notes(place: Path) -> None:
    """One process after the other, each on what those before wrote."""
    assert run("describe", "hospitals.csv", "--target", "readmitted", "--schema", "schema.json").exit_code == 0
    for words in ONCE:
        found = run(*words, "--json", "--quiet")
        assert found.exit_code == 0, (words, found.output)
        value = json.loads(found.stdout)
        assert isinstance(value, dict) and value, words
        assert all("arning:" in line for line in found.stderr.splitlines()), (words, found.stderr)
    assert {"train-1", "synth-1"} == {each.name for each in (place / "runs").iterdir()}
    assert json.loads(Path("runs/train-1/report.json").read_text())["privacy"]["delta"] == DELTA


def test_an_error_beside_json_is_json(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, line = said(capsys, "stats", "mean(age", "--csv", "hospitals.csv", "--owners-column", "site", "--json")
    assert code == 2 and json.loads(line)["level"] == "error"


def test_a_folder_that_nobody_named_is_the_first_that_is_free(place: Path) -> None:
    """And a delta that nobody said is none where noise needs none."""
    (place / "runs/train-1").mkdir(parents=True)
    done = run(*TRAIN[:-2], "--method", "output", "--epsilon", "4", "--json")
    assert done.exit_code == 0, done.output
    report = json.loads(done.stdout)
    assert report["folder"] == "runs/train-2" and report["privacy"]["delta"] < 1e-9
