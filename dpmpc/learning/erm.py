"""Empirical risk minimisation of linear models: objective, gradients, and solvers that certify themselves.

A model is theta in R^d, its score on a record x is s = x . theta; losses and their G and L are in `losses`. The
objective is

    J(theta) = mean_i l(x_i . theta, y_i) + lam/2 |theta|^2  (+ linear . theta, for objective perturbation)

Everything here is in the clear and on the owners' side; nothing enters the MPC from this module.
Source: Jayaraman et al. 2018 section 3.
"""

import numpy as np
from numpy.typing import NDArray

from dpmpc.errors import UsageError
from dpmpc.lazy import dataclass
from dpmpc.learning.losses import LOGISTIC, Loss, ridge
from dpmpc.learning.newton import CHUNK, Problems, newton
from dpmpc.learning.row_sums import row_sums

__all__ = [
    "LOGISTIC",
    "Loss",
    "Solution",
    "accuracy",
    "gradient",
    "mse",
    "objective",
    "owner_gradients",
    "ridge",
    "solve",
    "solve_owners",
]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def objective(loss: Loss, theta: Floats, X: Floats, y: Floats, lam: float) -> float:
    """J(theta): the mean loss over the rows of X (n, d) plus lam/2 |theta|^2."""
    return float(np.mean(loss.value(X @ theta, y)) + 0.5 * lam * (theta @ theta))


def gradient(loss: Loss, theta: Floats, X: Floats, y: Floats, lam: float = 0.0) -> Floats:
    """The gradient of J at theta, (d,): the mean over the rows plus lam theta. Its norm is at most G + lam |theta|."""
    return np.asarray(loss.derivative(X @ theta, y) @ X / len(y) + lam * theta, dtype=np.float64)


def owner_gradients(loss: Loss, theta: Floats, X_sorted: Floats, y_sorted: Floats, offsets: Ints) -> Floats:
    """Each owner's mean gradient without regulariser, shape (m, d), every row of norm <= G.

    Owner j holds rows offsets[j]:offsets[j+1]. One sparse-times-dense product, whatever the sizes of the m owners.
    """
    return _per_owner(loss.derivative(X_sorted @ theta, y_sorted), X_sorted, offsets)


def accuracy(theta: Floats, X: Floats, y: Floats) -> float:
    """The fraction of rows whose label +-1 is the sign of the score; a score of exactly 0 predicts -1."""
    _need_rows(y)
    return float(np.mean(np.where(X @ theta > 0, 1.0, -1.0) == y))


def mse(theta: Floats, X: Floats, y: Floats) -> float:
    """The mean squared residual, in the scaled units of y (the target's range is [-1, 1])."""
    _need_rows(y)
    return float(np.mean((X @ theta - y) ** 2))


@dataclass(frozen=True, eq=False)
class Solution:
    """A minimiser of J and its certificate: |theta - theta*|_2 <= gradient_norm / lam."""

    theta: Floats
    gradient_norm: float


def solve(
    loss: Loss, X: Floats, y: Floats, lam: float, tolerance: float = 1e-10, linear: Floats | None = None
) -> Solution:
    """The minimiser of J over X (n, d), with the norm of the gradient evaluated afresh at the returned theta.

    J is lam-strongly convex: the certificate bounds the distance to the optimum. `linear` (d,) adds linear . theta to
    J. The solver aims at `tolerance`; where rounding stops it earlier, the certificate says how far it came.
    Errors: lam not positive, no rows, values that are not finite.
    """
    offsets = np.array([0, len(y)], dtype=np.int64)
    theta, norms = solve_owners(loss, X, y, offsets, lam, tolerance, None if linear is None else linear[None, :])
    return Solution(theta[0], float(norms[0]))


