"""Who hears that a process of several machines refuses to take part: those of the meeting that it would come to."""

import contextlib

from dpmpc.aggregation.plan.plan import Plan
from dpmpc.aggregation.wire.refusal import refusal_told
from dpmpc.mpc.transport.addresses import owner_endpoints
from dpmpc.runs.placement import Placement
from dpmpc.runs.stages import is_settled, settled_plan


def next_meeting(plan: Plan, where: Placement) -> Plan:
    """The plan that this process meets the others for next: of the first stage that is not over here."""
    while before := plan.source.schedule.before:
        if where.overwrite or not is_settled(plan, where.out):
            return plan.first
        plan = Plan.read(settled_plan(where.out, before[0].name))
    return plan


def told_by(plan: Plan, where: Placement) -> contextlib.AbstractContextManager[None]:
    """The others of this plan hear it where what is inside refuses: see `refusal_told`."""
    alone = None if where.owner is None else (where.owner, where.owner + 1)
    return refusal_told(
        plan,
        lambda: owner_endpoints(where.endpoints(plan.parties)),
        where.tls,
        party=where.party,
        owners=alone,
    )
