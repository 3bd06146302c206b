"""Convex losses of a linear model's score, with the constants that privacy needs.

A loss l(s, y) is judged on the score s = x . theta alone. Records lie in the unit L2 ball, so |dl/ds| <= G makes the
loss G-Lipschitz in theta, and |d2l/ds2| <= L makes it L-smooth.
Source: Chaudhuri, Monteleoni, Sarwate 2011 section 3.4.
"""

import math
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from dpmpc.errors import UsageError
from dpmpc.lazy import dataclass

Floats = NDArray[np.float64]

RESIDUAL_CLIP = 0.25
"""Of ridge regression, unless another is given, in units of half the target's range: noise is proportional to it, and
most residuals of a model worth having are smaller (docs/accuracy.md)."""


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
        return np.asarray(-y * expit(-y * s), dtype=np.float64)

    def second_derivative(self, s: Floats, y: Floats) -> Floats:
        e = np.exp(-np.abs(s))
        return np.asarray(e / (1.0 + e) ** 2, dtype=np.float64)


def expit(x: Floats) -> Floats:
    """1 / (1 + exp(-x)), to a few units in the last place above 1e-307, and never below 1e-308; without SciPy, whose
    import takes longer than a short run."""
    e = np.exp(np.minimum(-x, 709.0))  # exp(710) is infinite
    e += 1.0
    return np.asarray(1.0 / e, dtype=np.float64)


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
        raise UsageError(
            f"the residual clip must be positive and finite; got {clip}; give for instance 1", code="range"
        )
    return Ridge(float(clip))


_LOGISTIC_PULL = 0.27846454276107383  # the largest m/(1 + e^m): W(1/e), rounded up


def farthest(loss: Loss, lam: float) -> float:
    """The norm that no minimiser of mean loss + lam/2 |theta|^2 exceeds, whatever the records; infinite where nothing
    better than G/lam is proved.

    Guarantees: at the minimiser lam theta = -mean l'(s_i, y_i) x_i, and times theta: lam |theta|^2 = -mean l'(s_i, y_i)
    s_i, at most the largest -l'(s, y) s, call it p. Logistic: m/(1 + e^m), m = y s, is largest where e^m = 1/(m - 1),
    with the value W(1/e). Ridge with |y| <= 1: s (y - s) <= 1/4 within the clip c; beyond it s c with s <= 1 - c, if c
    is below 1/2. So |theta| <= sqrt(p/lam), which is less than G/lam for small lam.
    """
    if isinstance(loss, Logistic):
        return math.sqrt(_LOGISTIC_PULL / lam)
    if isinstance(loss, Ridge):
        return math.sqrt((loss.clip * (1 - loss.clip) if loss.clip < 0.5 else 0.25) / lam)
    return math.inf
