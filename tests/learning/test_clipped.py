"""Means of clipped per-record vectors: what one record can move, and the plan that rests on it."""

from typing import Any

import numpy as np
import pytest

import dpmpc
from dpmpc.aggregation.plan.plan import Plan
from dpmpc.privacy.checks import NEIGHBOURS
from dpmpc.privacy.sensitivity import arithmetic_bound, rounding_bound
from tests.refusals import Rule, breaks, refuses

SIZES = (3, 5, 4)


def vectors(n: int, seed: int = 1) -> Any:
    return np.random.default_rng(seed).normal(size=(n, 6)) * np.array([[0.1], [1.0], [10.0]] * n)[:n]


def test_it_is_the_mean_of_clipped_rows_in_blocks_of_any_size_and_kind() -> None:
    rows = vectors(9)
    by_hand = np.mean([row * min(1.0, 0.5 / np.linalg.norm(row)) for row in rows], axis=0)
    assert np.allclose(dpmpc.clipped_mean(rows, 0.5, 9), by_hand)
    assert np.allclose(dpmpc.clipped_mean((rows[i : i + 2] for i in range(0, 9, 2)), 0.5, 9), by_hand)
    assert np.allclose(dpmpc.clipped_mean([rows.astype(np.float32)], 0.5, 9), by_hand, atol=1e-6)
    assert np.linalg.norm(dpmpc.clipped_mean(rows, 0.5, 9)) <= 0.5


def test_one_record_moves_the_mean_of_all_by_no_more_than_the_plan_accounts_for() -> None:
    """The worst replacement there is, by the smallest owner; it attains the bound but for rounding."""
    for weights in ("equal", "size"):
        plan = Plan.create(owners=3, dimension=6, clip=2.0, records=SIZES, weights=weights, delta=1e-5)  # type: ignore[arg-type]
        moved = []
        for sign in (1.0, -1.0):
            owners = [vectors(n, j) for j, n in enumerate(SIZES)]
            owners[0][0] = sign * 1e6 * np.ones(6)
            means = np.array([dpmpc.clipped_mean(rows, 2.0, len(rows)) for rows in owners])
            moved.append(np.average(means, axis=0, weights=plan.factors))
        allowed = plan.derived.sensitivity
        grid = rounding_bound(plan.dimension, plan.grid.step, plan.divisor)
        assert allowed.parts["rounding"] == grid.l2 + arithmetic_bound(2.0, SIZES, plan.weights).l2 > grid.l2
        assert allowed.l2 - allowed.parts["rounding"] == pytest.approx(np.linalg.norm(moved[0] - moved[1]))
        assert plan.neighbours == "record" and Plan.from_text(plan.to_text()) == plan


def test_the_guarantee_is_of_records_and_the_noise_follows_the_sizes() -> None:
    settings: dict[str, Any] = {"owners": 3, "dimension": 6, "clip": 1.0, "delta": 1e-5, "engine": "clear"}
    with dpmpc.Aggregator(**settings, records=SIZES, weights="equal") as records, dpmpc.Aggregator(**settings) as whole:
        assert records.guarantee.neighbours.startswith(NEIGHBOURS.split(";")[0])
        assert "as the caller states" in records.guarantee.neighbours and "whole vector" in whole.guarantee.neighbours
        ratio = whole.report()["privacy"]["noise_scale"] / records.report()["privacy"]["noise_scale"]
        assert ratio == pytest.approx(min(SIZES), rel=0.02)
        mean = records.mean(dpmpc.clipped_mean(vectors(n, n), 1.0, n) for n in SIZES)
        assert mean.shape == (6,)


def test_a_minibatch_is_divided_by_the_public_number_of_records() -> None:
    """One record in a batch of 8 of 100 moves the result by 2 clip / 100, as accounted; by 2 clip / 8 it was 12.5 times
    that."""
    batch, other = np.tile([[3.0, 4.0]], (8, 1)), np.tile([[3.0, 4.0]], (8, 1))
    other[0] *= -1
    moved = np.linalg.norm(dpmpc.clipped_mean(batch, 1.0, 100) - dpmpc.clipped_mean(other, 1.0, 100))
    assert moved == pytest.approx(2 / 100)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ([], breaks("enough")),
        (np.zeros((0, 3)), breaks("enough")),
        (np.zeros(3), breaks("shape", 3)),
        ([np.zeros((2, 3)), np.zeros((2, 4))], breaks("shape", 3, 4)),
        (np.array([[1.0, np.nan]]), breaks("range")),
        (np.ones((5, 3)), breaks("plan", 4)),
    ],
)
def test_what_is_no_record_is_refused(given: Any, message: Rule) -> None:
    with refuses(message):
        dpmpc.clipped_mean(given, 1.0, 4)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"records": (3, 5)}, breaks("shape", 2, 3)),
        ({"records": (3, 0, 5)}, breaks("range", 0)),
        ({"records": SIZES, "sensitivity": 0.1}, breaks("together")),
        ({"records": SIZES, "quantile": 0.5}, breaks("together", "quantile")),
        ({"records": SIZES, "weights": (1, 2, 3)}, breaks("choice", "equal", "size")),
        ({"weights": "size"}, breaks("type", "equal")),
    ],
)
def test_what_no_plan_of_records_can_be_is_refused(settings: dict[str, Any], message: Rule) -> None:
    with refuses(message):
        Plan.create(owners=3, dimension=6, clip=1.0, delta=1e-5, **settings)
