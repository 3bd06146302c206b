"""The papers' bounds: formulas by a second route, equation (11) held against descents, what t iterations spend."""

import json
import math

import numpy as np
import pytest
from click.testing import CliRunner
from scipy.special import chdtri

from dpmpc.cli.main import named
from dpmpc.learning import erm
from dpmpc.privacy.gaussian import gaussian_epsilon, gaussian_scale
from dpmpc.privacy.literature import PaperSetting, rajkumar_sigma
from dpmpc.privacy.risk import (
    advised_iterations,
    bounds,
    descent_excess,
    generalisation,
    gradient_excess,
    kang_order,
    objective_excess,
    objective_order,
    objective_records,
    output_excess,
    spent_at,
)

command = named("account")

KDD = PaperSetting(owners=1000, smallest=50, epsilon=0.5, delta=1e-3, iterations=1500, dimension=122, lam=1e-3)


def test_the_values_of_the_docs() -> None:
    values = {bound.name: bound.value for bound in bounds(KDD)}
    assert values["Kang et al., equation (11), noise of exact zCDP"] == pytest.approx(8.4, abs=0.05)
    assert values["Jayaraman et al., Theorem 3.2 (MPC Out P)"] == pytest.approx(1.0e8, rel=0.02)
    assert values["Theorem 3.6 (MPC Grad P)"] == pytest.approx(39.5, abs=0.1)
    assert len(values) == 10


def test_formulas_by_hand() -> None:
    s = PaperSetting(owners=3, smallest=7, epsilon=0.4, delta=0.01, iterations=5, dimension=2, lam=0.5, records=40)
    log = math.log(2 / 0.01)
    want = (0.5 + 0.25) / (49 * 0.25) * (9 + 4 * log**2 / (9 * 0.16) + 2 * log / 0.4)
    assert output_excess(s) == pytest.approx(want)
    want = 0.25 * 2 * math.log(21) ** 2 * math.log(100) / (21 * 0.5 * 0.4) ** 2
    assert gradient_excess(s) == pytest.approx(want)
    assert generalisation(s, 0.1) == pytest.approx(math.log(10) / (0.5 * 40))
    assert advised_iterations(s) == pytest.approx(math.log(21**2 * 0.16 / (2 * math.log(100))))
    assert kang_order(s) == pytest.approx(2 * math.log(100) * math.log(40) / (40**2 * 0.16))
    assert objective_order(2, 0.4, 0.01, 0.1) == pytest.approx(4 * math.log(100) * math.log(10) / 0.16)


def mean_gap(h: np.ndarray, sigma: float, iterations: int) -> tuple[float, float, float]:
    """(mean, standard error, start) of J - J* after noisy steps of length 1 on curvatures h, over 4,000 runs."""
    rng = np.random.default_rng(1)
    theta = np.tile(rng.standard_normal(len(h)), (4000, 1))
    start = float(0.5 * (h * theta[0] ** 2).sum())
    for _ in range(iterations):
        theta = theta - (theta * h + sigma * rng.standard_normal(theta.shape))
    gaps = 0.5 * (theta**2 * h).sum(axis=1)
    return float(gaps.mean()), float(gaps.std()) / math.sqrt(4000), start


def test_equation_11_bounds_descents_and_is_attained() -> None:
    """Six standard errors on either side: false alarm 1e-9. Loose by 155 at curvatures 0.02 to 1, exact at 1 alone."""
    mean, error, start = mean_gap(np.array([0.02, 0.1, 0.4, 1.0]), 0.05, 60)
    bound = descent_excess(4, 0.05, 60, 0.02, 1.0, start)
    assert mean + 6 * error < bound and 100 < bound / mean < 200
    mean, error, start = mean_gap(np.ones(4), 0.05, 5)
    bound = descent_excess(4, 0.05, 5, 1.0, 1.0, start)
    assert abs(mean - bound) < 6 * error < 0.1 * bound  # so that a bound a tenth smaller would be refused


def test_theorem_5_1_bounds_gaussian_objective_perturbation() -> None:
    """At most 5 % of draws may exceed it; none of 200 does, and the tail quantile is the chi-squared one."""
    rng = np.random.default_rng(2)
    X = rng.standard_normal((80, 3))
    X /= np.linalg.norm(X, axis=1)[:, None]
    y = np.where(X[:, 0] > 0, 1.0, -1.0)
    lam, sigma = 0.1, rajkumar_sigma(3, 5.0, 0.01)
    best = erm.objective(erm.LOGISTIC, erm.solve(erm.LOGISTIC, X, y, lam).theta, X, y, lam)
    bound = objective_excess(3, 5.0, 0.01, 80, lam, 0.25)
    assert bound == pytest.approx(0.35 * sigma**2 * chdtri(3, 0.05) / (2 * 80**2 * 0.01))
    for _ in range(200):
        eta = sigma * rng.standard_normal(3)
        theta = erm.solve(erm.LOGISTIC, X, y, lam, linear=eta / 80).theta
        excess = erm.objective(erm.LOGISTIC, theta, X, y, lam) - best
        assert excess <= 0.35 * (eta @ eta) / (2 * 80**2 * 0.01)


def test_theorem_5_3_is_the_largest_of_three() -> None:
    d, e, delta = 10, 0.1, 0.05
    root = rajkumar_sigma(d, e, delta) * math.sqrt(chdtri(d, 0.05))
    terms = (25 * math.log(20) / 0.04, 0.25 * 25 / (0.2 * 0.1), 5 * root / 0.2)
    assert objective_records(d, e, delta, 0.25, accuracy=0.2, norm=5.0) == pytest.approx(max(terms))


@pytest.mark.parametrize(("epsilon", "delta"), [(0.5, 1e-3), (2.0, 1e-6), (0.05, 1e-2)])
def test_corollary_3_5_holds_for_tight_calibration_and_the_exact_value_is_that_of_t_releases(
    epsilon: float, delta: float
) -> None:
    sigma = gaussian_scale(epsilon, delta, 1.0, 100)
    for t in (1, 7, 25, 50, 100):
        printed, exact = spent_at(t, 100, epsilon, delta)
        assert printed == pytest.approx(math.sqrt(t / 100) * epsilon)
        assert exact == pytest.approx(gaussian_epsilon(sigma, delta, 1.0, t), rel=1e-6, abs=1e-12)
        assert exact <= printed * (1 + 1e-9)


def test_account_shows_them() -> None:
    arguments = "--epsilon 0.5 --delta 1e-3 --iterations 1500 --owners 1000 --smallest 50 --lam 1e-3".split()
    text = CliRunner().invoke(command, arguments, catch_exceptions=False).output
    assert "Theorem 3.2" in text and "Corollary 3.5" in text and "333 colluding owners: epsilon 0.5 made" in text
    value = json.loads(CliRunner().invoke(command, [*arguments, "--json"], catch_exceptions=False).output)
    assert [round(value["collusion"][k], 2) for k in ("mpc", "masks", "cape", "none")] == [0.5, 0.64, 0.86, 43.9]
    assert len(value["risk"]) == 10 and value["progress"][-1]["exact"] == pytest.approx(0.5)
