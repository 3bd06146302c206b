"""Words that are on no list, opened before a survey: a stage of training, here and over several machines, under the one
promise of the run."""

import csv
import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import norm

from dpmpc.aggregation.plan.decided import SHARE
from dpmpc.aggregation.plan.guarantee import promise_of
from dpmpc.aggregation.plan.plan import Plan
from dpmpc.aggregation.plan.stages import after_first, stage_plan
from dpmpc.consortium.toml import read_consortium
from dpmpc.errors import UsageError
from dpmpc.intake.hashing import BUCKETS, bucket
from dpmpc.learning.model import read_model
from dpmpc.learning.naming import VOTES, NamingSource, WordsFirst, votes_of
from dpmpc.learning.survey import Survey
from dpmpc.learning.survey_columns import Draft
from dpmpc.privacy.guarantee import failure_factor
from tests.local.test_named_columns import records, written
from tests.machines import apart
from tests.made_up_sites import draft, planned
from tests.runs import dpmpc as command

WARDS = ("Station 4b", "Süd/Akut")


def asked(tmp_path: Path, epsilon: float = 4.0, **changes: Any) -> Plan:
    return Plan.read(planned(tmp_path, epsilon=epsilon, owner_sizes=(4000, 4000, 4000), spell=("ward",), **changes))


def opened(plan: Plan, words: tuple[str, ...]) -> Any:
    """What the stage of words opens where each of these passes."""
    total = np.zeros((BUCKETS, VOTES))
    for word in words:
        total[bucket("ward", word, BUCKETS)] = votes_of("ward", word)
    return total.reshape(-1).astype(np.int64)


def delta_of(mechanisms: list[tuple[Any, int]], epsilon: float) -> float:
    """The delta of so many releases by each of these mechanisms, at an epsilon, in closed form."""
    mu = math.sqrt(sum(times * (each.sensitivity.l2 / each.scale) ** 2 for each, times in mechanisms))
    fails = sum(times * (each.mpc_failure + each.dimension * each.tv) for each, times in mechanisms)
    ideal = norm.cdf(mu / 2 - epsilon / mu) - math.exp(epsilon) * norm.cdf(-mu / 2 - epsilon / mu)
    return float(ideal) + (1 + math.exp(epsilon)) * fails


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 4.0])
def test_words_survey_and_training_keep_one_promise(tmp_path: Path, epsilon: float) -> None:
    """By a route of its own: the mu of all Gaussian releases add up in squares, delta_mu(epsilon) is a closed form, and
    turned signs and noise that is no exact Gaussian count 1 + e^epsilon times. A plan that left words out of its
    account would break the promise."""
    plan = asked(tmp_path, epsilon)
    words, survey = plan.ahead
    assert isinstance(words.source, NamingSource) and isinstance(survey.source, Survey)
    assert words.run_id.endswith("+words") and words.source.cells == BUCKETS == survey.source.buckets

    own = (plan.derived.mechanism, plan.releases)
    every = [(words.derived.mechanism, 1), (survey.derived.mechanism, 1), own]
    assert 0.9e-5 < delta_of(every, epsilon) <= 1e-5 * (1 + 1e-6)
    assert words.derived.mechanism.mpc_failure >= 1e-5 / (SHARE * failure_factor(epsilon))
    promise = promise_of(plan)
    assert (promise.epsilon, promise.delta) == (epsilon, 1e-5)
    without = replace(plan.learning.survey, spelling=None)  # type: ignore[type-var]
    cheaper = replace(plan, source=replace(plan.learning, survey=without))
    wrong = [(words.derived.mechanism, 1), (survey.derived.mechanism, 1), (cheaper.derived.mechanism, plan.releases)]
    assert delta_of(wrong, epsilon) > 1e-5 * (1 + 1e-3)


