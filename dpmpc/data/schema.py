"""The public schema: what turns any owner's records into vectors in the unit ball, and labels.

Every step acts on one record alone, with constants fixed beforehand (ranges and category lists), so a changed record
changes one row. That is what the sensitivity bounds need; where the constants come from is `bounds`. A schema maps by
name, whatever the order of a file's columns, and compares numbers as numbers. Its digest is the same everywhere.
"""

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import msgspec
import numpy as np
from numpy.typing import NDArray

from dpmpc.data.spelling import canonical
from dpmpc.data.written import checked, json_schema, read_written
from dpmpc.errors import UsageError

Task = Literal["logistic", "ridge", "softmax"]
Bounds = Literal["public", "data", "survey"]
Missing = Literal["fill", "drop"]
Floats = NDArray[np.float64]
Codes = NDArray[np.int32]
Scalar = str | int | float | bool

INTERCEPT = "(intercept)"
VERSION = 1
# Rows are divided by slightly more than their computed norm: the exact norm is at most 1 in spite of rounding.
_SHRINK = {np.dtype(np.float64): 1.0 - 2.0**-44, np.dtype(np.float32): 1.0 - 2.0**-23}


class SchemaError(UsageError, ValueError):
    """A schema that cannot be; a ValueError too, for msgspec adds the place in the file to those."""


class Numeric(
    msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True, tag_field="kind", tag="number"
):
    """One feature: the column clipped to [low, high] and mapped linearly on [0, 1] (or on [-1, 1] if `signed`).

    A missing value becomes the middle of the range; a column with low = high becomes 0.
    """

    name: str
    low: float
    high: float
    signed: bool = False

    def __post_init__(self) -> None:
        _set_range(self, strict=False)

    @property
    def features(self) -> tuple[str, ...]:
        return (self.name,)

    def write(self, values: Floats, out: Floats) -> None:
        """Puts the scaled values (n,), NaN where missing, into out (n, 1)."""
        spread = self.high - self.low
        if spread == 0:
            out[:, 0] = 0.0
            return
        scaled = (np.clip(values, self.low, self.high) - self.low) / spread
        scaled[np.isnan(scaled)] = 0.5
        out[:, 0] = 2 * scaled - 1 if self.signed else scaled


class Categorical(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="kind", tag="category"):
    """One 0/1 feature for each category of a list; a value that is missing or not in the list is all zeros."""

    name: str
    categories: tuple[Scalar, ...]

    def __post_init__(self) -> None:
        spelled = _spelled(self.categories)
        if not spelled or len(set(spelled)) < len(spelled):
            what = "repeats one" if spelled else "has none"
            raise SchemaError(f"a category list has each value once, numbers compared as numbers; '{self.name}' {what}")
        msgspec.structs.force_setattr(self, "categories", spelled)

    @property
    def values(self) -> tuple[str, ...]:
        """The categories under the spelling that is compared."""
        return tuple(str(category) for category in self.categories)

    @property
    def features(self) -> tuple[str, ...]:
        return tuple(f"{self.name}={category}" for category in self.values)

    def write(self, codes: Codes, out: Floats) -> None:
        """Puts the indicators of the codes (n,), negative for none, into out (n, number of categories)."""
        out[:] = 0.0
        known = np.flatnonzero(codes >= 0)
        out[known, codes[known]] = 1.0


class Surveyed(
    msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True, tag_field="kind", tag="surveyed"
):
    """A column as a private survey found it: numbers, texts in hashed buckets, or both; and whether one is missing.

    `number`: whether numbers have a feature: clipped to [low, high] and mapped linearly on [-1, 1], 0 where there is
    none. Each of the `kept` of `buckets` buckets has a 0/1 feature, and so has a missing value if `missing`.
    """

    name: str
    number: bool = False
    low: float = 0.0
    high: float = 0.0
    buckets: int = 1
    kept: tuple[int, ...] = ()
    missing: bool = False

    def __post_init__(self) -> None:
        _set_range(self, strict=False)
        if len(set(self.kept)) < len(self.kept) or not all(0 <= k < self.buckets for k in self.kept):
            raise SchemaError(f"kept buckets are different numbers from 0 on; '{self.name}' has {list(self.kept)[:8]}")

    @property
    def features(self) -> tuple[str, ...]:
        return (
            *((self.name,) if self.number else ()),
            *(f"{self.name}#{k}" for k in self.kept),
            *((f"{self.name} missing",) if self.missing else ()),
        )

    def write(self, values: Floats, out: Floats) -> None:
        """Puts the features of values (n, 2) into out: numbers (NaN for missing, infinite for a text), buckets (-1 for
        none)."""
        numbers, place = values[:, 0], values[:, 1]
        at = 0
        if self.number:
            half = (self.high - self.low) / 2
            scaled = np.clip(numbers, self.low, self.high) - (self.low + half)
            out[:, 0] = np.where(np.isfinite(numbers), scaled / half if half else 0.0, 0.0)
            at = 1
        text = np.isinf(numbers)
        for k in self.kept:
            out[:, at] = text & (place == k)
            at += 1
        if self.missing:
            out[:, at] = self.gone(values)

    def gone(self, values: Floats) -> NDArray[np.bool_]:
        """(n,) whether each value is missing: neither a number nor a text."""
        return np.isnan(values[:, 0]) | (np.isinf(values[:, 0]) & (values[:, 1] < 0))


