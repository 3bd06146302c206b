"""What was asked of a run, and public facts: the fields of a plan, and what is read off them.

Whatever takes an `Asked` needs nothing that has to be derived: the checks of what was asked, and the derivation itself.
"""

import hashlib
from abc import ABC, abstractmethod
from pathlib import Path
from typing import Any

from dpmpc.aggregation.plan.names import Names
from dpmpc.aggregation.plan.settings import Attendance, Computing, Noise, PromiseSettings
from dpmpc.lazy import cached_property, dataclass
from dpmpc.learning.adaptive_clipping import ClippingBound
from dpmpc.learning.method import Learning, learning_of
from dpmpc.learning.source import Source, owner_factors
from dpmpc.privacy.data_names import data_digest
from dpmpc.privacy.mechanism import Mechanism
from dpmpc.privacy.persons import Persons
from dpmpc.privacy.sensitivity import Sensitivity, Weights
from dpmpc.records.origins import Bounds, Origin, origin_of
from dpmpc.records.schema import FoundBy, Schema

Presence = tuple[int, ...]  # the owners whose vectors are in a sum, in order


@dataclass(frozen=True)
class Attempt:
    """Which attempt of a run this is, and the release that it begins with. It belongs to the run, not to the plan."""

    number: int = 0
    first_release: int = 0


FIRST_ATTEMPT = Attempt()
AGREED = Attempt(-1, 0)  # the parties agree on the attempt when they meet


