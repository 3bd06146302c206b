"""What a public model says of records, as axes and numbers of blocks.

The cells of a score follow from the public model and their number: they are narrow about where scores would lie if
columns were independent, with the spread that a survey found (or a usual one), and widen away from there as sinh does,
so a guess that is off by a few times costs little. 0, where the predicted class changes, is always an edge.
"""

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dpmpc.errors import UsageError
from dpmpc.lazy import dataclass
from dpmpc.learning.method import check_near
from dpmpc.learning.task import TASKS
from dpmpc.outcome import spelled
from dpmpc.records.ordered_pool import in_order
from dpmpc.records.schema import Categorical, Date, Numeric, Schema, Surveyed
from dpmpc.records.schema import Column as MappedColumn
from dpmpc.statistics.cells import Field, Ints, RecordFields, Values
from dpmpc.statistics.columns import MISSING, Category, Column, Columns, Quantity

if TYPE_CHECKING:
    from dpmpc.intake.table import Table

Floats = NDArray[np.float64]
_ROWS = 1 << 13
_BEND = 0.15  # the share of cells, on either side of the centre, that are about equally wide
_USUAL = 0.2  # the deviation of a number on [0, 1] of which nothing is known


@dataclass(frozen=True)
class Feature:
    """A column as a model's schema maps it."""

    column: MappedColumn

    @property
    def name(self) -> str:
        return self.column.name

    def sql(self, table: "Table") -> list[str]:
        """The expressions that are read for it."""
        from dpmpc.records.mapping import column_sql

        return column_sql(table, self.column)

    def read(self, parts: list[Values]) -> Values:
        """What the schema's column writes features of; a text among numbers is missing."""
        if isinstance(self.column, Surveyed):
            from dpmpc.records.mapping import beside

            return beside(parts)
        return np.where(np.isfinite(parts[0]), parts[0], np.nan) if isinstance(self.column, Numeric) else parts[0]


@dataclass(frozen=True)
class Mapped:
    """The rows of features that records were mapped to already."""

    name: str = "features"

    def sql(self, table: "Table") -> list[str]:
        raise NotImplementedError

    def read(self, parts: list[Values]) -> Values:
        raise NotImplementedError


MAPPED = Mapped()


