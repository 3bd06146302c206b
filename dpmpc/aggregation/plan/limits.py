"""What an organisation takes part in: limits that a plan made elsewhere is held against, before anything is sent.

Every process derives what a plan really gives; limits say what is enough. Each is declared with the setting that it
limits (`dpmpc.settings.Limit`); `Limits` and its file are projections of that. Without any, a process takes part only
in what nobody would have to be asked about: a plan that keeps the epsilon and delta it states, with noise of a proved
law, in which no single party can read everything. What is a fact about an owner alone (how many records it has, by how
much one of its units moves its vector) no plan is believed: its own limits say it.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import fields
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

import msgspec

from dpmpc.aggregation.plan.derive import spent_before
from dpmpc.aggregation.plan.guarantee import covers, ideal, units_of
from dpmpc.aggregation.plan.of_vectors import VectorSettings
from dpmpc.aggregation.plan.plan import Plan
from dpmpc.aggregation.plan.settings import Attendance, Choosing, Computing, Noise, PromiseSettings
from dpmpc.errors import UsageError
from dpmpc.intake.written import read_written
from dpmpc.lazy import dataclass
from dpmpc.learning.source import SOURCES
from dpmpc.mpc.contract.security import security_of
from dpmpc.privacy.checks import check_count, delta_warning
from dpmpc.privacy.composition import parse_budget, spending_of
from dpmpc.privacy.data_names import data_digest
from dpmpc.settings import Declared, Limit, Settings, at_least, declared, one_of, same, setting

_ROUNDING = 1e-9


def _stricter_budget(a: str, b: str) -> str:
    (e, d), (f, g) = parse_budget(a), parse_budget(b)
    return f"{min(e, f)!r},{min(d, g)!r}"


@dataclass(frozen=True, kw_only=True)
class Accepted(Settings):
    """What limits say besides the settings of a plan."""

    data_id: str | None = setting(
        None, "The name that the plan must give the records.", limit=same(), example='"our records"'
    )
    budget: str | None = setting(
        None,
        "All runs on these records together, held against the ledgers at hand.",
        metavar="EPS,DELTA",
        check=lambda name, value: parse_budget(value),
        limit=Limit("within", lambda value, limit: True, _stricter_budget),
        example='"2,1e-5"',
    )
    assumptions: bool = setting(
        False,
        "Whether the promise may rest on a sampler whose law is not proved, on bounds that were read off records, or "
        "on persons that are at some owners only.",
        limit=Limit("allowed:", lambda value, limit: True, lambda a, b: a and b),
        example="false",
    )
    by_owner: bool = setting(
        False,
        "Whether what is opened may tell of this organisation by itself, as a meeting of sites does, and not of all "
        "records together alone.",
        limit=Limit("allowed:", lambda value, limit: limit or not value, lambda a, b: a and b, False),
        example="true",
    )
    schema: str | None = setting(
        None,
        "The digest of the schema that must map records.",
        limit=same(),
        example='"0123456789abcdef"',
    )
    source: str | None = setting(
        None, "What owners send.", choices=SOURCES.names, limit=one_of(), example='["learning"]'
    )
    owners: int | None = setting(None, "How many owners a sum is of.", limit=at_least(), example="2")
    records: int | None = setting(
        None,
        "How many records this organisation has: the plan's number of them must be the same. Needed where a program of "
        "its own makes vectors of records.",
        check=check_count,
        limit=same(),
        example="400",
    )


@lru_cache(maxsize=1)
def limited() -> Mapping[str, Declared]:
    """The settings that have limits, by name: those of plans, and what limits say besides."""
    groups = (PromiseSettings, Noise, Computing, Attendance, Choosing, VectorSettings, Accepted)
    return {name: each for group in groups for name, each in declared(group).items() if each.setting.limit is not None}


def limit_of(each: Declared) -> Limit:
    """The limit of a setting that has one."""
    assert each.setting.limit is not None
    return each.setting.limit


AcceptFile: Any = msgspec.defstruct(
    "AcceptFile",
    [(name, (limit_of(each).kind or each.kind) | None, None) for name, each in limited().items()],
    forbid_unknown_fields=True,
    kw_only=True,
)  # the file of limits, in TOML or JSON; all keys may be left out


@dataclass(frozen=True, kw_only=True)
class Limits:
    """What a plan must keep; None: nothing is said, and the rule in docs/settings.md holds.

    `epsilon`: at most this at `delta`, everything accounted, which must be said with it; inf: anything, even no noise.
    `neighbours`: a plan may promise more than is asked for. `sensitivity`: by how much one of this organisation's
    units, as it states them, moves its vector.
    """

    epsilon: float | None = None
    delta: float | None = None
    neighbours: str | None = None
    person_rows: int | None = None
    calibration: tuple[str, ...] | None = None
    law: tuple[str, ...] | None = None
    sampler: tuple[str, ...] | None = None
    parties: int | None = None
    threshold: int | None = None
    backend: tuple[str, ...] | None = None
    check_owners: Literal["no", "zero", "stop"] | None = None
    security_bits: float | None = None
    min_owners: int | None = None
    security: str | None = None
    releases: int | None = None
    sensitivity: float | None = None
    data_id: str | None = None
    budget: str | None = None
    assumptions: bool | None = None
    by_owner: bool | None = None
    schema: str | None = None
    source: tuple[str, ...] | None = None
    owners: int | None = None
    records: int | None = None

    def __post_init__(self) -> None:
        for each in fields(self):
            value = getattr(self, each.name)
            if value is not None:
                object.__setattr__(self, each.name, _taken(limited()[each.name], value))
        if self.epsilon not in (None, math.inf) and self.delta is None:
            raise UsageError(
                f"a limit on epsilon says something only at a delta; got {self.epsilon:g} alone; add <<delta=1e-5>>, "
                "or <<delta=0>> for pure promises",
                code="together",
            )
        if (self.neighbours == "stated") != (self.sensitivity is not None):
            raise UsageError(
                "a unit as stated moves its owner's vector so far at most; limits have both <<neighbours=stated>> and "
                "<<sensitivity>>, or neither; one is missing; add it",
                code="together",
            )

    @staticmethod
    def read(path: Path | str) -> "Limits":
        """The limits in a TOML or JSON file. Errors: UsageError with the line and the nearest known key."""
        return Limits.of(read_written(Path(path), AcceptFile, "a file of limits"))

    @staticmethod
    def of(file: AcceptFile) -> "Limits":
        """Those of a file that was read. Errors: UsageError for what is no limit."""
        try:
            return Limits(**msgspec.structs.asdict(file))
        except UsageError as error:  # a key of the file is called as its setting
            raise UsageError(f"limits: {error.message}", code="file") from None

    def also(self, other: "Limits") -> "Limits":
        """Both: where both say something, the stricter. Errors: they name different records or schemas."""
        return Limits(
            **{
                name: _both(getattr(self, name), getattr(other, name), limit_of(each).stricter)
                for name, each in limited().items()
            }
        )

    def check(self, plan: Plan) -> None:
        """Returns if an organisation with these limits takes part in the plan. Errors: UsageError, the first reason
        why it does not; no value of any record is in it."""
        if not plan.parties:
            raise UsageError(
                "a plan for several organisations has parties; this one is computed in the clear, by one process that "
                "sees all vectors; plan again with <<engine=mpc>>",
                code="limits",
            )
        for name, each in limited().items():
            limit = limit_of(each)
            asked = limit.unsaid if getattr(self, name) is None else getattr(self, name)
            if asked is None or name in _DERIVED:
                continue
            value = value_of(plan, name)
            if value is None or not limit.keeps(value, asked):
                raise UsageError(_refusal(name, limit, asked, value), code="limits")
        if self.data_id is not None and plan.data_id != data_digest(self.data_id):
            raise UsageError(
                f"the plan must be for the records called '{self.data_id}', {data_digest(self.data_id)[:16]}; its "
                f"records are {plan.data_id[:16]}; plan again with <<data_id>>",
                code="limits",
            )
        if self.schema is not None and plan.schema_digest != self.schema:
            raise UsageError(
                f"the plan must map records by the schema {self.schema[:16]}; its is "
                f"{(plan.schema_digest or 'none')[:16]}; plan again with <<schema>>",
                code="limits",
            )
        if plan.source.tells_owners and not self.by_owner:
            raise UsageError(
                "what is opened must be of all records together where an organisation does not allow more; this "
                f"{plan.source.KIND} opens every owner's counts by themselves; allow it with <<by_owner=True>>, or "
                "take no part",
                code="limits",
            )
        self._check_unit(plan)
        if self.epsilon != math.inf:
            self._check_promise(plan)

    def check_owner(self, plan: Plan, owner: int, vectors: bool = False) -> None:
        """As `check`, and for the process of this owner what the plan says of it. `vectors`: a program of its own
        makes them, so that no more is known of them than their norm, unless the limits say more: the unit is then the
        owner's whole vector. Errors: UsageError."""
        self.check(plan)
        if not 0 <= owner < plan.owners:
            raise UsageError(
                f"owners are numbered from 0; got owner {owner} of {plan.owners}; mend the index", code="limits"
            )
        said = plan.all_sizes[owner]
        most = said if plan.capacity else self.records  # of places, some of which may be empty
        if self.records is not None and not (self.records <= said == most):
            raise UsageError(
                f"this owner has {self.records} records; the plan says {said}; plan again, or mend "
                "<<records>> in the limits",
                code="limits",
            )
        if not vectors:
            return
        if plan.source.OF_RECORDS:
            raise UsageError(
                f"a program that makes vectors needs a plan for vectors; this one is of {plan.source.KIND}, whose "
                "promise rests on how dpmpc makes them; plan with Plan.create, or take part by the command line",
                code="limits",
            )
        if plan.neighbours != "owner" and self.neighbours is None:
            raise UsageError(
                f"of vectors that a program makes, the unit is the owner's whole vector unless limits say otherwise; "
                f"the plan's unit is {plan.neighbours}; plan again with <<neighbours=owner>>, or accept it with "
                f"<<neighbours={plan.neighbours}>>",
                code="limits",
            )
        if plan.neighbours == "person" and self.person_rows is None:
            raise UsageError(
                f"a promise of persons rests on how many records of each a program takes; the plan says "
                f"{plan.person_rows}; accept it with <<person_rows=K>>, your number of them",
                code="limits",
            )
        if plan.neighbours in ("record", "presence", "person") and self.records is None:
            raise UsageError(
                f"a promise of records rests on how many this owner has; the plan says {plan.sizes[owner]}, and the "
                "limits say nothing; accept it with <<records=N>>, your number of them",
                code="limits",
            )

    def _check_unit(self, plan: Plan) -> None:
        if plan.neighbours == "stated" and self.neighbours is None:
            raise UsageError(
                "a plan whose unit its author states says nothing of yours; this one's moves an owner's vector by "
                f"{value_of(plan, 'sensitivity'):g} at most; plan again, or accept it with <<neighbours=stated>> and "
                "<<sensitivity>>, by how much one of your units does",
                code="limits",
            )
        if self.neighbours is not None and not covers(plan, self.neighbours):
            raise UsageError(
                f"the promise must hold for neighbours by {self.neighbours}; the plan's are by {plan.neighbours}; plan "
                "again with <<neighbours>>",
                code="limits",
            )
        if plan.neighbours == "stated" and self.sensitivity is not None:
            stated = value_of(plan, "sensitivity")
            if stated is None or not stated >= self.sensitivity:
                raise UsageError(
                    _refusal("sensitivity", limit_of(limited()["sensitivity"]), self.sensitivity, stated), code="limits"
                )

    def _check_promise(self, plan: Plan) -> None:
        if not plan.derived.mechanism.scale:
            raise UsageError(
                "a plan must add noise; this one adds none; plan again, or accept it with <<epsilon=inf>>",
                code="limits",
            )
        for void, why in (
            (not plan.derived.sampler.discrete, f"{plan.sampler} has no proved law"),
            (bool(plan.origin.read), f"of what it rests on was read off records: {', '.join(plan.origin.read)}"),
            (plan.touched < plan.owners and plan.persons is not None, "it counts a person at some owners only"),
        ):
            if void and not self.assumptions:
                raise UsageError(
                    f"a promise must hold without an if; {why}; plan again, or accept it with assumptions = true in "
                    "the file of <<limits>>",
                    code="limits",
                )
        if self.epsilon is None and plan.scale is not None:
            raise UsageError(
                f"a plan with a fixed noise scale states no epsilon; it accounts to {true_epsilon(plan):.6g}; accept "
                "that with <<epsilon>>",
                code="limits",
            )
        if self.delta is None and (text := delta_warning(plan.delta, units_of(plan))) is not None:
            raise UsageError(f"{text}, or accept it with <<delta={plan.delta:g}>>", code="limits")
        delta = plan.delta if self.delta is None else self.delta
        epsilon = plan.epsilon if self.epsilon is None else self.epsilon
        true = true_epsilon(plan, delta)
        if not true <= epsilon * (1 + _ROUNDING):
            whose = "the plan states" if self.epsilon is None else "the limit is"
            raise UsageError(
                f"all that a plan opens together must keep epsilon and delta; {whose} {epsilon:g} at delta {delta:g}, "
                f"and the plan accounts to {true:.6g}; plan again with more noise or fewer releases",
                code="limits",
            )


