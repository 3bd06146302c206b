"""What a release of a plan writes in a ledger: its price, for all neighbours of which something is proved."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from dpmpc.aggregation.plan.asked import Attempt, Presence
from dpmpc.aggregation.plan.plan import Plan
from dpmpc.privacy.account import Account
from dpmpc.privacy.budget import Budget
from dpmpc.privacy.data_names import data_digest
from dpmpc.privacy.entry import Entry
from dpmpc.privacy.law import LAWS
from dpmpc.privacy.ledgers import Reservation
from dpmpc.privacy.sensitivity import Sensitivity, rounding_bound


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
        prices=prices_of(plan),
        present=present,
        lost=tuple(sorted(lost)),
        token=token,
        part=plan.part,
    )


def reservation_of(plan: Plan, attempt: Attempt) -> Reservation:
    """All releases that an attempt still has to make."""
    return Reservation(entry_of(plan, attempt, attempt.first_release), attempt.first_release, plan.releases)


def stages_of(plans: Iterable[Plan], spent: Callable[[Plan], int] = lambda plan: 0) -> list[Reservation]:
    """All releases that are left of the stages of a run, whose plans these are; `spent`: how many a stage has made."""
    made = [(plan, Attempt(0, min(spent(plan), plan.releases))) for plan in plans]
    return [reservation_of(plan, attempt) for plan, attempt in made]


def held_against(budget: Budget | None, account: Account | None) -> Budget | None:
    """The budget with what the account remembers."""
    return None if budget is None else replace(budget, account=account)


def prices_of(plan: Plan) -> tuple[tuple[str, Sensitivity], ...]:
    """How far the opened sum moves, in grid steps, for other neighbours than the plan's: (name, sensitivity), sorted.

    Guarantees: every owner's own code clips its vector to L2 norm `clip` whatever its records are, so replacing them
    all moves it by 2 clip at most (less where a method's vectors lie closer: `Method.reach`), and the mean by that
    times the largest weight; rounding adds what it always does. A record's presence has a price where it is proved; a
    person's, where the promise is not of persons, is that of all records of all owners.
    """
    rounding = rounding_bound(plan.dimension, plan.grid.step, plan.divisor)
    law, unit = LAWS[plan.law], plan.grid.step / plan.divisor
    others = {name: moved for name, moved in plan.levels.items() if name != plan.neighbours}
    touched = {"person": plan.owners}  # whoever is a person may be at every owner
    return tuple(
        sorted(
            (name, law.moved((moved + rounding * touched.get(name, 1)).steps(unit))) for name, moved in others.items()
        )
    )
