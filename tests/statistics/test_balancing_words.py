"""The warning about one class for all names what to set as its reader writes it."""

from pathlib import Path

import pytest

from dpmpc.cli.settings import spelling as options
from dpmpc.errors import python_spelling
from dpmpc.runs.joining import kit_spelling
from dpmpc.statistics.figures import BALANCING


def test_the_setting_is_said_once_and_in_the_readers_words(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from dpmpc.cli import train
    from dpmpc.runs import report, summary

    text = f"give the rarer class more weight with {BALANCING}"
    monkeypatch.setattr(report, "read_report", lambda run: {})
    monkeypatch.setattr(summary, "summary", lambda said, run: [("warning", text)])
    for spelling, words in (
        (options, "with --class-weight balanced"),
        (kit_spelling, 'with class_weight = "balanced" in [learning] of consortium.toml'),
    ):
        train.show(tmp_path, spelling)
        said = " ".join(capsys.readouterr().out.split())
        assert words in said and said.count("class") == 2
    assert python_spelling("class_weight", '"balanced"') == BALANCING
