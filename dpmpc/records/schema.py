"""The public schema: what turns any owner's records into vectors in the unit ball, and labels.

Every step acts on one record alone, with constants fixed beforehand (ranges and category lists), so a changed record
changes one row. That is what the sensitivity bounds need; where the constants come from is `bounds`. A schema maps by
name, whatever the order of a file's columns, and compares numbers as numbers. Its digest is the same everywhere.
"""

import functools
import hashlib
import json
import math
import sys
from collections import Counter
from collections.abc import Mapping
from datetime import date
from pathlib import Path
from typing import Any, Literal, Protocol

import msgspec
import numpy as np
from numpy.typing import NDArray

from dpmpc.errors import UsageError, sayable
from dpmpc.folders import said_path, write_file
from dpmpc.intake.written import checked, json_schema, read_written
from dpmpc.records.columns import Categorical, Column, Date, Numeric, Scale, Surveyed, is_name, with_knots
from dpmpc.records.design import RecordDesign, design
from dpmpc.records.origins import Bounds, Element, FoundBy, Origin, in_order, origin_of
from dpmpc.records.targets import Classes, Labels, Range, Scalar, SchemaError, Target, repeated

# Public reasons why a column is not used; what its records look like is for its owner's eyes.
OFF_THE_RECORDS = "as its owner's look at the records had it, outside the guarantee"
NOTHING_STOOD_OUT = "nothing that tells its records apart stood out of the survey's noise"
Kind = Literal["two", "several", "number"]  # of a target: two classes, more, or a quantity
Missing = Literal["fill", "drop"]
Basis = Literal["linear", "additive"]

USUAL: Mapping[Kind, str] = {"two": "logistic", "several": "softmax", "number": "ridge"}
"""The task of each kind of target, where no other is asked for; `learning.tasks` has them all."""

INTERCEPT = "(intercept)"
VERSION = 2  # 1: public ranges were mapped on [0, 1] unless said otherwise


class Goal(Protocol):
    """What is to be predicted, as far as records are mapped by it: a task by its name, the kind of its targets, and
    such a target as it takes it."""

    @property
    def name(self) -> str: ...
    @property
    def kind(self) -> Kind: ...
    def taken(self, target: Target) -> Target: ...


class UsualGoal(msgspec.Struct, frozen=True):
    """That of the usual task of a kind of target, which takes every target as it is."""

    kind: Kind

    @property
    def name(self) -> str:
        return USUAL[self.kind]

    def taken(self, target: Target) -> Target:
        return target


USUAL_GOALS = {USUAL[kind]: UsualGoal(kind) for kind in USUAL}


