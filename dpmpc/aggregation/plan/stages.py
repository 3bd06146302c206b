"""The stages of a plan: the plan of each, and the plan of what follows from it.

A plan whose source has stages before its own releases (`Source.schedule`) fixes beforehand all that does not depend on
what they will open: their prices, the price of the whole run, how many releases there are, and at most how many
coordinates each has. `stage_plan` is the plan of a stage; `after_first` makes, of what the first one opened, the plan
with one stage fewer. Every process does that by itself, with arithmetic that is the same on every processor, and they
compare the digests of the plans that they made when they meet for the next release.

Guarantees: what follows may depend on all that was opened, but no price does. `Plan.before` has the mechanism of every
stage that shares the promise, and the plan's own noise is solved for with all of them: those that are to come are
derived from the source, those that were opened stand in the plan (`released`). A plan that is shorter than what can
follow is refused; so is a stage that leads to dearer or longer ones than were planned. A stage after the plan's
releases is of another part of the data, where no record pays for both; with stages before that were of all records it
shares the promise, so its own plan has their mechanisms (`Stage.shared`). Each stage is a run with a name of its own,
so a stream of randomness is never begun twice.
"""

import math
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np

from dpmpc.aggregation.plan.asked import Asked, Presence
from dpmpc.aggregation.plan.grid import Ints
from dpmpc.aggregation.plan.settings import Attendance, Computing, Noise, PromiseSettings
from dpmpc.errors import UsageError
from dpmpc.learning.source import ALL, Source, Stage, Sum
from dpmpc.privacy.law import DEFAULT_LAW, LAWS
from dpmpc.privacy.mechanism import Mechanism
from dpmpc.records.schema import Schema
from dpmpc.settings import values_of

P = TypeVar("P", bound=Asked)


def stage_plan(plan: P, stage: Stage, source: Source | None = None) -> P:
    """The plan of one release in a stage: the same owners, parties and checks; Gaussian noise for its price. Weights
    are those of records, so that an opened sum is one over all records. `source`: by default the stage's."""
    sent = stage.source if source is None else source
    assert sent.coordinates is not None
    settings = values_of(plan, PromiseSettings, Noise, Computing, Attendance) | {
        "epsilon": plan.epsilon if stage.epsilon is None else stage.epsilon,
        "law": DEFAULT_LAW,
        "sampler": next(iter(LAWS[DEFAULT_LAW].samplers)),
        "scale": None,
        "grid_bits": None,
        "pool": False,
    }
    return type(plan)(
        run_id=f"{plan.run_id}+{stage.name}",
        data=plan.data,
        data_id=plan.data_id,
        sizes=stage.sizes or plan.sizes,
        dimension=sent.coordinates,
        releases=1,
        source=sent,
        weights="size",
        names=plan.names,
        rests_on=plan.origin.read,
        found=plan.origin.found,
        part=_part_of(plan.part, stage.part),
        capacity=plan.capacity,
        released=plan.before[: stage.shared] if stage.shared else (),
        stage_of=plan.file_digest,
        **settings,
    )


def _part_of(mine: str, stage: str) -> str:
    """The label of a stage's part."""
    if stage in ("", ALL):
        return "" if stage else mine
    return f"{mine.rpartition('/')[0]}/{stage}"


def noise_of(plan: Any) -> float:
    """The deviation of the noise on the sum over all that a plan's release divides by."""
    return float(plan.derived.mechanism.scale * plan.grid.step)


def sum_of(plan: Any, total: Ints, present: Presence | None = None) -> Sum:
    """What a release of a plan opened, in the units of its vectors."""
    return Sum(np.asarray(total, dtype=np.float64) * plan.grid.step, plan.divisor_of(present), noise_of(plan))


