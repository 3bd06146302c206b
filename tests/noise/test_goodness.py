"""The tests of samples, tested: exact laws against direct sums, p-values under the law, power against other laws."""

import math

import numpy as np
import pytest
from alarms import mean_and_variance, variance_ratio
from independence import cross_independence

from dpmpc.noise import goodness
from dpmpc.privacy import exact
from dpmpc.privacy.exact import ExactLaw
from dpmpc.privacy.law import LAWS

RNG = np.random.default_rng(20180)


def direct(law: str, scale: float, reach: int) -> np.ndarray:
    """P(x) for x = -reach .. reach, from the definition."""
    x = np.arange(-reach, reach + 1)
    if law == "discrete gaussian":
        p = np.exp(-(x**2) / (2 * scale**2))
        return p / p.sum()
    if law == "discrete laplace":
        p = np.exp(-abs(x) / scale)
        return p / p.sum()
    if law == "rounded normal":
        return np.array([_normal((k + 0.5) / scale) - _normal((k - 0.5) / scale) for k in x])
    p = np.exp(-abs(x) / scale) * math.sinh(0.5 / scale)
    p[reach] = -math.expm1(-0.5 / scale)
    return p


def _normal(z: float) -> float:
    return math.erfc(-z / math.sqrt(2)) / 2


MAKERS = {
    "discrete gaussian": exact.discrete_gaussian,
    "discrete laplace": exact.discrete_laplace,
    "rounded normal": exact.rounded_normal,
    "rounded laplace": exact.rounded_laplace,
}


@pytest.mark.parametrize("name", MAKERS)
@pytest.mark.parametrize("scale", [1.0, 3.7, 40.0])
def test_laws_equal_direct_sums(name: str, scale: float) -> None:
    law = MAKERS[name](scale)
    reach = math.ceil(60 * scale)
    p = direct(name, scale, reach)
    x = np.arange(-reach, reach + 1)
    assert law.cdf(x) == pytest.approx(np.cumsum(p), abs=1e-9)
    assert law.variance == pytest.approx(float(x**2 @ p), rel=1e-6 if scale > 1 else 2e-3)
    assert 1 - law.cdf(np.array([law.reach]))[0] < 1e-15 and law.cdf(np.array([-law.reach - 1]))[0] < 1e-15


@pytest.mark.parametrize("sigma", [4097.0, 2.0**20 + 0.3])
def test_wide_gaussians_by_integrals_equal_sums(sigma: float) -> None:
    law = exact.discrete_gaussian(sigma)
    for first, last in [(0, 5000), (-300, 700), (3 * int(sigma), 3 * int(sigma) + 20_000)]:
        x = np.arange(first + 1, last + 1)
        direct_sum = math.fsum(np.exp(-((x / sigma) ** 2) / 2)) / (sigma * math.sqrt(2 * math.pi))
        found = float(np.diff(law.cdf(np.array([first, last])))[0])
        assert found == pytest.approx(direct_sum, abs=8e-9)


def test_the_law_of_a_table() -> None:
    law = exact.from_pmf(-1, np.array([0.5, 0.0, 0.25, 0.25]))
    assert law.cdf(np.array([-5, -2, -1, 0, 1, 2, 9])).tolist() == [0, 0, 0.5, 0.5, 0.75, 1, 1]
    assert law.variance == pytest.approx(0.5 + 0.25 + 1 - 0.25**2)
    assert law.quantiles(np.array([0.5, 0.6, 0.99])).tolist() == [-1, 1, 2]


@pytest.mark.parametrize("scale", [1.0, 5.0, 300.0, 2.0**30])
@pytest.mark.parametrize("count", [50, 1000, 10**6])
def test_bins_come_from_the_law_and_are_full_enough(scale: float, count: int) -> None:
    for make in (exact.discrete_laplace, exact.rounded_normal):
        law = make(scale)
        edges, probabilities = goodness.bins(law, count)
        assert len(probabilities) == len(edges) + 1 >= 2 and (np.diff(edges) > 0).all()
        assert probabilities.sum() == pytest.approx(1) and (probabilities * count).min() >= min(20, count / 4)


def samples(law: ExactLaw, count: int) -> np.ndarray:
    return law.quantiles(RNG.random(count))


