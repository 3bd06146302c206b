"""A loss that is not convex, for Kang et al.'s second theorem: the squared error of a probability.

With p = 1/(1 + e^-s) and t in {0, 1} the label, l = (p - t)^2. Its slope vanishes at both ends, so the mean loss is not
convex in theta. Generalised linear models of this kind satisfy a gradient domination (Polyak-Lojasiewicz) condition in
expectation when the model is right (Foster, Sekhari and Sridharan 2018); on given records it is measured, not
assumed: the report prints the smallest |grad J|^2 / (2 (J - J*)) over all models recorded.
Guarantees: sensitivities of *gradients* need |dl/ds| <= G alone, not convexity (Kang et al. 2019, Theorem 1).
"""


import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import expit

from dpmpc.lazy import dataclass

Array = NDArray[np.float64]
_CURVED = (15.0 - np.sqrt(33.0)) / 24.0  # where 2p^2(1-p)(2-3p) is largest: a root of 12p^2 - 15p + 4


@dataclass(frozen=True)
class SigmoidSquared:
    """(p(s) - t)^2 for labels +-1: |dl/ds| = 2(p-t)p(1-p) <= 8/27, at p = 2/3; |d2l/ds2| <= L."""

    name: str = "sigmoid squared"
    G: float = 8.0 / 27.0
    L: float = float(2.0 * _CURVED**2 * (1.0 - _CURVED) * (2.0 - 3.0 * _CURVED))

    def value(self, s: Array, y: Array) -> Array:
        return np.asarray(np.square(expit(-y * s)), dtype=np.float64)

    def derivative(self, s: Array, y: Array) -> Array:
        wrong = expit(-y * s)
        return np.asarray(-2.0 * y * wrong * wrong * (1.0 - wrong), dtype=np.float64)

    def second_derivative(self, s: Array, y: Array) -> Array:
        wrong = expit(-y * s)
        return np.asarray(2.0 * wrong**2 * (1.0 - wrong) * (2.0 - 3.0 * wrong), dtype=np.float64)


SIGMOID_SQUARED = SigmoidSquared()


def minimise(loss: SigmoidSquared, X: Array, y: Array, lam: float, starts: int = 4) -> Array:
    """The best stationary point of mean loss + lam/2 |theta|^2 found by L-BFGS from zero and from random points, (d,).

    Not a certificate: a lower one may exist. Gaps reported against it can only be too small by what it misses.
    """

    def value(theta: Array) -> tuple[float, Array]:
        s = X @ theta
        slope = X.T @ loss.derivative(s, y) / len(y) + lam * theta
        return float(np.mean(loss.value(s, y)) + 0.5 * lam * theta @ theta), slope

    rng = np.random.default_rng(0)
    points = [np.zeros(X.shape[1])] + [10.0 * rng.standard_normal(X.shape[1]) for _ in range(starts - 1)]
    options = {"maxiter": 5000, "maxfun": 10000, "ftol": 1e-15, "gtol": 1e-10}
    found = [minimize(value, point, jac=True, method="L-BFGS-B", options=options) for point in points]
    best = min(found, key=lambda result: float(result.fun))
    return np.asarray(best.x, dtype=np.float64)
