"""Discrete laws: every claim against the hockey-stick divergence summed directly over the integers."""

import itertools
import math
from statistics import NormalDist
from typing import Any

import mpmath
import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.integrate import quad
from scipy.special import ndtr

from dpmpc.circuits.accuracy import rounded_noise_tv
from dpmpc.privacy.discrete import (
    discrete_gaussian_guarantee,
    discrete_gaussian_scale,
    discrete_laplace_guarantee,
    discrete_laplace_scale,
    l1_steps_of,
    rounding_log_ratio,
    smoothing_error,
)
from dpmpc.privacy.gaussian import gaussian_delta
from dpmpc.privacy.guarantee import combine, failure_factor
from dpmpc.privacy.sensitivity import Sensitivity
from tests.refusals import refuses

Array = NDArray[np.float64]


def discrete_gaussian(sigma: float, reach: int) -> Array:
    x = np.arange(-reach, reach + 1)
    weights = np.exp(-(x**2) / (2 * sigma**2))
    return np.asarray(weights / weights.sum())


def hockey_stick(p: Array, shift: int, epsilon: float) -> float:
    """sum over x of max(0, P(x) - e^epsilon P(x - shift))."""
    padded = np.concatenate([p, np.zeros(shift)])
    shifted = np.concatenate([np.zeros(shift), p])
    return float(np.maximum(0, padded - math.exp(epsilon) * shifted).sum())


def composed(p: Array, releases: int) -> Array:
    """The law of the sum of `releases` draws: the sufficient statistic when each is shifted alike."""
    total = p
    for _ in range(releases - 1):
        total = np.convolve(total, p)
    return total


@pytest.mark.parametrize(("sigma", "shift"), [(1.7, 1), (2.5, 2), (4.0, 1), (10.0, 5), (60.0, 20), (400.0, 300)])
@pytest.mark.parametrize("releases", [1, 2, 5])
@pytest.mark.parametrize("epsilon", [0.1, 0.7, 2.0])
def test_the_claim_bounds_the_exact_divergence(sigma: float, shift: int, releases: int, epsilon: float) -> None:
    p = composed(discrete_gaussian(sigma, math.ceil(13 * sigma)), releases)
    exact = hockey_stick(
        p, shift * releases, epsilon
    )  # log ratio (D^2 - 2 D x)/2 sigma^2 summed: a function of the sum
    claim = discrete_gaussian_guarantee(sigma, shift, releases, 1, epsilon=epsilon)
    assert exact <= claim.delta * (1 + 1e-9) + 1e-15
    if sigma >= 400 and exact > 1e-9:
        assert claim.delta <= exact * (1 + 3e-4), "tight once the noise is wide"
    if 1e-9 < claim.delta < 0.5:
        other = discrete_gaussian_guarantee(sigma, shift, releases, 1, delta=claim.delta)
        assert other.epsilon <= epsilon * (1 + 1e-9)
        assert hockey_stick(p, shift * releases, other.epsilon) <= claim.delta * (1 + 1e-9)


@pytest.mark.parametrize("epsilon", [0.2, 1.0])
def test_two_coordinates_cost_their_joint_l2_sensitivity(epsilon: float) -> None:
    sigma, shift = 30.0, (18, 24)
    p = discrete_gaussian(sigma, 400)
    x, y = np.meshgrid(np.arange(-400, 401), np.arange(-400, 401), indexing="ij")
    loss = (shift[0] ** 2 + shift[1] ** 2 - 2 * shift[0] * x - 2 * shift[1] * y) / (2 * sigma**2)
    exact = float((np.outer(p, p) * np.maximum(0, -np.expm1(epsilon - loss))).sum())
    claim = discrete_gaussian_guarantee(sigma, 30.0, 1, 2, epsilon=epsilon).delta
    assert exact <= claim <= exact * 1.01


def test_smoothing_error_bounds_shifted_sums() -> None:
    for s in (0.5, 0.7, 1.0, 1.5, 2.0):
        worst = mpmath.mpf(0)
        with mpmath.workdps(60):
            width = mpmath.mpf(s)
            for c in np.linspace(0, 1, 21):
                total = mpmath.fsum(mpmath.exp(-((x - mpmath.mpf(c)) ** 2) / (2 * width**2)) for x in range(-40, 41))
                worst = max(worst, abs(total / (width * mpmath.sqrt(2 * mpmath.pi)) - 1))
        assert 0.98 * smoothing_error(s) <= worst <= smoothing_error(s)
    assert 2.0**-63.1 < rounding_log_ratio(1e4) < 2.0**-63