@pytest.mark.slow
def test_p_values_are_uniform_under_the_law() -> None:
    """400 samples of each test: Kolmogorov-Smirnov distance below 0.17 (exceeded with probability below 2e-10)."""
    law = exact.discrete_gaussian(900.0)
    found: dict[str, list[float]] = {"chi": [], "low": [], "moments": []}
    for _ in range(400):
        x = samples(law, 4000)
        found["chi"].append(goodness.chi_square(x, law).p_value)
        found["low"].append(goodness.residues(x, law, 8).p_value)
        ratio, low, high = variance_ratio(x, law, 0.9)
        assert low < ratio < high
        found["moments"].append(float(low <= 1 <= high))
    for name in ("chi", "low"):
        gap = np.abs(np.sort(found[name]) - (np.arange(400) + 0.5) / 400).max()
        assert gap < 0.17
    assert 0.9 - 0.1 < np.mean(found["moments"]) < 0.9 + 0.09  # 6 standard deviations


@pytest.mark.slow
def test_the_largest_correlation_has_an_honest_p_value() -> None:
    law = exact.discrete_laplace(900.0)
    p = [goodness.independence(samples(law, 10_000), law).p_value for _ in range(100)]
    q = [cross_independence(samples(law, 10_000), samples(law, 10_000), law).p_value for _ in range(100)]
    for values in (p, q):
        assert min(values) > 1e-9 and np.mean(np.array(values) < 0.5) < 0.75  # mean 0.4 .. 0.5; 5 standard deviations


@pytest.mark.parametrize("n", [1200, 1201, 5040])
def test_the_least_likely_autocorrelation_is_that_of_all(n: int) -> None:
    """Also where it is not the largest: at lag n / 2, where every product is there twice, and at lags of short cycles.
    And where the largest sums do not tell: all are alike, or the sixty-four largest are all of short cycles."""
    lags = np.arange(1, n // 2 + 1)
    base = np.abs(np.random.default_rng(n).normal(0, math.sqrt(n), len(lags)))
    planted = [(), ((n // 2 - 1, 0.1),), ((n // 3 - 1, 0.3), (n // 2 - 2, 0.3)), ((n // 4 - 1, 0.7), (40, 0.69))]
    for rows in (base, np.stack([base[::-1], base]), np.full(len(lags), 0.2 * n), np.zeros(len(lags))):
        for few in planted:
            sums = rows.copy()
            for at, part in few:
                sums[..., at] = part * n
            tails = goodness.autocorrelation_tail(sums, n, np.broadcast_to(lags, sums.shape))
            place, log_p = goodness.least_autocorrelation(sums, n, lags)
            assert place == tails.argmin() and log_p == pytest.approx(float(tails.min()), rel=1e-9)
    short = n // np.gcd(n, lags) <= 40
    sums = np.where(short, 50.0 * n, base)
    sums[0] = 49.99 * n
    place, log_p = goodness.least_autocorrelation(sums, n, lags)
    assert place == 0 and log_p == goodness.autocorrelation_tail(sums, n, lags).min()
    assert short.sum() > 64 or n != 5040


def test_an_empty_bin_counts() -> None:
    law = exact.from_pmf(0, np.full(10, 0.1))
    x = np.arange(9000) % 9
    outcome = goodness.chi_square(x, law)
    assert outcome.degrees == 9 and outcome.statistic == pytest.approx(9 * 100**2 / 900 + 900)


def test_each_test_sees_what_it_is_for() -> None:
    law = exact.discrete_gaussian(900.0)
    x = samples(law, 1 << 18)
    assert min(o.p_value for o in (goodness.chi_square(x, law), goodness.residues(x, law, 2))) > 1e-9
    assert goodness.chi_square(x, exact.discrete_gaussian(920.0)).p_value < 1e-9
    assert goodness.chi_square(x, exact.discrete_laplace(900 / math.sqrt(2))).p_value < 1e-9
    assert goodness.residues(x & ~np.int64(1), law, 2).p_value < 1e-9
    assert mean_and_variance(x + 20, law).p_value < 1e-9
    assert mean_and_variance(np.roll(x, 1), law).p_value > 1e-9
    assert goodness.independence(np.concatenate([x[:9000], x[:-9000]]), law).p_value < 1e-9
    assert goodness.repeats(x, law).p_value == 1.0
    assert goodness.repeats(np.concatenate([x, x[500:532]]), law).p_value < 1e-9
    assert cross_independence(x, np.roll(x, 1234), law).p_value < 1e-9


def test_laws_by_name_and_narrow_laws_for_residues() -> None:
    assert LAWS["laplace"].exact(5.0, True).name == "discrete Laplace"
    assert LAWS["gaussian"].exact(5.0, False).name == "rounded normal"
    assert LAWS["laplace"].exact(5.0, False).name == "rounded Laplace"
    with pytest.raises(AssertionError, match="64 times"):
        goodness.residues(np.zeros(10, dtype=np.int64), exact.discrete_gaussian(100.0), 2)
