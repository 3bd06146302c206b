"""What a promise rests on beside the honesty of parties: where the constants come from that map records.

public < survey < read off the records. What follows from several things rests on all that these rest on, so origins are
joined (`|`) along everything that is made of a schema, and never set anew: a survey of columns whose ranges were read
off the records is within ranges that were read off the records.
"""

import math
from collections.abc import Iterable
from typing import Literal, get_args

import msgspec

from dpmpc.errors import sayable
from dpmpc.lazy import dataclass
from dpmpc.records.targets import SchemaError

Bounds = Literal["public", "data", "survey"]
Element = Literal["ranges", "lists", "classes", "kinds", "names", "records", "digits", "dates", "keys"]
ELEMENTS: tuple[Element, ...] = get_args(Element)
SCHEMA: tuple[Element, ...] = ("ranges", "lists", "classes", "kinds", "names")  # all that a schema says
WORDS: dict[Element, str] = {
    "ranges": "ranges", "lists": "categories", "classes": "classes", "kinds": "kinds", "names": "names of columns",
    "records": "numbers of records", "digits": "digits of numbers", "dates": "which columns are dates",
    "keys": "keys of records",
}  # fmt: skip
_ORDER: tuple[Bounds, ...] = ("public", "survey", "data")


def in_order(elements: Iterable[str]) -> tuple[Element, ...]:
    """The elements among these, each once, as they are listed. Errors: ValueError for another."""
    given = set(elements)
    if odd := given - set(ELEMENTS):
        raise ValueError(f"what was read off records is of {', '.join(ELEMENTS)}; got {sorted(odd)[0]!r}")
    return tuple(each for each in ELEMENTS if each in given)


class FoundBy(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """The release that found a schema, and what it promised alone: (epsilon, delta) of the same records. Public.

    `neighbours`: what that compares, as a plan says it; "" where a file does not say. `places`: whether the numbers of
    records are private there. `holds_if`: what it holds under.
    """

    run: str
    epsilon: float
    delta: float
    neighbours: str = ""
    places: bool = False
    holds_if: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not (0 < self.epsilon < math.inf and 0 <= self.delta < 1 and self.run):
            got = f"{self.run[:40]}, {self.epsilon}, {self.delta}"
            raise SchemaError(
                f"what found a schema has a run, an epsilon and a delta of its own; got {sayable(got)}; copy it again"
            )
        if not all(text.isprintable() for text in (self.neighbours, *self.holds_if)):
            raise SchemaError(
                "what found a schema says so in lines of text; got one with other signs; copy it again", code="file"
            )

    def covers(self, neighbours: str, places: bool) -> bool:
        """Whether what it promised is a promise for these neighbours too: the same, or parts of what one owner gives,
        where it is of whole owners. A record's is none of a person or an owner, however often it is added up."""
        if places and not self.places:
            return False
        return self.neighbours == neighbours or (self.neighbours == "owner" and neighbours in ("record", "presence"))


@dataclass(frozen=True)
class Origin:
    """Where constants come from: `bounds` is the last of public, survey and data that any has; `read`: those that were
    read off records, of which a promise says that it holds if they are public; `found`: the earlier releases that
    found any, each once, whose promises are joined to that of every run by it."""

    bounds: Bounds = "public"
    read: tuple[Element, ...] = ()
    found: tuple[FoundBy, ...] = ()

    def __or__(self, other: "Origin") -> "Origin":
        """What rests on both."""
        bounds = max(self.bounds, other.bounds, key=_ORDER.index)
        found = tuple(dict.fromkeys((*self.found, *other.found)))
        return Origin(bounds, in_order((*self.read, *other.read)), found)


PUBLIC = Origin()


def origin_of(bounds: Bounds, read: Iterable[str] = (), found: tuple[FoundBy, ...] = ()) -> Origin:
    """The origin of a schema that says so: one that was read off the records was so in all that it says."""
    return Origin(bounds, in_order((*read, *(SCHEMA if bounds == "data" else ()))), found)


def assumption(read: tuple[Element, ...]) -> str:
    """What a promise holds under where these were read off records; "" for nothing."""
    if not read:
        return ""
    if read == ("classes",):
        return "the list of classes is public (it was read off the records)"
    words = [WORDS[each] for each in read]
    if read[: len(SCHEMA)] == SCHEMA:
        words[len(SCHEMA) - 2 : len(SCHEMA)] = ["kinds and names of columns"]  # both of columns
        listed = ", ".join(words)
        if len(read) == len(SCHEMA):
            listed = "ranges, categories, classes, kinds and names of columns"
    else:
        listed = f"{', '.join(words[:-1])} and {words[-1]}" if len(words) > 1 else words[0]
    return f"{listed} had been fixed without the records (they were read off them)"
