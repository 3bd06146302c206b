"""Gaussian accounting against mpmath, two accountants of dp-accounting, and published numbers. Tests import that
package themselves: its imports take longer than they do."""

import itertools
import math

import mpmath
import numpy as np
import pytest

from dpmpc.privacy import gaussian
from dpmpc.privacy.gaussian import (
    _mills,
    _mills_slope,
    delta_of_mu,
    epsilon_of_mu,
    gaussian_delta,
    gaussian_epsilon,
    gaussian_releases,
    gaussian_scale,
    log_delta,
    log_ndtr,
    mu_of_budget,
)
from tests.refusals import in_one_line

EPSILONS = (1e-3, 1e-2, 0.1, 0.5, 1.0, 4.0, 10.0, 20.0)
DELTAS = (1e-12, 1e-9, 1e-6, 1e-3, 0.1)
RELEASES = (1, 10, 1_000, 1_000_000)
BUDGETS = list(itertools.product(EPSILONS, DELTAS))


def exact_log_delta(epsilon: float, mu: float) -> mpmath.mpf:
    """log delta(epsilon) to 60 digits, from the definition."""
    with mpmath.workdps(60 + int(epsilon)):
        e, u = mpmath.mpf(epsilon), mpmath.mpf(mu)
        return mpmath.log(mpmath.ncdf(u / 2 - e / u) - mpmath.exp(e) * mpmath.ncdf(-u / 2 - e / u))


@pytest.mark.parametrize(("epsilon", "delta"), BUDGETS)
def test_every_direction_agrees_with_mpmath(epsilon: float, delta: float) -> None:
    mu = mu_of_budget(epsilon, delta)
    slope = (exact_log_delta(epsilon, mu * 1.001) - exact_log_delta(epsilon, mu)) / mpmath.log(1.001)
    error = (exact_log_delta(epsilon, mu) - mpmath.log(delta)) / slope  # first order: relative error of mu
    assert -1e-9 < error <= 0, "on the private side, and tight"
    assert gaussian_delta(1 / mu, epsilon, 1.0) == pytest.approx(delta, rel=1e-9)
    assert gaussian_epsilon(1 / mu, delta, 1.0) == pytest.approx(epsilon, rel=1e-7)
    for releases in RELEASES:
        sigma = gaussian_scale(epsilon, delta, 0.037, releases)
        assert sigma == pytest.approx(0.037 * math.sqrt(releases) / mu, rel=1e-12)
        assert gaussian_delta(sigma, epsilon, 0.037, releases) == pytest.approx(delta, rel=1e-9)
        assert gaussian_epsilon(sigma, delta, 0.037, releases) == pytest.approx(epsilon, rel=1e-7)
        assert gaussian_releases(sigma, epsilon, delta, 0.037) == releases
        assert gaussian_releases(sigma * (1 - 1e-7), epsilon, delta, 0.037) == releases - 1


@pytest.mark.parametrize("mu", [1e-4, 0.01, 0.3, 0.499, 0.501, 1.0, 3.0, 8.0, 30.0])
@pytest.mark.parametrize("epsilon", [0.0, 1e-3, 0.3, 1.0, 7.0, 20.0, 200.0])
def test_tails_agree_with_mpmath_far_beyond_the_useful_range(epsilon: float, mu: float) -> None:
    if epsilon / mu < 1e5:
        assert log_delta(epsilon, mu) == pytest.approx(float(exact_log_delta(epsilon, mu)), rel=1e-10, abs=1e-10)


@pytest.mark.parametrize(("epsilon", "delta"), BUDGETS)
def test_delta_agrees_with_the_closed_form_of_dp_accounting(epsilon: float, delta: float) -> None:
    from dp_accounting.pld import privacy_loss_mechanism

    sigma = gaussian_scale(epsilon, delta, 1.0)
    theirs = privacy_loss_mechanism.GaussianPrivacyLoss(sigma).get_delta_for_epsilon(epsilon)
    assert theirs == pytest.approx(delta, rel=1e-6, abs=3e-16 * math.exp(epsilon))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("epsilon", "delta", "releases"), [(0.5, 1e-3, 100), (1.0, 1e-9, 1_000), (8.0, 1e-6, 30), (0.05, 1e-5, 10)]
)
def test_composition_lies_between_the_bounds_of_a_privacy_loss_distribution(
    epsilon: float, delta: float, releases: int
) -> None:
    from dp_accounting.pld import privacy_loss_distribution

    sigma = gaussian_scale(epsilon, delta, 1.0, releases)
    bounds = []
    for pessimistic in (False, True):
        one = privacy_loss_distribution.from_gaussian_mechanism(
            sigma,
            value_discretization_interval=epsilon / releases / 2e3 if releases < 500 else 1e-5,
            pessimistic_estimate=pessimistic,
            use_connect_dots=pessimistic,
        )
        bounds.append(one.self_compose(releases).get_epsilon_for_delta(delta))
    low, high = bounds
    assert low * (1 - 1e-6) <= epsilon <= high * (1 + 1e-6)
    assert high == pytest.approx(epsilon, rel=1e-3)


