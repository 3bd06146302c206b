"""An additive run from its records to the report: survey, model, page, JSON, predictions, and the plan for sites."""

import csv
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from dpmpc import train
from dpmpc.aggregation.owner.ending import Ending
from dpmpc.aggregation.party.party import work_out
from dpmpc.aggregation.plan.plan import Plan
from dpmpc.aggregation.plan.stages import after_first
from dpmpc.circuits.gaussian import _plan_gaussian
from dpmpc.circuits.sampler import noise_program
from dpmpc.cli.main import group
from dpmpc.learning.additive import Additive
from dpmpc.learning.predict import predict
from dpmpc.learning.survey_columns import ANY
from dpmpc.local import own_records
from dpmpc.local.trained import Trained
from dpmpc.planning import adviser
from dpmpc.planning.request import Request
from dpmpc.planning.training import advised_with_survey, plan_with_survey
from dpmpc.privacy import gaussian
from dpmpc.records.schema import Labels, Numeric, Schema
from dpmpc.run.engine import Releasing
from dpmpc.run.reserve import Reserve
from tests.refusals import refuses

N = 3000


def records(path: Path) -> Path:
    """Age matters at both ends, and a ward and a missing value a little."""
    rng = np.random.default_rng(7)
    age, dose = rng.uniform(20, 90, N), rng.lognormal(3, 1, N)
    ward = rng.choice(np.array(["a", "b", "c"]), N)
    sick = (np.abs(age - 55) > 18) ^ (rng.random(N) < 0.05)
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["age", "dose", "ward", "sick"])
        for a, d, w, s in zip(age, dose, ward, sick, strict=True):
            writer.writerow([f"{a:.2f}", "" if d > 60 else f"{d:.2f}", w, "yes" if s else "no"])
    return path


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Trained:
    folder = tmp_path_factory.mktemp("curves")
    path = records(folder / "r.csv")
    return train(folder / "run", csv=str(path), target="sick", owners=3, epsilon=6.0, delta=1e-5, engine="clear",
                 basis="additive", positive="yes")  # fmt: skip


def test_a_surveyed_run_learns_a_curve_and_reports_it(run: Trained) -> None:
    schema = json.loads((run.run / "survey" / "schema.json").read_text())
    assert schema["basis"] == "additive"
    assert 4 <= len(next(c for c in schema["columns"] if c["name"] == "age")["knots"]) <= 6
    model = run.model.additive
    age = model.decision_function({"age": [22, 55, 88], "dose": [20] * 3, "ward": ["a"] * 3})
    assert age[0] > 0 > age[1] and age[2] > 0
    page = run.plot(run.run / "curves.html").read_text()
    assert page.count("<svg") >= 3 and "age: adds" in page and "http" not in page.replace("http-equiv", "")


def test_the_command_writes_page_and_json_by_which_others_predict_the_same(run: Trained, tmp_path: Path) -> None:
    out = CliRunner().invoke(group, ["report", str(run.run), "--out", str(tmp_path / "p.html"), "--curves",
                                    str(tmp_path / "c.json")])  # fmt: skip
    assert out.exit_code == 0, out.output
    assert "What each column adds to the score" in (tmp_path / "p.html").read_text()
    model = Additive.from_json(json.loads((tmp_path / "c.json").read_text()))
    path = run.run.parent / "r.csv"
    with path.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    columns = {name: [row[name] for row in rows] for name in ("age", "dose", "ward")}
    theirs = predict(run.run, str(path)).columns
    assert list(model.predict(columns)) == list(theirs["sick"])
    np.testing.assert_allclose(model.predict_proba(columns)[:, 1], theirs["probability_yes"], rtol=1e-9)
    assert float(np.mean([row["sick"] == said for row, said in zip(rows, theirs["sick"], strict=True)])) > 0.85


def test_a_straight_model_has_no_curves(run: Trained, tmp_path: Path) -> None:
    bounds = tmp_path / "b.json"
    bounds.write_text('{"age": [0, 120], "ward": ["a", "b", "c"], "sick": ["no", "yes"]}')
    told = {"csv": str(run.run.parent / "r.csv"), "target": "sick", "owners": 2, "epsilon": 4.0, "delta": 1e-5,
            "engine": "clear", "bounds": str(bounds), "drop": ("dose",), "iterations": 10,
            "evaluate": False, "preprocessing": "records"}  # fmt: skip
    straight = train(tmp_path / "straight", **told)
    with refuses("together", "basis=additive", setting="basis"):
        straight.plot(tmp_path / "none.html")
    bent = train(tmp_path / "bent", basis="additive", **told)
    assert [c.name for c in bent.model.additive.curves] == ["age", "ward"] and len(bent.model.theta) == 11


