"""The kinds of columns that a schema has, each with the features that it writes of one record's value."""

import datetime
import math
from typing import Literal

import msgspec
import numpy as np
from numpy.typing import NDArray

from dpmpc.errors import sayable
from dpmpc.records.spline_basis import bends, evenly, usual
from dpmpc.records.targets import Codes, Floats, Scalar, SchemaError, as_compared, repeated, set_range

Scale = Literal["centred", "log", "unit"]
Part = Literal["days", "month", "weekday", "hour"]
ANYTHING = 2.0**40  # a range as wide as that says nothing of a column


class Numeric(
    msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True, tag_field="kind", tag="number"
):
    """One feature: the column clipped to [low, high] and mapped on [-1, 1], linearly, or by its logarithm.

    `scale` "log" is for what is spread over orders of magnitude: log v if low > 0, log(1 + v) if low = 0. "unit" maps
    linearly on [0, 1], as the papers do. A missing value becomes the middle; a column with low = high becomes 0.
    With `knots` the column has the functions of `records.spline_basis` too, and a 0/1 feature for a missing value.
    """

    name: str
    low: float
    high: float
    scale: Scale = "centred"
    knots: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        set_range(self, strict=False)
        _set_knots(self)
        if self.knots and not self.low <= self.knots[0] < self.knots[-1] <= self.high:
            raise SchemaError(
                f"knots lie in the range, {sayable(self.low):g} to {sayable(self.high):g}; '{self.name}' has "
                f"{sayable(self.knots[0]):g} to "
                f"{sayable(self.knots[-1]):g}; mend them",
                code="range",
            )
        if self.scale == "log" and self.low < 0:
            raise SchemaError(
                f"a logarithmic range has no negative values; '{self.name}' begins at {sayable(self.low):g}; leave "
                "scale out",
                code="range",
            )
        _check_told_apart(self)

    @property
    def features(self) -> tuple[str, ...]:
        return (self.name, *_bent(self), f"{self.name} missing") if self.knots else (self.name,)

    @property
    def longest(self) -> float:
        """The largest norm of its features."""
        points = np.array([self.low, self.high, *self.knots, np.nan])
        return _longest(self, points)

    @property
    def usual(self) -> float:
        """The squared norm that a record's features have about: of values that are spread evenly."""
        return 1 / 3 + usual(len(self.knots))

    def write(self, values: Floats, out: Floats) -> None:
        """Puts the scaled values (n,), NaN where missing, into out (n, 1), or with knots into more columns."""
        if self.knots:
            ends = np.array(self.knots)
            if self.scale == "log":  # what is linear between two knots is so in the logarithm
                out[:, 1:-1] = bends(*(self._log(np.clip(v, self.low, self.high)) for v in (values, ends)))
            else:
                out[:, 1:-1] = bends(values, ends)
            out[:, -1] = np.isnan(values)
        spread = self.high - self.low
        if spread == 0:
            out[:, 0] = 0.0
            return
        clipped = np.clip(values, self.low, self.high)
        if self.scale == "log":
            scaled = self._log(clipped) / self._log(np.array([self.high]))
        else:
            scaled = (clipped - self.low) / spread
        scaled[np.isnan(scaled)] = 0.5
        out[:, 0] = scaled if self.scale == "unit" else np.clip(2 * scaled - 1, -1.0, 1.0)

    def position(self, values: Floats) -> Floats:
        """(n,) where values lie on the scale on which all features are linear between two knots; NaN where missing."""
        held = np.clip(values, self.low, self.high)
        return self._log(held) if self.scale == "log" else np.asarray(held)

    def _log(self, values: Floats) -> Floats:
        """How far above low the logarithms are."""
        return np.asarray(np.log(values / self.low) if self.low > 0 else np.log1p(values))


class Categorical(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="kind", tag="category"):
    """One 0/1 feature for each category of a list; a value that is missing or not in the list is all zeros."""

    name: str
    categories: tuple[Scalar, ...]

    def __post_init__(self) -> None:
        spelled = as_compared(self.categories)
        if not spelled or repeated(spelled):
            what = "repeats one" if spelled else "has none"
            raise SchemaError(
                f"a category list has each value once, numbers compared as numbers; '{self.name}' {sayable(what)}",
                code="unique",
            )
        msgspec.structs.force_setattr(self, "categories", spelled)

    @property
    def values(self) -> tuple[str, ...]:
        """What the categories are called."""
        return tuple(str(category) for category in self.categories)

    @property
    def features(self) -> tuple[str, ...]:
        return tuple(f"{self.name}={category}" for category in self.values)

    @property
    def longest(self) -> float:
        """The largest norm of its features."""
        return 1.0

    @property
    def usual(self) -> float:
        """As of `Numeric`."""
        return 1.0


