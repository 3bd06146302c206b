"""Does a sample of integers follow an exact law? Chi-square, residues, independence, repetition.

For `sample`, `verify` and tests. Bins come from the exact law before any sample is seen; empty bins count. Every test
returns a p-value, uniform on [0, 1] (or larger) for samples of the law. Touches no network and no file.
"""

import math
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from dpmpc.lazy import dataclass
from dpmpc.privacy.exact import ExactLaw, Integers, Reals
from dpmpc.privacy.tails import chi_square_tail, student_tail

MINIMUM_EXPECTED = 20.0
_STEPS = 6  # of Newton's: the root to 1e-12
_FIRST = 64  # sums, the largest ones, whose bounds are looked at before those of all
_BELOW_ONE = 1 - 2.0**-40


@dataclass(frozen=True)
class TestOutcome:
    """What a test found; `degrees` is None where the statistic is not a chi-square."""

    name: str
    statistic: float
    degrees: int | None
    p_value: float


@lru_cache(maxsize=64)  # what a test can see is found by the same test of narrower samples, up to twenty times
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


def chi_square(samples: Integers, law: ExactLaw, wanted: int = 64) -> TestOutcome:
    """Pearson's test of the samples against the law in the bins of `bins`."""
    edges, probabilities = bins(law, len(samples), wanted)
    ordered = np.sort(samples)  # takes less than a search for each of them
    observed = np.diff(np.searchsorted(ordered, edges, side="right"), prepend=0, append=len(samples))
    return _pearson("chi-square", observed, probabilities)


def residues(samples: Integers, law: ExactLaw, modulus: int) -> TestOutcome:
    """Pearson's test of x mod `modulus`, which sees the low bits that wide bins do not.

    The residues of a law 64 times as wide as the modulus are uniform, each up to a factor 1 +- 5e-5 (by Poisson
    summation; the worst is the Laplace law's, which is off by (modulus / scale)^2 / 12).
    """
    assert law.variance >= (64 * modulus) ** 2, "the law must be 64 times as wide as the modulus"
    observed = np.bincount(samples % modulus, minlength=modulus)
    return _pearson(f"residues mod {modulus}", observed, np.full(modulus, 1 / modulus))


def _pearson(name: str, observed: NDArray[np.intp], probabilities: Reals) -> TestOutcome:
    expected = probabilities * observed.sum()
    statistic = float(((observed - expected) ** 2 / expected).sum())
    degrees = len(expected) - 1
    return TestOutcome(name, statistic, degrees, chi_square_tail(statistic, degrees))


def independence(samples: Integers, law: ExactLaw) -> TestOutcome:
    """The largest autocorrelation over all lags 1 .. count / 2, times sqrt(count).

    The p-value allows for the number of lags, and is a bound for every number of samples. Cyclic, so every lag has
    `count` products. Values are replaced by their normal scores, so that it is right for heavy tails too.
    """
    return lagged(_scores(samples, law))


