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
from typing import Any

import numpy as np
import pytest

from dpmpc.aggregation.owner.encoding import as_blocks
from dpmpc.aggregation.plan import decided
from dpmpc.aggregation.plan import limits as limits_module
from dpmpc.aggregation.plan.guarantee import units_of
from dpmpc.aggregation.plan.limits import Limits
from dpmpc.aggregation.plan.plan import Plan
from dpmpc.errors import UsageError, owner_text
from dpmpc.learning.quantile_of_noise import upper_quantile
from dpmpc.learning.survey_columns import ANY
from dpmpc.learning.vectors import Vectors
from dpmpc.planning.request import Request
from dpmpc.planning.training import plan_with_survey
from dpmpc.privacy.data_names import data_digest
from dpmpc.privacy.spread import logistic_spread
from dpmpc.records.schema import Labels, Numeric, Schema
from dpmpc.statistics.tables import Tables
from tests.aggregation.histories import least_epsilon
from tests.aggregation.mutants import (
    DELTA,
    EPSILON,
    RECORDS,
    honest,
    mutate,
    text_of,
    vectors,
    words_of,
)
from tests.aggregation.owners_losses import STATED, WIDE, laplace_epsilon, lost_by, moves
from tests.refusals import refuses

SLACK = 1e-3  # of epsilon: noise on the grid is taken for continuous


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
                    with refuses("plan"):
                        replace(plan, dimension=length)
                    continue
                other = replace(plan, dimension=length)
                with refuses("shape", length):
                    list(as_blocks(np.zeros((3, plan.dimension)), 3, other.dimension, 3))


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
        assert "\n" not in owner_text(error) or "^" in owner_text(error), error  # a question is pointed into
        return (stage if "stage" in locals() else "text"), None
    return "takes part", plan


def hold(plan: Plan, limits: Limits, rng: np.random.Generator) -> None:
    """A fault: the owner's vectors lose more than its limits say, or may be read by one party, or all hangs on less
    than 40 bits or on what is not proved."""
    epsilon = plan.epsilon if limits.epsilon is None else limits.epsilon
    delta = (DELTA if limits.epsilon is not None else plan.delta) if limits.delta is None else limits.delta
    lost = lost_by(plan, limits.neighbours or plan.neighbours, delta, rng)
    assert lost <= epsilon * (1 + SLACK), (lost, epsilon, delta, plan)
    small = limits.delta is not None or plan.delta < 1 / units_of(plan)  # a delta of its own is what noise was held at
    assert small and plan.security_bits >= 40 and plan.parties > plan.threshold >= 1, plan
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


def draw(
    number: int, seed: int, say: Callable[[str], object] = lambda text: None, kinds: Sequence[str] = ()
) -> Counter[str]:
    """How many of so many mutants were refused by whom, or taken part in, by source; `kinds`: of these alone. Errors:
    AssertionError for a fault."""
    rng, found = random.Random(seed), Counter[str]()
    plans = {kind: some for kind, some in honest().items() if not kinds or kind in kinds}
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


@pytest.mark.parametrize("kind", ["vectors", "learning", "survey", "tables", "synthesis", "words"])
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
    value["source"][plan.source.KIND]["spread"] = 1e-6
    if kind != "learning":  # where it chooses how the noise follows theta, and is no number
        assert answers(text_of(value), limits, 1)[0] == "text"


@pytest.mark.parametrize("kind", ["words", "surveyed_words"])
def test_a_bound_for_votes_that_is_too_low_would_be_caught(kind: str) -> None:
    """Parties open signs a hundred times as often where two neighbours may turn them."""
    for plan in honest()[kind]:
        text, limits = plan.to_text(), limits_for(plan)
        assert answers(text, limits, 1)[0] == "takes part"
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(decided, "upper_quantile", lambda p: upper_quantile(100 * p))
            with pytest.raises(AssertionError):
                answers(text, limits, 1)


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
    """[plans [seed]] [KIND ...]."""
    asked = [int(word) for word in arguments if word.isdigit()]
    kinds = [word for word in arguments if not word.isdigit()]
    number, seed = (asked or [10_000])[0], (asked[1:] or [1])[0]
    found = draw(number, seed, print, kinds)
    for who, count in sorted(found.items()):
        print(f"{who}: {count:,}")
    print(f"{number:,} plans, 0 holes")


if __name__ == "__main__":
    main(sys.argv[1:])
