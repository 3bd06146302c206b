"""A plan holds what was asked; what follows from it each process derives itself, and both are in the digest."""

import json
import math
import re
from collections.abc import Callable
from dataclasses import replace
from inspect import getattr_static
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpmpc.aggregation.owner.encoding import encode
from dpmpc.aggregation.plan import derive
from dpmpc.aggregation.plan.asked import FIRST_ATTEMPT
from dpmpc.aggregation.plan.grid import Grid
from dpmpc.aggregation.plan.guarantee import promise_of
from dpmpc.aggregation.plan.limits import Limits
from dpmpc.aggregation.plan.plan import Plan
from dpmpc.aggregation.plan.settings import GROUPS
from dpmpc.aggregation.plan.spending import entry_of
from dpmpc.circuits.sampler import discrete_gaussian
from dpmpc.errors import UsageError, owner_text
from dpmpc.lazy import cached_property
from dpmpc.learning.survey_columns import Draft
from dpmpc.mpc.transport.channels import MOST_RELEASES, NOISE, OPENING, WARM_UP
from dpmpc.planning.request import Request
from dpmpc.planning.training import Facts, plan_of
from dpmpc.privacy.composition import require_budget
from dpmpc.privacy.gaussian import gaussian_delta
from dpmpc.privacy.laplace_law import LaplaceLaw
from dpmpc.privacy.law import LAWS, Law
from dpmpc.records.schema import Classes, Labels, Numeric, Range, Schema
from tests.privacy.pure_releases import pure_delta
from tests.refusals import in_one_line, refuses

SIZES = (40, 60, 50)
COLUMNS = tuple(Numeric(name, 0.0, 1.0) for name in "abcd")
SCHEMAS = {
    "logistic": Schema(COLUMNS, Labels("outcome", ("1",), ("0",))),
    "ridge": Schema(COLUMNS, Range("outcome", 0.0, 9.0)),
}
ONE_LINE = r"^[^\n;]+(;[^\n;]+)*; [^\n;]+$"


def planned(task: Any = "logistic", **changes: Any) -> Plan:
    """The plan of a training run on public facts."""
    asked: dict[str, Any] = {"owners": 3, "epsilon": 1.0, "delta": 1e-5, **changes}
    facts = Facts("records", task, 5, SIZES, "public", SCHEMAS[task].to_json())
    return plan_of(Request(run_id="r", data="synthetic", **asked), facts)


def created(**changes: Any) -> Plan:
    """The plan of a run on vectors."""
    asked: dict[str, Any] = {"owners": 3, "dimension": 5, "clip": 1.0, "epsilon": 1.0, "delta": 1e-5, "releases": 50}
    return Plan.create(**{"run_id": "r", **asked, **changes})


def bare() -> Plan:
    """The plan of a training run that maps no records: what a schema would say stands in it."""
    return replace(planned(), schema=None)


def digest(plan: Plan) -> bytes:
    return plan.digest(FIRST_ATTEMPT)


def test_openings_and_noise_have_channels_of_their_own() -> None:
    assert OPENING + MOST_RELEASES <= NOISE < WARM_UP
    assert MOST_RELEASES <= 1 << 18, "accounts count what is planned one by one: some 50 microseconds each"
    with refuses("range", setting="iterations"):
        planned(iterations=MOST_RELEASES + 1)
    with refuses("range", MOST_RELEASES, 1):
        replace(created(), releases=MOST_RELEASES + 1)


# -- the same everywhere -----------------------------------------------------------------------------------------------
PLANS: list[Callable[[], Plan]] = [
    planned,
    lambda: planned(weights="size", iterations=7, calibration="zcdp", lam=0.1),
    lambda: planned(method="output", delta=None, radius=0.5),
    lambda: planned(method="output", law="gaussian", weights="size", grid_bits=10),
    lambda: planned(task="ridge", residual_clip=0.4, calibration="paper"),
    lambda: planned(sampler="box-muller", parties=5, threshold=1),
    lambda: planned(law="laplace", engine="clear", iterations=3),
    lambda: planned(scale=0.3, iterations=2),
    created,
    lambda: created(weights=[3, 1, 2], sensitivity=0.1, delta=None),
    lambda: created(engine="clear", scale=0.0),
]


