"""CAPE: its statements from covariance matrices, its law on the grid by enumeration, zero-sum noise, secure sums."""

import math

import numpy as np
import pytest

from dpmpc.circuits.sampler import discrete_gaussian
from dpmpc.mpc.clear.noise import clear_noise
from dpmpc.mpc.numbers.prg import Prg
from dpmpc.noise.zero_sum import from_masks, parts
from dpmpc.privacy.cape import collusion_factor, epsilon_table, most_colluding, theorem_delta, variance_ratio
from dpmpc.privacy.gaussian import delta_of_mu, epsilon_of_mu, mu_of_budget
from tests.privacy.cape_claims import (
    aggregate_deviation,
    conventional_deviation,
    conventional_scale,
    covariance,
    discrete_guarantee,
    dropped_variance,
    from_pairs,
    gain,
    own_deviation,
)
from tests.refusals import refuses


def view_mu(sites: int, honest: int, zero_sum: str) -> float:
    """mu of all that colluders see, by linear algebra: outputs, their own sources, and the broadcast sum of x."""
    adds, known = covariance(sites, zero_sum)
    colluding = range(honest, sites)
    own = np.flatnonzero(known[list(colluding)].sum(axis=0)) if honest < sites else np.array([], dtype=int)
    rows = [adds, np.eye(adds.shape[1])[own]]
    if zero_sum == "cape":
        broadcast = np.zeros((1, adds.shape[1]))
        broadcast[0, :sites] = 1.0
        rows.append(broadcast)
    seen = np.concatenate(rows)
    shift = np.zeros(len(seen))
    shift[0] = 1.0
    inverse = np.linalg.pinv(seen @ seen.T, rcond=1e-10)
    assert np.allclose(seen @ seen.T @ inverse @ shift, shift)  # the shift lies in the range: mu is finite
    return math.sqrt(shift @ inverse @ shift)


def zero_sum_deviation(tau: float, sites: int) -> float:
    """Equation (2): the standard deviation of e_s, sqrt(1 - 1/S) tau."""
    return math.sqrt(1.0 - 1.0 / sites) * tau


def open_sum(draws: np.ndarray) -> np.ndarray:
    """The sum in the clear: for study, where one process plays all sites."""
    return np.asarray(draws.sum(axis=0), dtype=np.int64)


@pytest.mark.parametrize(("sites", "honest"), [(2, 2), (2, 1), (3, 2), (5, 5), (10, 7), (10, 1), (12, 9)])
@pytest.mark.parametrize("zero_sum", ["cape", "pairs"])
def test_what_colluders_learn_is_what_the_covariance_matrix_says(sites: int, honest: int, zero_sum: str) -> None:
    assert view_mu(sites, honest, zero_sum) == pytest.approx(collusion_factor(sites, honest, zero_sum), rel=1e-9)


def test_the_aggregate_noise_is_the_centres_and_zero_sum_noise_cancels() -> None:
    """Lemma 1 and equations (2) and (3), from the sources."""
    for sites in (2, 5, 9):
        for zero_sum in ("cape", "pairs"):
            adds, _ = covariance(sites, zero_sum)
            e, g = adds[:, :-sites], adds[:, -sites:]
            np.testing.assert_allclose(e.sum(axis=0), 0.0, atol=1e-12)
            np.testing.assert_allclose(e @ e.T, np.eye(sites) - 1 / sites, atol=1e-12)
            assert np.linalg.norm(e[0]) == pytest.approx(zero_sum_deviation(1.0, sites))
            assert np.linalg.norm(g[0]) == pytest.approx(own_deviation(1.0, sites))
            assert np.linalg.norm(adds.sum(axis=0)) == pytest.approx(1.0)  # kappa on the sum
    assert aggregate_deviation([3.0] * 5, [0.2] * 5) == pytest.approx(3.0 / 5)  # tau/S = tau_c
    assert conventional_deviation([3.0] * 5, [0.2] * 5) == pytest.approx(3.0 / math.sqrt(5))


def test_uneven_sites_with_weights_by_size_have_the_centres_noise() -> None:
    sizes = [30, 500, 1, 69]
    taus, weights = [1.0 / n for n in sizes], [n / 600 for n in sizes]
    assert aggregate_deviation(taus, weights) == pytest.approx(1 / 600)
    assert variance_ratio(sizes) > 100  # the plain mean that the paper analyses


