"""Statistics through plans and real parties: the same sums, promises that are derived, and the command."""

import csv
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

import dpmpc
from dpmpc.aggregation.plan.plan import Plan
from dpmpc.cli.main import group
from dpmpc.errors import UsageError
from dpmpc.intake.spelling import Spelling
from dpmpc.outcome import Level
from dpmpc.records.loading import opened
from dpmpc.records.schema import Categorical, Labels, Numeric, Schema
from dpmpc.statistics.scores import ScoreModel
from dpmpc.statistics.tables import STEP, Tables
from dpmpc.tables.asked import dry
from dpmpc.tables.questions import asked_of, flattered, read_queries, warn_of
from dpmpc.tables.stats import OPENED, noise_of, plan_of_tables, reopened
from tests.refusals import Rule, breaks, refuses

pytestmark = pytest.mark.usefixtures("small_tables")

BOUNDS: dict[str, Any] = {"sex": ["F", "M"], "age": [18.0, 90.0], "died": ["no", "yes"]}
ASKED = ["table1 by died", "median(age) by sex", {"what": "count", "where": {"age": [30, 50]}}]
PROMISE: dict[str, Any] = {"epsilon": 1.0, "delta": 1e-5}


@pytest.fixture(scope="module")
def people() -> pd.DataFrame:
    rng = np.random.default_rng(1)
    n = 9000
    age = np.where(rng.random(n) < 0.03, np.nan, np.rint(rng.gamma(9, 6, n)))
    return pd.DataFrame({
        "sex": rng.choice(["F", "M", None], n, p=[0.5, 0.45, 0.05]), "age": age,
        "died": np.where(rng.random(n) < 0.2, "yes", "no"), "site": rng.choice(["a", "b", "c"], n, p=[0.6, 0.3, 0.1]),
    })  # fmt: skip


def covered(found: Any, truth: Any) -> float:
    """The share of the intervals that hold the truth."""
    pairs = [
        (line.number, right.number.estimate)
        for a, b in zip(found.answers, truth, strict=True)
        for line, right in zip(a.lines, b.lines, strict=True)
        if line.number.estimate is not None and right.number.estimate is not None
    ]
    assert len(pairs) > 30
    return float(np.mean([n.low - 1e-6 <= value <= n.high + 1e-6 for n, value in pairs]))


@pytest.mark.parametrize("engine", ["clear", "mpc"])
def test_real_parties_open_the_same_sums_with_one_copy_of_noise(people: pd.DataFrame, engine: str) -> None:
    """Errors of all coordinates, over the noise's deviation: their mean square lies within 8 of its own deviations
    (false alarms below 1e-14), which five copies, or none, would leave far behind."""
    found = dpmpc.stats(people, ASKED, owners="site", bounds=BOUNDS, engine=engine, **PROMISE)
    tables, sizes = found.tables, found.plan.sizes
    assert sorted(sizes) == sorted(people["site"].value_counts())

    with opened(people) as (table, _):
        exact = tables.encode(table)[0] * STEP
    errors = (found.total - exact) / noise_of(found.plan)
    spread = float(np.mean(errors**2))
    assert abs(spread - 1) < 8 * np.sqrt(2 / len(errors)) and not 0.5 > spread
    truth = tables.answers(exact / STEP, 0.0, sizes)
    assert covered(found, truth) > 0.8
    assert "epsilon = 1, delta = 1e-05; neighbours: one record of one owner" in found.guarantee


