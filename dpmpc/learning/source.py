"""A source: what owners send of their records, how far it can move, and in which stages it is opened. The plan holds
one; every process derives all numbers of it by itself, so that none has to be believed.

A source whose releases follow from others says so by its `Schedule`: stages before its own releases, at prices that are
fixed beforehand, and stages after them. Each stage is one release in a run of its own, between the same processes.

A new source is a frozen dataclass that inherits `Source` and an entry of `SOURCES`, or an entry point of another
package in the group dpmpc.sources. Its fields are what is public and asked; plan.json has them under its name.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, fields
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from dpmpc.errors import UsageError
from dpmpc.lazy import dataclass
from dpmpc.outcome import Answer, Level, Line, Number, Outcome
from dpmpc.privacy.persons import Persons, larger, person_sensitivity
from dpmpc.privacy.sensitivity import Sensitivity, Weights, arithmetic_bound, owner_sensitivity, owner_weights
from dpmpc.records.origins import Origin
from dpmpc.registry import Registry
from dpmpc.settings import only_known

if TYPE_CHECKING:
    from dpmpc.intake.table import Table
    from dpmpc.learning.adaptive_clipping import ClippingBound
    from dpmpc.privacy.assignment import Parted
    from dpmpc.records.check import Findings
    from dpmpc.records.schema import Schema

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
PART = 1 << 20  # rows of a table whose sum is one term of an owner's
FEW = 1000  # numbers that are shown one by one
ALL = "*"  # the part that a stage of all records is of, where a plan parts them
Invented = tuple[float, float] | Sequence[str]  # what made-up values lie between, or are one of


@dataclass(frozen=True)
class Piece:
    """A block of an owner's vector: how many coordinates it has, and the L1 and L2 norm that it cannot exceed, as it is
    computed in doubles. Public."""

    length: int
    l1: float
    l2: float


@dataclass(frozen=True)
class Stage:
    """One release of another source beside a source's own. Public, and fixed before the first message.

    `name`: of its folder, and of its run behind a "+". `source`: what is sent; where that follows from a stage before,
    one that no possible one exceeds in coordinates. `epsilon`: what it comes to alone at the plan's delta; None: the
    plan's, on other records. `part`: of the data that these records are, "" for those of the plan, `ALL` for all;
    `sizes`: how many of them each owner has. `shared`: how many of the first stages were of these records too, and
    share the promise with it. `asks`: lines that say what is asked, for people.
    """

    name: str
    source: "Source"
    epsilon: float | None = None
    part: str = ""
    sizes: tuple[int, ...] = ()
    shared: int = 0
    asks: tuple[str, ...] = ()


@dataclass(frozen=True)
class Votes:
    """How an owner's vector is decided inside the MPC (`mpc.contract.decisions`): each cell has `each` neighbouring
    coordinates, sums of votes, and one noise. Public.

    `turns`: how far two neighbours' sums of a vote lie apart at most, so that its sign turns only where it is no
    further from 0; `cells`: in how many cells they differ at most. `Source.by_record` is of the cells' margins then,
    whose noise it is, and not of the votes. `within`: the epsilon of the promise that the release is a part of, which
    says how much a failure counts; 0 where it has one of its own."""

    each: int
    turns: float
    cells: int
    within: float = 0.0


@dataclass(frozen=True)
class Schedule:
    """The stages of a source, in order: those that its own releases follow from, which share the promise with them, and
    those that follow from its own, on another part of the data."""

    before: tuple[Stage, ...] = ()
    after: tuple[Stage, ...] = ()


@dataclass(frozen=True)
class Sum:
    """What a release opened, public: the sum over records, or over owners with equal weights, (d,); what it is divided
    by for the mean; the scale of the noise on each coordinate, which for Gaussian noise is its deviation."""

    total: Floats
    count: int
    noise: float


@dataclass(frozen=True)
class Following:
    """What is sent after a stage: the source, with that stage no more in its schedule; the length of its vectors, and
    the schema that maps records, where they are others than before."""

    source: "Source"
    dimension: int | None = None
    schema: dict[str, Any] | None = None


@dataclass(frozen=True)
class Opening:
    """What the releases of a plan have opened, with what is public about it: all that an outcome is made of.

    `sums`: of its own releases, in order; `owners`: those whose records are in the last, of `everybody`; `sizes`: how
    many records these have, or places for them where they are not `counted`. `divisor`: what a sum over all owners is
    divided by. `reach`: how many `Sum.noise` a coordinate's noise stays within with at least this probability, by the
    exact law. `schema`: of the records, as JSON values; `draft`: what was known of it before a survey.
    `names`: what `everybody` is called, by number; () where owners have no names. `promised`: the (epsilon, delta) of
    all releases together, for these `neighbours`, under what is in `holds_if`.
    """

    run: str
    data: str
    sums: tuple[Sum, ...]
    owners: tuple[int, ...]
    everybody: int
    sizes: tuple[int, ...]
    counted: bool
    divisor: int
    releases: int
    guarantee: str
    reach: Callable[[float], float]
    schema: dict[str, Any] | None = None
    draft: "Schema | None" = None
    names: tuple[str, ...] = ()
    promised: tuple[float, float] = (math.inf, 1.0)
    neighbours: str = ""
    holds_if: tuple[str, ...] = ()

    @property
    def last(self) -> Sum:
        return self.sums[-1]

    @property
    def mean(self) -> Floats:
        """(d,) the mean that the last release opened, with its noise."""
        return np.asarray(self.last.total / self.last.count)

    def number(self, value: float, times: float = 1.0) -> Number:
        """A coordinate of the mean, times a positive factor, with the deviation of its noise and its interval at
        `Level().confidence`: the noise's exact law is symmetric, so that the interval is."""
        noise, value = times * self.last.noise / self.last.count, times * value
        half = self.reach(Level().confidence) * noise
        return Number(value, noise, value - half, value + half)


