"""Cells that are kept apart by owner: no owner reaches another's, whatever it sends, and questions about one owner."""

import json
from pathlib import Path

import numpy as np
import pytest

import dpmpc
from dpmpc.aggregation.owner import aggregator
from dpmpc.aggregation.plan.grid import Floats, Ints
from dpmpc.aggregation.plan.plan import Plan
from dpmpc.errors import UsageError
from dpmpc.outcome import Level
from dpmpc.records.loading import opened
from dpmpc.statistics.columns import Columns
from dpmpc.statistics.expected import refuse_hopeless
from dpmpc.statistics.foresight import Expected
from dpmpc.statistics.tables import Tables
from dpmpc.tables.stats import foreseen, plan_of_tables
from tests.machines import together
from tests.refusals import refuses
from tests.statistics.test_by_owner import BOUNDS, PROMISE, SITES, allowed, joins, kits_of, people

SHARED = {  # coordinates that all owners may fill: those of incomplete records, or of all that are asked about
    "count by owner": 0,
    "logit(died, smoker) by owner": 0,
    "logit(died, smoker, sex, strata=owner)": 1,
    "logit(died, owner, smoker, owner=south)": 1,
    "or(died, smoker, strata=owner)": 1,
    "cox(age, died, smoker) by owner": 0,
    "cox(age, died, smoker, owner)": 25,
    "table(owner, sex)": 0,
    "mean(age) by owner": 0,
    "median(age) by owner": 0,
    "corr(age, sex) by owner": 0,
    "count where owner = north": 0,
    "mean(age) where owner in {north, west}": 2,
    "logit(died, smoker) by owner where owner in {south, east} and sex = f": 0,
    "km(age, died) where owner = east": 0,
}


def asked(*lines: str) -> Tables:
    return Tables.of(Columns.of_bounds(BOUNDS), list(lines)).among(SITES)


@pytest.mark.parametrize("line", SHARED)
def test_what_an_owner_may_fill_is_what_its_records_can(line: str) -> None:
    """Of records with every mix of values, missing ones among them: an owner's vector is within its own cells and fills
    many of them, and of two owners' cells only those of incomplete records are one."""
    tables = asked(line)
    mix = [
        (smoker, sex, died, age)
        for smoker in ("no", "yes", None) for sex in ("f", "m", "x", None) for died in ("no", "yes", None)
        for age in (None, 10.0, *np.linspace(20.0, 90.0, 141), 95.0)
    ]  # fmt: skip
    columns = {name: [row[k] for row in mix] for k, name in enumerate(("smoker", "sex", "died", "age"))}
    own = [tables.own(j, j + 1) for j in range(4)]
    with opened(columns) as (table, _):
        for j, places in enumerate(own):
            assert places is not None
            sent = tables.sited(j).encode(table)[0]
            assert not sent[~places].any()
            if "mean" not in line and "corr" not in line:  # sums may come out as 0
                assert (sent != 0).sum() >= 0.4 * places.sum()
    shared = [int(np.sum(own[i] & own[j])) for i in range(4) for j in range(i)]  # type: ignore[operator]
    assert max(shared) == SHARED[line], shared
    assert np.array_equal(tables.own(1, 3), own[1] | own[2])  # type: ignore[operator]


MODES = {
    "sharing": "",
    "shamir": 'backend = "shamir"',
    "active": 'security = "active"',
    "checked": 'check_owners = "stop"',
    "active and checked": 'security = "active"\ncheck_owners = "stop"',
}