def test_the_promise_is_derived_from_the_questions_and_read_back_alike(people: pd.DataFrame) -> None:
    tables = asked_of(ASKED, None, BOUNDS, None)
    plan = plan_of_tables(tables, (5000, 4000), "records", None, PROMISE)
    again = Plan.from_text(plan.to_text())
    assert isinstance(again.source, Tables) and again.source == tables
    assert again.derived.to_json() == plan.derived.to_json()
    whole = tables.layout.distance((1,)).l2 * STEP
    n = 9000
    assert whole / n <= plan.derived.sensitivity.l2 <= whole / n * 1.01
    assert plan.derived.sensitivity.l1 <= (tables.layout.distance((1,)).l1 * STEP) / n * 1.01 + 1e-2
    by_owner = plan_of_tables(tables, (5000, 4000), "records", None, {**PROMISE, "neighbours": "owner"})
    assert by_owner.derived.sensitivity.l2 == pytest.approx(5000 * plan.derived.sensitivity.l2, rel=0.02)
    absent = plan_of_tables(tables, (5000, 4000), "records", None, {**PROMISE, "neighbours": "presence"})
    assert 0.5 < absent.derived.sensitivity.l2 / plan.derived.sensitivity.l2 < 0.75
    changed = json.loads(plan.to_text())
    changed["source"]["tables"]["queries"][0] = "table1 by sex"
    other = Plan.from_text(json.dumps(changed, sort_keys=True, separators=(",", ":")))
    from dpmpc.aggregation.plan.asked import FIRST_ATTEMPT

    assert other.digest(FIRST_ATTEMPT) != plan.digest(FIRST_ATTEMPT)
    changed["source"]["tables"]["columns"][0]["kind"] = "secret"
    with pytest.raises(UsageError):
        Plan.from_text(json.dumps(changed, sort_keys=True, separators=(",", ":")))


def test_models_travel_in_plans(people: pd.DataFrame) -> None:
    schema = Schema((Numeric("age", 18, 90), Categorical("sex", ("F", "M"))), Labels("died", ("yes",), ("no",)))
    model = ScoreModel.of(schema, [2.5, 0.1, -0.1, -2.0])
    tables = asked_of(["evaluate(risk) by sex"], schema, None, {"risk": model})
    plan = plan_of_tables(tables, (5000, 4000), "records", None, PROMISE)
    assert Plan.from_text(plan.to_text()).source == tables
    asked = ["evaluate(risk)"]
    found = dpmpc.stats(people, asked, owners="site", schema=schema, models={"risk": model}, engine="clear", **PROMISE)
    figures = {line.statistic: line.number for line in found.answers[0].lines if line.labels == ("",)}
    assert 0.4 < figures["AUC"].low < figures["AUC"].high < 0.6
    count = figures["records"]  # noisy: seven deviations away once in 10^11
    assert count.estimate is not None and abs(count.estimate - 9000) < 7 * count.noise


def test_a_schema_that_was_read_off_records_is_an_assumption(people: pd.DataFrame) -> None:
    schema = Schema((Numeric("age", 18, 90),), Labels("died", ("yes",), ("no",)), bounds="data")
    found = dpmpc.stats(people, ["mean(age)"], owners="site", schema=schema, engine="clear", **PROMISE)
    assert found.guarantee.startswith("if ranges, categories")
    by_owner = plan_of_tables(found.tables, (5, 4), "records", None, {**PROMISE, "neighbours": "owner"})
    from dpmpc.aggregation.plan.guarantee import promise_of

    assert "all records of one owner" in str(promise_of(by_owner))


def test_what_cannot_be_asked_spends_nothing(people: pd.DataFrame, tmp_path: Path) -> None:
    few = people.iloc[:150]
    with refuses("enough", "hist(age, bins=50)", 7, 53):
        dpmpc.stats(few, ["hist(age, bins=50)"], owners="site", bounds=BOUNDS, out=tmp_path / "no", **PROMISE)
    assert not (tmp_path / "no").exists()
    cases: list[tuple[dict[str, Any], Rule]] = [
        ({"bounds": BOUNDS, "epsilon": 1.0}, breaks("together", "delta 0", setting="delta")),
        ({"bounds": BOUNDS, **PROMISE, "min_owners": 2}, breaks("together", setting="min_owners")),
        ({"bounds": BOUNDS, **PROMISE, "check_owners": "zero"}, breaks("together", setting="min_owners")),
    ]
    for given, broken in cases:
        with refuses(broken):
            dpmpc.stats(people, ["count by sex"], owners="site", **given)
    with refuses("together", setting="schema"):
        dry(people, ["count by sex"], owners="site", **PROMISE)
    with refuses("missing", setting="owners_column"):
        dpmpc.stats(people, ["count by sex"], bounds=BOUNDS, **PROMISE)


