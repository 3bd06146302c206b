"""The grid's rounding rule, its choice, and the check that no sum can leave the field."""

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from dpmpc.aggregation.owner.encoding import encode
from dpmpc.aggregation.plan.asked import FIRST_ATTEMPT, Attempt
from dpmpc.aggregation.plan.grid import Grid, check_range, choose_grid
from dpmpc.aggregation.plan.plan import Plan
from dpmpc.learning.method import Learner
from dpmpc.mpc.contract.backend import BACKENDS
from dpmpc.mpc.numbers.field import P
from dpmpc.planning.request import Request
from dpmpc.planning.training import Facts, plan_of
from dpmpc.privacy.unit import NARROWEST, ROUNDING_SHARE
from dpmpc.records.blocks import in_memory
from tests.refusals import refuses

FACTS = Facts("x", "logistic", 7, (10, 20), "public")


def plan(facts: Facts = FACTS, **asked: Any) -> Plan:
    """The plan of a small run."""
    base: dict[str, Any] = {"data": "synthetic", "owners": 6, "iterations": 4, "delta": 1e-4}
    return plan_of(Request(**{**base, **asked}), facts)


@pytest.mark.parametrize("bits", [-3, 0, 5, 24, 40])
def test_rounding_is_to_nearest_with_ties_to_even(bits: int) -> None:
    """Against exact fractions: Python's round() of a Fraction is half-to-even."""
    values = np.concatenate(
        [np.random.default_rng(bits + 9).normal(size=200) * 50, np.arange(-8, 8) * 2.0 ** -(bits + 1)]
    )
    steps = Grid(bits).encode(values)
    assert [int(k) for k in steps] == [round(Fraction(float(v)) * Fraction(2) ** bits) for v in values]
    assert np.abs(Grid(bits).decode(steps) - values).max() <= Grid(bits).step / 2


@pytest.mark.parametrize("value", [np.nan, np.inf, 1e30])
def test_what_does_not_fit_is_a_bug(value: float) -> None:
    with pytest.raises(ArithmeticError), np.errstate(invalid="ignore"):
        Grid(20).encode(np.array([value]))


@pytest.mark.parametrize(("sensitivity", "ratio", "d"), [(0.02, 300.0, 122), (2.0, 0.5, 1), (1e-4, 40.0, 100_000)])
def test_the_grid_is_the_coarsest_that_is_fine_enough(sensitivity: float, ratio: float, d: int) -> None:
    def enough(grid: Grid) -> bool:
        return grid.step * d**0.5 <= ROUNDING_SHARE * sensitivity and ratio * sensitivity / grid.step >= NARROWEST

    grid = choose_grid(sensitivity, ratio, d)
    assert enough(grid) and not enough(Grid(grid.bits - 1))


def test_noise_wider_than_the_samplers_reach_is_refused() -> None:
    with refuses("range", 2, 30, setting="grid_bits"):
        choose_grid(1.0, 1e9, 100)


def test_the_largest_sum_that_fits() -> None:
    half = BACKENDS["sharing"].largest
    assert half == (P - 1) // 2
    check_range(float(1 << 59), Grid(0), 2, half - (1 << 59) - 1000, half)
    with refuses("range", setting="grid_bits"):
        check_range(float(1 << 59), Grid(0), 2, half - (1 << 59) + 1000, half)


def test_a_plan_is_the_same_after_json_and_has_one_digest() -> None:
    one = plan(run_id="r")
    assert Plan.from_text(one.to_text()) == one == plan(run_id="r")
    others = [
        plan(run_id="r", **change) for change in ({"lam": 0.5}, {"epsilon": 2.0}, {"weights": "equal"}, {"seed": 2})
    ]
    first = one.digest(FIRST_ATTEMPT)
    assert [other.digest(FIRST_ATTEMPT) == first for other in others] == [False, False, False, True]
    assert len(first) == 32 and first not in (one.digest(Attempt(1, 0)), one.digest(Attempt(0, 1)))


def test_weights_by_size_have_the_sensitivity_of_the_whole() -> None:
    """2G/n for weights n_j/n, 2G/(m n_(1)) for equal ones; rounding adds what the plan says."""
    facts = Facts("x", "logistic", 4, (10, 90), "public")
    equal, size = (plan(facts, weights=weights) for weights in ("equal", "size"))
    assert equal.derived.sensitivity.parts["loss"] == pytest.approx(2 / 20)
    assert size.derived.sensitivity.parts["loss"] == pytest.approx(2 / 100)
    for one in (equal, size):
        found = one.derived.sensitivity
        rounding = 4**0.5 * one.grid.step / one.divisor
        assert found.l2 == pytest.approx(found.parts["loss"] + rounding)
        assert one.derived.sensitivity_steps * one.grid.step / one.divisor == pytest.approx(found.l2)
    assert (equal.divisor, size.divisor) == (2, 100)


@pytest.mark.parametrize("weights", ["equal", "size"])
@pytest.mark.parametrize("method", ["gradient", "output"])
def test_no_replaced_record_moves_the_integer_sum_beyond_its_sensitivity(method: str, weights: str) -> None:
    """Adversarial neighbours: an owner's record is replaced by its opposite; the whole path from record to integer."""
    sizes, d = (3, 5), 4
    asked = {"method": method, "weights": weights, "lam": 0.1, "iterations": None, "delta": 1e-3, "law": "gaussian"}
    made = plan(Facts("x", "logistic", d, sizes, "public"), **asked)
    rng = np.random.default_rng(2)
    worst = 0.0
    for _ in range(40):
        X = rng.normal(size=(8, d))
        X /= np.linalg.norm(X, axis=1, keepdims=True)
        y = np.where(rng.random(8) < 0.5, 1.0, -1.0)
        theta = 3 * rng.normal(size=d)
        sums = []
        for sign in (1.0, -1.0):
            X2, y2 = X.copy(), y.copy()
            y2[0] *= sign  # a record of the smallest owner
            if method == "gradient":
                X2[0] = theta / np.linalg.norm(theta)
            learner = Learner(made.learning, made.releases, in_memory(X2, y2), sizes)
            learner.theta = theta
            sums.append(encode(made, np.concatenate(list(learner.vectors(1)))).sum(axis=0))
        worst = max(worst, float(np.linalg.norm(sums[0] - sums[1])))
    assert 0.1 * made.derived.sensitivity_steps < worst <= made.derived.sensitivity_steps