def test_randomly_rounded_continuous_noise_is_as_close_to_the_discrete_gaussian_as_derived() -> None:
    """With s = 0.6 the difference is large enough to be seen by quadrature in double precision.

    The bound is for the worst point of the continuous draw; averaged over it, the difference is about its square.
    """
    s, sigma = 0.6, 3.0
    density = NormalDist(0, math.sqrt(sigma**2 - s**2)).pdf
    grid = np.arange(-60, 61)

    def integrand(y: float, z: int) -> float:
        total = np.exp(-((grid - y) ** 2) / (2 * s * s)).sum()
        return float(density(y) * math.exp(-((z - y) ** 2) / (2 * s * s)) / total)

    p = discrete_gaussian(sigma, 60)
    bound = rounding_log_ratio(sigma, s)
    ratios = [
        math.log(quad(integrand, z - 8, z + 8, args=(z,), epsabs=1e-13, limit=400)[0] / p[z + 60]) for z in range(0, 9)
    ]
    assert 0.1 * bound**2 < max(map(abs, ratios)) <= bound


@pytest.mark.parametrize(("epsilon", "delta"), [(0.5, 1e-3), (1e-2, 1e-9), (5.0, 1e-6), (1.0, 1e-11)])
@pytest.mark.parametrize("steps", [1.0, 37.5, 1e6])
def test_scale_pays_for_every_failure_and_is_tight(epsilon: float, delta: float, steps: float) -> None:
    failures = {"tv_per_coordinate": 1e-19, "mpc_failure": 2.0**-45, "log_ratio_per_coordinate": 2.0**-60}
    sigma = discrete_gaussian_scale(epsilon, delta, steps, 200, 50, **failures)
    got = discrete_gaussian_guarantee(sigma, steps, 200, 50, epsilon=epsilon, **failures)
    assert got.delta <= delta * (1 + 1e-9) and got.epsilon == pytest.approx(epsilon, rel=1e-12)
    assert set(got.parts) == {"mechanism", "sampler", "mpc"}
    assert got.parts["mpc"] == pytest.approx((1 + math.exp(epsilon)) * 2.0**-45)
    assert got.parts["sampler"] == pytest.approx((1 + math.exp(epsilon)) * 200 * 50 * 1e-19)
    assert discrete_gaussian_guarantee(sigma * 0.999, steps, 200, 50, epsilon=epsilon, **failures).delta > delta
    plain = discrete_gaussian_scale(epsilon, delta, steps, 200, 50)
    assert plain <= sigma


def test_impossible_budgets_and_arguments() -> None:
    with refuses("range", "1e-05", 1):
        discrete_gaussian_scale(100.0, 1e-5, 3.0, 1, 10, mpc_failure=5e-13)
    with refuses("range", "MPC", "1e-09"):
        discrete_gaussian_scale(1.0, 1e-9, 100.0, 1000, 100, mpc_failure=2.0**-20)
    with refuses("range", "0.001"):
        discrete_gaussian_scale(1e-3, 1e-9, 100.0, 1000, 100, log_ratio_per_coordinate=1e-6)
    with refuses("range", "0.001"):
        discrete_gaussian_guarantee(50.0, 1.0, 1000, 100, epsilon=1e-3, log_ratio_per_coordinate=1e-6)
    with refuses("together"):
        discrete_gaussian_guarantee(50.0, 1.0, 1, 1)
    with refuses("range", "0.5"):
        smoothing_error(0.4)


def discrete_laplace_tail(b: float, bound: int) -> float:
    """P(|X| > bound) = 2 e^{-(bound+1)/b} / (1 + e^{-1/b}): the distance of the law from the one cut at the bound."""
    return 2 * math.exp(-(bound + 1) / b) / (1 + math.exp(-1 / b))


@pytest.mark.parametrize(("b", "shift", "bound"), [(3.0, 2, 60), (10.0, 1, 50), (50.0, 40, 500)])
def test_discrete_laplace_pure_epsilon_and_the_price_of_a_cut_tail(b: float, shift: int, bound: int) -> None:
    reach = math.ceil(45 * b)
    x = np.arange(-reach, reach + 1)
    p = np.exp(-np.abs(x) / b)
    p /= p.sum()
    epsilon = shift / b
    assert hockey_stick(p, shift, epsilon * (1 + 1e-9)) <= p[:shift].sum() + 1e-15  # nothing but the array's own end
    assert hockey_stick(p, shift, epsilon * 0.99) > 1e-4 * epsilon
    tail = discrete_laplace_tail(b, bound)
    assert tail == pytest.approx(p[np.abs(x) > bound].sum(), rel=1e-9)
    cut = np.where(np.abs(x) <= bound, p, 0)
    cut /= cut.sum()
    guarantee = discrete_laplace_guarantee(b, shift, 1, 1, tv_per_coordinate=tail)
    assert guarantee.epsilon == pytest.approx(epsilon)
    assert 0 < hockey_stick(cut, shift, guarantee.epsilon) <= guarantee.delta
    assert discrete_laplace_scale(epsilon, shift) == pytest.approx(b)
    assert discrete_laplace_guarantee(b, shift, 7, 3).epsilon == pytest.approx(7 * epsilon)
    assert discrete_laplace_guarantee(b, shift, 7, 3).delta == 0


