"""All tests of a large sample against an exact law, at one stated rate of false alarms."""

import math
from collections.abc import Callable, Container

import numpy as np
from numpy.typing import NDArray

from dpmpc.noise.goodness import TestOutcome, chi_square, independence, repeats, residues
from dpmpc.privacy.exact import ExactLaw

FALSE_ALARM = 1e-9  # of each test
NAMES = ("chi-square", "residues mod 8", "autocorrelation", "mean and variance", "repeats")


def alarms(samples: NDArray[np.int64], law: ExactLaw, only: Container[str] = NAMES) -> dict[str, float]:
    """The tests that reject the samples, with their p-values; of those that are named."""
    tests: list[Callable[[], TestOutcome]] = [
        lambda: chi_square(samples, law),
        lambda: residues(samples, law, 8),
        lambda: independence(samples, law),
        lambda: mean_and_variance(samples, law),
        lambda: repeats(samples, law),
    ]
    outcomes = [test() for name, test in zip(NAMES, tests, strict=True) if name in only]
    return {o.name: o.p_value for o in outcomes if o.p_value < FALSE_ALARM}


def mean_and_variance(samples: NDArray[np.int64], law: ExactLaw) -> TestOutcome:
    """z of the mean and of the variance, the larger one; normal approximation, p-value for both together."""
    from scipy.special import log_ndtr  # here, so that the parties of a test start without SciPy

    scaled = samples / math.sqrt(law.variance)
    squares = scaled**2
    root = math.sqrt(len(samples))
    z = max(abs(float(scaled.mean())) * root, abs(float(squares.mean()) - 1) / float(squares.std()) * root)
    return TestOutcome("mean and variance", z, None, math.exp(min(0.0, math.log(4) + float(log_ndtr(-z)))))


def variance_ratio(samples: NDArray[np.int64], law: ExactLaw, confidence: float = 0.99) -> tuple[float, float, float]:
    """(ratio, low, high): mean of x^2 over the law's variance, and its confidence interval (from the fourth moment)."""
    from scipy.special import ndtri

    squares = (samples / math.sqrt(law.variance)) ** 2
    ratio = float(squares.mean())
    half = float(ndtri((1 + confidence) / 2)) * float(squares.std()) / math.sqrt(len(samples))
    return ratio, ratio - half, ratio + half
