"""Adaptive clipping: the bound finds the quantile, with noise too; its sensitivity is attained."""

import math

import numpy as np
import pytest

from dpmpc.learning.adaptive_clipping import NORM, SPREAD, WEIGHT, ClippingBound
from tests.refusals import refuses


def rows(m: int = 400, d: int = 5, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    v = rng.standard_normal((m, d))
    return v / np.linalg.norm(v, axis=1)[:, None] * rng.lognormal(2.0, 0.7, m)[:, None]


def follow(bound: ClippingBound, v: np.ndarray, sigma: float, steps: int, seed: int = 1) -> list[float]:
    rng, path = np.random.default_rng(seed), []
    for _ in range(steps):
        mean = bound.encode(v).mean(axis=0)
        _, bound = bound.decode(mean + sigma * rng.standard_normal(len(mean)))
        path.append(bound.value)
    return path


@pytest.mark.parametrize("quantile", [0.2, 0.5, 0.9])
@pytest.mark.parametrize("start", [0.01, 1.0, 500.0])
def test_without_noise_the_bound_goes_to_the_quantile_of_the_norms(quantile: float, start: float) -> None:
    v = rows()
    end = follow(ClippingBound(start, quantile), v, 0.0, 400)[-1]
    fits = float(np.mean(np.linalg.norm(v, axis=1) <= end))
    assert fits == pytest.approx(quantile, abs=0.02)


def test_with_noise_it_stays_near() -> None:
    """Noise of 0.05 on the row's mean is 0.1 on the fraction; over 200 steps the bound is within 15 % on average."""
    v = rows()
    path = follow(ClippingBound(1.0), v, 0.05, 300)[100:]
    assert np.exp(np.mean(np.log(path))) == pytest.approx(np.median(np.linalg.norm(v, axis=1)), rel=0.15)


def test_the_vectors_come_back_in_their_own_units() -> None:
    v = rows()
    bound = ClippingBound(1e4)
    mean, after = bound.decode(bound.encode(v).mean(axis=0))
    np.testing.assert_allclose(mean, v.mean(axis=0), rtol=1e-12)
    assert after.value == pytest.approx(1e4 * math.exp(-0.2 * 0.5))


def test_the_sensitivity_is_attained_and_never_exceeded() -> None:
    """An owner whose vector fits just, against one that does not and points the other way."""
    bound = ClippingBound(3.0)
    pair = bound.encode(np.array([[3.0, 0.0], [-3.1, 0.0]]))
    assert np.linalg.norm(pair[0] - pair[1]) == pytest.approx(SPREAD, rel=1e-12)
    sent = bound.encode(rows())
    assert np.linalg.norm(sent, axis=1).max() <= NORM + 1e-12
    apart = np.linalg.norm(sent[:, None, :] - sent[None, :, :], axis=2)
    assert apart.max() <= SPREAD and np.abs(sent[:, -1]).max() == WEIGHT / 2


def test_noise_alone_cannot_carry_it_away_and_errors_say_so() -> None:
    bound = ClippingBound(1.0, rate=5.0)
    for _ in range(50):
        _, bound = bound.decode(np.array([0.0, -1e6]))
    assert bound.value == 1e9
    with refuses("range", 1):
        ClippingBound(1.0, 1.0)
    with refuses("range", 0):
        ClippingBound(0.0)
