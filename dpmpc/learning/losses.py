"""Convex losses of a linear model's score, with the constants that privacy needs.

A loss l(s, y) is judged on the score s = x . theta alone. Records lie in the unit L2 ball, so |dl/ds| <= G makes the
loss G-Lipschitz in theta, and |d2l/ds2| <= L makes it L-smooth.
Source: Chaudhuri, Monteleoni, Sarwate 2011 section 3.4.
"""

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from dpmpc.errors import UsageError

Floats = NDArray[np.float64]


class Loss(Protocol):
    """A convex loss of the score: |dl/ds| <= G and |d2l/ds2| <= L everywhere. The methods work elementwise."""

    @property
    def name(self) -> str: ...
    @property
    def G(self) -> float: ...
    @property
    def L(self) -> float: ...
    def value(self, s: Floats, y: Floats) -> Floats: ...
    def derivative(self, s: Floats, y: Floats) -> Floats: ...
    def second_derivative(self, s: Floats, y: Floats) -> Floats: ...


@dataclass(frozen=True)
class Logistic:
    """log(1 + exp(-y s)) for labels y = +-1; G = 1, L = 1/4. Stable for every finite s."""

    name: str = "logistic"
    G: float = 1.0
    L: float = 0.25

    def value(self, s: Floats, y: Floats) -> Floats:
        margin = y * s  # as logaddexp(0, -margin), in half the time
        return np.asarray(np.maximum(-margin, 0.0) + np.log1p(np.exp(-np.abs(margin))), dtype=np.float64)

    def derivative(self, s: Floats, y: Floats) -> Floats:
        return np.asarray(-y * _expit(-y * s), dtype=np.float64)

    def second_derivative(self, s: Floats, y: Floats) -> Floats:
        return np.asarray(_expit(s) * _expit(-s), dtype=np.float64)


def _expit(x: Floats) -> Floats:
    from scipy.special import expit  # a party needs a loss's constants alone, and does without the import

    return np.asarray(expit(x), dtype=np.float64)


@dataclass(frozen=True)
class Ridge:
    """Half the squared residual r = s - y up to |r| = clip, and linear beyond (the Huber loss); G = clip, L = 1.

    The squared loss has no finite G. Clipping its derivative at +-clip gives the derivative of this convex loss, so the
    optimum of the objective exists and every sensitivity bound for G-Lipschitz convex losses holds. While all residuals
    stay within clip, this is ridge regression itself.
    Source: Huber 1964, with delta = clip.
    """

    clip: float
    name: str = "ridge"
    L: float = 1.0

    @property
    def G(self) -> float:
        return self.clip

    def value(self, s: Floats, y: Floats) -> Floats:
        excess = np.abs(s - y)
        inside = np.minimum(excess, self.clip)
        return np.asarray(inside * (excess - 0.5 * inside), dtype=np.float64)

    def derivative(self, s: Floats, y: Floats) -> Floats:
        return np.clip(s - y, -self.clip, self.clip)

    def second_derivative(self, s: Floats, y: Floats) -> Floats:
        return (np.abs(s - y) <= self.clip).astype(np.float64)


LOGISTIC: Loss = Logistic()


def ridge(clip: float) -> Loss:
    """The squared loss with its residual clipped at +-clip (see Ridge), so that G = clip. Errors: clip not positive."""
    if not (np.isfinite(clip) and clip > 0):
        raise UsageError(f"the residual clip must be positive and finite; got {clip}; give for instance 1")
    return Ridge(float(clip))
