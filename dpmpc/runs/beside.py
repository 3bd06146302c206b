"""What is given beside a plan that was made elsewhere: limits that it must keep, never settings that override it."""

from collections.abc import Set as AbstractSet
from pathlib import Path
from typing import Any

from dpmpc.aggregation.limits import Limits
from dpmpc.aggregation.plan import Plan
from dpmpc.errors import UsageError
from dpmpc.mpc.security import security_of
from dpmpc.privacy.composition import parse_budget

# Options that beside a plan say what it must keep.
LIMITS = ("epsilon", "delta", "threshold", "neighbours", "data_id", "budget")


def settled(plan: Plan) -> dict[str, Any]:
    """The options of `train` that the plan has settled, as they would have to be given."""
    learning = plan.learning
    return {
        "method": learning.method,
        "task": learning.task,
        "iterations": plan.releases,
        "lam": learning.lam,
        "residual_clip": learning.residual_clip,
        "step": learning.step,
        "radius": learning.radius,
        "average": learning.average,
        "solver_tolerance": learning.solver_tolerance,
        "spread": learning.spread,
        "weights": plan.weights,
        "calibration": plan.calibration,
        "law": plan.law,
        "sampler": plan.sampler,
        "grid_bits": plan.grid_bits,
        "security_bits": plan.security_bits,
        "engine": "mpc" if plan.parties else "clear",
        "backend": plan.backend,
        "link": None,  # it is in the backend's name
        "security": security_of(plan.backend),
        "parties": plan.parties,
        "pool": plan.pool,
        "min_owners": plan.min_owners or None,
        "release_wait": plan.release_wait,
        "check_owners": plan.check_owners if plan.checks_owners else None,
        "run_id": plan.run_id,
        "role": plan.role,
    }


def planned(plan_file: Path, given: dict[str, Any], explicit: AbstractSet[str]) -> dict[str, Any]:
    """The options of a process that is given a plan: those of the plan, and of `given` what the plan leaves open.

    `explicit`: names of the options that the user wrote. Errors: one of them says otherwise than the plan.
    """
    plan = Plan.read(plan_file)
    options = settled(plan)
    for name in sorted(explicit & options.keys()):
        if given[name] != options[name]:
            option = {"parties": "-M", "lam": "--lam"}.get(name, "--" + name.replace("_", "-"))
            settled_as = plan.backend if name == "link" else options[name]
            raise UsageError(
                f"{option} is settled by the plan: {settled_as}; got {given[name]} beside it; leave it out, or plan "
                "again"
            )
    return {**given, **options_of(plan), "data_id": None, "budget": None}


def options_of(plan: Plan) -> dict[str, Any]:
    """The fields of a request for what the plan says."""
    promise = {
        "epsilon": plan.epsilon,
        "delta": plan.delta or None,
        "threshold": plan.threshold,
        "neighbours": plan.neighbours,
    }
    return {**settled(plan), **promise, "planned": True}


def limits_of(accept: Path | None, given: dict[str, Any], explicit: AbstractSet[str]) -> Limits | None:
    """The limits in the file of `--accept` and those among the options that the user wrote beside a plan; None for
    none. Errors: as `Limits`."""
    found = None if accept is None else Limits.read(accept)
    beside = {name: given[name] for name in LIMITS if name in explicit}
    if "budget" in beside:
        beside["budget"] = parse_budget(beside["budget"])
    if not beside:
        return found
    written = Limits(**beside)
    return written if found is None else found.also(written)
