"""An owner's part in a run of one release whose parties are elsewhere, of tables or in a stage of a longer plan: its
records in, one vector out; the opened sum, and the answers to every question, in its folder."""

import contextlib
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np

from dpmpc.aggregation.party.beside_owner import PartyHere
from dpmpc.aggregation.plan.grid import Floats
from dpmpc.aggregation.plan.plan import Plan
from dpmpc.errors import RecordError, UsageError
from dpmpc.intake.missing import keeping
from dpmpc.intake.staging import held
from dpmpc.intake.table import Table
from dpmpc.lazy import dataclass
from dpmpc.local.delivering import deliver_ended
from dpmpc.local.holdout import rows_of
from dpmpc.local.job import Emit, OwnersJob, says
from dpmpc.local.named_records import as_planned, fits_at_first
from dpmpc.local.own_records import own_records
from dpmpc.local.surveying import owners_of_records
from dpmpc.privacy.assignment import Parted
from dpmpc.processes.worker import Log
from dpmpc.records.mapping import targets_of
from dpmpc.records.ownership import fitting
from dpmpc.records.persons import persons_at
from dpmpc.records.planned import OTHER_SIZES, other_sizes
from dpmpc.run.owners import Ended
from dpmpc.run.run import ReadOnce, release
from dpmpc.run.stages import StageJob, StagePart, whole_plan
from dpmpc.statistics.held_out import EVALUATION
from dpmpc.statistics.study import QUESTIONS

SCHEMA = "dpmpc.stats/1"
_TEXTS = {
    "words": "opening words",
    "survey": "surveying the records",
    QUESTIONS: "asking all questions at once",
    EVALUATION: "evaluating the model on held-out records",
}  # of stages


def run_alone(job: OwnersJob, plan: Plan, asked: Plan, log: Log, emit: Emit) -> None:
    """Does the one release of the job's plan, which trains nothing. `asked`: the plan that the run began with.

    Errors: records that the source, or its questions, cannot be asked of, before any connection; as of releases."""
    if plan.releases != 1:
        raise UsageError(
            f"what reads records once makes one release; this plan of {plan.source.KIND} has {plan.releases}; plan one"
        )

    def keep(ended: Ended) -> None:
        deliver_ended(plan, asked, ended, job.out, time.time() - job.started)
        if asked.source.DRAWS:
            log("synthetic rows written")

    _part(job, StagePart(plan, asked), log, emit, plan.source.DOES, keep)
    log(f"{plan.source.MAKES} written")


def run_stage(job: OwnersJob, plan: Plan, stage: StageJob, log: Log, emit: Emit) -> None:
    """Does the one release of a stage. Errors: as `run_alone`."""
    _part(job, StagePart(plan, plan, stage), log, emit, _TEXTS.get(stage.name, f"stage {stage.name}"))


def _part(
    job: OwnersJob, part: StagePart, log: Log, emit: Emit, text: str,
    keep: Callable[[Ended], None] = lambda ended: None,
) -> None:  # fmt: skip
    """Does a part of one release. `keep` is given what became of it: before the parties hear that it is here, where
    they can be asked again."""
    plan = part.plan
    for line in job.check(plan):
        log(line)
    with contextlib.ExitStack() as outer:
        emit("stage", text="loading records", phase="loading records")
        vectors = _vectors(job, plan, outer, emit)
        if job.owner is not None:  # what is wrong with one owner's records is told before it connects
            vectors = iter(list(vectors))
        size = sum(plan.sizes) if job.owner is None else plan.sizes[job.owner]
        log(f"{size} {'records' if plan.counted else 'places for records'}, {plan.dimension} counts")
        first = plan.attempt.first_release
        emit("plan", releases=plan.releases, first=first)
        emit("begin", run=plan.run_id, releases=plan.releases, first=first)
        seat = job.seat(says(log, emit))
        if job.party is not None:
            party = PartyHere(job.party, log, emit)
            outer.callback(party.end)
            seat = replace(seat, parties=party)
        release(part, _Sent(vectors, text, keep, emit), seat)


@dataclass(frozen=True)
class _Sent(ReadOnce):
    """The vectors of the owners here, and what becomes of them."""

    made: Iterator[Floats]
    text: str
    keep: Callable[[Ended], None]
    emit: Emit

    def vectors(self, plan: Plan) -> Iterator[Floats]:
        return self.made

    def shows(self, plan: Plan) -> contextlib.AbstractContextManager[Emit]:
        return contextlib.nullcontext(self.emit)

    def doing(self, plan: Plan) -> str:
        return self.text

    def keeps(self, plan: Plan, out: Path | None, ended: Ended) -> None:
        self.keep(ended)


def _vectors(job: OwnersJob, plan: Plan, outer: contextlib.ExitStack, emit: Emit) -> Iterator[Floats]:
    """`vectors_of` the job's records, here or where workers read them, until the end of `outer`."""
    if job.request.executor is None or job.owner is None:
        return vectors_of(job, plan, outer.enter_context(own_records(job, plan, emit)).table)
    from dpmpc.local.records_away import vector_away, workers_of

    with workers_of(job.request) as workers:
        return iter([vector_away(job, plan, workers, emit)])


def vectors_of(job: OwnersJob, plan: Plan, table: Table) -> Iterator[Floats]:
    """(owners, dimension) the means of the vectors of the records of the job's owners, in this table. Secret. Errors: a
    column is not there, or the records are not as many as the plan says."""
    request = as_planned(job.request, plan)
    if job.stage is not None:
        job.stage.whole.source.check_records(table)
        if (schema := fits_at_first(job)) is not None:  # what does not fit is refused before the stage is spent
            targets_of(table, schema)
    if job.owner is None:
        _, owner, sizes = owners_of_records(request, table)
        planned = plan.sizes
    elif (parted := _parted(job, plan)) is not None:
        whole = whole_plan(plan, job.stage)
        mine = rows_of(request, whole, parted, plan.part, job.owner, table)
        table = held(_kept(plan, table), list(plan.source.reads)) if plan.source.reads else table
        return plan.source.sited(job.owner).means(table, np.where(mine, 0, -1), (plan.sizes[job.owner],))
    else:
        planned = (plan.sizes[job.owner],)
        sizes = (table.n if request.kept is None else persons_at(table, "0")[0] * request.person_rows,)
        if request.capacity is not None:
            rows = 1 if request.kept is None else request.person_rows
            sizes = (fitting((sizes[0] // rows,), (request.capacity[job.owner],))[0] * rows,)
        for name in plan.source.reads:
            table[name]
        table = held(_kept(plan, table), list(plan.source.reads)) if plan.source.reads else table
        owner = np.zeros(table.n, dtype=np.int64)
    if sizes != planned:
        raise RecordError(other_sizes(planned, sizes), OTHER_SIZES)
    return plan.source.sited(job.owner or 0).means(table, owner, sizes)


def _kept(plan: Plan, table: Table) -> Table:
    """The table, in which the words that are levels of the plan's categories are values."""
    return keeping(table, plan.source.listed)


def _parted(job: OwnersJob, plan: Plan) -> Parted | None:
    """The parts that the records of a stage's plan are one of."""
    return None if job.stage is None or not plan.part else job.stage.whole.source.parted(plan.data_id)
