"""What an organisation takes part in: limits that a plan made elsewhere is held against, before anything is sent.

Every process derives what a plan really gives; limits say what is enough. Without any, a process takes part only in
what nobody would have to be asked about: a plan that keeps the epsilon and delta it states, with noise of a proved law,
in which no single party can read everything.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeVar

import msgspec

from dpmpc.aggregation.asked import Neighbours, data_digest
from dpmpc.aggregation.checks import owners_line, security_line
from dpmpc.aggregation.derive import spent_before
from dpmpc.aggregation.guarantee import NEIGHBOURS_BY_STRENGTH, ideal, promise_of
from dpmpc.aggregation.plan import Plan
from dpmpc.data.written import read_written
from dpmpc.errors import UsageError
from dpmpc.mpc.levels import described
from dpmpc.mpc.security import security_of
from dpmpc.privacy.composition import spending_of

T = TypeVar("T")
Security = Literal["semi-honest", "active"]
_ROUNDING = 1e-9


class AcceptFile(msgspec.Struct, forbid_unknown_fields=True):
    """The file of `--accept`, in TOML or JSON: what this organisation takes part in. All keys may be left out."""

    epsilon: float | None = None
    delta: float | None = None
    threshold: int | None = None
    neighbours: Neighbours | None = None
    data_id: str | None = None
    budget_epsilon: float | None = None
    budget_delta: float | None = None
    assumptions: bool = False
    schema: str | None = None
    security: Security | None = None
    check_owners: bool | None = None


@dataclass(frozen=True, kw_only=True)
class Limits:
    """At most this `epsilon` at this `delta`, everything accounted; so many parties must learn nothing together.

    `epsilon` None: what the plan states, which it must keep; inf: anything, even no noise. `threshold` None: 1.
    `neighbours`: "record", or "owner" (all of an owner's records), which is more; a plan may promise more than is asked
    for. `data_id`: the name that the plan must give the records. `budget`: (epsilon, delta) of all runs on them
    together, held against the ledgers at hand. `assumptions`: whether the promise may rest on a sampler whose law is
    not proved, or on bounds that were read off records. `schema`: the digest of the schema that must map records.
    `security`: "active" where parties must be checked. `check_owners`: whether owners must be.
    """

    epsilon: float | None = None
    delta: float | None = None
    threshold: int | None = None
    neighbours: Neighbours | None = None
    data_id: str | None = None
    budget: tuple[float, float] | None = None
    assumptions: bool = False
    schema: str | None = None
    security: Security | None = None
    check_owners: bool = False

    def __post_init__(self) -> None:
        for name, value, most in (
            ("epsilon", self.epsilon, math.inf),
            ("delta", self.delta, 1.0),
            ("the threshold", self.threshold, math.inf),
        ):
            if value is not None and not 0 <= value <= most:
                raise UsageError(f"a limit on {name} lies in 0..{most:g}; got {value}; correct it")
        if self.neighbours not in (None, *NEIGHBOURS_BY_STRENGTH):
            raise UsageError(
                f"neighbours are {' or '.join(NEIGHBOURS_BY_STRENGTH)}; got {self.neighbours!r}; correct it"
            )

    @staticmethod
    def read(path: Path | str) -> "Limits":
        """The limits in a TOML or JSON file. Errors: UsageError with the line and the nearest known key."""
        file = read_written(Path(path), AcceptFile, "an accept")
        if (file.budget_epsilon is None) != (file.budget_delta is None):
            raise UsageError(f"a budget has both budget_epsilon and budget_delta; {path} has one; add the other")
        budget = None
        if file.budget_epsilon is not None and file.budget_delta is not None:
            budget = (file.budget_epsilon, file.budget_delta)
        return Limits(
            epsilon=file.epsilon,
            delta=file.delta,
            threshold=file.threshold,
            neighbours=file.neighbours,
            data_id=file.data_id,
            budget=budget,
            assumptions=file.assumptions,
            schema=file.schema,
            security=file.security,
            check_owners=bool(file.check_owners),
        )

    def also(self, other: "Limits") -> "Limits":
        """Both: where both say something, the stricter. Errors: they name different records or schemas."""
        return Limits(
            epsilon=_both(self.epsilon, other.epsilon, min),
            delta=_both(self.delta, other.delta, min),
            threshold=_both(self.threshold, other.threshold, max),
            neighbours=_both(self.neighbours, other.neighbours, _stronger),
            data_id=_both(self.data_id, other.data_id, _same),
            budget=_both(self.budget, other.budget, lambda a, b: (min(a[0], b[0]), min(a[1], b[1]))),
            assumptions=self.assumptions or other.assumptions,
            schema=_both(self.schema, other.schema, _same),
            security=_both(self.security, other.security, lambda a, b: a if a == b else "active"),
            check_owners=self.check_owners or other.check_owners,
        )

    def check(self, plan: Plan) -> None:
        """Returns if an organisation with these limits takes part in the plan. Errors: UsageError, the first reason
        why it does not; no value of any record is in it."""
        _check_parties(plan, 1 if self.threshold is None else self.threshold)
        if self.security == "active" and security_of(plan.backend) != "active":
            raise UsageError(
                f"parties must be checked, by --security active; the plan's backend is {plan.backend}; plan again, or "
                "leave security out of the limits"
            )
        if self.check_owners and not plan.checks_owners:
            raise UsageError(
                "owners must be checked, by --check-owners; in this plan they are not; plan again, or leave "
                "check_owners out of the limits"
            )
        if self.epsilon != math.inf:
            self._check_promise(plan)
        if self.neighbours is not None and (
            NEIGHBOURS_BY_STRENGTH[plan.neighbours] < NEIGHBOURS_BY_STRENGTH[self.neighbours]
        ):
            raise UsageError(
                f"the promise must hold for neighbours by {self.neighbours}; the plan's are by {plan.neighbours}; plan "
                "again with --neighbours"
            )
        if self.data_id is not None and plan.data_id != data_digest(self.data_id):
            raise UsageError(
                f"the plan must be for the records called '{self.data_id}', {data_digest(self.data_id)[:16]}; its "
                f"records are {plan.data_id[:16]}; plan again with --data-id"
            )
        if self.schema is not None and plan.schema_digest != self.schema:
            raise UsageError(
                f"the plan must map records by the schema {self.schema[:16]}; its is "
                f"{(plan.schema_digest or 'none')[:16]}; plan again with --schema"
            )

    def _check_promise(self, plan: Plan) -> None:
        if not plan.derived.mechanism.scale:
            raise UsageError("a plan must add noise; this one adds none; plan again, or accept it with --epsilon inf")
        for void, why in (
            (not plan.derived.sampler.discrete, f"{plan.sampler} has no proved law"),
            (plan.bounds == "data", "its schema was read off records"),
        ):
            if void and not self.assumptions:
                raise UsageError(
                    f"a promise must hold without an if; {why}; plan again, or accept it with assumptions = true in "
                    "the file of --accept"
                )
        if self.epsilon is None and plan.scale is not None:
            raise UsageError(
                f"a plan with a fixed noise scale states no epsilon; it accounts to {true_epsilon(plan):.6g}; accept "
                "that with --epsilon"
            )
        delta = plan.delta if self.delta is None else self.delta
        epsilon = plan.epsilon if self.epsilon is None else self.epsilon
        true = true_epsilon(plan, delta)
        if not true <= epsilon * (1 + _ROUNDING):
            whose = "the plan states" if self.epsilon is None else "the limit is"
            raise UsageError(
                f"all that a plan opens together must keep epsilon and delta; {whose} {epsilon:g} at delta {delta:g}, "
                f"and the plan accounts to {true:.6g}; plan again with more noise or fewer releases"
            )


NO_LIMITS = Limits()  # what holds for everybody


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


def taking_part(plan: Plan, addresses: Sequence[str] = ()) -> list[str]:
    """What a process is about to take part in, a line each: the true guarantee, who computes, what is opened, of what.
    Public. Cost: nothing beyond the plan's derivation."""
    if plan.parties:
        where = f": {', '.join(addresses)}" if addresses else ""
        how = described(plan.backend)
        how += f": {security_line(plan)}" if security_of(plan.backend) == "active" else ""
        who = f"{plan.parties} parties, any {plan.threshold} of which learn nothing together ({how}){where}"
    else:
        who = "one process that sees all vectors (engine clear)"
    schema = "no schema: each owner brings vectors of its own"
    if plan.schema is not None and plan.schema_digest is not None:
        columns = [column["name"] for column in plan.schema["columns"]]
        shown = ", ".join(columns[:6]) + (f" and {len(columns) - 6} more" if len(columns) > 6 else "")
        target = plan.schema["target"]["name"]
        schema = f"schema {plan.schema_digest[:16]}: {target} from {shown} ({plan.bounds} bounds)"
    what = f"{plan.owners} owners, {plan.dimension} coordinates, {plan.releases} releases"
    lines = [
        f"run {plan.run_id} on '{plan.data}' (data id {plan.data_id[:16]}): {what}",
        promise_of(plan).sentence,
        f"computed by {who}",
        schema,
    ]
    return [*lines, owners_line(plan)] if plan.checks_owners else lines


def _check_parties(plan: Plan, least: int) -> None:
    if not plan.parties:
        raise UsageError(
            "a plan for several organisations has parties; this one is computed in the clear, by one process that sees "
            "all vectors; plan again with --engine mpc"
        )
    if plan.threshold < least:
        raise UsageError(
            f"{least} part{'ies' if least > 1 else 'y'} together must learn nothing; the plan has threshold "
            f"{plan.threshold} of {plan.parties} parties; plan again, or accept it with -T {plan.threshold}"
        )


def _both(a: T | None, b: T | None, stricter: Callable[[T, T], T]) -> T | None:
    if a is None or b is None:
        return b if a is None else a
    return stricter(a, b)


def _stronger(a: Neighbours, b: Neighbours) -> Neighbours:
    return max(a, b, key=lambda kind: NEIGHBOURS_BY_STRENGTH[kind])


def _same(a: str, b: str) -> str:
    if a != b:
        raise UsageError(f"two limits must name the same; one says '{a}', the other '{b}'; leave one out")
    return a
