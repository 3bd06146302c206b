"""Nothing that a plan says is believed where it could lower privacy: any field of plans of every source is put to
anything else, an owner with limits answers, and what it takes part in is held against what its vectors really lose,
in all stages together where there are several.

150 plans here; `python -m tests.aggregation.test_mutated_plans` draws 10,000.
"""

import copy
import json
import math
import random
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import norm

import dpmpc
from dpmpc.aggregation.owner.encoding import as_blocks, encode
from dpmpc.aggregation.plan import limits as limits_module
from dpmpc.aggregation.plan.asked import data_digest
from dpmpc.aggregation.plan.limits import Limits
from dpmpc.aggregation.plan.plan import Plan
from dpmpc.aggregation.plan.stages import after_first
from dpmpc.data.blocks import Records
from dpmpc.data.schema import Labels, Numeric, Schema
from dpmpc.errors import UsageError
from dpmpc.learning.method import METHODS, Learning
from dpmpc.learning.survey import Survey
from dpmpc.learning.survey_columns import ANY
from dpmpc.learning.vectors import Vectors
from dpmpc.privacy.spread import logistic_spread
from dpmpc.runs.planning import plan_with_survey
from dpmpc.runs.request import Request
from dpmpc.statistics import cells
from dpmpc.statistics.columns import Quantity
from dpmpc.statistics.tables import STEP, Tables
from tests.aggregation.histories import least_epsilon
from tests.aggregation.mutants import (
    ALL,
    DELTA,
    EPSILON,
    FEATURES,
    RECORDS,
    SIZES,
    honest,
    mutate,
    text_of,
    vectors,
    words_of,
)

Floats = NDArray[np.float64]
WIDE = 5  # records of a person, which all three owners have
STATED = 0.5  # by how much one of this owner's units moves its vector, if it says so
SLACK = 1e-3  # of epsilon: noise on the grid is taken for continuous
NUMBERS = (-1e300, -1.0, -0.3, 0.0, 0.999, 1.0, 49.99999, 1e300, math.nan)


def test_a_length_that_follows_from_the_rest_is_refused_where_it_is_another() -> None:
    """A plan's length is a number of its own for vectors of the caller's alone; and there an owner's vector of another
    length is not taken."""
    draft = Schema((Numeric("x", *ANY), Numeric("z", 0, 10)), Labels("y", ("1",), ("0",)), basis="additive")
    request = Request(data="synthetic", owners=3, epsilon=EPSILON, delta=DELTA, run_id="r")
    surveyed = plan_with_survey(request, draft, (4000, 4000, 4000), "records")
    for kind, plans in {**honest(), "surveyed": [surveyed]}.items():
        for plan in plans:
            for length in (plan.dimension - 1, plan.dimension + 1):
                if kind != "vectors":
                    with pytest.raises(UsageError, match=r"dimension is its|has at most \d+ coordinates"):
                        replace(plan, dimension=length)
                    continue
                other = replace(plan, dimension=length)
                with pytest.raises(UsageError, match=str(length)):
                    list(as_blocks(np.zeros((3, plan.dimension)), 3, other.dimension, 3))


# -- what an owner's vector loses --------------------------------------------------------------------------------------
def moves(plan: Plan, neighbours: str, rng: np.random.Generator) -> Floats:
    """(k, d) by how many grid steps what owner 0 sends moves between neighbouring records: real vectors, as its own
    code makes, clips and rounds them. Errors: UsageError where its records do not fit the plan."""
    found = []
    for some in _vectors(plan, neighbours, rng):
        (block,) = as_blocks(some, len(some), plan.dimension, len(some))
        steps = np.concatenate([encode(plan, row[None], 0) for row in block]).astype(np.float64)
        found += [a - b for a, b in combinations(steps, 2)]
    return np.array(found) * _owners_of(plan, neighbours)


def _owners_of(plan: Plan, neighbours: str) -> float:
    """How often one owner's move counts: a person's records may be alike at all owners, whose own processes hold the
    plan's number of theirs against what they have; all are nearly as large."""
    if neighbours != "person" or plan.sizes[1:] != SIZES[1:] or plan.owners != 3:
        return 1.0
    return plan.touched * min(plan.sizes) / max(plan.sizes)


