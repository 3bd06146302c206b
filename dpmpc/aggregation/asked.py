"""What was asked of a run, and public facts: the fields of a plan, and what is read off them.

Whatever takes an `Asked` needs nothing that has to be derived: the checks of what was asked, and the derivation itself.
"""

import hashlib
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from dpmpc.data.schema import Schema
from dpmpc.errors import UsageError
from dpmpc.learning.adaptive_clipping import NORM, ClippingBound
from dpmpc.learning.method import Learning
from dpmpc.mpc.backend import DEFAULT
from dpmpc.privacy.checks import check_positive
from dpmpc.privacy.law import DEFAULT_LAW
from dpmpc.privacy.mechanism import Mechanism
from dpmpc.privacy.sensitivity import Weights

Neighbours = Literal["owner", "record", "stated"]
Bounds = Literal["public", "data", "survey"]
Role = Literal["apart", "both"]
CheckOwners = Literal["no", "zero", "stop"]
Presence = tuple[int, ...]  # the owners whose vectors are in a sum, in order


@dataclass(frozen=True)
class Vectors:
    """Where vectors come from when the caller brings them: each is clipped to L2 norm `clip`.

    `sensitivity`: by how much the change of one unit (a record, a person) moves its owner's vector at most, as the
    caller states; None where the unit is the owner's whole vector. `spread`: where owners send the mean of their
    records' vectors, by how much two records' vectors differ at most; the unit is then a record. `adaptive`: how the
    clipping bound follows the vectors, which are scaled by it (`learning.adaptive_clipping`), if it does.
    """

    clip: float
    sensitivity: float | None = None
    spread: float | None = None
    adaptive: ClippingBound | None = None

    def __post_init__(self) -> None:
        check_positive("the clipping norm", self.clip)
        if self.spread is not None:
            check_positive("the spread of records", self.spread)
        if self.adaptive is not None:
            if isinstance(self.adaptive, dict):  # out of a file
                object.__setattr__(self, "adaptive", ClippingBound(**self.adaptive))
            if self.clip != NORM or self.sensitivity is not None or self.spread is not None:
                raise UsageError(
                    f"with a clipping bound that adapts rows have norm {NORM:g} and the unit is an owner's vector; the "
                    "plan has other ones; plan again"
                )
        if self.sensitivity is not None:
            check_positive("the stated sensitivity", self.sensitivity)


@dataclass(frozen=True)
class Attempt:
    """Which attempt of a run this is, and the release that it begins with. It belongs to the run, not to the plan."""

    number: int = 0
    first_release: int = 0


FIRST_ATTEMPT = Attempt()
AGREED = Attempt(-1, 0)  # the parties agree on the attempt when they meet


@dataclass(frozen=True, kw_only=True)
class Asked:
    """One run. `schema`: what maps every owner's records into vectors (`data.schema.Schema` as JSON values), None where
    the caller brings vectors; its constants are public, or were read off records (`bounds`). `sizes`: records of each
    owner (of use to `weights="size"` and to record-level neighbours).

    `delta` 0: a pure promise. `scale`: the noise scale of a coordinate of the mean, where the caller fixes it and takes
    the epsilon that follows; 0 is no noise and no promise. `grid_bits` None: the grid is chosen. `security_bits`: what
    the masks of openings must hide up to, over the whole run. `parties` 0: no MPC, the arithmetic of the parties in one
    process. `pool`: noise is made ahead. `role`: "both" where every owner is a party, in one process. `before`: what
    the same run has released already, a survey; the promise is of both. `min_owners`: so many owners are enough for a
    release, 0 for all of them; then `release_wait` seconds are the time that a release waits for the others.
    `check_owners`: whether parties check owners' shares and norms, and what becomes of one that fails: a zero vector in
    its place, or the end of the run (docs/owners.md).
    """

    run_id: str
    data: str
    data_id: str
    sizes: tuple[int, ...]
    dimension: int
    releases: int
    source: Vectors | Learning
    neighbours: Neighbours = "record"
    weights: Weights = "equal"
    schema: dict[str, Any] | None = None
    bounds: Bounds = "public"
    epsilon: float = 1.0
    delta: float = 0.0
    calibration: str = "tight"
    law: str = DEFAULT_LAW
    sampler: str = "discrete"
    scale: float | None = None
    grid_bits: int | None = None
    security_bits: float = 40.0
    backend: str = DEFAULT
    parties: int = 3
    threshold: int = 1
    pool: bool = True
    role: Role = "apart"
    before: tuple[Mechanism, ...] = ()
    min_owners: int = 0
    release_wait: float = 10.0
    check_owners: CheckOwners = "no"

    @property
    def owners(self) -> int:
        """m."""
        return len(self.sizes)

    @property
    def fewest(self) -> int:
        """The owners that a release needs at least."""
        return self.min_owners or self.owners

    @property
    def dropouts(self) -> bool:
        """Whether a release may do without some owners."""
        return self.fewest < self.owners

    @property
    def checks_owners(self) -> bool:
        """Whether parties check owners; a release then says whose vectors are in it."""
        return self.check_owners != "no"

    @property
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
        return (1,) * self.owners if self.weights == "equal" else self.sizes

    @property
    def divisor(self) -> int:
        """What an opened sum is divided by, in the clear: m with equal weights, n = sum n_j with weights n_j/n."""
        return sum(self.factors)

    @property
    def adaptive(self) -> ClippingBound | None:
        """How the clipping bound follows the vectors at the first release; None if it does not."""
        return self.source.adaptive if isinstance(self.source, Vectors) else None

    @property
    def clip(self) -> float:
        """The L2 norm that every owner clips its vector to."""
        return self.source.clip

    @cached_property
    def schema_digest(self) -> str | None:
        """The digest of the schema that records are mapped by; None where the plan has none."""
        return None if self.schema is None else Schema.from_json(self.schema).digest

    @property
    def learning(self) -> Learning:
        """How a model is learned. Errors: the plan is for vectors of the caller's own."""
        if not isinstance(self.source, Learning):
            raise UsageError("a training run needs a plan of train; this one is for the caller's own vectors")
        return self.source

    def session_id(self, attempt: Attempt) -> bytes:
        """What every message and every stream of randomness of an attempt is bound to."""
        return f"{self.run_id}/{attempt.number}".encode()


def plan_path(out: Path) -> Path:
    """Where a run directory keeps its plan."""
    return out / "plan.json"


def data_digest(name: str) -> str:
    """The name under which the ledger adds up what was spent on the same data: a digest of a text that the owners agree
    on."""
    return hashlib.sha256(b"dpmpc data\0" + name.encode()).hexdigest()
