"""A meeting as a source of plans: what a record moves, whose block it is in, who takes part."""

import itertools
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from dpmpc.aggregation.plan.limits import Limits, limits_of
from dpmpc.aggregation.plan.of_source import plan_of
from dpmpc.aggregation.plan.opening import opening_of
from dpmpc.aggregation.plan.plan import Plan
from dpmpc.learning.survey_numbers import CELLS
from dpmpc.meeting.source import MeetingSource
from dpmpc.meeting.told import cell_name
from dpmpc.records.loading import opened
from dpmpc.records.mapping import owners_in
from tests.refusals import Rule, breaks, refuses

TABLE = {
    "site": ["a", "a", "a", "b", "b", "c"],
    "age": ["3", "40", "", "41", "oddly", "-5"],
    "sex": ["f", "m", "f", "m", "0", "1"],
}
SIZES = (3, 2, 1)


def vectors(meeting: MeetingSource, table: dict[str, list[str]]) -> np.ndarray:
    """(owners, coordinates) the sums of each owner's records."""
    with opened(table) as (found, _):
        number, _ = owners_in(found, "site")
        means = np.concatenate(list(meeting.means(found, number, SIZES)))
    return means * np.array(SIZES)[:, None]


def test_every_owner_counts_its_records_in_its_own_block() -> None:
    meeting = MeetingSource(("age", "sex"), 3, twice=("sex",))
    found = vectors(meeting, TABLE)
    counts = meeting.counts(found.sum(axis=0))
    assert counts.shape == (3, 2, CELLS + 256) and (counts.sum(axis=2) == np.array(SIZES)[:, None]).all()
    for site, row in enumerate(found):
        assert not row.reshape(3, -1)[[k for k in range(3) if k != site]].any()
    named = {(site, cell_name(int(cell))) for site, cell in np.argwhere(counts[:, 0] > 0)}
    assert {(0, "missing"), (0, "2 to 4"), (0, "32 to 64"), (1, "32 to 64"), (2, "-8 to -4")} <= named
    assert any(site == 1 and name.startswith("bucket") for site, name in named)


def test_a_process_of_one_owner_fills_the_same_block() -> None:
    meeting, whole = MeetingSource(("age", "sex"), 3), None
    for site in range(3):
        rows = [k for k, name in enumerate(TABLE["site"]) if name == "abc"[site]]
        with opened({name: [values[k] for k in rows] for name, values in TABLE.items()}) as (found, _):
            (mine,) = meeting.sited(site).means(found, np.zeros(len(rows), dtype=np.int64), (len(rows),))
            (terms,) = meeting.sited(site).sums(found, np.zeros(len(rows), dtype=np.int64), 1)
        assert np.array_equal(mine * len(rows), terms)
        whole = mine * len(rows) if whole is None else whole + mine * len(rows)
    assert np.array_equal(whole[0], vectors(meeting, TABLE).sum(axis=0))


@pytest.mark.parametrize("twice", [(), ("age",)])
def test_no_pair_of_records_moves_the_sum_further_than_the_bound(twice: tuple[str, ...]) -> None:
    """All pairs of some records at one place, whatever its owner; the bound is attained."""
    meeting = MeetingSource(("age", "sex"), 3, twice=twice)
    odd = [("", ""), ("3", "f"), ("-1e30", "0"), ("inf", "long" * 50), ("oddly", "-7"), ("0", "f")]
    most = np.zeros(3)
    for place in (1, 4, 5):
        sums = []
        for age, sex in odd:
            table = {name: list(values) for name, values in TABLE.items()}
            table["age"][place], table["sex"][place] = age, sex
            sums.append(vectors(meeting, table).sum(axis=0))
        for one, other in itertools.combinations(sums, 2):
            apart = np.abs(one - other)
            most = np.maximum(most, [apart.sum(), math.sqrt((apart**2).sum()), apart.max()])
    stated = meeting.spread
    assert most == pytest.approx([stated.l1, stated.l2, stated.linf])
    moved = meeting.by_record(SIZES, "size", meeting.coordinates)
    assert moved.l2 * sum(SIZES) == pytest.approx(stated.l2, rel=1e-6) and moved.l2 * sum(SIZES) >= stated.l2


def test_a_plan_carries_it_and_the_noise_does_not_grow_with_owners() -> None:
    scales = []
    for owners in (2, 20):
        plan = plan_of(
            MeetingSource(("age", "sex"), owners, "sex"), (100,) * owners, data_id="d", epsilon=0.1, delta=1e-5
        )
        assert Plan.from_text(plan.to_text()) == plan and "number" not in plan.source.to_json()
        scales.append(plan.derived.mechanism.scale * plan.grid.step)
    assert scales[1] == pytest.approx(scales[0], rel=1e-3)
    assert scales[0] == pytest.approx(2 / 0.0325, rel=0.01)  # sqrt(2 * 2 columns) / mu


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: MeetingSource(("age",), 1), breaks("enough")),
        (lambda: MeetingSource(("age",), 3, "sex"), breaks("column", "sex")),
        (lambda: MeetingSource(("age", "age"), 3), breaks("over", "age")),
        (lambda: MeetingSource(tuple(f"c{k}" for k in range(3000)), 3), breaks("range", 3000)),
        (lambda: MeetingSource.from_json({"columns": ["age"], "owners": 3, "number": 1}), breaks("together")),
        (
            lambda: plan_of(MeetingSource(("age",), 3, number=1), (9, 9, 9), data_id="d", delta=1e-5),
            breaks("plan"),
        ),
        (lambda: plan_of(MeetingSource(("age",), 3), (9, 9), data_id="d", delta=1e-5).derived, breaks("plan")),
    ],
)
def test_what_is_no_meeting_is_refused(make: object, words: Rule) -> None:
    with refuses(words):
        make()  # type: ignore[operator]


def test_an_organisation_takes_part_only_where_its_own_limits_allow_it(tmp_path: Path) -> None:
    plan = plan_of(MeetingSource(("age",), 3), (90, 90, 90), data_id="d", epsilon=0.1, delta=1e-5)
    for limits in (Limits(), Limits(by_owner=False), Limits(epsilon=math.inf)):
        with refuses("limits", setting="by_owner") as refused:
            limits.check(plan)
        assert refused.value.code == "limits" and "<<by_owner=True>>" in refused.value.message
    Limits(by_owner=True).check(plan)
    assert "by_owner" not in limits_of(plan)  # nobody says it for another
    assert not Limits(by_owner=True).also(Limits(by_owner=False)).by_owner
    (tmp_path / "limits.toml").write_text("by_owner = true\n")
    Limits.read(tmp_path / "limits.toml").check(plan)


def test_nothing_is_spent_on_what_could_not_be_told() -> None:
    """Places, whose filling is private, are refused by every derivation; an owner that is missing is left out."""
    plan = plan_of(MeetingSource(("age",), 3), (90, 90, 90), data_id="d", epsilon=0.5, delta=1e-5)
    with refuses("missing"):
        _ = replace(plan, capacity=True).derived
    few = plan_of(MeetingSource(("age",), 3), (90, 90, 90), data_id="d", epsilon=0.5, delta=1e-5, min_owners=1)
    total = np.zeros(few.dimension, dtype=np.int64)
    for present in ((0, 2), (1,)):
        found = few.source.outcome(opening_of(few, {0: total}, {0: present}))
        assert found.section["sites"] == [f"owner {j}" for j in present] and found.section["differences"] == []
