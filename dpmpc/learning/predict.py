"""Predictions of a trained model for the records of a CSV file. The model is public; the records stay on this
machine."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dpmpc.data import Preprocessing, read_table
from dpmpc.data.preprocess import Labels
from dpmpc.learning.erm import accuracy
from dpmpc.learning.model import read_model

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Predictions:
    """What a model says of n records.

    `columns`: name -> n values: the prediction (class, or value in the target's own units), and for classes the
    probability of the positive one. `score`: (name, value) against the target column, if the file has it.
    """

    columns: dict[str, list[object]]
    score: tuple[str, float] | None


def predict(run: Path, csv: Path) -> Predictions:
    """The predictions of the model in the run directory `run` for the records in `csv`, which needs the model's feature
    columns.

    Errors: no model, no such file, a missing column, values that are no numbers where numbers are due.
    """
    model = read_model(run)
    preprocessing = Preprocessing.from_json(model.preprocessing)
    table = read_table(csv)
    X = preprocessing.transform(table)
    scores = X @ model.theta
    target = preprocessing.target
    known = target.name in table.names
    if isinstance(target, Labels):
        chance = 1.0 / (1.0 + np.exp(-scores))
        names = [target.positive_name if score > 0 else target.negative_name for score in scores]
        columns: dict[str, list[object]] = {
            target.name: list(names),
            f"probability_{target.positive_name}": [float(p) for p in chance],
        }
        score = ("accuracy", accuracy(model.theta, X, preprocessing.labels(table))) if known else None
    else:
        values = target.original(scores)
        columns = {target.name: [float(value) for value in values]}
        score = ("rmse", _rmse(values, target.original(preprocessing.labels(table)))) if known else None
    return Predictions(columns, score)


def _rmse(predicted: Floats, true: Floats) -> float:
    return float(np.sqrt(np.mean((predicted - true) ** 2)))