@dataclass(frozen=True)
class ScoreModel:
    """A linear model, public: the schema that maps records, theta by features, then classes, and the weights that
    records of each class had, () for none: the positive class's odds are then too large by their ratio. `mapped`: its
    records come as rows of features (`MAPPED`)."""

    schema: Schema
    theta: tuple[float, ...]
    weights: tuple[float, ...] = ()
    mapped: bool = False

    def __post_init__(self) -> None:
        d = len(self.schema.feature_names)
        outputs = TASKS[self.schema.task].scores(self.schema.classes)
        if len(self.theta) != d * outputs or not np.isfinite(self.theta).all():
            raise UsageError(
                f"a model has {d * outputs} finite numbers; got {len(self.theta)}; give the right schema", code="shape"
            )
        check_near(np.array(self.theta))

    @staticmethod
    def of(schema: Schema, theta: Any, weights: Sequence[float] | None = None) -> "ScoreModel":
        """The model of an array."""
        return ScoreModel(schema, tuple(float(value) for value in np.ravel(theta)), tuple(weights or ()))

    @property
    def shift(self) -> float:
        """How far the logit of two classes is too high, for weights of classes."""
        return math.log(self.weights[1] / self.weights[0]) if len(self.weights) == 2 else 0.0

    @property
    def fields(self) -> tuple[Field, ...]:
        return (MAPPED,) if self.mapped else tuple(Feature(column) for column in self.schema.columns)

    @property
    def target(self) -> Column:
        """The target as statistics see it."""
        name = self.schema.target.name
        return Columns.of_schema(self.schema)[name]

    def scores(self, records: RecordFields) -> Floats:
        """(n,) what the scores x . theta say (`Task.link`), or (n, K)."""
        d = len(self.schema.feature_names)
        theta = np.array(self.theta).reshape(d, -1)
        found = np.empty((records.n, theta.shape[1]))

        def one(begin: int) -> None:
            part = records.part(begin, begin + _ROWS)
            X = np.empty((d, part.n)).T  # a column lies together
            if self.mapped:
                X[:] = part[MAPPED]
            else:
                self.schema.rows([part[field] for field in self.fields], X, ball=False)
            found[begin : begin + part.n] = _by_columns(X, theta)

        for _ in in_order(one, range(0, records.n, _ROWS), 2):
            pass
        return TASKS[self.schema.task].link(found[:, 0] if theta.shape[1] == 1 else found)

    def logits(self, records: RecordFields, output: int | None) -> Floats:
        """(n,) the logit of the positive class, or of one of several."""
        scores = self.scores(records)
        if output is None:
            return scores
        others = np.delete(scores, output, axis=1)
        top = others.max(axis=1)
        return np.asarray(scores[:, output] - top - np.log(np.exp(others - top[:, None]).sum(axis=1)))

    def expected(self, output: int | None) -> tuple[float, float]:
        """(centre, deviation) of that logit under independent columns, of which a survey's means and deviations or
        usual ones are known."""
        theta = np.array(self.theta).reshape(len(self.schema.feature_names), -1)
        if output is not None:
            theta = theta[:, output : output + 1] - np.delete(theta, output, axis=1).mean(axis=1, keepdims=True)
        mean, variance, norm, at = [], [], [], 0
        for column in self.schema.columns:
            first, second = _law(column)
            part = theta[at : at + len(first), 0]
            mean.append(float(part @ first))
            spread = np.diag(second - first**2)
            if isinstance(column, Categorical):
                spread = np.diag(first) - np.outer(first, first)
            variance.append(float(part @ spread @ part))
            norm.append(float(second.sum()))
            at += len(first)
        if self.schema.intercept:
            mean.append(float(theta[-1, 0]))
            norm.append(1.0)
        length = math.sqrt(max(1.0, math.fsum(norm)))
        deviation = math.sqrt(math.fsum(variance)) / length
        return math.fsum(mean) / length, max(deviation, 1e-3 * float(np.linalg.norm(theta)), 1e-6)

    def edges(self, cells: int, output: int | None = None) -> tuple[float, ...]:
        """The edges of about `cells` cells of that logit, 0 among them."""
        centre, deviation = self.expected(output)
        furthest = float(np.linalg.norm(self.theta)) * (1 if output is None else 2)  # rows lie in the unit ball
        if furthest == 0:  # all scores are 0
            return (0.0,)
        reach = math.asinh((furthest + abs(centre)) / deviation)  # no edge lies where no score does
        bend = max(_BEND * cells, cells / 2 / reach)
        k = np.arange(cells - 1) - (cells - 2) / 2
        zero = bend * math.asinh(-centre / deviation)  # where 0 lies among them
        nearest = int(np.argmin(np.abs(k - zero)))
        if k[0] < zero < k[-1]:
            k += zero - k[nearest]  # by less than a cell, so neighbouring cells stay about equally wide
            k = np.delete(k, nearest)
        inside = [centre + deviation * math.sinh(step / bend) for step in k]
        kept = {float(f"{e:.12g}") for e in inside if abs(e) < furthest and e != 0}
        return tuple(sorted([*kept, 0.0]))


def _by_columns(X: Floats, theta: Floats) -> Floats:
    """(n, K) X theta, added up column by column. What a matrix product makes of a row depends on its place among others
    in the last bit, so a record that comes or goes could move others across an edge."""
    found = np.zeros((theta.shape[1], len(X)))
    for column, weights in zip(X.T, theta, strict=True):
        found += weights[:, None] * column
    return found.T


def _law(column: MappedColumn) -> tuple[Floats, Floats]:
    """Means and mean squares of a column's features, as far as they are public."""
    if isinstance(column, Numeric):
        first, deviation = (0.5, _USUAL) if column.scale == "unit" else (0.0, 2 * _USUAL)
        return np.array([first]), np.array([first**2 + deviation**2])
    if isinstance(column, Categorical):
        each = np.full(len(column.features), 1 / len(column.features))
        return each, each
    if isinstance(column, Date):
        usual = {"month": (1 / 12, 1 / 12, 12), "weekday": (1 / 7, 1 / 7, 7)}
        parts = [usual.get(part, (0.5, 0.25 + _USUAL**2, 1)) for part in column.parts]
        means, squares = (np.concatenate([np.full(many[2], many[k]) for many in parts]) for k in (0, 1))
        return means, squares
    chance = np.full(len(column.kept), 1 / (len(column.kept) + 1))
    number = np.zeros(int(column.number))
    gone = np.full(int(column.missing), 0.05)
    return np.concatenate([number, chance, gone]), np.concatenate([number + 0.25, chance, gone])


