"""From raw columns to records in the unit ball: one-hot, scaling to [0, 1], intercept, row scaling; and the labels.

Every step acts on one record alone, with constants fixed beforehand (bounds and category lists), so a changed record
changes one row. That is what the sensitivity bounds need; where the constants come from is `bounds`.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Literal, cast

import numpy as np
from numpy.typing import NDArray

from dpmpc.data.table import Table, Texts, is_missing, numbers
from dpmpc.errors import UsageError

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Raw = NDArray[np.bytes_] | NDArray[np.str_] | NDArray[np.float64]
Task = Literal["logistic", "ridge"]
Bounds = Literal["public", "data"]

INTERCEPT = "(intercept)"
VERSION = 1
# Rows are divided by slightly more than their computed norm: the exact norm is at most 1 in spite of rounding.
_SHRINK = 1.0 - 2.0**-44
_BLOCK = 1 << 14


@dataclass(frozen=True)
class Numeric:
    """One feature: the column clipped to [low, high] and mapped linearly on [0, 1] (or on [-1, 1] if `signed`).

    A missing value becomes the middle of the range; a column with low = high becomes 0.
    """

    name: str
    low: float
    high: float
    signed: bool = False

    def __post_init__(self) -> None:
        _check_range(self.name, self.low, self.high, strict=False)

    @property
    def features(self) -> tuple[str, ...]:
        return (self.name,)

    def write(self, raw: Raw, out: Floats) -> None:
        """Puts the scaled column into out (n, 1)."""
        values = as_numbers(raw, self.name)
        spread = self.high - self.low
        if spread == 0:
            out[:, 0] = 0.0
            return
        scaled = (np.clip(values, self.low, self.high) - self.low) / spread
        scaled[np.isnan(scaled)] = 0.5
        out[:, 0] = 2 * scaled - 1 if self.signed else scaled

    def missing(self, raw: Raw) -> Bools:
        return np.isnan(as_numbers(raw, self.name))


@dataclass(frozen=True)
class Categorical:
    """One 0/1 feature for each category of a list; a value that is missing or not in the list is all zeros."""

    name: str
    categories: tuple[str, ...]

    @property
    def features(self) -> tuple[str, ...]:
        return tuple(f"{self.name}={category}" for category in self.categories)

    def write(self, raw: Raw, out: Floats) -> None:
        """Puts the indicators into out (n, number of categories)."""
        out[:] = 0.0
        place = self._place(raw)
        known = np.flatnonzero(place >= 0)
        out[known, place[known]] = 1.0

    def missing(self, raw: Raw) -> Bools:
        return is_missing(as_texts(raw)) & (self._place(raw) < 0)

    def _place(self, raw: Raw) -> NDArray[np.int64]:
        """(n,) the number of each value's category, -1 if it has none."""
        texts = as_texts(raw)
        listed = np.array([category.encode() for category in self.categories], dtype=np.bytes_)
        order = np.argsort(listed)
        found = np.minimum(np.searchsorted(listed[order], texts), len(listed) - 1)
        return np.where(listed[order][found] == texts, order[found], -1).astype(np.int64)


@dataclass(frozen=True)
class Labels:
    """The two classes of a target column: texts that mean +1, and texts that mean -1 (None: all others)."""

    name: str
    positive: tuple[str, ...]
    negative: tuple[str, ...] | None
    positive_name: str
    negative_name: str

    def values(self, raw: Raw) -> Floats:
        """(n,) labels +-1. Errors: a missing label, or one of neither class."""
        texts = as_texts(raw)
        up = np.isin(texts, [text.encode() for text in self.positive])
        if self.negative is None:
            wrong = ~up & is_missing(texts)
        else:
            wrong = ~up & ~np.isin(texts, [text.encode() for text in self.negative])
        if wrong.any():
            shown = bytes(texts[np.argmax(wrong)])[:40].decode(errors="replace")
            raise UsageError(
                f"the target '{self.name}' is {self.positive_name} or {self.negative_name}; a record has '{shown}';"
                " correct or remove such records"
            )
        return np.where(up, 1.0, -1.0)


@dataclass(frozen=True)
class Range:
    """A numeric target, clipped to [low, high] and mapped linearly on [-1, 1]."""

    name: str
    low: float
    high: float

    def __post_init__(self) -> None:
        _check_range(self.name, self.low, self.high, strict=True)

    def values(self, raw: Raw) -> Floats:
        """(n,) values in [-1, 1]. Errors: a missing value."""
        values = as_numbers(raw, self.name)
        if np.isnan(values).any():
            raise UsageError(f"the target '{self.name}' is never missing; a record has none; remove such records")
        return np.asarray(2 * (np.clip(values, self.low, self.high) - self.low) / (self.high - self.low) - 1)

    def original(self, y: Floats) -> Floats:
        """(n,) predictions in the target's own units, from predictions on the scale of [-1, 1]."""
        return np.asarray(self.low + (y + 1) / 2 * (self.high - self.low), dtype=np.float64)


Column = Numeric | Categorical
Target = Labels | Range


