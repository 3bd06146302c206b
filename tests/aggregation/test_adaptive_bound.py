"""A clipping bound that follows the vectors, in the Aggregator: parties, the clear engine and a loop agree without
noise; what is promised is what a fixed bound would have."""

from typing import Any

import numpy as np
import pytest

from dpmpc.aggregation.owner.aggregator import Aggregator
from dpmpc.aggregation.plan.plan import Plan
from dpmpc.learning.adaptive_clipping import SPREAD, ClippingBound
from tests.refusals import refuses


def vectors(m: int = 30, d: int = 4) -> np.ndarray:
    rng = np.random.default_rng(3)
    return rng.standard_normal((m, d)) * rng.lognormal(1.0, 0.8, m)[:, None]


def run(releases: int, m: int = 30, **settings: Any) -> tuple[list[np.ndarray], float, dict[str, Any]]:
    v = vectors(m)
    with Aggregator(
        owners=len(v), dimension=v.shape[1], clip=0.5, quantile=0.6, delta=1e-5, releases=releases, **settings
    ) as aggregator:
        means = [aggregator.mean(v) for _ in range(releases)]
        assert aggregator.bound is not None
        return means, aggregator.bound.value, aggregator.report()


def test_parties_clear_engine_and_a_loop_agree_without_noise() -> None:
    bound, expected = ClippingBound(0.5, 0.6), []
    for _ in range(4):
        mean, bound = bound.decode(bound.encode(vectors()).mean(axis=0))
        expected.append(mean)
    for settings in ({"engine": "clear"}, {}):
        means, last, report = run(4, scale=0.0, grid_bits=40, **settings)
        np.testing.assert_allclose(means, expected, atol=1e-9)
        assert last == pytest.approx(bound.value, rel=1e-9) == report["clipping_bound"]
        assert report["dimension"] == 4


def test_the_bound_finds_the_quantile_with_noise() -> None:
    _, last, report = run(60, 1000, epsilon=8.0, engine="clear")
    norms = np.sort(np.linalg.norm(vectors(1000), axis=1))
    # noise of 0.02 on the fraction moves the bound by 0.004 a release; the ends are 25 such and more away
    assert norms[500] < last < norms[700]
    assert report["privacy"]["sensitivity"]["parts"]["vector"] == pytest.approx(SPREAD / 1000)


def test_weights_and_sums() -> None:
    v, weights = vectors(3), [1, 2, 5]
    with Aggregator(
        owners=3, dimension=4, clip=2.0, quantile=0.5, weights=weights, delta=1e-5, scale=0.0, grid_bits=40,
        engine="clear",
    ) as aggregator:  # fmt: skip
        clipped = v * np.minimum(1.0, 2.0 / np.linalg.norm(v, axis=1))[:, None]
        np.testing.assert_allclose(aggregator.sum(v), np.array(weights) @ clipped, atol=1e-9)


def test_a_plan_carries_it_and_refuses_a_unit_that_scaling_would_change() -> None:
    plan = Plan.create(owners=3, dimension=4, clip=2.0, quantile=0.5, epsilon=1.0, delta=1e-5)
    assert plan.dimension == 5 and Plan.from_text(plan.to_text()) == plan and plan.adaptive == ClippingBound(2.0, 0.5)
    with refuses("plan"):
        Plan.create(owners=3, dimension=4, clip=2.0, quantile=0.5, sensitivity=0.1, epsilon=1.0, delta=1e-5)
    with refuses("range", 0, 1):
        Plan.create(owners=3, dimension=4, clip=2.0, quantile=1.5, epsilon=1.0, delta=1e-5)