@pytest.mark.parametrize("make", PLANS)
def test_who_reads_a_plan_derives_what_its_maker_did(make: Callable[[], Plan], tmp_path: Path) -> None:
    plan = make()
    plan.write(tmp_path / "plan.json")
    read = Plan.read(tmp_path / "plan.json")
    assert read == plan == make() and read.derived == plan.derived
    assert digest(read) == digest(plan) == digest(make())
    assert list(tmp_path.iterdir()) == [tmp_path / "plan.json"]


@pytest.mark.parametrize("make", PLANS)
def test_a_plan_keeps_what_it_promises(make: Callable[[], Plan]) -> None:
    """By the ledger's accounting of the derived mechanism, or the promise is not the one that was asked for."""
    plan = make()
    promise = promise_of(plan)
    if plan.scale is None and plan.calibration != "paper":
        assert promise.accounted <= promise.epsilon * (1 + 1e-9) and promise.epsilon == plan.epsilon
    else:
        assert promise.epsilon == promise.accounted


@pytest.mark.parametrize("delta", [0.0, 1e-9, 1e-5])
@pytest.mark.parametrize("releases", [1, 4, 60])
def test_a_limit_of_exactly_the_promise_lets_the_plan_of_an_outside_law_through(
    releases: int, delta: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A pure law that leaves its calibration to ours; whether the sum of epsilons or rho is the better filter depends
    on delta and on how many releases there are. With one release more, no limit of these numbers does."""

    class Outside(LaplaceLaw):
        scale, guarantee, solve = Law.scale, Law.guarantee, Law.solve

    monkeypatch.setitem(LAWS._loaded, "laplace", Outside())
    plan = created(law="laplace", delta=delta, releases=releases, dimension=1)
    line, limit, promise = entry_of(plan, FIRST_ATTEMPT, 0), (plan.epsilon, plan.delta), promise_of(plan)
    if delta:
        require_budget([], line, releases, limit)
        with refuses("budget", releases, setting="budget"):
            require_budget([], line, releases + 1, limit)
    Limits().check(plan)
    pure = releases * plan.derived.mechanism.sensitivity.l1 / plan.derived.mechanism.scale
    assert promise.epsilon == 1.0 and promise.accounted <= 1 + 1e-9 and promise.delta <= max(delta, 1e-9)
    assert (pure > 1.3) == ((releases, delta) == (60, 1e-5)) and pure > 1 - 1e-6  # by rho, or by their sum
    if pure > 1.3:  # a second route to what is promised: the law of the sum of randomised responses
        failures = 3 * releases * (plan.dimension * plan.derived.mechanism.tv + plan.derived.mechanism.mpc_failure)
        assert pure_delta(((pure / releases, releases),), 1.0) < delta - 4 * failures


def continuous_delta(plan: Plan, epsilon: float) -> float:
    """delta of the plan's Gaussian noise by the continuous law of a variance 1.5^2 smaller, whatever the plan says."""
    moved = 2.0 if plan.weights == "size" or plan.neighbours == "owner" else 2.0 / min(plan.sizes)
    steps = moved / plan.derived.grid.step + math.sqrt(plan.dimension)
    return gaussian_delta(math.sqrt(plan.derived.scale_steps**2 - 1.5**2), epsilon, steps, plan.releases)


@pytest.mark.parametrize(
    "change",
    [
        {"epsilon": 0.9},
        {"delta": 1e-6},
        {"releases": 51},
        {"sizes": (40, 60, 49), "weights": "size"},
        {"sizes": (39, 60, 50)},
        {"calibration": "zcdp"},
        {"security_bits": 60.0},
        {"grid_bits": 20},
        {"neighbours": "owner"},
    ],
)
def test_a_changed_plan_is_another_one_and_its_noise_keeps_what_it_now_says(change: dict[str, Any]) -> None:
    plan, changed = planned(), replace(planned(), **change)
    assert digest(changed) != digest(plan)
    for one in (plan, changed):
        assert continuous_delta(one, one.epsilon) <= one.delta
    if change.keys() & {"epsilon", "delta", "releases", "calibration", "neighbours"}:
        assert changed.derived.scale_steps * changed.grid.step > plan.derived.scale_steps * plan.grid.step


@pytest.mark.parametrize(
    ("part", "name", "value"),
    [
        *(("", name, 1.0) for name in ("noise_steps", "noise_asked", "sensitivity_steps", "certificate", "G")),
        ("", "bounds", "public"), ("learning", "task", "logistic"), ("learning", "classes", 2),
    ],
)  # fmt: skip
def test_a_plan_has_no_place_for_what_follows_from_it(part: str, name: str, value: Any) -> None:
    """A schema says task, classes and bounds: they stand there alone, and are what it says."""
    plan = json.loads(planned().to_text())
    place = plan["source"][part] if part else plan
    assert name not in place
    place[name] = value
    with refuses("file", "plan.json"):
        Plan.from_text(json.dumps(plan))


def test_what_a_schema_says_is_what_a_plan_read_has() -> None:
    several = Schema(COLUMNS, Classes("outcome", ("a", "b", "c")), bounds="data")
    learning = replace(planned().learning, task="softmax", classes=3)
    plan = replace(planned(), source=learning, schema=several.to_json(), bounds="data", dimension=15)
    assert Plan.from_text(plan.to_text()) == plan and plan.mapped_by == several
    value = json.loads(plan.to_text())
    two = Schema(COLUMNS, Labels("outcome", ("1",), ("0",)))
    other = Plan.from_text(json.dumps({**value, "schema": two.to_json(), "dimension": 5}))
    assert (other.learning.task, other.learning.classes, other.bounds) == ("logistic", 2, "public")
    for change in ({"bounds": "public"}, {"dimension": 5}, {"source": replace(learning, classes=4)}):
        with refuses("plan", "schema"):
            replace(plan, **change)


def test_what_a_process_derived_is_in_the_digest() -> None:
    """A process whose arithmetic differs is refused, though its plan has the same text."""
    plan = planned()
    derived = plan.derived
    differing = [
        replace(derived, scale_steps=derived.scale_steps * (1 - 2.0**-20)),
        replace(derived, scale_steps=0.0),
        replace(derived, grid=Grid(derived.grid.bits + 1)),
        replace(derived, sensitivity_steps=derived.sensitivity_steps / 2),
        replace(derived, mechanism=replace(derived.mechanism, sensitivity=derived.mechanism.sensitivity * 0.5)),
        replace(derived, sampler=discrete_gaussian(derived.scale_steps / 2)),
    ]
    seen = {digest(plan)}
    for other in differing:
        same = planned()
        same.__dict__["derived"] = other
        assert same == plan and same.to_text() == plan.to_text()
        seen.add(digest(same))
    assert len(seen) == 1 + len(differing)
    assert isinstance(getattr_static(Plan, "derived"), cached_property)


def test_the_last_digits_of_elementary_functions_do_not_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = planned()
    exact = derive._scale
    for nudge in (1 - 2.0**-50, 1 + 2.0**-50):
        monkeypatch.setattr(derive, "_scale", lambda *args, nudge=nudge: exact(*args) * nudge)
        assert digest(planned()) == digest(plan)
    monkeypatch.setattr(derive, "_scale", lambda *args: exact(*args) * 0.5)
    assert digest(planned()) != digest(plan)


@pytest.mark.parametrize("x", [1.0, 1.0 + 2.0**-23, 3.3, 2.0**30, 1e-300, 0.0])
def test_rounding_up(x: float) -> None:
    rounded = derive.round_up(x)
    assert x <= rounded <= x * (1 + 2.0**-23)
    assert (rounded * 2.0**24 / 2.0 ** math.frexp(rounded)[1]).is_integer()


# -- owner-level plans -------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("changes", "moved"),
    [
        ({}, 1.4),
        ({"weights": [3, 1, 2]}, 1.4),
        ({"sensitivity": 0.1}, 0.1),
        ({"sensitivity": 0.1, "weights": [3, 1, 2]}, 0.1),
        ({"sensitivity": 100.0}, 1.4),  # clipping bounds it anyway
    ],
)
def test_no_replaced_vector_moves_the_integer_sum_beyond_its_sensitivity(changes: dict[str, Any], moved: float) -> None:
    """Adversarial neighbours: the first owner's vector turns around, however long it is, or moves by what was
    stated."""
    plan = created(clip=0.7, **changes)
    turned, moved = moved == 1.4, moved * plan.factors[0]
    steps = plan.derived.sensitivity_steps
    assert steps == pytest.approx(moved / plan.grid.step + math.sqrt(5)) and steps > moved / plan.grid.step
    rng = np.random.default_rng(4)
    worst = 0.0
    for _ in range(50):
        direction = rng.normal(size=5)
        direction /= np.linalg.norm(direction)
        first = direction * (700.0 if turned else 0.7)
        second = -first if turned else 0.6 * direction
        sums = [encode(plan, np.stack([v, np.full(5, 0.1), np.zeros(5)])).sum(axis=0) for v in (first, second)]
        worst = max(worst, float(np.linalg.norm(sums[0] - sums[1])))
    assert 0.99 * moved / plan.grid.step < worst <= steps


