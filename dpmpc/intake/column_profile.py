"""What a look says of one column, for its owner's own eyes."""

from collections.abc import Sequence
from dataclasses import field
from typing import Literal

from dpmpc.errors import number_of
from dpmpc.intake.forms import Forms
from dpmpc.lazy import dataclass

Kind = Literal["number", "category", "date", "time", "identifier", "free text", "constant", "empty", "other"]
HOLLOW: tuple[Kind, ...] = ("identifier", "free text", "constant", "empty", "other")  # of no use to a model
Role = Literal["feature", "target", "owners", "dropped"]
ALIKE = 2  # records that share a value before it is listed


@dataclass(frozen=True)
class ColumnProfile:
    """One column. `unread`: fields that are there but are no number (or date) in a column of these, and `odd`: the
    commonest of them. `least`, `greatest`: of numbers, or of dates in days since 1970-01-01. `values`: the most
    frequent ones as they are compared, and how often; all of them if `listed`. `why`: what makes it of this kind."""

    name: str
    type: str
    kind: Kind
    role: Role
    rows: int
    missing: int
    distinct: int  # of numbers and dates about, where records are more than _EXACT
    unread: int = 0
    least: float | None = None
    greatest: float | None = None
    values: tuple[tuple[str, int], ...] = ()
    listed: bool = False
    odd: tuple[str, ...] = ()
    why: str = ""
    day: bool = False  # a constant that is a date
    whole: bool = True  # none of its numbers has a fraction
    digits: int = 0  # fields with digits that are read as neither a number nor a date
    worded: bool = False  # its owner stated that it has words, whatever they look like
    codes: bool = False  # numbers that seem to stand for something else, and are read as numbers
    merging: str = ""  # two different values that what was stated of units makes one
    scales: tuple[str, str] = (
        "",
        "",
    )  # two fields, with and without what seems a factor
    shares: tuple[str, str] = ("", "")  # two fields, of those that have a sign of per cent and of others, a hundredth
    forms: Forms | None = field(default=None, repr=False)

    @property
    def present(self) -> int:
        """How many fields are there."""
        return self.rows - self.missing

    @property
    def shared(self) -> tuple[str, ...]:
        """The listed values that several records share, in their order."""
        return tuple(sorted(value for value, count in self.values if count >= ALIKE)) if self.listed else ()

    @property
    def dates(self) -> bool:
        """Whether its values are dates."""
        return self.kind == "date" or self.day

    @property
    def used(self) -> bool:
        """Whether a run that reads kinds off the records has features of it."""
        return self.role == "feature" and (
            self.kind in ("number", "date", "time") or (self.kind == "category" and bool(self.shared))
        )

    @property
    def does(self) -> str:
        """What becomes of it."""
        if self.role != "feature":
            return {"target": "what is predicted", "owners": "says who owns a record", "dropped": "left out, as asked"}[
                self.role
            ]
        gone = f"; not read, so missing: {number_of(self.unread, 'field')}" if self.unread else ""
        if self.kind == "number":
            return f"a number{gone}"
        if self.kind == "date":
            return f"days since a date{gone}"
        if self.kind == "time":
            return f"the part of a day{gone}"
        if self.kind == "category" and self.used:
            rare = self.distinct - len(self.shared)
            each = "its one value" if len(self.shared) == 1 else f"each of {len(self.shared)} values"
            without = f"; {number_of(rare, 'rare one has', 'rare ones have')} none" if rare else ""
            return f"a feature for {each}{without}"
        return "left out"

    @property
    def change(self) -> str:
        """The setting or the line of a schema that changes that."""
        if self.role != "feature":
            return ""
        if self.used:
            return dropping([self.name])
        kind = {"identifier": "category", "free text": "category", "category": "category"}.get(self.kind, "number")
        rest = 'categories = ["...", "..."]' if kind == "category" else "low = ..., high = ..."
        return f'schema: kind = "{kind}", {rest}' if self.kind not in ("empty", "constant", "other") else ""


def dropping(names: Sequence[str]) -> str:
    """How a note says that its reader leaves these columns out: a setting, its value as Python writes it."""
    return f"<<drop={quoted(list(names))}>>"


def quoted(value: object) -> str:
    """A value as Python writes it, in which no mark of a setting ends."""
    return repr(value).replace(">>", ">\\x3e")
