"""What a schema says of the target, and what all kinds of columns share."""

from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from dpmpc.errors import UsageError, sayable
from dpmpc.intake.spelling import comparing, listed

Floats = NDArray[np.float64]
Codes = NDArray[np.int32]
Scalar = str | int | float | bool


class SchemaError(UsageError, ValueError):
    """A schema that cannot be; a ValueError too, for msgspec adds the place in the file to those."""


class Labels(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="kind", tag="label"):
    """The two classes of a target column: values that mean +1, and values that mean -1 (None: all others)."""

    name: str
    positive: tuple[Scalar, ...]
    negative: tuple[Scalar, ...] | None
    positive_name: str = ""
    negative_name: str = ""

    def __post_init__(self) -> None:
        positive, negative = as_compared(self.positive), None if self.negative is None else as_compared(self.negative)
        both = (*positive, *(negative or ()))
        if not positive or negative == () or repeated(both):
            raise SchemaError(
                f"a label has two classes that share no value; '{self.name}' has {sayable(list(both))}", code="unique"
            )
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
        spelled = as_compared(self.classes)
        if len(spelled) < 2 or repeated(spelled):
            raise SchemaError(
                f"a target has at least two classes, each once; '{self.name}' has {sayable(list(spelled)[:8])}"
            )
        msgspec.structs.force_setattr(self, "classes", spelled)

    @property
    def names(self) -> tuple[str, ...]:
        """What the classes are called."""
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
        set_range(self, strict=True)

    def values(self, values: Floats) -> Floats:
        """(n,) targets in [-1, 1], NaN where missing or no finite number."""
        return self.scaled(np.clip(np.where(np.isfinite(values), values, np.nan), self.low, self.high))

    def scaled(self, values: Floats) -> Floats:
        """(n,) the same, of which those that lie beyond the range stay beyond: what is predicted is held against
        these."""
        values = np.where(np.isfinite(values), values, np.nan)
        return np.asarray(2 * ((values - self.low) / (self.high - self.low)) - 1)

    def original(self, y: Floats) -> Floats:
        """(n,) predictions in the target's own units, from predictions on the scale of [-1, 1]."""
        return np.asarray(self.low + (y + 1) / 2 * (self.high - self.low), dtype=np.float64)


Target = Labels | Classes | Range


def as_compared(values: tuple[Scalar, ...]) -> tuple[str, ...]:
    """What the values of a public list are called."""
    return tuple(listed(str(value)) for value in values)


def repeated(values: Sequence[str]) -> bool:
    """Whether two of some values are compared as one."""
    return len(set(map(comparing(values), values))) < len(values)


def set_range(part: Any, *, strict: bool) -> None:
    """Makes the ends of a column's range floats. Errors: they are no range; `strict`: nor one value."""
    low, high = float(part.low), float(part.high)
    if not (np.isfinite(high - low) and (low < high or (low == high and not strict))):
        raise SchemaError(
            f"a range runs from low to high; '{part.name}' has [{sayable(low)}, {sayable(high)}]; correct it or "
            "leave it out",
            code="range",
        )
    msgspec.structs.force_setattr(part, "low", low)
    msgspec.structs.force_setattr(part, "high", high)
