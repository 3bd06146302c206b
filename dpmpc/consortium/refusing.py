"""What a process of several machines refuses for its budget's sake, and who hears that it refuses: those of the meeting
that it would come to."""

import contextlib
from collections.abc import Callable

from dpmpc.aggregation.plan.plan import Plan
from dpmpc.aggregation.wire.refusal import refusal_told
from dpmpc.consortium.placement import Placement
from dpmpc.errors import UsageError
from dpmpc.mpc.transport.addresses import owner_endpoints
from dpmpc.privacy.data_names import data_digest
from dpmpc.records import NAMES


def told_by(plan: Callable[[], Plan], where: Placement) -> contextlib.AbstractContextManager[None]:
    """The others of this plan hear it where what is inside refuses: see `refusal_told`."""
    alone = None if where.owner is None else (where.owner, where.owner + 1)
    return refusal_told(
        plan,
        lambda: owner_endpoints(where.endpoints(plan().parties)),
        where.tls,
        party=where.party,
        owners=alone,
    )


def check_data_id(plan: Plan, where: Placement) -> None:
    """Errors: the plan is for other data than the budget, or it is not said which the budget is for."""
    data_id = where.data_id or (None if where.limits is None else where.limits.data_id)
    if data_id is None:
        brought = plan.data in NAMES and plan.data_id == data_digest(plan.data) and not where.own_records
        if where.plan_file is None or brought:
            return
        raise UsageError(
            f"<<budget>> is for the records of one <<data_id>>; the plan has {plan.data!r}; add <<data_id>> with the "
            "name that you keep your budget under",
            code="missing",
        )
    if plan.data_id != data_digest(data_id):
        raise UsageError(
            f"a budget binds runs on the same data; <<data_id={data_id!r}>> is not the plan's {plan.data!r}; plan "
            "again, or refuse to take part"
        )