NO_LIMITS = Limits()  # what holds for everybody
OWN_WORD = frozenset(("by_owner",))  # limits that nobody writes for another
# What `check` holds against the plan in ways of its own: the account, the unit, facts about one owner, a digest.
_DERIVED = frozenset(
    (
        "epsilon", "delta", "neighbours", "sensitivity", "data_id", "budget", "assumptions", "by_owner", "schema",
        "records",
    )
)
_READ: dict[str, Callable[[Plan], Any]] = {
    "security": lambda plan: security_of(plan.backend),
    "min_owners": lambda plan: plan.fewest,
    "schema": lambda plan: plan.schema_digest,
    "source": lambda plan: plan.source.KIND,
    "sensitivity": lambda plan: getattr(plan.source, "sensitivity", None) if plan.neighbours == "stated" else None,
    "data_id": lambda plan: plan.data,
    "budget": lambda plan: None,
    "assumptions": lambda plan: None,
    "by_owner": lambda plan: plan.source.tells_owners,
    "records": lambda plan: None,
    "person_rows": lambda plan: plan.person_rows if plan.neighbours == "person" else None,
}


def value_of(plan: Plan, name: str) -> Any:
    """What the plan has where a limit of this name is held against it; None for nothing."""
    return _READ[name](plan) if name in _READ else getattr(plan, name)


