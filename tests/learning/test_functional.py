"""The functional mechanism: coefficients, sensitivity attained, exact ridge, and the clipped minimum."""

import math

import numpy as np
import pytest
from scipy.optimize import minimize

from dpmpc.learning import erm
from dpmpc.learning.functional import (
    NORM,
    SPREAD,
    coefficients,
    coordinates,
    decode,
    features,
    l1_spread,
    minimiser,
    noise_floor,
    owner_coefficients,
    spread,
)
from tests.refusals import refuses


def records(n: int = 50, d: int = 6, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    X /= np.maximum(1.0, np.linalg.norm(X, axis=1))[:, None]
    return X, rng.uniform(-1, 1, n)


def vector(x: np.ndarray, y: float) -> np.ndarray:
    return coefficients(x[None, :], np.array([y]))


def test_the_vector_is_the_objective() -> None:
    """Its two parts give back the quadratic objective at any theta, against a loop over records."""
    X, y = records()
    rng = np.random.default_rng(1)
    b, A = decode(coefficients(X, y), 6)
    for _ in range(5):
        theta = rng.standard_normal(6)
        half = np.mean([0.5 * (x @ theta - t) ** 2 - 0.5 * t * t for x, t in zip(X, y, strict=True)])
        assert -b @ theta + 0.5 * theta @ A @ theta == pytest.approx(half, rel=1e-12)
    np.testing.assert_allclose(A, X.T @ X / 50, rtol=1e-14)
    assert len(coefficients(X, y)) == coordinates(6) == 27


def test_logistic_coefficients_are_the_second_order_expansion() -> None:
    """At small theta the surrogate's error is of fourth order: the even part of the loss has no cubic term."""
    X, _ = records()
    y = np.where(np.arange(50) % 2 == 0, 1.0, -1.0)
    b, A = decode(coefficients(X, y), 6)
    theta = np.random.default_rng(2).standard_normal(6)
    errors = []
    for t in (0.1, 0.2):
        exact = float(np.mean(np.logaddexp(0.0, -y * (X @ (t * theta)))))
        errors.append(abs(exact - (math.log(2) - 0.5 * t * b @ theta + t * t / 8 * theta @ A @ theta)))
    assert errors[1] / errors[0] == pytest.approx(16.0, rel=0.1)


def test_the_sensitivity_is_attained() -> None:
    """Unit vectors at 60 degrees with opposite labels, in 2 and in 9 dimensions, inside a mean of n records."""
    for d in (2, 9):
        x, u = np.eye(1, d)[0], np.zeros(d)
        u[:2] = math.cos(math.pi / 3), math.sin(math.pi / 3)
        assert np.linalg.norm(vector(x, 1.0) - vector(u, -1.0)) == pytest.approx(SPREAD, rel=1e-12)
        X, y = records(7, d)
        one = coefficients(np.vstack([X, x]), np.append(y, 1.0))
        two = coefficients(np.vstack([X, u]), np.append(y, -1.0))
        assert np.linalg.norm(one - two) == pytest.approx(SPREAD / 8, rel=1e-9)


@pytest.mark.slow
def test_no_two_records_exceed_it() -> None:
    rng = np.random.default_rng(3)

    def negative(flat: np.ndarray) -> float:
        x, u, t = flat[:3], flat[3:6], np.tanh(flat[6:])
        x, u = x / max(1.0, float(np.linalg.norm(x))), u / max(1.0, float(np.linalg.norm(u)))
        return -float(np.linalg.norm(vector(x, t[0]) - vector(u, t[1])))

    found = max(
        -minimize(negative, rng.standard_normal(8), method="Nelder-Mead", options={"maxiter": 4000}).fun
        for _ in range(8)
    )
    assert 0.99 * SPREAD < found <= SPREAD + 1e-9
    assert NORM**2 == pytest.approx(max(np.linalg.norm(vector(np.eye(1, 4)[0], s)) ** 2 for s in (1.0, -1.0)))


def test_the_l1_spread_bounds_and_is_nearly_attained() -> None:
    rng = np.random.default_rng(4)
    for d in (2, 5, 30):
        x = np.full(d, 1 / math.sqrt(d))
        flipped = x * np.where(rng.random(d) < 0.5, 1.0, -1.0)
        got = np.abs(vector(x, 1.0) - vector(-x, 1.0)).sum()
        assert got == pytest.approx(2 * math.sqrt(d)) and got <= l1_spread(d)
        assert np.abs(vector(x, 1.0) - vector(flipped, -1.0)).sum() <= l1_spread(d)
        assert np.abs(vector(x, 1.0)).sum() * 2 == pytest.approx(l1_spread(d), rel=1e-12)


def test_the_spread_holds_in_every_norm_and_is_tighter_than_the_papers_in_l1() -> None:
    """Searched over pairs of records, sign patterns among them, which come within 10 % of the L1 bound."""
    rng = np.random.default_rng(8)
    for d in (1, 2, 3, 8, 30):
        assert features(coordinates(d)) == d
        bound = spread(d)
        assert bound.l1 < l1_spread(d) and bound.l1 <= math.sqrt(coordinates(d)) * SPREAD * (1 + 1e-9)
        best = np.zeros(3)
        for _ in range(400):
            x, u = rng.choice([-1.0, 1.0], (2, d)) / math.sqrt(d) if rng.random() < 0.7 else rng.normal(size=(2, d))
            x, u = x / np.linalg.norm(x), u / np.linalg.norm(u)
            moved = vector(x, 1.0) - vector(u * rng.choice([1.0, rng.random()]), rng.choice([-1.0, 1.0]))
            best = np.maximum(best, [np.abs(moved).sum(), np.linalg.norm(moved), np.abs(moved).max()])
        assert np.all(best <= np.array([bound.l1, bound.l2, bound.linf]) * (1 + 1e-12))
        assert d < 8 or best[0] > 0.6 * bound.l1


def test_ridge_without_noise_is_ridge() -> None:
    X, y = records(200)
    want = erm.solve(erm.ridge(50.0), X, y, 0.01).theta
    np.testing.assert_allclose(minimiser(coefficients(X, y), 6, "ridge", 0.01), want, atol=1e-9)


def test_owners_means_combine_by_size() -> None:
    X, y = records(30)
    offsets = np.array([0, 4, 20, 30])
    parts = owner_coefficients(X, y, offsets)
    np.testing.assert_allclose(np.diff(offsets) @ parts / 30, coefficients(X, y), rtol=1e-12, atol=1e-15)


def test_eigenvalues_are_raised_to_half_the_edge_of_the_noise() -> None:
    """The edge is that of the noise's own spectrum (a fixed seed); the model stays finite."""
    d, sigma = 60, 0.3
    rng = np.random.default_rng(5)
    noise = sigma * rng.standard_normal(coordinates(d))
    _, N = decode(noise, d)
    assert np.linalg.eigvalsh(N).max() == pytest.approx(2 * noise_floor(d, sigma), rel=0.15)
    theta = minimiser(noise, d, "logistic", 1e-3, sigma)
    assert np.linalg.norm(theta) <= np.linalg.norm(noise[:d]) / 2 / (noise_floor(d, sigma) / 4 + 1e-3)
    wild = minimiser(noise, d, "logistic", 1e-3, 0.0)
    assert np.linalg.norm(wild) > 10 * np.linalg.norm(theta)


def test_errors() -> None:
    with refuses("shape", 27, 26):
        decode(np.zeros(26), 6)
    with refuses("enough"):
        coefficients(np.zeros((0, 3)), np.zeros(0))