def test_words_take_as_much_of_the_budget_as_the_survey_and_a_tenth_at_most(tmp_path: Path) -> None:
    for epsilon, sizes in ((0.3, (4000,) * 3), (2.0, (4000,) * 3), (2.0, (400,) * 3)):
        folder = tmp_path / f"{epsilon}-{sizes[0]}"
        plan = Plan.read(planned(folder, epsilon=epsilon, owner_sizes=sizes, spell=("ward",), iterations=4))
        mu2 = [(each.derived.mechanism.sensitivity.l2 / each.derived.mechanism.scale) ** 2 for each in plan.ahead]
        whole = sum(mu2) + plan.releases * (plan.derived.mechanism.sensitivity.l2 / plan.derived.mechanism.scale) ** 2
        part = mu2[0] / whole
        assert part <= 0.1005 and (part > 0.095 or part == pytest.approx(mu2[1] / (whole - mu2[0]), rel=0.05))


def test_what_was_opened_names_what_the_survey_finds(tmp_path: Path) -> None:
    """The plan after words has the survey alone before it, at the prices of before; its schema then carries the words
    of the buckets that stood out, and no other. Each plan comes back from its text."""
    plan = asked(tmp_path)
    after = after_first(plan, opened(plan, (*WARDS, "nowhere")))
    assert Plan.from_text(after.to_text()) == after and Plan.from_text(plan.to_text()) == plan
    assert [each.source for each in after.ahead] == [plan.ahead[1].source]
    assert after.before == plan.before and after.derived.mechanism == plan.derived.mechanism
    survey = after.first
    asks = survey.source
    assert isinstance(asks, Survey)
    at = [bucket("ward", word, BUCKETS) for word in WARDS]
    places = np.array(at)[np.arange(12000) % 2].astype(float)
    columns = {
        "age": np.column_stack([np.full(12000, 50.0), np.full(12000, -1.0)]),
        "dose": np.column_stack([np.full(12000, 130.0), np.full(12000, -1.0)]),
        "ward": np.column_stack([np.full(12000, np.inf), places]),
    }
    total = np.round(asks.encode(columns) / survey.grid.step).astype(np.int64)
    last = after_first(after, total)
    names = {c.name: dict(getattr(c, "names", ())) for c in last.mapped_by.columns}  # type: ignore[union-attr]
    assert names["ward"] == dict(zip(at, WARDS, strict=True)) and not last.source.schedule.before


def test_a_draft_with_words_to_open_comes_back_and_refuses_what_is_stated() -> None:
    stage = WordsFirst(("ward",), 0.2, 1.0)
    made = Draft(draft(), 0.5, spelling=stage)
    there = Draft(draft(), 0.5, spelled=(("ward", ((117, "Station 4b"),)),))
    for each in (made, there):
        assert Draft(**json.loads(json.dumps(each.to_json()))) == each
    assert not {"spelling", "spelled"} & Draft(draft(), 0.5).to_json().keys()
    assert [each.name for each in made.stages] == ["words", "survey"] and len(there.stages) == 1
    for changes in ({"spelling": WordsFirst(("age",), 0.2, 1.0)}, {"spelled": (("outcome", ()),)}, {"spelling": 7}):
        with pytest.raises(UsageError):
            Draft(draft(), 0.5, **changes)  # type: ignore[arg-type]


