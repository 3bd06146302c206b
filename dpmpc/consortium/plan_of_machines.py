"""The plan of training over several machines, with questions and a survey before it and an evaluation after it, where
it has them."""

import hashlib
import json
import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from dpmpc.aggregation.plan.checks import of_usual_size
from dpmpc.aggregation.plan.plan import Plan
from dpmpc.lazy import dataclass
from dpmpc.local.evaluating import TEST, in_places, shared
from dpmpc.planning.forecast import cells_at
from dpmpc.planning.request import Request
from dpmpc.planning.training import asked_of_machines, facts_of_schema, left, plan_of, surveyed_first
from dpmpc.privacy.data_names import data_digest
from dpmpc.privacy.gaussian import epsilon_of_mu, mu_of_budget
from dpmpc.privacy.mechanism import Mechanism
from dpmpc.records.origins import Origin
from dpmpc.records.schema import Schema
from dpmpc.statistics.held_out import TRAINING, Evaluated, parts_of
from dpmpc.statistics.study import Study
from dpmpc.statistics.tables import Tables
from dpmpc.tables.stats import plan_of_tables


@dataclass(frozen=True)
class Beforehand:
    """Questions that come before training: where their columns' bounds come from, which share of mu^2 they take, and
    what is said of their release."""

    tables: Tables
    origin: Origin
    share: float
    settings: dict[str, Any]


@of_usual_size()
def plan_of_machines(
    request: Request, schema: Schema, sizes: tuple[int, ...], complete: bool, asked: Beforehand | None = None,
    owners: Sequence[str] = (),
) -> tuple[Plan, str]:  # fmt: skip
    """The plan for owners of so many records, and what is to be said of an evaluation that it does not have. `schema`:
    what is public of the columns; `complete`: a schema, and no bounds, which a survey restricts. `owners`: their names,
    where they have any, by which they keep their parts when records come and go. From public numbers alone.
    Errors: as `Request` and `Plan`."""
    draw = _draw(request, owners or sizes)
    if asked is None:
        plan, _, note = _evaluated(request, schema, sizes, complete, draw, ())
        return plan, note
    name, price = request.data_id or "records", request.epsilon
    if request.delta:  # without one the questions are refused
        price = epsilon_of_mu(mu_of_budget(request.epsilon, request.delta) * math.sqrt(asked.share), request.delta)
    settings = asked.settings | {"epsilon": price}
    alone = plan_of_tables(
        asked.tables, sizes, name, name, settings, asked.origin, capacity=request.capacity is not None, by_person=True
    )
    before = (alone.derived.mechanism,)
    plan, learning, note = _evaluated(request, schema, sizes, complete, draw, before)
    study = Study.asking(learning, asked.tables, price, sizes)
    return replace(plan, source=study, released=()), note


def _draw(request: Request, owners: Sequence[str] | Sequence[int]) -> str:
    """What plans of the same share and owners have in common, whatever the numbers of their records."""
    said = json.dumps([TEST if request.test_fraction is None else request.test_fraction, list(owners)])
    return hashlib.sha256(said.encode()).hexdigest()[:32]


def _evaluated(
    request: Request, schema: Schema, sizes: tuple[int, ...], complete: bool, draw: str, before: tuple[Mechanism, ...]
) -> tuple[Plan, Any, str]:
    """The plan, its source with an evaluation where there is one, and what is to be said of it."""
    held, note = shared(left(request, before), schema, sizes)
    if not held:
        plan = _trained(request, schema, sizes, complete, "", before)
        return plan, plan.source, note
    trained = tuple(n - k for n, k in zip(sizes, held, strict=True))
    share, column = in_places(request)
    cells = cells_at(request, sum(held), schema)
    parted = parts_of(data_digest(request.data_id or "records"), draw, trained, held, share, column)
    part = parted.assignment.label(TRAINING)
    plan = _trained(replace(request, owner_sizes=trained), schema, trained, complete, part, before)
    source = Evaluated.of(plan.learning, sizes, held, draw, share, column, cells)
    return (plan if before else replace(plan, source=source)), source, note


def _trained(
    request: Request, schema: Schema, sizes: tuple[int, ...], complete: bool, part: str, before: tuple[Mechanism, ...]
) -> Plan:
    """The plan of training on so many records, which are this part of all."""
    name = request.data_id or "records"
    if surveyed_first(left(request, before), schema, sizes, complete):
        return asked_of_machines(request, schema, sizes, name, part, before)
    return plan_of(request, replace(facts_of_schema(name, schema, sizes), part=part, before=before))
