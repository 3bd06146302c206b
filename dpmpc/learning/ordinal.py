"""Ordinal regression: grades and answers on a scale of levels, evenly spread over the target's range.

All thresholds at once: a level y says of every threshold t of the range whether it lies above it, and the loss is the
logistic one of each such answer, meaned over thresholds that lie evenly over [-1, 1], those of the scores at WIDTH t:

    l(s, y) = 1/2 int_(-1)^1 log(1 + exp(-z_t (s - WIDTH t))) dt,    z_t = 1 for t < y, else -1.

So one loss holds for any number of levels, and a single record's thresholds are public constants: learnt thresholds
would have to be released too. With u = (y + 1)/2, softplus(x) = log(1 + e^x) and F its integral from -infinity,

    dl/ds = m(s) - u,    m(s) = (softplus(s + WIDTH) - softplus(s - WIDTH)) / (2 WIDTH),

m(s) being the part of the thresholds that a record of this score is expected to be above.

Guarantees: m grows from 0 to 1, for softplus is convex and has slopes in (0, 1), so that |dl/ds| <= 1 = G for every
level in the range and every score: nothing is clipped. m' = (sigma(s + WIDTH) - sigma(s - WIDTH)) / (2 WIDTH) >= 0, so
the loss is convex, and it is largest at s = 0: L = tanh(WIDTH/2) / (2 WIDTH). With records in the unit ball no
gradient is longer than G, and replacing a record moves a sum of them by at most 2 G.
Source: Rennie and Srebro 2005 (all thresholds, logistic); Shalev-Shwartz and Singer 2003 (the hinge); fixed, even
thresholds without number, and the constants, are ours.
"""

import math

import numpy as np

from dpmpc.lazy import dataclass
from dpmpc.learning.losses import Floats, Loss
from dpmpc.learning.settings import Descent
from dpmpc.learning.task import Task

WIDTH = 3.0
"""The scores of the lowest and the highest threshold, -WIDTH and WIDTH: at the ends nineteen of twenty lie beyond."""


@dataclass(frozen=True)
class OrdinalLoss:
    """The mean over all thresholds of the logistic loss of being above it or not; levels y in [-1, 1]."""

    name: str = "ordinal"
    G: float = 1.0
    L: float = math.tanh(WIDTH / 2) / (2 * WIDTH)

    def value(self, s: Floats, y: Floats) -> Floats:
        """(F(s + WIDTH) - F(s - WIDTH)) / (2 WIDTH) - u s + WIDTH/4 (y^2 - 1). With F(x) + F(-x) = x^2/2 + pi^2/6 the
        squares are taken out, whose difference is exact far out."""
        above, below = np.maximum(s + WIDTH, 0.0), np.maximum(s - WIDTH, 0.0)
        squares = (above - below) * (above + below) / 2
        meaned = (squares + _rest(s + WIDTH) - _rest(s - WIDTH)) / (2 * WIDTH)
        return np.asarray(meaned - (y + 1) / 2 * s + WIDTH / 4 * (y * y - 1), dtype=np.float64)

    def derivative(self, s: Floats, y: Floats) -> Floats:
        return np.asarray(np.clip(passed(s), 0.0, 1.0) - (y + 1) / 2, dtype=np.float64)

    def second_derivative(self, s: Floats, y: Floats) -> Floats:
        return np.asarray((_logistic(s + WIDTH) - _logistic(s - WIDTH)) / (2 * WIDTH), dtype=np.float64)


def passed(s: Floats) -> Floats:
    """m(s), in [0, 1]: the part of the thresholds that records of these scores are expected to be above."""
    return np.asarray((np.logaddexp(0.0, s + WIDTH) - np.logaddexp(0.0, s - WIDTH)) / (2 * WIDTH), dtype=np.float64)


def _logistic(x: Floats) -> Floats:
    return np.asarray(0.5 + 0.5 * np.tanh(x / 2), dtype=np.float64)


def _rest(x: Floats) -> Floats:
    """F(x) less max(x, 0)^2 / 2: F(x) = -Li2(-e^x), taken at -|x|."""
    from scipy.special import spence  # which a party does without

    tail = -spence(1 + np.exp(-np.abs(x)))
    return np.asarray(np.where(x > 0, math.pi**2 / 6 - tail, tail), dtype=np.float64)


class OrdinalRegression(Task):
    """The loss is `OrdinalLoss`; what is predicted lies within the range of the levels."""

    name = "ordinal"
    kind = "number"
    help = "gives a level"

    def loss(self, how: Descent) -> Loss:
        return OrdinalLoss()

    def link(self, scores: Floats) -> Floats:
        return np.clip(2 * passed(scores) - 1, -1.0, 1.0)


ORDINAL_REGRESSION = OrdinalRegression()
