"""Columns of which nothing is public but their names and kinds in their file, and what they are after a survey."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields
from typing import Any

from dpmpc.errors import UsageError
from dpmpc.intake.hashing import BUCKETS
from dpmpc.lazy import dataclass
from dpmpc.learning.naming import NamedColumns
from dpmpc.learning.source import Invented
from dpmpc.learning.survey import Survey
from dpmpc.learning.survey_numbers import CELLS, NUMBER
from dpmpc.settings import only_known
from dpmpc.statistics.cells import MOST_CELLS
from dpmpc.statistics.columns import Bucketed, Column, Columns, Quantity
from dpmpc.statistics.intervals import Floats
from dpmpc.synthesis.cuts import CELLS_OF_A_NUMBER, at_most, bounds_of, edges_of

_MOMENTS = 4  # coordinates that a column of numbers has beside its cells, at most
_WIDEST = 1e30  # of a number of which no bound is known yet


@dataclass(frozen=True)
class ToFind(NamedColumns):
    """What a survey is to find. `names`: of all columns, in their order; `texts`: those that hold texts, or both;
    `dates`: those that hold dates; `digits`: decimals of columns of numbers, where they are known, (name, count) each.
    Public."""

    names: tuple[str, ...]
    texts: tuple[str, ...] = ()
    dates: tuple[str, ...] = ()
    digits: tuple[tuple[str, int], ...] = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        for some in (self.texts, self.dates, [name for name, _ in self.digits]):
            if not set(some) <= set(self.names):
                raise UsageError(f"a survey is to find the columns {', '.join(self.names)}; got {some}; plan again")
        self.check_named(self.texts)

    @property
    def survey(self) -> Survey:
        """What is asked of the records."""
        numbers = tuple(name for name in self.names if name not in self.texts)
        return Survey(numbers, self.texts, words=self.named)

    @property
    def at_most(self) -> Columns:
        """What stands in for the columns before the survey: as many cells as they can have and all tables of two still
        fit into a release, which those that are found are held against."""
        many = most_levels(len(self.names))
        made = list[Column]()
        for name in self.names:
            if name in self.texts or many < CELLS_OF_A_NUMBER + _MOMENTS:
                made.append(Bucketed(name, BUCKETS, tuple(range(many))))
            else:
                made.append(Quantity(name, -_WIDEST, _WIDEST))
        return at_most(Columns(tuple(made)))

    def invented(self, numbers: Sequence[str] = ()) -> Iterator[tuple[str, Invented]]:
        """What made-up records hold for a rehearsal: few words, each of many records, or numbers; `numbers`: those of
        `texts` that are made numbers."""
        for name in self.names:
            yield name, ["a", "b", "c"] if name in self.texts and name not in numbers else (0.0, 1.0)

    def found(self, total: Floats, noise: float, least: int = 2) -> Columns:
        """The columns that stand out of the survey's noise. total: its opened sum; noise: its deviation a coordinate,
        in records. Errors: fewer than `least` do."""
        survey, places = self.survey, dict(self.digits)
        records = 0  # of no use where only what stands out is asked
        found = survey.findings(total, records, noise, narrow=survey.names)
        named = self.names_of(survey, total, noise)
        made = dict[str, Column]()
        at, most = 0, most_levels(len(survey.names))
        cells = min(CELLS_OF_A_NUMBER, max(1, most - 1))  # one fewer than there are buckets: numbers have moments too
        for name in survey.names:
            counts, at = total[at : at + NUMBER], at + NUMBER
            filled = total[at : at + survey.buckets] if name in survey.texts else total[:0]
            at += len(filled)
            this = found.columns[name]
            numbers = this.numbers is not None and math.fsum(counts[1:CELLS]) > math.fsum(filled)
            if this.kept and not numbers:
                fullest = sorted(this.kept, key=lambda k: -filled[k])[:most]
                words = tuple(each for each in named.get(name, ()) if each[0] in fullest)
                made[name] = Bucketed(name, this.buckets, tuple(sorted(fullest)), names=words)
            elif this.numbers is not None:
                decimals, dates = 0 if name in self.dates else places.get(name), name in self.dates
                low, high = bounds_of(counts, noise, this.numbers, decimals)
                cuts = edges_of(counts, noise, low, high, cells, decimals)
                made[name] = Quantity(name, low, high, cuts, dates)
        if len(made) < least:
            raise UsageError(
                f"{'two columns' if least == 2 else 'a column'} at least must stand out of the survey's noise; "
                f"{len(made)} did; give <<bounds>>, or raise <<epsilon>>"
            )
        return Columns(tuple(made[name] for name in self.names if name in made))

    def to_json(self) -> dict[str, Any]:
        """What a plan has of it."""
        each = {name: list(getattr(self, name)) for name in ("names", "texts", "dates")}
        return {**each, "digits": dict(self.digits), **self.names_to_json()}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> "ToFind":
        """What `to_json` wrote. Errors: UsageError for what is none."""
        named = {each.name: value[each.name] for each in fields(NamedColumns) if each.name in value}
        known = ("names", "texts", "dates")
        only_known(dict(value), (*known, "digits", *named), "columns that a survey is to find")
        names, texts, dates = (tuple(map(str, value[name])) for name in known)
        return cls(names, texts, dates, tuple(value["digits"].items()), **named)


def most_levels(columns: int) -> int:
    """The most buckets of one column with which all tables of two such columns still fit into a release, with a cell
    for others and one for missing values."""
    pairs = columns * (columns + 1) // 2
    return min(BUCKETS, max(1, math.isqrt(MOST_CELLS // pairs) - 2))
