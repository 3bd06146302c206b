"""Runs whose parties are checked (`--security active`): what that comes to."""

from dpmpc.aggregation.plan.asked import Asked
from dpmpc.circuits.sampler import Sampler
from dpmpc.errors import UsageError
from dpmpc.mpc.contract.backend import BACKENDS
from dpmpc.mpc.contract.decisions import CountsDecisions, Decision
from dpmpc.mpc.contract.owner_checks import OwnerTest
from dpmpc.mpc.contract.security import Checks, security_of
from dpmpc.noise.draw import batches_of
from dpmpc.noise.pool import fills


def batches_due(plan: Asked, sampler: Sampler, releases: int) -> list[int]:
    """The sizes, in channel order, of the noise batches for this many releases."""
    sizes = fills(releases, plan.drawn) if plan.pool else [1] * releases
    backend, among = BACKENDS[plan.backend], (plan.parties, plan.threshold)
    return [size for vectors in sizes for size in batches_of(backend, sampler, vectors * plan.drawn, *among)]


def undetected(
    plan: Asked, sampler: Sampler, test: OwnerTest | None, decision: Decision | None = None
) -> float | None:
    """How likely the run, with all its attempts, uses noise that a cheating party changed, or a check of owners or a
    decision that it changed, at most; None where the parties are not checked, or there is no noise."""
    backend = BACKENDS[plan.backend]
    if not plan.parties or not isinstance(backend, Checks) or plan.scale == 0:
        return None
    among = plan.parties, plan.threshold
    owners = 0.0 if test is None else backend.undetected_owners(test, plan.releases, *among)
    if decision is not None and isinstance(backend, CountsDecisions):
        owners += backend.undetected_decision(decision, *among)
    return backend.undetected(sampler, batches_due(plan, sampler, plan.releases), *among) + owners


def check_active(plan: Asked) -> None:
    """Errors: UsageError for a plan whose parties cannot be checked.

    Who is present is what the parties tell each other. A cheat that tells one honest party that an owner is missing,
    and the other that it is there, is shown shares of two sums; with its own shares they give away that owner's vector.
    """
    if plan.dropouts and plan.parties and security_of(plan.backend) == "active":
        raise UsageError(
            "<<security=active>> needs all owners in every release, for a party could tell the others different ones; "
            f"got <<min_owners={plan.min_owners}>> of {plan.owners}; leave it out, or use <<security=semi-honest>>",
            code="together",
        )
