"""Softmax regression: more than two classes. The loss, the constants that privacy needs, and optima with certificates.

A model is Theta in R^{d x K}, kept as theta in R^{dK} (row by row); the scores of a record x are s = Theta^T x, and its
loss with class y is l(s, y) = log sum_k exp(s_k) - s_y. With p = softmax(s), the gradient in theta is x (p - e_y)^T.

Guarantees: |gradient|_2 <= sqrt(2) for |x|_2 <= 1. Proof: |x (p - e_y)^T|_F = |x| |p - e_y|, and |p - e_y|^2 =
(1 - p_y)^2 + sum_{k != y} p_k^2 <= (1 - p_y)^2 + (sum_{k != y} p_k)^2 = 2 (1 - p_y)^2 <= 2. So G = sqrt(2), which is
attained in the limit. The Hessian is (x x^T) kron (diag p - p p^T); for a unit vector u, u^T (diag p - p p^T) u is the
variance of u_k for k drawn from p, at most (max u - min u)^2 / 4 <= 2/4 (Popoviciu; |a - b| <= sqrt(2) for entries of a
unit vector). So L = 1/2.
"""

import math
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from dpmpc.lazy import dataclass
from dpmpc.learning.matrix import Matrix, matrix_of
from dpmpc.records.blocks import Records

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Softmax:
    """The loss for scores s (n, K) and classes y (n,), whole numbers 0 .. K - 1 as floats."""

    name: str = "softmax"
    G: float = math.sqrt(2)
    L: float = 0.5

    def value(self, s: Floats, y: Floats) -> Floats:
        """(n,) the losses. Stable for every finite s."""
        top = s.max(axis=1)
        return np.asarray(top + np.log(np.exp(s - top[:, None]).sum(axis=1)) - s[np.arange(len(y)), y.astype(np.int64)])

    def derivative(self, s: Floats, y: Floats) -> Floats:
        """(n, K) the gradients in the scores, p - e_y."""
        p = probabilities(s)
        p[np.arange(len(y)), y.astype(np.int64)] -= 1.0
        return p

    def second_derivative(self, s: Floats, y: Floats) -> Floats:
        """(n, K) the diagonal of the Hessian in the scores, p (1 - p)."""
        p = probabilities(s)
        return np.asarray(p * (1 - p), dtype=np.float64)


SOFTMAX = Softmax()


def probabilities(s: Floats) -> Floats:
    """(n, K) softmax of the scores (n, K)."""
    e = np.exp(s - s.max(axis=1, keepdims=True))
    return np.asarray(e / e.sum(axis=1, keepdims=True), dtype=np.float64)


def predicted(s: Floats) -> Ints:
    """(n,) the class of the largest score, the first of equals."""
    return np.asarray(np.argmax(s, axis=1), dtype=np.int64)


def optima(
    records: Records, offsets: Ints, classes: int, lam: float, tolerance: float, weights: Floats | None = None
) -> tuple[Floats, Floats]:
    """Every owner's own optimum (m, dK) of the mean loss plus lam/2 |theta|^2, and the gradient's norm there (m,).

    Newton's method whose steps come from conjugate gradients, one owner after the other: no Hessian is made. A step
    that rounding stops ends the search; the norm, evaluated afresh, says how far it came. `weights` (K,): of the
    classes' records.
    """
    theta = np.zeros((len(offsets) - 1, records.d * classes))
    norms = np.zeros(len(theta))
    for j, (begin, end) in enumerate(pairwise(offsets)):
        X = matrix_of(records, int(begin), int(end))
        theta[j], norms[j] = _optimum(X, records.y[begin:end], classes, lam, tolerance, weights)
        records.forget(int(begin), int(end))
    return theta, norms


def _optimum(
    X: Matrix, y: Floats, classes: int, lam: float, tolerance: float, weights: Floats | None
) -> tuple[Floats, float]:
    n, d = X.shape
    w = np.ones(n) if weights is None else weights[y.astype(np.int64)]
    theta, whole = np.zeros((d, classes)), np.array([0, n])

    def at(theta: Floats) -> tuple[float, Floats]:
        s = X.scores(theta.ravel())
        value = float(np.mean(w * SOFTMAX.value(s, y)) + 0.5 * lam * np.sum(theta**2))
        return value, X.sums(w[:, None] * SOFTMAX.derivative(s, y), whole).reshape(d, classes) / n + lam * theta

    value, grad = at(theta)
    for _ in range(100):
        norm = float(np.linalg.norm(grad))
        if norm <= tolerance:
            break
        step = _newton_step(X, probabilities(X.scores(theta.ravel())), w, grad, lam, min(0.1, norm) * norm)
        promised, length = -float(np.sum(grad * step)), 1.0
        for _ in range(40):
            trial_value, trial_grad = at(theta + length * step)
            # below what rounding lets the objective show, the gradient's norm decides
            blind = length * promised <= 1e-11 * (1 + abs(value))
            if float(np.linalg.norm(trial_grad)) < norm if blind else trial_value <= value - 1e-4 * length * promised:
                theta, value, grad = theta + length * step, trial_value, trial_grad
                break
            length /= 2
        else:
            break
    return theta.ravel(), float(np.linalg.norm(grad))


def _newton_step(X: Matrix, p: Floats, w: Floats, grad: Floats, lam: float, enough: float) -> Floats:
    """(d, K) the step v with Hessian v = -grad, until the residual is below `enough`."""
    step, residual, whole = np.zeros_like(grad), -grad, np.array([0, len(p)])
    direction, square = residual.copy(), float(np.sum(residual**2))
    for _ in range(10 * grad.size):
        if math.sqrt(square) <= enough:
            break
        u = X.scores(direction.ravel())
        pulls = w[:, None] * p * (u - np.sum(p * u, axis=1, keepdims=True))
        curved = X.sums(pulls, whole).reshape(grad.shape) / len(p) + lam * direction
        alpha = square / float(np.sum(direction * curved))
        step, residual = step + alpha * direction, residual - alpha * curved
        square, before = float(np.sum(residual**2)), square
        direction = residual + square / before * direction
    return step
