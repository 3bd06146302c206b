"""Persons: what all of one person's records at all owners can move, by brute force over neighbours; and what plans,
ledgers and limits say of it."""

import itertools
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from dpmpc.aggregation.owner.encoding import as_blocks, encode
from dpmpc.aggregation.plan.asked import FIRST_ATTEMPT
from dpmpc.aggregation.plan.guarantee import covers, neighbours_of, promise_of
from dpmpc.aggregation.plan.limits import Limits
from dpmpc.aggregation.plan.plan import Plan
from dpmpc.aggregation.plan.spending import entry_of
from dpmpc.errors import UsageError
from dpmpc.learning.method import METHODS, Learning
from dpmpc.planning.request import Request
from dpmpc.planning.training import Facts, plan_of
from dpmpc.privacy.composition import mechanism_for
from dpmpc.privacy.persons import Persons
from dpmpc.records.blocks import in_memory
from dpmpc.statistics.cells import RecordFields
from dpmpc.statistics.columns import Columns, Quantity, category
from dpmpc.statistics.tables import STEP, Tables
from tests.refusals import refuses

K, D = 3, 3
SIZES = (2 * K, 3 * K, 2 * K)  # places


def filled(plan: Any, person: list[np.ndarray], marks: list[float]) -> np.ndarray:
    """(owners, d) the means of owners' vectors, by their own code: a person's records in the first K places of each,
    zero vectors where it has fewer; the others alike on both neighbours."""
    learning, theta = plan
    method, found = METHODS[learning.method], []
    for size, rows in zip(SIZES, person, strict=True):
        X = np.tile([[0.0, 0.0, 1.0]], (size, 1))  # across the way that the person's records pull
        X[:K] = 0.0
        X[: len(rows)] = rows
        y = np.ones(size)
        y[: len(rows)] = marks[: len(rows)]
        vectors = method.vectors(learning, theta, in_memory(X, y), np.array([0, size]))
        found.append(vectors[0] * method.factor(learning, theta))
    return np.array(found)


@pytest.mark.parametrize("weights", ["equal", "size"])
@pytest.mark.parametrize("owners", [1, 2, 3])
@pytest.mark.parametrize(
    ("method", "task", "attained"),
    [("gradient", "logistic", 0.999), ("gradient", "ridge", 0.999), ("gradient", "softmax", 0.999),
     pytest.param("output", "logistic", 0.3, marks=pytest.mark.slow), ("functional", "ridge", 0.9)],
)  # fmt: skip
def test_no_person_moves_a_mean_further_than_is_claimed(
    method: str, task: str, attained: float, owners: int, weights: Any
) -> None:
    """All pairs of some ways to fill a person's places, at the owners where that counts most: empty ones among them."""
    classes = 3 if task == "softmax" else 2
    how = Learning(method=method, task=task, lam=0.3, classes=classes, solver_tolerance=1e-9)  # type: ignore[arg-type]
    d = METHODS[method].coordinates(D) * how.scores
    claimed = how.by_person(Persons(K, owners), SIZES, weights, d)
    assert claimed is not None
    w = np.array(SIZES) / sum(SIZES) if weights == "size" else np.full(3, 1 / 3)
    e, f = np.eye(D)[0], np.eye(D)[1]
    turned = (e + np.sqrt(3) * f) / 2  # 60 degrees: the coefficients of two such records lie furthest apart
    ways = [np.zeros((0, D)), np.tile(e, (K, 1)), np.tile(-e, (K, 1)), np.tile(turned, (K, 1)), np.stack([e, -f])]
    far = 0.0
    order = np.argsort([-x / n for x, n in zip(w, SIZES, strict=True)], kind="stable")[:owners]
    signs = ([1.0] * K, [-1.0] * K) if task != "softmax" else ([0.0] * K, [1.0] * K)
    means = []  # of every way with every sign
    for way, marks in itertools.product(ways, signs):
        person = [way if j in order else ways[0] for j in range(3)]
        means.append(w @ filled((how, np.zeros(D * how.scores)), person, marks))
    for one, other in itertools.product(means, repeat=2):
        moved = one - other
        assert np.abs(moved).sum() <= claimed.l1 * (1 + 1e-9) and np.abs(moved).max() <= claimed.linf * (1 + 1e-9)
        far = max(far, float(np.linalg.norm(moved)) / claimed.l2)
    assert attained < far <= 1 + 1e-9


def tables_plan(owners: int | None = None, **settings: Any) -> Plan:
    from dpmpc.tables.stats import plan_of_tables

    columns = Columns((Quantity("x", -1.0, 1.0), category("c", ("a", "b"))))
    asked = Tables.of(columns, ["count", "table(c)", "mean(x)"])
    given = {"epsilon": 1.0, "delta": 1e-5, "person": "who", "person_rows": K, "person_owners": owners, **settings}
    return plan_of_tables(asked, SIZES, "ward", None, given, by_person=True)


