"""Limits: what a process takes part in, whoever made the plan; and what it says before it does."""

import json
import math
import random
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from scipy.optimize import brentq
from scipy.stats import norm

import dpmpc
from dpmpc.aggregation.asked import AGREED, Attempt, data_digest
from dpmpc.aggregation.beginning import attempt_of
from dpmpc.aggregation.frames import OVER, RUNNING
from dpmpc.aggregation.guarantee import NEIGHBOURS_BY_STRENGTH, promise_of
from dpmpc.aggregation.limits import NO_LIMITS, Limits, taking_part, true_epsilon
from dpmpc.aggregation.owner_client import OwnerClient
from dpmpc.aggregation.plan import Plan
from dpmpc.data.schema import Labels, Numeric, Schema
from dpmpc.errors import UsageError
from dpmpc.runs.planning import Facts, plan_of
from dpmpc.runs.request import Request

COLUMNS = tuple(Numeric(name, 0.0, 1.0) for name in "abcd")


def plan(bounds: Any = "public", **changes: Any) -> Plan:
    """The plan of a training run that an organisation would take part in."""
    schema = Schema(COLUMNS, Labels("outcome", ("1",), ("0",)), bounds=bounds)
    asked: dict[str, Any] = {"owners": 3, "epsilon": 1.0, "delta": 1e-5, "iterations": 20, **changes}
    facts = Facts("records", "logistic", 5, (40, 60, 50), bounds, schema.to_json())
    return plan_of(Request(run_id="r", data="synthetic", **asked), facts)


def refusal(limits: Limits, of: Plan) -> str:
    """Why an organisation with these limits does not take part."""
    with pytest.raises(UsageError) as caught:
        limits.check(of)
    text = str(caught.value)
    assert "\n" not in text and text.count(";") >= 2, text
    return text


# -- what holds for everybody ------------------------------------------------------------------------------------------
def test_a_good_plan_needs_no_limits() -> None:
    for good in (plan(), plan(method="output", law="laplace", delta=None, iterations=None), plan(neighbours="owner")):
        NO_LIMITS.check(good)


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"threshold": 0}, "accept it with -T 0"),
        ({"parties": 1, "threshold": 0}, "accept it with -T 0"),
        ({"calibration": "paper", "epsilon": 10.0, "delta": 1e-3, "iterations": 1500}, "accounts to"),
        ({"scale": 0.0}, "--epsilon inf"),
        ({"scale": 0.01}, "states no epsilon"),
        ({"sampler": "box-muller"}, "no proved law"),
        ({"bounds": "data"}, "read off records"),
        ({"engine": "clear"}, "in the clear"),
    ],
)
def test_what_nobody_takes_part_in_unasked(changes: dict[str, Any], named: str) -> None:
    assert named in refusal(NO_LIMITS, plan(**changes))


def test_what_is_said_to_be_enough_is_enough() -> None:
    Limits(threshold=0).check(plan(threshold=0))
    Limits(epsilon=math.inf).check(plan(scale=0.0))
    Limits(assumptions=True).check(plan(sampler="box-muller"))
    Limits(assumptions=True).check(plan(bounds="data"))
    loose = plan(calibration="paper", epsilon=10.0, delta=1e-3, iterations=1500)
    true = true_epsilon(loose)
    assert true > 11
    Limits(epsilon=true).check(loose)
    refusal(Limits(epsilon=true * 0.999), loose)


# -- limits ------------------------------------------------------------------------------------------------------------
def test_each_limit_refuses_what_exceeds_it_and_only_that() -> None:
    one = plan(data_id="ward 7")
    digest = one.schema_digest
    assert digest is not None
    cases = [
        (Limits(epsilon=1.0), Limits(epsilon=0.99), "the limit is 0.99"),
        (Limits(delta=1e-5), Limits(delta=1e-6), "at delta 1e-06"),
        (Limits(threshold=1), Limits(threshold=2), "2 parties together must learn nothing"),
        (Limits(neighbours="record"), Limits(neighbours="owner"), "--neighbours"),
        (Limits(data_id="ward 7"), Limits(data_id="ward 8"), "called 'ward 8'"),
        (Limits(schema=digest), Limits(schema="0" * 64), "the schema 0000"),
    ]
    for kept, exceeded, named in cases:
        kept.check(one)
        assert named in refusal(exceeded, one)
    Limits(epsilon=0.8, delta=1e-3).check(one)  # the same noise, at another delta
    Limits(neighbours="record").check(plan(neighbours="owner"))  # more than was asked for