def test_a_model_has_words_of_no_list_and_the_account_counts_them_once(tmp_path: Path) -> None:
    """Through parties of their own. A run that is shorter of budget than its stages together is refused before the
    first of them is made."""
    path = written(tmp_path / "x.csv", records(words=WARDS))
    given = ("--csv", path, "--target", "died", "--positive", "yes", "--owners-column", "site", "--epsilon", "4",
             "--delta", "1e-5", "--spell", "sex", "--iterations", "5", "--test-fraction", "0", "--data-id", "x",
             "--account", tmp_path / "account")  # fmt: skip
    refused = command("train", *given, "--budget", "3,1e-5", "--out", tmp_path / "no")
    assert refused.returncode != 0 and not list((tmp_path / "no").rglob("*.opened.bin")), refused.stderr
    done = command("train", *given, "--budget", "4,1e-5", "--out", tmp_path / "run")
    assert done.returncode == 0, done.stderr
    schema = read_model(tmp_path / "run").schema
    names = {name.partition(" [#")[0] for name in schema.feature_names if name.startswith("sex=")}
    assert names == {f"sex={word}" for word in WARDS}
    assert "epsilon = 4, delta = 1e-05" in done.stdout + done.stderr
    assert [len(list((tmp_path / "run" / name).glob("ledger_*.jsonl"))) for name in ("words", "survey")] == [3, 3]
    again = command("train", *given, "--budget", "4,1e-5", "--out", tmp_path / "second")
    assert again.returncode != 0 and not list((tmp_path / "second").rglob("*.opened.bin"))
    command("report", tmp_path / "run", "--out", tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert all(word in page for word in WARDS) and "by the words and the survey" in page


def test_what_has_no_words_is_refused_before_anything_is_spent(tmp_path: Path) -> None:
    rows = records(900)
    path = written(tmp_path / "x.csv", rows)
    given = ("--csv", path, "--target", "died", "--positive", "yes", "--owners-column", "site", "--delta", "1e-5")
    for more, says in (
        (("--epsilon", "8", "--spell", "height"), "'height'"),
        (("--epsilon", "0.05", "--spell", "sex"), "this run has none"),
        (("--epsilon", "8", "--spell", "sex", "--neighbours", "presence"), "neighbours"),
        (("--epsilon", "8", "--spell", "sex", "-M", "2", "--backend", "ot"), "backend"),
    ):
        done = command("train", *given, *more, "--out", tmp_path / "run")
        assert done.returncode == 2 and says in done.stderr, done.stderr
        assert len(done.stderr.strip().splitlines()[-1]) and not list(tmp_path.rglob("*.opened.bin"))


def test_several_machines_open_words_before_they_survey(tmp_path: Path) -> None:
    """A consortium's file says so; every process ends with the same names, and owners that are parties do."""
    plan = asked(tmp_path / "made", 12.0, iterations=4)
    sizes = (400,) * 3
    plan_file = planned(tmp_path / "machines", epsilon=12.0, owner_sizes=sizes, spell=("ward",), iterations=4)
    ends = apart(plan_file, tmp_path, _files(tmp_path))
    assert ends == [None] * 6, ends
    found = {tuple(read_model(tmp_path / name).schema.feature_names) for name in ("0", "1", "2", "owner0", "owner2")}
    (names,) = found
    assert {name.partition(" [#")[0] for name in names if name.startswith("ward=")} == {f"ward={w}" for w in WARDS}
    assert plan.first.source.KIND == "naming"


def test_the_file_of_a_consortium_asks_for_words(tmp_path: Path) -> None:
    draft().write(tmp_path / "schema.json")
    parties = "".join(f'[[parties]]\naddress = "127.0.0.{k + 2}:11365"\n' for k in range(3))
    (tmp_path / "consortium.toml").write_text(
        f'[run]\ndata_id = "x"\n{parties}' + "[[owners]]\nrecords = 4000\n" * 3
        + '[records]\nschema = "schema.json"\nspell = ["ward"]\npreprocessing = "survey"\n'
        + "[privacy]\nepsilon = 2.0\ndelta = 1e-5\n[learning]\niterations = 5\n",
        encoding="utf-8",
    )  # fmt: skip
    plan = read_consortium(tmp_path / "consortium.toml").plan
    assert plan.first == stage_plan(plan, plan.source.schedule.before[0]) and plan.first.source.KIND == "naming"
    assert any("opens words" in line for line in plan.source.about)


def _files(folder: Path) -> list[Path]:
    """The made-up sites' files, with wards of no list."""
    random, found = np.random.default_rng(3), []
    for owner in range(3):
        age, dose = random.integers(18, 90, 400), random.normal(130, 20, 400).round(1)
        ward = random.choice(WARDS, 400)
        outcome = np.where(age > 54, "yes", "no")
        found.append(folder / f"owner{owner}.csv")
        with found[-1].open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            writer.writerow(["ward", "age", "dose", "outcome"])
            writer.writerows(zip(ward, age, dose, outcome, strict=True))
    return found
