"""Sensitivity that knows theta: the bound against a search, and the records that attain it."""

import math

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit

from dpmpc.learning import erm
from dpmpc.privacy.spread import amplification, logistic_pair, logistic_spread

NORMS = (0.0, 0.3, 1.0, 2.0, 5.0, 9.5, 40.0, 300.0, 1e4)


def gradient(theta: np.ndarray, x: np.ndarray, y: float) -> np.ndarray:
    return erm.gradient(erm.LOGISTIC, theta, x[None, :], np.array([y]))


def test_values_of_the_bound() -> None:
    """The figures that the docs state."""
    assert [round(logistic_spread(r), 2) for r in (0, 1, 2, 5, 9.5)] == [1.0, 1.1, 1.27, 1.62, 1.81]
    assert amplification(0.0) == 2.0 and 1 < amplification(1e6) < 1.0001


@pytest.mark.parametrize("norm", NORMS)
def test_the_bound_is_the_largest_value_of_its_formula(norm: float) -> None:
    phi = np.linspace(0, math.pi / 2, 400_001)
    best = float((2 * expit(norm * np.sin(phi)) * np.cos(phi)).max())
    assert logistic_spread(norm) >= best and logistic_spread(norm) == pytest.approx(best, rel=1e-7)


@pytest.mark.parametrize("norm", NORMS)
def test_two_records_attain_it(norm: float) -> None:
    rng = np.random.default_rng(5)
    theta = rng.standard_normal(7)
    theta *= norm / np.linalg.norm(theta)
    x, other = logistic_pair(theta)
    assert max(np.linalg.norm(x), np.linalg.norm(other)) <= 1 + 1e-12
    apart = float(np.linalg.norm(gradient(theta, x, 1.0) - gradient(theta, other, 1.0)))
    assert apart == pytest.approx(logistic_spread(norm), rel=1e-9)


@pytest.mark.parametrize("norm", [0.5, 2.0, 5.0, 20.0])
def test_no_two_records_exceed_it(norm: float) -> None:
    """Random records and labels, and a local search over both records from random starts."""
    rng = np.random.default_rng(int(10 * norm))
    d, bound = 3, logistic_spread(norm)
    theta = rng.standard_normal(d)
    theta *= norm / np.linalg.norm(theta)
    X = rng.standard_normal((2, 4000, d))
    X *= (rng.random((2, 4000)) ** (1 / d) / np.linalg.norm(X, axis=2))[:, :, None]
    y = np.where(rng.random((2, 4000)) < 0.5, 1.0, -1.0)
    slopes = -y[:, :, None] * expit(-y * (X @ theta))[:, :, None] * X
    assert np.linalg.norm(slopes[0] - slopes[1], axis=1).max() <= bound

    def negative(flat: np.ndarray) -> float:
        z, other = flat[:d], flat[d:]
        z, other = z / max(1.0, float(np.linalg.norm(z))), other / max(1.0, float(np.linalg.norm(other)))
        return -float(np.linalg.norm(expit(-theta @ z) * z - expit(-theta @ other) * other))

    found = max(-minimize(negative, rng.standard_normal(2 * d), method="Nelder-Mead").fun for _ in range(12))
    assert bound * 0.98 <= found <= bound * (1 + 1e-9)


def test_a_slightly_smaller_bound_would_be_false() -> None:
    """A bound of 2 sigma(r sin phi) cos phi at any other angle is exceeded by the attaining pair."""
    theta = np.array([3.0, 0.0])
    x, other = logistic_pair(theta)
    apart = float(np.linalg.norm(gradient(theta, x, 1.0) - gradient(theta, other, 1.0)))
    phi = math.asin(float(-x @ theta / 9.0) * 3.0)
    for turned in (phi - 0.02, phi + 0.02):
        assert 2 * expit(3.0 * math.sin(turned)) * math.cos(turned) < apart * (1 - 1e-5)


def test_the_inequality_of_the_proof() -> None:
    """|s z - s' z'|^2 <= max(1, 4 sigma(m)^2 (1 - m^2/r^2)), m the mean of the two levels, over a fine grid."""
    for r in (0.5, 3.0, 12.0):
        phi = np.linspace(-math.pi / 2, math.pi / 2, 801)
        a, b = np.meshgrid(phi, phi)
        s, t = expit(r * np.sin(a)), expit(r * np.sin(b))
        squared = s**2 + t**2 + 2 * s * t * np.cos(a + b)
        m = r * (np.sin(a) + np.sin(b)) / 2
        limit = np.maximum(1.0, 4 * expit(m) ** 2 * (1 - (m / r) ** 2))
        assert (squared <= limit * (1 + 1e-12)).all()


def test_clipped_and_amplified_means_have_the_sensitivity_of_the_pool() -> None:
    """Owner's mean of n records times 2/Delta: replacing the record of the pair moves it by 2/n, and no more."""
    rng = np.random.default_rng(2)
    theta = np.array([2.0, -1.0, 0.5])
    x, other = logistic_pair(theta)
    rest = rng.standard_normal((9, 3))
    rest /= np.linalg.norm(rest, axis=1)[:, None]
    y = np.ones(10)
    one = erm.gradient(erm.LOGISTIC, theta, np.vstack([rest, x]), y)
    two = erm.gradient(erm.LOGISTIC, theta, np.vstack([rest, other]), y)
    factor = amplification(float(np.linalg.norm(theta)))
    assert np.linalg.norm(factor * (one - two)) == pytest.approx(2 / 10, rel=1e-9)