class Schema(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Everything that turns records into (X, y): public, exact under `to_json` and `from_json`.

    After its columns, each row is divided by max(1, its norm), as Chaudhuri et al. do. With an intercept or a
    categorical column every norm is at least 1 (unless a category is unknown), so rows get norm 1 and keep their
    direction: a linear classifier has the same decisions before and after. missing "fill": see Numeric and
    Categorical; "drop": training records with a missing value do not count (predictions are made for every row).
    `unknown`: columns of which nothing but the name is known; a survey tells, and no record is mapped before.
    `rests_on`: what of it was read off records beside what `bounds` says, such as the list of the target's classes, or
    the ranges within which a survey was made (`records.origins`); only ever added to.
    `basis` "additive": numbers have the functions of `data.bends`, with knots as stated, as a survey finds them, or
    evenly over the range; rows are divided by one number, `norm`, unless they are longer, so that a score is a sum
    of one function a column. `task`: how the target is modelled; "" becomes the usual task of its kind. `found`: the
    releases that found it, or any of what they started from, whose promises are joined to that of every run by it.
    """

    columns: tuple[Column, ...]
    target: Target
    intercept: bool = True
    missing: Missing = "fill"
    bounds: Bounds = "public"
    version: int = VERSION
    unknown: tuple[str, ...] = ()
    basis: Basis = "linear"
    task: str = ""
    rests_on: tuple[Element, ...] = ()
    found: tuple[FoundBy, ...] = ()

    def __post_init__(self) -> None:
        if not self.task:
            msgspec.structs.force_setattr(self, "task", USUAL[self.kind])
        msgspec.structs.force_setattr(self, "rests_on", in_order(self.rests_on))
        if self.basis == "additive":
            msgspec.structs.force_setattr(self, "columns", tuple(map(with_knots, self.columns)))
        names = [*(column.name for column in self.columns), *self.unknown]
        double = sorted(name for name, times in Counter((*names, self.target.name)).items() if times > 1)
        if double or not names:
            raise SchemaError(
                f"a schema names each column once, the target apart; it has {sayable(double or 'no columns')}; "
                "correct it",
                code="unique",
            )
        if self.version != VERSION:
            raise SchemaError(f"a schema has version {VERSION}; this has {sayable(self.version)}; make it again")

    @property
    def kind(self) -> Kind:
        """That of the target."""
        return "two" if isinstance(self.target, Labels) else "number" if isinstance(self.target, Range) else "several"

    @property
    def names(self) -> tuple[str, ...]:
        """The columns of records that it reads, the target last."""
        return (*(column.name for column in self.columns), self.target.name)

    @property
    def origin(self) -> Origin:
        """Where its constants come from."""
        return origin_of(self.bounds, self.rests_on, self.found)

    @property
    def classes(self) -> int:
        """How many classes the target has; 2 for numbers too, where it means nothing."""
        return len(self.target.classes) if isinstance(self.target, Classes) else 2

    @property
    def feature_names(self) -> tuple[str, ...]:
        """The d features' names, the intercept last. Errors: what columns hold is not known yet."""
        if self.unknown:
            raise SchemaError(
                "records are mapped when all columns are known; nothing is known of "
                f"{sayable(', '.join(self.unknown[:6]))}; "
                "survey them with <<preprocessing=survey>>, or say their kinds"
            )
        names = tuple(feature for column in self.columns for feature in column.features)
        return (*names, INTERCEPT) if self.intercept else names

    @property
    def listed(self) -> dict[str, tuple[str, ...]]:
        """The values that are listed, of each column that has a list and of the target."""
        found = {c.name: c.values for c in self.columns if isinstance(c, Categorical)}
        if not isinstance(self.target, Range):
            found[self.target.name] = tuple(self.target.codes)
        return found

    def found_by(self, found: FoundBy) -> "Schema":
        """The same, as this release found it, of what earlier ones found."""
        return msgspec.structs.replace(self, found=tuple(dict.fromkeys((*self.found, found))))

    def on(self, basis: Basis | None) -> "Schema":
        """The same on this basis; None: its own."""
        if basis is None or basis == self.basis:
            return self
        columns = self.columns
        if basis == "linear":
            bent = (Numeric, Surveyed)
            columns = tuple(msgspec.structs.replace(c, knots=()) if isinstance(c, bent) else c for c in columns)
        return msgspec.structs.replace(self, columns=columns, basis=basis)

    @property
    def norm(self) -> float:
        """What rows are divided by, but for longer ones, which become as long as the ball is wide. Of an additive
        schema it is about as long as rows are, and never longer than the longest."""
        return 1.0 if self.basis == "linear" else _norm(self.columns, self.intercept)

    @property
    def design(self) -> RecordDesign:
        """What records are kept as, and how vectors follow from that."""
        _ = self.feature_names  # refuses a schema whose columns are not all known
        return _design(self.columns, self.intercept, self.basis == "additive")

    def rows(self, values: list[NDArray[Any]], out: NDArray[np.float64], *, ball: bool = True) -> None:
        """Puts the records with these values or codes, one array a column, into out (n, d), in the unit ball.

        Without `ball`, for predictions by a model that is there: of an additive schema all rows are divided by `norm`,
        so that scores are sums of one function a column. Never for training.

        Guarantees: row i depends on record i alone, and its exact norm is at most 1 (`records.design`).
        """
        made = self.design
        places = made.places(values)
        out[:] = made.rows(places, made.factors(places, ball=ball))

    def to_json(self) -> dict[str, Any]:
        """The same as JSON values; floats survive `json` exactly."""
        value = msgspec.json.decode(msgspec.json.encode(self))  # lists, not tuples
        assert isinstance(value, dict)
        unsaid = {"unknown": (), "basis": "linear", "task": USUAL[self.kind], "rests_on": (), "found": ()}
        for name, plain in unsaid.items():
            if getattr(self, name) == plain:
                del value[name]
        return value

    @staticmethod
    def from_json(value: Mapping[str, Any]) -> "Schema":
        """The schema that `to_json` wrote. Errors: another version, or not such a value."""
        if value.get("version") != VERSION:
            raise UsageError(
                f"a schema has version {VERSION}; this has {sayable(value.get('version'))}; make it again", code="file"
            )
        return checked(dict(value), Schema, "a schema", "it")

    @staticmethod
    def read(path: Path | str) -> "Schema":
        """The schema in a JSON or TOML file. Errors: it is none, with the line."""
        return read_written(said_path(path, "schema"), Schema, "a schema")

    def write(self, path: Path | str) -> None:
        """Writes the JSON that `read` reads, whole or not at all."""
        write_file(said_path(path, "path"), json.dumps(self.to_json(), indent=1) + "\n", public=True)

    @property
    def digest(self) -> str:
        """SHA-256 over the schema's JSON with sorted keys: the same for the same schema on every machine."""
        text = json.dumps(self.to_json(), sort_keys=True, separators=(",", ":"), ensure_ascii=True)
        return hashlib.sha256(b"dpmpc schema\0" + text.encode()).hexdigest()


def with_names(schema: Schema, names: Mapping[str, tuple[tuple[int, str], ...]]) -> Schema:
    """The same, whose kept buckets have these names, (bucket, word) by column."""
    columns = tuple(
        msgspec.structs.replace(c, names=tuple(each for each in names[c.name] if each[0] in c.kept))
        if isinstance(c, Surveyed) and c.name in names
        else c
        for c in schema.columns
    )
    return msgspec.structs.replace(schema, columns=columns)


@functools.lru_cache(maxsize=8)
def _norm(columns: tuple[Column, ...], intercept: bool) -> float:
    """Kept, as every block of rows asks for it."""
    most = math.fsum(column.longest**2 for column in columns) + intercept
    return math.sqrt(min(most, math.fsum(column.usual for column in columns) + intercept))


@functools.lru_cache(maxsize=8)
def _design(columns: tuple[Column, ...], intercept: bool, additive: bool) -> RecordDesign:
    """Kept, as every block of records asks for it."""
    return design(columns, intercept, _norm(columns, intercept) if additive else 1.0, additive)


def editor_schema() -> dict[str, Any]:
    """The JSON schema of schema files, for editors."""
    return json_schema(Schema)


def read_bounds(path: Path | str) -> dict[str, list[float] | list[str]]:
    """The public bounds in a JSON or TOML file: column -> [low, high], or categories. Errors: anything else."""
    path = said_path(path, "bounds")
    return checked_bounds(read_written(path, Any, "a bounds"), path.name)


def checked_bounds(value: Any, name: str) -> dict[str, list[float] | list[str]]:
    """Public bounds that came out of a file called `name`. Errors: as `read_bounds`."""
    rule = "a bounds file maps each column to [low, high] or to a list of texts"
    result: dict[str, list[float] | list[str]] = {}
    if not isinstance(value, dict):
        raise UsageError(
            f"{sayable(rule)}; {sayable(name)} holds a {type(value).__name__}; write an object", code="type"
        )
    for column, written in value.items():
        entry = (
            [str(part) if isinstance(part, date) else part for part in written]
            if isinstance(written, list)
            else written
        )
        shown = json.dumps(entry, default=str)[:60]
        if not isinstance(entry, list) or not entry:
            raise UsageError(f"{sayable(rule)}; '{sayable(column)}' has {sayable(shown)}; correct it")
        if all(isinstance(part, str) for part in entry):
            if repeated(entry):
                raise UsageError(
                    f"{sayable(rule)}, each once; '{sayable(column)}' repeats one; remove it", code="unique"
                )
            result[column] = entry
        elif len(entry) == 2 and all(type(part) in (int, float) and abs(part) <= sys.float_info.max for part in entry):
            if not entry[0] < entry[1]:
                raise UsageError(f"{sayable(rule)}, low < high; '{sayable(column)}' has {sayable(entry)}; correct it")
            result[column] = [float(part) for part in entry]
        else:
            raise UsageError(f"{sayable(rule)}; '{sayable(column)}' has {sayable(shown)}; correct it")
    return result


def column_of_bounds(name: str, entry: list[float] | list[str]) -> Column:
    """The column that checked bounds say: a range of numbers or, of two dates (2024-12-31), of days; else a list of
    texts."""
    texts = [part for part in entry if isinstance(part, str)]
    if not texts:
        return Numeric(name, float(entry[0]), float(entry[1]))
    try:
        first, last = map(date.fromisoformat, texts)
    except ValueError:
        return Categorical(name, tuple(texts))
    return Date(name, first, last)


__all__ = [
    "INTERCEPT", "USUAL", "USUAL_GOALS", "VERSION", "Basis", "Bounds", "Categorical", "Classes", "Column", "Date",
    "FoundBy", "Goal", "Kind", "Labels", "Missing",
    "Numeric", "Range", "Scalar", "Scale", "Schema", "SchemaError", "Surveyed", "Target", "UsualGoal", "checked_bounds",
    "column_of_bounds", "editor_schema", "is_name", "read_bounds", "with_names",
]  # fmt: skip
