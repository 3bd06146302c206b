"""What `dpmpc train` does with its options: a whole run on this machine, one process of a run on several, or the plan
alone."""

import contextlib
import time
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from dpmpc.aggregation.owner.accounts import Books
from dpmpc.aggregation.party.job import PartyJob
from dpmpc.aggregation.party.party import check_index, run_party
from dpmpc.aggregation.party.resume import check_attempt, check_new, spent_releases
from dpmpc.aggregation.plan.asked import AGREED, FIRST_ATTEMPT, Attempt, plan_path
from dpmpc.aggregation.plan.fields import differing, marks
from dpmpc.aggregation.plan.here import Here
from dpmpc.aggregation.plan.limits import NO_LIMITS, Limits
from dpmpc.aggregation.plan.names import named_errors, named_lines
from dpmpc.aggregation.plan.plan import Plan
from dpmpc.aggregation.plan.shown import taking_part
from dpmpc.aggregation.plan.spending import entry_of
from dpmpc.aggregation.wire.paths import ledger_path, opened_path, transcript_path
from dpmpc.codec import loads
from dpmpc.consortium.again import until_begun
from dpmpc.consortium.placement import Placement
from dpmpc.consortium.plan_alone import check_preprocessing, named_request, planned
from dpmpc.consortium.refusing import check_data_id, told_by
from dpmpc.errors import DpmpcError, UsageError, public_message
from dpmpc.intake.scratch import sweep_below
from dpmpc.learning.method import Learning
from dpmpc.learning.source import Schedule
from dpmpc.local.delivering import deliver_after, deliver_here, deliver_stage
from dpmpc.local.holdout import check_alone, check_named
from dpmpc.local.job import OwnersJob
from dpmpc.local.launcher import train
from dpmpc.local.owner_process import Does, Progress, run_owners
from dpmpc.local.planned_here import run_planned
from dpmpc.mpc.transport.addresses import owner_endpoints
from dpmpc.mpc.transport.site_keys import list_for
from dpmpc.planning.request import Request
from dpmpc.processes.cores import threads_for
from dpmpc.processes.logs import log_to
from dpmpc.processes.supervisor import run_here
from dpmpc.run.files import OWN_LEDGER, OWNERS_OPENED
from dpmpc.run.folder import make_private, opened_nothing, prepare, request_path
from dpmpc.run.once import OPENED as STAGE_OPENED
from dpmpc.run.reserve import budget_below, check_budget
from dpmpc.run.seat import Seat
from dpmpc.run.stages import RunStages, StagePart, coming, opened_by_party
from dpmpc.settings import values_of


def start(request: Request | None, where: Placement, progress: Progress) -> None:
    """Does a run, or this machine's part of it. `request` may be None only for a party with a plan file.

    Errors: as the processes report them.
    """
    if where.plan_file is not None and where.index is not None:
        take_part(Plan.read(where.plan_file), request, where, progress)
        return
    assert request is not None
    if where.plan_file is not None:
        _execute(Plan.read(where.plan_file), request, where, progress)
        return
    if where.index is None:
        train(request, Here(**values_of(where, Here)), progress=progress)
        return
    check_preprocessing(request)
    if where.party is not None:
        plan = planned(request)[1]
        _part_of(StagePart(plan, plan), where, request=None, progress=progress)
    else:
        sweep_below(where.out)
        with told_by(lambda: planned(request)[1], where):  # the others have it from the same options
            _owners(None, named_request(request), where, progress)


def _execute(plan: Plan, request: Request, where: Placement, progress: Progress) -> None:
    """The whole run of a plan file, which all happens here. Errors: as of `run_planned`."""
    if where.overwrite:
        raise UsageError(
            "a plan that is executed here has a folder of its own each time; got <<overwrite>>; name another <<out>>",
            code="over",
        )
    where = replace(where, own_records=request.source is not None)
    if where.budget is not None or where.data_id is not None:
        check_data_id(plan, where)
    run_planned(plan, request, Seat(Here(**values_of(where, Here)), _books(where)), progress)


