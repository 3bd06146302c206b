"""Does a sample of integers follow an exact law? Chi-square, residues, independence, repetition.

For `sample`, `verify` and tests. Bins come from the exact law before any sample is seen; empty bins count. Every test
returns a p-value, uniform on [0, 1] (or larger) for samples of the law. Touches no network and no file.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpmpc.privacy.exact import ExactLaw, Integers, Reals
from dpmpc.privacy.tails import chi_square_tail

MINIMUM_EXPECTED = 20.0


@dataclass(frozen=True)
class Outcome:
    """What a test found; `degrees` is None where the statistic is not a chi-square."""

    name: str
    statistic: float
    degrees: int | None
    p_value: float


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
    expected = probabilities * observed.sum()
    statistic = float(((observed - expected) ** 2 / expected).sum())
    degrees = len(expected) - 1
    return Outcome(name, statistic, degrees, chi_square_tail(statistic, degrees))


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