# -- bad values --------------------------------------------------------------------------------------------------------
def survey(**changes: Any) -> dict[str, Any]:
    """What a plan says of a survey; bad in any plan whose price leaves it out."""
    return {**Draft(SCHEMAS["logistic"], 0.1).to_json(), **changes}


NOT_TEXT = [None, 5, 1.0, [], {}]
NOT_COUNT = [None, 0, -1, -45, 5.0, 2.5, math.nan, "5", True, [1], {}]
NOT_POSITIVE = [None, 0.0, -1.0, -45.0, math.nan, math.inf, "1", True, [], {}]
BAD: dict[str, list[Any]] = {
    "run_id": NOT_TEXT,
    "data": NOT_TEXT,
    "data_id": NOT_TEXT,
    "sizes": [[], [0], [-45], [1.0], [2.5], [True], ["1"], None, 3, "12"],
    "dimension": NOT_COUNT,
    "releases": [*NOT_COUNT, MOST_RELEASES + 1],
    "neighbours": ["nobody", None, 1, [], "stated"],
    "weights": ["none", None, 1, [1, 2, 3]],
    "epsilon": [*NOT_POSITIVE, 1],
    "delta": [-1e-9, 1.0, 2.0, math.nan, math.inf, 0.0, 0, None, "0", True],
    "calibration": ["none", "l1", None, 1, []],
    "law": ["cauchy", None, 1, [], {}],
    "sampler": ["log-laplace", "none", None, 1, []],
    "scale": [-1.0, math.nan, math.inf, "1", True, 1, []],
    "grid_bits": [5.0, 2.5, math.nan, "5", True, [], -1001, 1001, 1 << 70, -45, 900],
    "security_bits": [0.5, 0.0, -45.0, 129.0, math.nan, 40, None, "40", True],
    "backend": ["none", None, 1, []],
    "parties": [-1, -45, 3.0, math.nan, "3", True, None, [], 2],
    "threshold": [-1, 2, -45, 1.0, "1", True, None, []],
    "pool": [0, 1, 1.0, "yes", None],
    "person": [1, True, [], {}],
    "person_rows": [0, -1, 1.5, math.nan, None, "1", True, []],
    "person_owners": [-1, 1.5, math.nan, None, "1", True, []],
    "capacity": [1, 0, None, "yes", []],
    "part": [None, 1, "x", "record:0123456789abcdef", "owner:0123456789abcdef/a", "record:0123456789abcdeg/a", []],
    "released": [None, 1, [1], [{}], [{"law": "gaussian"}], {"a": 1}, "x"],
    "version": [1, 2, 3, 4, 5, 6, 7, None, "8"],
    "min_owners": [-1, 0, 4, 1.0, "1", True],
    "release_wait": [0.0, -1.0, math.nan, math.inf, None, "1", True],
    "role": ["owner", None, 1],
    "check_owners": ["yes", "", None, True, 1],
    "schema": [
        1,
        "x",
        [],
        {},
        {**SCHEMAS["logistic"].to_json(), "version": 0},
        {**SCHEMAS["logistic"].to_json(), "columns": []},
        {**SCHEMAS["logistic"].to_json(), "intercept": False},
        {**SCHEMAS["logistic"].to_json(), "bounds": "secret"},
        {**SCHEMAS["logistic"].to_json(), "other": 1},
    ],
}
BAD_LEARNING: dict[str, list[Any]] = {
    "method": ["none", None, 1, []],
    "lam": NOT_POSITIVE,
    "residual_clip": NOT_POSITIVE,
    "step": NOT_POSITIVE[1:],
    "momentum": [-0.1, 0.9999, 1.0, 2.0, math.nan, math.inf, "0", True],
    "radius": NOT_POSITIVE[1:],
    "average": ["x", None, 1],
    "solver_tolerance": [-1.0, math.nan, math.inf, None, "0", True],
    "spread": ["x", None, 1],
    "survey": [
        1,
        "x",
        [],
        {},
        {"rule": 1},
        survey(rule=1),
        survey(),
        survey(epsilon=0),
        survey(schema=5),
        survey(schema=SCHEMAS["ridge"].to_json()),
        {**survey(), "more": 1},
    ],
    "weights": ["x", None, [1.0], [1.0, 2.0], [0.5, 0.0], [0.5, -1.0], [math.nan, 1.0], [1.0, 1.0, 1.0]],
}
BAD_VECTORS: dict[str, list[Any]] = {
    "norm": NOT_POSITIVE, "sensitivity": [1.0, *NOT_POSITIVE[1:]],
    "bound": [1, "x", [], {}, {"value": 1.0}, {"value": -1.0, "quantile": 0.5, "rate": 0.2, "start": 1.0}],
}  # fmt: skip
BAD_BARE: dict[str, list[Any]] = {
    "task": ["x", None, 1],
    "classes": [1, 0, -3, 2.5, math.nan, None, "3", True],
}
CASES = [
    *[(bare, "", "bounds", value) for value in ("secret", None, 0)],
    *[(bare, "learning", name, value) for name, values in BAD_BARE.items() for value in values],
    *[(planned, "", name, value) for name, values in BAD.items() for value in values],
    *[(planned, "learning", name, value) for name, values in BAD_LEARNING.items() for value in values],
    *[(created, "vectors", name, value) for name, values in BAD_VECTORS.items() for value in values],
]


