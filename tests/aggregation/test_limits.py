"""Limits: what a process takes part in, whoever made the plan; and what it says before it does."""

import json
import math
import random
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import dpmpc
from dpmpc.aggregation.owner.client import OwnerClient
from dpmpc.aggregation.plan.asked import AGREED, Attempt
from dpmpc.aggregation.plan.guarantee import promise_of
from dpmpc.aggregation.plan.limits import NO_LIMITS, Limits, true_epsilon
from dpmpc.aggregation.plan.one_line import is_one_line, one_line
from dpmpc.aggregation.plan.plan import Plan
from dpmpc.aggregation.plan.settings import GROUPS, UNITS
from dpmpc.aggregation.plan.shown import taking_part
from dpmpc.aggregation.wire.frames import OVER, RUNNING
from dpmpc.errors import UsageError, owner_text
from dpmpc.planning.request import Request
from dpmpc.planning.training import facts_of_schema, plan_of
from dpmpc.privacy import composition, ledgers
from dpmpc.privacy.data_names import data_digest
from dpmpc.privacy.entry import Entry, bare
from dpmpc.records.schema import Labels, Numeric, Schema
from tests.aggregation.histories import check_schema, drawn_history, drawn_schema, least_epsilon
from tests.refusals import breaks, refuses

COLUMNS = tuple(Numeric(name, 0.0, 1.0) for name in "abcd")


def plan(bounds: Any = "public", schema: Schema | None = None, **changes: Any) -> Plan:
    """The plan of a training run that an organisation would take part in."""
    schema = schema or Schema(COLUMNS, Labels("outcome", ("1",), ("0",)), bounds=bounds)
    asked: dict[str, Any] = {"owners": 3, "epsilon": 1.0, "delta": 1e-5, "iterations": 20, **changes}
    facts = facts_of_schema("records", schema, (40, 60, 50))
    return plan_of(Request(run_id="r", data="synthetic", **asked), facts)


def refusal(limits: Limits, of: Plan) -> str:
    """Why an organisation with these limits does not take part."""
    with pytest.raises(UsageError) as caught:
        limits.check(of)
    text = owner_text(caught.value)
    assert "\n" not in text and text.count(";") >= 2, text
    return text


# -- what holds for everybody ------------------------------------------------------------------------------------------
def test_a_good_plan_needs_no_limits() -> None:
    for good in (plan(), plan(method="output", law="laplace", delta=None, iterations=None), plan(neighbours="owner")):
        NO_LIMITS.check(good)


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"threshold": 0}, "accept it with threshold=0"),
        ({"parties": 1, "threshold": 0}, "accept it with threshold=0"),
        ({"calibration": "paper", "epsilon": 10.0, "delta": 1e-3, "iterations": 1500}, "accounts to"),
        ({"scale": 0.0}, "epsilon=inf"),
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
    Limits(epsilon=true, delta=1e-3).check(loose)
    refusal(Limits(epsilon=true * 0.999, delta=1e-3), loose)


# -- limits ------------------------------------------------------------------------------------------------------------
def test_each_limit_refuses_what_exceeds_it_and_only_that() -> None:
    one = plan(data_id="ward 7")
    digest = one.schema_digest
    assert digest is not None
    cases = [
        (Limits(epsilon=1.0, delta=1e-5), Limits(epsilon=0.99, delta=1e-5), "the limit is 0.99"),
        (Limits(delta=1e-5), Limits(delta=1e-6), "at delta 1e-06"),
        (Limits(threshold=1), Limits(threshold=2), "threshold must be at least 2; the plan's is 1"),
        (Limits(neighbours="record"), Limits(neighbours="owner"), "neighbours"),
        (Limits(data_id="ward 7"), Limits(data_id="ward 8"), "called 'ward 8'"),
        (Limits(schema=digest), Limits(schema="0" * 64), "the schema 0000"),
    ]
    for kept, exceeded, named in cases:
        kept.check(one)
        assert named in refusal(exceeded, one)
    Limits(epsilon=0.8, delta=1e-3).check(one)  # the same noise, at another delta
    Limits(neighbours="record").check(plan(neighbours="owner"))  # more than was asked for


