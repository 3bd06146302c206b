"""An additive model as what it is: one curve a column, whose values add up to the score.

Rows of an additive schema are all divided by one public number, so a score theta . x is a sum of one function a column
and a constant. `Additive` holds these functions by themselves: it goes to JSON and back, says what `dpmpc predict`
says, and answers as the models of the package `interpret` do (`explain_global().data(k)`). All of it is computed of the
model, which is public.

A number's function is linear between its `points` (in log v with scale "log", in log(1 + v) with "log1p") and constant
beyond them; a value that no table has adds 0.
"""

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self

import msgspec
import numpy as np
from numpy.typing import NDArray

from dpmpc.errors import UsageError
from dpmpc.folders import write_file
from dpmpc.intake.hashing import bucket
from dpmpc.intake.spelling import comparing
from dpmpc.intake.written import checked
from dpmpc.lazy import dataclass
from dpmpc.learning.class_weights import corrected
from dpmpc.learning.softmax import predicted
from dpmpc.outcome import Bars, Line, Number, Profile
from dpmpc.records.schema import Categorical, Classes, Column, Date, Labels, Numeric, Range, Schema, Surveyed, Target
from dpmpc.show.objects import Sheet, Shown
from dpmpc.show.tables import ShownTable

Floats = NDArray[np.float64]
Score = float | list[float]  # one, or one a class
FORMAT = "dpmpc.additive/1"
_MONTHS = tuple(map(str, range(1, 13)))
_DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")


