"""Models whose figures are asked for: of two classes, of several and of a number, learned without noise."""

from dataclasses import dataclass, replace

import numpy as np

from dpmpc.learning.erm_blocks import solve
from dpmpc.learning.losses import LOGISTIC, Loss, ridge
from dpmpc.learning.softmax import SOFTMAX
from dpmpc.records.blocks import in_memory
from dpmpc.records.schema import Classes, Labels, Numeric, Range, Schema, Target
from dpmpc.statistics.cells import RecordFields
from dpmpc.statistics.columns import Columns
from dpmpc.statistics.scores import MAPPED, ScoreModel

FEATURES = (("age", 17.0, 90.0), ("education-num", 1.0, 16.0), ("hours-per-week", 1.0, 99.0))
_LAMBDA = 1e-3


@dataclass(frozen=True)
class Judged:
    """A model by its name in questions, and the records as it takes them."""

    columns: Columns
    models: dict[str, ScoreModel]
    records: RecordFields


def judged(texts: dict[str, list[str]], kind: str) -> Judged:
    """A model of `kind` ("two", "several", "number") and all records: rows of features and targets."""
    number = {
        name: np.array([float(cell) if cell != "?" else np.nan for cell in texts[name]]) for name, _, _ in FEATURES
    }
    targets: dict[str, Target] = {
        "two": Labels("income", (">50K",), ("<=50K",)),
        "several": Classes("race", ("White", "Black", "rare")),
        "number": Range("hours-per-week", 1.0, 99.0),
    }
    target = targets[kind]
    features = tuple(Numeric(name, low, high) for name, low, high in FEATURES if name != target.name)
    schema = Schema(features, target, True, "fill", "public")
    X = np.empty((len(texts["income"]), len(schema.feature_names)))
    schema.rows([number[column.name] for column in schema.columns], X)
    loss: Loss
    if isinstance(target, Range):
        y, loss = target.values(number[target.name]), ridge(1.0)
        values = number[target.name]
    else:
        names = [target.negative_name, target.positive_name] if isinstance(target, Labels) else list(target.names)
        values = np.array([names.index(cell) if cell in names else -1 for cell in texts[target.name]])
        loss = LOGISTIC if isinstance(target, Labels) else SOFTMAX
        y = np.where(values > 0, 1.0, -1.0) if isinstance(target, Labels) else np.maximum(values, 0).astype(np.float64)
    theta = solve(loss, in_memory(X, y), _LAMBDA, 1e-6, schema.classes).theta
    model = replace(ScoreModel.of(schema, theta), mapped=True)
    columns = Columns.of_schema(schema)
    return Judged(columns, {"m": model}, RecordFields(len(X), {MAPPED: X, columns[target.name]: values}))
