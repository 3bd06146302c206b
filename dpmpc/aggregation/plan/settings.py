"""The settings of a plan, by group: what is promised, which noise keeps it, who computes how, who is there.

What is not said is chosen when the plan is made, by the rule that the declaration states: a plan holds no "" and no
threshold of -1. `Choosing` is gone by then, as what it chose stands in the plan.
"""

from typing import ClassVar, Literal, get_args

from dpmpc.errors import UsageError
from dpmpc.lazy import dataclass
from dpmpc.mpc.contract.backend import BACKENDS
from dpmpc.mpc.contract.security import MODES
from dpmpc.privacy.checks import check_count, check_delta, check_epsilon, check_nonnegative, check_positive
from dpmpc.privacy.law import LAWS, calibration_names, sampler_names
from dpmpc.settings import Limit, Settings, at_least, at_most, one_of, ranked, setting, within

CheckOwners = Literal["no", "zero", "stop"]
Role = Literal["apart", "both"]
Engine = Literal["mpc", "clear"]
_FINEST_GRID = 1000  # bits: a double reaches no further
SECURITY_BITS = 40.0
# What a unit is, from the weakest promise to the strongest: stated by a caller, a record's presence, one record, all of
# one person's, all of an owner's records. `guarantee.covers` says which of them a plan's promise includes: an owner's
# does not include a person's who is at several owners, so no limit is the stricter of these two.
UNITS = ("stated", "presence", "record", "person", "owner")
CHOSEN = -(1 << 31)  # a threshold that nobody has said yet


def _delta(name: str, value: float) -> None:
    if value != 0:
        check_delta(value)


def _epsilon(name: str, value: float) -> None:
    check_epsilon(value)


def _fewest(name: str, value: int) -> None:
    if value < 1:
        raise UsageError(f"{name} must be at least 1; got {value}; leave it out for all owners")


_UNIT = ranked(*UNITS)


def _stricter_unit(a: str, b: str) -> str:
    if {a, b} == {"person", "owner"}:
        raise UsageError(
            "a promise is of persons or of owners, and none of them includes the other; two limits name both; leave "
            "one out",
            code="together",
        )
    return str(_UNIT.stricter(a, b))