def test_a_dry_run_says_what_comes_and_other_intervals_cost_nothing(people: pd.DataFrame, tmp_path: Path) -> None:
    told = dry(people, ASKED, owners="site", bounds=BOUNDS, **PROMISE)
    assert told.text().count("of the promise") == 3
    out = tmp_path / "run"
    found = dpmpc.stats(people, ASKED, owners="site", bounds=BOUNDS, engine="clear", out=out, **PROMISE)
    assert found.answers[0].lines[0].number.noise is not None
    again = reopened(out, Level(about="population"))
    assert (again.total == np.load(out / OPENED)).all() and "one sample of many" in again.text()
    assert again.plan.derived.to_json() == found.plan.derived.to_json()
    together = found.again(Level(answers=0))
    assert "at once" in together.text() and len(together.frame()) == len(found.frame())
    assert found.plot(tmp_path / "page.html").read_text().startswith("<!DOCTYPE html>")
    assert {p.suffix for p in out.glob("answers.*")} == {".txt", ".md", ".csv", ".json", ".html"}


def test_the_command(people: pd.DataFrame, tmp_path: Path) -> None:
    people.to_csv(tmp_path / "all.csv", index=False)
    (tmp_path / "bounds.json").write_text(json.dumps(BOUNDS))
    (tmp_path / "asked.toml").write_text('[stats]\nqueries = ["median(age)", { what = "count", by = "sex" }]\n')
    assert len(read_queries(tmp_path / "asked.toml")) == 2
    same = ["--csv", f"{tmp_path}/all.csv", "--owners-column", "site", "--bounds", f"{tmp_path}/bounds.json"]
    promise = ["--epsilon", "1", "--delta", "1e-5", "--engine", "clear"]

    def run(*arguments: str) -> str:
        result = CliRunner().invoke(group, ["stats", *arguments], catch_exceptions=False)
        assert result.exit_code == 0, result.output
        return result.output

    dry_run = run("table1 by died", "--queries", f"{tmp_path}/asked.toml", *same, *promise, "--dry")
    assert dry_run.count("of the promise") == 3
    text = run("table1 by died", *same, *promise, "--out", f"{tmp_path}/run", "--at-once")
    assert "all 20 at once" in text or "at once" in text
    assert "epsilon = 1" in text
    page = run("--of", f"{tmp_path}/run", "--form", "html", "--about", "population")
    assert page.startswith("<!DOCTYPE html>")
    with refuses("column", "agee", "age"):
        run("median(agee)", *same, *promise)


def test_a_model_of_the_same_records_is_asked_about_with_a_warning(people: pd.DataFrame, tmp_path: Path) -> None:
    bounds = {"age": [18, 90], "sex": ["f", "m"]}
    dpmpc.stats(
        people, ["count"], owners="site", bounds=bounds, data_id="a", out=tmp_path / "run", **PROMISE, engine="clear"
    )
    plan = Plan.read(tmp_path / "run" / "plan.json")
    [told] = flattered({"risk": tmp_path / "run"}, plan.data_id)
    assert told.startswith("evaluate(risk) is about records that the model may have been trained on")
    assert flattered({"risk": tmp_path / "run"}, plan.data_id[::-1]) == [] == flattered(None, plan.data_id)
    with pytest.warns(UserWarning, match="figures flatter it"):
        warn_of({"risk": str(tmp_path / "run")}, plan.data_id)


