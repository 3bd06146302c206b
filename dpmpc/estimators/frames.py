"""From what scikit-learn's users have (arrays, data frames) to records in the unit ball, through a public schema."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from dpmpc.errors import sayable
from dpmpc.estimators.errors import EstimatorError, EstimatorRecordError
from dpmpc.estimators.spending import warn
from dpmpc.intake.fields import declared
from dpmpc.intake.objects import is_spread, plain_pandas
from dpmpc.intake.spelling import PLAIN, Spelling
from dpmpc.intake.table import Floats, Ints
from dpmpc.records.blocks import Records, arranged, in_memory
from dpmpc.records.derive import TableSettings, looked, schema_of_bounds, schema_of_records
from dpmpc.records.draft import rounded
from dpmpc.records.loading import opened
from dpmpc.records.mapping import Mapping as Mapped
from dpmpc.records.ownership import Partition
from dpmpc.records.schema import USUAL_GOALS, Classes, Column, Labels, Numeric, Range, Schema, Surveyed, Target

TARGET = "(target)"
_SEVERAL = 20  # records: of fewer all values of a column may be unknown for once
Frame = dict[str, Any]  # name -> column (n,)


def table_of(X: Any) -> Any:
    """X; in place of a DuckDB relation, a lazy Polars table or a frame of Dask or Ray, whose rows are not here yet, the
    table that it stands for; of a sparse matrix or array, the dense one."""
    if hasattr(X, "toarray") and type(X).__module__.partition(".")[0] == "scipy":
        return X.toarray()
    if type(X).__name__ == "DuckDBPyRelation":
        return X.to_arrow_table()
    if is_spread(X):
        return X.compute() if hasattr(X, "compute") else X.to_pandas()
    return X.collect() if type(X).__name__ == "LazyFrame" else X


def is_frame(X: Any) -> bool:
    """Whether X has named columns: a pandas, Polars or Arrow table."""
    return hasattr(X, "column_names") or (hasattr(X, "columns") and hasattr(X, "__getitem__"))


def frame_of(X: Any) -> Frame:
    """The columns of a table: numbers as floats, NaN where missing; all else as it is, None where missing. Errors: two
    columns of one name; a column with several values a record."""
    names = list(X.column_names if hasattr(X, "column_names") else X.columns)
    if (own := len({str(name) for name in names})) < len(names):
        raise EstimatorError(
            f"columns have names of their own; {len(names)} columns have {sayable(own)}; rename them", code="unique"
        )
    if type(X).__module__.split(".")[0] == "pandas":
        X = plain_pandas(X)
    return {str(name): column_of(X[name], str(name)) for name in names}


def frame_of_array(X: Floats, names: Sequence[str]) -> Frame:
    """The columns of an array (n, d) under these names."""
    return dict(zip(names, np.ascontiguousarray(X.T), strict=True))


def column_of(values: Any, name: str = TARGET) -> Any:
    """(n,) one column, or targets, by its declared type: numbers as floats, NaN where missing; truth values, dates;
    lengths of time in days; all else as texts, each by itself, None where missing. Errors: a record has several
    values."""
    column = declared(values)
    if column.ndim != 1:
        raise EstimatorError(
            f"a column has one value a record; '{sayable(name)}' has shape {column.shape}; mend it", code="shape"
        )
    if column.dtype.kind in "iuf":
        return column.astype(np.float64)
    if column.dtype.kind == "m":
        return column / np.timedelta64(1, "D")
    return column


def given_schema(schema: Any) -> Schema | None:
    """The schema that a user names by value, by file, or not at all."""
    if schema is None or isinstance(schema, Schema):
        return schema
    return Schema.read(Path(schema))


def make_schema(X: Frame, bounds: Any, target: Target, public: bool, one: bool, spelling: Spelling = PLAIN) -> Schema:
    """A schema for these columns, of bounds (`PrivateLogisticRegression`) or, without, read off the records. `public`:
    whether the target's constants are; `one`: whether a constant feature is added. Errors: bounds that do not cover
    the columns."""
    if not all_numbers(X):
        return _schema_of_frame(X, bounds, target, public, one, spelling)
    if bounds is None:
        low, high = np.array([read_range(values) for values in X.values()]).T
    elif isinstance(bounds, Mapping):
        if absent := [name for name in X if name not in bounds]:
            raise EstimatorError(
                f"bounds must cover every column; {sayable(', '.join(absent[:8]))} not there; add them",
                code="missing",
            )
        low, high = np.array([[float(bounds[name][k]) for name in X] for k in (0, 1)])
    else:
        low, high = _pair(bounds, len(X))
    columns: tuple[Column, ...] = tuple(
        Numeric(name, float(a), float(b)) for name, a, b in zip(X, low, high, strict=True)
    )
    return Schema(columns, target, one, "fill", "public" if bounds is not None and public else "data")


def read_range(values: Floats) -> tuple[float, float]:
    """A range that is read off values by the rule of `train`: no end is a record's but by chance."""
    there = values[np.isfinite(values)]
    return rounded(float(there.min()), float(there.max())) if len(there) else (0.0, 0.0)