class Date(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True, tag_field="kind", tag="date"):
    """A date, whose `parts` are features.

    `days`: from `first` to `last` mapped linearly on [0, 1], clipped, with its time of day; the middle where it is
    missing. `month` (12) and `weekday` (7): a 0/1 feature each. `hour`: the time of day mapped on [0, 1].
    """

    name: str
    first: datetime.date
    last: datetime.date
    parts: tuple[Part, ...] = ("days",)

    def __post_init__(self) -> None:
        if not self.first < self.last or not self.parts or len(set(self.parts)) < len(self.parts):
            raise SchemaError(
                f"a date runs from `first` to a later `last`, and has parts, each once; '{self.name}' has "
                f"{sayable(self.first)}"
                f" to {sayable(self.last)}, {sayable(list(self.parts))}; correct it",
                code="range",
            )

    @property
    def features(self) -> tuple[str, ...]:
        names = {
            "days": (self.name,),
            "month": tuple(f"{self.name} month={k}" for k in range(1, 13)),
            "weekday": tuple(f"{self.name} weekday={day}" for day in ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")),
            "hour": (f"{self.name} hour",),
        }
        return tuple(name for part in self.parts for name in names[part])

    @property
    def reads(self) -> Literal["date", "time"]:
        """What its values are read as: where the hour alone is asked for, times of day without a date too."""
        return "time" if self.parts == ("hour",) else "date"

    @property
    def longest(self) -> float:
        """The largest norm of its features: 1 a part."""
        return math.sqrt(len(self.parts))

    @property
    def usual(self) -> float:
        """As of `Numeric`: a third for days and hours, 1 for months and weekdays."""
        return sum(1.0 if part in ("month", "weekday") else 1 / 3 for part in self.parts)

    @property
    def low(self) -> float:
        """`first` in days since 1970-01-01."""
        return float((self.first - datetime.date(1970, 1, 1)).days)

    @property
    def high(self) -> float:
        """`last` in days since 1970-01-01."""
        return float((self.last - datetime.date(1970, 1, 1)).days)

    def code(self, part: str, values: Floats) -> Codes:
        """(n,) the months, from 0, or weekdays, from Monday 0, of days since 1970-01-01; -1 where one is missing."""
        there = np.isfinite(values)
        days = np.floor(np.clip(np.where(there, values, 0.0), -719162, 2932896)).astype(np.int64)  # years 1 to 9999
        if part == "month":
            found = days.astype("datetime64[D]").astype("datetime64[M]").astype(np.int64) % 12
        else:
            found = (days + 3) % 7  # 1970-01-01 was a Thursday
        return np.where(there, found, -1).astype(np.int32)


class Surveyed(
    msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True, tag_field="kind", tag="surveyed"
):
    """A column as a private survey found it: numbers, texts in hashed buckets, or both; and whether one is missing.

    `number`: whether numbers have a feature: clipped to [low, high] and mapped linearly on [-1, 1], 0 where there is
    none. Each of the `kept` of `buckets` buckets has a 0/1 feature, and so has a missing value if `missing`. With
    `knots` numbers have the functions of `records.spline_basis` too. `names`: the word that most of a kept bucket's
    records have, of those buckets of which that is known: what its feature is called.
    """

    name: str
    number: bool = False
    low: float = 0.0
    high: float = 0.0
    buckets: int = 1
    kept: tuple[int, ...] = ()
    missing: bool = False
    knots: tuple[float, ...] = ()
    names: tuple[tuple[int, str], ...] = ()

    def __post_init__(self) -> None:
        set_range(self, strict=False)
        _set_knots(self)
        if self.knots and not self.number:
            raise SchemaError(f"knots are of numbers; '{self.name}' has none; leave knots out", code="together")
        if len(set(self.kept)) < len(self.kept) or not all(0 <= k < self.buckets for k in self.kept):
            raise SchemaError(
                f"kept buckets are different numbers from 0 on; '{self.name}' has {sayable(list(self.kept)[:8])}"
            )

        words = dict(self.names)
        if len(words) < len(self.names) or not words.keys() <= set(self.kept) or not all(map(is_name, words.values())):
            raise SchemaError(
                f"names are of kept buckets, each a line of text; those of '{self.name}' are others; correct them"
            )

    @property
    def features(self) -> tuple[str, ...]:
        words = dict(self.names)
        return (
            *((self.name, *_bent(self)) if self.number else ()),
            *(f"{self.name}={words[k]} [#{k}]" if k in words else f"{self.name}#{k}" for k in self.kept),
            *((f"{self.name} missing",) if self.missing else ()),
        )

    @property
    def longest(self) -> float:
        """The largest norm of its features: a value is a number, a text, or missing."""
        points = np.array([self.low, self.high, *self.knots]) if self.number else np.array([np.nan])
        return max(_longest(self, np.column_stack([points, np.full(len(points), -1.0)])), 1.0)

    @property
    def usual(self) -> float:
        """As of `Numeric`; the line runs over two deviations on either side of the mean."""
        return 1.0 if self.kept or not self.number else 1 / 4 + usual(len(self.knots))

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
        if self.knots:
            at = len(self.knots)
            out[:, 1:at] = bends(numbers, np.array(self.knots))
        text = np.isinf(numbers)
        for k in self.kept:
            out[:, at] = text & (place == k)
            at += 1
        if self.missing:
            out[:, at] = self.gone(values)

    def gone(self, values: Floats) -> NDArray[np.bool_]:
        """(n,) whether each value is missing: neither a number nor a text."""
        return np.isnan(values[:, 0]) | (np.isinf(values[:, 0]) & (values[:, 1] < 0))


def is_name(word: str) -> bool:
    """Whether a word may be a name, whoever says it: a schema, a plan, a list or what was opened. It is a line of
    characters that only stand for themselves. Refused are controls, marks that turn the direction of a text, what has
    no width, spaces of other kinds, private and unassigned characters, and words that the pages have themselves, and
    what a spreadsheet would take for a formula."""
    if not word or not word.isprintable() or len(word) > 64 or word != word.strip():
        return False
    return word not in ("(other)", "(missing)", "missing") and not word.startswith(("bucket ", "=", "+", "-", "@"))


Column = Numeric | Categorical | Date | Surveyed


def with_knots(column: Column) -> Column:
    """The column as an additive schema has it: a number whose range is known and whose knots are not stated has them
    evenly."""
    if not isinstance(column, Numeric) or column.knots or not -ANYTHING < column.low < column.high < ANYTHING:
        return column
    return msgspec.structs.replace(column, knots=evenly(column.low, column.high, column.scale == "log"))


def _longest(column: Numeric | Surveyed, points: Floats) -> float:
    """The largest norm of the features of these values: where they are linear between two, of all values."""
    X = np.empty((len(points), len(column.features)))
    column.write(points, X)
    return math.sqrt(float(np.einsum("nd,nd->n", X, X).max()))


def _check_told_apart(column: Numeric) -> None:
    """Errors: the ends of a range or two knots are not told apart on its scale: a logarithm of 600 orders of magnitude
    is no number, those of two knots that are a rounding apart are one. Features would be no numbers for some records,
    and whether a run ends would tell that it has them."""
    if not column.low < column.high:
        return
    with np.errstate(all="ignore"):
        at = column.position(np.array(sorted({column.low, *column.knots, column.high})))
    if not (np.isfinite(at).all() and (np.diff(at) > 0).all()):
        raise SchemaError(
            f"the ends of a range and its knots lie apart on its scale; '{column.name}' has {sayable(column.low):g} to "
            f"{sayable(column.high):g} on a logarithmic one; leave scale out, or mend them",
            code="range",
        )


def _bent(column: Numeric | Surveyed) -> tuple[str, ...]:
    return tuple(f"{column.name}~{k}" for k in range(1, len(column.knots)))


def _set_knots(column: Numeric | Surveyed) -> None:
    knots = tuple(float(knot) for knot in column.knots)
    if knots and (len(knots) < 2 or not all(map(math.isfinite, knots)) or sorted(set(knots)) != list(knots)):
        shown = list(knots)[:8]
        raise SchemaError(
            f"knots are two or more numbers in rising order; '{column.name}' has {sayable(shown)}; mend them",
            code="range",
        )
    msgspec.structs.force_setattr(column, "knots", knots)
