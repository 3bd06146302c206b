"""Utility on plain records, for local runs and study; outside any guarantee."""

import numpy as np

from dpmpc.data import Dataset
from dpmpc.data.schema import Range
from dpmpc.learning.erm_blocks import accuracy, mse, objective, scores, solve
from dpmpc.learning.method import Floats, Learning
from dpmpc.learning.task import TASKS
from dpmpc.statistics.figures import Figures, plain


class Evaluator:
    """The objective and the test score of a model, and those of the non-private optimum."""

    def __init__(self, learning: Learning, dataset: Dataset) -> None:
        self.loss, self.lam, self.data = learning.loss, learning.lam, dataset
        self.score_name = score_name(learning)
        self.weights = learning.weights
        self.figure_name = figure_name(learning)
        self._task = TASKS[learning.task]
        self.optimum = solve(self.loss, dataset.train, self.lam, 1e-9, learning.classes).theta
        self.best = self.objective(self.optimum)

    def objective(self, theta: Floats) -> float:
        return objective(self.loss, theta, self.data.train, self.lam)

    def score(self, theta: Floats) -> float | None:
        """Accuracy or mean squared error on the test rows; None if there are none."""
        test = self.data.test
        if not test.n:
            return None
        return accuracy(theta, test) if self._task.score == "accuracy" else mse(theta, test, self._task.link)

    def figure(self, theta: Floats) -> float | None:
        """`figure_name` on the test rows; None if there are none, or only one class of them."""
        found = self.figures(theta)
        return None if found is None else found.numbers[self.figure_name].estimate

    def figures(self, theta: Floats) -> Figures | None:
        """What a model is worth on the test rows; None if there are none."""
        test = self.data.test
        if not test.n:
            return None
        return plain(self.data.schema.target, self._task.link(scores(theta, test)), test.y, self.weights)


def ordinary(dataset: Dataset, seed: int) -> tuple[str, Figures] | None:
    """What an ordinary pipeline without privacy reaches on the same features and the same split: scikit-learn, with its
    own scaling, lambda by cross-validation. Secret. None without held-out records, or with one class in training."""
    from sklearn.linear_model import LogisticRegression, RidgeCV
    from sklearn.model_selection import GridSearchCV, StratifiedKFold
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    train, test, target = dataset.train, dataset.test, dataset.schema.target
    if not test.n or len(np.unique(train.y)) < 2:
        return None
    if isinstance(target, Range):
        model = make_pipeline(StandardScaler(), RidgeCV(np.logspace(-3, 5, 17)))
        scores_of = model.fit(train.X, train.y).predict(test.X)
    else:
        if np.unique(train.y, return_counts=True)[1].min() < 5 or len(np.unique(train.y)) < dataset.classes:
            return None
        folds = StratifiedKFold(5, shuffle=True, random_state=seed)
        usual = make_pipeline(StandardScaler(), LogisticRegression(max_iter=2000))
        grid = {"logisticregression__C": np.logspace(-4, 3, 8)}
        model = GridSearchCV(usual, grid, cv=folds, scoring="neg_log_loss").fit(train.X, train.y)
        scores_of = model.decision_function(test.X)
    found = plain(target, np.asarray(scores_of), test.y)
    return None if found is None else ("scikit-learn with its own scaling, lambda by cross-validation", found)


def figure_name(learning: Learning) -> str:
    """The figure that is looked at while a model is learned, which says more than a score does."""
    return TASKS[learning.task].figure


def score_name(learning: Learning) -> str:
    """What a test score is: accuracy, or mse of the target scaled to [-1, 1]."""
    return TASKS[learning.task].score
