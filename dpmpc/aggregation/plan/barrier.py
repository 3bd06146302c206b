"""The barrier of a release: what parties say before any share of its opening leaves, and when they say it.

A party that opens once its own inputs are in shows a corrupt one the noisy sum, while an owner that is late at another
honest party may still choose what it sends there. So all wait for all. Touches nothing.
"""

import struct

from dpmpc.aggregation.plan.plan import Plan
from dpmpc.mpc.contract.backend import BACKENDS, Counts

SAID = struct.Struct("<16sQ")  # token of the attempt, release: all its inputs are here


def has_barrier(plan: Plan) -> bool:
    """Whether a release has an exchange of its own in which all parties say so. Where owners are agreed on, or
    checked, that exchange is one: a party reports, or promises its part of the coin, when it has the shares."""
    return plan.derived.owner_test is None and not plan.dropouts


def count_barrier(plan: Plan) -> Counts:
    """What the parties send for it, on a channel of its own."""
    if not has_barrier(plan):
        return Counts()
    return BACKENDS[plan.backend].count_barrier(SAID.size, plan.parties)
