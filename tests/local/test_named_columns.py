"""Names of categories: what public words of a column are found is said by models, synthetic tables and answers."""

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dpmpc
from dpmpc.aggregation.plan.guarantee import promise_of
from dpmpc.aggregation.plan.plan import Plan
from dpmpc.consortium.toml import read_consortium
from dpmpc.errors import UsageError
from dpmpc.learning.model import read_model
from dpmpc.learning.survey import Survey
from dpmpc.learning.survey_columns import Draft
from dpmpc.learning.survey_words import known_words
from dpmpc.records.columns import is_name
from dpmpc.records.schema import Surveyed
from dpmpc.show.markdown import table
from dpmpc.statistics.mentioned import askable, check_may_be_asked, mentioned
from dpmpc.statistics.tables import columns_from_json, columns_to_json
from tests.machines import apart
from tests.made_up_sites import draft, files, planned
from tests.refusals import breaks, refuses
from tests.runs import dpmpc as command

BY: dict[str, Any] = {"owners": "site", "epsilon": 4.0, "delta": 1e-5, "engine": "clear"}
HOSTILE = ["<script>alert(1)</script>", "a|b", "[x](javascript:1)"]
REFUSED = ["=cmd|1", "+1", "-2", "@x", "\u202eevil", "bucket 7", "(other)", "\u200b", "a\nb", " x"]


def records(n: int = 9000, seed: int = 5, words: tuple[str, ...] = ("female", "male")) -> dict[str, list[Any]]:
    random = np.random.default_rng(seed)
    age = random.integers(20, 90, n)
    return {
        "site": [f"s{k % 3}" for k in range(n)],
        "age": age.tolist(),
        "sex": random.choice(list(words), n).tolist(),
        "died": np.where(random.random(n) < age / 150, "yes", "no").tolist(),
    }


def written(path: Path, rows: dict[str, list[Any]]) -> Path:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(rows)
        writer.writerows(zip(*rows.values(), strict=True))
    return path


def test_features_of_a_model_are_called_by_words_that_are_found(tmp_path: Path) -> None:
    """4,500 of each word at epsilon 4 are more than 100 deviations of the code. What would be markup is escaped, and
    what is no name stays a number."""
    path = written(tmp_path / "x.csv", records(words=(*HOSTILE, "=cmd|1")))
    (tmp_path / "words.txt").write_text("\n".join([*HOSTILE, *REFUSED]), encoding="utf-8")
    given = ("--csv", path, "--target", "died", "--positive", "yes", "--owners-column", "site", "--epsilon", "8")
    rest = ("--delta", "1e-5", "--engine", "clear", "--name", "sex", "--word-list", tmp_path / "words.txt")
    done = command("train", *given, *rest, "--basis", "additive", "--iterations", "20", "--out", tmp_path / "run")
    assert done.returncode == 0, done.stderr
    features = [name for name in read_model(tmp_path / "run").schema.feature_names if name.startswith("sex")]
    assert {name.rpartition(" [#")[0] for name in features if "[#" in name} == {f"sex={word}" for word in HOSTILE}
    assert len([name for name in features if "[#" not in name]) == 1  # =cmd|1, which is no name
    page = command("report", tmp_path / "run")
    assert page.returncode == 0, page.stderr
    html = (tmp_path / "run" / "report.html").read_text(encoding="utf-8")
    assert "<script>alert" not in html
    assert html.count("&lt;script&gt;alert(1)&lt;/script&gt; [#") >= 2  # of the columns' table, and of a curve


def test_names_are_of_a_survey(tmp_path: Path) -> None:
    """Of one that is there, of columns that it finds; else the run ends before anything is spent."""
    path = written(tmp_path / "x.csv", records(600))
    given = ("--csv", path, "--target", "died", "--positive", "yes", "--owners-column", "site", "--delta", "1e-5",
             "--engine", "clear")  # fmt: skip
    for words, says in (
        (("--epsilon", "8", "--name", "height"), "'height'"),
        (("--epsilon", "0.05", "--name", "sex"), "this run has none"),
        (("--epsilon", "8", "--word-list", path), "no column is named"),
    ):
        done = command("train", *given, *words, "--out", tmp_path / "run")
        assert done.returncode == 2 and says in done.stderr, done.stderr
        assert not list(tmp_path.rglob("ledger_*"))


