"""Losses, gradients and optima against finite differences, closed forms, mpmath, scikit-learn and SciPy."""

import mpmath
import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.optimize import minimize, minimize_scalar
from scipy.sparse import csr_array
from scipy.special import expit
from sklearn.linear_model import LogisticRegression

from dpmpc.learning import erm
from dpmpc.learning.losses import LOGISTIC
from dpmpc.learning.row_sums import FEW, row_sums
from tests.refusals import refuses

Floats = NDArray[np.float64]
LOSSES = [erm.LOGISTIC, erm.ridge(0.4), erm.ridge(3.0)]


def records(n: int, d: int, seed: int, task: str = "logistic") -> tuple[Floats, Floats]:
    """n records in the unit ball of R^d with noisy labels, the first record zero."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    X /= np.linalg.norm(X, axis=1, keepdims=True) / rng.random((n, 1))
    X[0] = 0.0
    s = X @ rng.standard_normal(d) + 0.3 * rng.standard_normal(n)
    return X, np.where(s > 0, 1.0, -1.0) if task == "logistic" else np.clip(s, -1, 1)


@pytest.mark.parametrize("loss", LOSSES)
def test_derivatives_are_those_of_the_value_and_stay_within_G_and_L(loss: erm.Loss) -> None:
    s = np.linspace(-6.001, 6, 2001)  # no point of the grid is within h of a kink
    h = 1e-5
    for label in (-1.0, 1.0, 0.25):
        y = np.full_like(s, label)
        slope = (loss.value(s + h, y) - loss.value(s - h, y)) / (2 * h)
        curve = (loss.derivative(s + h, y) - loss.derivative(s - h, y)) / (2 * h)
        smooth = np.abs(np.abs(s - label) - loss.G) > 2 * h
        assert np.abs(loss.derivative(s, y) - slope).max() < 1e-5
        assert np.abs(loss.derivative(s, y) - slope)[smooth].max() < 1e-9
        if abs(label) == 1 or loss.name == "ridge":  # y^2 = 1 is used for labels
            assert np.abs(loss.second_derivative(s, y) - curve)[smooth].max() < 1e-5
        assert np.abs(loss.derivative(s, y)).max() <= loss.G
        assert 0 <= loss.second_derivative(s, y).min() and loss.second_derivative(s, y).max() <= loss.L


def test_bounds_G_and_L_are_reached() -> None:
    far, at = np.array([-800.0]), np.array([0.0])
    y = np.array([1.0])
    assert erm.LOGISTIC.derivative(far, y)[0] == -1.0
    assert erm.LOGISTIC.second_derivative(at, y)[0] == 0.25
    assert erm.ridge(0.4).derivative(far, y)[0] == -0.4


def test_logistic_is_stable_for_huge_scores() -> None:
    mpmath.mp.dps = 40
    s = np.array([-1e6, -745.0, -40.0, -1e-9, 0.0, 1e-9, 30.0, 36.0, 745.0, 1e6])
    for label in (-1.0, 1.0):
        y = np.full_like(s, label)
        for k, score in enumerate(s):
            z = mpmath.mpf(label * score)
            value = mpmath.log1p(mpmath.exp(-z)) if z > -1e5 else -z
            slope = -label / (1 + mpmath.exp(min(z, mpmath.mpf(10**5))))
            assert erm.LOGISTIC.value(s, y)[k] == pytest.approx(float(value), rel=1e-14, abs=1e-300)
            assert erm.LOGISTIC.derivative(s, y)[k] == pytest.approx(float(slope), rel=1e-13, abs=1e-300)


def test_ridge_is_the_squared_loss_inside_its_clip() -> None:
    s, y = np.linspace(-1, 1, 101), np.zeros(101)
    assert np.allclose(erm.ridge(1.0).value(s, y), 0.5 * s**2, rtol=1e-15, atol=0)
    assert erm.ridge(0.5).value(np.array([2.0]), np.array([0.0]))[0] == 0.5 * 0.25 + 0.5 * 1.5


@pytest.mark.parametrize("loss", LOSSES)
def test_gradient_is_that_of_the_objective(loss: erm.Loss) -> None:
    X, y = records(50, 4, 1, "logistic" if loss.name == "logistic" else "ridge")
    theta, h = np.array([0.3, -1.2, 0.7, 2.0]), 1e-6
    numeric = [
        (erm.objective(loss, theta + h * e, X, y, 0.1) - erm.objective(loss, theta - h * e, X, y, 0.1)) / (2 * h)
        for e in np.eye(4)
    ]
    assert np.allclose(erm.gradient(loss, theta, X, y, 0.1), numeric, atol=1e-8)


def test_owner_gradients_are_each_owners_mean_gradient() -> None:
    X, y = records(200, 6, 2)
    offsets = np.array([0, 1, 2, 60, 61, 200])
    theta = np.arange(6.0)
    got = erm.owner_gradients(erm.LOGISTIC, theta, X, y, offsets)
    for j in range(5):
        rows = slice(offsets[j], offsets[j + 1])
        assert np.allclose(got[j], erm.gradient(erm.LOGISTIC, theta, X[rows], y[rows]), rtol=1e-13, atol=1e-15)
    assert np.linalg.norm(got, axis=1).max() <= 1


def test_owner_gradients_of_one_record_each() -> None:
    X, y = records(3000, 5, 3)
    got = erm.owner_gradients(erm.LOGISTIC, np.ones(5), X, y, np.arange(3001))
    assert np.allclose(got, erm.LOGISTIC.derivative(X @ np.ones(5), y)[:, None] * X, atol=1e-16)


@pytest.mark.parametrize("lam", [1.0, 1e-2, 1e-4])
def test_logistic_optimum_is_scikit_learns(lam: float) -> None:
    X, y = records(400, 8, 4)
    solution = erm.solve(erm.LOGISTIC, X, y, lam)
    oracle = LogisticRegression(C=1 / (400 * lam), fit_intercept=False, tol=1e-12, solver="newton-cholesky").fit(X, y)
    assert np.abs(solution.theta - oracle.coef_[0]).max() < 1e-7
    assert solution.gradient_norm <= 1e-10


def test_ridge_optimum_is_the_closed_form_inside_the_clip() -> None:
    X, y = records(300, 5, 5, "ridge")
    theta = erm.solve(erm.ridge(50.0), X, y, 0.01).theta
    exact = np.linalg.solve(X.T @ X / 300 + 0.01 * np.eye(5), X.T @ y / 300)
    assert np.abs(theta - exact).max() < 1e-12


@pytest.mark.parametrize("clip", [0.01, 0.1, 0.5])
def test_clipped_ridge_optimum_against_a_solver_without_second_derivatives(clip: float) -> None:
    X, y = records(300, 5, 6, "ridge")
    loss = erm.ridge(clip)
    solution = erm.solve(loss, X, y, 1e-3)
    oracle = minimize(
        lambda t: erm.objective(loss, t, X, y, 1e-3),
        np.zeros(5),
        jac=lambda t: erm.gradient(loss, t, X, y, 1e-3),
        method="L-BFGS-B",
        options={"ftol": 1e-16, "gtol": 1e-9, "maxiter": 5000},
    )
    assert solution.gradient_norm <= 1e-10
    assert np.abs(solution.theta - oracle.x).max() < 1e-4
    assert erm.objective(loss, solution.theta, X, y, 1e-3) <= oracle.fun + 1e-15


@pytest.mark.parametrize("loss", LOSSES[:2])  # the third is quadratic here: solved in one step
def test_certificate_is_the_gradient_at_the_returned_theta_and_bounds_the_distance(loss: erm.Loss) -> None:
    X, y = records(120, 7, 7, loss.name)
    best = erm.solve(loss, X, y, 0.05).theta
    rough = erm.solve(loss, X, y, 0.05, tolerance=3e-2)
    assert rough.gradient_norm == pytest.approx(np.linalg.norm(erm.gradient(loss, rough.theta, X, y, 0.05)), rel=1e-9)
    assert 1e-10 < rough.gradient_norm <= 3e-2
    assert np.linalg.norm(rough.theta - best) <= rough.gradient_norm / 0.05


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("d", [3, 40])
def test_owners_optima_are_those_of_solving_one_by_one(loss: erm.Loss, d: int) -> None:
    X, y = records(400, d, 8, loss.name)
    offsets = np.cumsum([0, 1, 1, 2, 5, 6, 7, 30, 31, 100, 117, 100])
    theta, norms = erm.solve_owners(loss, X, y, offsets, 0.01)
    assert norms.max() <= 1e-10
    for j in range(11):
        rows = slice(offsets[j], offsets[j + 1])
        alone = minimize(
            lambda t, rows=rows: erm.objective(loss, t, X[rows], y[rows], 0.01),
            np.zeros(d),
            jac=lambda t, rows=rows: erm.gradient(loss, t, X[rows], y[rows], 0.01),
            method="L-BFGS-B",
            options={"ftol": 1e-16, "gtol": 1e-8, "maxiter": 5000, "maxfun": 50000},
        )
        assert np.abs(theta[j] - alone.x).max() < 2e-4
        assert norms[j] == pytest.approx(
            np.linalg.norm(erm.gradient(loss, theta[j], X[rows], y[rows], 0.01)), abs=1e-14
        )


def test_every_one_of_many_owners_reaches_the_tolerance() -> None:
    """Near an optimum J no longer shows a step's gain, in some of many problems always; the gradient has to decide."""
    X, y = records(20_000, 30, 13)
    for lam in (0.5, 0.1, 0.01):
        _, norms = erm.solve_owners(erm.LOGISTIC, X, y, np.arange(0, 20_001, 40), lam)
        assert norms.max() <= 1e-10