class Curve(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """What a column, or a part of a date, adds to the score. `points` and `scores`: of numbers (dates: of days since
    1970, or of the time of day); `table`: of categories (in Unicode's form C), or of the numbers of hashed `buckets`;
    `missing`: of no value; `words`: what most records of a bucket hold, where it is known.
    """

    column: str
    part: str = ""
    scale: str = "linear"
    points: tuple[float, ...] = ()
    scores: tuple[Score, ...] = ()
    table: dict[str, Score] = {}
    buckets: int = 0
    missing: Score = 0.0
    words: dict[str, str] = {}

    def shown(self, label: str) -> str:
        """What a category or a bucket is called."""
        if not self.buckets:
            return label
        return f"{self.words[label]} [#{label}]" if label in self.words else f"bucket {label}"

    @property
    def name(self) -> str:
        return f"{self.column} {self.part}".rstrip()

    def of_numbers(self, values: Floats) -> Floats:
        """(n, K) what these numbers add; NaN is missing."""
        at, xs = (_scaled(self.scale, np.asarray(v, dtype=np.float64)) for v in (values, self.points))
        known = np.atleast_2d(np.asarray(self.scores, dtype=np.float64).T).T
        inner = np.stack([np.interp(at, xs, known[:, k]) for k in range(known.shape[1])], axis=1)
        return np.where(np.isnan(values)[:, None], _row(self.missing), inner)

    def of_names(self, names: Sequence[str | None], width: int) -> Floats:
        """(n, K) what these categories or numbers of buckets add; None is missing."""
        other = np.zeros(width)
        key = comparing(self.table)
        rows = {key(name): _row(score) for name, score in self.table.items()}
        return np.stack([_row(self.missing) + other if n is None else rows.get(key(n), other) for n in names])


def _row(score: Score) -> Floats:
    return np.atleast_1d(np.asarray(score, dtype=np.float64))


def _scaled(scale: str, values: Floats) -> Floats:
    if scale == "linear":
        return values
    with np.errstate(invalid="ignore", divide="ignore"):
        low = np.maximum(values, 0.0)
        return np.where(np.isnan(values), np.nan, np.log(low) if scale == "log" else np.log1p(low))


@dataclass(frozen=True)
class Additive(Shown):
    """The model: the sum of `curves` and `intercept` is the score, of two classes the log odds of the second (but for
    `weights` of classes), of a quantity its place in the target's range, of more classes one a class."""

    target: Target
    intercept: Score
    curves: tuple[Curve, ...]
    weights: tuple[float, ...] = ()

    @classmethod
    def of(cls, schema: Schema, theta: Floats, weights: Sequence[float] = ()) -> Self:
        """The model of these coefficients. Errors: UsageError for rows that are not all divided alike."""
        if schema.basis != "additive":
            raise UsageError(
                "curves are those of an additive model; the rows of this one are scaled one by one; train with "
                "<<basis=additive>>",
                code="together",
            )
        table = np.asarray(theta, dtype=np.float64).reshape(len(schema.feature_names), -1) / schema.norm
        curves, at = list[Curve](), 0
        for column in schema.columns:
            width = len(column.features)
            curves += _curves(column, table[at : at + width])
            at += width
        constant = _score(table[-1]) if schema.intercept else _score(np.zeros(table.shape[1]))
        return cls(schema.target, constant, tuple(curves), tuple(weights))

    @property
    def classes(self) -> tuple[str, ...]:
        """The names of its scores, where it has several."""
        return tuple(getattr(self.target, "names", ()))

    @property
    def width(self) -> int:
        """How many scores a record has."""
        return len(_row(self.intercept))

    def decision_function(self, columns: Mapping[str, Any]) -> Floats:
        """(n,) the scores of these columns, arrays or lists by name; (n, classes) with more than two. None, NaN and
        empty texts are missing. Errors: UsageError for a column that is not there."""
        total: Floats | None = None
        for curve in self.curves:
            added = self.contribution(curve, columns)
            total = added if total is None else total + added
        assert total is not None
        total = total + _row(self.intercept)
        return total[:, 0] if self.width == 1 else total

    def contribution(self, curve: Curve, columns: Mapping[str, Any]) -> Floats:
        """(n, K) what one of its curves adds to the scores of these columns."""
        if curve.column not in columns:
            raise UsageError(f"a model needs its columns; '{curve.column}' is not in the data; add it", code="column")
        values = [_cleaned(v) for v in np.asarray(columns[curve.column], dtype=object)]
        if curve.part:
            values = [None if v is None else _of_date(float(v), curve.part) for v in values]
        if curve.part in ("month", "weekday") or (not curve.points and not curve.buckets):
            names = [None if v is None else str(v) for v in values]
            return curve.of_names(names, self.width)
        numbers = np.array([_number(v) for v in values])
        found = curve.of_numbers(numbers) if curve.points else np.zeros((len(values), self.width))
        texts = [v is not None and math.isnan(x) for v, x in zip(values, numbers, strict=True)]
        if curve.buckets and any(texts):  # where numbers alone are due, a text is missing
            place = [
                str(bucket(curve.column, str(v), curve.buckets)) if t else ""
                for v, t in zip(values, texts, strict=True)
            ]
            found[texts] = curve.of_names(place, self.width)[texts]
        gone = np.array([v is None for v in values])
        found[gone] = _row(curve.missing)
        return found

    def predict(self, columns: Mapping[str, Any]) -> NDArray[Any]:
        """(n,) the classes' names, or the values in the target's units."""
        scores = self.decision_function(columns)
        if isinstance(self.target, Range):
            return self.target.original(scores)
        if isinstance(self.target, Classes):
            return np.array(self.target.names, dtype=object)[predicted(scores)]
        names = np.array([self.target.negative_name, self.target.positive_name], dtype=object)
        return np.asarray(names[(scores > 0).astype(np.int64)])

    def predict_proba(self, columns: Mapping[str, Any]) -> Floats:
        """(n, classes) the probabilities. Errors: UsageError for a quantity."""
        if isinstance(self.target, Range):
            raise UsageError("probabilities are those of classes; this model predicts a quantity; use predict")
        found = corrected(self.target, self.decision_function(columns), self.weights)
        return np.stack([1 - found, found], axis=1) if isinstance(self.target, Labels) else found

    @property
    def span(self) -> tuple[float, float]:
        """The least and the largest that any curve adds to a score."""
        every = [_column((*c.scores, *c.table.values(), c.missing), k) for _, c, k, _ in by_reach(self)]
        return float(min(v.min() for v in every)), float(max(v.max() for v in every))

    @property
    def profiles(self) -> tuple[Profile | Bars, ...]:
        """The curves as pictures, those that move the score most first: a line over numbers, a bar a category, the
        longest first."""
        span, found = self.span, list[Profile | Bars]()
        for _, curve, k, name in by_reach(self):
            if curve.points:
                found.append(Profile(name, _points(curve, k), span))
            if curve.table:
                title = f"{name}, texts" if curve.points else name
                values = dict(zip(curve.table, _column(tuple(curve.table.values()), k).tolist(), strict=True))
                named = [(curve.shown(label), value) for label, value in values.items()]
                lines = [
                    Line((label,), "score", Number(value, None, None, None))
                    for label, value in sorted(named, key=lambda pair: -pair[1])
                ]
                found.append(Bars(title, tuple(lines)))
        return tuple(found)

    def sheet(self) -> Sheet:
        """Its curves, those that move the score most first."""
        rows = tuple((name, f"{reach:.4g}") for reach, _, _, name in by_reach(self))
        table = ShownTable(("column", "moves the score by"), rows)
        title = f"Additive model of '{self.target.name}'"
        return Sheet(title, (("intercept", str(self.intercept)),), (table,), lambda: self.profiles)

    def explain_global(self) -> "Explanation":
        """The curves as the package `interpret` hands them out."""
        return Explanation(self)

    def to_json(self) -> dict[str, Any]:
        """JSON values, from which the score can be worked out without this library: see the module."""
        value: dict[str, Any] = {
            "format": FORMAT,
            "target": self.target,
            "intercept": self.intercept,
            "curves": self.curves,
        }
        if self.weights:
            value["weights"] = self.weights
        found = msgspec.json.decode(msgspec.json.encode(value))
        assert isinstance(found, dict)
        return found

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Self:
        """The model that `to_json` wrote. Errors: UsageError for anything else."""
        if value.get("format") != FORMAT:
            raise UsageError(
                f"an additive model has the format {FORMAT}; this has {value.get('format')}; write it again",
                code="file",
            )
        rest = {name: part for name, part in value.items() if name != "format"}
        made = checked(rest, _Written, "an additive model", "it")
        return cls(made.target, made.intercept, made.curves, made.weights)

    def write(self, path: Path | str) -> Path:
        """Writes the JSON."""
        path = Path(path)
        write_file(path, json.dumps(self.to_json(), indent=1) + "\n")
        return path


class _Written(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    target: Target
    intercept: Score
    curves: tuple[Curve, ...]
    weights: tuple[float, ...] = ()


@dataclass(frozen=True)
class Explanation:
    """The curves of a model under the names that `interpret`'s explanations have."""

    model: Additive

    @property
    def feature_names(self) -> list[str]:
        return [curve.name for curve in self.model.curves]

    def data(self, key: int | None = None) -> dict[str, Any]:
        """Of curve `key`: its points or categories, and what they add. None: every curve and half its range."""
        curves = self.model.curves
        if key is None:
            spans = [float(np.ptp(_all_scores(curve))) / 2 if _all_scores(curve).size else 0.0 for curve in curves]
            return {"type": "univariate", "names": self.feature_names, "scores": spans}
        curve = curves[key]
        names: list[Any] = [*curve.points, *curve.table]
        return {"type": "univariate", "names": names, "scores": _all_scores(curve)}


def by_reach(model: Additive) -> list[tuple[float, Curve, int, str]]:
    """(how far it moves the score, the curve, the number of the score, a name) of every curve, the farthest first; of a
    model with several scores one for each column and class."""
    names = [""] if model.width == 1 else [f", {name}" for name in getattr(model.target, "names", ())]
    found = []
    for curve in model.curves:
        for k, suffix in enumerate(names):
            parts = [_column(curve.scores, k), _column(tuple(curve.table.values()), k), _column((curve.missing,), k)]
            found.append((float(np.ptp(np.concatenate(parts))), curve, k, f"{curve.name}{suffix}"))
    return sorted(found, key=lambda each: -each[0])


def _column(scores: tuple[Score, ...], k: int) -> Floats:
    return np.array([np.atleast_1d(score)[k] for score in scores], dtype=np.float64)


def _points(curve: Curve, k: int) -> tuple[tuple[float, float], ...]:
    xs, ys = np.asarray(curve.points), _column(curve.scores, k)
    if curve.scale != "linear":  # straight in the logarithm: drawn through points between
        shift = 0.0 if curve.scale == "log" else 1.0
        at = np.linspace(math.log(xs[0] + shift), math.log(xs[-1] + shift), 60)
        ys = np.interp(at, np.log(xs + shift), ys)
        xs = np.exp(at) - shift
    return tuple(zip(xs.tolist(), ys.tolist(), strict=True))


def _all_scores(curve: Curve) -> Floats:
    found = np.array([_row(score) for score in (*curve.scores, *curve.table.values())], dtype=np.float64)
    return found[:, 0] if found.ndim == 2 and found.shape[1] == 1 else found


def _score(row: Floats) -> Score:
    return float(row[0]) if len(row) == 1 else [float(x) for x in row]


def _curves(column: Column, theta: Floats) -> list[Curve]:
    """The curves of a column whose features have these coefficients, (width, K)."""
    if isinstance(column, Categorical):
        table = {name: _score(row) for name, row in zip(column.values, theta, strict=True)}
        return [Curve(column.name, table=table, missing=_score(0 * theta[0]))]
    if isinstance(column, Date):
        return _date_curves(column, theta)
    missing = _added(column, theta, np.array([np.nan]))[0]
    if isinstance(column, Numeric):
        points = np.unique([column.low, column.high, *column.knots])
        scale = "linear" if column.scale != "log" else "log" if column.low > 0 else "log1p"
        scores = tuple(_added(column, theta, points))
        return [Curve(column.name, "", scale, tuple(points.tolist()), scores, missing=missing)]
    points = np.unique([column.low, column.high, *column.knots]) if column.number else np.array([])
    first = len(theta) - len(column.kept) - column.missing
    table = {str(k): _score(theta[first + i]) for i, k in enumerate(column.kept)}
    scores = tuple(_added(column, theta, points)) if column.number else ()
    words = {str(k): word for k, word in column.names}
    return [Curve(column.name, "", "linear", tuple(points.tolist()), scores, table, column.buckets, missing, words)]


def _added(column: Numeric | Surveyed, theta: Floats, values: Floats) -> list[Score]:
    """What these numbers add, by the features that the column has of them."""
    X = np.empty((len(values), len(theta)))
    if isinstance(column, Surveyed):
        column.write(np.column_stack([values, np.full(len(values), -1.0)]), X)
    else:
        column.write(values, X)
    return [_score(row) for row in X @ theta]


def _date_curves(column: Date, theta: Floats) -> list[Curve]:
    found, at = list[Curve](), 0
    for part in column.parts:
        if part in ("month", "weekday"):
            names = _MONTHS if part == "month" else _DAYS
            rows = theta[at : at + len(names)]
            table = {name: _score(row) for name, row in zip(names, rows, strict=True)}
            found.append(Curve(column.name, part, table=table, missing=_score(0 * theta[0])))
            at += len(names)
        else:
            row = theta[at]
            ends = (column.low, column.high) if part == "days" else (0.0, 1.0)
            found.append(
                Curve(column.name, part, "linear", ends, (_score(0 * row), _score(row)), missing=_score(row / 2))
            )
            at += 1
    return found


def _cleaned(value: Any) -> Any:
    """A value, or None for what is missing."""
    if value is None or value != value:
        return None
    text = str(value).strip()
    return None if text in ("", "?") or text.lower() in ("na", "n/a", "null") else value


def _number(value: Any) -> float:
    try:
        found = float(value)
    except (TypeError, ValueError):
        return math.nan
    return found if math.isfinite(found) else math.nan


def _of_date(day: float, part: str) -> Any:
    """The part of a day since 1970-01-01 with its time of day."""
    if part == "days":
        return day
    if part == "hour":
        return day - math.floor(day)
    whole = np.datetime64(math.floor(day), "D")
    if part == "month":
        return _MONTHS[int(whole.astype("datetime64[M]").astype(np.int64) % 12)]
    return _DAYS[(math.floor(day) + 3) % 7]