def test_several_machines_find_the_same_names(tmp_path: Path) -> None:
    plan = planned(tmp_path / "made", epsilon=12.0, named=("ward",))
    asked = Plan.read(plan)
    plain = Plan.read(planned(tmp_path / "plain", epsilon=12.0))
    assert asked.first.source.spread == plain.first.source.spread  # type: ignore[attr-defined]  # it costs no noise
    both = [each.first.derived.sensitivity.l2 for each in (asked, plain)]
    assert both[0] <= 1.001 * both[1]  # more coordinates are rounded
    assert promise_of(asked).epsilon == promise_of(plain).epsilon
    ends = apart(plan, tmp_path, files(tmp_path))
    assert ends == [None] * 6, ends
    found = {tuple(read_model(tmp_path / name).schema.feature_names) for name in ("0", "1", "2", "owner0", "owner2")}
    assert len(found) == 1
    (names,) = found
    assert {name.partition(" [#")[0] for name in names if name.startswith("ward=")} == {"ward=north", "ward=south"}


def test_a_draft_with_names_comes_back_and_one_without_is_as_it_was() -> None:
    plain = Draft(draft(), 0.5)
    named = Draft(draft(), 0.5, named=("ward",), words=("Kreißsaal",))
    assert not {"named", "words"} & plain.to_json().keys()
    assert Draft(**json.loads(json.dumps(named.to_json()))) == named and named.questions.words == ("ward",)
    for changes in ({"named": ("age",)}, {"named": ("outcome",)}, {"words": ("x",)}):
        with pytest.raises(UsageError):
            Draft(draft(), 0.5, **changes)  # type: ignore[arg-type]


def test_the_file_of_a_consortium_names_columns(tmp_path: Path) -> None:
    draft().write(tmp_path / "schema.json")
    parties = "".join(f'[[parties]]\naddress = "127.0.0.{k + 2}:11365"\n' for k in range(3))
    (tmp_path / "words.txt").write_text("Kreißsaal\n", encoding="utf-8")
    (tmp_path / "consortium.toml").write_text(
        f'[run]\ndata_id = "x"\n{parties}' + "[[owners]]\nrecords = 4000\n" * 3
        + '[records]\nschema = "schema.json"\nnamed = ["ward"]\nword_list = "words.txt"\npreprocessing = "survey"\n'
        + "[privacy]\nepsilon = 2.0\ndelta = 1e-5\n[learning]\niterations = 5\n",
        encoding="utf-8",
    )  # fmt: skip
    plan = read_consortium(tmp_path / "consortium.toml").plan
    assert plan.learning.survey is not None and plan.learning.survey.words == ("Kreißsaal",)
    assert isinstance(plan.first.source, Survey) and plan.first.source.words == ("ward",)


def test_questions_without_bounds_are_surveyed_first_under_one_promise(tmp_path: Path) -> None:
    """Through parties of their own: a survey of the columns that are asked about, then the answers."""
    rows = records()
    given = {**BY, "engine": "mpc"}
    found = dpmpc.stats(rows, ["mean(age) by sex", "table(sex)"], named=("sex",), out=tmp_path / "run", **given)
    assert found.guarantee.startswith("epsilon = 4, delta = 1e-05")
    assert found.plan.released and promise_of(found.plan).epsilon == pytest.approx(4.0, rel=1e-6)
    survey = Plan.read(tmp_path / "run" / "survey" / "plan.json")
    assert survey.source.names == ("age", "sex") and survey.run_id == f"{found.plan.run_id}+survey"  # type: ignore[attr-defined]
    text = found.text()
    assert "sex = female [#" in text and "sex = male [#" in text
    ages = np.array(rows["age"])[np.array(rows["sex"]) == "female"]
    (line,) = [
        line for answer in found.outcome.answers for line in answer.lines
        if line.statistic == "mean" and "female" in line.labels[0]
    ]  # fmt: skip
    assert line.number.estimate == pytest.approx(ages.mean(), abs=1.0)
    again = command("stats", "--of", tmp_path / "run")
    assert again.returncode == 0 and "female [#" in again.stdout, again.stderr