def _rows_of(plan: Plan, neighbours: str) -> int:
    """How many records change: those that owners' processes keep of a person, or what a program takes."""
    if neighbours != "person":
        return 1
    return WIDE if isinstance(plan.source, Vectors) else min(plan.person_rows, RECORDS)


def _vectors(plan: Plan, neighbours: str, rng: np.random.Generator) -> list[Floats]:
    """Arrays (k, d): in each, all rows come from data sets of which any two are neighbours."""
    source = plan.source
    if isinstance(source, Vectors):
        return _of_program(plan, source, neighbours, rng)
    if isinstance(source, Learning):
        return _of_learning(plan, source, neighbours, rng)
    if isinstance(source, Survey):
        return _of_survey(source, neighbours, _rows_of(plan, neighbours), rng)
    assert isinstance(source, Tables)
    found = _of_tables(source, neighbours, _rows_of(plan, neighbours), rng, plan.capacity)
    return [each * RECORDS / plan.sizes[0] for each in found] if plan.capacity else found  # a mean over all places


def _of_program(plan: Plan, source: Vectors, neighbours: str, rng: np.random.Generator) -> list[Floats]:
    far = 100.0 * np.concatenate([np.eye(4), -np.eye(4), np.ones((1, 4)), -np.ones((1, 4)), rng.normal(size=(3, 4))])
    if neighbours == "owner":
        return [far if source.bound is None else source.bound.encode(far)]
    if neighbours == "stated":
        middle = rng.normal(size=4) * plan.clip / 4
        ways = far * (STATED / 2 / np.linalg.norm(far, axis=1))[:, None]
        return [np.stack([middle - way, middle + way]) for way in ways]
    k = _rows_of(plan, neighbours)
    rest = rng.normal(size=(RECORDS - k, 4))
    sets = [np.concatenate([np.tile(row, (k, 1)), rest]) for row in far]
    absent = dpmpc.clipped_mean(rest, plan.clip, RECORDS)
    means = np.stack([dpmpc.clipped_mean(rows, plan.clip, RECORDS) for rows in sets])
    return [means] if neighbours != "presence" else [np.stack([mean, absent]) for mean in means]


def _of_learning(plan: Plan, learning: Learning, neighbours: str, rng: np.random.Generator) -> list[Floats]:
    X, y = _mapped(plan, rng)
    d = X.shape[1] * learning.scores
    theta = rng.normal(size=d)
    thetas = [np.zeros(d), theta / np.linalg.norm(theta) / 2, 4 * theta, 60 * theta]
    if not METHODS[learning.method].repeats:
        thetas = thetas[:1]
    found = []
    for at in thetas:
        vectors = _at(learning, at, X, y, neighbours, _rows_of(plan, neighbours))
        vectors *= METHODS[learning.method].factor(learning, at)
        found += [vectors] if neighbours != "presence" else [np.stack([each, vectors[-1]]) for each in vectors[:-1]]
    return found