def all_numbers(X: Frame) -> bool:
    """Whether every column holds numbers."""
    return all(column.dtype.kind == "f" for column in X.values())


def _pair(bounds: Any, d: int) -> tuple[Floats, Floats]:
    try:
        low, high = (np.broadcast_to(np.asarray(side, dtype=np.float64), (d,)) for side in bounds)
    except (TypeError, ValueError):
        raise EstimatorError(
            f"bounds are (low, high), numbers or one for each of {sayable(d)} columns, or a mapping from columns to "
            "[low, "
            f"high]; got {type(bounds).__name__}; mend them",
            code="type",
        ) from None
    return low, high


def _schema_of_frame(X: Frame, bounds: Any, target: Target, public: bool, one: bool, spelling: Spelling) -> Schema:
    if bounds is not None and not isinstance(bounds, Mapping):
        raise EstimatorError("bounds of a frame with texts map each column to [low, high] or its categories; give that")
    with opened({**X, TARGET: np.arange(_length(X)) % 2}, spelling=spelling) as (table, _):
        asked = TableSettings(TARGET, goal=USUAL_GOALS["logistic"], intercept=one)
        if bounds is not None:
            made = schema_of_bounds(table, asked, {**bounds, TARGET: ["0", "1"]})
        else:
            made = schema_of_records(looked(table, asked)[0], asked)
    return Schema(made.columns, target, one, "fill", "public" if bounds is not None and public else "data")


def rows(schema: Schema, X: Frame, *, ball: bool = True, spelling: Spelling = PLAIN) -> Floats:
    """(n, d) the records in the unit ball, in their order; `ball` as of `Schema.rows`; texts are read as `spelling`
    says. What is missing is filled by the schema's rule. Warns of columns nearly none of whose values fit, where
    records are not just a few. Errors: a column is missing."""
    plain = all(isinstance(column, Numeric | Surveyed) for column in schema.columns)
    if not plain or not all_numbers(X) or any(column.name not in X for column in schema.columns):
        with opened(X, spelling=spelling) as (table, _):
            mapped = Mapped(table, schema, labels=False)
            found = mapped.arrays(ball=ball)[0]
        there = [count for count in mapped.counts.values() if count.rows >= max(_SEVERAL, 2 * count.missing)]
        odd = [text for count in there if (text := count.warning)]
        if odd:
            warn("; ".join(odd))
        return found
    out = np.empty((_length(X), len(schema.feature_names)))
    schema.rows([_read(column, X[column.name]) for column in schema.columns], out, ball=ball)
    return out


def _read(column: Column, values: Floats) -> Floats:
    """Numbers as this column of a schema takes them: a surveyed one with a bucket beside, which numbers have not."""
    return np.column_stack([values, np.full(len(values), -1.0)]) if isinstance(column, Surveyed) else values


def _length(X: Frame) -> int:
    return len(next(iter(X.values())))


def sorted_by_owner(X: Floats, y: Floats, split: Partition, weights: Floats | None = None) -> Records:
    """The records sorted by owner, a zero vector in each empty place."""
    return arranged(in_memory(X, y, weights), split.order, None)


