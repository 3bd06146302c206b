"""The grid's rounding rule, its choice, and the check that no sum can leave the field."""

from fractions import Fraction

import numpy as np
import pytest

from dpmpc.aggregation.grid import NARROWEST, ROUNDING_SHARE, Grid, check_range, choose_grid
from dpmpc.aggregation.plan import Facts, Plan, make_plan
from dpmpc.errors import UsageError
from dpmpc.mpc.field import P
from tests.runs import small


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
    with pytest.raises(AssertionError), np.errstate(invalid="ignore"):
        Grid(20).encode(np.array([value]))


@pytest.mark.parametrize(("sensitivity", "ratio", "d"), [(0.02, 300.0, 122), (2.0, 0.5, 1), (1e-4, 40.0, 100_000)])
def test_the_grid_is_the_coarsest_that_is_fine_enough(sensitivity: float, ratio: float, d: int) -> None:
    def enough(grid: Grid) -> bool:
        return grid.step * d**0.5 <= ROUNDING_SHARE * sensitivity and ratio * sensitivity / grid.step >= NARROWEST

    grid = choose_grid(sensitivity, ratio, d)
    assert enough(grid) and not enough(Grid(grid.bits - 1))


def test_noise_wider_than_the_samplers_reach_is_refused() -> None:
    with pytest.raises(UsageError, match="2\\^30"):
        choose_grid(1.0, 1e9, 100)


def test_the_largest_sum_that_fits() -> None:
    half = (P - 1) // 2
    check_range(float(1 << 59), Grid(0), 2, half - (1 << 59) - 1000)
    with pytest.raises(UsageError, match="half the field"):
        check_range(float(1 << 59), Grid(0), 2, half - (1 << 59) + 1000)


def test_a_plan_is_the_same_after_json_and_has_one_digest() -> None:
    facts = Facts("x", "logistic", 7, (10, 20), "public")
    plan = make_plan(small(run_id="r"), facts)
    assert Plan.from_text(plan.to_text()) == plan == make_plan(small(run_id="r"), facts)
    others = [
        make_plan(small(run_id="r", **change), facts)
        for change in ({"lam": 0.5}, {"epsilon": 2.0}, {"weights": "size"}, {"seed": 2})
    ]
    assert [other.digest() == plan.digest() for other in others] == [False, False, False, True]


def test_weights_by_size_have_the_sensitivity_of_the_whole() -> None:
    """2G/n for weights n_j/n, 2G/(m n_(1)) for equal ones; rounding adds what the plan says."""
    facts = Facts("x", "logistic", 4, (10, 90), "public")
    equal, size = (make_plan(small(weights=weights), facts) for weights in ("equal", "size"))
    assert equal.sensitivity_parts["loss"] == pytest.approx(2 / 20) and size.sensitivity_parts["loss"] == pytest.approx(
        2 / 100
    )
    for plan in (equal, size):
        rounding = 4**0.5 * plan.grid.step / plan.divisor
        assert plan.sensitivity == pytest.approx(plan.sensitivity_parts["loss"] + rounding)
        assert plan.sensitivity_steps * plan.grid.step / plan.divisor == pytest.approx(plan.sensitivity)
    assert (equal.divisor, size.divisor) == (2, 100)


@pytest.mark.parametrize("weights", ["equal", "size"])
@pytest.mark.parametrize("method", ["gradient", "output"])
def test_no_replaced_record_moves_the_integer_sum_beyond_its_sensitivity(method: str, weights: str) -> None:
    """Adversarial neighbours: an owner's record is replaced by its opposite; the whole path from record to integer."""
    from dpmpc.runs.train import Learner

    sizes, d = (3, 5), 4
    options = small(method=method, weights=weights, lam=0.1, iterations=None, delta=1e-3, noise="gaussian")
    plan = make_plan(options, Facts("x", "logistic", d, sizes, "public"))
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
            learner = Learner(plan, X2, y2)
            learner.theta = theta
            sums.append(np.concatenate(list(learner.vectors())).sum(axis=0))
        worst = max(worst, float(np.linalg.norm(sums[0] - sums[1])))
    assert 0.1 * plan.sensitivity_steps < worst <= plan.sensitivity_steps
