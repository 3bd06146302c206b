"""`MeetingSource`: one release of the cells of every column, kept apart by owner, as a source of a plan.

Every column has the cells of a survey (`learning.survey`): missing, zero, sign and octave of numbers, hashed buckets of
texts; a record is in one of them. An owner's vector has a block of all columns' cells for every owner, and its counts
are in its own. So the opened sum has each owner's counts, each with the noise of the release.

Guarantees: a record of owner j changes one cell of each column in block j for another: with weights w of columns the
vectors of two records are at most sqrt(2 sum w^2) apart in L2, 2 sum w in L1 and max w in Linf, and one is sqrt(sum
w^2) from none. Of a column whose words are `named` w^2 is 1 + 4 WEIGHT^2 times as large, and w in L1 1 + 4 WEIGHT times
(`learning.survey_words`). This is a survey's without its moments; a block for every owner costs no noise, but
coordinates. What is
opened tells of single organisations, which a sum over all does not: a site takes part only where its limits say so
(`Source.tells_owners`).
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dpmpc.errors import UsageError, number_of
from dpmpc.intake.hashing import BUCKETS
from dpmpc.lazy import cached_property, dataclass
from dpmpc.learning.source import Floats, Ints, Opening, Source, of_means
from dpmpc.learning.survey import TWICE, Survey
from dpmpc.learning.survey_numbers import CELLS, NUMBER
from dpmpc.learning.survey_words import LETTERS, WEIGHT, Name, names_of
from dpmpc.outcome import Outcome
from dpmpc.privacy.checks import check_count
from dpmpc.privacy.persons import Persons
from dpmpc.privacy.sensitivity import Sensitivity, Weights, arithmetic_bound, owner_weights

if TYPE_CHECKING:
    from dpmpc.intake.table import Table

MOST = 1 << 20  # coordinates


@dataclass(frozen=True)
class MeetingSource(Source):
    """The columns that sites compare, and how many owners there are. `target`: which of them is to be predicted, ""
    for none; `twice`: those whose cells have half the noise of the others'; `buckets`: of each column; `classes`: the
    target's, where they are known, for a first schema; `named`: columns whose words are looked for in public lists
    (`learning.survey_words`), of all owners together. All public.

    `number`: of the owner that the first of `means` is, in the process that makes them; no part of a plan."""

    KIND: ClassVar[str] = "meeting"
    UNITS: ClassVar[tuple[str, ...]] = ("record", "presence", "owner")
    RESULT: ClassVar[str] = "answers.html"
    MAKES: ClassVar[str] = "what sites differ in"
    PURPOSE: ClassVar[str] = "a first meeting of sites"
    DOES: ClassVar[str] = "comparing columns"
    REPORT: ClassVar[str] = "dpmpc.meeting/1"
    columns: tuple[str, ...]
    owners: int
    target: str = ""
    twice: tuple[str, ...] = ()
    buckets: int = BUCKETS
    classes: tuple[str, ...] = ()
    named: tuple[str, ...] = ()
    number: int = 0

    def __post_init__(self) -> None:
        for name in ("columns", "twice", "classes", "named"):
            object.__setattr__(self, name, tuple(map(str, getattr(self, name))))
        check_count("the number of owners", self.owners)
        if self.owners < 2:
            raise UsageError(
                "sites meet where there are several; got one owner; look at its records with describe", code="enough"
            )
        if self.target and self.target not in self.columns:
            raise UsageError(
                f"the target is one of the columns; '{self.target}' is not; name it among them", code="column"
            )
        if self.coordinates > MOST:
            raise UsageError(
                f"a meeting has at most {MOST} cells; {number_of(len(self.columns), 'column')} of {self.owners} owners "
                f"have {self.coordinates}; name fewer columns", code="range"
            )

    @cached_property
    def asks(self) -> Survey:
        """The survey whose cells these are. Errors: as `Survey`."""
        return Survey((), self.columns, self.buckets, twice=self.twice, words=self.named)

    @property
    def cells(self) -> int:
        """Of each column: those of numbers, the first of which is missing, then buckets."""
        return CELLS + self.buckets

    @property
    def block(self) -> int:
        """The coordinates of one owner."""
        return len(self.columns) * self.cells

    @property
    def coordinates(self) -> int:
        return self.owners * self.block + self.asks.coordinates - self.asks.counted

    @cached_property
    def _taken(self) -> Ints:
        """(block,) which coordinates of the survey these are: all but moments."""
        column = np.r_[np.arange(CELLS), np.arange(NUMBER, NUMBER + self.buckets)]
        return np.concatenate([k * (NUMBER + self.buckets) + column for k in range(len(self.columns))]).astype(np.int64)

    @property
    def clip(self) -> float:
        """The L2 norm of one record's vector: what an owner clips its mean to, to be safe from its own errors."""
        return math.sqrt(math.fsum(self.asks.times(name) ** 2 * self._square(name) for name in self.columns))

    def _square(self, name: str) -> float:
        """The squared norm of what a record adds in a column that counts once, at most."""
        return 1 + LETTERS * WEIGHT**2 * (name in self.named)

    @property
    def _length(self) -> float:
        """The largest L1 norm of one record's vector."""
        each = ((self.asks.times(name), name in self.named) for name in self.columns)
        return math.fsum(times * (1 + LETTERS * WEIGHT * named) for times, named in each)

    @property
    def spread(self) -> Sensitivity:
        """How far two records' vectors lie apart."""
        return Sensitivity(2 * self._length, math.sqrt(2.0) * self.clip, TWICE if self.twice else 1.0)

    def by_record(self, sizes: Sequence[int], weights: Weights, dimension: int) -> Sensitivity:
        if len(sizes) != self.owners or weights != "size":
            raise UsageError(
                f"a meeting is of its {self.owners} owners, weighted by their records; got {len(sizes)}, and weights "
                f"{weights!r}; plan again", code="plan"
            )
        return of_means(self.spread, self.clip, sizes, weights, dimension)

    def by_owner(self, sizes: Sequence[int], weights: Weights, dimension: int) -> Sensitivity:
        """All records of an owner replaced: its mean stays in its block, in the convex hull of records' vectors."""
        most = float(owner_weights(sizes, weights).max())
        doubles = arithmetic_bound(self.clip, sizes, weights).within(dimension)
        return (self.spread * most).within(dimension) + doubles

    def by_presence(self, sizes: Sequence[int], weights: Weights, dimension: int) -> Sensitivity:
        absent = Sensitivity(self._length, self.clip, self.spread.linf)
        return of_means(absent, self.clip, sizes, weights, dimension)

    def levels(
        self, neighbours: str, sizes: Sequence[int], weights: Weights, dimension: int, persons: Persons | None = None,
        places: bool = False,
    ) -> dict[str, Sensitivity]:  # fmt: skip
        """As `Source.levels`. Errors: UsageError for places, of which nobody knows how many are filled: shares cannot
        be compared, which is said before anything is spent."""
        if places:
            raise UsageError(
                "a meeting compares shares of public numbers of records; owners here have capacities; give their "
                "numbers of records", code="missing"
            )
        return super().levels(neighbours, sizes, weights, dimension, persons, places)

    @property
    def tells_owners(self) -> bool:
        return True

    def sited(self, owner: int) -> "MeetingSource":
        return replace(self, number=owner)

    def own(self, first: int, end: int) -> NDArray[np.bool_]:
        """Their own blocks, and codes, which are of all owners together."""
        found = np.zeros(self.coordinates, dtype=bool)
        found[first * self.block : end * self.block] = True
        found[self.owners * self.block :] = True
        return found

    def means(self, table: "Table", owner: Ints, sizes: Sequence[int]) -> Iterator[Floats]:
        """As `Source.means`, one owner at a time, each in its own block."""
        first = self.number
        for some in self.asks.means(table, owner, sizes):
            for mean in some:
                yield self.placed(mean, first)[None, :]
                first += 1

    def sums(self, table: "Table", owner: Ints, owners: int) -> Iterator[NDArray[Any]]:
        for term in self.asks.sums(table, owner, owners):
            yield np.stack([self.placed(row, self.number + k) for k, row in enumerate(term)])

    def placed(self, mine: Floats, owner: int) -> Floats:
        """(coordinates,) what a survey of an owner's records sums or means (`asks`), in the owner's block."""
        whole = np.zeros(self.coordinates)
        whole[owner * self.block : (owner + 1) * self.block] = mine[self._taken]
        whole[self.owners * self.block :] = mine[self.asks.counted :]  # codes are of all owners together
        return whole

    def counts(self, total: Floats) -> Floats:
        """(owners, columns, cells) the counts of an opened sum over all records, (coordinates,)."""
        times = np.array([self.asks.times(name) for name in self.columns])
        cells: Floats = np.asarray(total)[: self.owners * self.block]
        return np.asarray(cells.reshape(self.owners, len(self.columns), self.cells) / times[:, None])

    def names(
        self, total: Floats, noise: float, words: Iterable[str], known: Mapping[str, Sequence[str]] | None = None
    ) -> dict[str, dict[int, Name]]:
        """Column -> bucket -> its name, of an opened sum with this noise; words: public candidates; known: by column,
        words that a release of their own has opened."""
        tried, there = tuple(words), known or {}
        counts = self.counts(total).sum(axis=0)
        codes = np.concatenate([np.zeros(self.asks.counted), np.asarray(total)[self.owners * self.block :]])
        found = {}
        for name in self.named:
            each, mine = counts[self.columns.index(name), CELLS:], noise / self.asks.times(name)
            found[name] = names_of(
                name, each, self.asks.coded(codes, name), mine, tried, there.get(name, ())
            )
        return found

    @property
    def reads(self) -> tuple[str, ...]:
        return self.columns

    @property
    def about(self) -> list[str]:
        return [
            f"compares sites, column by column: {', '.join(self.columns)}",
            "what is opened has counts of every owner by itself, each with the noise",
        ]

    def expects(self, sizes: Sequence[int], noise: float, counted: bool = True) -> list[str]:
        from dpmpc.meeting.foresight import lines_of

        return lines_of(self, sizes, noise)

    def outcome(self, opened: Opening) -> Outcome:
        """What differs, and the cells of every column that stand out, site by site."""
        from dpmpc.meeting.told import told

        return told(self, opened)

    def check(self, neighbours: str, dimension: int) -> None:
        super().check(neighbours, dimension)
        if self.number:
            raise UsageError(
                "a plan is the same at every owner; its meeting has the number of one; plan again", code="plan"
            )

    def to_json(self) -> dict[str, Any]:
        value = super().to_json()
        del value["number"]
        return value

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> "MeetingSource":
        if "number" in value:
            raise UsageError(
                "a meeting in a plan has no number; it is the same at every owner; leave it out", code="together"
            )
        return super().from_json(dict(value))


def meeting_in(source: Source) -> MeetingSource:
    """A source that is a meeting, as one. Errors: UsageError for any other."""
    if not isinstance(source, MeetingSource):
        raise UsageError(f"sites are compared by what a meeting opened; this run is of {source.KIND}; name another")
    return source
