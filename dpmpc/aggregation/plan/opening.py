"""What the releases of a plan opened, with what is public about it: what its source is told (`learning.source`)."""

import math
from collections.abc import Mapping
from functools import partial

import numpy as np

from dpmpc.aggregation.plan.asked import Presence
from dpmpc.aggregation.plan.grid import Ints
from dpmpc.aggregation.plan.guarantee import promise_of
from dpmpc.aggregation.plan.plan import Plan
from dpmpc.aggregation.plan.stages import sum_of
from dpmpc.learning.source import Opening, Sum
from dpmpc.outcome import Level
from dpmpc.privacy.law import DEFAULT_LAW, LAWS
from dpmpc.records.schema import Schema


def opening_of(
    plan: Plan,
    opened: Mapping[int, Ints],
    present: Mapping[int, Presence] | None = None,
    draft: Schema | None = None,
    guarantee: str | None = None,
) -> Opening:
    """The opening of sums in grid steps, by release; `present`: the owners in each, where some may be missing. `draft`:
    what was known of the schema before a survey. `guarantee`: by default the plan's own sentence."""
    who = present or {}
    sums = tuple(sum_of(plan, opened[release], who.get(release)) for release in sorted(opened))
    return opening_of_sums(plan, sums, who.get(max(opened)), draft, guarantee)


def opening_of_sums(
    plan: Plan,
    sums: tuple[Sum, ...],
    present: Presence | None = None,
    draft: Schema | None = None,
    guarantee: str | None = None,
) -> Opening:
    """The same of sums in the units of the vectors; `present`: the owners in the last."""
    owners, promise = tuple(range(plan.owners)) if present is None else tuple(present), promise_of(plan)
    return Opening(
        run=plan.run_id,
        data=plan.data,
        sums=sums,
        owners=owners,
        everybody=plan.owners,
        sizes=tuple(plan.sizes[j] for j in owners),
        counted=plan.counted,
        divisor=plan.divisor,
        releases=plan.releases,
        guarantee=promise.sentence if guarantee is None else guarantee,
        reach=partial(reach_of, plan),
        schema=plan.schema,
        draft=draft,
        promised=(promise.epsilon, promise.delta),
        neighbours=plan.neighbours,
        holds_if=promise.assumptions,
        names=() if plan.names is None else plan.names.owners,
    )


def reach_of(plan: Plan, confidence: float) -> float:
    """How many scales of the plan's noise a coordinate's noise stays within with at least this probability, by the law
    on the grid, which is symmetric; 0 without noise.

    Guarantees: a whole number of grid steps. Of Gaussian noise the least one from z scales on: at scale s the k steps
    on each side of 0 have a mass of Phi((k + 1/2) / s) - Phi(-(k + 1/2) / s), but for the error of the midpoint rule
    over those cells, whose first term k exp(-k^2 / 2 s^2) / (12 s^3) is below what the half cell beyond k adds.
    """
    mechanism = plan.derived.mechanism
    if not mechanism.scale:
        return 0.0
    if plan.law == DEFAULT_LAW:  # without SciPy, which a party does not need
        steps = math.ceil(Level(confidence).z * mechanism.scale)
    else:
        law = LAWS[plan.law].exact(mechanism.scale, mechanism.discrete)
        steps = int(law.quantiles(np.array([(1 + confidence) / 2]))[0])
    return math.nextafter(steps / mechanism.scale, math.inf)