class Source(ABC):
    """What owners send in each release: vectors of known length and norm, which a change of records can move so far."""

    KIND: ClassVar[str]  # its name in plans and in `SOURCES`
    UNITS: ClassVar[tuple[str, ...]] = ("record", "presence", "person", "owner")  # the kinds of neighbours it knows
    TRAINS: ClassVar[bool] = False  # whether its releases, one after the other, train a model
    OF_RECORDS: ClassVar[bool] = True  # whether dpmpc makes the vectors of records; else a program of the owner's does
    BY_SCHEMA: ClassVar[tuple[str, ...]] = ()  # fields that a plan with a schema leaves out, as the schema says them
    RESULT: ClassVar[str] = "opened.json"  # the last file that a run's folder gets of what was opened
    MAKES: ClassVar[str] = "the sums"  # what comes of the releases, for people
    PURPOSE: ClassVar[str] = ""  # what owners bring their data together for, for people, where that is always the same
    DOES: ClassVar[str] = "making the release"  # what a process is busy with meanwhile
    BEFORE: ClassVar[str] = "one that its own follow from"  # what releases of earlier stages were
    REPORT: ClassVar[str] = "dpmpc.opened/1"  # the schema of the report.json of its one release
    STRICT: ClassVar[bool] = False  # whether a run ends at fields that are spelled otherwise than an owner said
    DRAWS: ClassVar[bool] = False  # whether rows are drawn of all that its run opened

    @property
    @abstractmethod
    def clip(self) -> float:
        """The L2 norm that an owner's vector cannot exceed."""

    @property
    def coordinates(self) -> int | None:
        """The length of an owner's vector, where the source alone says it."""
        return None

    @property
    def pieces(self) -> tuple[Piece, ...]:
        """Into which blocks an owner's vector falls, in order; what checks of owners hold each to. (): the whole has a
        norm, and no more is known."""
        return ()

    @property
    def votes(self) -> Votes | None:
        """How its one release is decided inside the MPC; None: it is opened as it is, with noise on each coordinate."""
        return None

    @property
    def adaptive(self) -> "ClippingBound | None":
        """How the clipping bound follows the vectors at the first release; None if it does not."""
        return None

    @property
    def about(self) -> list[str]:
        """Lines on what is sent, for whoever decides on taking part, where no schema says it. Public."""
        if not self.OF_RECORDS:
            return ["no schema: each owner brings vectors of its own"]
        read = f"reads {', '.join(self.reads)}" if self.reads else "vectors are made of each owner's records"
        return [f"no schema: {read}"]

    @property
    def tells_owners(self) -> bool:
        """Whether what is opened tells of single owners, and not of all their records together: then an organisation
        takes part only where its limits allow it by name. The promise is the same."""
        return any(stage.source.tells_owners for stage in (*self.schedule.before, *self.schedule.after))

    def sited(self, owner: int) -> "Source":
        """The source as the process of this owner alone asks its records, whom `means` and `sums` then begin with: the
        same, unless owners' sums are kept apart."""
        return self

    def own(self, first: int, end: int) -> "NDArray[np.bool_] | None":
        """(dimension,) the coordinates in which vectors of owners first .. end - 1 may be other than 0; None: in all.
        What owners send elsewhere is in no sum: parties leave it out before they check or add."""
        return None

    @property
    def draft(self) -> "Schema | None":
        """What is known of the schema of records while a survey that decides on it is still to come; else None."""
        return None

    @property
    def origin(self) -> Origin:
        """Where the constants come from that the source itself has, such as those of models."""
        return Origin()

    @property
    def settled(self) -> dict[str, Any]:
        """The settings of a command that it has settled, as they would have to be given."""
        return {}

    @property
    def listed(self) -> Mapping[str, Sequence[str]]:
        """By column, the words that are values there, whatever they mean elsewhere, such as NA."""
        return {}

    def unit_said(self, neighbours: str, said: str | None) -> str:
        """What the promise compares, for people. `said`: the usual sentence of these neighbours, None where there is
        none."""
        return said or neighbours

    @property
    def comes_to(self) -> str:
        """Where a site of a consortium finds what came of a run, for people."""
        return f"{self.MAKES} come to `run/{self.RESULT}`"

    def purpose(self, data: str, schema: "Schema | None") -> str:
        """What owners brought these data together for, for people. `schema`: of the records, if they have one."""
        return f"{self.PURPOSE or f'{self.MAKES} of {self.KIND}'} ('{data}')"

    def expects(self, sizes: Sequence[int], noise: float, counted: bool = True) -> list[str]:
        """How far what will be opened is off, a line each, before anything is spent: from public numbers. `noise`: its
        deviation in the sum over all records; `counted`: whether sizes are of records, or of places for them."""
        return []

    def held_against(self, table: "Table", schema: "Schema | None", sizes: Sequence[int] = ()) -> "Findings":
        """What becomes of a table's records, for their owner's eyes: nothing is refused here, all is said. `schema`:
        of the records, or its draft, if the plan has one; `sizes`: how many records the owners have."""
        from dpmpc.records.check import check_reads

        return check_reads(self.reads, table, sizes)

    def invented(self, schema: "Schema | None") -> Iterator[tuple[str, Invented]]:
        """What made-up records hold, column by column, for a rehearsal. `schema` as of `held_against`. By default the
        columns that are read hold numbers between 0 and 1."""
        yield from ((name, (0.0, 1.0)) for name in self.reads)

    @property
    def schedule(self) -> Schedule:
        """The stages before and after the source's own releases."""
        return Schedule()

    def follows(self, opened: Sum) -> Following:
        """What is sent when the first stage before has opened this: a function of public numbers, with the same value
        on every processor. Errors: UsageError where nothing can follow."""
        raise UsageError(f"no stage comes before the releases of {self.KIND}; one opened a sum; plan again")

    def ends(self, stage: Stage, opened: Sequence[Sum], plan: Any) -> "Source":
        """What is sent in a stage after, when the releases of `plan`, the source's own, have opened these sums. As
        `follows`."""
        return stage.source

    def outcome(self, opened: Opening) -> Outcome:
        """What its own releases, which have opened this, mean: numbers, files, a section of the report, lines. A
        function of public numbers. By default the mean, and each of its coordinates with an interval if they are few.
        """
        mean, noise = opened.mean.tolist(), opened.last.noise / opened.last.count
        lines = tuple(Line((str(k),), "mean", opened.number(value)) for k, value in enumerate(mean))
        answers = (Answer(self.KIND, ("coordinate",), lines),) if len(lines) <= FEW else ()
        return Outcome(answers, section={"mean": mean, "deviation": noise}, about=(opened.guarantee,))

    def concluded(self, stages: Mapping[str, tuple["Source", Opening]]) -> Outcome:
        """What the stages after its own releases mean for these, by name, with what was sent there: beside the files
        of the run itself. By default nothing: each has its own outcome in its folder."""
        return Outcome()

    def parted(self, data_id: str) -> "Parted | None":
        """Into which parts the source's own releases and the stages after part the records of this digest; None: all
        are in all."""
        return None

    @property
    def asked_first(self) -> int:
        """How many of the first stages were or are questions, whose answers are for people."""
        return 0

    @property
    def deciding(self) -> int:
        """The number of the stage before that the length of its own releases follows from."""
        return 0

    def longest(self, count: int, noise: float) -> int | None:
        """The most coordinates that its own releases have when the deciding stage has opened a sum over so many, with
        this noise; None where any will do."""
        return self.coordinates

    @property
    def reads(self) -> tuple[str, ...]:
        """The columns of records that are read; () where that is not known beforehand."""
        return ()

    def check_records(self, table: "Table") -> None:  # noqa: B027
        """Errors: records that do not fit, which an owner hears before anything is sent; by default none."""

    def means(self, table: "Table", owner: Ints, sizes: Sequence[int]) -> Iterator[Floats]:
        """(owners, dimension) the vector of each owner, some owners at a time: the mean over its records' vectors.
        Secret. `owner`: (n,) whose each record is, -1 for nobody's. Errors: UsageError for a source that reads no
        table."""
        raise UsageError(f"{self.KIND} is not computed of a table in one reading; plan tables, or a survey")

    def sums(self, table: "Table", owner: Ints, owners: int) -> Iterator[NDArray[Any]]:
        """(owners, dimension) what is added up over each owner's records, a term for every `PART` rows of the table or
        one for all: the same terms, where some of the rows are read alone, by whoever. As `means`."""
        raise UsageError(f"{self.KIND} is not computed of a table in one reading; plan tables, or a survey")

    def mean_of(self, total: NDArray[Any], sizes: Sequence[int]) -> Floats:
        """(owners, dimension) what `means` makes of the sum of all terms."""
        return np.asarray(total / np.array(sizes, dtype=np.float64)[:, None])

    @abstractmethod
    def by_record(self, sizes: Sequence[int], weights: Weights, dimension: int) -> Sensitivity:
        """How far one record, replaced by any other, moves the weighted mean of the owners' vectors, as computed in
        doubles and before rounding; every norm is known."""

    def by_owner(self, sizes: Sequence[int], weights: Weights, dimension: int) -> Sensitivity:
        """The same of one owner's whole vector, replaced by any other."""
        factors = owner_factors(sizes, weights)
        return owner_sensitivity(self.clip, factors, sum(factors)).within(dimension)

    def by_presence(self, sizes: Sequence[int], weights: Weights, dimension: int) -> Sensitivity | None:
        """The same of one record that is there or is not: the zero vector in its place, the number of records as it
        was. None: nothing is proved, and no such promise is made."""
        return None

    def by_person(
        self, persons: Persons | None, sizes: Sequence[int], weights: Weights, dimension: int
    ) -> Sensitivity | None:
        """The same of one person replaced, who has so many places at so many owners (`privacy.persons`). None: it may
        have any number of records at every owner. None is returned where nothing is proved."""
        whole = {size: self.by_owner((size,), weights, dimension) for size in set(sizes)}
        if persons is None:
            return person_sensitivity(whole, whole, sizes, weights, Persons(1, len(sizes)))
        if self.by_presence(sizes, weights, dimension) is None:
            return None
        place = dict[int, Sensitivity]()
        for size in whole:
            absent = self.by_presence((size,), weights, dimension)
            assert absent is not None
            place[size] = larger(self.by_record((size,), weights, dimension), absent)
        return person_sensitivity(place, whole, sizes, weights, persons)

    def levels(
        self,
        neighbours: str,
        sizes: Sequence[int],
        weights: Weights,
        dimension: int,
        persons: Persons | None = None,
        places: bool = False,
    ) -> dict[str, Sensitivity]:
        """How far the weighted mean moves, for each kind of neighbours of which that is proved where the promise is
        made for `neighbours`. `persons`: what owners keep of each. `places`: `sizes` are numbers of places, and a
        record may be replaced by none."""
        whole = {
            "owner": self.by_owner(sizes, weights, dimension),
            "record": self.by_record(sizes, weights, dimension),
            "presence": self.by_presence(sizes, weights, dimension),
            "person": self.by_person(persons, sizes, weights, dimension),
        }
        return known_of(whole, places)

    def promised(self, neighbours: str) -> Self:
        """The source as it is where the promise is for these neighbours."""
        return self

    def check(self, neighbours: str, dimension: int) -> None:
        """Errors: UsageError for neighbours that it is not proved for, and for another length than its own."""
        if neighbours not in self.UNITS:
            raise UsageError(
                f"<<neighbours>> of {self.KIND} are {' or '.join(self.UNITS)}; got {neighbours!r}; choose one of them",
                code="choice",
            )
        if self.coordinates is not None and self.coordinates != dimension:
            raise UsageError(
                f"a plan's dimension is its source's; the plan has {dimension}, its {self.KIND} {self.coordinates}; "
                "plan again",
                code="plan",
            )

    def to_json(self) -> dict[str, Any]:
        """Its fields as JSON values."""
        return asdict(self)  # type: ignore[call-overload,no-any-return]

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> Self:
        """The source that `to_json` wrote. Errors: UsageError, TypeError for something else."""
        only_known(value, (each.name for each in fields(cls)), f"a plan's {cls.KIND}")  # type: ignore[arg-type]
        return cls(**{name: tuple(each) if isinstance(each, list) else each for name, each in value.items()})


