"""Quantile regression: the value that a part tau of alike records lies below.

The pinball loss has a kink, so that no L bounds it. Its corner is rounded: the derivative of the loss is

    w(s - y) clip(s - y, -c, c),    w = tau where s < y, 1 - tau where s > y,

which is the pinball's, times c, wherever a residual is c or longer, c being `residual_clip`. The smaller c, the closer
to the quantile; with c as large as the range it is the expectile.

Guarantees: the derivative grows with s, for each half does and both are 0 at s = y: the loss is convex. It is at most
c max(tau, 1 - tau) = G long; its slope is at most max(tau, 1 - tau) = L. With records in the unit ball no gradient is
longer than G. As G falls with c, so does the noise: a small c costs no accuracy by itself.
Source: Koenker and Bassett 1978 (the pinball); Huber 1964 (the rounding); M-quantiles are Breckling and Chambers 1988.
"""

import numpy as np

from dpmpc.lazy import dataclass
from dpmpc.learning.losses import Floats, Loss
from dpmpc.learning.settings import Descent
from dpmpc.learning.task import Task


@dataclass(frozen=True)
class QuantileLoss:
    """The rounded pinball loss of the quantile `tau`, in (0, 1), with its corner rounded within `clip`."""

    tau: float
    clip: float
    name: str = "quantile"

    @property
    def L(self) -> float:
        return max(self.tau, 1 - self.tau)

    @property
    def G(self) -> float:
        return self.clip * self.L

    def value(self, s: Floats, y: Floats) -> Floats:
        excess = np.abs(s - y)
        inside = np.minimum(excess, self.clip)
        return np.asarray(self._weight(s, y) * inside * (excess - 0.5 * inside), dtype=np.float64)

    def derivative(self, s: Floats, y: Floats) -> Floats:
        return np.asarray(self._weight(s, y) * np.clip(s - y, -self.clip, self.clip), dtype=np.float64)

    def second_derivative(self, s: Floats, y: Floats) -> Floats:
        return np.where(np.abs(s - y) <= self.clip, self._weight(s, y), 0.0)

    def _weight(self, s: Floats, y: Floats) -> Floats:
        return np.where(s < y, self.tau, 1 - self.tau)


class QuantileRegression(Task):
    """The quantile `tau` of a quantity; a package of one's own has others by an instance of this class."""

    kind = "number"

    def __init__(self, tau: float, name: str) -> None:
        self.tau = tau
        self.name = name  # type: ignore[misc]  # of the instance: one class, several entries
        self.help = f"gives the value that {tau:.0%} of alike records lie below"  # type: ignore[misc]

    def loss(self, how: Descent) -> Loss:
        return QuantileLoss(self.tau, how.residual_clip)


QUANTILE10 = QuantileRegression(0.1, "quantile10")
MEDIAN = QuantileRegression(0.5, "median")
QUANTILE90 = QuantileRegression(0.9, "quantile90")