def solve_owners(
    loss: Loss,
    X_sorted: Floats,
    y_sorted: Floats,
    offsets: Ints,
    lam: float,
    tolerance: float = 1e-10,
    linear: Floats | None = None,
) -> tuple[Floats, Floats]:
    """Every owner's own optimum (m, d), and the norm of its own objective's gradient there (m,), evaluated afresh.

    Owner j minimises J over rows offsets[j]:offsets[j+1], plus linear[j] . theta if `linear` (m, d) is given. Owners of
    like size are padded with rows of weight 0 and solved together by Newton's method. Where n_j < d, theta is first
    restricted to the span of the owner's records, in which the optimum lies (representer theorem); one record each
    is a batch of 1-dimensional problems. Errors: as for `solve`, and an owner without records.
    """
    offsets = np.asarray(offsets, dtype=np.int64)
    sizes = np.diff(offsets)
    if not (np.isfinite(lam) and lam > 0):
        raise UsageError(
            f"the regulariser lam must be positive for the optimum to be unique; got {lam}; try 0.001", code="range"
        )
    if len(sizes) == 0 or sizes.min() < 1:
        raise UsageError("every owner needs at least one record; an owner has none; use fewer owners", code="enough")
    with np.errstate(invalid="ignore"):  # infinities of both signs: their sum is the NaN looked for
        finite = np.isfinite(y_sorted).all() and np.isfinite(np.sum(X_sorted))
    if not finite:
        raise UsageError("records must be finite; the data hold NaN or infinity; clean them first", code="range")
    d = X_sorted.shape[1]
    theta = np.empty((len(sizes), d))
    by_size = np.argsort(sizes, kind="stable")
    begin = 0
    while begin < len(by_size):
        smallest = int(sizes[by_size[begin]])
        # padding costs at most a quarter more rows, and a batch at most CHUNK doubles (or one owner)
        end = int(np.searchsorted(sizes[by_size], smallest + smallest // 4, side="right"))
        width = int(sizes[by_size[end - 1]])
        end = min(end, begin + max(1, CHUNK // (width * max(d, 1))))
        batch = by_size[begin:end]
        shift = None if linear is None else linear[batch]
        theta[batch] = _solve_batch(loss, X_sorted, y_sorted, offsets[batch], sizes[batch], lam, tolerance, shift)
        begin = end
    scores = _owner_scores(theta, X_sorted, offsets)
    residual = _per_owner(loss.derivative(scores, y_sorted), X_sorted, offsets) + lam * theta
    if linear is not None:
        residual += linear
    return theta, np.asarray(np.linalg.norm(residual, axis=1), dtype=np.float64)


def _per_owner(coefficients: Floats, X_sorted: Floats, offsets: Ints) -> Floats:
    """Row j: the mean of coefficients[i] X_sorted[i] over owner j's rows i."""
    rows = slice(int(offsets[0]), int(offsets[-1]))
    sums = row_sums(coefficients[rows], X_sorted[rows], offsets - offsets[0])
    return sums / np.diff(offsets)[:, None]


def _owner_scores(theta: Floats, X_sorted: Floats, offsets: Ints) -> Floats:
    """(n,) the score of every row under its own owner's model, some rows at a time."""
    sizes = np.diff(offsets)
    if len(sizes) == 1:
        return np.asarray(X_sorted @ theta[0], dtype=np.float64)
    owner = np.repeat(np.arange(len(sizes)), sizes)
    step = max(1, CHUNK // max(1, X_sorted.shape[1]))
    pieces = [
        np.einsum("id,id->i", X_sorted[i : i + step], theta[owner[i : i + step]]) for i in range(0, len(owner), step)
    ]
    return np.concatenate(pieces)


def _solve_batch(
    loss: Loss,
    X: Floats,
    y: Floats,
    starts: Ints,
    sizes: Ints,
    lam: float,
    tolerance: float,
    linear: Floats | None,
) -> Floats:
    """(b, d) the optima of b owners of like size; owner j holds rows starts[j] : starts[j] + sizes[j]."""
    width = int(sizes.max())
    d = X.shape[1]
    if len(sizes) == 1:
        rows = slice(int(starts[0]), int(starts[0]) + width)
        A, target, weight = X[None, rows], y[None, rows], np.full((1, width), 1.0 / width)
    else:
        index = starts[:, None] + np.arange(width)
        held = np.arange(width) < sizes[:, None]
        index = np.where(held, index, starts[:, None])  # padding repeats the first record, with weight 0
        A, target, weight = X[index], y[index], held / sizes[:, None]
    shift = np.zeros((len(sizes), d)) if linear is None else linear
    if width >= d:
        return newton(Problems(loss, lam, A, target, weight, shift), tolerance)
    # theta = Q b + rest: Q (d, width) is an orthonormal basis of a space that holds the records, A = R^T Q^T. Outside
    # of that space J is lam/2 |rest|^2 + linear . rest, with its minimum at -linear_outside / lam.
    if width == 1:
        R = np.linalg.norm(A, axis=2, keepdims=True)
        Q = np.swapaxes(np.divide(A, R, out=np.zeros_like(A), where=R > 0), 1, 2)
    else:
        Q, R = np.linalg.qr(np.swapaxes(A, 1, 2))
    inside = np.einsum("bdr,bd->br", Q, shift)
    reduced = newton(Problems(loss, lam, np.swapaxes(R, 1, 2), target, weight, inside), tolerance)
    rest = np.einsum("bdr,br->bd", Q, inside) - shift
    return np.asarray(np.einsum("bdr,br->bd", Q, reduced) + rest / lam, dtype=np.float64)


def _need_rows(y: Floats) -> None:
    if len(y) == 0:
        raise UsageError(
            "a score needs at least one row; there are no test rows; use a test fraction above 0", code="enough"
        )
