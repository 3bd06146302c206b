"""The records of an owners' process, as it has them when its run begins: surveyed, loaded, and what is said of them."""

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import replace

from dpmpc.aggregation.owner.local_parties import work_out
from dpmpc.aggregation.plan.asked import plan_path
from dpmpc.aggregation.plan.plan import Plan
from dpmpc.errors import number_of, some
from dpmpc.intake.database import filtered_by
from dpmpc.learning.naming import STAGE as WORDS
from dpmpc.learning.survey_columns import SURVEY
from dpmpc.local.evaluating import all_of, training_part
from dpmpc.local.holdout import unplaced
from dpmpc.local.job import Emit, OwnersJob
from dpmpc.local.learns import Learns
from dpmpc.local.named_records import (
    as_planned,
    check_shape,
    check_sizes,
    load,
    load_owner,
    looked_at,
    misfits_said,
    open_records,
)
from dpmpc.local.surveying import SurveyFirst, found_by, survey, wanted, with_schema
from dpmpc.planning.adviser import Advice
from dpmpc.planning.training import Ahead, expectation, facts_of, plan_of, settled
from dpmpc.privacy.mechanism import Mechanism
from dpmpc.processes.worker import Log
from dpmpc.records import Dataset
from dpmpc.records.loading import OpenTable
from dpmpc.records.mapping import one_value
from dpmpc.records.persons import kept, said_of
from dpmpc.run.files import WHOLE
from dpmpc.run.once import OPENED
from dpmpc.run.stages import whole_plan
from dpmpc.tables.questions import check_spelled

Trains = Callable[[OwnersJob, tuple[Mechanism, ...], OpenTable | None], Learns]  # of a job, and what was before it


def surveyed(job: OwnersJob, emit: Emit, while_read: contextlib.ExitStack, trains: Trains) -> SurveyFirst | None:
    """The run of the job with a survey before it trains, whose records are open as long as `while_read`; None where it
    has none. `trains`: who does then, with the schema of the survey, what that released and the records that are
    open."""
    request, out = job.request, job.out
    if job.addresses is not None or job.plan is not None or job.owner is not None or not wanted(request):
        return None
    begun = [path for stage in (WORDS, SURVEY) if (path := out / stage / WHOLE).is_file()]
    asking = None
    if begun and (out / SURVEY / OPENED).is_file():
        whole = Plan.read(begun[0])
    else:
        if plan_path(out).exists():  # its training was begun without one
            return None
        request.require_owners()
        emit("stage", text="surveying the records")
        say = lambda text: emit("stage", text=text)  # noqa: E731
        found = survey(request, while_read.enter_context(open_records(request, out, request.kept)), say)
        if found is None:
            while_read.close()
            return None
        whole, asking = found

    def follows(plan: Plan, records: OpenTable | None) -> Learns:
        schema, now = found_by(request, whole, plan)
        return trains(replace(job, request=with_schema(now, schema, out / SURVEY)), plan.released, records)

    return SurveyFirst(whole, asking, follows, lambda text: emit("stage", text=text))


def records_and_plan(
    job: OwnersJob,
    emit: Emit,
    before: tuple[Mechanism, ...],
    records: OpenTable | None,
    until: contextlib.ExitStack,
) -> tuple[Dataset, Plan, Advice | None]:
    """The training rows of the owners played here, sorted by owner, the plan, and the advice that it follows or what
    is expected of it. `records`: those of the request, where they are open. `until`: the end of what reads them."""
    plan = job.plan
    if job.owner is not None:
        assert plan is not None
        if job.request.executor is not None:
            from dpmpc.local.records_away import load_away, workers_of

            workers = until.enter_context(workers_of(job.request))
            return load_away(job.request, plan, job.owner, job.out, workers), plan, None
        if job.request.source is None:
            return load_owner(job.request, plan, job.owner, job.out), plan, None
        with own_records(job, plan, emit) as own:
            return load_owner(job.request, plan, job.owner, job.out, own), plan, None
    dataset, split = load(job.request, job.out, plan, records)
    facts = replace(facts_of(dataset, split), before=before)
    if plan is None:
        facts = replace(facts, part=training_part(job.request, all_of(job.request, dataset), dataset.name))
        request, advice = settled(job.request, facts)
        ahead: Ahead = work_out if job.addresses is None else lambda plan: None
        plan = plan_of(request, facts, ahead, chosen=True)
        return dataset, plan, advice or expectation(request, facts)
    check_shape(plan, dataset)
    check_sizes(facts.sizes, plan.sizes)
    return dataset, plan, None


@contextlib.contextmanager
def own_records(job: OwnersJob, plan: Plan, emit: Emit) -> Iterator[OpenTable]:
    """The table of the records of the job's owners while it is open. Where a run begins here, its one owner is told
    what becomes of them. Errors: as for each kind of source."""
    request = as_planned(job.request, plan)
    if job.owner is None or not job.begins:
        with open_records(request, job.out, request.kept, plan) as records:
            yield records
        return
    whole = whole_plan(plan, job.stage)
    with open_records(request, job.out, plan=whole) as records:
        for line in looked_at(whole, request, records.table):
            emit("part", text=line)
        if whole.source.STRICT and request.spelling.misfits == "ask":
            check_spelled(records.table, whole.source.reads, "plan without them")
        found = records if request.kept is None else replace(records, table=kept(records.table, request.kept))
        if text := unplaced(request, whole, job.owner, found.table):
            emit("part", text=f"your records: {text}")
        yield found


def tell(dataset: Dataset, plan: Plan, job: OwnersJob, log: Log, emit: Emit) -> None:
    """Says what became of the records: how many there are to the log, the rest to this process's own terminal, for it
    depends on records."""
    sql, held_here = job.request.sql, job.owner is not None and job.request.executor is None
    held = f"training and {dataset.held_out} test records" if plan.counted else "places for training records"
    log(f"{dataset.name}: {dataset.n} {held}, {dataset.d} features")
    if not plan.capacity and (chosen := filtered_by(sql)):
        emit("stage", text=f"warning: {chosen}")
    if beyond := said_of(dataset.beyond, plan.person_rows):
        emit("stage", text=beyond)
    if dataset.misfits and not held_here and (job.owner is None or job.begins):  # else it was said as the run began
        emit("stage", text=f"warning: {misfits_said(dataset.schema, dataset.misfits, dataset.rows)}")
    alike = one_value(dataset.schema.target, dataset.ends, dataset.rows - dataset.misfits)
    if alike and not held_here and not plan.released:  # else it was said before the survey
        emit("stage", text=f"warning: {alike}")
    for line in () if held_here or plan.released else dataset.given:
        emit("stage", text=f"warning: {line}")
    if held_here and job.begins:  # of each column it was said as the run began
        return
    for counts in dataset.counts:
        if counts.warning is not None:
            emit("stage", text=f"warning: {counts.warning}")
    if unread := [counts for counts in dataset.counts if counts.unread and counts.warning is None]:
        many = sum(counts.unread for counts in unread)
        are = number_of(many, "field is not read and counts", "fields are not read and count")
        each = some([f"'{counts.name}' {counts.unread}" for counts in unread])
        emit("stage", text=f"{are} as missing: {each}")