def after_first(plan: P, total: Ints, present: Presence | None = None) -> P:
    """The plan after its first stage has opened `total`. Errors: nothing can follow; what follows is dearer or longer
    than was planned."""
    stage, *others = plan.source.schedule.before
    opened: Any = stage_plan(plan, stage)
    made = plan.source.follows(sum_of(opened, total, present))
    coming = made.source.schedule.before
    if [each.epsilon for each in coming] != [each.epsilon for each in others] or any(
        (new.source.coordinates or 0) > (old.source.coordinates or 0) for new, old in zip(coming, others, strict=True)
    ):
        raise UsageError(
            f"stages keep the prices and lengths that were planned; those after {stage.name} do not", code="plan"
        )
    dimension = plan.dimension if made.dimension is None else made.dimension
    if dimension > plan.dimension:
        raise UsageError(
            f"a {stage.name} leads to at most {plan.dimension} coordinates; got {dimension}; plan again", code="plan"
        )
    released, schema = plan.before[: len(plan.before) - len(others)], plan.schema
    if made.schema is not None:
        schema = _found(plan, made.schema, released, opened)
    passed = plan.passed + (opened.derived.undetected or 0.0)
    return replace(plan, source=made.source, dimension=dimension, schema=schema, released=released, passed=passed)


def _found(plan: Any, schema: dict[str, Any], released: tuple[Mechanism, ...], opened: Any) -> dict[str, Any]:
    """The schema that stages led to, the last of them `opened`, with what they promise: all that released anything
    before it but the questions, which it does not rest on."""
    from dpmpc.aggregation.plan.guarantee import found_by  # a process that opens nothing does not need it

    return Schema.from_json(schema).found_by(found_by(plan, released[plan.source.asked_first :], opened)).to_json()


def check_stages(plan: Any) -> None:
    """Errors: UsageError for a plan whose length is not the most that can follow a stage; for a stage after it on the
    same records; for stages in which, all together, a cheat passes too easily."""
    schedule = plan.source.schedule
    if (schedule.before or schedule.after or plan.passed) and (plan.undetected or 0.0) > 2.0**-plan.security_bits:
        raise UsageError(
            f"the checks of the parties must be {plan.security_bits:g} bits secure over all stages of the run and all "
            f"attempts of each; they are {-math.log2(plan.undetected):.1f}; lower <<security_bits>>, or use "
            "<<security=semi-honest>>",
            code="range",
        )
    if schedule.before:
        first = plan.ahead[min(plan.source.deciding, len(plan.ahead) - 1)]
        longest = plan.source.longest(first.divisor, noise_of(first))
        if longest is not None and plan.dimension != longest:
            raise UsageError(
                f"a release after a {schedule.before[0].name} has at most {longest} coordinates; the plan says "
                f"{plan.dimension}; plan again",
                code="plan",
            )
    parted = plan.source.parted(plan.data_id)
    if parted is not None:
        mine = plan.part.rpartition("/")[2]
        sizes = {mine: plan.sizes, **{stage.part: stage.sizes for stage in schedule.after}}
        if mine not in parted.sizes or plan.part != parted.assignment.label(mine) or sizes != parted.sizes:
            raise UsageError(
                "the parts of the records, and their sizes, follow from the plan's data and its numbers of records; "
                "those of this plan are others; plan again",
                code="plan",
            )
        if parted.places == plan.counted:
            raise UsageError(
                "parts of exact sizes need public numbers of records, and places have parts of places; the plan says "
                "otherwise; plan again"
            )
        if parted.column != (plan.person or "" if plan.persons is not None else ""):
            raise UsageError("parts of persons are of the promise's column; the plan says another; plan again")
        if plan.persons is not None and any(n % plan.persons.rows for each in parted.sizes.values() for n in each):
            raise UsageError(
                "each person has as many places, in whichever part; the plan's sizes are others; plan again"
            )
    for stage in schedule.after:
        if not stage.part or not plan.part or plan.part.endswith(f"/{stage.part}"):
            raise UsageError(
                f"a stage after the releases is of another part of the data; {stage.name} is not; plan again",
                code="plan",
            )