def lagged(scores: Reals) -> TestOutcome:
    """The same of normal scores (count,)."""
    n = len(scores)
    spectrum = np.fft.rfft(scores)
    sums = np.abs(np.fft.irfft(spectrum.conj() * spectrum, n))[1 : n // 2 + 1]
    log_p = math.log(2 * max(1, len(sums))) + least_autocorrelation(sums, n, np.arange(1, len(sums) + 1))[1]
    return TestOutcome("autocorrelation", float(sums.max() / math.sqrt(n)), None, math.exp(min(0.0, log_p)))


def least_autocorrelation(sums: Reals, n: int, lags: Integers) -> tuple[int, float]:
    """(flat place, log of the bound) of the least likely of all sums: where `autocorrelation_tail` is least.

    The bound without its last term falls as the sum grows, and that term only adds to it. So where the largest sums
    have a bound that lies below this part of the smallest of them, no other sum has a lower one, and none is asked for.
    At lag n / 2 the bound is half of this part of a sum's, which is no less.
    """
    flat, at = sums.reshape(-1), np.broadcast_to(lags, sums.shape).reshape(-1)
    if flat.size > 4 * _FIRST:
        largest = np.sort(np.argpartition(flat, -_FIRST)[-_FIRST:])
        log_p = autocorrelation_tail(flat[largest], n, at[largest])
        others = _chernoff(flat[largest].min(keepdims=True), np.array([float(n)]))[0]
        if log_p.min() < others[0] - 1e-6:  # more than the rounding of both
            return int(largest[log_p.argmin()]), float(log_p.min())
    log_p = autocorrelation_tail(flat, n, at)
    return int(log_p.argmin()), float(log_p.min())


def autocorrelation_tail(sums: Reals, n: int, lags: Integers) -> Reals:
    """log of a bound on P(sum_i x_i x_(i + lag mod n) >= s), for n independent standard normal x; elementwise.

    Chernoff's bound. The sum is a quadratic form whose graph is g = gcd(n, lag) cycles of n / g; its eigenvalues are
    cos(2 pi j g / n). With t = r / (1 + r^2) the product of 1 - 2 t cos(2 pi j / c) over a cycle of c is
    (1 + r^2)^-c (1 - r^c)^2, so log E exp(t sum) = n / 2 log(1 + r^2) - g log(1 - r^(n / g)). Any r in (0, 1) gives a
    bound, for minus the sum too; r is the best one but for the last term. At lag n / 2 every product is there twice:
    the sum is twice that over n / 2 disjoint edges, see `product_tail`.
    """
    cycles = np.gcd(n, lags).astype(np.float64)
    twice = 2 * cycles == n
    bound, r = _chernoff(np.where(twice, sums / 2, sums), np.where(twice, n / 2, float(n)))
    closing = np.where(twice, 0.0, cycles * np.log1p(-(r ** (n / cycles))))
    return np.asarray(np.minimum(bound - closing, 0.0), dtype=np.float64)


def product_tail(sums: Reals, edges: Reals) -> Reals:
    """log of a bound on P(sum of x_i x_j >= s) over the edges (i, j) of disjoint paths, for independent standard normal
    x, as many edges as said; elementwise.

    As above; the determinant of a path with E edges is at least (1 + r^2)^-E, so log E exp(t sum) is at most E / 2
    log(1 + r^2): the terms left out, (log(1 - r^4) - log(1 - r^(2 E + 4))) / 2, are not positive.
    """
    return np.asarray(np.minimum(_chernoff(sums, edges)[0], 0.0), dtype=np.float64)


def _chernoff(sums: Reals, edges: Reals) -> tuple[Reals, Reals]:
    """(edges / 2 log(1 + r^2) - r / (1 + r^2) sums, r), with the r in [0, 1) that makes it least, about.

    That is the root of f(r) = r (1 + r^2) - aim (1 - r^2), aim = sums / edges, which rises and is convex. Newton's
    steps come down to it from where f >= 0, as at min(aim, 1): f is 2 aim^3 and 2 there. Each about squares the error.
    Where they stop matters to the bound's height alone, since any r gives a bound."""
    aim = np.maximum(sums, 0.0) / edges
    r = np.minimum(aim, 1.0)
    for _ in range(_STEPS):
        r = (2 * r**3 + aim * (1 + r**2)) / (1 + (3 * r + 2 * aim) * r)
    r = np.minimum(r, _BELOW_ONE)
    return edges / 2 * np.log1p(r**2) - r / (1 + r**2) * sums, r


def correlation_tail(r: float, n: int) -> float:
    """P(|correlation| >= r) of two independent vectors of n standard normal numbers, uncentred: Student's law with
    n - 1 degrees, exactly."""
    r = min(r, 1 - 1e-15)
    return min(1.0, 2 * student_tail(r * math.sqrt((n - 1) / (1 - r * r)), n - 1)) if n > 1 else 1.0


def repeats(samples: Integers, law: ExactLaw) -> TestOutcome:
    """Runs of samples that occur twice, for a law whose mode is 0: what a generator that repeats a block leaves behind.

    Runs are as long as it takes to expect fewer than 1e-10 pairs of equal ones; that expectation bounds the p-value.
    """
    mode = float(np.diff(law.cdf(np.array([-1, 0], dtype=np.int64)))[0])
    pairs = len(samples) ** 2 / 2
    length = max(1, math.ceil(math.log(1e-10 / pairs) / math.log(mode)))
    windows = np.lib.stride_tricks.sliding_window_view(samples, min(length, len(samples)))
    factors = np.random.default_rng(1).integers(1, 1 << 62, (windows.shape[1],), dtype=np.int64) | 1
    hashes, found = np.zeros(len(windows), dtype=np.int64), 0
    for k, factor in enumerate(factors):
        hashes += windows[:, k] * factor
    ordered = np.sort(hashes)  # takes less than finding their order, which is asked for where two are equal
    if (ordered[1:] == ordered[:-1]).any():
        order = np.argsort(hashes, kind="stable")
        same = np.flatnonzero(np.diff(hashes[order]) == 0)
        found = int((windows[order[same]] == windows[order[same + 1]]).all(axis=1).sum())
    return TestOutcome("repeats", float(found), None, min(1.0, pairs * mode**length) if found else 1.0)


def _scores(samples: Integers, law: ExactLaw) -> Reals:
    from scipy.special import ndtri

    middle = (law.cdf(samples) + law.cdf(samples - 1)) / 2
    return np.asarray(ndtri(np.clip(middle, 1e-15, 1 - 1e-15)), dtype=np.float64)