def test_two_limits_together_are_the_stricter_of_both() -> None:
    a = Limits(epsilon=1.0, delta=1e-4, threshold=0, neighbours="owner", budget="3,1e-5")
    b = Limits(epsilon=2.0, delta=1e-6, threshold=1, neighbours="record", budget="2,1e-4", data_id="x")
    both = Limits(epsilon=1.0, delta=1e-6, threshold=1, neighbours="owner", budget="2.0,1e-05", data_id="x")
    assert a.also(b) == b.also(a) == both
    with refuses("together", "x", "y"):
        b.also(Limits(data_id="y"))


def test_limits_in_a_file(tmp_path: Path) -> None:
    file = tmp_path / "accept.toml"
    file.write_text('epsilon = 1.0\ndelta = 1e-5\nthreshold = 1\nneighbours = "record"\ndata_id = "ward 7"\n')
    assert Limits.read(file) == Limits(epsilon=1.0, delta=1e-5, threshold=1, neighbours="record", data_id="ward 7")
    file.write_text('budget = "1,1e-5"\nassumptions = true\n')
    assert Limits.read(file) == Limits(budget="1,1e-5", assumptions=True)
    for text, broken in (
        ("epsilom = 1.0", breaks("file", "epsilom", "epsilon")),
        ('epsilon = "1"', breaks("file", "epsilon", "accept.toml")),
        ("epsilon = -1.0", breaks("file", -1, setting="epsilon")),
        ("epsilon = nan", breaks("file", "nan", setting="epsilon")),
        ("delta = 2.0", breaks("file", 2, setting="delta")),
        ('neighbours = "ward"', breaks("file", "ward", setting="neighbours")),
        ('budget = "1.0"', breaks("file", "1.0", setting="budget")),
        ("epsilon = ", breaks("file", "accept.toml")),
    ):
        file.write_text(text)
        with refuses(broken) as caught:
            Limits.read(file)
        assert "\n" not in owner_text(caught.value)
    with refuses("path"):
        Limits.read(tmp_path / "none.toml")


