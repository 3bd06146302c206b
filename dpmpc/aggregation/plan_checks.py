"""What every plan must keep, whoever made it and wherever it comes from: types, ranges, and what goes together."""

import math
from typing import get_args

from dpmpc.aggregation.asked import Asked, Bounds, CheckOwners, Neighbours, Role, Vectors
from dpmpc.aggregation.owners import check_owners_possible
from dpmpc.data.schema import Schema
from dpmpc.errors import UsageError
from dpmpc.learning.method import METHODS, Learning
from dpmpc.mpc.backend import BACKENDS
from dpmpc.mpc.channels import MOST_RELEASES
from dpmpc.privacy.checks import check_count, check_delta, check_epsilon, check_nonnegative, check_positive
from dpmpc.privacy.law import LAWS
from dpmpc.privacy.sensitivity import Weights

_FINEST_GRID = 1000  # bits: a double reaches no further
_KINDS = {str: "a text", int: "a whole number", float: "a finite number such as 1.0", bool: "true or false"}
_MAY_BE_NONE = ("scale", "grid_bits")
_TYPES: dict[str, type] = {
    "run_id": str,
    "data": str,
    "data_id": str,
    "calibration": str,
    "law": str,
    "sampler": str,
    "scale": float,
    "grid_bits": int,
    "dimension": int,
    "releases": int,
    "epsilon": float,
    "delta": float,
    "security_bits": float,
    "backend": str,
    "parties": int,
    "threshold": int,
    "pool": bool,
    "min_owners": int,
    "release_wait": float,
}


def check_plan(plan: Asked) -> None:
    """Errors: UsageError for a value of another type, or out of its range."""
    for name, kind in _TYPES.items():
        value = getattr(plan, name)
        if value is None and name in _MAY_BE_NONE:
            continue
        good = isinstance(value, kind) and not (isinstance(value, bool) and kind is not bool)
        if not good or (isinstance(value, float) and not math.isfinite(value)):
            raise UsageError(f"a plan's {name} must be {_KINDS[kind]}; got {value!r}; plan again")
    if not plan.sizes or not all(type(size) is int and size >= 1 for size in plan.sizes):
        raise UsageError(f"a plan's sizes are whole numbers of at least 1; got {plan.sizes[:5]!r}; plan again")
    check_count("dimension", plan.dimension)
    if not 1 <= plan.releases <= MOST_RELEASES:
        raise UsageError(f"a run makes 1 to {MOST_RELEASES} releases; got {plan.releases}; ask for fewer")
    for name, value, allowed in (
        ("neighbours", plan.neighbours, get_args(Neighbours)),
        ("weights", plan.weights, get_args(Weights)),
        ("bounds", plan.bounds, get_args(Bounds)),
        ("role", plan.role, get_args(Role)),
        ("check_owners", plan.check_owners, get_args(CheckOwners)),
        ("learning.method", getattr(plan.source, "method", None), (None, *METHODS.names())),
    ):
        if value not in allowed:
            raise UsageError(f"a plan's {name} is one of {', '.join(map(str, allowed))}; got {value!r}; plan again")
    law = LAWS[plan.law]
    law.check_calibration(plan.calibration)
    check_epsilon(plan.epsilon)
    if plan.delta != 0:
        check_delta(plan.delta)
    elif not law.pure:
        raise UsageError(
            f"{law.name.capitalize()} noise needs a delta in (0, 1); none was given; add --delta, for example 1e-5, or "
            "--law laplace"
        )
    if plan.scale is not None:
        check_nonnegative("the noise scale", plan.scale)
    if plan.grid_bits is not None and abs(plan.grid_bits) > _FINEST_GRID:
        raise UsageError(f"--grid-bits must lie in -{_FINEST_GRID}..{_FINEST_GRID}; got {plan.grid_bits}; leave it out")
    if plan.before and (plan.calibration != "tight" or plan.scale is not None or not plan.delta):
        raise UsageError(
            "what a run released before is in its promise by the tight calibration at a delta; the plan has another, or"
            " a scale; plan again"
        )
    by_record = isinstance(plan.source, Learning) or plan.source.spread is not None
    if plan.neighbours == "record" and not by_record:
        raise UsageError(
            "record-level neighbours need a method of learning; this plan has vectors; state a sensitivity"
        )
    if plan.schema is not None:
        _check_schema(plan, plan.schema)
    stated = isinstance(plan.source, Vectors) and plan.source.sensitivity is not None
    if (plan.neighbours == "stated") != stated:
        raise UsageError("a stated sensitivity and neighbours as stated go together; the plan has one; plan again")
    if not 1 <= plan.security_bits <= 128:
        raise UsageError(f"--security-bits must lie in 1..128; got {plan.security_bits:g}; 40 is usual")
    if not 0 <= plan.min_owners <= plan.owners:
        raise UsageError(
            f"--min-owners must lie in 1..{plan.owners}, the number of owners; got {plan.min_owners}; leave it out for "
            "all"
        )
    check_positive("--release-wait", plan.release_wait)
    if plan.role == "both" and plan.dropouts:
        raise UsageError(
            f"with --role both an owner cannot be missing where its party is there; got --min-owners "
            f"{plan.min_owners}; leave one of them out"
        )
    if plan.role == "both" and plan.owners != plan.parties:
        raise UsageError(
            f"with --role both every owner is a party, one process a site; got {plan.owners} owners and {plan.parties} "
            "parties; give as many of both with -M, or leave --role out"
        )
    check_owners_possible(plan)
    if plan.parties:
        if plan.parties < 1:
            raise UsageError(f"the number of parties must be at least 1; got {plan.parties}; use -M 3")
        BACKENDS[plan.backend].check(plan.parties, plan.threshold)


def _check_schema(plan: Asked, value: object) -> None:
    """Errors: UsageError for what is no schema, or one that does not suit the rest of the plan."""
    if not isinstance(value, dict):
        raise UsageError(f"a plan's schema is an object; got {str(value)[:40]}; plan again")
    schema = Schema.from_json(value)
    if schema.to_json() != value:
        raise UsageError("a plan's schema must be spelled as dpmpc spells it; this one is not; plan again")
    for name, asked, made in (
        (
            "dimension",
            plan.dimension,
            METHODS[plan.learning.method].coordinates(len(schema.feature_names)) * plan.learning.scores,
        ),
        ("number of classes", plan.learning.classes, schema.classes),
        ("bounds", plan.bounds, schema.bounds),
        ("task", plan.learning.task, schema.task),
    ):
        if asked != made:
            raise UsageError(f"a plan's {name} is its schema's; the plan has {asked}, its schema {made}; plan again")