@pytest.mark.parametrize("mode", MODES)
def test_no_site_reaches_anothers_cells_whatever_it_sends(
    mode: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Three parties and three owners, each a process of its own as a thread. The third adds as much as 500 records to
    every coordinate of the others, after its own code has cut it off; counts of all three stay within 8 deviations of
    what they are, and sums of parties that would take all in would be off by a hundred."""
    records, honest = people(3000), aggregator.encode
    kits = allowed(kits_of(tmp_path, records, f"[mpc]\n{MODES[mode]}\n"))
    reached: list[int] = []

    def reaching(plan: Plan, vectors: Floats, first: int = 0) -> Ints:
        steps = honest(plan, vectors, first)
        if first == 2 and (own := plan.source.own(2, 3)) is not None:
            steps[0, ~own] = 500 << plan.grid.bits
            reached.append(int(np.sum(~own)))
        return steps

    monkeypatch.setattr(aggregator, "encode", reaching)
    assert together(joins(kits)) == [None] * 6
    assert reached and reached[0] > 8
    answers = json.loads((kits[0] / "run" / "answers.json").read_text(encoding="utf-8"))
    counts = {
        each["labels"]["owner"]: each for each in answers["numbers"]
        if each["labels"].get("term", "records") == "records" and each["statistic"] == "count"
    }  # fmt: skip
    for name in SITES[:3]:
        assert abs(counts[name]["estimate"] - records["site"].count(name)) < 8 * counts[name]["noise"] < 60


def numbers(line: str, records: dict[str, list[object]]) -> dict[tuple[tuple[str, ...], str], float | None]:
    found = dpmpc.stats(records, [line], owners="site", bounds=BOUNDS, engine="clear", **{**PROMISE, "epsilon": 20.0})
    return {(each.labels, each.statistic): each.number.estimate for each in found.answers[0].lines}


def test_a_question_is_about_one_owner_by_its_name() -> None:
    """Estimates are those of that owner's records: counts within 8 deviations at epsilon 20, which are below 4."""
    records = people(3000)
    mine = [k for k, name in enumerate(records["site"]) if name == "north"]
    women = sum(records["sex"][k] == "f" for k in mine)
    assert numbers("count where owner = north", records)[(), "count"] == pytest.approx(len(mine), abs=4)
    assert numbers("count by sex where owner = north", records)[("f",), "count"] == pytest.approx(women, abs=4)
    both = numbers("count where owner in {north, west}", records)[(), "count"]
    assert both == pytest.approx(len(mine) + records["site"].count("west"), abs=4)
    age = numbers("mean(age) where owner = north", records)[(), "mean"]
    assert age == pytest.approx(np.mean([records["age"][k] for k in mine]), abs=1)
    ratio = numbers("logit(died, owner, smoker, owner=south)", records)
    assert (("owner", "north"), "odds ratio") in ratio and (("owner", "south"), "odds ratio") not in ratio
    with refuses("choice", "owner", "nowhere", "north"):
        numbers("count where owner = nowhere", records)


def test_one_owners_figures_need_every_owners_word_too() -> None:
    """A question about one owner tells of it alone: no plan of it is without the mark that limits look at, and a plan
    that is read again is about the same owner, whatever their number."""
    for line in ("count where owner = north", "mean(age) where owner in {north, west}"):
        tables = asked(line)
        plan = plan_of_tables(tables, (400, 300, 200, 100), "records", None, PROMISE)
        assert plan.source.tells_owners and Plan.from_text(plan.to_text()).source == tables
    unnamed = Tables.of(Columns.of_bounds(BOUNDS), ["count where owner = north"])
    for sizes in ((4, 3), (4, 3, 2)):  # as many as there are placeholders, and more
        with refuses("choice", "owner", "north"):
            plan_of_tables(unnamed, sizes, "records", None, PROMISE)
    numbered = Tables.of(Columns.of_bounds(BOUNDS), ['count where owner = "owner 2"'])
    plan = plan_of_tables(numbered, (4, 3, 2), "records", None, PROMISE)
    assert np.flatnonzero(plan.source.own(2, 3)).size == 1  # type: ignore[arg-type]
    assert not plan.source.own(0, 2).any()  # type: ignore[union-attr]


def expected_of(line: str, *sizes: int, epsilon: float = 1.0) -> tuple[Expected, str]:
    plan = plan_of_tables(asked(line), sizes, "records", None, {**PROMISE, "epsilon": epsilon})
    found = foreseen(plan, Level())
    try:
        refuse_hopeless(found, epsilon, 1e-5)
    except UsageError as error:
        return found[0], str(error)
    return found[0], ""


def test_one_owners_question_is_foreseen_of_its_records_and_by_owner_of_the_fewest() -> None:
    one, _ = expected_of("logit(died, smoker) where owner = west", 4000, 4000, 200, 4000)
    alone, _ = expected_of("logit(died, smoker)", 200, 200, 200, 200)
    every, _ = expected_of("logit(died, smoker) by owner", 4000, 4000, 200, 4000)
    assert one.half == pytest.approx(every.half, rel=0.01) and one.half > 2 * alone.half
    assert expected_of("count by owner", 4000, 4000, 200, 4000)[0].count == 200
    assert expected_of("mean(age) where owner in {north, west}", 40, 30, 20, 10)[0].count == 60


def test_what_would_do_for_hazard_ratios_does() -> None:
    """Of a hopeless question each way that is named is followed, and is no longer refused."""
    line, sizes = "cox(age, died, smoker, sex) by owner", (300, 300, 300, 100)
    _, said = expected_of(line, *sizes)
    assert said.count(line) == 1 and "log ratios" in said
    ways = said.partition("likely no answer; ")[2]
    epsilon = float(ways.partition("epsilon ")[2].split()[0])
    assert not expected_of(line, *sizes, epsilon=epsilon * 1.05)[1]
    many = int(ways.partition(" records at each owner")[0].rpartition(" ")[2].replace(",", ""))
    assert not expected_of(line, *([many] * 4))[1] and expected_of(line, *([many // 4] * 4))[1]
    _, said = expected_of("cox(age, died, smoker) where owner = north", 60, 60, 60, 60)
    assert "epsilon" not in said and "a factor of 1,000 or more" in said and "records, or" in said
    _, said = expected_of("cox(age, died, smoker) where owner = north", 120, 120, 120, 120)
    bins = int(said.partition("bins=")[2].partition(",")[0])
    assert not expected_of(f"cox(age, died, smoker, bins={bins}) where owner = north", 120, 120, 120, 120)[1]
    assert expected_of(f"cox(age, died, smoker, bins={bins + 2}) where owner = north", 120, 120, 120, 120)[1]
    _, said = expected_of("logit(died, age) by owner", 100, 100, 100, 100)
    assert "the question without by, adjusted with strata=owner" in said
    assert not expected_of("logit(died, age, strata=owner)", 100, 100, 100, 100)[1]