def test_statistics_of_persons() -> None:
    """Rounded vectors of real owners, added up as parties do: a person with K records alike everywhere, and without."""
    plan = tables_plan()
    source = plan.source
    assert isinstance(source, Tables)
    fields = source.layout.fields

    def sum_of(x: float, c: int, rows: int) -> np.ndarray:
        total = np.zeros(plan.dimension)
        for j, size in enumerate(SIZES):
            values = {g: np.full(rows, x) if isinstance(g, Quantity) else np.full(rows, c) for g in fields}
            mean = source.layout.encode(RecordFields(rows, values), None, 1)[0] * STEP / size
            (block,) = as_blocks(mean[None], 1, plan.dimension, 1)
            total += encode(plan, block[0][None], j)[0].astype(np.float64)
        return total

    sums = [sum_of(x, c, rows) for x in (-1.0, 0.0, 1.0) for c in (0, 1) for rows in (0, 1, K)]
    far = max(float(np.linalg.norm(a - b)) for a, b in itertools.combinations(sums, 2))
    assert 0.98 < far / plan.derived.sensitivity_steps <= 1
    assert not plan.counted and "of the records that have one" not in neighbours_of(plan)


def planned(**asked: Any) -> Plan:
    facts = Facts("x", "logistic", 4, (40, 50, 60), "public")
    request: dict[str, Any] = {"data": "x", "epsilon": 1.0, "delta": 1e-5, "iterations": 4, "step": 1.0, **asked}
    return plan_of(Request(**request), facts)


def test_what_a_plan_promises_and_what_its_ledger_says() -> None:
    plan = planned(person="patient", person_rows=5)
    assert plan.neighbours == "person" and Plan.from_text(plan.to_text()) == plan
    assert str(promise_of(plan)).endswith("at every owner; the numbers of persons are public")
    assert covers(plan, "person") and covers(plan, "record") and covers(plan, "presence") and not covers(plan, "owner")
    for other in (planned(), planned(neighbours="owner")):
        assert not covers(other, "person"), "a person may be at several owners"
        line, known = entry_of(other, FIRST_ATTEMPT, 0), other.levels
        price, mine = mechanism_for(line, "person"), mechanism_for(line, "owner")
        assert price is not None and mine is not None and price.sensitivity.l2 > 2.2 * mine.sensitivity.l2
        assert known["person"].l2 == pytest.approx(3 * 2.0 / 3), "all owners' means, from one end to the other"
    narrow = planned(person="patient", person_rows=5, person_owners=1)
    assert narrow.derived.sensitivity.l2 < 0.45 * plan.derived.sensitivity.l2
    assert promise_of(narrow).assumptions == ("no person has records at more than 1 owner",)
    Limits(neighbours="person").check(plan)
    Limits(neighbours="person", assumptions=True).check(narrow)
    for limits, refused in (
        (Limits(neighbours="person"), narrow),
        (Limits(neighbours="person"), planned(neighbours="owner")),
        (Limits(neighbours="person"), planned()),
        (Limits(neighbours="person", person_rows=6), plan),
        (Limits(neighbours="owner"), plan),
    ):
        with pytest.raises(UsageError):
            limits.check(refused)
    with refuses("together"):
        Limits(neighbours="person").also(Limits(neighbours="owner"))
    with refuses("missing", setting="person"):
        planned(neighbours="person")
    with refuses("together", "neighbours=presence", setting="person"):
        planned(person="patient", neighbours="presence")


def test_one_record_a_person_at_one_owner_costs_what_a_record_costs_and_k_of_k_places_no_more() -> None:
    """The published number of places grows with K as the sensitivity does."""
    one = planned(person="patient", person_owners=1).derived.sensitivity
    assert one.l2 == pytest.approx(planned().derived.sensitivity.l2, rel=1e-6)
    facts = Facts("x", "logistic", 4, (40 * 7, 50 * 7, 60 * 7), "public")
    more = plan_of(Request(data="x", delta=1e-5, iterations=4, step=1.0, person="p", person_rows=7), facts)
    assert more.derived.sensitivity.l2 == pytest.approx(planned(person="p").derived.sensitivity.l2, rel=1e-2)


def test_programs_that_make_vectors_of_persons_say_how_many_records_they_take() -> None:
    plan = Plan.create(
        owners=3, dimension=4, clip=1.0, records=(50, 50, 50), neighbours="person", person_rows=5, delta=1e-5
    )
    assert plan.derived.sensitivity.l2 == pytest.approx(2.0 * 5 / 50, rel=0.01)
    good = Limits(neighbours="person", records=50, person_rows=5)
    good.check_owner(plan, 0, vectors=True)
    for limits in (replace(good, person_rows=None), replace(good, person_rows=6), replace(good, records=None)):
        with pytest.raises(UsageError):
            limits.check_owner(plan, 0, vectors=True)
