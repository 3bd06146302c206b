"""Runs whose parties are checked (`--security active`): what that comes to, and what is final."""

from pathlib import Path

from dpmpc.aggregation.asked import Asked, Attempt
from dpmpc.aggregation.transcript import read_transcript
from dpmpc.circuits.sampler import Sampler
from dpmpc.errors import UsageError
from dpmpc.mpc.backend import BACKENDS
from dpmpc.mpc.owner_checks import OwnerTest
from dpmpc.mpc.security import Checks, security_of
from dpmpc.noise.draw import batch_sizes
from dpmpc.noise.pool import fills

CHECKED = "checked"  # the transcript's event of a batch whose check held
ABORT = "abort"  # the transcript's event of a failed check


def batches_due(plan: Asked, releases: int) -> list[int]:
    """The sizes, in channel order, of the noise batches for this many releases."""
    sizes = fills(releases, plan.dimension) if plan.pool else [1] * releases
    return [size for vectors in sizes for size in batch_sizes(vectors * plan.dimension)]


def undetected(plan: Asked, sampler: Sampler, test: OwnerTest | None) -> float | None:
    """How likely the run, with all its attempts, uses noise that a cheating party changed, or a check of owners that it
    changed, at most; None where the parties are not checked, or there is no noise."""
    backend = BACKENDS[plan.backend]
    if not plan.parties or not isinstance(backend, Checks) or plan.scale == 0:
        return None
    owners = 0.0 if test is None else backend.undetected_owners(test, plan.releases)
    return backend.undetected(sampler, batches_due(plan, plan.releases)) + owners


def check_active(plan: Asked) -> None:
    """Errors: UsageError for a plan whose parties cannot be checked.

    Who is present is what the parties tell each other. A cheat that tells one honest party that an owner is missing,
    and the other that it is there, is shown shares of two sums; with its own shares they give away that owner's vector.
    """
    if plan.dropouts and plan.parties and security_of(plan.backend) == "active":
        raise UsageError(
            "--security active needs all owners in every release, for a party could tell the others different ones; "
            f"got --min-owners {plan.min_owners} of {plan.owners}; leave it out, or use --security semi-honest"
        )


def check_attempt(plan: Asked, attempt: Attempt, transcript: Path) -> None:
    """Errors: UsageError for an attempt of a run in which this party saw a check fail, or one too many."""
    backend = BACKENDS[plan.backend]
    if not isinstance(backend, Checks):
        return
    if attempt.number >= backend.most_attempts:
        raise UsageError(
            f"a run with --security active has at most {backend.most_attempts:,} attempts, for each is a try for a "
            f"cheat; this is number {attempt.number + 1:,}; start a new run"
        )
    if transcript.exists() and any(event.get("event") == ABORT for event in read_transcript(transcript)):
        raise UsageError(
            f"a run in which a check of the parties failed is over for good; {transcript} tells which; find out who "
            "cheated, then start a new run"
        )