def test_every_field_of_a_plan_is_refused_for_every_bad_value() -> None:
    value = json.loads(planned().to_text())
    flat = {name for key in GROUPS for name in value.pop(key)}
    assert {*BAD} == {*value, *flat} - {"source"}
    assert {*BAD_LEARNING} == {*value["source"]["learning"]}
    assert {*BAD_VECTORS} == {*json.loads(created().to_text())["source"]["vectors"]}
    assert {*BAD_LEARNING, *BAD_BARE} == {*json.loads(bare().to_text())["source"]["learning"]}
    texts = {make: make().to_text() for make in (planned, created, bare)}
    accepted = []
    for make, part, name, bad in CASES:
        value = json.loads(texts[make])
        places = [value["source"][part]] if part else [value, *(value[key] for key in GROUPS)]
        next(place for place in places if name in place)[name] = bad
        try:
            Plan.from_text(json.dumps(value)).derived  # noqa: B018
            accepted.append((name, bad))
        except UsageError as error:
            assert re.search(ONE_LINE, owner_text(error)), f"{name} = {bad!r}: {error}"
    assert accepted == []


@pytest.mark.parametrize("text", ["", "[]", "{}", "null", '{"version":9}', "x" * 100, '{"version":9,"source":{}}'])
def test_what_is_no_plan_is_refused_in_one_line(text: str, tmp_path: Path) -> None:
    (tmp_path / "plan.json").write_text(text)
    with in_one_line(2):
        Plan.read(tmp_path / "plan.json")


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "plan.json").write_bytes(b"\xff\xfe")
    with refuses("file", "UTF", -8):
        Plan.read(tmp_path / "plan.json")
    with refuses("file", "plan.json"):
        Plan.read(tmp_path / "none")