def weights_of(sample_weight: Any, bound: float, n: int) -> Floats | None:
    """(n,) the weights of the records as parts of their public bound; None: all are alike. Errors: not one weight in
    [0, bound] for each record, or a bound that is none."""
    if sample_weight is None:
        return None
    if not (isinstance(bound, int | float) and 0 < bound < np.inf):
        raise EstimatorError(
            f"a bound of weights is a positive number; got {sayable(bound)!r}; mend weight_bound", code="range"
        )
    w = np.asarray(sample_weight, dtype=np.float64)
    if w.shape != (n,):
        raise EstimatorError(
            f"sample_weight has one weight for each record, shape ({sayable(n)},); got shape {w.shape}; mend it",
            code="shape",
        )
    if not ((w >= 0) & (w <= bound)).all():
        raise EstimatorRecordError(
            f"weights lie between 0 and weight_bound, {bound:g}; a record has another; state the bound that they keep",
            "weights lie between 0 and weight_bound; some owner's do not",
        )
    return w / bound


def owner_codes(owners: Any, n: int) -> Ints:
    """(n,) each record's owner as a number. None: one owner holds all. Errors: not one owner for each record."""
    if owners is None:
        return np.zeros(n, dtype=np.int64)
    names = declared(owners)
    if names.shape != (n,):
        raise EstimatorError(
            f"owners say whose each record is, shape ({sayable(n)},); got shape {names.shape}; mend owners",
            code="shape",
        )
    if names.dtype.kind == "O":
        if any(name is None for name in names):
            raise EstimatorError("every record has an owner; one has none; fill it in", code="column")
        names = names.astype(str)
    if names.dtype.kind == "f" and not np.isfinite(names).all():
        raise EstimatorError("every record has an owner; one has none; fill it in", code="column")
    return np.asarray(np.unique(names, return_inverse=True)[1], dtype=np.int64)


def label_target(classes: Sequence[Any]) -> Labels | Classes:
    """The target of these classes; of two, the second is +1."""
    if len(classes) > 2:
        return Classes(TARGET, tuple(str(value) for value in classes))
    return Labels(TARGET, (str(classes[1]),), (str(classes[0]),))


def schema_classes(target: Target, y: Any) -> Any:
    """(k,) the classes that a schema's target names, as values of y's kind, so that none is read off a record.

    Errors: EstimatorError for a target whose classes are not one value each; for values that y's kind has not.
    """
    if isinstance(target, Classes):
        names: tuple[str, ...] = target.names
    elif isinstance(target, Labels) and len(target.positive) == 1 and len(target.negative or ()) == 1:
        names = (str((target.negative or ())[0]), str(target.positive[0]))
    else:
        raise EstimatorError(
            "classes are public: a schema names them, one value each, or classes= does; this schema's label has "
            "several values a class, or none; state classes=",
            code="missing",
        )
    kind = np.asarray(y).dtype
    if kind.kind == "O":  # of a list: whether the caller's classes are numbers or texts; no label is read by it
        kind = np.dtype(str) if any(isinstance(value, str) for value in y) else np.asarray(list(y)).dtype
    try:
        if kind.kind == "b":
            return np.array([{"true": True, "false": False}[name] for name in names])
        return np.array([float(name) for name in names]).astype(kind) if kind.kind in "iuf" else np.array(names)
    except (ValueError, KeyError):
        raise EstimatorError(
            f"the schema's classes are {sayable(', '.join(names[:4]))}; the labels are {sayable(str(kind))} values; "
            "mend y, or state classes=",
            code="column",
        ) from None


def range_target(y: Floats, bounds: Any) -> Range:
    """The target of a regression, from its public bounds or read off the values."""
    if bounds is not None:
        low, high = (float(side) for side in bounds)
        return Range(TARGET, low, high)
    if np.nanmin(y) == np.nanmax(y):
        raise EstimatorRecordError(
            f"a target must vary; it is always {np.nanmin(y):g}; state target_bounds=(low, high)",
            "a target must vary; an owner's is always the same",
        )
    return Range(TARGET, *read_range(y))