def test_proposition_1_and_remark_3() -> None:
    rng = np.random.default_rng(1)
    for _ in range(20):
        taus = list(rng.random(7) + 0.1)
        assert gain(taus) == pytest.approx(7.0)
        sizes = [int(n) for n in rng.integers(1, 100, 6)]
        assert variance_ratio(sizes) >= 1 - 1e-12
        # a Robin Hood transfer never makes it larger: Schur-convexity
        rich, poor = int(np.argmax(sizes)), int(np.argmin(sizes))
        moved = sizes.copy()
        moved[rich], moved[poor] = moved[rich] - 1, moved[poor] + 1
        if sizes[rich] - sizes[poor] >= 2:
            assert variance_ratio(moved) <= variance_ratio(sizes)
    assert variance_ratio([17] * 6) == pytest.approx(1.0)


def test_proposition_2() -> None:
    sizes = [10, 10, 10, 10]
    assert variance_ratio(sizes, lambda n: 5.0 / n) == pytest.approx(1.0)  # Delta(n/S) = S Delta(n)
    assert variance_ratio(sizes, lambda n: 1.0 / math.sqrt(n)) == pytest.approx(1 / 4)  # (1/sqrt(S))^2
    general = [5, 15]
    value = variance_ratio(general, lambda n: n**-0.7)
    assert value == pytest.approx((5**-1.4 + 15**-1.4) / (2**3 * 20**-1.4))


def test_sites_that_vanish_after_the_noise_was_dealt() -> None:
    for sites, dropped in ((5, 0), (5, 1), (10, 4)):
        adds, _ = covariance(sites)
        left = sites - dropped
        mean = adds[:left].mean(axis=0)
        assert mean @ mean == pytest.approx(dropped_variance(sites, dropped))
    assert dropped_variance(5, 0) == pytest.approx(1 / 25)
    with refuses("range", 1):
        dropped_variance(5, 5)


def test_the_relation_of_theorem_1_is_valid_and_loose() -> None:
    for epsilon in (0.3, 0.7, 0.99):
        for mu in (0.05, 0.2, 0.4):
            assert theorem_delta(epsilon, mu) >= 2 * delta_of_mu(mu, epsilon)
    assert theorem_delta(0.1, 1.0) == 1.0
    assert conventional_scale(0.5, 1e-3, 1.0) == pytest.approx(math.sqrt(2 * math.log(1250)) / 0.5)


def test_the_figures_of_the_docs() -> None:
    mu = mu_of_budget(0.5, 1e-3)
    ten, thousand = epsilon_table(mu, 1e-3, 10, 7), epsilon_table(mu, 1e-3, 1000, 667)
    assert [most_colluding(s) for s in (10, 1000)] == [3, 333]
    assert [round(ten[k], 2) for k in ("mpc", "masks", "cape", "pairs", "none")] == [0.5, 0.62, 0.8, 0.86, 1.98]
    assert round(epsilon_of_mu(mu * collusion_factor(10, 10), 1e-3), 2) == 0.71  # nobody colludes
    assert collusion_factor(10, 10) == pytest.approx(math.sqrt(20 / 11))
    assert [round(thousand[k], 2) for k in ("mpc", "masks", "cape", "pairs", "none")] == [0.5, 0.64, 0.86, 0.96, 43.9]


def pmf(scale: float, largest: int) -> np.ndarray:
    weights = np.exp(-(np.arange(-largest, largest + 1) ** 2) / (2 * scale**2))
    return np.asarray(weights / weights.sum())


def exact_cape_delta(x_scale: float, g_scale: float, change: int, epsilon: float) -> float:
    """delta of (x_1 + x_2, x_1 + g_1 + change, x_2 + g_2) against change = 0, by enumeration; two honest sites."""
    R, Q = math.ceil(4.2 * x_scale), math.ceil(4.2 * g_scale)
    x, g, B = pmf(x_scale, R), pmf(g_scale, Q), R + Q + change
    joint = np.zeros((2, 4 * R + 1, 2 * B + 1, 2 * B + 1))
    both = np.outer(g, g)
    for a in range(-R, R + 1):
        for b in range(-R, R + 1):
            weighted = x[a + R] * x[b + R] * both
            for k, moved in enumerate((0, change)):
                top, left = a + moved - Q + B, b - Q + B
                joint[k, a + b + 2 * R, top : top + 2 * Q + 1, left : left + 2 * Q + 1] += weighted
    gone = max(0.0, 1.0 - float(joint[0].sum()))
    assert gone < 1e-3
    return float(np.maximum(joint[1] - math.exp(epsilon) * joint[0], 0.0).sum())