def test_what_is_taken_part_in_is_said_whole() -> None:
    text = "\n".join(taking_part(plan(), ["a:1", "b:2", "c:3"]))
    for part in (
        "epsilon = 1,",
        "delta = 1e-05",
        "3 parties, of which none alone learns anything",
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
    with refuses("limits", 1):
        dpmpc.Owner(made, 0, nowhere, limits=dpmpc.Limits(epsilon=1.0, delta=1e-5))
    with refuses("limits", 1):
        dpmpc.Party(made, 0, nowhere, out=tmp_path / "run", limits=dpmpc.Limits(epsilon=1.0, delta=1e-5))
    with refuses("limits", "threshold=0", setting="threshold"):
        dpmpc.Party(
            dpmpc.Plan.create(owners=4, dimension=3, clip=1.0, delta=1e-5, threshold=0), 0, nowhere, out=tmp_path
        )
    assert not (tmp_path / "run").exists()


def test_a_budget_among_the_limits_binds_or_is_refused(tmp_path: Path) -> None:
    nowhere = ["127.0.0.1:1", "127.0.0.1:2", "127.0.0.1:3"]
    made = dpmpc.Plan.create(owners=4, dimension=3, clip=1.0, epsilon=2.0, delta=1e-5, data_id="ward 7")
    within = dpmpc.Limits(budget="1.9,1e-5", data_id="ward 7")
    party = dpmpc.Party(made, 0, nowhere, out=tmp_path / "run", limits=within)
    with refuses("budget", 7, setting="budget"):  # 2 does not fit into 1.9
        party.run()
    assert not any(path.stat().st_size for path in tmp_path.rglob("ledger_0.jsonl"))
    with refuses("missing", "data_id"):
        dpmpc.Party(made, 0, nowhere, out=tmp_path / "run", limits=dpmpc.Limits(budget="3,1e-5"))
    with refuses("budget", 7, setting="budget"):  # an owner keeps a ledger of its own
        dpmpc.Owner(made, 0, nowhere, limits=within)


def test_an_organisation_can_insist_on_checked_parties(tmp_path: Path) -> None:
    limits = tmp_path / "accept.toml"
    limits.write_text('security = "active"\n')
    insists = Limits.read(limits)
    assert Limits(security="semi-honest").also(insists).security == "active"
    with refuses("limits", setting="security"):
        insists.check(plan(parties=3, threshold=1))
    checked = plan(parties=3, threshold=1, security="active")
    insists.check(checked)
    assert any("any one of 3 may cheat" in line for line in taking_part(checked))


def test_what_one_party_says_of_others_is_not_believed_where_parties_may_cheat() -> None:
    """Nor of what was opened before: over several machines a checked run has one attempt."""
    checked = plan(parties=3, threshold=1, security="active")
    assert checked.attempt == Attempt() and plan(parties=3, threshold=1).attempt == AGREED
    excused: list[int] = []
    rendezvous: Any = SimpleNamespace(here={}, missing=lambda: {1, 2}, excuse=excused.append)
    OwnerClient(checked, checked.attempt)._hear(rendezvous, 0, (RUNNING, frozenset({1, 2})))
    OwnerClient(checked, checked.attempt)._hear(rendezvous, 0, (OVER, frozenset()))
    assert excused == []
    OwnerClient(plan(parties=3, threshold=1), AGREED)._hear(rendezvous, 0, (RUNNING, frozenset({2})))
    assert excused == [2]


# -- facts about one owner ---------------------------------------------------------------------------------------------
def vectors_plan(**changes: Any) -> Plan:
    return dpmpc.Plan.create(**{"owners": 3, "dimension": 2, "clip": 1.0, "delta": 1e-5, **changes})


@pytest.mark.parametrize(
    ("limits", "made", "named"),
    [
        ({}, {"records": (100, 100, 100)}, "the unit is the owner's whole vector unless limits say otherwise"),
        ({}, {"sensitivity": 1e-6}, "accept it with neighbours=stated and sensitivity"),
        ({"neighbours": "record"}, {"records": (100, 100, 100)}, "accept it with records=N, your number of them"),
        (
            {"neighbours": "record", "records": 100},
            {"records": (10**6,) * 3, "delta": 1e-9},
            "has 100 records; the plan says 1000000",
        ),
        ({"neighbours": "stated", "sensitivity": 0.5}, {"sensitivity": 1e-6}, "sensitivity must be at least 0.5"),
        ({"neighbours": "record"}, {"sensitivity": 0.5}, "must hold for neighbours by record"),
        ({"epsilon": 1.0, "delta": 1e-5}, {"delta": 0.3}, "the limit is 1 at delta 1e-05"),
        ({}, {"delta": 0.34}, "delta = 0.34 is not below 1/n = 0.333 for n = 3"),
        ({}, {"security_bits": 1.0}, "security_bits must be at least 40"),
        ({"sampler": ("discrete",)}, {"sampler": "box-muller"}, "sampler must be one of discrete"),
        ({"releases": 3}, {"releases": 4}, "releases must be at most 3; the plan's is 4"),
        ({"min_owners": 3}, {"min_owners": 2}, "min_owners must be at least 3; the plan's is 2"),
    ],
)
def test_what_a_plan_says_of_an_owner_is_not_believed(limits: dict[str, Any], made: dict[str, Any], named: str) -> None:
    of = vectors_plan(**made)
    with pytest.raises(UsageError) as caught:
        Limits(**limits).check_owner(of, 1, vectors=True)
    assert named in owner_text(caught.value) and "\n" not in owner_text(caught.value)


def test_the_sentence_says_what_rests_on_the_callers_word() -> None:
    for settings, stated in (
        (
            {"records": (5, 5, 5), "delta": 1e-3},
            "in means of records' vectors clipped to norm 1, as the caller states; ",
        ),
        ({"sensitivity": 0.5}, "by at most 0.5 in L2 norm, as the caller states"),
        ({}, "one owner's whole vector replaced; "),
    ):
        assert stated in promise_of(vectors_plan(**settings)).sentence
    assert "as the caller states" not in promise_of(plan()).sentence


def test_an_owner_that_says_what_its_vectors_are_takes_part() -> None:
    NO_LIMITS.check_owner(vectors_plan(), 0, vectors=True)
    Limits(neighbours="record", records=100).check_owner(vectors_plan(records=(100, 7, 9)), 0, vectors=True)
    Limits(neighbours="presence", records=7).check_owner(vectors_plan(records=(100, 7, 9)), 1, vectors=True)
    Limits(neighbours="stated", sensitivity=0.5).check_owner(vectors_plan(sensitivity=0.5), 2, vectors=True)
    with refuses("limits"):
        NO_LIMITS.check_owner(plan(), 0, vectors=True)
    NO_LIMITS.check_owner(plan(), 0)
    with refuses("limits", 41, 40, setting="records"):
        Limits(records=41).check_owner(plan(), 0)
    with refuses("together", 1, setting="delta"):
        Limits(epsilon=1.0)


# -- every plan that anybody could write -------------------------------------------------------------------------------
def each_over_scale(of: Plan) -> float:
    """How far one unit moves the opened mean, in the norm of the law and in units of its noise, from sizes, clip and
    noise scale alone; without rounding, which adds to it."""
    m, n = of.owners, sum(of.sizes)
    if of.neighbours == "record":
        each = 2.0 / (m * min(of.sizes)) if of.weights == "equal" else 2.0 / n
        if of.learning.method == "output":
            each /= of.learning.lam
    else:
        widest = 2.0 if of.learning.method == "gradient" else 2.0 * of.clip  # 2G
        each = widest * (1.0 / m if of.weights == "equal" else max(of.sizes) / n)
    scale = of.derived.sampler.scale * 2.0**-of.grid.bits / (m if of.weights == "equal" else n)
    return (math.sqrt(of.dimension) if of.law == "laplace" else 1.0) * each / scale if scale else math.inf


def independent_epsilon(of: Plan, delta: float) -> float:
    """What all releases come to, from sizes, clip and noise scale alone, without failures and discreteness (which only
    add to it): a lower bound on what may be said."""
    ratio = each_over_scale(of)
    if of.law == "laplace":  # by their epsilons alone; where there is a delta, by coordinates too
        return best_of_laplace(0.0, {ratio: of.releases}, of.releases * ratio**2 / of.dimension, delta)
    return least_epsilon(of.releases * ratio**2, {}, delta)


def best_of_laplace(mu2: float, losses: dict[float, int], squared: float, delta: float) -> float:
    """The least of three: by the epsilons of pure releases alone, and for noise on coordinates by the sum of their
    squared shifts, as zCDP and as Gaussian noise of pi/2 as much."""
    whole = least_epsilon(mu2, losses, delta)
    if not 0 < delta < 1 or not squared or not math.isfinite(squared + mu2):
        return whole
    rho = (mu2 + squared) / 2
    return min(
        whole, rho + 2 * math.sqrt(rho * math.log(1 / delta)), least_epsilon(mu2 + math.pi / 2 * squared, {}, delta)
    )


def drawn(rng: random.Random) -> tuple[Plan, Limits]:
    """A random plan, as its author could have written it, and random limits."""
    method = rng.choice(["gradient", "output"])
    law = rng.choice(["gaussian", "gaussian", "laplace"])
    delta = None if law == "laplace" and rng.random() < 0.7 else 10 ** rng.uniform(-9, -3)
    parties = rng.choice([1, 2, 3, 5])
    made = plan(
        schema=drawn_schema(rng),
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
        scale=rng.choice([None, None, None, None, 0.0, 10 ** rng.uniform(-4, 1)]),
    )
    delta_too = rng.random() < 0.4
    limits = Limits(
        epsilon=rng.choice([None, 10 ** rng.uniform(-1.5, 1.2), math.inf]) if delta_too else None,
        delta=rng.choice([0.0, 10 ** rng.uniform(-9, -2)]) if delta_too else None,
        threshold=rng.choice([None, 0, 1, 2]),
        neighbours=rng.choice([None, "record", "owner"]),
        data_id=rng.choice([None, None, "records", "others"]),
        assumptions=rng.random() < 0.5,
        schema=rng.choice([None, None, None, "0" * 64]),
    )
    return made, limits


def test_nobody_takes_part_in_less_privacy_than_its_limits_or_is_told_of_more() -> None:
    """Random plans, schemas, limits and ledgers of earlier runs; what is accepted, admitted and printed against an
    independent computation.

    40 here, `python -m tests.aggregation.test_limits` does 10,000."""
    rng = random.Random(10)
    cases = [check_one(rng) for _ in range(40)]
    assert 3 < sum(taken for taken, _ in cases) < 37  # neither all nor none
    assert 3 < sum(admitted for _, admitted in cases) < 37


def check_history(rng: random.Random, made: Plan) -> bool:
    """Ledgers of earlier runs before the plan, and a budget: what is counted, printed and let through. Whether the plan
    was let through."""
    history = drawn_history(rng, made.data_id, (), Path("ledgers"))
    lines = [entry for entry in ledgers.merge(history.books) if made.data_id in entry.data]
    assert Counter(bare(entry) for entry in lines) == Counter(bare(entry) for entry in history.spent)
    delta, neighbours = 10 ** rng.uniform(-9, -2), rng.choice(["record", "owner"])
    mu2, losses = history.price(neighbours)
    said = composition.spent(lines, made.data_id, delta, neighbours)
    assert said.releases == len(history.spent)
    assert said.epsilon >= least_epsilon(mu2, losses, delta) * (1 - 1e-6), (history, said)
    simple = history.simple(neighbours, delta)
    assert said.epsilon <= simple * (1 + 1e-4) + 1e-9, (history, neighbours, said, simple)
    epsilon = 10 ** rng.uniform(-0.5, 2.5)
    mechanism = made.derived.mechanism
    try:
        planned = Entry("planned", 0, (made.data_id,), mechanism, 1, 1.0, 0.0, neighbours=made.neighbours)
        composition.require_budget(lines, planned, made.releases, (epsilon, delta))
    except UsageError as error:
        assert "\n" not in owner_text(error)
        return False
    assert mechanism.scale
    mu2, losses = history.price(made.neighbours)
    own = each_over_scale(made)
    squared = math.fsum(loss**2 * count for loss, count in losses.items())  # drawn alike in every norm
    if made.law == "laplace":
        losses[own] = losses.get(own, 0) + made.releases
        squared += made.releases * own**2 / made.dimension
    else:
        mu2 += made.releases * own**2
    assert best_of_laplace(mu2, losses, squared, delta) <= epsilon * (1 + 1e-6), (made, history, epsilon, delta)
    return True


def test_a_ledger_that_is_forgotten_or_counted_too_cheaply_would_be_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    made, merge, price = plan(), ledgers.merge, composition.mechanism_for
    for target, name, fault in (
        (ledgers, "merge", lambda books: merge(list(books)[1:])),
        (ledgers, "merge", lambda books: [*merge(books), *merge(list(books)[:1])]),
        (
            composition,
            "mechanism_for",
            lambda e, n: (m := price(e, n)) and replace(m, sensitivity=m.sensitivity * 0.99),
        ),
    ):
        with monkeypatch.context() as patched:
            patched.setattr(target, name, fault)
            rng = random.Random(3)
            with pytest.raises(AssertionError):
                for _ in range(60):
                    check_history(rng, made)


def check_one(rng: random.Random) -> tuple[bool, bool]:
    """Draws a case and checks it; whether the plan was taken part in, and whether it fitted into the budget."""
    while True:
        try:
            made, limits = drawn(rng)
            break
        except UsageError:
            continue  # a plan that cannot be made is none
    assert made.schema is not None
    check_schema(Schema.from_json(made.schema), rng.getrandbits(32))
    return check_limits(made, limits), check_history(rng, made)


def check_limits(made: Plan, limits: Limits) -> bool:
    """What is printed of a plan, and whether it is taken part in, rightly."""
    promise = promise_of(made)
    if math.isinf(promise.epsilon):
        free = made.scale is not None or made.calibration == "paper"  # whose noise was not made for the epsilon
        assert free and "no promise" in str(promise)
    else:
        least = independent_epsilon(made, promise.delta)
        assert promise.epsilon >= least * (1 - 1e-6), (made, promise, least)
        assert str(promise).startswith("if ") == (made.bounds == "data")
    try:
        limits.check(made)
    except UsageError as error:
        assert "\n" not in owner_text(error)
        return False
    assert made.threshold >= (1 if limits.threshold is None else limits.threshold) and made.parties
    assert UNITS.index(made.neighbours) >= UNITS.index(limits.neighbours or "record")
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
        groups = [value[key] for key in GROUPS]
        schema = value["schema"]
        part = rng.choice([value, *groups, value["source"]["learning"], schema, schema["columns"][0]])
        part[rng.choice(sorted(part))] = rng.choice(values)
        try:
            made = Plan.from_text(json.dumps(value))
            NO_LIMITS.check(made)
        except UsageError as error:
            assert "\n" not in owner_text(error)
            continue
        changed += 1
        least = independent_epsilon(made, made.delta)
        assert least <= made.epsilon * (1 + 1e-6)
    assert changed > 0


@pytest.mark.parametrize(
    ("part", "key", "says"),
    [
        (None, "zz", "a plan has no key 'zz'; take it out, or"),
        (None, "first_release", "a plan has no key 'first_release'"),
        ("promise", "epsilom", "a plan's promise has no key 'epsilom'; did you mean 'epsilon'"),
        ("learning", "clips", "a plan's learning has no setting 'clips'"),
    ],
)
def test_a_key_that_no_plan_has_is_named(part: str | None, key: str, says: str) -> None:
    value = json.loads(plan().to_text())
    (value if part is None else value["source"][part] if part == "learning" else value[part])[key] = 1
    with pytest.raises(UsageError) as caught:
        Plan.from_text(json.dumps(value))
    assert (
        says in owner_text(caught.value)
        and "__init__" not in owner_text(caught.value)
        and "\n" not in owner_text(caught.value)
    )


def test_a_lower_bound_that_is_no_bound_would_be_seen() -> None:
    """The independent computation is tight enough to catch 1 % less noise."""
    good = plan()
    assert independent_epsilon(good, good.delta) == pytest.approx(good.epsilon, rel=0.02)
    worse = replace(
        good, scale=0.99 * good.derived.scale_steps * good.grid.step / good.divisor, grid_bits=good.grid.bits
    )
    assert independent_epsilon(worse, worse.delta) > 1.005 * independent_epsilon(good, good.delta)
    refusal(Limits(epsilon=good.epsilon, delta=good.delta), worse)


if __name__ == "__main__":  # [cases [seed]]
    asked = [int(word) for word in sys.argv[1:]]
    number, generator = (asked or [10_000])[0], random.Random((asked[1:] or [1])[0])
    found = [check_one(generator) for _ in range(number)]
    taken, admitted = (sum(column) for column in zip(*found, strict=True))
    print(f"{taken} of {number:,} random plans were taken part in, {admitted} fitted into a budget; no fault")


@pytest.mark.parametrize("text", ["a\nguarantee: epsilon = 0", "a\x1b[2Jb", "\u202eenilno", "a\u2028b", "\x9b2J"])
def test_no_text_of_a_plan_says_anything_but_itself_on_a_screen(tmp_path: Path, text: str) -> None:
    """Who plans could end a line and write a guarantee of its own below what a site reads before it takes part."""
    for name in ("run_id", "data", "data_id"):
        plan().write(tmp_path / "plan.json")
        value = json.loads((tmp_path / "plan.json").read_text())
        value[name] = text
        (tmp_path / "plan.json").write_text(json.dumps(value))
        with refuses("plan") as refused:
            Plan.read(tmp_path / "plan.json")
        assert is_one_line(owner_text(refused.value))
    schema = Schema((Numeric(f"dose{text}", 0.0, 1.0),), Labels("y", ("1",), ("0",)), bounds="public")
    shown = taking_part(plan(schema=schema))
    assert all(map(is_one_line, shown)) and any("dose" in line for line in shown)


def test_names_in_any_writing_are_shown_as_they_are() -> None:
    for text in ("Zürich", "病棟 4", "מחלקה", "قسم", "a\u00a0b", "क्षि"):
        assert is_one_line(text) and one_line(text) == text
    assert one_line("a\x1b[2J\u202eb") == "a\\x1b[2J\\u202eb"
