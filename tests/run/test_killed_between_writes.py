"""A run that is killed between two of its writes goes on: some points here, all by `tests.endurance.kill_writes`.

What was opened stays as it was, nothing is spent twice, and what was paid for is delivered, or said to be lost."""

from dataclasses import replace
from pathlib import Path

import pytest

from dpmpc.learning.model import read_model
from tests.endurance.kill_local_writes import LAST, STAGES, check, found, played, records
from tests.endurance.kill_writes import FAULT, FINISHED, KILLED, Kind, kill, kinds


@pytest.mark.parametrize(
    ("kind", "number"),
    [
        ("train", 6), ("train", 90), ("stats", 14), ("synth", 13), ("stats-found", 12), ("meet", 9),
        ("train-words", 14),
    ],
)  # fmt: skip
def test_a_killed_run_goes_on(kind: str, number: int, tmp_path: Path) -> None:
    counts = kill(kind, "clear", [number], tmp_path)
    assert counts == {"finished": 1}


@pytest.mark.parametrize(
    ("kind", "stage"),
    [
        ("train", "survey"), ("train", "evaluation"), ("synth", "first"), ("stats-found", "survey"),
        ("train-words", "words"), ("train-words", "survey"), ("synth-words", "words"), ("stats-found-words", "words"),
    ],
)  # fmt: skip
def test_what_a_stage_has_opened_is_not_lost_with_the_process(kind: str, stage: str, tmp_path: Path) -> None:
    """Killed in place of the first write after its sum is in a file, the run ends as one that was never killed: its
    schema, its figures, its rows, and the words that were opened first in what it tells of."""
    records(tmp_path / "records.csv")
    out = tmp_path / "run"
    assert played(kind, tmp_path, out, "clear", opened=stage)[0] == KILLED
    before = found(out, kind)
    assert before[stage].opened and [*before][-1] == stage
    assert check(kind, out, before, *played(kind, tmp_path, out, "clear")) == "finished"
    after = found(out, kind)
    assert [*after] == list(STAGES[kind]) and all(len(each.opened) == each.releases for each in after.values())
    if "words" in STAGES[kind]:
        where = {"train-words": "model.npz", "synth-words": "synthetic.csv", "stats-found-words": "answers.csv"}[kind]
        told = "".join(read_model(out).schema.feature_names) if kind == "train-words" else (out / where).read_text()
        assert "f [#" in told and "m [#" in told


def test_another_sum_would_be_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    records(tmp_path / "records.csv")
    out = tmp_path / "run"
    assert played("stats", tmp_path, out, "clear")[0] == FINISHED
    before = found(out, "stats")
    assert check("stats", out, before, FINISHED, None) == "finished"
    other = {"": replace(before[""], opened={0: b"another"})}
    with pytest.raises(AssertionError, match="has changed"):
        check("stats", out, other, FINISHED, None)
    (out / LAST["stats"]).with_suffix(".tmp").touch()
    with pytest.raises(AssertionError, match="left behind"):
        check("stats", out, before, FINISHED, None)

    def at(folder: Path, victim: str, number: int) -> str | None:
        assert number != 2, "lost"
        return "finished" if number < 4 else None

    monkeypatch.setattr("tests.endurance.kill_writes.kinds", lambda: {"a": Kind(("b",), at)})
    assert kill("a", "b", range(1, 9), tmp_path) == {"finished": 2, FAULT: 1}


@pytest.mark.parametrize(
    ("kind", "victim", "number"), [("train-apart", "owner1", 85), ("train-sites", "1", 434), ("synth-sites", "0", 60)]
)
def test_a_process_of_several_machines_that_is_killed_goes_on(
    kind: str, victim: str, number: int, tmp_path: Path
) -> None:
    """Among the answers to its questions; when all is over but its reservation; in a stage."""
    assert kill(kind, victim, [number], tmp_path) == {"finished": 1}


def test_every_kind_of_run_is_killed() -> None:
    assert {name.partition("-")[0] for name in kinds()} == {"train", "stats", "synth", "meet"}
    assert len(kinds()) == 5 + 3 + 4 * 2  # here, with and without a survey, and words; every owner a party, and apart
