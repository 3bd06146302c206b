"""Files whose right reading is known are read right, or say so, and no stop is without a way out that works."""

from pathlib import Path

import pytest

from tests.intake.corpus.cases import cases
from tests.intake.corpus.exports_more import exports_more
from tests.intake.corpus.judge import followed, judged, stated_in
from tests.intake.corpus.mutations import mutation
from tests.intake.corpus.ugly import ugly

CASES = {case.name: case for case in (*cases(), *ugly(), *exports_more())}


@pytest.mark.parametrize("name", CASES)
def test_cases(name: str, tmp_path: Path) -> None:
    assert judged(CASES[name], tmp_path) == []


@pytest.mark.slow
@pytest.mark.parametrize("part", range(10))
def test_mutations(part: int, tmp_path: Path) -> None:
    for seed in range(10 * part, 10 * part + 10):
        case = mutation(seed)
        assert (case.name, judged(case, tmp_path)) == (case.name, [])


def test_the_judge_sees_a_wrong_figure_and_follows_words(tmp_path: Path) -> None:
    from dataclasses import replace

    from dpmpc.intake.spelling import Spelling

    case = CASES["codes among few values"]
    assert judged(replace(case, truth={**case.truth, "sex": replace(case.truth["sex"], mean=1.0)}), tmp_path)
    assert judged(replace(case, rows=case.rows + 1), tmp_path)
    assert judged(replace(CASES["a comma too many"], refused=""), tmp_path)
    text = "no; state spelling=Spelling(missing=('a=(1)',), header=2), or spelling=Spelling(footer=3)"
    assert stated_in(text) == {"missing": ("a=(1)",), "header": 2}
    assert followed(Spelling(missing=("b",)), text) == Spelling(missing=("b", "a=(1)"), header=2)
