"""A plan is executed with its stages by one function: what is found first, what follows, and what goes on."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import dpmpc
from dpmpc.aggregation.plan.asked import FIRST_ATTEMPT, plan_path
from dpmpc.aggregation.plan.plan import Plan
from dpmpc.aggregation.plan.stages import after_first
from dpmpc.learning.survey_numbers import CELLS
from dpmpc.privacy.gaussian import mu_of_budget
from dpmpc.records.origins import PUBLIC
from dpmpc.run.resume import Since, left, note_attempt
from dpmpc.run.run import RecordsHere, rounds
from dpmpc.run.seat import Seat
from dpmpc.statistics.tables import asked_by
from dpmpc.synthesis import asking
from dpmpc.synthesis.to_find import ToFind
from dpmpc.tables.found_first import planned
from dpmpc.tables.synth_made import made_from
from dpmpc.tables.synth_plan import plan_of_synthesis
from tests.aggregation.mutants import found_and_asked, found_and_drawn, spelled_and_asked, spelled_and_drawn, tables
from tests.refusals import refuses

PROMISE: dict[str, Any] = {"epsilon": 3.0, "delta": 1e-5, "engine": "clear", "data_id": "one run"}


def people(n: int = 6000) -> pd.DataFrame:
    rng = np.random.default_rng(8)
    age, ward = rng.normal(50, 12, n).round(1), rng.integers(0, 3, n)
    return pd.DataFrame({"site": [f"s{k % 3}" for k in range(n)], "age": age, "ward": np.array(["a", "b", "c"])[ward]})


@pytest.mark.parametrize("made", [found_and_drawn, found_and_asked, spelled_and_drawn, spelled_and_asked])
def test_all_stages_come_to_what_was_promised(made: Any) -> None:
    """mu^2 of Gaussian releases adds up: whatever is opened, at most the promise, and nearly all of it."""
    plan, rng = made(), np.random.default_rng(3)
    assert Plan.from_text(plan.to_text()) == plan
    whole = mu_of_budget(plan.epsilon, plan.delta) ** 2
    for scale in (30.0, 300.0):
        mu2, at = 0.0, plan
        while at.source.schedule.before:
            first = at.first.derived.mechanism
            mu2 += (first.sensitivity.l2 / first.scale) ** 2
            total = np.rint(rng.normal(size=at.first.dimension) * scale * first.scale).astype(np.int64)
            at = after_first(at, total)
        own = at.derived.mechanism
        mu2 += (own.sensitivity.l2 / own.scale) ** 2
        assert 0.95 < mu2 / whole <= 1.0 + 1e-9
        assert asked_by(at.source).coordinates == at.dimension <= plan.dimension


@pytest.mark.parametrize(("numbers", "texts"), [(3, 0), (0, 3), (4, 3), (0, 12), (40, 1), (2, 90), (0, 75), (0, 76)])
def test_no_survey_finds_more_than_was_planned(numbers: int, texts: int) -> None:
    """Columns with all cells full, numbers far apart: a first release within its plan, and a second one."""
    names = tuple(f"c{k}" for k in range(numbers + texts))
    asked = ToFind(names, names[numbers:])
    survey, most = asked.survey, asked.at_most
    rng = np.random.default_rng(numbers)
    total = rng.uniform(1e4, 1e6, survey.coordinates)
    for k in range(numbers):
        at = k * (survey.coordinates - texts * survey.buckets) // max(1, numbers + texts)
        total[at : at + CELLS] = rng.uniform(1e4, 1e6, CELLS)
    found = asked.found(total, 1.0)
    first = asking.first(found), asking.first(most)
    assert first[0].coordinates <= first[1].coordinates
    if numbers + texts < 60:
        second = (asking.second(each, asking.widest(each, None)).coordinates for each in (found, most))
        assert next(second) <= next(second)


def test_what_a_survey_is_to_find_says_what_it_cannot() -> None:
    with refuses("usage", "words", setting="named"):
        ToFind(("a",), ("a",), words=("word",))
    with refuses("usage", "the columns a", "b"):
        ToFind(("a",), ("b",))
    settings: dict[str, Any] = {"epsilon": 1.0, "delta": 1e-5, "parties": 3}
    with refuses("together", setting="constraints"):
        plan_of_synthesis(
            None, None, ["a = b"], (50,) * 3, "d", None, settings, PUBLIC, to_find=ToFind(("a", "b"), ("a",))
        )
    with refuses("together", "delta 0", setting="delta"):
        planned(["mean(a)"], ToFind(("a",)), (), (50,) * 3, "d", None, {"epsilon": 1.0, "delta": 0.0}, False)


def test_an_attempt_is_the_first_where_only_a_plan_is_there(tmp_path: Path) -> None:
    plan = tables()
    assert left(plan, tmp_path).attempt == FIRST_ATTEMPT
    plan.write(plan_path(tmp_path))
    assert left(plan, tmp_path).attempt == FIRST_ATTEMPT
    note_attempt(tmp_path, FIRST_ATTEMPT)
    assert left(plan, tmp_path).attempt.number == FIRST_ATTEMPT.number + 1


def test_rows_of_a_run_here_are_drawn_again_as_of_one_of_machines(tmp_path: Path) -> None:
    """The same folder whoever the parties are: a run here has its plan, and the stages before it, where one of several
    machines has them."""
    out = tmp_path / "rows"
    first = dpmpc.synth(people(), owners="site", out=out, seed=4, **PROMISE)
    assert {path.name for path in out.iterdir() if path.is_dir()} == {"survey", "first"}
    assert Plan.read(out / "plan.json").source.KIND == "tables"
    again = made_from(out, seed=4)
    assert {name: list(map(str, each)) for name, each in again.values.items()} == {
        name: list(map(str, each)) for name, each in first.values.items()
    }
    assert len(made_from(out, rows=77, seed=1).frame()) == 77


def test_questions_by_owner_after_a_survey_name_the_owners(tmp_path: Path) -> None:
    """Their names are in the plan where questions are about them, and nowhere else."""
    frame = people()
    found = dpmpc.stats(frame, ["mean(age) by owner", "count by ward"], owners="site", out=tmp_path / "a", **PROMISE)
    assert [line.labels for line in found.answers[0].lines][:1] == [("s0",)]
    dpmpc.stats(frame, ["mean(age)"], owners="site", out=tmp_path / "b", **PROMISE)
    whole = [(tmp_path / name / "survey" / "stage.whole.json").read_text() for name in ("a", "b")]
    assert ['"s0"' in text for text in whole] == [True, False]


class _Nobody(RecordsHere):
    def plays(self, plan: Plan, seat: Seat, since: Since) -> Any:
        raise AssertionError("nothing is released")


def test_rounds_that_a_server_asks_for_have_no_stages() -> None:
    with refuses("plan"), rounds(found_and_asked(), _Nobody(), Seat()):
        pass


@pytest.mark.parametrize("bounds", [{"age": [0, 100]}, None], ids=["one release", "with a survey"])
def test_a_budget_without_room_is_refused_before_there_is_a_folder(bounds: Any, tmp_path: Path) -> None:
    """One order of reserving for runs of one stage and of several: before a party starts, or a file is written."""
    out = tmp_path / "out"
    with refuses("budget", setting="budget"):
        dpmpc.stats(people(), ["mean(age)"], owners="site", bounds=bounds, out=out, budget="2,1e-4", **PROMISE)
    assert not out.exists()
