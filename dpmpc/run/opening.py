"""Whoever opens the sums of a plan: made here, and nowhere else outside of `aggregation`."""

from dpmpc.aggregation.owner.aggregator import Aggregator
from dpmpc.aggregation.owner.local_parties import PartiesHere
from dpmpc.aggregation.owner.own_ledger import OwnLedger
from dpmpc.aggregation.plan.asked import FIRST_ATTEMPT, Attempt
from dpmpc.aggregation.plan.plan import Plan
from dpmpc.run.here import Here


def connected(plan: Plan, here: Here, attempt: Attempt = FIRST_ATTEMPT, ledger: OwnLedger | None = None) -> Aggregator:
    """What opens the releases of a plan for the owners here: connected with the parties, as a context. `ledger`: of
    this process. Errors: PeerError when a party does not come; UsageError for what no run can do."""
    return Aggregator.of_plan(
        plan,
        out=here.out,
        parties=here.parties,
        addresses=here.addresses,
        owners=here.owners,
        attempt=attempt,
        tls=here.tls,
        wait=here.wait,
        stall=here.stall,
        say=here.say,
        ledger=ledger,
        budget=here.books.budget,
        account=here.books.account,
    )


def joined(plan: Plan, parties: PartiesHere, owners: tuple[int, int], wait: float) -> Aggregator:
    """What opens the same releases for some of the owners, with parties of this machine that have their job."""
    return Aggregator.joining(plan, parties, owners, wait)