@pytest.mark.parametrize("key", ["missing", "more"])
def test_a_plan_has_every_field_and_no_other(key: str) -> None:
    value = json.loads(created().to_text())
    for name in [*value]:
        other = {k: v for k, v in value.items() if k != name} if key == "missing" else {**value, name + "x": 1}
        if key == "missing" and name in ("neighbours", "weights", "epsilon", "delta"):
            continue
        try:
            Plan.from_text(json.dumps(other))
            assert key == "missing" and name in Plan.__dataclass_fields__, f"{name} is {key}"
        except UsageError as error:
            assert re.search(ONE_LINE, owner_text(error))


# -- callers -----------------------------------------------------------------------------------------------------------
def test_callers_may_give_numbers_of_any_type() -> None:
    given = {
        "owners": np.int64(3),
        "dimension": np.int32(5),
        "clip": 1,
        "epsilon": np.float64(1),
        "delta": np.float64(1e-5),
        "releases": np.int64(50),
        "parties": np.int8(3),
        "security_bits": 40,
        "threshold": 1.0,
    }
    assert created(**given) == created()
    assert created(weights=np.array([1, 2, 3])) == created(weights=(1, 2, 3)) == created(weights=[1.0, 2, 3])
    assert planned(epsilon=1, security_bits=40) == planned()
    assert planned(scale=1) == planned(scale=1.0)


