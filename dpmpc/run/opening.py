"""Whoever opens the sums of a plan: made here, and nowhere else outside of `aggregation`."""

from dpmpc.aggregation.owner.aggregator import Aggregator
from dpmpc.aggregation.owner.local_parties import PartiesHere
from dpmpc.aggregation.owner.own_ledger import OwnLedger
from dpmpc.aggregation.plan.asked import FIRST_ATTEMPT, Attempt
from dpmpc.aggregation.plan.here import HERE, Here
from dpmpc.aggregation.plan.plan import Plan
from dpmpc.run.seat import Seat


def connected(plan: Plan, seat: Seat, attempt: Attempt = FIRST_ATTEMPT, ledger: OwnLedger | None = None) -> Aggregator:
    """What opens the releases of a plan for the owners here: connected with the parties, as a context. `ledger`: of
    this process. Errors: PeerError when a party does not come; UsageError for what no run can do."""
    return Aggregator.of_plan(
        plan,
        seat.here,
        parties=seat.parties,
        addresses=seat.addresses,
        owners=seat.owners,
        attempt=attempt,
        say=seat.say,
        ledger=ledger,
        books=seat.books,
    )


def joined(plan: Plan, parties: PartiesHere, owners: tuple[int, int], here: Here = HERE) -> Aggregator:
    """What opens the same releases for some of the owners, with parties of this machine that have their job."""
    return Aggregator.joining(plan, parties, owners, here)
