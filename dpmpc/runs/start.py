"""What `dpmpc train` does with its options: a whole run on this machine, one process of a run on several, or the plan
alone."""

import asyncio
import hashlib
import json
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from dpmpc.aggregation.active import check_attempt
from dpmpc.aggregation.asked import AGREED, Attempt, data_digest, plan_path
from dpmpc.aggregation.beginning import attempt_of
from dpmpc.aggregation.guarantee import warnings_of
from dpmpc.aggregation.job import PartyJob
from dpmpc.aggregation.limits import NO_LIMITS, Limits, taking_part
from dpmpc.aggregation.party import check_index, run_party
from dpmpc.aggregation.paths import ledger_path, opened_path, transcript_path
from dpmpc.aggregation.plan import Plan
from dpmpc.aggregation.settling import begin_anew, spent_releases
from dpmpc.data import NAMES
from dpmpc.errors import DpmpcError, UsageError
from dpmpc.mpc.addresses import (
    Endpoint,
    owner_endpoints,
)
from dpmpc.privacy.budget import Budget
from dpmpc.privacy.composition import parse_budget
from dpmpc.processes.cores import threads_for
from dpmpc.processes.logs import log_to
from dpmpc.runs.delivering import deliver_model
from dpmpc.runs.folder import make_private, opened_nothing, prepare
from dpmpc.runs.launcher import do_here, request_path, train
from dpmpc.runs.owners import OPENED, OWN_LEDGER, OwnersJob, check_budget, forecast_of
from dpmpc.runs.planning import Facts, expectation, facts_of, facts_without_records, plan_of, settled
from dpmpc.runs.records import load
from dpmpc.runs.request import Request
from dpmpc.runs.where import Where

Progress = Callable[[dict[str, Any]], None]


def start(request: Request | None, where: Where, progress: Progress) -> None:
    """Does a run, or this machine's part of it. `request` may be None only for a party with a plan file.

    Errors: as the processes report them.
    """
    if where.index is not None and request is not None:
        _check_preprocessing(request)
    if where.plan_file is not None:
        check_role(Plan.read(where.plan_file), where)
    if where.party is not None and where.role == "both":
        assert request is not None
        _site(request, where, where.party, progress)
        return
    if where.party is not None:
        _party(request, where, where.party, progress)
        return
    assert request is not None
    if where.index is None:
        train(
            request,
            where.out,
            base_port=where.base_port,
            overwrite=where.overwrite,
            wait=where.patience,
            stall=where.stall,
            threads=where.threads,
            progress=progress,
        )
    else:
        _owners(request, where, progress)


def check_role(plan: Plan, where: Where) -> None:
    """Errors: UsageError for an owner or a party alone where the plan has every owner a party, or the other way."""
    if plan.role == "both" and where.role != "both":
        number = where.party if where.owner is None else where.owner
        site = "I" if number is None else number
        raise UsageError(
            f"in this plan every owner is a party, one process a site; -I {where.index} would be one without the "
            f"other; add --role both and give -I {site}"
        )
    if plan.role != "both" and where.role == "both":
        raise UsageError(
            "--role both needs a plan in which every owner is a party; this one has them apart; make it with "
            "--plan-only --role both"
        )


