"""What a release of a plan writes in a ledger: its price, for the plan's neighbours and for whole owners."""

from collections.abc import Sequence

from dpmpc.aggregation.asked import Attempt, Presence, data_digest
from dpmpc.aggregation.derive import owner_level
from dpmpc.aggregation.plan import Plan
from dpmpc.privacy.entry import Entry
from dpmpc.privacy.law import LAWS
from dpmpc.privacy.ledgers import Reservation
from dpmpc.privacy.sensitivity import rounding_bound


def entry_of(
    plan: Plan,
    attempt: Attempt,
    release: int,
    present: Presence | None = None,
    lost: Sequence[int] = (),
    token: str = "",
) -> Entry:
    """The ledger line of a release; `present`: the owners in it, where some may be missing; `lost`: the parties that
    had left by then; `token`: of the attempt, which a ledger adds where the attempt was begun in it."""
    names = (plan.data,) if data_digest(plan.data) == plan.data_id else ()
    return Entry(
        plan.run_id,
        release,
        (plan.data_id,),
        plan.derived.mechanism,
        plan.releases,
        plan.epsilon,
        plan.delta,
        names=names,
        attempt=attempt.number,
        neighbours=plan.neighbours,
        owner_sensitivity=owner_sensitivity(plan),
        present=present,
        lost=tuple(sorted(lost)),
        token=token,
    )


def reservation_of(plan: Plan, attempt: Attempt) -> Reservation:
    """All releases that an attempt still has to make."""
    return Reservation(entry_of(plan, attempt, attempt.first_release), attempt.first_release, plan.releases)


def owner_sensitivity(plan: Plan) -> float:
    """How far all of one owner's records together move the opened sum, in grid steps and in the noise law's norm.

    Guarantees: every owner's own code clips its vector to L2 norm `clip` whatever its records are, so replacing them
    all moves it by 2 clip at most (less where a method's vectors lie closer: `Method.reach`), and the mean by that
    times the largest weight; rounding adds what it always does.
    """
    whole = owner_level(plan, rounding_bound(plan.dimension, plan.grid.step, plan.divisor))
    return LAWS[plan.law].sensitivity(whole.steps(plan.grid.step / plan.divisor), plan.dimension)