def test_l1_of_integer_vectors_by_enumeration() -> None:
    for d, reach in ((1, 6), (2, 6), (3, 4), (4, 3)):
        best: dict[int, int] = {}
        for vector in itertools.product(range(-reach, reach + 1), repeat=d):
            squared = sum(v * v for v in vector)
            best[squared] = max(best.get(squared, 0), sum(map(abs, vector)))
        for squared, l1 in best.items():
            if squared:
                assert l1 <= l1_steps_of(Sensitivity(l2=math.sqrt(squared)).within(d))
        assert best[d * reach * reach] == l1_steps_of(Sensitivity(l2=math.sqrt(d) * reach).within(d))  # on the diagonal


@pytest.mark.parametrize("offset", [0.0, 0.13, 0.5])
@pytest.mark.parametrize("step", [0.05, 0.9, 5.0])
def test_an_approximate_sampler_rounds_elsewhere_no_more_often_than_claimed(offset: float, step: float) -> None:
    def laplace(x: Any) -> Any:
        return np.where(x < 0, np.exp(-np.abs(x)) / 2, 1 - np.exp(-np.abs(x)) / 2)

    for below, peak in ((ndtr, 1 / math.sqrt(2 * math.pi)), (laplace, 0.5)):
        for error in (1e-3 * step, 0.2 * step):
            edges = (np.arange(-2000, 2001) + 0.5 + offset) * step
            exact = float((below(edges + error) - below(edges - error)).sum())
            assert exact <= rounded_noise_tv(error, step, peak)
    assert rounded_noise_tv(1e-6, 1e-3, 0.4) == pytest.approx(2e-3, rel=2e-3)
    assert rounded_noise_tv(1.0, 0.5, 0.4) == 1.0


def test_combine_bounds_every_perturbation_of_random_mechanisms() -> None:
    rng = np.random.default_rng(7)
    epsilon, eta, t = 0.4, 0.02, 0.03
    worst = 0.0
    for _ in range(300):
        p, q = rng.dirichlet(np.ones(4)), rng.dirichlet(np.ones(4))
        delta = float(np.maximum(0, p - math.exp(epsilon) * q).sum())
        claim = combine(epsilon, delta, sampler_failure=eta).delta
        order = np.argsort(p - math.exp(epsilon) * q)
        real_p, real_q = p.copy(), q.copy()  # move mass eta where it hurts most
        move = min(eta, real_p[order[0]])
        real_p[order[0]] -= move
        real_p[order[-1]] += move
        move = min(eta, real_q[order[-1]])
        real_q[order[-1]] -= move
        real_q[order[0]] += move
        got = float(np.maximum(0, real_p - math.exp(epsilon) * real_q).sum())
        assert got <= claim + 1e-12
        worst = max(worst, (got - delta) / (claim - delta))
        tilt = np.exp(rng.uniform(-t / 2, t / 2, size=4))
        tilted = combine(epsilon, delta, log_ratio=t)
        noisy_p, noisy_q = p * tilt / (p * tilt).sum(), q / tilt / (q / tilt).sum()
        assert np.maximum(0, noisy_p - math.exp(tilted.epsilon) * noisy_q).sum() <= tilted.delta + 1e-12
    assert worst > 0.99, "the additive term is attained"


def test_combine_adds_up_and_saturates() -> None:
    g = combine(1.0, 1e-6, sampler_failure=1e-8, mpc_failure=2.0**-40)
    assert g.delta == pytest.approx(1e-6 + (1 + math.e) * (1e-8 + 2.0**-40))
    assert "(1, 1.03719e-06)" in str(g) and "replaced" in str(g)
    assert combine(2000.0, 0.0, mpc_failure=0.1).delta == 1.0
    assert combine(1.0, 1e-6).delta == 1e-6 and combine(1.0).delta == 0.0
    assert failure_factor(1e9) < math.inf


def test_wide_noise_is_accounted_as_the_continuous_law() -> None:
    sigma, steps = 2.0**20, 2.0**18
    ideal = gaussian_delta(sigma, 1.0, steps, 30)
    assert discrete_gaussian_guarantee(sigma, steps, 30, 1000, epsilon=1.0).delta == pytest.approx(ideal, rel=1e-10)
