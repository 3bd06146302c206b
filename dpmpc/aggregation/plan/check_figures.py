"""What the checks of a run's parties and owners come to, for reports and counts."""

import math
from typing import Any

from dpmpc.aggregation.plan.owner_bounds import passing, what_is_checked
from dpmpc.aggregation.plan.plan import Plan
from dpmpc.errors import any_of
from dpmpc.mpc.contract.backend import BACKENDS, Counts
from dpmpc.mpc.contract.owner_checks import NORMS, ChecksOwners
from dpmpc.mpc.contract.security import security_of


def security_section(plan: Plan) -> dict[str, Any] | None:
    """What the parties may do, for reports; None without parties.

    `undetected_bits`: of all stages of the run together, 2^-bits."""
    if not plan.parties:
        return None
    section: dict[str, Any] = {"mode": security_of(plan.backend), "threshold": plan.threshold}
    probability = plan.undetected
    if probability is not None:
        section["undetected_bits"] = -math.log2(probability)
    return section


def security_line(plan: Plan) -> str:
    """The section in a line."""
    probability = plan.undetected
    if not plan.parties or security_of(plan.backend) == "semi-honest":
        return "parties follow the protocol (semi-honest)"
    found = "" if probability is None else f"; a cheat passes with probability 2^{math.log2(probability):.1f} at most"
    return f"{any_of(plan.threshold)} of {plan.parties} may cheat{found}"


def count_checks(plan: Plan) -> tuple[Counts, ...]:
    """What the parties send to check one release, by channel; empty where they check nothing."""
    test, backend = plan.derived.owner_test, BACKENDS[plan.backend]
    if test is None or not isinstance(backend, ChecksOwners):
        return ()
    return backend.count_owner_checks(test, plan.parties, plan.threshold)


def owners_section(plan: Plan) -> dict[str, Any] | None:
    """What is checked of owners, for reports; None where nothing is."""
    test = plan.derived.owner_test
    if test is None:
        return None
    return {
        "mode": plan.check_owners,
        "checks": list(what_is_checked(plan)),
        "undetected_bits": -math.log2(passing(plan, test)),
        "bound_steps": None if test.norms is None else math.sqrt(max(test.norms.squares)),
        "projections": 0 if test.norms is None else test.norms.projections,
        "blocks": 0 if test.norms is None else len(test.norms.bounds),
    }


def owners_line(plan: Plan) -> str:
    """The section in a line."""
    section = owners_section(plan)
    if section is None:
        return "owners are not checked"
    what = "shares and norms" if NORMS in section["checks"] else "shares, not norms,"
    if section["blocks"] > 1:
        what = f"shares, and the norms of {section['blocks']} blocks,"
    return (
        f"owners are checked: their {what} in every release; one that must not passes with probability "
        f"2^-{section['undetected_bits']:.1f} at most"
    )
