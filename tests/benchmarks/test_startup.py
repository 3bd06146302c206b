"""What short commands take beside an import: commands that exist, measured by turns, in an account of their own."""

import ast
from pathlib import Path

import pytest
from commands import parsed

from dpmpc.benchmarks.studies import startup


def test_its_commands_are_commands(tmp_path: Path) -> None:
    found = startup.commands(tmp_path)
    spoken = {what: words[3:] for what, words in found.items() if words[1:3] == ["-m", "dpmpc"]}
    assert len(spoken) == 5
    for what, words in spoken.items():
        if words != ["--help"]:
            assert parsed(words) and what.startswith(f"dpmpc {words[0]}")
    ast.parse(startup._FIT)


@pytest.mark.slow
def test_a_row_is_a_multiple_of_the_import(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    whole = startup.commands
    monkeypatch.setattr(startup, "commands", lambda folder: dict(list(whole(folder).items())[:3]))
    monkeypatch.setattr(startup, "WARM_UPS", 0)
    found = startup.rows(1, engines=("clear",))
    timed = [startup.IMPORT, "import dpmpc", "dpmpc --help", "second fit, engine=clear"]
    assert [row["what"] for row in found] == timed
    assert found[0]["times"] == found[0]["processor_times"] == 1
    for row in found:
        assert row["seconds"] > 0 and row["times"] == pytest.approx(row["seconds"] / found[0]["seconds"])
        assert row["processor_times"] == pytest.approx(row["processor"] / found[0]["processor"])


def test_two_versions_are_compared_by_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    taken = {"before": iter([(1.0, 1.0), (2.0, 1.0)]), "now": iter([(0.5, 0.25), (1.0, 0.25)])}
    order = list[str]()

    def turn(folder: Path, engines: object, tree: Path) -> dict[str, tuple[float, float]]:
        order.append(tree.name)
        return {"a command": next(taken[tree.name])}

    monkeypatch.setattr(startup, "turn", turn)
    found = startup.ratios(1, (Path("before"), Path("now")))
    assert order == ["before", "now"] * 2
    assert found == [{"what": "a command", "clock": 0.5, "processor": 0.25}]