def test_one_record_each_is_a_scalar_problem() -> None:
    X, y = records(2000, 30, 9)
    theta, norms = erm.solve_owners(erm.LOGISTIC, X, y, np.arange(2001), 1e-3)
    assert norms.max() <= 1e-10 and not theta[0].any()
    for j in (1, 2, 77, 1999):
        r = np.linalg.norm(X[j])
        found = minimize_scalar(lambda a, j=j, r=r: np.logaddexp(0, -y[j] * a * r) + 5e-4 * a * a, tol=1e-12)
        assert np.abs(theta[j] - found.x * X[j] / r).max() < 1e-6


@pytest.mark.parametrize("n", [4, 60])
def test_a_linear_term_moves_the_optimum_inside_and_outside_the_records_span(n: int) -> None:
    X, y = records(n, 9, 10)
    b = np.random.default_rng(0).standard_normal(9)
    solution = erm.solve(erm.LOGISTIC, X, y, 0.1, linear=b)
    oracle = minimize(
        lambda t: erm.objective(erm.LOGISTIC, t, X, y, 0.1) + b @ t,
        np.zeros(9),
        jac=lambda t: erm.gradient(erm.LOGISTIC, t, X, y, 0.1) + b,
        method="BFGS",
        options={"gtol": 1e-9},
    )
    assert np.abs(solution.theta - oracle.x).max() < 1e-7 and solution.gradient_norm < 1e-10