class Labels(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="kind", tag="label"):
    """The two classes of a target column: values that mean +1, and values that mean -1 (None: all others)."""

    name: str
    positive: tuple[Scalar, ...]
    negative: tuple[Scalar, ...] | None
    positive_name: str = ""
    negative_name: str = ""

    def __post_init__(self) -> None:
        positive, negative = _spelled(self.positive), None if self.negative is None else _spelled(self.negative)
        both = (*positive, *(negative or ()))
        if not positive or negative == () or len(set(both)) < len(both):
            raise SchemaError(f"a label has two classes that share no value; '{self.name}' has {list(both)}")
        msgspec.structs.force_setattr(self, "positive", positive)
        msgspec.structs.force_setattr(self, "negative", negative)
        msgspec.structs.force_setattr(self, "positive_name", self.positive_name or positive[0])
        msgspec.structs.force_setattr(self, "negative_name", self.negative_name or (negative or ("other",))[0])

    @property
    def codes(self) -> dict[str, int]:
        """Each value's code: 1 for +1, 0 for -1."""
        return {**{str(v): 1 for v in self.positive}, **{str(v): 0 for v in self.negative or ()}}

    def values(self, codes: Codes) -> Floats:
        """(n,) labels +-1 of codes 0 and 1, or below where there is none: NaN, or -1 if all others are negative."""
        others = np.nan if self.negative is not None else -1.0
        return np.where(codes == 1, 1.0, np.where(codes == 0, -1.0, np.where(codes == -1, np.nan, others)))


class Classes(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="kind", tag="classes"):
    """The classes of a target column with more than two of them, each one value."""

    name: str
    classes: tuple[Scalar, ...]

    def __post_init__(self) -> None:
        spelled = _spelled(self.classes)
        if len(spelled) < 2 or len(set(spelled)) < len(spelled):
            raise SchemaError(f"a target has at least two classes, each once; '{self.name}' has {list(spelled)[:8]}")
        msgspec.structs.force_setattr(self, "classes", spelled)

    @property
    def names(self) -> tuple[str, ...]:
        """The classes under the spelling that is compared."""
        return tuple(str(value) for value in self.classes)

    @property
    def codes(self) -> dict[str, int]:
        """Each value's code, its place in the list."""
        return {value: k for k, value in enumerate(self.names)}

    def values(self, codes: Codes) -> Floats:
        """(n,) the codes as numbers, NaN where there is none."""
        return np.where(codes >= 0, codes.astype(np.float64), np.nan)


class Range(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="kind", tag="number"):
    """A numeric target, clipped to [low, high] and mapped linearly on [-1, 1]."""

    name: str
    low: float
    high: float

    def __post_init__(self) -> None:
        _set_range(self, strict=True)

    def values(self, values: Floats) -> Floats:
        """(n,) targets in [-1, 1], NaN where missing."""
        return np.asarray(2 * (np.clip(values, self.low, self.high) - self.low) / (self.high - self.low) - 1)

    def original(self, y: Floats) -> Floats:
        """(n,) predictions in the target's own units, from predictions on the scale of [-1, 1]."""
        return np.asarray(self.low + (y + 1) / 2 * (self.high - self.low), dtype=np.float64)


Column = Numeric | Categorical | Surveyed
Target = Labels | Classes | Range


