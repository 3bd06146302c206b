"""Records, who owns them, and the two metrics of the papers: optimality gap and accuracy loss.

A mean over records is a weighted mean over *distinct* records: 50,000 rows of KDDCup99 hold about 20,000 distinct ones,
and what changes between methods and partitions is the weights alone. Nothing here loops over owners or records.
"""

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from dpmpc.lazy import cached_property, dataclass
from dpmpc.learning import erm
from dpmpc_experiments.nonconvex import SigmoidSquared, minimise

Array = NDArray[np.float64]
SPARSE_BELOW = 0.25  # density under which compressed rows beat BLAS, measured at 10 columns


@dataclass(frozen=True)
class Records:
    """Training and test records of one task, with the objective J(theta) = mean loss + lam/2 |theta|^2.

    X (n, d), each row in the unit ball; y (n,); X_test, y_test likewise.
    """

    name: str
    loss: erm.Loss
    lam: float
    X: Array
    y: Array
    X_test: Array
    y_test: Array

    @property
    def n(self) -> int:
        return len(self.y)

    @property
    def d(self) -> int:
        return int(self.X.shape[1])

    @cached_property
    def distinct(self) -> tuple[Any, Array, NDArray[np.int64]]:
        """The distinct (x, y): a (u, d) matrix, sparse or dense, labels (u,), and for each record its index (n,)."""
        rows = np.ascontiguousarray(np.column_stack([self.X, self.y]))
        keys = rows.view([("", f"V{rows.shape[1] * 8}")]).ravel()
        _, first, index = np.unique(keys, return_index=True, return_inverse=True)
        return matrix(rows[first, :-1]), rows[first, -1], index.reshape(-1).astype(np.int64)

    @cached_property
    def counts(self) -> Array:
        """How often each distinct record occurs, (u,)."""
        return np.bincount(self.distinct[2], minlength=len(self.distinct[1])).astype(np.float64)

    @cached_property
    def optimum(self) -> Array:
        """The minimiser of J over all records, (d,): exact for convex losses, the best found for the other."""
        if isinstance(self.loss, SigmoidSquared):
            return minimise(self.loss, self.X, self.y, self.lam)
        return erm.solve(self.loss, self.X, self.y, self.lam).theta

    def objective(self, models: Array) -> Array:
        """J at each model: models (..., d) -> (...)."""
        U, v, _ = self.distinct
        flat = models.reshape(-1, self.d)
        value = np.empty(len(flat))
        for part in _parts(len(flat), len(v)):
            scores = np.asarray(U @ flat[part].T)
            value[part] = self.counts @ self.loss.value(scores, v[:, None]) / self.n
        value += 0.5 * self.lam * np.einsum("ij,ij->i", flat, flat)
        return value.reshape(models.shape[:-1])

    def gradient_norms(self, models: Array) -> Array:
        """|grad J|_2 at each model: models (..., d) -> (...)."""
        U, v, _ = self.distinct
        flat = models.reshape(-1, self.d)
        norms = np.empty(len(flat))
        weight = (self.counts / self.n)[:, None]
        for part in _parts(len(flat), len(v)):
            slope = self.loss.derivative(np.asarray(U @ flat[part].T), v[:, None]) * weight
            norms[part] = np.linalg.norm(np.asarray(U.T @ slope).T + self.lam * flat[part], axis=1)
        return norms.reshape(models.shape[:-1])

    @cached_property
    def smallest(self) -> float:
        """J at the optimum."""
        return float(self.objective(self.optimum))

    def test_score(self, models: Array) -> Array:
        """Accuracy on the test records (minus the mean squared error for ridge), models (..., d) -> (...)."""
        flat = models.reshape(-1, self.d)
        score = np.empty(len(flat))
        for part in _parts(len(flat), len(self.y_test)):
            s = self._test_matrix @ flat[part].T
            label = self.y_test[:, None]
            if self.loss.name.startswith("ridge"):
                score[part] = -np.mean((s - label) ** 2, axis=0)
            else:
                score[part] = np.mean((s > 0) == (label > 0), axis=0)
        return score.reshape(models.shape[:-1])

    @cached_property
    def _test_matrix(self) -> Any:
        return matrix(self.X_test)

    @cached_property
    def best_score(self) -> float:
        """Test score of the optimum."""
        return float(self.test_score(self.optimum))


def matrix(X: Array) -> Any:
    """X as compressed sparse rows when it is sparse enough to pay, else as it is."""
    return sp.csr_matrix(X) if np.count_nonzero(X) < SPARSE_BELOW * X.size else X


def _parts(rows: int, width: int, cells: int = 4_000_000) -> list[slice]:
    step = max(1, cells // max(1, width))
    return [slice(i, i + step) for i in range(0, rows, step)]


@dataclass(frozen=True)
class Problem:
    """Records and their owners: owner j holds records order[offsets[j]:offsets[j + 1]]."""

    records: Records
    order: NDArray[np.int64]
    offsets: NDArray[np.int64]

    @property
    def m(self) -> int:
        return len(self.offsets) - 1

    @property
    def n(self) -> int:
        """The number of records that owners hold."""
        return len(self.order)

    @cached_property
    def sizes(self) -> NDArray[np.int64]:
        return np.diff(self.offsets)

    @cached_property
    def owner(self) -> NDArray[np.int64]:
        """The owner of each record in owner order, (n,)."""
        return np.repeat(np.arange(self.m), self.sizes)

    @cached_property
    def X(self) -> Array:
        """Records in owner order, (n, d)."""
        return self.records.X[self.order]

    @cached_property
    def y(self) -> Array:
        return self.records.y[self.order]

    def weights(self, kind: str) -> Array:
        """What each distinct record weighs in the aggregate, (u,), summing to 1.

        "size": owners weigh n_j/n, so every record 1/n; "equal": owners weigh 1/m, so a record of owner j 1/(m n_j).
        """
        per_record = np.full(self.n, 1.0 / self.n)
        if kind == "equal":
            per_record = np.repeat(1.0 / (self.m * self.sizes), self.sizes)
        index = self.records.distinct[2][self.order]
        return np.bincount(index, weights=per_record, minlength=len(self.records.counts)).astype(np.float64)

    def owner_weights(self, kind: str) -> Array:
        """What each owner weighs in the aggregate, (m,), summing to 1."""
        return self.sizes / self.n if kind == "size" else np.full(self.m, 1.0 / self.m)