@dataclass(frozen=True)
class Scores:
    """Cells of a model's logit: (edge, next edge], so that a score of 0 is not predicted positive."""

    name: str
    model: ScoreModel
    edges: tuple[float, ...]
    output: int | None = None

    @property
    def labels(self) -> tuple[str, ...]:
        e = [spelled(edge) for edge in self.edges]
        return (f"<= {e[0]}", *(f"({a}, {b}]" for a, b in pairwise(e)), f"> {e[-1]}")

    @property
    def fields(self) -> tuple[Field, ...]:
        return self.model.fields

    def place(self, records: RecordFields) -> Ints:
        """(n,) cells."""
        logits = self.model.logits(records, self.output)
        return np.searchsorted(np.array(self.edges), logits, side="left").astype(np.int64)

    @property
    def above(self) -> NDArray[np.bool_]:
        """(cells,) whether the positive class is said there."""
        return np.append(-np.inf, self.edges) >= 0

    @property
    def probabilities(self) -> tuple[Floats, Floats]:
        """(cells,) the mean probability and mean square of it in each cell, if logits are uniform there. The outer
        cells are as wide as their neighbours."""
        e = np.array(self.edges)
        left, right = (e[1] - e[0], e[-1] - e[-2]) if len(e) > 1 else (1.0, 1.0)
        ends = np.concatenate([[e[0] - left], e, [e[-1] + right]]) - self.model.shift
        inside = np.linspace(0, 1, 17)
        p = 1 / (1 + np.exp(-(ends[:-1, None] + np.diff(ends)[:, None] * inside)))
        return p.mean(axis=1), (p * p).mean(axis=1)


@dataclass(frozen=True)
class Predicted:
    """The class that a model of several classes predicts."""

    name: str
    model: ScoreModel
    labels: tuple[str, ...]

    @property
    def fields(self) -> tuple[Field, ...]:
        return self.model.fields

    def place(self, records: RecordFields) -> Ints:
        """(n,) cells."""
        return np.asarray(np.argmax(self.model.scores(records), axis=1), dtype=np.int64)


@dataclass(frozen=True)
class IsClass:
    """Whether the target is one class: no, yes or missing."""

    column: Category
    place_of: int

    @property
    def name(self) -> str:
        return self.column.name

    @property
    def labels(self) -> tuple[str, ...]:
        return "no", "yes", MISSING

    @property
    def fields(self) -> tuple[Field, ...]:
        return (self.column,)

    def place(self, records: RecordFields) -> Ints:
        """(n,) cells."""
        codes = records[self.column]
        return np.where(codes < 0, 2, (codes == self.place_of).astype(np.int64))


@dataclass(frozen=True)
class Target:
    """The target of a regression, clipped to its range and mapped on [-1, 1]; with a model, half of what the clipped
    prediction lacks of it."""

    column: Quantity
    model: ScoreModel | None = None

    @property
    def name(self) -> str:
        return self.column.name

    @property
    def fields(self) -> tuple[Field, ...]:
        return (self.column, *(() if self.model is None else self.model.fields))

    def of(self, records: RecordFields) -> Values:
        """(n,) numbers, NaN where the target is missing."""
        low, high = self.column.low, self.column.high
        y = 2 * ((np.clip(records[self.column], low, high) - low) / (high - low)) - 1
        if self.model is None:
            return np.asarray(np.clip(y, -1.0, 1.0))
        return np.asarray(np.clip((y - np.clip(self.model.scores(records), -1.0, 1.0)) / 2, -1.0, 1.0))


def task_of(model: ScoreModel) -> str:
    """What kind of figures a model has: "two" classes, "several" or "number"."""
    return model.schema.kind
