"""The scale of a release after others, and the epsilon at which delta pays for failures too: found as halving and
climbing find them, with fewer looks at what it costs."""

import math
from collections.abc import Callable

import numpy as np
import pytest

from dpmpc.privacy.law import _ROOT, _crossing
from dpmpc.privacy.spending import Spending, _least_fixed_point

Excess = Callable[[float], float]


def halved(excess: Excess, low: float, high: float) -> float:
    """Oracle: the private end of the bracket, halved until it is as narrow."""
    while high - low > _ROOT * high:
        middle = (low + high) / 2
        low, high = (low, middle) if excess(middle) <= 0 else (middle, high)
    return high


@pytest.mark.parametrize("seed", range(8))
def test_it_is_on_the_private_side_and_where_halving_ends(seed: int) -> None:
    rng = np.random.default_rng(seed)
    epsilon, delta, n = 10 ** rng.uniform(-2, 1.2), 10 ** rng.uniform(-9, -3), int(rng.integers(1, 2000))
    mu2 = (epsilon * rng.uniform(0.001, 0.03)) ** 2
    before, looks = Spending(releases=1, mu2=mu2, rho=mu2 / 2), 0

    def excess(scale: float) -> float:
        nonlocal looks
        looks += 1
        one = Spending(releases=1, mu2=scale**-2, rho=scale**-2 / 2)
        return (before + one.times(n)).epsilon(delta) - epsilon

    high = 1.0
    while (over := excess(high)) > 0:
        high *= 2
    low = high / 2
    while (under := excess(low)) <= 0:
        low, high, over = low / 2, low, under
    looks = 0
    found = _crossing(excess, (low, under), (high, over))
    assert looks <= 12 and excess(found) <= 0
    assert found == pytest.approx(halved(excess, low, high), rel=2 * _ROOT)


@pytest.mark.parametrize(
    "excess",
    [
        lambda x: math.inf if x < 1.3 else -1.0,
        lambda x: -1.0 if x >= 1.7 else 1e-9,
        lambda x: (1.5 - x) ** 3,
        lambda x: 1e-300 if x < 1.0001 else -1e300,
    ],
    ids=["no cost is finite below", "a step", "a flat crossing", "sides of very different heights"],
)
def test_it_ends_where_no_line_through_two_points_helps(excess: Excess) -> None:
    looks = 0

    def counted(x: float) -> float:
        nonlocal looks
        looks += 1
        return float(excess(x))

    found = _crossing(counted, (1.0, excess(1.0)), (2.0, excess(2.0)))
    assert excess(found) <= 0 and excess(found * (1 - 2 * _ROOT)) > 0 and looks < 200


def climbed(f: Callable[[float], float]) -> tuple[float, int]:
    """Oracle: where repeating f from 0 ends, and how often that was; inf where it ends nowhere."""
    x = 0.0
    for looks in range(1, 100_000):
        before, x = x, f(x)
        if x <= before * (1 + 1e-13) or math.isinf(x):
            return x, looks
    return math.inf, looks


def failing(x: float, part: float) -> float:
    """What is needed at an epsilon whose failures take a part of delta that grows as e^x."""
    left = 1 - part * math.exp(x)
    return 20 + 4 * math.sqrt(1 - math.log(left)) if left > 0 else math.inf


@pytest.mark.parametrize(
    ("f", "most"),
    [
        (lambda x: 3.0, 1),
        (lambda x: failing(x, 1e-14), 4),
        (lambda x: failing(x, 5e-12), 9),
        (lambda x: failing(x, 6e-12), 20),
        (lambda x: failing(x, 6.5e-12), 16),
        (lambda x: min(1 + 0.9 * x, 2 + 0.1 * x), 12),  # a chord along the first goes beyond the second
        (lambda x: min(1 + 0.99 * x + x * x / 1e5, 9.0), 20),
        (lambda x: 1 + x, 201),
    ],
    ids=["constant", "few failures", "many", "nearly too many", "too many", "two bounds", "a bound that ends", "none"],
)
def test_the_least_fixed_point_is_where_climbing_ends(f: Callable[[float], float], most: int) -> None:
    looks = 0

    def looked(x: float) -> float:
        nonlocal looks
        looks += 1
        return f(x)

    found, (climb, steps) = _least_fixed_point(looked, f(0.0)), climbed(f)
    assert found == pytest.approx(climb, rel=1e-10) and looks <= min(most, steps + 3)
