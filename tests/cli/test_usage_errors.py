"""A wrong word on the command line ends in one line, and commands that the docs name start as they stand there."""

import json

import click
import pytest

from dpmpc.cli.main import group, main
from dpmpc.processes import logs


@click.command("asks")
@click.option("--law", type=click.Choice(["gaussian", "laplace"]), required=True)
def asks(law: str) -> None:
    """A required choice: click lists what may be chosen on lines of their own."""


def said_by(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, list[str]]:
    with pytest.raises(SystemExit) as end:
        main(list(words))
    return int(end.value.code or 0), capsys.readouterr().err.splitlines()


def test_a_missing_choice_is_one_line(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(group, "get_command", lambda context, name: asks)
    code, lines = said_by(capsys, "asks")
    assert code == 2 and len(lines) == 1
    assert lines[0].startswith("error: Missing option '--law'") and lines[0].endswith("; see dpmpc asks --help")
    assert "gaussian" in lines[0] and "laplace" in lines[0]
    monkeypatch.setenv(logs.JSON, "1")
    code, lines = said_by(capsys, "asks")
    assert code == 2 and len(lines) == 1 and "--law" in json.loads(lines[0])["text"]


def test_noise_of_checked_parties_needs_neither_law_nor_scale(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        main(["sample", "-M", "16", "--security", "active", "--engine", "counting"])
    out = capsys.readouterr().out
    assert end.value.code in (0, None) and "discrete Gaussian, scale 65536 grid steps" in out and "n = 16, t = 7" in out