def take_part(plan: Plan, request: Request | None, where: Placement, progress: Progress) -> None:
    """This machine's part of a run whose plan is in the file of the placement, stages and all. `request`: which records
    an owner has here; None for a party. Errors: as the processes report them."""
    check_role(plan, where)
    where = replace(where, own_records=request is not None and request.source is not None)
    check_alone(plan, where.party, where.owner)
    if request is not None:  # what it left of its records when it was killed
        sweep_below(where.out)
    with named_errors(plan.called):
        stages = RunStages(plan, where, _books(where))
        staged = plan.source.schedule != Schedule()
        if staged:
            stages.begin()
            for line in _shown(plan, where):
                progress({"event": "part", "text": plan.called(line)})
        told: Progress = lambda event: progress({**event, **_named_text(event, plan)})  # noqa: E731
        with contextlib.ExitStack() as whole:
            with told_by(stages.next, where):
                check_named(request, plan)
                if staged:
                    stages.check()
                    _check_limits(plan, where)
                whole.enter_context(stages.reserved())
            does = partial(_part_of, request=request, progress=told)
            own, _ = stages.run(does, partial(_note, plan, where), deliver_stage)
            deliver_after(own, where.out)


def _part_of(part: StagePart, where: Placement, *, request: Request | None, progress: Progress) -> None:
    """This process's part of a meeting."""
    plan = part.plan
    with named_errors(partial(differing, plan=part.whole)), told_by(lambda: plan, where):
        ledger = where.out / OWN_LEDGER if where.party is None else ledger_path(where.out, where.party)

        def mine(again: bool) -> None:
            tell = partial(_unless_told, progress) if again else progress
            if where.party is not None and where.role != "both":
                _party(part, where, where.party, tell)
                return
            assert request is not None
            if where.party is not None:
                _site(part, request, where, where.party, tell)
            else:
                _owners(part, request, where, tell)

        def say(text: str) -> None:
            _note(part.whole, where, text)
            progress({"event": "stage", "text": text})

        until_begun(mine, partial(spent_releases, ledger, plan.run_id), where.patience, say)


def _unless_told(progress: Progress, event: dict[str, Any]) -> None:
    """What the process takes part in is told once."""
    if event["event"] != "part":
        progress(event)


def _note(plan: Plan, where: Placement, text: str) -> None:
    """A line in the log of this process, between the stages of its plan."""
    alone = f"party_{where.party}" if where.role != "both" else f"site_{where.party}"
    with (where.out / f"{'owners' if where.party is None else alone}.log").open("a", encoding="utf-8") as file:
        named_lines(log_to(file), plan.called)(text)


def _named_text(event: dict[str, Any], plan: Plan) -> dict[str, Any]:
    return {"text": plan.called(event["text"])} if "text" in event else {}


def check_role(plan: Plan, where: Placement) -> None:
    """Errors: UsageError for an owner or a party alone where the plan has every owner a party, or the other way."""
    if plan.role == "both" and where.role != "both":
        number = where.party if where.owner is None else where.owner
        site = "I" if number is None else number
        raise UsageError(
            f"in this plan every owner is a party, one process a site; <<index={where.index}>> would be one without "
            f"the other; add <<role=both>> and give <<index={site}>>"
        )
    if plan.role != "both" and where.role == "both":
        raise UsageError(
            "<<role=both>> needs a plan in which every owner is a party; this one has them apart; make it with "
            "<<plan_only>> <<role=both>>"
        )


