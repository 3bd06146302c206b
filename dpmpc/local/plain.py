"""Utility on plain records, for local runs and study; outside any guarantee."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from dpmpc.errors import UsageError
from dpmpc.intake.table import value_sql
from dpmpc.learning.erm_blocks import objective, off, right, scores, solve
from dpmpc.learning.method import Floats, Learning
from dpmpc.learning.task import TASKS
from dpmpc.local.history import figure_name, score_name
from dpmpc.local.named_records import load_records, source_named
from dpmpc.local.surveying import owners_of_records
from dpmpc.planning.request import Request
from dpmpc.records import Dataset
from dpmpc.records.blocks import Records
from dpmpc.records.loading import OpenTable, opened
from dpmpc.records.memory import parse_memory
from dpmpc.records.schema import Labels, Range
from dpmpc.statistics.figures import Figures, plain, plain_one


class Evaluator:
    """The objective and the test score of a model, and those of the non-private optimum. `truth`: (n,) what figures of
    the test rows are held against, if not against the targets that a run has of them. A test record whose target does
    not fit is in no score and in no figure."""

    def __init__(self, learning: Learning, dataset: Dataset, truth: Floats | None = None) -> None:
        self.loss, self.lam, self.data = learning.loss, learning.lam, dataset
        self.score_name = score_name(learning)
        self.weights = learning.weights
        self.figure_name = figure_name(learning)
        self._task, self._there = TASKS[learning.task], dataset.fits(dataset.test)
        self._known, self._truth = self._of(dataset.test.y), self._of(dataset.test.y if truth is None else truth)
        self.optimum = solve(self.loss, dataset.train, self.lam, 1e-9, learning.classes).theta
        self.best = self.objective(self.optimum)

    def objective(self, theta: Floats) -> float:
        return objective(self.loss, theta, self.data.train, self.lam)

    def score(self, theta: Floats) -> float | None:
        """Accuracy or mean squared error on the test rows; None if there are none."""
        if not len(self._known):
            return None
        said = self._of(scores(theta, self.data.test))
        return right(said, self._known) if self._task.score == "accuracy" else off(self._task.link(said), self._known)

    def figure(self, theta: Floats) -> float | None:
        """`figure_name` on the test rows; None if there are none, or only one class of them."""
        if not len(self._truth):
            return None
        target, said = self.data.schema.target, self._of(scores(theta, self.data.test))
        return plain_one(self.figure_name, target, self._task.link(said), self._truth, self.weights)

    def figures(self, theta: Floats) -> Figures | None:
        """What a model is worth on the test rows; None if there are none."""
        if not len(self._truth):
            return None
        said = self._of(scores(theta, self.data.test))
        return plain(self.data.schema.target, self._task.link(said), self._truth, self.weights)

    def _of(self, values: Floats) -> Floats:
        """Those of the test rows that have a target."""
        return values if self._there is None else values[self._there]


def unclipped(request: Request, dataset: Dataset, folder: Path | None = None) -> Floats | None:
    """(n,) the quantities of the test rows, scaled as the run's and not clipped: what lies beyond the range is missed
    by as much as it is. Secret. None for classes, for a data set by name, and where a source gives other rows than at
    its first reading."""
    target, known = dataset.schema.target, dataset.test.y
    if not isinstance(target, Range) or request.source is None or dataset.schema.missing == "drop" or not len(known):
        return None
    memory = None if request.memory is None else parse_memory(request.memory)
    source, kept = source_named(request), request.kept
    names = (*dataset.schema.names, request.owners_column)
    with opened(source, memory=memory, folder=folder, spelling=request.spelling, person=kept, names=names) as opening:
        table, _ = opening
        test = owners_of_records(request, table)[0][1]
        values = np.concatenate([each for (each,) in table.blocks([value_sql(table, target.name)])])[test]
    beyond = np.isfinite(values) & ((values < target.low) | (values > target.high))  # what is no number is infinite
    found: Floats = np.where(beyond, target.scaled(values), known)
    return found if np.array_equal(np.clip(found, -1, 1)[beyond], known[beyond]) else None


def ordinary(request: Request, dataset: Dataset, folder: Path | None = None) -> dict[str, Any] | None:
    """What it is, and what it reaches: an ordinary pipeline without privacy on the same split, scikit-learn with its
    own scaling, lambda by cross-validation, on the columns as the records have them; `all_columns` says where it was on
    the run's own features. Secret. None without held-out records, or with one class in training."""
    raw = as_they_are(request, dataset, folder)
    figures = _fitted(dataset if raw is None else raw, request.seed)
    if figures is None:
        return None
    every = raw is not None or request.source is None  # a data set by name has no other columns
    of = "" if raw is None and every else "all columns as the records have them" if every else "the run's own features"
    what = f"scikit-learn with its own scaling{of and f' on {of}'}, lambda by cross-validation"
    return {"what": what, "figures": figures.to_json(), "all_columns": every}


def as_they_are(request: Request, dataset: Dataset, folder: Path | None = None) -> Dataset | None:
    """The same records by the same split, each number in its whole range and each text that is a category as a feature
    of its own, whatever the run's schema had of them. Secret. None for a data set by name, and where the records alone
    do not tell the same target."""
    target = dataset.schema.target
    if request.source is None or dataset.schema.missing == "drop":
        return None
    positive = target.positive_name if isinstance(target, Labels) else None
    asked = replace(
        request, schema=None, bounds=None, preprocessing=None, target=target.name, positive=positive, basis="linear",
        drop=tuple(dict.fromkeys((*request.dropped, *request.without))),
    )  # fmt: skip
    try:
        memory = None if request.memory is None else parse_memory(request.memory)
        source, kept = source_named(request), request.kept
        with opened(source, memory=memory, folder=folder, spelling=request.spelling, person=kept) as (table, private):
            rows = owners_of_records(request, table)[0]
            found = load_records(asked, folder, records=OpenTable(table, private, rows))
    except UsageError:  # a RecordError too: a class that one record alone has, or no column that looks like a feature
        return None
    alike = type(found.schema.target) is type(target) and found.classes == dataset.classes
    same = (found.n, found.held_out) == (dataset.n, dataset.held_out)
    return found if alike and same else None


def _fitted(dataset: Dataset, seed: int) -> Figures | None:
    """The figures of the ordinary pipeline on a data set's held-out records."""
    from sklearn.linear_model import LogisticRegression, RidgeCV
    from sklearn.model_selection import GridSearchCV, StratifiedKFold
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    train, test, target = _told(dataset, dataset.train), _told(dataset, dataset.test), dataset.schema.target
    if not train.n or not test.n or len(np.unique(train.y)) < 2:
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
    return plain(target, np.asarray(scores_of), test.y)


def _told(dataset: Dataset, part: Records) -> Records:
    """Those records of a part that have a target."""
    there = dataset.fits(part)
    return part if there is None else Records(part.X[there], part.y[there])
