"""One owner's records where workers of an executor read them: its data set, and its vector of a source that reads
records once."""

import contextlib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np

from dpmpc.aggregation.plan.plan import Plan
from dpmpc.errors import UsageError, number_of
from dpmpc.intake.database import reachable
from dpmpc.intake.ranges import ordered
from dpmpc.learning.away import Away, OwnerRows, check_away, mean_away, owner_of
from dpmpc.learning.tiled import tiles
from dpmpc.local.holdout import rows_of
from dpmpc.local.job import Emit, OwnersJob
from dpmpc.local.named_records import as_planned, check_shape, check_sizes, fits_at_first, misfits_said, planned_schema
from dpmpc.local.surveyed_away import found_nothing
from dpmpc.planning.request import Request
from dpmpc.processes.cores import threads_for
from dpmpc.processes.elsewhere import Workers
from dpmpc.processes.executors import executor_maker
from dpmpc.records import Dataset
from dpmpc.records.blocks import Floats
from dpmpc.records.mapping import one_value
from dpmpc.records.memory import parse_memory


@contextlib.contextmanager
def workers_of(request: Request) -> Iterator[Workers]:
    """The workers of the request's executor, until the end."""
    assert request.executor is not None
    workers = Workers(executor_maker(request.executor), request.workers or threads_for(1))
    try:
        yield workers
    finally:
        workers.close()


def owner_away(request: Request, plan: Plan, workers: Workers) -> OwnerRows:
    """All rows of what the request names, as workers see them. Errors: records that are no partitions of one owner, and
    no table in the order of a key."""
    if request.records is None and request.database is None:
        raise UsageError(
            "workers of an executor read Parquet files, or ranges of a database's table; no <<records>> and no "
            "<<database>> were named; name them, or leave <<executor>> out"
        )
    if not plan.counted or request.test_fraction or request.max_rows is not None:
        raise UsageError(
            "workers of an executor read all of an owner's records in their order; places of persons, <<capacity>>, "
            "<<max_rows>> or a <<test_fraction>> of the owner's own choose among them; leave <<executor>> out"
        )
    memory = None if request.memory is None else parse_memory(request.memory)
    if request.database is not None:
        ordered(request.sql or "")
        return owner_of(workers, reachable(request.database), request.spelling, memory, request.sql)
    return owner_of(workers, str(Path(str(request.records)).absolute()), request.spelling, memory)


def load_away(request: Request, plan: Plan, number: int, folder: Path, workers: Workers) -> Dataset:
    """The records of the owner of this number, of which workers bring sums; one pass, which maps them all by the plan's
    schema. Errors: as `owner_away`, as of workers, and as `load_owner`."""
    request = as_planned(request, plan)
    schema, owner = planned_schema(plan), owner_away(request, plan, workers)
    if schema.missing == "drop":
        raise UsageError(
            "workers of an executor read all of an owner's records; this plan's schema drops those that miss a value; "
            "plan with missing values filled, or leave <<executor>> out"
        )
    owner = _in_part(owner, request, plan, plan, number)
    records = Away(owner, schema, request.precision)
    whole = list(tiles(np.array([0, owner.n], dtype=np.int64), records.width))
    *counts, target = records.looked_over(whole)
    dataset = Dataset(
        owner.partitions.source, schema, records, owner.n, counts=tuple(counts),
        left_out=found_nothing(folder, schema), misfits=target.missing,
    )  # fmt: skip
    check_shape(plan, dataset)
    return dataset


def vector_away(job: OwnersJob, plan: Plan, workers: Workers, emit: Emit) -> Floats:
    """(1, dimension) the mean of the vectors of the records of the job's owner, of a source that reads them once.
    Secret. Where the run begins with it, the owner is told first how many records do not fit. Errors: as
    `one_release.vectors_of`, in public words."""
    assert job.owner is not None
    request = as_planned(job.request, plan)
    owner = owner_away(request, plan, workers)
    owner.partitions.check(plan.source.reads)
    whole = plan if job.stage is None else job.stage.whole
    if job.stage is not None:
        schema = fits_at_first(job)
        bad, ends = check_away(owner, whole.source, schema)
        said = [misfits_said(schema, bad, owner.n)] if bad and schema is not None else []
        if schema is not None and (alike := one_value(schema.target, ends, owner.n - bad)):
            said.append(alike)
        for text in said:
            emit("stage", text=f"warning: {text}")
    part = job.stage is not None and plan.part
    return mean_away(_in_part(owner, request, whole if part else plan, plan, job.owner), plan.source.sited(job.owner))


def _in_part(owner: OwnerRows, request: Request, whole: Plan, plan: Plan, number: int) -> OwnerRows:
    """The owner's rows in the part that a plan is of. The ids, or the bytes of the files that say which rows these are,
    are read here. Errors: as `rows_of`; not as many rows as planned."""
    if (parted := whole.source.parted(plan.data_id)) is not None:
        rows = owner.partitions if request.ids is None else owner.partitions.having([request.ids])
        with rows.rows(0, owner.n) as table:
            owner = replace(owner, mine=rows_of(request, whole, parted, plan.part, number, table))
    check_sizes((owner.n,), (plan.sizes[number],))
    return owner


def tried(request: Request, plan: Plan) -> str:
    """A line on the records as workers see them; none is read. Errors: as `owner_away`, as of workers."""
    with workers_of(request) as workers:
        found = owner_away(as_planned(request, plan), plan, workers).partitions
    parts = number_of(found.pieces, "partition" if request.database is None else "range")
    return f"your records: workers see {number_of(found.n, 'record')} in {parts}; a run's first pass looks at them"