def carry_on(where: Where, progress: Progress) -> None:
    """Resumes the run in `where.out` with the request it was started with."""
    prepare(where.out, overwrite=False, resume=True)
    try:
        request = Request.from_json(json.loads(request_path(where.out).read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise UsageError(
            f"--resume needs the request.json of a run that was started on one machine; {where.out}: {error}; a "
            "process of several machines is started again with its own command"
        ) from None
    train(
        request,
        where.out,
        base_port=where.base_port,
        resume=True,
        wait=where.patience,
        stall=where.stall,
        threads=where.threads,
        progress=progress,
    )


def plan_only(request: Request, where: Where) -> str:
    """Writes plan.json and returns a line on the noise it asks for, and what it is warned of. Errors: as of the plan; a
    survey is asked for."""
    _check_preprocessing(request)
    prepare(where.out, overwrite=where.overwrite, resume=False)
    facts = _facts(request)
    request, advice = settled(_named(request), facts)
    plan = plan_of(request, facts)
    plan.write(plan_path(where.out))
    advice = advice or expectation(request, facts)
    found = [*warnings_of(plan), *([] if advice is None else advice.warnings)]
    warned = "".join(f"\nwarning: {text}" for text in dict.fromkeys(found))
    step = plan.grid.step / plan.divisor
    derived = plan.derived
    expected = forecast_of(plan, plan.releases, here=False)
    ahead = "" if expected is None else f"\n{expected}; an exchange takes half a round trip besides"
    return (
        f"{where.out / 'plan.json'}: {plan.owners} owners, dimension {plan.dimension}, {plan.releases} releases; "
        f"sensitivity {derived.sensitivity.l2:.4g}, {plan.law} noise of scale {derived.scale_steps * step:.4g} "
        f"({derived.scale_steps:.0f} grid steps){ahead}{warned}"
    )


def _facts(request: Request) -> Facts:
    return facts_of(*load(request)) if request.has_records else facts_without_records(request)


def _plan(request: Request) -> Plan:
    return plan_of(_named(request), _facts(request))


def _check_preprocessing(request: Request) -> None:
    """Errors: UsageError for a survey where processes are started one by one: it is a release before the plan, and its
    findings are what the plan's schema is made of."""
    if request.preprocessing == "survey":
        raise UsageError(
            "a survey comes before the plan, so it needs a run whose processes are all here; got --preprocessing "
            "survey with --plan-only or -I; give a public --schema or --bounds"
        )


def _named(request: Request) -> Request:
    """The request with a run id that all processes started with the same options agree on."""
    if request.run_id is not None:
        return request
    local = dict.fromkeys(("data_dir", "evaluate", "database", "sql", "schema_file", "memory", "precision"))
    names = {key: value and Path(value).name for key, value in (("csv", request.csv), ("records", request.records))}
    public = {**request.to_json(), **local, **names}
    return replace(request, run_id=hashlib.sha256(json.dumps(public, sort_keys=True).encode()).hexdigest()[:16])


def _party(request: Request | None, where: Where, index: int, progress: Progress) -> None:
    make_private(where.out)
    if where.plan_file is not None:
        plan = Plan.read(where.plan_file)
    else:
        assert request is not None
        plan = _plan(request)
    check_index(plan, index)
    part = _part(plan, where, where.endpoints(plan.parties), ledger_path(where.out, index), progress)
    job = _party_job(plan, where, index)
    with (where.out / f"party_{index}.log").open("a", encoding="utf-8") as file:
        log = log_to(file)
        for line in part:
            log(line)
        try:
            asyncio.run(run_party(job, log, lambda event, **fields: progress({"event": event, **fields})))
            if deliver_model(plan, where.out, index):
                log("model written")
        except DpmpcError as error:
            log(f"error: {error}")
            raise


def _site(request: Request, where: Where, index: int, progress: Progress) -> None:
    """Owner and party `index` in this process."""
    assert where.plan_file is not None
    plan = Plan.read(where.plan_file)
    check_index(plan, index)
    if prepare_owners(where):
        progress({"event": "stage", "text": "this run is over; its report is here"})
        return
    part = _part(plan, where, where.endpoints(plan.parties), ledger_path(where.out, index), progress)
    party = _party_job(plan, where, index)
    job = OwnersJob(
        replace(_named(request), role="both", budget=None),
        where.out,
        where.patience,
        time.time(),
        addresses=party.owner_addresses,
        tls=where.tls,
        plan=where.plan_file,
        owner=index,
        party=party,
        check=lambda made: part,
        stall=where.stall,
    )
    do_here(job, where.out / f"site_{index}.log", progress)


def _party_job(plan: Plan, where: Where, index: int) -> PartyJob:
    """The job of a party in `where.out`, which is made ready. Errors: UsageError where it holds another run."""
    addresses = where.endpoints(plan.parties)
    _make_ready(plan, where, index)
    plan.write(where.out / f"plan_{index}.json")
    parties, owners = where.listening(index, addresses)
    return PartyJob(
        plan,
        index,
        parties,
        owners,
        where.out,
        where.patience,
        attempt=attempt_of(plan),
        tls=where.tls,
        threads=where.threads or threads_for(1 if where.addresses else plan.parties),
        budget=_budget(where),
        stall=where.stall,
        outlives=True,
    )


def _make_ready(plan: Plan, where: Where, index: int) -> None:
    """Clears away what --overwrite replaces. What the same run left is carried on. Errors: another run is there."""
    transcript, opened = transcript_path(where.out, index), opened_path(where.out, index)
    if not transcript.exists():
        return
    before = where.out / f"plan_{index}.json"
    same = before.is_file() and Plan.read(before) == plan
    if same and attempt_of(plan) == AGREED and not where.overwrite:
        return
    if same:  # a check that failed is final for the run, also where nothing was opened
        check_attempt(plan, attempt_of(plan), transcript)
    if not where.overwrite and not opened_nothing(opened, ledger_path(where.out, index)):
        if same:
            raise UsageError(
                f"runs over several machines cannot be carried on with the backend {plan.backend}; {where.out} holds a "
                "part of one; start a new run, which spends anew: another --out at every process, or --overwrite"
            )
        raise UsageError(
            f"--out already holds a run of party {index} ({transcript}); name another directory, or add --overwrite"
        )
    for name in (transcript, opened):
        name.unlink(missing_ok=True)
    begin_anew(ledger_path(where.out, index))


def _budget(where: Where) -> Budget | None:
    """The budget of a process that is started alone, from --budget or the file of --accept."""
    given = Limits(budget=None if where.budget is None else parse_budget(where.budget))
    budget = given.also(where.limits or NO_LIMITS).budget  # the stricter
    return None if budget is None else Budget.below(budget, where.ledgers, where.out)


def _check_data_id(plan: Plan, where: Where) -> None:
    """Errors: the plan is for other data than the budget, or it is not said which the budget is for."""
    data_id = where.data_id or (None if where.limits is None else where.limits.data_id)
    if data_id is None:
        if where.plan_file is None or (plan.data in NAMES and plan.data_id == data_digest(plan.data)):
            return
        raise UsageError(
            f"--budget is for the records of one --data-id; the plan has {plan.data!r}; add --data-id with the name "
            "that you keep your budget under"
        )
    if plan.data_id != data_digest(data_id):
        raise UsageError(
            f"a budget binds runs on the same data; --data-id {data_id!r} is not the plan's {plan.data!r}; plan "
            "again, or refuse to take part"
        )


def _owners(request: Request, where: Where, progress: Progress) -> None:
    request = _named(request)
    if prepare_owners(where, request.run_id):
        progress({"event": "stage", "text": "this run is over; its report is here"})
        return
    plan = None if where.plan_file is None else Plan.read(where.plan_file)
    addresses = where.endpoints(request.parties if plan is None else plan.parties)
    job = OwnersJob(
        request,
        where.out,
        where.patience,
        time.time(),
        addresses=owner_endpoints(addresses),
        check=lambda made: _part(made, where, addresses, where.out / OWN_LEDGER, progress),
        budget=_budget(where),
        tls=where.tls,
        plan=where.plan_file,
        owner=where.owner,
        stall=where.stall,
    )
    do_here(job, where.out / "owners.log", progress)


def _part(plan: Plan, where: Where, addresses: Sequence[Endpoint], ledger: Path, progress: Progress) -> list[str]:
    """Tells what this process is about to take part in, and returns the lines. Errors: it exceeds this process's
    limits; without any, those that hold for everybody, where somebody else made the plan."""
    lines = taking_part(plan, [f"{e.host}:{e.port}" for e in addresses])
    for line in lines:
        progress({"event": "part", "text": line})
    if where.plan_file is not None or where.limits is not None:
        (where.limits or NO_LIMITS).check(plan)
    budget = _budget(where)
    if budget is not None:
        _check_data_id(plan, where)
        spent = 0 if where.overwrite else spent_releases(ledger, plan.run_id)
        check_budget(plan, Attempt(0, min(spent, plan.releases)), budget, ledger)
    return lines


def prepare_owners(where: Where, run_id: str | None = None) -> bool:
    """Makes the run directory of an owners' process that runs alone. One that comes again to the same run gets the
    history anew. Returns whether its part of the run is over already. Errors: it holds another run."""
    make_private(where.out)
    opened, finished = where.out / OPENED, [where.out / name for name in ("report.json", "model.npz")]
    if not where.overwrite:
        returns = _returns(where, run_id)
        done = [path for path in finished if not opened_nothing(path)]
        if returns and len(done) == len(finished):
            return True
        if not returns:
            for path in (opened, *finished):
                if not opened_nothing(path):
                    raise UsageError(f"--out already holds a run ({path}); name another directory, or add --overwrite")
    else:
        begin_anew(where.out / OWN_LEDGER)
    for path in (opened, where.out / "history.csv", *finished):
        path.unlink(missing_ok=True)
    return False


def _returns(where: Where, run_id: str | None) -> bool:
    """Whether this process was here before, in the same run, and may come again."""
    if not plan_path(where.out).is_file():
        return False
    before = Plan.read(plan_path(where.out))
    if not before.dropouts and attempt_of(before) != AGREED:
        return False
    return before.run_id == run_id if where.plan_file is None else before == Plan.read(where.plan_file)