def test_a_run_with_a_survey_is_rehearsed_once_and_its_budget_solved_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The survey's own plan is the same however training will go."""
    draft = Schema((Numeric("x", *ANY),), Labels("y", ("1",), ("0",)))
    request = Request(owner_sizes=(500, 500), schema="s.json", epsilon=1.25, delta=1e-6, parties=3, run_id="once")
    asked = list[adviser.Circumstances]()
    rehearsed = adviser.rehearsed
    monkeypatch.setattr(adviser, "rehearsed", lambda known: asked.append(known) or rehearsed(known))
    before = gaussian._tight_mu.cache_info().misses
    plan = plan_with_survey(request, draft, (500, 500), "sites")
    assert len(asked) == 1 and asked[0].spent > 0 and plan.releases > 1
    assert gaussian._tight_mu.cache_info().misses - before == 2  # the run's, and the survey's part of it
    fixed = plan_with_survey(replace(request, iterations=plan.releases + 3), draft, (500, 500), "sites")
    assert replace(fixed.first, stage_of="") == replace(plan.first, stage_of="")
    assert fixed.releases != plan.releases


def test_tables_and_programs_of_a_survey_are_made_before_what_follows_it_is_advised_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    draft = Schema((Numeric("x", *ANY),), Labels("y", ("1",), ("0",)))
    request = Request(owner_sizes=(500, 500), schema="s.json", epsilon=1.27, delta=1e-6, parties=3, run_id="ahead")
    heard, rehearsed = list[str](), adviser.rehearsed

    def ahead(first: Plan) -> None:
        heard.append("a plan")
        work_out(first.to_text())

    def made() -> list[int]:
        return [known.cache_info().misses for known in (_plan_gaussian, noise_program)]

    monkeypatch.setattr(adviser, "rehearsed", lambda known: heard.append("advice") or rehearsed(known))
    plan, _ = advised_with_survey(request, draft, (500, 500), "sites", ahead=ahead)
    assert heard == ["a plan", "advice"]
    before = made()
    work_out(plan.first.to_text())
    assert made() == before
    work_out(replace(plan.first, epsilon=0.3).to_text())  # another promise: another table, another program
    assert all(now > then for now, then in zip(made(), before, strict=True))


def test_a_run_is_rehearsed_once_before_its_survey_and_once_after(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is warned of before the survey is what the advice says that its plan follows."""
    asked, rehearsed = list[adviser.Circumstances](), adviser.rehearsed
    monkeypatch.setattr(adviser, "rehearsed", lambda known: asked.append(known) or rehearsed(known))
    told = list[str]()
    train(tmp_path / "run", csv=str(records(tmp_path / "r.csv")), target="sick", owners=3, epsilon=0.05, delta=1e-5,
          engine="clear", positive="yes", preprocessing="survey", evaluate=False,
          progress=lambda event: told.append(event.get("text", "")))  # fmt: skip
    assert len(asked) == 2 and len({known.spent for known in asked}) == 1 and asked[0].spent > 0
    assert sum("noise will swamp the signal" in text for text in told) == 1


def test_records_are_loaded_while_the_parties_of_the_survey_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are gone before the training connects, and so before anything of it is spent; what both spend is reserved
    first."""
    said, begin, end = list[str](), Ending.__enter__, Ending.__exit__

    def told(what: str, function: Callable[..., Any]) -> Callable[..., Any]:
        return lambda *given, **named: said.append(what) or function(*given, **named)

    monkeypatch.setattr(Ending, "__enter__", told("parties part", begin))
    monkeypatch.setattr(Ending, "__exit__", told("parties are gone", end))
    monkeypatch.setattr(own_records, "load", told("records", own_records.load))
    monkeypatch.setattr(Reserve, "keep", told("reserved", Reserve.keep))
    monkeypatch.setattr(Releasing, "_begin", told("connects", Releasing._begin))
    train(tmp_path / "run", csv=str(records(tmp_path / "r.csv")), target="sick", owners=3, epsilon=1.0, delta=1e-5,
          iterations=2, positive="yes", preprocessing="survey", evaluate=False)  # fmt: skip
    assert said == ["reserved", "connects", "parties part", "records", "parties are gone", "connects"]


def test_a_plan_for_sites_fixes_the_most_coordinates_before_its_survey() -> None:
    draft = Schema((Numeric("x", *ANY), Numeric("z", 0, 10)), Labels("y", ("1",), ("0",)), basis="additive")
    request = Request(owner_sizes=(5000, 5000), schema="s.json", epsilon=2.0, delta=1e-6, parties=3)
    plan = plan_with_survey(request, draft, (5000, 5000), "sites")
    first = plan.first
    rng = np.random.default_rng(8)
    columns = {name: np.column_stack([rng.uniform(1, 9, 10_000), np.full(10_000, -1.0)]) for name in ("x", "z")}
    total = np.rint(first.source.encode(columns) / first.grid.step).astype(np.int64)
    made = after_first(plan, total)
    assert made.schema is not None and made.schema["basis"] == "additive"
    assert plan.dimension == 15 and made.dimension == 13  # a line and 5 curves each, and a constant; or missing too