@pytest.mark.slow
def test_the_guarantee_on_the_grid_holds_for_the_exact_discrete_law() -> None:
    """Three sites, one colluding; kappa = 10 steps. Never below the exact delta, and near it."""
    own, zero, change = 10 / math.sqrt(3), 10.0, 5
    for delta in (0.2, 0.05):
        claim = discrete_guarantee(own, zero, change, 3, 2, 1, delta)
        exact = exact_cape_delta(zero, own, change, claim.epsilon)
        assert exact <= claim.delta * (1 + 1e-9)
        mu = change / 10 * collusion_factor(3, 2)
        assert exact == pytest.approx(delta_of_mu(mu, claim.epsilon), rel=0.02)  # the continuous law's
        assert exact > delta_of_mu(0.97 * mu, claim.epsilon)  # a factor 3 % smaller would be false


def test_the_guarantee_on_a_fine_grid_is_the_continuous_one() -> None:
    kappa, sites = 2.0**20, 10
    change = mu_of_budget(0.5, 1e-3) * kappa
    for zero_sum, scale in (("cape", kappa), ("pairs", kappa / math.sqrt(sites))):
        got = discrete_guarantee(kappa / math.sqrt(sites), scale, change, sites, 7, 122, 1e-3, zero_sum=zero_sum)
        want = epsilon_of_mu(mu_of_budget(0.5, 1e-3) * collusion_factor(sites, 7, zero_sum), 1e-3)
        assert got.epsilon == pytest.approx(want, rel=1e-9) and got.epsilon >= want * (1 - 1e-12)
    with refuses("usage", "0.5"):
        discrete_guarantee(1.0, 1.0, 1.0, 3, 2, 1, 1e-3)


SITES, D = 5, 40_000


@pytest.fixture(scope="module")
def by_pairs() -> np.ndarray:
    sampler = discrete_gaussian(2.0**14)
    keys = {(i, j): bytes([i, j]) * 16 for i in range(SITES) for j in range(i + 1, SITES)}
    rows = []
    for site in range(SITES):
        mine = {r: keys[min(r, site), max(r, site)] for r in range(SITES) if r != site}
        rows.append(from_pairs(site, mine, sampler, b"run", 3, D))
    return np.stack(rows)


def looks_like_zero_sum(e: np.ndarray, variance: float) -> bool:
    """Variance (S-1)v and covariance -v. 15 statistics of D values beyond 7.5 standard errors: false alarm < 2e-12."""
    got = np.cov(e / math.sqrt(variance), ddof=0)
    want = SITES * np.eye(SITES) - 1.0
    error = np.sqrt((np.outer(np.diag(want), np.diag(want)) + want**2) / D)
    return bool((np.abs(got - want) < 7.5 * error).all())


def test_pairwise_noise_sums_to_zero_and_has_algorithm_1s_covariance(by_pairs: np.ndarray) -> None:
    assert (by_pairs.sum(axis=0) == 0).all()
    assert looks_like_zero_sum(by_pairs, 2.0**28)
    wrong = by_pairs.copy()
    wrong[1] += np.random.default_rng(0).normal(scale=0.3 * 2**14 * 2, size=D).astype(np.int64)
    assert not looks_like_zero_sum(wrong, 2.0**28)  # 9 % more variance at one site is seen


def test_streams_differ_by_run_release_and_pair(by_pairs: np.ndarray) -> None:
    sampler = discrete_gaussian(2.0**14)
    keys = {1: bytes(16), 2: bytes(16)}
    one = from_pairs(0, keys, sampler, b"run", 1, 50)
    assert not np.array_equal(one, from_pairs(0, keys, sampler, b"run", 2, 50))
    assert not np.array_equal(one, from_pairs(0, keys, sampler, b"other", 1, 50))
    np.testing.assert_array_equal(one, from_pairs(0, keys, sampler, b"run", 1, 50))
    alone = from_pairs(0, {1: bytes(16)}, sampler, b"run", 1, 50)
    assert np.abs(one - alone).max() > 0  # the same key with another peer is another stream
    with refuses("usage", 0):
        from_pairs(0, {0: bytes(16)}, sampler, b"run", 1, 5)


def test_masks_with_one_secure_sum_are_exact() -> None:
    sampler, prg = discrete_gaussian(2.0**14), Prg(bytes(16), "masks")
    x = clear_noise(sampler, SITES * D, prg).reshape(SITES, D)
    opened: list[np.ndarray] = []

    def secure_sum(draws: np.ndarray) -> np.ndarray:
        opened.append(open_sum(draws))
        return opened[-1]

    e = from_masks(x, secure_sum)
    assert (e.sum(axis=0) == 0).all() and len(opened) == 1
    assert looks_like_zero_sum(e, 2.0**28 / SITES)  # (1 - 1/S) kappa^2 and -kappa^2/S with kappa = 2^14
    split = parts(np.array([-7, 0, 3, 12]), 5)
    assert (split.sum(axis=0) == [-7, 0, 3, 12]).all() and np.ptp(split, axis=0).max() <= 1