@pytest.mark.parametrize(
    "change",
    [
        *[{"owners": value} for value in (0, -45, 2.5, math.nan, math.inf, "3", None)],
        *[{"dimension": value} for value in (0, 2.5, "x", math.nan)],
        *[{"clip": value} for value in (0, -1.0, math.nan, math.inf, "1", None, True)],
        *[{"epsilon": value} for value in (0, -1.0, math.nan, math.inf, "1", True)],
        *[{"delta": value} for value in (-1e-5, 1.0, math.nan, "x", True)],
        *[{"releases": value} for value in (0, 2.5, "x", MOST_RELEASES + 1)],
        *[{"parties": value} for value in (0, -1, 2.5, "x")],
        *[{"threshold": value} for value in (-1, 2, 0.5, "x")],
        *[{"sensitivity": value} for value in (0, -1.0, math.nan, "x")],
        *[{"weights": value} for value in ([1, 2.5, 3], [1, 2], [1, 0, 2], [1, -1, 2], ["a", "b", "c"], "size")],
        *[{"scale": value} for value in (-1.0, math.nan, "x")],
        *[{"grid_bits": value} for value in (2.5, "x", 1001)],
        *[{"security_bits": value} for value in (0, 129, math.nan, "x")],
        {"law": "cauchy"},
        {"sampler": "log-laplace", "law": "gaussian"},
        {"calibration": "none"},
        {"engine": "none"},
        {"backend": "none"},
    ],
)
def test_callers_are_told_in_one_line_what_no_run_can_do(change: dict[str, Any]) -> None:
    with in_one_line(2):
        created(**change).derived  # noqa: B018


def test_settings_whose_noise_no_computer_holds_are_refused_in_one_line() -> None:
    """Each pair overflowed, or divided by zero, in the law's own arithmetic."""
    for law, clip, more in (
        ("laplace", 1.0, {"epsilon": 1e200}),
        ("laplace", 1e-160, {"epsilon": 1e300}),
        ("laplace", 1e160, {"epsilon": 1.0, "grid_bits": 8}),
        ("gaussian", 1e300, {"epsilon": 1e-100, "grid_bits": 8}),
        ("gaussian", 1e160, {"scale": 1e-300}),
    ):
        plan = Plan.create(owners=3, dimension=4, clip=clip, delta=1e-5, law=law, **more)  # type: ignore[arg-type]
        with refuses("range") as said:
            _ = plan.derived
        assert "\n" not in owner_text(said.value)
