"""From what scikit-learn's users have (arrays, data frames) to records in the unit ball, through a public schema."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from dpmpc.data.blocks import Records, in_memory
from dpmpc.data.derive import Asked, features_of, schema_of_bounds, schema_of_records
from dpmpc.data.loading import opened
from dpmpc.data.mapping import Mapping as Mapped
from dpmpc.data.schema import Classes, Column, Labels, Numeric, Range, Schema, Target
from dpmpc.data.table import Floats, Ints
from dpmpc.estimators.errors import EstimatorError

TARGET = "(target)"
Frame = dict[str, Any]  # name -> column (n,)


def is_frame(X: Any) -> bool:
    """Whether X is a data frame with a column that holds no numbers: it goes through a schema as files do."""
    if not (hasattr(X, "columns") and hasattr(X, "__getitem__")):
        return False
    return any(np.asarray(X[name]).dtype.kind not in "biuf" for name in X.columns)


def frame_of(X: Any) -> Frame:
    """The columns of a data frame."""
    return {str(name): np.asarray(X[name]) for name in X.columns}


def given_schema(schema: Any) -> Schema | None:
    """The schema that a user names by value, by file, or not at all."""
    if schema is None or isinstance(schema, Schema):
        return schema
    return Schema.read(Path(schema))


def make_schema(
    X: Floats | Frame, names: Sequence[str], bounds: Any, target: Target, public: bool, one: bool
) -> Schema:
    """A schema for these columns. `bounds`: see `PrivateLogisticRegression`; `public`: whether the target's constants
    are; `one`: whether a constant feature is added. Errors: bounds that do not cover the columns."""
    if isinstance(X, dict):
        return _schema_of_frame(X, bounds, target, public, one)
    if bounds is None:
        low, high = X.min(axis=0), X.max(axis=0)
    elif isinstance(bounds, Mapping):
        if absent := [name for name in names if name not in bounds]:
            raise EstimatorError(f"bounds must cover every column; {', '.join(absent[:8])} not there; add them")
        low, high = np.array([[float(bounds[name][k]) for name in names] for k in (0, 1)])
    else:
        low, high = _pair(bounds, len(names))
    columns: tuple[Column, ...] = tuple(
        Numeric(name, float(a), float(b)) for name, a, b in zip(names, low, high, strict=True)
    )
    return Schema(columns, target, one, "fill", "public" if bounds is not None and public else "data")


def _pair(bounds: Any, d: int) -> tuple[Floats, Floats]:
    try:
        low, high = (np.broadcast_to(np.asarray(side, dtype=np.float64), (d,)) for side in bounds)
    except (TypeError, ValueError):
        raise EstimatorError(
            f"bounds are (low, high), numbers or one for each of {d} columns, or a mapping from columns to [low, "
            f"high]; got {type(bounds).__name__}; mend them"
        ) from None
    return low, high


def _schema_of_frame(X: Frame, bounds: Any, target: Target, public: bool, one: bool) -> Schema:
    columns = {name: column for name, column in X.items() if name != TARGET}
    if bounds is not None and not isinstance(bounds, Mapping):
        raise EstimatorError("bounds of a frame with texts map each column to [low, high] or its categories; give that")
    with opened({**columns, TARGET: np.arange(len(next(iter(columns.values())))) % 2}) as (table, _):
        asked = Asked(TARGET, task="logistic", intercept=one)
        if bounds is not None:
            made = schema_of_bounds(table, asked, {**bounds, TARGET: ["0", "1"]})
        else:
            made = schema_of_records(table, asked, features_of(table, asked))
    return Schema(made.columns, target, one, "fill", "public" if bounds is not None and public else "data")


def rows(schema: Schema, X: Floats | Frame) -> Floats:
    """(n, d) the records in the unit ball, in their order. Errors: a column is missing, a value is no number."""
    if isinstance(X, dict):
        with opened(X) as (table, _):
            return Mapped(table, schema, labels=False).arrays()[0]
    out = np.empty((len(X), len(schema.feature_names)))
    schema.rows(list(X.T), out)
    return out


def sorted_by_owner(X: Floats, y: Floats, groups: Ints) -> tuple[Records, tuple[int, ...]]:
    """The records sorted by owner, and how many each has."""
    order = np.argsort(groups, kind="stable")
    return in_memory(X[order], y[order]), tuple(int(size) for size in np.bincount(groups))


def owner_codes(owners: Any, n: int) -> Ints:
    """(n,) each record's owner as a number. None: one owner holds all. Errors: not one owner for each record."""
    if owners is None:
        return np.zeros(n, dtype=np.int64)
    names = np.asarray(owners)
    if names.shape != (n,):
        raise EstimatorError(f"owners say whose each record is, shape ({n},); got shape {names.shape}; mend owners")
    if names.dtype.kind == "O":
        if any(name is None or name != name for name in names):
            raise EstimatorError("every record has an owner; one has none; fill it in")
        names = names.astype(str)
    if names.dtype.kind == "f" and not np.isfinite(names).all():
        raise EstimatorError("every record has an owner; one has none; fill it in")
    return np.asarray(np.unique(names, return_inverse=True)[1], dtype=np.int64)


def label_target(classes: Sequence[Any]) -> Labels | Classes:
    """The target of these classes; of two, the second is +1."""
    if len(classes) > 2:
        return Classes(TARGET, tuple(str(value) for value in classes))
    return Labels(TARGET, (str(classes[1]),), (str(classes[0]),))


def range_target(y: Floats, bounds: Any) -> Range:
    """The target of a regression, from its public bounds or read off the values."""
    low, high = (float(np.min(y)), float(np.max(y))) if bounds is None else (float(side) for side in bounds)
    if bounds is None and low == high:
        raise EstimatorError(f"a target must vary; it is always {low:g}; state target_bounds=(low, high)")
    return Range(TARGET, low, high)