def known_of(found: dict[str, Sensitivity | None], places: bool) -> dict[str, Sensitivity]:
    """What is known. Of places that a record may leave empty: the larger of its replacement and its absence."""
    known = {name: moved for name, moved in found.items() if moved is not None}
    if places and "record" in known:
        if "presence" not in known:
            del known["record"]
        else:
            known["record"] = larger(known["record"], known["presence"])
    return known


def owner_factors(sizes: Sequence[int], weights: Weights) -> Sequence[int]:
    """What each owner multiplies its vector by: 1, or n_j with weights n_j/n."""
    return [1] * len(sizes) if weights == "equal" else sizes


def of_means(spread: Sensitivity, norm: float, sizes: Sequence[int], weights: Weights, dimension: int) -> Sensitivity:
    """How far one record moves the weighted mean of owners' means of records' vectors: two records' vectors, of norm at
    most `norm`, differ by `spread`.

    Guarantees: n_j - 1 of the n_j terms stay, so owner j's mean moves by spread / n_j, in every norm, and the weighted
    mean by max_j w_j spread / n_j; doubles add `arithmetic_bound`.
    """
    owner_weights(sizes, weights)
    share = 1 / sum(sizes) if weights == "size" else 1 / (len(sizes) * min(sizes))
    return (spread * share).within(dimension) + arithmetic_bound(norm, sizes, weights).within(dimension)


SOURCES: Registry[type[Source]] = Registry(
    "source",
    "dpmpc.sources",
    {
        "learning": "dpmpc.learning.method:Learning",
        "evaluated": "dpmpc.statistics.held_out:Evaluated",
        "study": "dpmpc.statistics.study:Study",
        "vectors": "dpmpc.learning.vectors:Vectors",
        "survey": "dpmpc.learning.survey:Survey",
        "meeting": "dpmpc.meeting.source:MeetingSource",
        "naming": "dpmpc.learning.naming:NamingSource",
        "tables": "dpmpc.statistics.tables:Tables",
        "surveyed_tables": "dpmpc.synthesis.surveyed_tables:SurveyedTables",
        "synthesis": "dpmpc.synthesis.source:Synthesis",
    },
    lambda thing: isinstance(thing, type) and issubclass(thing, Source),
)
