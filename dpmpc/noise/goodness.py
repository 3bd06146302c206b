"""Does a sample of integers follow an exact law? Chi-square, residues, independence and variance.

For `sample`, `verify` and tests. Bins come from the exact law before any sample is seen; empty bins count. Every test
returns a p-value, uniform on [0, 1] (or larger) for samples of the law. Touches no network and no file.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

Integers = NDArray[np.int64]
Reals = NDArray[np.float64]

_SUMMED = 1 << 12  # discrete Gaussians up to this sigma are summed term by term
MINIMUM_EXPECTED = 20.0


@dataclass(frozen=True)
class ExactLaw:
    """A law on the integers.

    `cdf` gives P(X <= x), absolute error below 1e-8; hardly any mass (< 1e-30) lies beyond +-reach.
    """

    name: str
    variance: float
    reach: int
    cdf: Callable[[Integers], Reals]

    def between(self, edges: Integers) -> Reals:
        """Probabilities of the len(edges) + 1 bins x <= edges[0], edges[0] < x <= edges[1], ..., x > edges[-1]."""
        return np.diff(self.cdf(edges), prepend=0.0, append=1.0)

    def quantiles(self, probabilities: Reals) -> Integers:
        """The least x with P(X <= x) >= p, for each p, by bisection."""
        low = np.full(probabilities.shape, -self.reach - 1, dtype=np.int64)
        high = np.full(probabilities.shape, self.reach, dtype=np.int64)
        while (high - low).max() > 1:
            middle = (low + high) >> 1
            reached = self.cdf(middle) >= probabilities
            low, high = np.where(reached, low, middle), np.where(reached, middle, high)
        return high


@dataclass(frozen=True)
class Outcome:
    """What a test found; `degrees` is None where the statistic is not a chi-square."""

    name: str
    statistic: float
    degrees: int | None
    p_value: float


def exact_law(family: Literal["gaussian", "laplace"], scale: float, *, discrete: bool = True) -> ExactLaw:
    """The law of a sampler of `scale` (sigma or b) grid steps: discrete, or the continuous one rounded to integers."""
    if family == "gaussian":
        return discrete_gaussian(scale) if discrete else rounded_normal(scale)
    return discrete_laplace(scale) if discrete else rounded_laplace(scale)


def from_pmf(first: int, pmf: Reals, name: str = "table") -> ExactLaw:
    """The law with P(X = first + k) = pmf[k]."""
    cumulative = np.concatenate([[0.0], np.cumsum(pmf)])
    values = first + np.arange(len(pmf))
    mean = float(values @ pmf)

    def cdf(x: Integers) -> Reals:
        return np.asarray(cumulative[np.clip(np.asarray(x) - first + 1, 0, len(pmf))])

    return ExactLaw(name, float((values - mean) ** 2 @ pmf), max(abs(first), abs(first + len(pmf) - 1)), cdf)


def discrete_gaussian(sigma: float) -> ExactLaw:
    """P(x) proportional to exp(-x^2 / 2 sigma^2).

    Up to sigma = 2^12 the terms are summed. Above, the sum up to x is replaced by the integral up to x + 1/2: the
    midpoint rule's error is at most 1/8 of the integral of |f''|, that is 0.121 / sigma^2 < 8e-9; the variance differs
    from sigma^2 by less than 100 sigma^4 exp(-2 pi^2 sigma^2).
    """
    if sigma > _SUMMED:
        return ExactLaw("discrete Gaussian", sigma**2, math.ceil(12 * sigma), rounded_normal(sigma).cdf)
    reach = math.ceil(12 * sigma) + 1
    values = np.arange(-reach, reach + 1)
    weights = np.exp(-((values / sigma) ** 2) / 2)
    return from_pmf(-reach, weights / math.fsum(weights), "discrete Gaussian")


def discrete_laplace(scale: float) -> ExactLaw:
    """P(x) proportional to exp(-|x| / scale)."""
    q = math.exp(-1 / scale)

    def cdf(x: Integers) -> Reals:
        tail = np.exp(-np.where(x >= 0, x + 1.0, -1.0 * x) / scale) / (1 + q)
        return np.where(x >= 0, 1 - tail, tail)

    return ExactLaw("discrete Laplace", 2 * q / math.expm1(-1 / scale) ** 2, math.ceil(70 * scale) + 1, cdf)


def rounded_normal(sigma: float) -> ExactLaw:
    """The continuous N(0, sigma^2) rounded to the nearest integer; sigma >= 1 (variance by Sheppard's correction)."""
    from scipy.special import ndtr

    def cdf(x: Integers) -> Reals:
        return np.asarray(ndtr((x + 0.5) / sigma), dtype=np.float64)

    return ExactLaw("rounded normal", sigma**2 + 1 / 12, math.ceil(12 * sigma) + 1, cdf)


def rounded_laplace(scale: float) -> ExactLaw:
    """The continuous Laplace law rounded to the nearest integer."""

    def cdf(x: Integers) -> Reals:
        at = (x + 0.5) / scale
        tail = np.exp(-np.abs(at)) / 2
        return np.asarray(np.where(at >= 0, 1 - tail, tail), dtype=np.float64)

    # sum over k >= 1 of 2 k^2 P(k), with P(k) = sinh(1 / 2b) exp(-k / b)
    q = math.exp(-1 / scale)
    variance = 2 * math.sinh(0.5 / scale) * q * (1 + q) / -(math.expm1(-1 / scale) ** 3)
    return ExactLaw("rounded Laplace", variance, math.ceil(70 * scale) + 1, cdf)


def bins(law: ExactLaw, count: int, wanted: int = 64) -> tuple[Integers, Reals]:
    """(upper edges of all bins but the last, probabilities), each bin expecting 20 of `count` or more.

    At most `wanted` bins of nearly equal probability; quantiles that fall on one integer make one edge; the two tails
    belong to the outer bins.
    """
    number = int(max(2, min(wanted, count / (1.5 * MINIMUM_EXPECTED))))
    edges = np.unique(law.quantiles(np.arange(1, number) / number))
    while True:
        probabilities = law.between(edges)
        short = np.flatnonzero(probabilities * count < MINIMUM_EXPECTED)
        if not len(short) or len(edges) < 2:
            return edges, probabilities
        edges = np.delete(edges, min(int(short[0]), len(edges) - 1))


def chi_square(samples: Integers, law: ExactLaw, wanted: int = 64) -> Outcome:
    """Pearson's test of the samples against the law in the bins of `bins`."""
    edges, probabilities = bins(law, len(samples), wanted)
    observed = np.bincount(np.searchsorted(edges, samples, side="left"), minlength=len(probabilities))
    return _pearson("chi-square", observed, probabilities)


def residues(samples: Integers, law: ExactLaw, modulus: int) -> Outcome:
    """Pearson's test of x mod `modulus`, which sees the low bits that wide bins do not.

    The residues of a law 64 times as wide as the modulus are uniform, each up to a factor 1 +- 5e-5 (by Poisson
    summation; the worst is the Laplace law's, which is off by (modulus / scale)^2 / 12).
    """
    assert law.variance >= (64 * modulus) ** 2, "the law must be 64 times as wide as the modulus"
    observed = np.bincount(samples % modulus, minlength=modulus)
    return _pearson(f"residues mod {modulus}", observed, np.full(modulus, 1 / modulus))


def _pearson(name: str, observed: NDArray[np.intp], probabilities: Reals) -> Outcome:
    from scipy.stats import chi2

    expected = probabilities * observed.sum()
    statistic = float(((observed - expected) ** 2 / expected).sum())
    degrees = len(expected) - 1
    return Outcome(name, statistic, degrees, float(chi2.sf(statistic, degrees)))


def independence(samples: Integers, law: ExactLaw) -> Outcome:
    """The largest autocorrelation over all lags 1 .. count / 2, times sqrt(count).

    The p-value allows for the number of lags. Cyclic, so every lag has `count` products. Values are replaced by their
    normal scores, so that the p-value is right for heavy tails too.
    """
    return _largest_correlation("autocorrelation", _scores(samples, law), None)


def cross_independence(first: Integers, second: Integers, law: ExactLaw) -> Outcome:
    """The largest correlation between two samples of equal length over all cyclic shifts, as in `independence`."""
    return _largest_correlation("cross-correlation", _scores(first, law), _scores(second, law))


def repeats(samples: Integers, law: ExactLaw) -> Outcome:
    """Runs of samples that occur twice, for a law whose mode is 0: what a generator that repeats a block leaves behind.

    Runs are as long as it takes to expect fewer than 1e-10 pairs of equal ones; that expectation bounds the p-value.
    """
    mode = float(np.diff(law.cdf(np.array([-1, 0], dtype=np.int64)))[0])
    pairs = len(samples) ** 2 / 2
    length = max(1, math.ceil(math.log(1e-10 / pairs) / math.log(mode)))
    windows = np.lib.stride_tricks.sliding_window_view(samples, min(length, len(samples)))
    factors = np.random.default_rng(1).integers(1, 1 << 62, windows.shape[1], dtype=np.int64) | 1
    order = np.argsort(hashes := (windows * factors).sum(axis=1), kind="stable")
    same = np.flatnonzero(np.diff(hashes[order]) == 0)
    found = int((windows[order[same]] == windows[order[same + 1]]).all(axis=1).sum())
    return Outcome("repeats", float(found), None, min(1.0, pairs * mode**length) if found else 1.0)


def _scores(samples: Integers, law: ExactLaw) -> Reals:
    from scipy.special import ndtri

    middle = (law.cdf(samples) + law.cdf(samples - 1)) / 2
    return np.asarray(ndtri(np.clip(middle, 1e-15, 1 - 1e-15)), dtype=np.float64)


def _largest_correlation(name: str, x: Reals, y: Reals | None) -> Outcome:
    """z = max |sum_i x_i y_(i+k)| / sqrt(count), approximately normal at each lag k for count >= 10^4."""
    from scipy.special import log_ndtr

    n = len(x)
    spectrum = np.fft.rfft(x)
    other = spectrum if y is None else np.fft.rfft(y)
    products = np.abs(np.fft.irfft(spectrum.conj() * other, n))
    lags = products[1 : n // 2 + 1] if y is None else products
    z = float(lags.max() / math.sqrt(n))
    log_tail = math.log(2) + float(log_ndtr(-z)) + math.log(len(lags))
    return Outcome(name, z, None, math.exp(min(0.0, log_tail)))


def variance_ratio(samples: Integers, law: ExactLaw, confidence: float = 0.99) -> tuple[float, float, float]:
    """(ratio, low, high): mean of x^2 over the law's variance, and its confidence interval (from the fourth moment)."""
    from scipy.special import ndtri

    squares = (samples / math.sqrt(law.variance)) ** 2
    ratio = float(squares.mean())
    half = float(ndtri((1 + confidence) / 2)) * float(squares.std()) / math.sqrt(len(samples))
    return ratio, ratio - half, ratio + half


def mean_and_variance(samples: Integers, law: ExactLaw) -> Outcome:
    """z of the mean and of the variance, the larger one; normal approximation, p-value for both together."""
    from scipy.special import log_ndtr

    scaled = samples / math.sqrt(law.variance)
    squares = scaled**2
    root = math.sqrt(len(samples))
    z = max(abs(float(scaled.mean())) * root, abs(float(squares.mean()) - 1) / float(squares.std()) * root)
    return Outcome("mean and variance", z, None, math.exp(min(0.0, math.log(4) + float(log_ndtr(-z)))))
