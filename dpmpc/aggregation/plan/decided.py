"""Runs whose sums are decided inside the MPC (`Source.votes`): the bound that margins are held against, what delta pays
for it, and what it costs.

Margins, as if all were opened with their noise, are a Gaussian release. A cell of which two neighbours may turn a sign
passes with probability at most Q(z): its margin is then `Votes.turns` at most, and the bound is z deviations more. All
such cells together, `Votes.cells` Q(z), are a failure that delta pays: a tenth of it at most. docs/words.md has the
proof.
"""

import math

from dpmpc.aggregation.plan.asked import Asked
from dpmpc.aggregation.plan.grid import Grid
from dpmpc.circuits.sampler import Sampler
from dpmpc.errors import UsageError
from dpmpc.learning.quantile_of_noise import upper_quantile
from dpmpc.mpc.contract.backend import BACKENDS, Backend, Counts
from dpmpc.mpc.contract.decisions import CountsDecisions, Decision
from dpmpc.privacy.guarantee import failure_factor
from dpmpc.privacy.law import DEFAULT_LAW

SHARE = 10  # of delta: what turned signs take of it is one part in so many


def check_decided(plan: Asked) -> None:
    """Errors: UsageError for votes that cannot be decided as the plan says."""
    votes = plan.source.votes
    if votes is None:
        return
    if plan.law != DEFAULT_LAW or not plan.delta or plan.scale is not None or plan.calibration != "tight":
        raise UsageError(
            f"votes are decided by Gaussian noise for a promise with <<delta>>; got <<law={plan.law}>>, delta "
            f"{plan.delta:g}, scale {plan.scale}, calibration {plan.calibration}; leave them out, and give <<delta>>",
            code="together",
        )
    if plan.sampler != "discrete" or plan.releases != 1 or plan.weights != "size" or plan.dimension % votes.each:
        raise UsageError(
            "votes are decided once, by whole numbers of records and exact noise; got "
            f"<<sampler={plan.sampler}>>, {plan.releases} releases, weights {plan.weights}, {plan.dimension} votes; "
            "plan again",
            code="together",
        )
    if plan.dropouts or plan.checks_owners or plan.capacity or plan.persons is not None:
        raise UsageError(
            "votes are decided of all owners' records, whose numbers are public; got <<min_owners>>, "
            "<<check_owners>>, places or persons; leave them out",
            code="together",
        )
    if plan.parties:
        deciding(plan).check_decisions(plan.parties, plan.threshold)


def deciding(plan: Asked) -> CountsDecisions:
    """The plan's backend. Errors: UsageError for one whose parties cannot decide."""
    backend: Backend = BACKENDS[plan.backend]
    if not isinstance(backend, CountsDecisions):
        raise UsageError(
            f"votes are decided on replicated shares; got <<backend={plan.backend}>>, which cannot; use <<parties=3>> "
            "or a few more, with <<backend=sharing>>",
            code="together",
        )
    return backend


def turned(plan: Asked) -> float:
    """How likely a sign is opened that two neighbours turn, at most: what delta pays for it is this times
    `failure_factor`; 0 where nothing is decided."""
    votes = plan.source.votes
    return 0.0 if votes is None else plan.delta / (SHARE * failure_factor(max(plan.epsilon, votes.within)))


def hiding_of(plan: Asked) -> float:
    """The statistical distance that conversions of decided signs leave."""
    if plan.source.votes is None or not plan.parties:
        return 0.0
    return deciding(plan).hiding_decision(plan.dimension, plan.parties, plan.threshold)


def decision_of(plan: Asked, grid: Grid, sampler: Sampler) -> Decision | None:
    """What is decided; None where nothing is.

    least = turns + 2 steps + z sigma, rounded up, with `cells` Q(z) = `turned`. Guarantees: two neighbours' sums lie
    at most turns + 1 steps apart in a vote (an owner's rounded vector is off by half a step at most), so a sign turns
    only where the margin is at most that; it passes then only where the noise is at least z sigma + 1, and a discrete
    Gaussian is with probability at most Q(z) (Canonne, Kamath, Steinke 2020, proposition 25).
    """
    votes = plan.source.votes
    if votes is None:
        return None
    z = upper_quantile(turned(plan) / votes.cells)
    least = math.ceil(votes.turns / grid.step) + 2 + math.ceil(z * (1 + 2.0**-40) * sampler.scale)
    reach = math.ceil(sum(plan.sizes) / grid.step) + plan.owners + sampler.largest
    return Decision(plan.drawn, votes.each, least, reach)


def count_decisions(plan: Asked, decision: Decision | None) -> tuple[Counts, ...]:
    """What the parties send to decide, by channel; empty where they decide nothing."""
    if decision is None or not plan.parties:
        return ()
    return deciding(plan).count_decision(decision, plan.parties, plan.threshold)