def test_numbers_that_are_spelled_otherwise_than_was_stated_are_refused_before_anything_is_spent() -> None:
    """Of columns that questions ask for numbers; of others nothing is said."""
    frame = pd.DataFrame({"cost": [f"{k},5" for k in range(200)], "code": [f"{k % 9},1" for k in range(200)]})
    frame["site"] = np.where(np.arange(200) % 2, "a", "b")
    bounds = {"cost": [0, 200], "code": ["1,1", "2,1"]}
    asked: dict[str, Any] = {"owners": "site", "bounds": bounds, "engine": "clear", **PROMISE}
    with refuses("records", "(cost)", "decimal=','"):
        dpmpc.stats(frame, ["mean(cost)"], **asked)
    with refuses("records", "(cost)"):
        dry(frame, ["mean(cost)"], **asked)
    assert dpmpc.stats(frame, ["table(code)"], **asked).answers
    [mean] = dpmpc.stats(frame, ["mean(cost)"], spelling=Spelling(decimal=","), **asked).answers[0].lines
    assert mean.number.estimate is not None and abs(mean.number.estimate - 100) < 60


EFFECTS = [
    "logit(died, sex, age, age=[40, 60])", "trend(died, age, age=[30, 50, 70])", "cox(months, died, sex, bins=4)",
    "poisson(visits, sex, offset=months, months=[6, 18])", "ordinal(grade, sex)", "or(died, sex, strata=grade)",
    "lm(age, sex)", "corr(age, sex)", "missing(sex, age, patterns=yes)", "ttest(age) by sex",
]  # fmt: skip


@pytest.mark.parametrize("security", ["semi-honest", "active"])
def test_effects_come_through_real_parties_and_are_asked_again(
    people: pd.DataFrame, tmp_path: Path, security: str
) -> None:  # fmt: skip
    """The sums are those of the records but for one copy of noise; one release answers another reference, without p."""
    rng = np.random.default_rng(2)
    records = people.assign(
        months=np.rint(rng.uniform(1, 24, len(people))), visits=rng.poisson(1.0, len(people)),
        grade=rng.choice(["I", "II", "III"], len(people)),
    )  # fmt: skip
    bounds = BOUNDS | {"months": [1, 25], "visits": [0, 8], "grade": ["I", "II", "III"]}
    kept = EFFECTS if security == "semi-honest" else EFFECTS[:2]
    out, run = tmp_path / "run", PROMISE | {"engine": "mpc", "security": security}
    found = dpmpc.stats(records, kept, owners="site", bounds=bounds, out=out, **run)
    with opened(records) as (table, _):
        exact = found.tables.encode(table)[0] * STEP
    errors = (found.total - exact) / noise_of(found.plan)
    assert abs(float(np.mean(errors**2)) - 1) < 8 * np.sqrt(2 / len(errors)) and np.mean(errors**2) > 0.3
    truth = found.tables.answers(exact / STEP, 0.0, found.sizes)
    for ours, theirs in zip(found.answers, truth, strict=True):
        known = {(line.labels, line.statistic): line.number for line in theirs.lines}
        told = [line for line in ours.lines if line.number.estimate is not None]
        assert told, ours.question
        for line in told:  # 4 deviations beyond the interval: of 300 numbers none in 10^9
            value, number = known.get((line.labels, line.statistic)), line.number
            if value is not None and value.estimate is not None and number.low is not None and number.high is not None:
                away = 2 * (number.high - number.low) + 1e-3
                assert number.low - away <= value.estimate <= number.high + away, (ours.question, line)
    with (out / "cells.csv").open(newline="", encoding="utf-8") as file:
        cells = list(csv.DictReader(file))
    first = [row for row in cells if row["table"] == cells[0]["table"]]
    assert math.fsum(float(row["count"]) for row in first) == pytest.approx(9000, abs=8 * 5.5 * len(first) ** 0.5 * 2)
    assert all(float(row["sigma"]) > 0 for row in cells) and first[-1]["levels"] == "(incomplete)"
    records_line = next(line.number.estimate for line in found.answers[0].lines if line.labels[0] == "records")
    of_model = [row for row in cells if row["columns"].replace(" x ", " ").split() == ["age", "died", "sex"]]
    assert math.fsum(float(row["count"]) for row in of_model) == pytest.approx(records_line, abs=1e-4)
    again = ["stats", "logit(died, sex, age, age=[40, 60], sex=M)", "--of", str(out)]
    ran = CliRunner().invoke(group, again, catch_exceptions=False)
    assert ran.exit_code == 0 and "exploratory" in ran.output, ran.output