def test_two_limits_together_are_the_stricter_of_both() -> None:
    a = Limits(epsilon=1.0, threshold=0, neighbours="owner", budget=(3.0, 1e-5))
    b = Limits(epsilon=2.0, delta=1e-6, threshold=1, neighbours="record", budget=(2.0, 1e-4), data_id="x")
    both = Limits(
        epsilon=1.0, delta=1e-6, threshold=1, neighbours="owner", budget=(2.0, 1e-5), data_id="x", assumptions=False
    )
    assert a.also(b) == b.also(a) == both
    with pytest.raises(UsageError, match="name the same"):
        b.also(Limits(data_id="y"))


def test_limits_in_a_file(tmp_path: Path) -> None:
    file = tmp_path / "accept.toml"
    file.write_text('epsilon = 1.0\ndelta = 1e-5\nthreshold = 1\nneighbours = "record"\ndata_id = "ward 7"\n')
    assert Limits.read(file) == Limits(epsilon=1.0, delta=1e-5, threshold=1, neighbours="record", data_id="ward 7")
    file.write_text("budget_epsilon = 1.0\nbudget_delta = 1e-5\nassumptions = true\n")
    assert Limits.read(file) == Limits(budget=(1.0, 1e-5), assumptions=True)
    for text, named in (
        ("epsilom = 1.0", "epsilon"),
        ('epsilon = "1"', "epsilon"),
        ("epsilon = -1.0", "epsilon"),
        ("epsilon = nan", "epsilon"),
        ("delta = 2.0", "delta"),
        ('neighbours = "ward"', "neighbours"),
        ("budget_epsilon = 1.0", "budget_delta"),
        ("epsilon = ", "accept"),
    ):
        file.write_text(text)
        with pytest.raises(UsageError, match=named) as caught:
            Limits.read(file)
        assert "\n" not in str(caught.value)
    with pytest.raises(UsageError, match="check the path"):
        Limits.read(tmp_path / "none.toml")


def test_what_is_taken_part_in_is_said_whole() -> None:
    text = "\n".join(taking_part(plan(), ["a:1", "b:2", "c:3"]))
    for part in (
        "epsilon = 1,",
        "delta = 1e-05",
        "3 parties, any 1",
        "a:1, b:2, c:3",
        "20 releases",
        "outcome from a, b",
    ):
        assert part in text
    assert plan().schema_digest[:16] in text  # type: ignore[index]
    assert "guarantee, if ranges" in "\n".join(taking_part(plan(bounds="data")))
    assert "engine clear" in "\n".join(taking_part(plan(engine="clear")))


def test_the_public_interface_holds_plans_against_limits(tmp_path: Path) -> None:
    made = dpmpc.Plan.create(owners=4, dimension=3, clip=1.0, epsilon=2.0, delta=1e-5, releases=5)
    nowhere = ["127.0.0.1:1", "127.0.0.1:2", "127.0.0.1:3"]
    with pytest.raises(dpmpc.UsageError, match="the limit is 1"):
        dpmpc.Owner(made, 0, nowhere, limits=dpmpc.Limits(epsilon=1.0))
    with pytest.raises(dpmpc.UsageError, match="the limit is 1"):
        dpmpc.Party(made, 0, nowhere, out=tmp_path / "run", limits=dpmpc.Limits(epsilon=1.0))
    with pytest.raises(dpmpc.UsageError, match="-T 0"):
        dpmpc.Party(
            dpmpc.Plan.create(owners=4, dimension=3, clip=1.0, delta=1e-5, threshold=0), 0, nowhere, out=tmp_path
        )
    assert not (tmp_path / "run").exists()


def test_a_budget_among_the_limits_binds_or_is_refused(tmp_path: Path) -> None:
    nowhere = ["127.0.0.1:1", "127.0.0.1:2", "127.0.0.1:3"]
    made = dpmpc.Plan.create(owners=4, dimension=3, clip=1.0, epsilon=2.0, delta=1e-5, data_id="ward 7")
    within = dpmpc.Limits(budget=(1.9, 1e-5), data_id="ward 7")
    party = dpmpc.Party(made, 0, nowhere, out=tmp_path / "run", limits=within)
    with pytest.raises(dpmpc.UsageError, match="the budget for data ward 7"):  # 2 does not fit into 1.9
        party.run()
    assert not any(path.stat().st_size for path in tmp_path.rglob("ledger_0.jsonl"))
    with pytest.raises(dpmpc.UsageError, match="add data_id"):
        dpmpc.Party(made, 0, nowhere, out=tmp_path / "run", limits=dpmpc.Limits(budget=(3.0, 1e-5)))
    with pytest.raises(dpmpc.UsageError, match="give it to Party"):
        dpmpc.Owner(made, 0, nowhere, limits=within)