def limits_of(plan: Plan) -> dict[str, Any]:
    """What the plan says of itself, as limits: the strictest that it keeps, but for facts about one owner, and for what
    each organisation has to allow by itself (`OWN_WORD`)."""
    found = {name: value_of(plan, name) for name in limited() if name not in OWN_WORD}
    return {
        name: [value] if limit_of(limited()[name]).kind == tuple[str, ...] else value
        for name, value in found.items()
        if value is not None
    }


def _taken(each: Declared, value: Any) -> Any:
    """A limit as it is held. Errors: UsageError for what the setting could never be."""
    if limit_of(each).kind == tuple[str, ...]:
        return tuple(each.taken(one) for one in ([value] if isinstance(value, str) else value))
    if each.name == "epsilon" and value == math.inf:
        return math.inf
    return each.taken(value)


def _refusal(name: str, limit: Limit, asked: Any, value: Any) -> str:
    said = ", ".join(asked) if isinstance(asked, tuple) else asked
    way = "leave it out of the limits" if value is None else f"accept it with <<{name}={value}>>"
    return f"<<{name}>> must be {limit.says} {said}; the plan's is {value}; plan again, or {way}"


def true_epsilon(plan: Plan, delta: float | None = None) -> float:
    """What all planned releases come to at `delta` (by default the plan's), every failure counted that is proved.

    A continuous sampler's law is taken for exact, as the report does (`Limits.assumptions` says whether that will do).
    At delta 0, of a pure law: its epsilon, the failures of sampler and openings left out, which no delta of 0 can pay.
    """
    delta = plan.delta if delta is None else delta
    spending = spent_before(plan) + spending_of(ideal(plan), plan.releases)
    if delta == 0 and spending.rho == 0:
        return spending.pure + 2 * spending.log_ratio
    return spending.epsilon(delta)


def _both(a: Any, b: Any, stricter: Callable[[Any, Any], Any]) -> Any:
    return b if a is None else a if b is None else stricter(a, b)