@pytest.mark.parametrize(("epsilon", "delta"), [(0.1, 1e-6), (0.5, 1e-3), (1.0, 1e-9), (4.0, 1e-5), (10.0, 1e-12)])
@pytest.mark.parametrize("releases", RELEASES)
def test_renyi_accounting_lies_between_tight_and_zcdp(epsilon: float, delta: float, releases: int) -> None:
    from dp_accounting import GaussianDpEvent, SelfComposedDpEvent
    from dp_accounting.rdp import RdpAccountant

    sigma = gaussian_scale(epsilon, delta, 1.0, releases)
    orders = [1 + x / 50 for x in range(1, 500)] + list(range(12, 2000))
    accountant = RdpAccountant(orders)
    accountant.compose(SelfComposedDpEvent(GaussianDpEvent(sigma), releases))
    renyi = accountant.get_epsilon(delta)
    zcdp = gaussian_epsilon(sigma, delta, 1.0, releases, "zcdp")
    assert epsilon <= renyi <= zcdp * (1 + 1e-3)


@pytest.mark.parametrize(("epsilon", "delta"), BUDGETS)
def test_zcdp_is_the_exact_root(epsilon: float, delta: float) -> None:
    with mpmath.workdps(50):
        L = mpmath.log(1 / mpmath.mpf(delta))
        rho = (mpmath.sqrt(L + epsilon) - mpmath.sqrt(L)) ** 2
        assert abs(rho + 2 * mpmath.sqrt(rho * L) - epsilon) < 1e-12 * epsilon  # it solves what it should
        mu = float(mpmath.sqrt(2 * rho))
    assert mu_of_budget(epsilon, delta, "zcdp") == pytest.approx(mu, rel=1e-11)
    assert epsilon_of_mu(mu, delta, "zcdp") == pytest.approx(epsilon, rel=1e-11)
    assert delta_of_mu(mu, epsilon, "zcdp") == pytest.approx(delta, rel=1e-9)
    assert mu < mu_of_budget(epsilon, delta) and gaussian_scale(epsilon, delta, 1.0, 9, "zcdp") > 3 / mu * (1 - 1e-9)


def test_the_example_of_the_design() -> None:
    """m = 100, n_(1) = 500, T = 100, epsilon = 0.5, delta = 1e-3."""
    sensitivity = 2 / (100 * 500)
    paper = gaussian_scale(0.5, 1e-3, sensitivity, 100, "paper")
    assert paper == pytest.approx(math.sqrt(8 * 100 * math.log(1e3)) / (100 * 500 * 0.5), rel=1e-12)
    assert paper == pytest.approx(2.9735e-3, abs=5e-8)
    assert gaussian_scale(0.5, 1e-3, sensitivity, 100, "zcdp") == pytest.approx(3.0264e-3, abs=5e-8)
    tight = gaussian_scale(0.5, 1e-3, sensitivity, 100)
    assert tight == pytest.approx(1.8441e-3, abs=5e-8)
    assert 1 - tight / paper == pytest.approx(0.38, abs=0.005)
    assert gaussian_epsilon(paper, 1e-3, sensitivity, 100, "zcdp") == pytest.approx(0.50905, abs=5e-6)
    assert gaussian_epsilon(paper, 1e-3, sensitivity, 100) == pytest.approx(0.28251, abs=5e-6)


def test_the_printed_formula_is_its_own_inverse_and_fails_above_6_98() -> None:
    for epsilon, delta in BUDGETS:
        sigma = gaussian_scale(epsilon, delta, 0.3, 7, "paper")
        assert gaussian_epsilon(sigma, delta, 0.3, 7, "paper") == pytest.approx(epsilon, rel=1e-12)
        assert gaussian_delta(sigma, epsilon, 0.3, 7, "paper") == pytest.approx(delta, rel=1e-9)
        assert gaussian_releases(sigma, epsilon, delta, 0.3, "paper") == 7
    for epsilon, holds in ((6.97, True), (6.99, False)):
        assert (gaussian_epsilon(gaussian_scale(epsilon, 1e-3, 1.0, 1, "paper"), 1e-3, 1.0) <= epsilon) is holds


