"""The plan alone: what `dpmpc train --plan-only` writes, and what processes that are started one by one make of the
same options."""

import hashlib
import json
from dataclasses import replace
from pathlib import Path

from dpmpc.aggregation.plan.asked import plan_path
from dpmpc.aggregation.plan.guarantee import survey_share, warnings_of
from dpmpc.aggregation.plan.plan import Plan
from dpmpc.consortium.placement import Placement
from dpmpc.errors import UsageError, number_of
from dpmpc.learning.task import modelled
from dpmpc.local.named_records import load, open_records
from dpmpc.local.surveying import asked_of, draft_for, owners_of_records, wanted
from dpmpc.planning.adviser import Advice
from dpmpc.planning.request import Request
from dpmpc.planning.training import (
    Facts,
    asked_of_machines,
    expectation,
    facts_of,
    facts_without_records,
    foretold,
    plan_of,
    settled,
    surveyed_first,
)
from dpmpc.records.origins import assumption
from dpmpc.records.schema import Schema
from dpmpc.run.folder import prepare
from dpmpc.run.forecast import forecast_of


def plan_only(request: Request, where: Placement) -> str:
    """Writes plan.json; a line on the noise it asks for, and what it is warned of. Errors: as of the plan."""
    prepare(where.out, overwrite=where.overwrite, resume=False)
    advice, plan = planned(request, survey=True)
    plan.write(plan_path(where.out))
    found = [f"the guarantee holds if {text}"] if (text := assumption(plan.origin.read)) else []
    found += [*warnings_of(plan), *foretold(plan, advice)]
    warned = "".join(f"\nwarning: {text}" for text in dict.fromkeys(found))
    step = plan.grid.step / plan.divisor
    derived = plan.derived
    expected = forecast_of(plan, plan.releases, here=False)
    ahead = "" if expected is None else f"\n{expected}; an exchange takes half a round trip besides"
    shape = f"dimension {plan.dimension}"
    if plan.source.schedule.before:
        share = survey_share(plan)
        shape = f"a survey of {plan.first.dimension} coordinates with {share:.0%} of the budget, then at most {shape}"
    return (
        f"{where.out / 'plan.json'}: {plan.owners} owners, {shape}, {number_of(plan.releases, 'release')}; "
        f"sensitivity {derived.sensitivity.l2:.4g}, {plan.law} noise of scale {derived.scale_steps * step:.4g} "
        f"({derived.scale_steps:.0f} grid steps){ahead}{warned}"
    )


def planned(request: Request, survey: bool = False) -> tuple[Advice | None, Plan]:
    """The plan, and the advice that it follows or what is expected of it. `survey`: whether it may begin with one."""
    request = named_request(request)
    if survey and (found := _with_survey(request)) is not None:
        return None, found
    facts = _facts(request)
    request, advice = settled(request, facts)
    return advice or expectation(request, facts), plan_of(request, facts, chosen=True)


def _facts(request: Request) -> Facts:
    return facts_of(*load(request)) if request.has_records else facts_without_records(request)


def _with_survey(request: Request) -> Plan | None:
    """The plan that begins with a survey; None where none was asked for, nothing is left open, or it would find
    nothing."""
    if request.source is None:
        if request.schema is None or request.owner_sizes is None:
            return None
        draft = modelled(Schema.read(Path(request.schema)).on(request.basis), request.task)
        sizes, name = request.owner_sizes, request.data_id or "records"
        complete = True
    else:
        if not wanted(request):
            return None
        with open_records(request, person=request.kept) as records:
            table, asked = records.table, asked_of(request)
            draft, sizes = draft_for(request, table, table, asked), owners_of_records(request, table)[2]
            name, complete = table.source, False
    if not surveyed_first(request, draft, sizes, complete):
        return None
    return asked_of_machines(request, draft, sizes, name)


def check_preprocessing(request: Request) -> None:
    """Errors: UsageError for a survey where processes are started one by one without a plan."""
    if request.preprocessing == "survey":
        raise UsageError(
            "a survey is release 0 of a plan that all processes have; there is none; make it with <<plan_only>>, and "
            "give it to each with <<plan_file>>",
            code="missing",
        )


def named_request(request: Request) -> Request:
    """The request with a run id that all processes started with the same options agree on."""
    if request.run_id is not None:
        return request
    own = (
        "data_dir",
        "evaluate",
        "database",
        "sql",
        "schema",
        "word_list",
        "memory",
        "precision",
        "executor",
        "workers",
        "spelling",
    )
    local = dict.fromkeys(own)
    names = {key: value and Path(value).name for key, value in (("csv", request.csv), ("records", request.records))}
    public = {**request.to_json(), **local, **names}
    return replace(request, run_id=hashlib.sha256(json.dumps(public, sort_keys=True).encode()).hexdigest()[:16])
