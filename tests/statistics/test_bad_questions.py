"""What cannot be asked, said alike by the command, by Python and by consortium.toml: the rule, the value, the way out,
and the question with a caret below the place."""

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from click.testing import CliRunner

from dpmpc.cli.main import group
from dpmpc.consortium.toml import read_consortium
from dpmpc.errors import UsageError, owner_text
from dpmpc.tables.asked import dry

BOUNDS: dict[str, Any] = {"sex": ["F", "M"], "ward": ["heart", "lung, or chest"], "age": [18, 90]}
BAD = [
    ("mean(agee)", "agee", "did you mean 'age'"),
    ("mean(age) by site", "site", "a column must be in the schema"),  # a group that only the records know
    ("table(ward) where ward = bone", "bone", "its levels are heart"),
    ("count where", "", "column = value"),
    ("count where sex = F or sex = M", "or", "there is no OR"),
    ("hist(age, cuts=[20, 40, 40, 60])", "[20, 40, 40, 60]", "at least two numbers that increase"),
    ("hist(age, cuts=[40, 20])", "[40, 20]", "at least two numbers that increase"),
    ("median(sex)", "sex", "median needs a column of numbers"),
    ("km(age, sex", "", "write ')' here"),
    ("SELECT count(*) FROM records", "count", "a question ends after its conditions"),
]
_SITE = '[[parties]]\nname = "p{0}"\naddress = "127.0.0.{0}:9"\n'
_FILE = """
[run]
data_id = "bad"
{sites}
[[owners]]
name = "a"
records = 500
[[owners]]
name = "b"
records = 500
[stats]
queries = [{question}]
[stats.bounds]
{bounds}
[privacy]
epsilon = 1
delta = 1e-5
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("bad")
    _frame().to_csv(made / "all.csv", index=False)
    (made / "bounds.toml").write_text(_bounds())
    return made


def _frame() -> pd.DataFrame:
    return pd.DataFrame({"site": ["a", "b"] * 500, "sex": "F", "ward": "heart", "age": 50})


def _bounds() -> str:
    return "\n".join(f"{name} = {json.dumps(entry)}" for name, entry in BOUNDS.items())


def _consortium(folder: Path, question: str) -> Path:
    path = folder / "consortium.toml"
    sites = "".join(_SITE.format(k) for k in (2, 3, 4))
    path.write_text(_FILE.format(sites=sites, question=json.dumps(question), bounds=_bounds()))
    return path


@pytest.mark.parametrize(("question", "pointed", "said"), BAD)
def test_every_surface_says_the_same_with_a_caret(folder: Path, question: str, pointed: str, said: str) -> None:
    with pytest.raises(UsageError) as refused:
        dry(_frame(), [question], owners="site", bounds=BOUNDS, epsilon=1.0, delta=1e-5)
    text = owner_text(refused.value)
    rule, shown, caret = text.split("\n")
    assert said in rule and shown == f"  {question}"
    assert shown[len(caret) - caret.count("^") : len(caret)] == pointed
    given = ["--csv", f"{folder}/all.csv", "--owners-column", "site", "--bounds", f"{folder}/bounds.toml"]
    with pytest.raises(UsageError) as refused:
        asked = ["stats", question, *given, "--epsilon", "1", "--delta", "1e-5", "--dry"]
        CliRunner().invoke(group, asked, catch_exceptions=False)
    assert owner_text(refused.value) == text
    with pytest.raises(UsageError) as refused:
        read_consortium(_consortium(folder, question))
    assert text in owner_text(refused.value)


def test_a_file_that_asks_alone_needs_no_more_than_the_bounds_of_its_questions(folder: Path) -> None:
    plan = read_consortium(_consortium(folder, "table(ward) by sex")).plan
    assert plan is not None and plan.releases == 1 and plan.sizes == (500, 500)
