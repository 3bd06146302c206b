"""Files whose right reading is known are read right, or say so, and no stop is without a way out that works."""

from dataclasses import replace
from pathlib import Path

import pytest

from tests.intake.corpus.cases import cases
from tests.intake.corpus.exports_more import exports_more
from tests.intake.corpus.judge import followed, judged, stated_in
from tests.intake.corpus.mutations import mutation
from tests.intake.corpus.programs import programs
from tests.intake.corpus.ugly import ugly

CASES = {case.name: case for case in (*cases(), *ugly(), *exports_more(), *programs())}


SOME = 5  # one of so many is also asked of `stats` and `synth`, and trained on: the command does so with all


@pytest.mark.parametrize("name", CASES)
def test_cases(name: str, tmp_path: Path) -> None:
    assert judged(CASES[name], tmp_path, runs=list(CASES).index(name) % SOME == 0) == []


@pytest.mark.slow
@pytest.mark.parametrize("part", range(10))
def test_mutations(part: int, tmp_path: Path) -> None:
    for seed in range(10 * part, 10 * part + 10):
        case = mutation(seed)
        assert (case.name, judged(case, tmp_path, runs=seed % (2 * SOME) == 0)) == (case.name, [])


@pytest.mark.slow
def test_the_judge_sees_what_a_command_says_wrong(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of what it holds commands against is seen to be broken where what is meant is something else."""
    from tests.intake.corpus import judge

    case, other = CASES["errors of a spreadsheet"], CASES["errors of a spreadsheet"]
    truth = {**case.truth, "age": replace(case.truth["age"], mean=40.0), "ill": replace(case.truth["ill"], values={
        "no": 60, "yes": 200})}  # fmt: skip
    monkeypatch.setattr(judge, "_held", lambda *given: [])
    assert judged(other, tmp_path) == []
    said = judged(replace(case, truth=truth), tmp_path)
    assert [each.split()[0] for each in said if "'age'" in each] == ["stats", "synth"]
    assert sum("'ill'" in each for each in said) >= 2
    assert any("train has" in each for each in judged(replace(case, rows=2 * case.rows), tmp_path)) or any(
        "describe has" in each for each in judged(replace(case, rows=2 * case.rows), tmp_path)
    )


def test_the_judge_sees_a_wrong_figure_and_follows_words(tmp_path: Path) -> None:
    from dpmpc.intake.spelling import Spelling

    case = CASES["codes among few values"]
    assert judged(replace(case, truth={**case.truth, "sex": replace(case.truth["sex"], mean=1.0)}), tmp_path)
    assert judged(replace(case, rows=case.rows + 1), tmp_path)
    assert judged(replace(CASES["a comma too many"], refused=""), tmp_path)
    text = "no; state spelling=Spelling(missing=('a=(1)',), header=2), or spelling=Spelling(footer=3)"
    assert stated_in(text) == {"missing": ("a=(1)",), "header": 2}
    assert followed(Spelling(missing=("b",)), text) == Spelling(missing=("b", "a=(1)"), header=2)