@dataclass(frozen=True, kw_only=True)
class Asked(PromiseSettings, Noise, Computing, Attendance, ABC):
    """One run: settings, chosen where nobody had said them, and public facts. `schema`: what maps every owner's records
    into vectors (`records.schema.Schema` as JSON values), None where the caller brings vectors; its constants are
    public, or were read off records (`bounds`, which it says where there is one; `rests_on`: what else was that the
    releases rest on, `origin` has all of it). `sizes`: records of each owner (of
    use to `weights="size"` and to record-level neighbours). `released`: what stages of the same run have released;
    the promise is of all. While there are stages to come, `dimension` is the largest that they can lead to.
    `capacity`: sizes are numbers of places, which records may leave empty, so that how many there are is private.
    `part`: of the data that its releases are of (`Assignment.label`), "" for all. `parties` 0: no MPC, the arithmetic
    of the parties in one process. `names`: what a consortium calls its sites. `stage_of`: the
    digest of the plan that this is a stage of, "" where it is none: who has another whole plan takes part in no stage.
    `passed`: how likely a cheat has passed in stages before, at most, where parties are checked. `found`: the releases
    that found what the source is asked by, where its schema is not the plan's.
    """

    run_id: str
    data: str
    data_id: str
    sizes: tuple[int, ...]
    dimension: int
    releases: int
    source: Source
    weights: Weights = "equal"
    schema: dict[str, Any] | None = None
    bounds: Bounds = "public"
    rests_on: tuple[str, ...] = ()
    released: tuple[Mechanism, ...] = ()
    part: str = ""
    capacity: bool = False
    names: Names | None = None
    stage_of: str = ""
    passed: float = 0.0
    found: tuple[FoundBy, ...] = ()

    def called(self, text: str) -> str:
        """A text about processes with their names, where the plan has any."""
        return text if self.names is None else self.names.beside(text)

    @property
    @abstractmethod
    def before(self) -> tuple[Mechanism, ...]:
        """What stages release or have released before the run's own releases."""

    @abstractmethod
    def to_text(self) -> str:
        """Canonical JSON."""

    @property
    def file_digest(self) -> str:
        """SHA-256 of plan.json, hexadecimal."""
        return hashlib.sha256(self.to_text().encode()).hexdigest()

    @property
    def of_named_data(self) -> bool:
        """Whether somebody has named its data, so that what is spent adds up over processes and runs."""
        return self.data not in NAMELESS or self.data_id != data_digest(self.data)

    @property
    def owners(self) -> int:
        """m."""
        return len(self.sizes)

    @property
    def all_sizes(self) -> tuple[int, ...]:
        """Records of each owner, those that stages after the plan's releases are of among them."""
        parted = self.source.parted(self.data_id)
        return self.sizes if parted is None else parted.whole

    @property
    def persons(self) -> Persons | None:
        """What owners keep of each person; None where the promise is not of persons."""
        if self.neighbours != "person":
            return None
        return Persons(self.person_rows, self.person_owners or self.owners)

    @cached_property
    def levels(self) -> dict[str, Sensitivity]:
        """How far the mean moves for each kind of neighbours of which that is known, before rounding; all norms."""
        return self.source.levels(
            self.neighbours, self.sizes, self.weights, self.dimension, self.persons, self.capacity
        )

    @property
    def drawn(self) -> int:
        """How many samples of noise a release takes."""
        votes = self.source.votes
        return self.dimension if votes is None else self.dimension // votes.each

    @property
    def touched(self) -> int:
        """At how many owners the vectors of two neighbours may differ."""
        return 1 if self.persons is None else min(self.persons.owners, self.owners)

    @property
    def counted(self) -> bool:
        """Whether sizes are the numbers of records; else of places, some of which may be empty."""
        return not self.capacity and self.persons is None

    @property
    def fewest(self) -> int:
        """The owners that a release needs at least."""
        return self.owners if self.min_owners is None else self.min_owners

    @cached_property
    def dropouts(self) -> bool:
        """Whether a release may do without some owners."""
        return self.fewest < self.owners

    @property
    def checks_owners(self) -> bool:
        """Whether parties check owners; a release then says whose vectors are in it."""
        return self.check_owners != "no"

    @cached_property
    def names_owners(self) -> bool:
        """Whether a release says whose vectors are in it."""
        return self.dropouts or self.checks_owners

    def missing(self, present: Presence) -> Presence:
        """The owners whose vectors are not in a release."""
        return tuple(sorted(set(range(self.owners)).difference(present)))

    def divisor_of(self, present: Presence | None) -> int:
        """What a sum over these owners is divided by; None: all of them. An owner that failed its checks counts, with a
        zero vector."""
        return self.divisor if present is None or self.checks_owners else sum(self.factors[j] for j in present)

    @property
    def factors(self) -> tuple[int, ...]:
        """What each owner multiplies its vector by before rounding: 1, or n_j with weights n_j/n."""
        return tuple(owner_factors(self.sizes, self.weights))

    @property
    def divisor(self) -> int:
        """What an opened sum is divided by, in the clear: m with equal weights, n = sum n_j with weights n_j/n."""
        return sum(self.factors)

    @property
    def adaptive(self) -> ClippingBound | None:
        """How the clipping bound follows the vectors at the first release; None if it does not."""
        return self.source.adaptive

    @property
    def clip(self) -> float:
        """The L2 norm that every owner clips its vector to."""
        return self.source.clip

    @cached_property
    def schema_digest(self) -> str | None:
        """The digest of the schema that records are mapped by; None where the plan has none."""
        return None if self.schema is None else Schema.from_json(self.schema).digest

    @property
    def origin(self) -> Origin:
        """What the releases rest on: what the plan says, and what this process derives from the plan's schema, or its
        draft, and from the schemas of the models that it asks about."""
        found = origin_of(self.bounds, self.rests_on, self.found) | self.source.origin
        return found if self.mapped_by is None else found | self.mapped_by.origin

    @property
    def mapped_by(self) -> Schema | None:
        """The schema that maps records, which says task, classes and bounds, or its draft while a survey is to come."""
        if self.schema is not None:
            return Schema.from_json(self.schema)
        return self.source.draft

    @property
    def learning(self) -> Learning:
        """How a model is learned. Errors: the plan is of something else."""
        return learning_of(self.source)

    def session_id(self, attempt: Attempt) -> bytes:
        """What every message and every stream of randomness of an attempt is bound to."""
        return f"{self.run_id}/{attempt.number}".encode()


def plan_path(out: Path) -> Path:
    """Where a run directory keeps its plan."""
    return out / "plan.json"


NAMELESS = ("vectors", "records")  # what data is called that nobody has named: each process's own
