"""What is given beside a plan that was made elsewhere: limits that it must keep, never settings that override it."""

from collections.abc import Set as AbstractSet
from dataclasses import replace
from pathlib import Path
from typing import Any

from dpmpc.aggregation.plan.limits import NO_LIMITS, Limits, limited
from dpmpc.aggregation.plan.plan import Plan
from dpmpc.aggregation.plan.settings import Attendance, Computing, Noise, PromiseSettings
from dpmpc.errors import UsageError
from dpmpc.mpc.contract.security import security_of
from dpmpc.settings import values_of

# Options that beside a plan say what it must keep; `records` and `owners` are other things there.
LIMITS = tuple(name for name in limited() if name not in ("records", "owners", "schema"))


def settled(plan: Plan) -> dict[str, Any]:
    """The settings of training that the plan has settled, as they would have to be given."""
    return {
        **plan.source.settled,
        **values_of(plan, Noise, Computing, Attendance),
        "calibration": plan.calibration,
        "iterations": plan.releases,
        "weights": plan.weights,
        "engine": "mpc" if plan.parties else "clear",
        "link": "",  # it is in the backend's name
        "security": security_of(plan.backend),
        "run_id": plan.run_id,
    }


def planned(plan_file: Path, given: dict[str, Any], explicit: AbstractSet[str]) -> dict[str, Any]:
    """The options of a process that is given a plan: those of the plan, and of `given` what the plan leaves open.

    `explicit`: names of the options that the user wrote. Errors: one of them says otherwise than the plan.
    """
    plan = Plan.read(plan_file)
    options = settled(plan)
    for name in sorted(explicit & options.keys() - set(LIMITS)):
        if given[name] != options[name]:
            settled_as = plan.backend if name == "link" else options[name]
            raise UsageError(
                f"<<{name}>> is settled by the plan: {settled_as}; got {given[name]} beside it; leave it out, or plan "
                "again"
            )
    return {**given, **options, **values_of(plan, PromiseSettings), "data_id": None, "budget": None, "planned": True}


def limits_of(accept: Path | None, given: dict[str, Any], explicit: AbstractSet[str]) -> Limits | None:
    """The limits in the file of `--accept` and those among the options that the user wrote beside a plan; None for
    none. Errors: as `Limits`."""
    found = None if accept is None else Limits.read(accept)
    beside = {name: given[name] for name in LIMITS if name in explicit}
    if not beside:
        return found
    written = Limits(**beside)
    return written if found is None else found.also(written)


def check_kept(limits: Limits | None, plan_file: Path) -> None:
    """Returns if the plan keeps these limits, where one command executes all of it. A budget, and whose it is, is held
    against ledgers instead. Errors: as `Limits.check`."""
    if limits is not None and (others := replace(limits, budget=None, data_id=None)) != NO_LIMITS:
        others.check(Plan.read(plan_file))