@pytest.mark.parametrize("loss", LOSSES)
def test_replacing_one_record_moves_the_optimum_by_at_most_2G_over_n_lam(loss: erm.Loss) -> None:
    n, lam = 20, 0.02
    X, y = records(n, 3, 11, loss.name)
    theta = erm.solve(loss, X, y, lam).theta
    moved = []
    for direction in np.vstack([np.eye(3), -np.eye(3)]):
        for label in (-1.0, 1.0):
            Z, z = X.copy(), y.copy()
            Z[5], z[5] = direction, label
            moved.append(np.linalg.norm(erm.solve(loss, Z, z, lam).theta - theta))
    assert 0.05 < max(moved) * n * lam / (2 * loss.G) <= 1


def test_separable_and_repeated_records_have_an_optimum_too() -> None:
    X = np.repeat(np.eye(4)[:2], 10, axis=0)
    y = np.repeat([1.0, -1.0], 10)
    solution = erm.solve(erm.LOGISTIC, X, y, 1e-6)
    assert solution.gradient_norm <= 1e-10
    assert solution.theta[0] == pytest.approx(-solution.theta[1]) and not solution.theta[2:].any()
    assert 1e-6 * solution.theta[0] == pytest.approx(0.5 / (1 + np.exp(solution.theta[0])), rel=1e-6)


def test_scores() -> None:
    X = np.array([[1.0], [-1.0], [0.0], [0.5]])
    assert erm.accuracy(np.array([1.0]), X, np.array([1.0, -1.0, -1.0, -1.0])) == 0.75
    assert erm.mse(np.array([1.0]), X, np.array([1.0, 1.0, 0.0, 0.0])) == (4 + 0.25) / 4


def test_bad_arguments_have_a_way_out() -> None:
    X, y = records(10, 2, 12)
    with refuses("range", "0.0"):
        erm.solve(erm.LOGISTIC, X, y, 0.0)
    with refuses("enough"):
        erm.solve_owners(erm.LOGISTIC, X, y, np.array([0, 4, 4, 10]), 0.1)
    with refuses("range"):
        erm.solve(erm.LOGISTIC, np.where(X == 0, np.nan, X), y, 0.1)
    with refuses("range"):
        erm.solve(erm.LOGISTIC, np.where(X > 0, np.inf, -np.inf), y, 0.1)
    with refuses("range", "0.0"):
        erm.ridge(0.0)
    with refuses("enough"):
        erm.accuracy(np.zeros(2), X[:0], y[:0])


@pytest.mark.parametrize("d", [1, 2, 7, 31])
def test_sums_of_rows_have_the_sparse_products_bits_be_they_few_or_many(d: int) -> None:
    rng = np.random.default_rng(d)
    for number in (1, 3, FEW, FEW + 1, 40):
        n = 300
        X, coefficients = rng.normal(size=(n, d)), rng.normal(size=n)
        cuts = np.sort(np.r_[0, rng.integers(0, n, number - 1), n])
        expected = csr_array((coefficients, np.arange(n), cuts), shape=(number, n)) @ X
        assert np.array_equal(row_sums(coefficients, X, cuts), expected)
    last = row_sums(coefficients, X, np.array([0, n - 1]))
    assert not np.array_equal(last, row_sums(coefficients, X, np.array([0, n])))


def test_the_logistic_loss_is_scipys_to_some_units_in_the_last_place() -> None:
    s = np.concatenate([np.linspace(-700, 700, 4001), [-1e4, -745.2, 745.2, 1e4]])
    up = LOGISTIC.derivative(s, np.full(len(s), -1.0))
    assert np.allclose(up, expit(s), rtol=1e-15, atol=2e-308) and up.max() == 1
    assert np.allclose(LOGISTIC.second_derivative(s, 1 + 0 * s), expit(s) * expit(-s), rtol=2e-15, atol=2e-308)
