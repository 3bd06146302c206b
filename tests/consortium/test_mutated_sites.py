"""Some of the changes of `tests/endurance/mutated_sites.py`, which makes all: one site has another file or plan."""

import random
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from dpmpc.aggregation.plan.fields import differing, marks
from dpmpc.consortium.toml_keys import ConsortiumFile
from dpmpc.intake.written import written
from tests.endurance.mutated_sites import BASES, based, met, mutants, read, text_of, wrong_with
from tests.refusals import refuses
from tests.runs import own_addresses

SOME = 120  # of some 2,500 a kind


@pytest.mark.parametrize("kind", BASES)
def test_a_changed_file_is_refused_in_one_line_or_leads_to_a_plan(kind: str, tmp_path: Path) -> None:
    base = based(kind, own_addresses(3))
    why, honest = read(text_of(base), tmp_path)
    assert honest is not None, why
    count = Counter[str]()
    for mutant in random.Random(29).sample(list(mutants(base)), SOME):
        what, wrong, _ = wrong_with(mutant, honest, tmp_path)
        assert not wrong, (mutant.at, mutant.how, wrong, read(mutant.text, tmp_path)[0][:300])
        count[what] += 1
    assert count["refused"] > SOME / 2 and count["another"] >= 2, count


@pytest.mark.parametrize(
    ("kind", "at", "how"),
    [
        ("train", ("run", "data_id"), "an escape"),
        ("stats", ("owners", 2, "records"), "negative"),
        ("stats", ("stats", "queries", 0), "a table"),
        ("synth", ("synth", "target"), "two lines"),
    ],
)
def test_a_refusal_is_a_line_that_names_its_key(kind: str, at: tuple[str | int, ...], how: str, tmp_path: Path) -> None:
    base = based(kind, own_addresses(3))
    _, honest = read(text_of(base), tmp_path)
    assert honest is not None
    (mutant,) = (each for each in mutants(base) if (each.at, each.how) == (at, how))
    assert wrong_with(mutant, honest, tmp_path)[:2] == ("refused", "")


@pytest.mark.slow
def test_another_plan_for_training_spends_no_survey(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What differs has no part in the survey, which was spent before the difference was found."""
    monkeypatch.setenv("DPMPC_ACCOUNT", str(tmp_path / "account"))
    base = based("train", own_addresses(3))
    base["run"]["run_id"] = "said"
    _, honest = read(text_of(base), tmp_path)
    base["learning"]["solver_tolerance"] = 1e-9
    _, other = read(text_of(base), tmp_path)
    assert honest is not None and other is not None and honest.run_id == other.run_id
    assert replace(honest.first, stage_of="") == replace(other.first, stage_of="")
    ends, spent = met(honest, other, tmp_path, 60.0)
    assert spent == [0, 0, 0]
    assert all(end is not None and "\n" not in str(end) and "[marks" not in str(end) for end in ends)
    told = [str(end) for end in ends]
    # The one that is refused ends at once. On a busy machine it is gone before all others have met it: those miss it.
    assert any("solver_tolerance" in each for each in told), ends
    assert all("solver_tolerance" in each or "missing: " in each for each in told), ends
    assert not any("[marks" in log.read_text() for log in tmp_path.rglob("*.log"))


def test_a_refusal_names_the_fields_that_differ(tmp_path: Path) -> None:
    base = based("train", own_addresses(3))
    _, honest = read(text_of(base), tmp_path)
    assert honest is not None
    other = replace(honest, epsilon=11.0, run_id="z")
    text = f"party 1 has 12ab{marks(other)}, owner 0 34cd; copy plan.json again"
    assert "(not as here: epsilon)" in differing(text, honest)
    assert differing(text, other) == "party 1 has 12ab, owner 0 34cd; copy plan.json again"
    assert "(not as here: run_id)" in differing(f"it has{marks(replace(honest, run_id='z'))}", honest)
    for end in (40, 60):  # a reason that was cut, and who told it
        for told in ("", " (told by party 0)", "; see its log"):
            assert differing(text[:end] + told, honest) == f"party 1 has 12ab{told}"


@pytest.mark.parametrize(
    ("text", "values"),
    [
        (f"[limits]\nrecords = {10**30}", ("limits.records", 101)),
        (f"[records]\ntarget = '{'x' * 5000}'", ("records.target", 5000)),
        ("[records.bounds]\nage = 3", ("records.bounds.age",)),
        ("[records.bounds]\nward = ['a']\nage = [[1], 2]", ("records.bounds.age[0]",)),
        ("a = " + "[" * 100_000, ()),
    ],
)
def test_a_file_says_which_value_is_wrong(text: str, values: tuple[object, ...]) -> None:
    rest = "\n[run]\ndata_id = 'd'\n[privacy]\nepsilon = 1\n[[parties]]\naddress = 'a:1'\n[[owners]]\nrecords = 1\n"
    with refuses("file", *values):
        written(text + rest, ConsortiumFile, "a file", "f.toml", toml=True)