def _mapped(plan: Plan, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """Records (n, d) and targets (n,), however odd, as the plan's schema maps them."""
    if plan.schema is None:
        raise UsageError("owners map their records by the plan's schema; this plan has none; plan again")
    schema = Schema.from_json(plan.schema)
    if {column.name for column in schema.columns} - {column.name for column in FEATURES}:
        raise UsageError("a file has the columns of the schema; one is missing; mend it")
    odd = np.array(NUMBERS)
    values = [
        rng.choice(odd, RECORDS) if isinstance(column, Numeric) else rng.integers(-2, len(column.features), RECORDS)
        for column in schema.columns
    ]
    X = np.empty((RECORDS, len(schema.feature_names)))
    schema.rows(values, X)
    labels = isinstance(schema.target, Labels)
    y = schema.target.values(np.arange(RECORDS) % 2 if labels else rng.choice(odd, RECORDS))  # type: ignore[arg-type]
    return X, np.where(np.isfinite(y), y, 1.0)


def _at(learning: Learning, theta: Floats, X: Floats, y: Floats, neighbours: str, wide: int) -> Floats:
    """(k, d) the vectors of data sets that differ in their first `wide` records, the last one in that these are absent;
    by owner, of sets of one record over and over. Output perturbation: the others are alike, and lie across the way
    that the first ones pull, so that nothing but the regulariser holds the optimum there."""
    size, d, n = np.linalg.norm(X, axis=1), X.shape[1], RECORDS
    some = np.unique(np.concatenate([np.argsort(size)[-5:], np.argsort(X @ theta[:d])[[0, -1]], [0, 1]]))
    rows = [(sign * X[k], t) for k in some for sign in (1, -1) for t in {-1.0, 1.0, float(y[k])}]
    along, across = np.eye(d)[0], np.append(0.0, np.ones(d - 1)) / math.sqrt(d - 1)
    if learning.method == "output":
        X, y = np.tile(along, (n, 1)), np.ones(n)
        turns = [(sign * math.cos(a) * across - math.sin(a) * along) for a in (0, 0.3, 0.6, 0.9) for sign in (1, -1)]
        rows = [*rows[:4], *((turn, t) for turn in turns for t in (1.0, -1.0))]
    else:
        rows += [(sign * np.ones(d) / math.sqrt(d), t) for sign in (1, -1) for t in (1.0, -1.0)]
    rows.append((np.zeros(d), 1.0))
    k = n if neighbours == "owner" else wide
    each_X = np.concatenate([np.vstack([np.tile(x, (k, 1)), X[k:]]) for x, _ in rows])
    each_y = np.concatenate([np.append(np.full(k, t), y[k:]) for _, t in rows])
    offsets = np.arange(len(rows) + 1, dtype=np.int64) * n
    return METHODS[learning.method].vectors(learning, theta, Records(each_X, each_y), offsets)


def _of_survey(survey: Survey, neighbours: str, wide: int, rng: np.random.Generator) -> list[Floats]:
    number = np.array([[value, -1.0] for value in (-3.0, 0.0, 1.99999, 1.00001, 1e300, math.nan)])
    text = np.array([[math.inf, bucket % survey.buckets] for bucket in range(6)])
    columns = {"x": number, "y": number[::-1], "c": text}
    rest = {name: values[rng.integers(0, 6, RECORDS - wide)] for name, values in columns.items()}

    def mean(first: int | None) -> Floats:
        if neighbours == "owner":
            return survey.encode({name: np.repeat(values[[first]], RECORDS, 0) for name, values in columns.items()})
        first_too = {} if first is None else columns
        joined = {name: np.concatenate([first_too[name][[first] * wide], part]) if first_too else part
                  for name, part in rest.items()}  # fmt: skip
        return survey.encode(joined)

    return _of_sums([mean(k) for k in range(6)], None if neighbours == "owner" else mean(None), neighbours)


def _of_tables(
    tables: Tables, neighbours: str, wide: int, rng: np.random.Generator, places: bool
) -> list[Floats]:  # fmt: skip
    fields = tables.layout.fields
    if {field.name for field in fields} - set(ALL.names):
        raise UsageError("a file has the columns of the questions; one is missing; mend it")

    def drawn(field: Any, n: int) -> Any:
        if isinstance(field, Quantity):
            return rng.choice(np.array([*NUMBERS, field.low, field.high, (field.low + field.high) / 2]), n)
        return rng.integers(-2, 3, n)

    firsts, rest = ({f: drawn(f, n) for f in fields} for n in (12, RECORDS - wide))

    def total(first: int | None) -> Floats:
        firsts_of = {f: np.zeros(0, int) if first is None else np.repeat(firsts[f][[first]], wide) for f in fields}
        values = {f: np.append(firsts_of[f].astype(rest[f].dtype), rest[f]) for f in fields}
        if neighbours == "owner":
            values = {f: np.repeat(firsts[f][[first]], RECORDS) for f in fields}
        n = RECORDS - wide * (first is None)
        return tables.layout.encode(cells.Records(n, values), None, 1)[0] * STEP

    empty = [total(None)] if places and neighbours != "owner" else []
    sums = [*(total(k) for k in range(12)), *empty]
    return _of_sums(sums, None if neighbours == "owner" else total(None), neighbours)


def _of_sums(sums: list[Floats], absent: Floats | None, neighbours: str) -> list[Floats]:
    means = np.stack(sums) / RECORDS
    if neighbours != "presence":
        return [means]
    assert absent is not None
    return [np.stack([mean, absent / RECORDS]) for mean in means]


def loses(plan: Plan, moved: Floats, delta: float) -> float:
    """The least epsilon at `delta` that tells these neighbours apart: all releases, noise of the scale that parties
    draw, taken for continuous; failures, which come on top, left out."""
    scale = plan.derived.sampler.scale if plan.scale != 0 else 0.0
    worst = moved[np.argsort(np.linalg.norm(moved, axis=1))[-1]]
    if not worst.any():
        return 0.0
    if not scale:
        return math.inf
    if plan.law == "gaussian":
        mu2 = plan.releases * float(worst @ worst) / scale**2
        if mu2 > 400 and delta < 0.45:  # at epsilon mu^2 / 2 delta is 1/2 - 1 / (mu sqrt(2 pi)) at least
            return mu2 / 2
        return least_epsilon(min(mu2, 400.0), {}, delta)
    return by_laplace(plan, moved, delta)


def by_laplace(plan: Plan, moved: Floats, delta: float, mu: float = 0.0) -> float:
    """Of Laplace noise, after Gaussian releases that come to mu."""
    each = [moved[np.argsort((np.abs(moved) ** power).sum(axis=1))[-1]] for power in (1, 2)]
    scale = plan.derived.sampler.scale
    return max(laplace_epsilon(np.abs(far) / scale, plan.releases, delta, mu) for far in each)


def lost_by(plan: Plan, neighbours: str, delta: float, rng: np.random.Generator) -> float:
    """The same of all stages of a plan, whatever they open, and of what follows: Gaussian releases of fixed questions
    each, once those before are opened."""
    mu2 = 0.0
    while plan.source.schedule.before:
        mu2 += square(plan.first, moves(plan.first, neighbours, rng))
        far = rng.choice([0.0, 1.0, 50.0]) * plan.first.derived.sampler.scale
        plan = after_first(plan, np.rint(rng.normal(size=plan.first.dimension) * far).astype(np.int64))
    moved = moves(plan, neighbours, rng)
    if not mu2 or plan.law != "gaussian":
        return by_laplace(plan, moved, delta, mu2**0.5) if mu2 else loses(plan, moved, delta)
    return least_epsilon(min(mu2 + square(plan, moved), 400.0), {}, delta)


def square(plan: Plan, moved: Floats) -> float:
    """mu^2 of the releases of a plan between these neighbours."""
    assert plan.law == "gaussian" and plan.derived.sampler.scale
    return plan.releases * float((moved**2).sum(axis=1).max()) / plan.derived.sampler.scale**2


def laplace_epsilon(shifts: Floats, releases: int, delta: float, mu: float = 0.0) -> float:
    """The epsilon at `delta` of so many releases of Laplace noise, each coordinate shifted by so many scales, and of a
    Gaussian one by mu deviations, from below: losses are rounded down to a grid before they are convolved, and some
    releases may be left out."""
    if not delta:
        return releases * float(shifts.sum())
    n, used = 1 << 16, min(releases, 64)
    largest = used * float(shifts.sum())
    if largest > 60:
        return largest - 60
    largest += mu**2 / 2 + 10 * mu
    h = 2 * (largest + 1e-9) / (n // 2)
    whole = np.ones(n // 2 + 1, dtype=complex)
    for s in shifts[shifts > 0]:
        edges = np.arange(math.floor(-s / h), math.floor(s / h) + 2) * h
        inside = np.clip(edges, -s, s)
        mass = np.diff(np.exp(-(s - inside) / 2) / 2)  # of x in (0, s), whose loss s - 2x lies there
        mass[0] += math.exp(-s) / 2
        mass[-1] += 0.5
        pmf = np.zeros(n)
        pmf[np.round(edges[:-1] / h).astype(int) % n] += mass
        whole = whole * np.fft.rfft(pmf)
    whole = whole**used
    if mu:
        edges = np.arange(math.floor(-10 * mu / h), math.floor(largest / h) + 2) * h
        pmf = np.zeros(n)
        pmf[np.round(edges[:-1] / h).astype(int) % n] = np.diff(norm.cdf(edges, mu**2 / 2, mu))
        whole = whole * np.fft.rfft(pmf)
    pmf = np.clip(np.fft.irfft(whole, n), 0, None)
    at = np.fft.fftfreq(n, 1 / n) * h
    low, high = 0.0, largest
    for _ in range(45):
        epsilon = (low + high) / 2
        over = at > epsilon
        more = float((pmf[over] * -np.expm1(epsilon - at[over])).sum()) > delta + 1e-13
        low, high = (epsilon, high) if more else (low, epsilon)
    return low


# -- an owner answers --------------------------------------------------------------------------------------------------
def answers(text: str, limits: Limits, seed: int) -> tuple[str, Plan | None]:
    """Who refuses the plan ("text", "limits" or "records"), or "takes part", and the plan then. Its process counts
    `RECORDS`. A fault: any other error than a refusal in one line."""
    try:
        plan = Plan.from_text(text)
        stage = "limits"
        program = isinstance(plan.source, Vectors)
        (limits if program else replace(limits, records=RECORDS)).check_owner(plan, 0, vectors=program)
        stage = "records"
        hold(plan, limits, np.random.default_rng(seed))
    except UsageError as error:
        assert "\n" not in str(error) or "^" in str(error), error  # a question is pointed into
        return (stage if "stage" in locals() else "text"), None
    return "takes part", plan


def hold(plan: Plan, limits: Limits, rng: np.random.Generator) -> None:
    """A fault: the owner's vectors lose more than its limits say, or may be read by one party, or all hangs on less
    than 40 bits or on what is not proved."""
    epsilon = plan.epsilon if limits.epsilon is None else limits.epsilon
    delta = (DELTA if limits.epsilon is not None else plan.delta) if limits.delta is None else limits.delta
    lost = lost_by(plan, limits.neighbours or plan.neighbours, delta, rng)
    assert lost <= epsilon * (1 + SLACK), (lost, epsilon, delta, plan)
    assert plan.delta <= max(delta, 1 / 3) and plan.security_bits >= 40 and plan.parties > plan.threshold >= 1, plan
    assert plan.data_id == data_digest("ward") and plan.derived.sampler.discrete and plan.bounds != "data", plan


def limits_for(plan: Plan, rng: random.Random | None = None) -> Limits:
    """What an organisation that trusts nobody would say; with `rng`, more or less of it."""
    whole, rng = rng is None, rng or random.Random()
    known: dict[str, Any] = {"data_id": "ward", "neighbours": plan.neighbours}
    if plan.neighbours == "stated":
        known["sensitivity"] = STATED
    if whole or rng.random() < 0.8:
        known["records"] = RECORDS if plan.neighbours in ("record", "presence", "person") else None
    if plan.neighbours == "person" and isinstance(plan.source, Vectors):
        known["person_rows"] = WIDE
    if whole or rng.random() < 0.8:
        known |= {"epsilon": EPSILON, "delta": plan.delta}
    if plan.neighbours == "owner" and not whole and rng.random() < 0.5:
        known["neighbours"] = None
    return Limits(**known)


def draw(number: int, seed: int, say: Callable[[str], object] = lambda text: None) -> Counter[str]:
    """How many of so many mutants were refused by whom, or taken part in, by source. Errors: AssertionError for a
    fault."""
    rng, found = random.Random(seed), Counter[str]()
    plans = honest()
    words = words_of([json.loads(plan.to_text()) for some in plans.values() for plan in some])
    for k in range(number):
        kind = rng.choice(list(plans))
        base = rng.choice(plans[kind])
        text = text_of(mutate(json.loads(base.to_text()), rng, words))
        who, _ = answers(text, limits_for(base, rng), seed + k)
        found[f"{kind}: {who}"] += 1
        if k % 1000 == 999:
            say(f"{k + 1} plans")
    return found


def test_every_honest_plan_is_taken_part_in_and_loses_nearly_what_it_says() -> None:
    """So the oracle has teeth: for most of these plans it finds neighbours that are nearly as far apart as claimed."""
    shares = []
    for kind, some in honest().items():
        for plan in some:
            limits = limits_for(plan)
            who, made = answers(plan.to_text(), limits, 1)
            assert who == "takes part" and made is not None, (kind, who)
            lost = lost_by(plan, plan.neighbours, plan.delta, np.random.default_rng(1))
            shares.append(lost / plan.epsilon)
    assert max(shares) <= 1 + SLACK and sum(share > 0.95 for share in shares) >= 25 and min(shares) > 0.5, sorted(
        shares
    )


def test_where_little_is_found_of_a_claim_the_oracle_moves_as_far_as_records_can() -> None:
    """Several Laplace releases: the vectors move by what is claimed in both norms, and what is left is the account's,
    which knows no more of a shift than its norms. Output perturbation: by what is claimed for gradients that lie 2G
    apart, which these records' optimum, of the public norm r, lets lie Delta(r) apart and no further."""
    for plan in honest()["learning"]:
        if plan.law == "laplace" or plan.learning.method == "output":
            moved, claimed = moves(plan, "record", np.random.default_rng(1)), plan.derived.mechanism.sensitivity
            far = max(np.linalg.norm(moved, axis=1)) / claimed.l2
            wide = max(np.abs(moved).sum(axis=1)) / claimed.l1
            if plan.learning.method == "output":
                r = optimum_norm(plan.learning.lam)
                assert 0.9 < far / (logistic_spread(r) / 2) < 1.02, (far, r)
            else:
                assert 0.98 < far <= 1 and 0.98 < wide <= 1, (far, wide)


def optimum_norm(lam: float) -> float:
    """r with lam r = sigma(-r): of the optimum of records that are all alike."""
    low, high = 0.0, 1 / lam
    for _ in range(100):
        r = (low + high) / 2
        low, high = (r, high) if lam * r < 1 / (1 + math.exp(r)) else (low, r)
    return low


def test_no_plan_that_anybody_could_write_takes_more_than_an_owner_allows() -> None:
    found = draw(150, 5)
    taken = sum(count for who, count in found.items() if who.endswith("takes part"))
    assert 5 < taken < 120 and sum(count for who, count in found.items() if who.endswith("limits")) > 0, found
    assert {who.split(":")[0] for who in found} == set(honest())


# -- the mends undone --------------------------------------------------------------------------------------------------
def refused_or_caught(text: str, limits: Limits, undo: Callable[[pytest.MonkeyPatch], None]) -> None:
    """The plan is refused; with the mend undone it is taken part in, and the oracle finds the hole."""
    assert answers(text, limits, 1)[0] == "limits"
    with pytest.MonkeyPatch.context() as patch:
        undo(patch)
        with pytest.raises(AssertionError):
            answers(text, limits, 1)


BY_RECORD = {"neighbours": "record", "records": RECORDS, "data_id": "ward"}


def leaves(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The places of numbers with a fraction."""
    if isinstance(value, dict | list):
        for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
            yield from leaves(inner, (*path, key))
    elif isinstance(value, float):
        yield path


@pytest.mark.parametrize("extreme", [1e300, 1e-300, 5e-324])
def test_no_number_at_the_end_of_what_a_computer_holds_is_more_than_refused(extreme: float) -> None:
    """A penalty of 1e300 made a sensitivity of 0, and an epsilon of 5e-324 a scale that is none: a division by zero."""
    tried = 0
    for some in honest().values():
        plan = some[0]
        for path in leaves(base := json.loads(plan.to_text())):
            changed = inner = copy.deepcopy(base)
            for key in path[:-1]:
                inner = inner[key]
            inner[path[-1]] = extreme
            answers(text_of(changed), limits_for(plan), 1)
            tried += 1
    assert tried > 10


def test_sizes_that_an_owner_has_not_would_be_caught() -> None:
    plan = vectors(records=(10**6,) * 3, delta=1e-9)
    refused_or_caught(
        plan.to_text(),
        Limits(**BY_RECORD, epsilon=EPSILON, delta=1e-9),
        lambda patch: patch.setattr(Limits, "check_owner", lambda self, plan, owner, vectors: self.check(plan)),
    )


def test_a_stated_sensitivity_that_is_not_the_owners_would_be_caught() -> None:
    refused_or_caught(
        vectors(sensitivity=1e-6).to_text(),
        Limits(epsilon=EPSILON, delta=DELTA, neighbours="stated", sensitivity=STATED, data_id="ward"),
        lambda patch: patch.setattr(Limits, "_check_unit", lambda self, plan: None),
    )


def test_a_delta_of_nearly_one_would_be_caught() -> None:
    """A limit on epsilon alone cannot be made; were it, such a plan would keep it."""
    limits = Limits(data_id="ward")
    object.__setattr__(limits, "epsilon", EPSILON)
    refused_or_caught(
        vectors(delta=0.99).to_text(),
        limits,
        lambda patch: patch.setattr(limits_module, "delta_warning", lambda delta, units: None),
    )


def test_a_single_bit_of_security_would_be_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    known = dict(limits_module.limited())
    setting = known["security_bits"].setting
    assert setting.limit is not None
    known["security_bits"] = replace(
        known["security_bits"], setting=replace(setting, limit=replace(setting.limit, unsaid=None))
    )
    refused_or_caught(
        vectors(security_bits=1.0).to_text(),
        Limits(data_id="ward"),
        lambda patch: patch.setattr(limits_module, "limited", lambda: known),
    )


@pytest.mark.parametrize("kind", ["vectors", "learning", "survey", "tables", "synthesis"])
def test_a_distance_that_is_believed_would_be_caught(kind: str) -> None:
    """As with `spread` in plan.json, which no plan holds any more: the source says a hundredth of what it moves, or
    that of its releases does."""
    plan = next(plan for plan in honest()[kind] if plan.neighbours == "record")
    limits = limits_for(plan)
    assert answers(plan.to_text(), limits, 1)[0] == "takes part"
    with pytest.MonkeyPatch.context() as patch:
        source = Tables if kind == "synthesis" else type(plan.source)
        by_record = source.by_record
        patch.setattr(source, "by_record", lambda self, *at: by_record(self, *at) * 0.01)
        with pytest.raises(AssertionError):
            answers(plan.to_text(), limits, 1)
    value = json.loads(plan.to_text())
    value["source"][kind]["spread"] = 1e-6
    if kind != "learning":  # where it chooses how the noise follows theta, and is no number
        assert answers(text_of(value), limits, 1)[0] == "text"


def test_the_bound_for_laplace_noise_is_nearly_the_truth() -> None:
    assert laplace_epsilon(np.array([0.5, 0.25]), 1, 0.0) == 0.75
    for shift, delta in ((1.0, 1e-3), (0.5, 0.1), (3.0, 1e-9)):  # one release: 1 - exp((epsilon - shift) / 2)
        exact = shift + 2 * math.log1p(-delta)
        assert exact - 1e-3 <= laplace_epsilon(np.array([shift]), 1, delta) <= exact + 1e-9
    assert laplace_epsilon(np.full(6, 0.02), 5, 1e-5) < 0.6
    for mu in (0.2, 1.0):  # with next to no Laplace release: the Gaussian's
        alone = least_epsilon(mu**2, {}, 1e-5)
        assert alone * 0.995 <= laplace_epsilon(np.array([1e-6]), 1, 1e-5, mu) <= alone + 1e-5


def main(arguments: Sequence[str]) -> None:
    """[plans [seed]]."""
    asked = [int(word) for word in arguments]
    number, seed = (asked or [10_000])[0], (asked[1:] or [1])[0]
    found = draw(number, seed, print)
    for who, count in sorted(found.items()):
        print(f"{who}: {count:,}")
    print(f"{number:,} plans, 0 holes")


if __name__ == "__main__":
    main(sys.argv[1:])