class Schema(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Everything that turns records into (X, y): public, exact under `to_json` and `from_json`.

    After its columns, each row is divided by max(1, its norm), as Chaudhuri et al. do. With an intercept or a
    categorical column every norm is at least 1 (unless a category is unknown), so rows get norm 1 and keep their
    direction: a linear classifier has the same decisions before and after. missing "fill": see Numeric and
    Categorical; "drop": training records with a missing value do not count (predictions are made for every row).
    """

    columns: tuple[Column, ...]
    target: Target
    intercept: bool = True
    missing: Missing = "fill"
    bounds: Bounds = "public"
    version: int = VERSION

    def __post_init__(self) -> None:
        names = [column.name for column in self.columns]
        double = sorted({name for name in (*names, self.target.name) if [*names, self.target.name].count(name) > 1})
        if double or not names:
            raise SchemaError(
                f"a schema names each column once, the target apart; it has {double or 'no columns'}; correct it"
            )
        if self.version != VERSION:
            raise SchemaError(f"a schema has version {VERSION}; this has {self.version}; make it again")

    @property
    def task(self) -> Task:
        return (
            "logistic" if isinstance(self.target, Labels) else "ridge" if isinstance(self.target, Range) else "softmax"
        )

    @property
    def classes(self) -> int:
        """How many classes the target has; 2 for numbers too, where it means nothing."""
        return len(self.target.classes) if isinstance(self.target, Classes) else 2

    @property
    def feature_names(self) -> tuple[str, ...]:
        """The d features' names, the intercept last."""
        names = tuple(feature for column in self.columns for feature in column.features)
        return (*names, INTERCEPT) if self.intercept else names

    def rows(self, values: list[NDArray[Any]], out: NDArray[np.floating[Any]]) -> None:
        """Puts the records with these values or codes, one array a column, into out (n, d), in the unit ball.

        Guarantees: row i depends on record i alone, and its exact norm is at most 1, in single precision too: rounding
        a row is part of its preprocessing, and the bounds hold for the rounded rows.
        """
        X = np.empty(out.shape)
        begin = 0
        for column, part in zip(self.columns, values, strict=True):
            end = begin + len(column.features)
            column.write(part, X[:, begin:end])
            begin = end
        X[:, begin:] = 1.0
        norms = np.sqrt(np.einsum("nd,nd->n", X, X))
        np.multiply(X, (_SHRINK[out.dtype] / np.maximum(1.0, norms))[:, None], out=out, casting="same_kind")

    def to_json(self) -> dict[str, Any]:
        """The same as JSON values; floats survive `json` exactly."""
        value = msgspec.json.decode(msgspec.json.encode(self))  # lists, not tuples
        assert isinstance(value, dict)
        return value

    @staticmethod
    def from_json(value: Mapping[str, Any]) -> "Schema":
        """The schema that `to_json` wrote. Errors: another version, or not such a value."""
        if value.get("version") != VERSION:
            raise UsageError(f"a schema has version {VERSION}; this has {value.get('version')}; make it again")
        return checked(dict(value), Schema, "a schema", "it")

    @staticmethod
    def read(path: Path) -> "Schema":
        """The schema in a JSON or TOML file. Errors: it is none, with the line."""
        return read_written(path, Schema, "a schema")

    def write(self, path: Path) -> None:
        """Writes the JSON that `read` reads, whole or not at all."""
        partial = path.with_suffix(".tmp")
        partial.write_text(json.dumps(self.to_json(), indent=1) + "\n", encoding="utf-8")
        partial.replace(path)

    @property
    def digest(self) -> str:
        """SHA-256 over the schema's JSON with sorted keys: the same for the same schema on every machine."""
        text = json.dumps(self.to_json(), sort_keys=True, separators=(",", ":"), ensure_ascii=True)
        return hashlib.sha256(b"dpmpc schema\0" + text.encode()).hexdigest()


def editor_schema() -> dict[str, Any]:
    """The JSON schema of schema files, for editors."""
    return json_schema(Schema)


def read_bounds(path: Path) -> dict[str, list[float] | list[str]]:
    """The public bounds in a JSON or TOML file: column -> [low, high], or categories. Errors: anything else."""
    return checked_bounds(read_written(path, Any, "a bounds"), path.name)


def checked_bounds(value: Any, name: str) -> dict[str, list[float] | list[str]]:
    """Public bounds that came out of a file called `name`. Errors: as `read_bounds`."""
    rule = "a bounds file maps each column to [low, high] or to a list of texts"
    result: dict[str, list[float] | list[str]] = {}
    if not isinstance(value, dict):
        raise UsageError(f"{rule}; {name} holds a {type(value).__name__}; write an object")
    for column, entry in value.items():
        shown = json.dumps(entry)[:60]
        if not isinstance(entry, list) or not entry:
            raise UsageError(f"{rule}; '{column}' has {shown}; correct it")
        if all(isinstance(part, str) for part in entry):
            if len({canonical(part) for part in entry}) < len(entry):
                raise UsageError(f"{rule}, each once; '{column}' repeats one; remove it")
            result[column] = entry
        elif len(entry) == 2 and all(type(part) in (int, float) and np.isfinite(part) for part in entry):
            if not entry[0] < entry[1]:
                raise UsageError(f"{rule}, low < high; '{column}' has {entry}; correct it")
            result[column] = [float(part) for part in entry]
        else:
            raise UsageError(f"{rule}; '{column}' has {shown}; correct it")
    return result


def _spelled(values: tuple[Scalar, ...]) -> tuple[str, ...]:
    spelled = tuple(canonical(str(value)) for value in values)
    return spelled


def _set_range(part: Numeric | Surveyed | Range, *, strict: bool) -> None:
    low, high = float(part.low), float(part.high)
    if not (np.isfinite(high - low) and (low < high or (low == high and not strict))):
        raise SchemaError(
            f"a range runs from low to high; '{part.name}' has [{low}, {high}]; correct it or leave it out"
        )
    msgspec.structs.force_setattr(part, "low", low)
    msgspec.structs.force_setattr(part, "high", high)
