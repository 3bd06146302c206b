"""Are two samples of a law independent?"""

import math

import numpy as np

from dpmpc.noise import goodness
from dpmpc.privacy.exact import ExactLaw, Integers


def cross_independence(first: Integers, second: Integers, law: ExactLaw) -> goodness.TestOutcome:
    """The largest correlation between two samples of equal length over all cyclic shifts, times sqrt(count): by normal
    scores, Student's law, exactly."""
    x, y = goodness._scores(first, law), goodness._scores(second, law)
    n = len(x)
    products = np.abs(np.fft.irfft(np.fft.rfft(x).conj() * np.fft.rfft(y), n))
    r = float(products.max() / max(1e-300, math.sqrt(float(x @ x) * float(y @ y))))
    p_value = min(1.0, goodness.correlation_tail(r, n) * len(products))
    return goodness.TestOutcome("cross-correlation", r * math.sqrt(n), None, p_value)
