"""The warning about one class for all names what to set as its reader writes it."""

import contextlib
from pathlib import Path

import pytest

from dpmpc.cli.settings import spelling as options
from dpmpc.consortium.joining import kit_spelling
from dpmpc.statistics.figures import BALANCING


def test_the_setting_is_said_once_and_in_the_readers_words(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from dpmpc.cli import train
    from dpmpc.local import report
    from dpmpc.show import summary

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


def test_a_report_has_the_words_of_the_surface_that_made_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    from dpmpc.local.report import _warnings as advice_words
    from dpmpc.local.report import add_figures
    from dpmpc.planning.adviser import Circumstances, advise
    from dpmpc.processes.logs import SPELLING, speaking
    from dpmpc.statistics.figures import Figures

    class OneClass:
        warnings = (f"give the rarer class more weight with {BALANCING}",)

        def to_json(self) -> dict[str, object]:
            return {}

    monkeypatch.delenv(SPELLING, raising=False)
    found: Figures = OneClass()  # type: ignore[assignment]
    for surface, words in (
        (("dpmpc.cli.settings:spelling",), "--class-weight balanced"),
        (
            ("dpmpc.cli.settings:spelling", "dpmpc.consortium.joining:kit_spelling"),
            'class_weight = "balanced" in [learning]',
        ),
        ((), 'class_weight="balanced"'),
    ):
        advice = advise(Circumstances(4, 60, 300, 31, 0.5, 1e-5, columns=30))
        report: dict[str, list[str]] = {"warnings": []}
        with contextlib.ExitStack() as stack:
            for name in surface:
                stack.enter_context(speaking(name))
            add_figures(report, found.to_json(), found.warnings)
            advised = advice_words(advice)
        (text,) = report["warnings"]
        assert f"more weight with {words}" in text
        way = {0: "give bounds", 1: "give --bounds", 2: "give [records.bounds]"}[len(surface)]
        assert any(way in text for text in advised)