def carry_on(where: Placement, progress: Progress) -> None:
    """Resumes the run in `where.out` with the request it was started with."""
    prepare(where.out, overwrite=False, resume=True)
    try:
        request = Request.from_json(loads(request_path(where.out).read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise UsageError(
            f"<<resume>> needs the request.json of a run that was started on one machine; {where.out}: {error}; a "
            "process of several machines is started again with its own command",
            code="file",
        ) from None
    train(request, Here(**values_of(where, Here)), resume=True, progress=progress)


def _party(mine: StagePart, where: Placement, index: int, progress: Progress) -> None:
    plan, stage = mine.plan, mine.stage
    make_private(where.out)
    check_index(plan, index)
    part = _part(mine, where, ledger_path(where.out, index), progress)
    job = _party_job(mine, where, index)
    with (where.out / f"party_{index}.log").open("a", encoding="utf-8") as file:
        plain = named_lines(log_to(file), partial(differing, plan=mine.whole))
        log = named_lines(plain, plan.called)
        for line in part:
            log(line)
        try:
            run_here(lambda: run_party(job, plain, lambda event, **fields: progress({"event": event, **fields})))
            if stage is not None:
                stage.settle(*opened_by_party(plan, where.out, index))
            elif deliver_here(plan, where.out, index):
                log(f"{plan.source.MAKES} written")
        except DpmpcError as error:
            log(f"error: {public_message(error)}")
            raise


def _site(mine: StagePart, request: Request, where: Placement, index: int, progress: Progress) -> None:
    """Owner and party `index` in this process."""
    plan, stage = mine.plan, mine.stage
    check_index(plan, index)
    if prepare_owners(where, plan, staged=stage is not None):
        progress({"event": "stage", "text": "this run is over; its report is here"})
        return
    lines = _part(mine, where, ledger_path(where.out, index), progress)
    party = _party_job(mine, where, index)
    job = OwnersJob(
        request,
        where,
        time.time(),
        addresses=party.owner_addresses,
        plan=plan,
        owner=index,
        party=party,
        check=lambda made: lines,
        stage=stage,
        begins=party.begins,
    )
    run_owners(job, where.out / f"site_{index}.log", progress, _one_release(mine))


def _party_job(mine: StagePart, where: Placement, index: int) -> PartyJob:
    """The job of a party in `where.out`, which is made ready. Errors: UsageError where it holds another run."""
    plan, stage = mine.plan, mine.stage
    addresses = where.endpoints(plan.parties)
    _make_ready(plan, where, index)
    plan.write(where.out / f"plan_{index}.json")
    return PartyJob(
        plan,
        index,
        *where.listening(index, addresses),
        where.but(threads=where.threads or threads_for(1 if where.addresses else plan.parties)),
        attempt=plan.attempt,
        budget=_books(where).limit(plan),
        account=_books(where).account(plan),
        tolerates_loss=True,
        says=marks(mine.whole),
        followed=bool(plan.source.schedule.after if stage is None else stage.whole.source.schedule.before),
        begins=mine.begins,
    )


def _make_ready(plan: Plan, where: Placement, index: int) -> None:
    """Clears away what --overwrite replaces. What the same run left is carried on. Errors: another run is there."""
    transcript, opened = transcript_path(where.out, index), opened_path(where.out, index)
    if not transcript.exists():
        return
    before = where.out / f"plan_{index}.json"
    same = before.is_file() and Plan.read(before) == plan
    if same and plan.attempt == AGREED and not where.overwrite:
        return
    if same:  # a check that failed is final for the run, also where nothing was opened
        check_attempt(plan, plan.attempt, transcript)
    if not where.overwrite and not opened_nothing(opened, ledger_path(where.out, index)):
        if same:
            raise UsageError(
                f"runs over several machines cannot be carried on with the backend {plan.backend}; {where.out} holds a "
                "part of one; start a new run, which spends anew: another <<out>> at every process, or <<overwrite>>",
                code="over",
            )
        raise UsageError(
            f"<<out>> already holds a run of party {index} ({transcript}); name another directory, or add "
            "<<overwrite>>",
            code="over",
        )
    check_new([ledger_path(where.out, index)], plan.run_id)
    for name in (transcript, opened):
        name.unlink(missing_ok=True)


def _books(where: Placement) -> Books:
    """Where the releases of a process count that is started alone: within the budget of --budget or of the file of
    --accept, the stricter of both."""
    said = Limits(budget=where.budget).also(where.limits or NO_LIMITS).budget
    return Books.kept(where.account, budget_below(said, where.ledgers, where.out), callers=where.own_records)


def _owners(mine: StagePart | None, request: Request, where: Placement, progress: Progress) -> None:
    """The owners, or one of them, in this process. None: they make the plan of what they have."""
    plan, stage = (None, None) if mine is None else (mine.plan, mine.stage)
    if prepare_owners(where, plan, request.run_id, stage is not None):
        progress({"event": "stage", "text": "this run is over; its report is here"})
        return
    addresses = where.endpoints(request.parties if plan is None else plan.parties)

    def check(made: Plan) -> list[str]:
        return _part(mine or StagePart(made, made), where, where.out / OWN_LEDGER, progress)

    job = OwnersJob(
        request,
        where,
        time.time(),
        addresses=owner_endpoints(addresses),
        budget=_books(where).budget,
        plan=plan,
        owner=where.owner,
        check=check,
        stage=stage,
        begins=mine is None or mine.begins,
    )
    run_owners(job, where.out / "owners.log", progress, _one_release(mine))


def _one_release(mine: StagePart | None) -> Does | None:
    """What owners do in a stage, or in a run that trains nothing; None: they train."""
    if mine is None or (mine.stage is None and mine.plan.source.TRAINS):
        return None
    from dpmpc.consortium.one_release import run_alone, run_stage

    plan, stage, asked = mine.plan, mine.stage, mine.asked
    if stage is None:
        return lambda job, log, emit: run_alone(job, plan, asked, log, emit)
    return lambda job, log, emit: run_stage(job, plan, stage, log, emit)


def _part(mine: StagePart, where: Placement, ledger: Path, progress: Progress) -> list[str]:
    """Tells what this process is about to take part in, and returns the lines. Errors: it exceeds this process's
    limits; without any, those that hold for everybody, where somebody else made the plan. In a stage, and in what
    follows it: of the whole plan, which is what a person decides on."""
    plan, stage = mine.whole, mine.stage
    asked = mine.asked if stage is None else plan
    lines = _shown(plan, where)
    again = stage is not None or (plan == asked and plan.source.schedule != Schedule())  # before stages all was shown
    for line in () if again else lines:
        progress({"event": "part", "text": line})
    if where.plan_file is not None and plan.part and plan.source.parted(plan.data_id) is None:
        raise UsageError(
            "a part of the data is known to the account of who holds the records; the plan is of a part that nobody "
            "here has drawn; refuse to take part, or plan again for all records"
        )
    _check_limits(asked, where)
    list_for(where.tls, mine.asked.file_digest)
    budget = _books(where).limit(plan)
    if budget is not None:
        spent, held = spent_releases(ledger, mine.plan.run_id), mine.plan
        others = [each for each in coming(plan) if not spent or each.run_id != mine.plan.run_id]
        if stage is not None and plan.source.schedule.before:
            held, spent = plan, 0
        elif stage is not None:  # after the plan's releases
            others = []
        entries = tuple(entry_of(each, FIRST_ATTEMPT, 0) for each in others)
        check_budget(held, Attempt(0, min(spent, held.releases)), budget, ledger, entries)
    return lines


def _shown(plan: Plan, where: Placement) -> list[str]:
    """What a person is shown of the plan that this process takes part in."""
    return taking_part(plan, [f"{e.host}:{e.port}" for e in where.endpoints(plan.parties)])


def _check_limits(asked: Plan, where: Placement) -> None:
    """Errors: a plan exceeds this process's limits, or those that hold for everybody; its data are not the budget's."""
    if where.plan_file is not None or where.limits is not None:
        limits, owner = where.limits or NO_LIMITS, where.party if where.role == "both" else where.owner
        limits.check(asked) if owner is None else limits.check_owner(asked, owner)
    if _books(where).budget is not None:
        check_data_id(asked, where)


def prepare_owners(where: Placement, plan: Plan | None, run_id: str | None = None, staged: bool = False) -> bool:
    """Makes the run directory of an owners' process that runs alone, or the folder of its stage. One that comes again
    to the same run gets the history anew. Returns whether its part of the run is over already. `plan`: made before;
    without one the run has the name `run_id`. Errors: it holds another run."""
    make_private(where.out)
    made = Learning.RESULT if plan is None else plan.source.RESULT
    results = (STAGE_OPENED,) if staged else ("report.json", made)
    opened, finished = where.out / OWNERS_OPENED, [where.out / name for name in results]
    if not where.overwrite:
        returns = _returns(where.out, plan, run_id)
        done = [path for path in finished if not opened_nothing(path)]
        if returns and len(done) == len(finished):
            return True
        if not returns:
            for path in (opened, *finished):
                if not opened_nothing(path):
                    raise UsageError(
                        f"<<out>> already holds a run ({path}); name another directory, or add <<overwrite>>",
                        code="over",
                    )
    else:
        check_new([where.out / OWN_LEDGER], (run_id if plan is None else plan.run_id) or "")
    for path in (opened, where.out / "history.csv", *finished):
        path.unlink(missing_ok=True)
    return False


def _returns(out: Path, plan: Plan | None, run_id: str | None) -> bool:
    """Whether this process was here before, in the same run, and may come again."""
    if not plan_path(out).is_file():
        return False
    before = Plan.read(plan_path(out))
    if not before.dropouts and before.attempt != AGREED:
        return False
    return before.run_id == run_id if plan is None else before == plan
