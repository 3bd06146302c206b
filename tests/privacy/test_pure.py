"""Optimal composition of pure releases against two other routes: the closed form of the theorem, and every outcome of
randomised response, in 50 digits; and what is claimed of filters."""

import itertools
import math

import mpmath
import pytest

from dpmpc.privacy.gaussian import epsilon_of_mu
from dpmpc.privacy.laplace import laplace_epsilon
from dpmpc.privacy.pure import mixed_epsilon, pure_epsilon
from dpmpc.privacy.spending import Spending
from tests.privacy.pure_releases import pure_delta

mpmath.mp.dps = 50


def closed_form(k: int, epsilon: float, i: int) -> mpmath.mpf:
    """delta_i at (k - 2i) epsilon: Kairouz, Oh, Viswanath 2015, Theorem 3.3, as printed."""
    e = mpmath.mpf(epsilon)
    terms = (mpmath.binomial(k, l) * (mpmath.exp((k - l) * e) - mpmath.exp((k - 2 * i + l) * e)) for l in range(i))
    return sum(terms, mpmath.mpf(0)) / (1 + mpmath.exp(e)) ** k


def enumerated(losses: list[float], epsilon: float) -> mpmath.mpf:
    """The hockey-stick divergence of randomised responses with these epsilons, over all 2^k outcomes."""
    truth = [mpmath.exp(e) / (1 + mpmath.exp(e)) for e in losses]
    total = mpmath.mpf(0)
    for answers in itertools.product((True, False), repeat=len(losses)):
        p = mpmath.fprod(t if a else 1 - t for t, a in zip(truth, answers, strict=True))
        q = mpmath.fprod(1 - t if a else t for t, a in zip(truth, answers, strict=True))
        total += max(mpmath.mpf(0), p - mpmath.exp(epsilon) * q)
    return total


def test_the_published_example() -> None:
    assert pure_epsilon(((0.5, 100),), 1e-3) == pytest.approx(25.95, abs=5e-3)
    assert laplace_epsilon(1.0, 0.5, 100, 1e-3) == pytest.approx(25.95, abs=5e-3)
    rho = 100 * 0.5**2 / 2
    assert rho + 2 * math.sqrt(rho * math.log(1e3)) == pytest.approx(31.08, abs=5e-3)  # what zCDP gave


@pytest.mark.parametrize(("k", "epsilon"), [(1, 0.3), (2, 2.0), (7, 0.01), (100, 0.5), (1000, 0.02), (60, 3.0)])
def test_delta_is_the_closed_form_at_its_corners(k: int, epsilon: float) -> None:
    for i in range(1, k // 2 + 1, max(1, k // 20)):
        exact = closed_form(k, epsilon, i)
        if exact > 1e-25:
            corner = (k - 2 * i) * epsilon
            assert pure_delta(((epsilon, k),), corner) == pytest.approx(float(exact), rel=1e-7)
            found = pure_epsilon(((epsilon, k),), float(exact))
            assert corner <= found  # and so near that delta there is the same
            assert pure_delta(((epsilon, k),), found) >= float(exact) * (1 - 1e-6)


@pytest.mark.parametrize("losses", [[0.5], [0.2, 0.9], [1.0, 1.0, 0.3, 0.05], [0.1] * 5 + [0.7] * 4, [0.31, 0.77, 2.0]])
@pytest.mark.parametrize("delta", [1e-1, 1e-3, 1e-6])
def test_epsilon_is_private_and_near_the_best_for_any_mixture(losses: list[float], delta: float) -> None:
    counted = tuple(sorted((e, losses.count(e)) for e in set(losses)))
    found = pure_epsilon(counted, delta)
    assert enumerated(losses, found) <= delta
    if 0 < found < sum(losses) * (1 - 1e-9):
        assert enumerated(losses, found * (1 - 1e-3)) > delta


def test_the_extremes() -> None:
    assert pure_epsilon((), 1e-3) == 0
    assert pure_epsilon(((0.5, 4),), 0.0) == 2.0
    assert pure_epsilon(((0.5, 4),), 0.9) == 0.0
    assert pure_epsilon(((30.0, 5),), 1e-12) == 150.0
    assert pure_delta(((0.5, 4),), 2.0) == 0.0
    assert pure_epsilon(((1e-6, 10**9),), 1e-3) == 1000.0  # too many for it: the plain sum


def test_a_history_is_read_by_composition_and_held_by_filters() -> None:
    """zCDP and the sums are proved for costs chosen in view of what was opened; optimal composition is not."""
    laplace = Spending(releases=1, pure=0.5, rho_pure=0.125).times(100)
    assert laplace.mu2_pure == pytest.approx(math.pi / 2 * 25)
    assert laplace.epsilon(1e-3) == pytest.approx(25.95, abs=5e-3)
    assert laplace.filtered(1e-3) == pytest.approx(31.08, abs=5e-3)
    assert laplace.epsilon(0.0) == laplace.filtered(0.0) == 50.0
    gauss = Spending(releases=1, mu2=0.04, rho=0.02).times(9)
    assert gauss.epsilon(1e-5) == gauss.filtered(1e-5) == epsilon_of_mu(0.6, 1e-5)
    both = gauss + Spending(releases=1, pure=0.1, rho_pure=0.005)
    assert (
        epsilon_of_mu(0.6, 1e-5)
        < both.epsilon(1e-5)
        == mixed_epsilon(both.losses, 0.6, 1e-5)
        < 1.02
        * (
            epsilon_of_mu(math.sqrt(0.37), 1e-5)  # mu^2 and the variance of the loss add up, nearly
        )
    )
    assert both.filtered(1e-5) == pytest.approx(epsilon_of_mu(math.sqrt(0.37), 1e-5, "zcdp"))
    many = gauss + laplace
    halves = epsilon_of_mu(0.6, 5e-4) + pure_epsilon(((0.5, 100),), 5e-4)
    assert laplace.epsilon(1e-3) < many.epsilon(1e-3) < 0.99 * halves
