"""Gradient descent by every owner alone, all owners at once.

Owner j minimises its own mean loss + ridge_j/2 |theta|^2 + linear_j . theta from zero. Two forms, the cheaper is taken:
*models* keeps the m models in one vector and its records in one block-diagonal sparse matrix; *coefficients* keeps
theta_j = X_j' a_j + e_j linear_j, which is all that descent from zero can reach, and needs only the Gram matrix of each
owner. With one record an owner the latter is one number an owner.
"""

from collections.abc import Iterator, Sequence

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from dpmpc_experiments.records import Problem

Array = NDArray[np.float64]


class LocalDescent:
    """The state of all owners' descents; `step()` updates every owner once."""

    def __init__(
        self, problem: Problem, eta: Array, ridge: Array, linear: Array | None, form: str | None = None
    ) -> None:
        """eta, ridge (m,); linear (m, d) or None for zero; form "models", "coefficients" or None for the cheaper."""
        self.problem, self.eta, self.ridge, self.linear = problem, eta, ridge, linear
        self.loss, self.d = problem.records.loss, problem.records.d
        X = sp.csr_matrix(problem.X)
        columns = X.indices.astype(np.int64) + np.repeat(problem.owner, np.diff(X.indptr)) * self.d
        self.X = X
        self.block = sp.csr_matrix((X.data, columns, X.indptr), shape=(len(problem.y), problem.m * self.d))
        gram_cells = int(np.sum(problem.sizes.astype(np.float64) ** 2))
        if form is None:
            form = "coefficients" if gram_cells < 2 * X.nnz + 3 * problem.m * self.d else "models"
        self.form = form
        self.record_eta = eta[problem.owner] / problem.sizes[problem.owner]
        self.e = np.zeros(problem.m)
        if form == "coefficients":
            self.gram = (self.block @ self.block.T).tocsr()
            self.a = np.zeros(len(problem.y))
            self.record_keep = (1.0 - eta * ridge)[problem.owner]
            self.linear_scores = 0.0 if linear is None else self.block @ linear.ravel()
        else:
            self.theta = np.zeros((problem.m, self.d))

    def step(self) -> None:
        """Update every owner's model once."""
        problem, keep = self.problem, 1.0 - self.eta * self.ridge
        if self.form == "coefficients":
            scores = self.gram @ self.a + self.e[problem.owner] * self.linear_scores
            self.a = self.a * self.record_keep - self.record_eta * self.loss.derivative(scores, problem.y)
            self.e = self.e * keep - self.eta
            return
        scores = self.block @ self.theta.ravel()
        move = self.block.T @ (self.record_eta * self.loss.derivative(scores, problem.y))
        self.theta = self.theta * keep[:, None] - move.reshape(self.theta.shape)
        if self.linear is not None:
            self.theta -= self.eta[:, None] * self.linear

    def mean(self, weights: Array) -> Array:
        """The weighted sum of the owners' models, weights (m,) -> (d,)."""
        if self.form == "models":
            return weights @ self.theta
        total: Array = self.X.T @ (self.a * weights[self.problem.owner])
        return total if self.linear is None else total + (weights * self.e) @ self.linear

    def models(self) -> Array:
        """Every owner's model, (m, d)."""
        if self.form == "models":
            return self.theta
        theta: Array = (self.block.T @ self.a).reshape(self.problem.m, self.d)
        return theta if self.linear is None else theta + self.e[:, None] * self.linear


def trajectory(descent: LocalDescent, at: Sequence[int]) -> Iterator[LocalDescent]:
    """The descent, after each number of updates in `at` (ascending)."""
    done = 0
    for t in at:
        while done < t:
            descent.step()
            done += 1
        yield descent
