"""Newton's method on many small regularised problems of one shape at once.

Problem i minimises sum_k weight[i, k] l(A[i, k] . theta, y[i, k]) + lam/2 |theta|^2 + linear[i] . theta over theta in
R^r.
"""

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from dpmpc.lazy import dataclass
from dpmpc.learning.losses import Loss

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

CHUNK = 1 << 22  # doubles held at once in a temporary: 32 MB
_MAX_STEPS = 200
_MAX_HALVINGS = 30


@dataclass(frozen=True, eq=False)
class Point:
    """b candidate minimisers: theta and the gradient (b, r), J (b,), the scores (b, k)."""

    theta: Floats
    value: Floats
    grad: Floats
    scores: Floats

    def take(self, index: Ints) -> "Point":
        return Point(self.theta[index], self.value[index], self.grad[index], self.scores[index])

    def put(self, index: Ints, other: "Point") -> None:
        self.theta[index], self.value[index] = other.theta, other.value
        self.grad[index], self.scores[index] = other.grad, other.scores


@dataclass(frozen=True, eq=False)
class Problems:
    """b minimisations of one shape: rows A (b, k, r), targets and row weights (b, k), linear terms (b, r)."""

    loss: Loss
    lam: float
    A: Floats
    y: Floats
    weight: Floats
    linear: Floats

    def take(self, index: Ints) -> "Problems":
        if len(index) == len(self.A):  # the index is increasing: all of them, and no copy
            return self
        parts = (part[index] for part in (self.A, self.y, self.weight, self.linear))
        return Problems(self.loss, self.lam, *parts)

    def at(self, theta: Floats) -> Point:
        """J, its gradient and the scores at theta (b, r)."""
        scores = np.matmul(self.A, theta[:, :, None])[:, :, 0]
        value = np.einsum("bk,bk->b", self.weight, self.loss.value(scores, self.y))
        value += np.einsum("br,br->b", theta, 0.5 * self.lam * theta + self.linear)
        pull = self.weight * self.loss.derivative(scores, self.y)
        grad = np.matmul(pull[:, None, :], self.A)[:, 0, :] + self.lam * theta + self.linear
        return Point(theta, value, grad, scores)

    @property
    def shape(self) -> tuple[int, int]:
        """How many problems, and of how many variables."""
        return self.A.shape[0], self.A.shape[2]

    def hessian(self, point: Point) -> Floats:
        """(b, r, r) A^T diag(weight l'') A + lam I, with at most about CHUNK doubles of temporary."""
        b, k, r = self.A.shape
        curvature = self.weight * self.loss.second_derivative(point.scores, self.y)
        total = np.zeros((b, r, r))
        total[:, np.arange(r), np.arange(r)] = self.lam
        step = max(1, CHUNK // max(1, b * r))
        for i in range(0, k, step):
            block = self.A[:, i : i + step]
            total += np.matmul(np.swapaxes(block, 1, 2), curvature[:, i : i + step, None] * block)
        return total


class Minimisations(Protocol):
    """What Newton's method asks of b problems of r variables; `Problems` holds its rows, others may stream them."""

    @property
    def shape(self) -> tuple[int, int]: ...
    def take(self, index: Ints) -> "Minimisations": ...
    def at(self, theta: Floats) -> Point: ...
    def hessian(self, point: Point) -> Floats: ...


def newton(problems: Minimisations, tolerance: float) -> Floats:
    """(b, r) the minimisers, by damped Newton; problems that converge, or that rounding stops, leave the batch."""
    b, r = problems.shape
    result = np.zeros((b, r))
    active = np.arange(b)
    point = problems.at(result.copy())
    for _ in range(_MAX_STEPS):
        going = np.flatnonzero(np.linalg.norm(point.grad, axis=1) > tolerance)
        if len(going) < len(active):
            active, problems, point = active[going], problems.take(going), point.take(going)
        if len(active) == 0:
            break
        newton_step = np.linalg.solve(problems.hessian(point), -point.grad[:, :, None])
        step = np.asarray(newton_step[:, :, 0], dtype=np.float64)
        moved = _search(problems, point, step)
        result[active] = point.theta
        if not moved.all():
            still = np.flatnonzero(moved)
            active, problems, point = active[still], problems.take(still), point.take(still)
    return result


def _search(problems: Minimisations, point: Point, step: Floats) -> NDArray[np.bool_]:
    """(b,) which problems could move along their step; `point` is moved there.

    Steps are halved until J falls by Armijo's rule; where the promised fall is below what rounding lets J show, until
    the gradient shrinks, as it does along a short Newton step.
    """
    promised = -np.einsum("br,br->b", point.grad, step)
    norm = np.linalg.norm(point.grad, axis=1)
    start, value = point.theta.copy(), point.value.copy()
    pending = np.arange(len(value))
    moved = np.zeros(len(value), dtype=bool)
    length = 1.0
    for _ in range(_MAX_HALVINGS):
        trial = problems.take(pending).at(start[pending] + length * step[pending])
        falls = trial.value <= value[pending] - 1e-4 * length * promised[pending]
        blind = length * promised[pending] <= 1e-11 * (1.0 + np.abs(value[pending]))
        shrinks = np.linalg.norm(trial.grad, axis=1) < norm[pending]
        good = np.where(blind, shrinks, falls)
        point.put(pending[good], trial.take(np.flatnonzero(good)))
        moved[pending[good]] = True
        pending = pending[~good]
        if len(pending) == 0:
            break
        length *= 0.5
    return moved