def test_what_cannot_be_asked_of_a_survey_is_refused_before_it(tmp_path: Path) -> None:
    rows = records(900)
    for questions, broken in (
        (["mean(age) where sex = female"], breaks("column", "sex = female", setting="bounds")),
        (["corr(age)"], breaks("range", 2, 12, "corr")),
        (["mean(age) by sex", "nonsense(age)"], breaks("unknown", "nonsense")),
        (["mean(height)"], breaks("together", setting="schema")),
        (["count"], breaks("together", setting="schema")),
        (["median(age) by height"], breaks("column", "height")),
    ):
        with refuses(broken):
            dpmpc.stats(rows, questions, out=tmp_path / "run", **BY)
        assert not (tmp_path / "run").exists()
    with refuses("column", "sex", setting="named"):
        dpmpc.stats(rows, ["count"], bounds={"age": [0, 99]}, named=("sex",), **BY)
    with refuses("column", "height", setting="named"):
        dpmpc.stats(rows, ["mean(age) by sex"], named=("height",), **BY)


def test_a_question_that_a_survey_leaves_no_room_for_is_said() -> None:
    """What was taken for numbers may be words: the other questions are answered."""
    told: list[str] = []
    found = dpmpc.stats(records(), ["mean(sex)", "mean(age)"], tell=told.append, **BY)
    assert [answer.question for answer in found.outcome.answers] == ["mean(age)"]
    assert any(line.startswith("not asked: mean(sex)") for line in told)


def test_what_questions_mention() -> None:
    asked = ["mean(age) by sex where ward in {a, b}", {"what": "count", "where": {"died": "yes"}}]
    assert mentioned(asked, ("age", "died", "height", "sex", "ward")) == ("age", "died", "sex", "ward")
    check_may_be_asked(["mean(dose) by ward", "median(dose)"], ("age",), ("dose", "ward"))
    known = columns_from_json([{"kind": "quantity", "name": "a", "low": 0, "high": 1}])
    kept, left = askable(["count", "mean(x)"], known)
    assert kept == ["count"] and len(left) == 1


def test_rows_of_a_synthetic_table_have_the_words(tmp_path: Path) -> None:
    rows = records()
    made = dpmpc.synth(rows, named=("sex",), out=tmp_path / "run", seed=1, **BY)
    seen = {value for value in made.values["sex"] if value is not None}
    assert {value.rpartition(" [#")[0] for value in seen} == {"female", "male"}
    assert all(value.startswith("bucket ") for value in made.values["died"] if value is not None)
    columns = made.releases[-1].tables.columns
    assert columns_from_json(columns_to_json(columns)) == columns
    text = (tmp_path / "run" / "synthetic.csv").read_text(encoding="utf-8")
    assert "female [#" in text and "WORD [#k]" in text


def test_a_word_that_drives_a_page_a_terminal_or_a_spreadsheet_is_no_name() -> None:
    assert not any(map(is_name, REFUSED)) and all(map(is_name, (*HOSTILE, "Kreißsaal", "日本")))
    assert all(map(is_name, known_words()))
    assert table(["a"], [["<b>|x [y](z)"]]).splitlines()[2] == "| &lt;b>\\|x [y]\\(z) |"
    with pytest.raises(UsageError):
        Surveyed("sex", buckets=4, kept=(1,), names=((1, "a\x1b[2J"),))