def test_epsilon_is_zero_when_delta_covers_everything_and_delta_is_one_beyond_reach() -> None:
    assert gaussian_epsilon(100.0, 0.01, 1.0) == 0.0
    assert gaussian_delta(1e-3, 1.0, 1.0) == pytest.approx(1.0)
    assert gaussian_delta(1e-3, 1.0, 1.0, calibration="zcdp") == 1.0
    assert gaussian_releases(1e-3, 1.0, 1e-5, 1.0) == 0


@pytest.mark.parametrize(
    "call",
    [
        lambda: gaussian_scale(0.0, 1e-3, 1.0),
        lambda: gaussian_scale(math.nan, 1e-3, 1.0),
        lambda: gaussian_scale(math.inf, 1e-3, 1.0),
        lambda: gaussian_scale(1.0, 0.0, 1.0),
        lambda: gaussian_scale(1.0, 1.0, 1.0),
        lambda: gaussian_scale(1.0, 1e-3, 0.0),
        lambda: gaussian_scale(1.0, 1e-3, 1.0, 0),
        lambda: gaussian_scale(1.0, 1e-3, 1.0, 1, "best"),  # type: ignore[arg-type]
        lambda: gaussian_epsilon(0.0, 1e-3, 1.0),
        lambda: gaussian_epsilon(1.0, 1e-3, 1.0, calibration="best"),  # type: ignore[arg-type]
        lambda: gaussian_delta(1.0, -1.0, 1.0),
        lambda: gaussian_delta(1.0, 1.0, 1.0, calibration="best"),  # type: ignore[arg-type]
        lambda: gaussian_releases(1.0, 1.0, 1e-3, -1.0),
    ],
)
def test_bad_values_are_named_in_one_line_with_a_way_out(call) -> None:  # type: ignore[no-untyped-def]
    with in_one_line():
        call()


@pytest.mark.parametrize(
    "x", [-36.9, -20.0, -5.0, -1.0, -1e-3, 0.0, 1e-9, 0.5, 1.0, 4.999999, 5.0, 7.3, 49.9, 50.001, 1e4]
)
def test_tails_of_the_normal_law_agree_with_mpmath(x: float) -> None:
    """Mills' ratio, its slope and log Phi, where they change their formula too."""
    with mpmath.workdps(60):
        z = mpmath.mpf(x)
        ratio = mpmath.sqrt(mpmath.pi / 2) * mpmath.exp(z * z / 2) * mpmath.erfc(z / mpmath.sqrt(2))
        if x < 1e4:
            assert abs(_mills(x) / ratio - 1) < 2e-13
        if -1 < x < 1e4:
            assert abs(_mills_slope(x) / (1 - z * ratio) - 1) < 1e-11
        log_tail = mpmath.log(mpmath.erfc(-z / mpmath.sqrt(2)) / 2) if x < 1e4 else mpmath.mpf(0)
        assert abs(log_ndtr(x) - log_tail) <= 1e-12 * max(1e-3, abs(log_tail))


@pytest.mark.parametrize("mu", [9e3, 1.1e4, 1e9, 1e160])
def test_hardly_any_noise_has_an_epsilon_too(mu: float) -> None:
    """A plan may ask for it, and is then refused: between mu^2 / 2, below which delta is nearly 1/2, and zCDP's."""
    found = epsilon_of_mu(mu, 1e-5)
    assert mu * mu / 2 <= found <= (mu * mu / 2 + mu * math.sqrt(2 * math.log(1e5))) * (1 + 1e-9)


def test_nodes_and_weights_are_those_of_gauss_and_legendre() -> None:
    nodes, weights = np.polynomial.legendre.leggauss(20)
    assert np.allclose(gaussian._NODES, nodes, rtol=0, atol=1e-15)
    assert np.allclose(gaussian._WEIGHTS, weights, rtol=1e-13)
    for power in range(0, 40, 2):  # exact up to degree 39
        exact = 2 / (power + 1)
        found = math.fsum(w * z**power for z, w in zip(gaussian._NODES, gaussian._WEIGHTS, strict=True))
        assert abs(found - exact) < 1e-14