def test_an_organisation_can_insist_on_checked_parties(tmp_path: Path) -> None:
    limits = tmp_path / "accept.toml"
    limits.write_text('security = "active"\n')
    insists = Limits.read(limits)
    assert Limits(security="semi-honest").also(insists).security == "active"
    with pytest.raises(UsageError, match="must be checked, by --security active; the plan's backend is sharing"):
        insists.check(plan(parties=3, threshold=1))
    checked = plan(parties=3, threshold=1, security="active")
    insists.check(checked)
    assert any("any one of 3 may cheat" in line for line in taking_part(checked))


def test_what_one_party_says_of_others_is_not_believed_where_parties_may_cheat() -> None:
    """Nor of what was opened before: over several machines a checked run has one attempt."""
    checked = plan(parties=3, threshold=1, security="active")
    assert attempt_of(checked) == Attempt() and attempt_of(plan(parties=3, threshold=1)) == AGREED
    excused: list[int] = []
    meeting: Any = SimpleNamespace(here={}, missing=lambda: {1, 2}, excuse=excused.append)
    OwnerClient(checked, attempt_of(checked))._hear(meeting, 0, (RUNNING, frozenset({1, 2})))
    OwnerClient(checked, attempt_of(checked))._hear(meeting, 0, (OVER, frozenset()))
    assert excused == []
    OwnerClient(plan(parties=3, threshold=1), AGREED)._hear(meeting, 0, (RUNNING, frozenset({2})))
    assert excused == [2]


# -- every plan that anybody could write -------------------------------------------------------------------------------
def gaussian_epsilon(mu: float, delta: float) -> float:
    """The epsilon of a Gaussian mechanism of mean shift `mu`, by Balle and Wang's formula and root finding: no code of
    the accountant."""

    def gap(epsilon: float) -> float:
        return float(norm.cdf(mu / 2 - epsilon / mu) - math.exp(epsilon + norm.logcdf(-mu / 2 - epsilon / mu)) - delta)

    return 0.0 if gap(0.0) <= 0 else float(brentq(gap, 0.0, mu * mu / 2 + 40 * mu + 10, xtol=1e-12))


def independent_epsilon(of: Plan, delta: float) -> float:
    """What all releases come to, from sizes, clip and noise scale alone, without failures and discreteness (which only
    add to it): a lower bound on what may be said."""
    m, n = of.owners, sum(of.sizes)
    if of.neighbours == "record":
        each = 2.0 / (m * min(of.sizes)) if of.weights == "equal" else 2.0 / n
        if of.learning.method == "output":
            each /= of.learning.lam
    else:
        widest = 2.0 if of.learning.method == "gradient" else 2.0 * of.clip  # 2G
        each = widest * (1.0 / m if of.weights == "equal" else max(of.sizes) / n)
    scale = of.derived.sampler.scale * 2.0**-of.grid.bits / (m if of.weights == "equal" else n)
    if of.law == "laplace":
        pure = of.releases * math.sqrt(of.dimension) * each / scale
        if delta == 0:
            return pure
        if of.releases == 1:  # of the event that noise is below 0 in every coordinate: 2^-d (1 - e^(epsilon - pure))
            return max(0.0, pure + math.log1p(-min(delta * 2.0**of.dimension, 1 - 1e-9)))
        rho = of.releases * (math.sqrt(of.dimension) * each / scale) ** 2 / 2  # a bound of its own, and no lower one
        return min(pure, rho)
    return gaussian_epsilon(math.sqrt(of.releases) * each / scale, delta)


