"""The plan of training over several machines, with a survey before it and an evaluation after it where it has them."""

from dataclasses import replace

from dpmpc.aggregation.plan.asked import data_digest
from dpmpc.aggregation.plan.plan import Plan
from dpmpc.data.schema import Schema
from dpmpc.runs.evaluating import shared
from dpmpc.runs.planning import asked_of_machines, facts_of_schema, plan_of
from dpmpc.runs.request import Request
from dpmpc.statistics.held_out import TRAINING, Evaluated, exact_parts


def plan_of_machines(request: Request, schema: Schema, sizes: tuple[int, ...], survey: bool) -> tuple[Plan, str]:
    """The plan for owners of so many records, and what is to be said of an evaluation that it does not have. `schema`:
    with a survey, the draft of one. From public numbers alone. Errors: as `Request` and `Plan`."""
    held, note = shared(request, schema, sizes)
    if not held:
        return _trained(request, schema, sizes, survey), note
    trained = tuple(n - k for n, k in zip(sizes, held, strict=True))
    part = exact_parts(data_digest(request.data_id or "records"), trained, held).assignment.label(TRAINING)
    plan = _trained(replace(request, owner_sizes=trained), schema, trained, survey, part)
    return replace(plan, source=Evaluated.of(plan.learning, sizes, held)), ""


def _trained(request: Request, schema: Schema, sizes: tuple[int, ...], survey: bool, part: str = "") -> Plan:
    """The plan of training on so many records, which are this part of all."""
    name = request.data_id or "records"
    if survey:
        return asked_of_machines(request, schema, sizes, name, part)
    return plan_of(request, replace(facts_of_schema(name, schema, sizes), part=part))
