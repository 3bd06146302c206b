"""Utility on plain records, for local runs and study; outside any guarantee."""

from collections.abc import Callable

from dpmpc.data import Dataset, Records
from dpmpc.learning.erm_blocks import accuracy, mse, objective, solve
from dpmpc.learning.method import Floats, Learning


class Evaluator:
    """The objective and the test score of a model, and those of the non-private optimum."""

    def __init__(self, learning: Learning, dataset: Dataset) -> None:
        self.loss, self.lam, self.data = learning.loss, learning.lam, dataset
        self.score_name = score_name(learning)
        self._score: Callable[[Floats, Records], float] = accuracy if self.score_name == "accuracy" else mse
        self.optimum = solve(self.loss, dataset.train, self.lam, 1e-9, learning.classes).theta
        self.best = self.objective(self.optimum)

    def objective(self, theta: Floats) -> float:
        return objective(self.loss, theta, self.data.train, self.lam)

    def score(self, theta: Floats) -> float | None:
        """Accuracy or mean squared error on the test rows; None if there are none."""
        return self._score(theta, self.data.test) if self.data.test.n else None


def score_name(learning: Learning) -> str:
    """What a test score is: accuracy, or mse of the target scaled to [-1, 1]."""
    return "mse" if learning.task == "ridge" else "accuracy"