def drawn(rng: random.Random) -> tuple[Plan, Limits]:
    """A random plan, as its author could have written it, and random limits."""
    method = rng.choice(["gradient", "output"])
    law = rng.choice(["gaussian", "gaussian", "laplace"])
    delta = None if law == "laplace" and rng.random() < 0.7 else 10 ** rng.uniform(-9, -2)
    parties = rng.choice([1, 2, 3, 5])
    made = plan(
        bounds=rng.choice(["public", "public", "data"]),
        method=method,
        law=law,
        delta=delta,
        epsilon=10 ** rng.uniform(-1.5, 1.2),
        iterations=rng.choice([1, 3, 50, 1500]) if method == "gradient" else None,
        weights=rng.choice(["equal", "size"]),
        neighbours=rng.choice(["record", "record", "owner"]),
        calibration=rng.choice(["tight", "tight", "paper"]) if (law == "gaussian" or method == "gradient") else "tight",
        parties=parties,
        threshold=rng.randrange((parties + 1) // 2),
        scale=rng.choice([None, None, None, 0.0, 10 ** rng.uniform(-4, 1)]),
    )
    limits = Limits(
        epsilon=rng.choice([None, 10 ** rng.uniform(-1.5, 1.2), math.inf]),
        delta=rng.choice([None, None, 10 ** rng.uniform(-9, -2)]),
        threshold=rng.choice([None, 0, 1, 2]),
        neighbours=rng.choice([None, "record", "owner"]),
        data_id=rng.choice([None, None, "records", "others"]),
        assumptions=rng.random() < 0.5,
        schema=rng.choice([None, None, None, "0" * 64]),
    )
    return made, limits


def test_nobody_takes_part_in_less_privacy_than_its_limits_or_is_told_of_more() -> None:
    """Random plans, schemas and limits; what is accepted and what is printed against an independent computation.

    60 here, `python -m tests.aggregation.test_limits` does 10,000."""
    taken = 0
    rng = random.Random(10)
    for _ in range(60):
        taken += check_one(rng)
    assert 3 < taken < 57  # neither all nor none


def check_one(rng: random.Random) -> bool:
    """Draws a case and checks it; whether the plan was taken part in."""
    while True:
        try:
            made, limits = drawn(rng)
            break
        except UsageError:
            continue  # a plan that cannot be made is none
    promise = promise_of(made)
    if math.isinf(promise.epsilon):
        assert made.scale is not None and "no promise" in str(promise)
    else:
        least = independent_epsilon(made, promise.delta)
        assert promise.epsilon >= least * (1 - 1e-6), (made, promise, least)
        assert str(promise).startswith("if ") == (made.bounds == "data")
    try:
        limits.check(made)
    except UsageError as error:
        assert "\n" not in str(error)
        return False
    assert made.threshold >= (1 if limits.threshold is None else limits.threshold) and made.parties
    assert NEIGHBOURS_BY_STRENGTH[made.neighbours] >= NEIGHBOURS_BY_STRENGTH[limits.neighbours or "record"]
    assert limits.data_id is None or made.data_id == data_digest(limits.data_id)
    assert limits.schema is None or made.schema_digest == limits.schema
    if limits.epsilon == math.inf:
        return True
    assert limits.assumptions or made.bounds == "public"
    epsilon = made.epsilon if limits.epsilon is None else limits.epsilon
    delta = made.delta if limits.delta is None else limits.delta
    least = independent_epsilon(made, delta)
    assert least <= epsilon * (1 + 1e-6), (made, limits, least)
    return True


def test_a_plan_whose_text_was_changed_is_refused_or_kept() -> None:
    """Single values of a plan's text put to others: refused in one line, or another plan that keeps what it says."""
    rng = random.Random(4)
    text = plan().to_text()
    values = [0, -1, 5.0, -45, math.inf, 1e300, "", "paper", True, None, [], {}, 1 << 60, 1e-30]
    changed = 0
    for _ in range(150):
        value = json.loads(text)
        part = rng.choice([value, value["learning"], value["schema"], value["schema"]["columns"][0]])
        part[rng.choice(sorted(part))] = rng.choice(values)
        try:
            made = Plan.from_text(json.dumps(value))
            NO_LIMITS.check(made)
        except UsageError as error:
            assert "\n" not in str(error)
            continue
        changed += 1
        least = independent_epsilon(made, made.delta)
        assert least <= made.epsilon * (1 + 1e-6)
    assert changed > 0


def test_a_lower_bound_that_is_no_bound_would_be_seen() -> None:
    """The independent computation is tight enough to catch 1 % less noise."""
    good = plan()
    assert independent_epsilon(good, good.delta) == pytest.approx(good.epsilon, rel=0.02)
    worse = replace(
        good, scale=0.99 * good.derived.scale_steps * good.grid.step / good.divisor, grid_bits=good.grid.bits
    )
    assert independent_epsilon(worse, worse.delta) > 1.005 * independent_epsilon(good, good.delta)
    refusal(Limits(epsilon=good.epsilon), worse)


if __name__ == "__main__":
    generator = random.Random(1)
    print(sum(check_one(generator) for _ in range(10_000)), "of 10,000 random plans were taken part in; no fault")