@dataclass(frozen=True, kw_only=True)
class PromiseSettings(Settings):
    """What the run promises, of everything that it opens together."""

    SECTION: ClassVar[str] = "privacy"

    epsilon: float = setting(
        1.0,
        "Privacy budget of the whole run. Below 1 is strong, above 10 weak.",
        check=_epsilon,
        brief="of the run",
        limit=at_most(),
    )
    delta: float = setting(
        0.0,
        "Failure probability of the promise, well below 1/n. Needed for Gaussian noise.",
        check=_delta,
        rule="0, a pure promise",
        example="1e-5",
        brief="well below 1/n; leave it out for a pure promise",
        limit=at_most(),
    )
    neighbours: str = setting(
        "record",
        "What the promise hides: any one record; whether it is there (less noise); all records of any one person, "
        "wherever they are (`person`); or all records of any one owner (more noise).",
        choices=lambda: ("record", "presence", "person", "owner", "stated"),
        rule="record; with a column of persons, person; of the caller's vectors, the owner's whole vector",
        example='"record"',
        brief='or "presence": whether a record is there; "person", "owner": all records of one',
        limit=Limit("at least", lambda value, limit: _UNIT.keeps(value, limit), _stricter_unit, example='"owner"'),
    )
    person: str | None = setting(
        None,
        "The column that says which person a record is of: the promise is then of all records of a person, at every "
        "owner. Ids are compared exactly; every record has one. No feature.",
        metavar="COLUMN",
        example='"patient"',
        brief="the column of persons: the promise hides all records of one",
    )
    person_rows: int = setting(
        1,
        "How many records of each person an owner keeps, the first ones in its records' order; empty places are zero "
        "vectors. The noise does not depend on it; places that stay empty cost signal.",
        check=check_count,
        metavar="K",
        brief="with person: how many records of each one are kept",
        limit=at_least(),
    )
    person_owners: int = setting(
        0,
        "At how many owners one person may have records. Fewer than all is an `if` of the promise, which nobody checks "
        "over several machines.",
        check=within(0, 1 << 20, "leave it out for all"),
        metavar="S",
        rule="all owners",
        brief="with person: at how many owners one may have records; without it, at all",
    )
    calibration: str = setting(
        "tight",
        "tight: the least noise that keeps the promise. zcdp: by zero-concentrated DP. paper: as printed in Jayaraman "
        "et al. 2018; the report says what that really gives.",
        choices=calibration_names,
        brief='or "zcdp", "paper"',
        limit=one_of(),
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.person is None:
            return
        if self.neighbours not in ("record", "person"):
            raise UsageError(
                f"with <<person>> the promise is of persons; got <<neighbours={self.neighbours}>>; leave one of them "
                "out",
                code="together",
            )
        object.__setattr__(self, "neighbours", "person")


@dataclass(frozen=True, kw_only=True)
class Noise(Settings):
    """Which noise keeps the promise, and on which grid."""

    SECTION: ClassVar[str] = "privacy"

    law: str = setting(
        "",
        "Law of the noise.",
        choices=LAWS.names,
        rule="gaussian with a delta; without, laplace for one release",
        flags=("--law", "--noise"),
        example='"gaussian"',
        brief='or "laplace"',
        limit=one_of(),
    )
    sampler: str = setting(
        "",
        "discrete (the default): exact law on the grid, proved. The others work on fixed-point numbers, for "
        "comparison.",
        choices=sampler_names,
        rule="the law's first",
        example='"discrete"',
        brief="without it, the law's first",
        limit=one_of(),
    )
    scale: float | None = setting(
        None,
        "Noise scale of a coordinate of the mean, 0 for none; the promise is then what follows from it.",
        check=check_nonnegative,
        rule="the least that keeps the promise",
        unit="of the mean",
        example="0.01",
        brief="of the mean; without it, the least that keeps the promise",
    )
    grid_bits: int | None = setting(
        None,
        "Grid step 2^-F.",
        check=within(-_FINEST_GRID, _FINEST_GRID, "leave it out"),
        metavar="F",
        rule="rounding adds at most 0.5 % to the sensitivity",
        unit="bits",
        example="20",
        brief="without it, fine enough to add at most 0.5 % to the sensitivity",
    )


@dataclass(frozen=True, kw_only=True)
class Computing(Settings):
    """Who computes, and how."""

    SECTION: ClassVar[str] = "mpc"

    parties: int = setting(
        3, "Number of parties; 0 in a plan that is computed in the clear.", metavar="N", flags=("-M",), limit=at_least()
    )
    threshold: int = setting(
        CHOSEN,
        "So many parties together learn nothing; below N/2 with an honest majority. Of two parties, 0 is sharing that "
        "hides nothing from either.",
        metavar="T",
        flags=("-T",),
        rule="the largest",
        example="1",
        brief="so many parties together learn nothing; without it, the largest",
        limit=at_least(1),
    )
    backend: str = setting(
        "",
        "How the parties compute. With an honest majority: sharing, replicated bits, for few parties; shamir, numbers "
        "mod a prime, for up to 32; mpyc, by MPyC alone, slow, to read and to check. Two parties that trust nobody "
        "else: ot, by oblivious transfer (ot-k8 sends less and computes more, ot-k2 and ot-k1 the other way round), or "
        "garbled, by garbled circuits as in the papers.",
        choices=BACKENDS.names,
        rule="the one that computes less: ot for 2, shamir from 7 parties",
        example='"sharing"',
        brief="without it, the one that computes less",
        limit=one_of(),
    )
    check_owners: CheckOwners = setting(
        "no",
        "The parties check that each owner's shares are of one vector and within the norm bound. zero: one that fails "
        "counts as a zero vector in that release, and is named; stop: it ends the run.",
        flag_value="zero",
        brief='"zero": an owner whose shares or norm fail counts as zero; "stop": it ends the run',
        limit=ranked(*get_args(CheckOwners)),
    )
    pool: bool | None = setting(
        None,
        "Make the noise of all releases ahead.",
        rule="for methods of many releases",
        example="true",
        brief="noise is made ahead; without it, for methods of many releases",
    )
    security_bits: float = setting(
        SECURITY_BITS,
        "Statistical security of the MPC over the whole run.",
        check=within(1, 128, "40 is usual"),
        unit="bits",
        brief="statistical security of the MPC over the whole run",
        limit=at_least(SECURITY_BITS),
    )


@dataclass(frozen=True, kw_only=True)
class Attendance(Settings):
    """Owners that are parties too, and owners that may be missing."""

    SECTION: ClassVar[str] = "run"

    role: Role = setting(
        "apart",
        "both: every owner is a party, one process a site, so there are as many of both.",
        brief='"both": every owner is a party, one process a site',
    )
    min_owners: int | None = setting(
        None,
        "A release is made from the owners whose shares have come, if they are so many at least; owners may leave, "
        "come late and return. Presence must not depend on records: see docs/privacy.md.",
        check=_fewest,
        metavar="K",
        rule="all owners",
        example="2",
        brief="a release is made from so many owners at least; without it, from all of them",
        limit=at_least(),
    )
    release_wait: float = setting(
        10.0,
        "With a least number of owners: how long a release waits for owners that are connected.",
        check=check_positive,
        metavar="SECONDS",
        unit="seconds",
        brief="with min_owners: seconds that a release waits for owners that are connected",
    )


@dataclass(frozen=True, kw_only=True)
class Choosing(Settings):
    """What chooses the backend."""

    SECTION: ClassVar[str] = "mpc"

    engine: Engine = setting("mpc", "clear: the same arithmetic in one process, without MPC, for study.")
    security: str = setting(
        "semi-honest",
        "semi-honest: parties follow the protocol. active: any t of them may do anything; cheats end the run before a "
        "wrong vector is released.",
        choices=lambda: MODES,
        brief='or "active": any t of the parties may cheat',
        limit=ranked(*MODES),
    )
    link: str | float = setting(
        "",
        "Of two servers: the line between them, lan, wan or its Mb/s as measured. ot takes the fewest bytes (ot-k8) "
        "below some 225 Mb/s.",
        metavar="lan|wan|MBITS",
        rule="lan",
        example='"lan"',
        brief='of two servers: "wan", or a number of Mb/s, for one on which bytes are dear',
    )


@dataclass(frozen=True, kw_only=True)
class Accounting(Settings):
    """What all runs on the same records may spend together, and where that is kept."""

    SECTION: ClassVar[str] = "run"

    budget: str | None = setting(
        None,
        "Refuse a run that would spend more than this on the same records (data_id), earlier runs included. Of "
        "processes started one by one it is for the parties, each of which holds its own ledgers against it.",
        metavar="EPS,DELTA",
    )
    account: str | None = setting(
        None,
        "Folder of the account, which remembers what every run has spent on each data_id, also when the run's own "
        "folder is deleted.",
        metavar="DIR",
        rule="$DPMPC_ACCOUNT, else the platform's folder for data that programs keep (docs/privacy.md); none for data "
        "sets that dpmpc brings, and of this process and its workers for data without a name",
    )


@dataclass(frozen=True, kw_only=True)
class Ledgers(Settings):
    """Where earlier runs on the same records are."""

    SECTION: ClassVar[str] = "run"

    ledgers: str | None = setting(
        None,
        "With a budget: where the ledgers of earlier runs are, in any folder below.",
        metavar="DIR",
        rule="the folder of the run's",
    )


GROUPS: dict[str, type[Settings]] = {  # as a plan's text names them
    "promise": PromiseSettings,
    "noise": Noise,
    "computing": Computing,
    "attendance": Attendance,
}