@dataclass(frozen=True)
class Preprocessing:
    """Everything that turns raw columns into (X, y); exact under `to_json` and `from_json`.

    After its columns, each row is divided by max(1, its norm), as Chaudhuri et al. do. With an intercept or a
    categorical column every norm is at least 1 (unless a category is unknown), so rows get norm 1 and keep their
    direction: a linear classifier has the same decisions before and after. missing "fill": see Numeric and
    Categorical; "drop": training records with a missing value do not count (`transform` always fills, for every row
    is to get its prediction).
    """

    columns: tuple[Column, ...]
    target: Target
    intercept: bool
    missing: Literal["fill", "drop"]
    bounds: Bounds

    @property
    def task(self) -> Task:
        return "logistic" if isinstance(self.target, Labels) else "ridge"

    @property
    def feature_names(self) -> tuple[str, ...]:
        """The d features' names, the intercept last."""
        names = tuple(feature for column in self.columns for feature in column.features)
        return (*names, INTERCEPT) if self.intercept else names

    def transform(self, columns: Mapping[str, Raw]) -> Floats:
        """(n, d) rows in the unit ball. `columns` may hold more than is needed.

        Errors: a missing column, a number that is none.
        """
        absent = [column.name for column in self.columns if column.name not in columns]
        if absent:
            raise UsageError(f"the model needs its columns; {', '.join(absent[:8])} not in the data; add them")
        if not isinstance(columns, Table):
            X = np.empty((len(columns[self.columns[0].name]), len(self.feature_names)))
            self._write(columns, X)
            return X
        X = np.empty((columns.n, len(self.feature_names)))
        for i in range(0, columns.n, _BLOCK):  # a block's text and rows stay in the cache over all columns
            block = np.arange(i, min(i + _BLOCK, columns.n))
            self._write(columns.rows(block), X[i : i + _BLOCK])
        return X

    def _write(self, columns: Mapping[str, Raw], X: Floats) -> None:
        begin = 0
        for column in self.columns:
            end = begin + len(column.features)
            column.write(columns[column.name], X[:, begin:end])
            begin = end
        X[:, begin:] = 1.0
        norms = np.sqrt(np.einsum("nd,nd->n", X, X))
        X *= (_SHRINK / np.maximum(1.0, norms))[:, None]

    def labels(self, columns: Mapping[str, Raw]) -> Floats:
        """(n,) labels +-1, or targets in [-1, 1]. Errors: a missing column or value, a label of neither class."""
        if self.target.name not in columns:
            raise UsageError(
                f"labels come from the target column; '{self.target.name}' is not in the data; name another"
            )
        return self.target.values(columns[self.target.name])

    def complete(self, columns: Mapping[str, Raw]) -> Bools:
        """(n,) where a record misses none of the features' columns."""
        result = np.ones(len(columns[self.columns[0].name]), dtype=bool)
        for column in self.columns:
            result &= ~column.missing(columns[column.name])
        return result

    def to_json(self) -> dict[str, object]:
        """The same as JSON values; floats survive `json` exactly."""
        return {
            "version": VERSION,
            "task": self.task,
            "columns": [{"kind": type(column).__name__.lower(), **_plain(column)} for column in self.columns],
            "target": _plain(self.target),
            "intercept": self.intercept,
            "missing": self.missing,
            "bounds": self.bounds,
        }

    @staticmethod
    def from_json(value: Mapping[str, object]) -> "Preprocessing":
        """The preprocessing that `to_json` wrote. Errors: another version, or not such a value."""
        if value.get("version") != VERSION:
            raise UsageError(
                f"a model's preprocessing has version {VERSION}; this has {value.get('version')}; train again"
            )
        try:
            return Preprocessing(
                columns=tuple(_column(part) for part in cast(list[dict[str, object]], value["columns"])),
                target=_target(cast(dict[str, object], value["target"])),
                intercept=bool(value["intercept"]),
                missing=cast(Literal["fill", "drop"], value["missing"]),
                bounds=cast(Bounds, value["bounds"]),
            )
        except (KeyError, TypeError) as error:
            raise UsageError(f"a model's preprocessing must be whole; {error} is amiss; train again") from None


def _check_range(name: str, low: float, high: float, *, strict: bool) -> None:
    if not (np.isfinite(high - low) and (low < high or (low == high and not strict))):
        raise UsageError(
            f"a range runs from low to high; '{name}' has [{low}, {high}]; correct it or leave the column out"
        )


def as_texts(raw: Raw) -> Texts:
    """The column as bytes."""
    if raw.dtype.kind == "S":
        return cast(Texts, raw)
    return np.char.encode(np.asarray(raw).astype(np.str_), "utf-8")


def as_numbers(raw: Raw, name: str) -> Floats:
    """The column as numbers, NaN where missing. Errors: a field that is no finite number."""
    if raw.dtype.kind in "fiu":
        return np.asarray(raw, dtype=np.float64)
    return numbers(as_texts(raw), f"column '{name}'")


def _plain(part: Column | Target) -> dict[str, object]:
    return {key: list(value) if isinstance(value, tuple) else value for key, value in asdict(part).items()}


def _column(part: dict[str, object]) -> Column:
    fields = {key: value for key, value in part.items() if key != "kind"}
    if part["kind"] == "categorical":
        return Categorical(str(fields["name"]), tuple(cast(list[str], fields["categories"])))
    return Numeric(**fields)  # type: ignore[arg-type]


def _target(part: dict[str, object]) -> Target:
    if "positive" not in part:
        return Range(**part)  # type: ignore[arg-type]
    negative = cast(list[str] | None, part["negative"])
    return Labels(
        name=str(part["name"]),
        positive=tuple(cast(list[str], part["positive"])),
        negative=None if negative is None else tuple(negative),
        positive_name=str(part["positive_name"]),
        negative_name=str(part["negative_name"]),
    )
