"""Questions under Flower without Flower: the plan of a run that asks, and what a client's records come to."""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Unpack

import numpy as np

from dpmpc.aggregation.plan.grid import Floats
from dpmpc.aggregation.plan.keywords import SourceKeywords
from dpmpc.aggregation.plan.plan import Plan
from dpmpc.errors import RecordError, UsageError, owner_text
from dpmpc.flower.prepared import Prepared, read_prepared, written
from dpmpc.intake.missing import keeping
from dpmpc.intake.spelling import PLAIN, Spelling
from dpmpc.intake.staging import held
from dpmpc.outcome import Level
from dpmpc.records.loading import Source, opened
from dpmpc.records.ownership import KeptOwners, fitting
from dpmpc.records.persons import persons_at
from dpmpc.records.planned import OTHER_SIZES, other_sizes
from dpmpc.records.schema import Schema
from dpmpc.settings import keywords
from dpmpc.statistics.expected import refuse_hopeless
from dpmpc.statistics.scores import ScoreModel
from dpmpc.statistics.tables import Tables, asked_by
from dpmpc.tables.questions import asked_of, check_read
from dpmpc.tables.stats import OfTables, foreseen, origin_of_questions, plan_of_tables

LOG = logging.getLogger("flwr")


@keywords(OfTables)
def prepare_questions(
    folder: Path | str,
    queries: Sequence[str | Mapping[str, Any]],
    *,
    sizes: Sequence[int],
    data_id: str,
    schema: Schema | Path | str | None = None,
    bounds: Mapping[str, Any] | Path | str | None = None,
    models: Mapping[str, Path | str | ScoreModel] | None = None,
    capacity: bool = False,
    hopeless: bool = False,
    **settings: Unpack[SourceKeywords],
) -> Prepared:
    """As `prepare`, for one release of answers to questions: writes flower.json and the parties' keys.

    `sizes`: how many records each owner has, or with `capacity` places for how many; public. `data_id`: the name of the
    records, by which accounts add up what is spent on them. `queries`, `schema`, `bounds`, `models`: as of
    `dpmpc.stats`; `settings` too: epsilon, delta, neighbours, person, person_rows, parties. `min_owners`: how many must
    answer, half of them by default; answers are about those who did. `hopeless`: whether questions are let through that
    the noise would drown. Errors: as of `dpmpc.stats` and `prepare`.
    """
    public = None if schema is None else schema if isinstance(schema, Schema) else Schema.read(Path(schema))
    tables = asked_of(queries, public, bounds, models)
    rows = int(settings.get("person_rows", 1)) if settings.get("person") is not None else 1
    min_owners = settings.pop("min_owners", None)
    plan = plan_of_tables(
        tables, [size * rows for size in sizes], data_id, data_id, settings, origin_of_questions(public, tables),
        capacity=capacity, by_person=True,
    )  # fmt: skip
    plan = replace(plan, min_owners=max(1, len(sizes) // 2) if min_owners is None else min_owners)
    if not hopeless:
        refuse_hopeless(foreseen(plan, Level()), plan.epsilon, plan.delta)
    return written(plan, folder)


def asked_in(prepared: Prepared) -> Tables:
    """The questions of a plan. Errors: UsageError where it asks none."""
    return asked_by(prepared.plan.source)


def check_records(prepared: Prepared | Path | str, owner: int, records: Source, spelling: Spelling = PLAIN) -> None:
    """Returns if an owner's records fit a plan of questions: for the owner itself, before a run, in which nobody is
    told that they do not. Errors: UsageError, in words that may quote them."""
    given = read_prepared(prepared)
    asked_in(given)
    if not 0 <= owner < given.plan.owners:
        raise UsageError(
            f"owners are numbered from 0; got owner {owner} of {given.plan.owners}; mend the index", code="range"
        )
    mean_of(given.plan, owner, records, spelling)


def mean_of(plan: Plan, owner: int, records: Source, spelling: Spelling = PLAIN) -> Floats:
    """(dimension,) the mean of the vectors of an owner's records. Secret. Fields that are spelled otherwise
    than was stated are missing, and its log says so. Errors: a column is not there, records are not as many as the
    plan says."""
    tables = asked_by(plan.source)
    of = None if plan.person is None else KeptOwners(plan.person, plan.person_rows)
    rows = 1 if of is None else of.rows
    with opened(records, spelling=spelling, person=of, names=tables.reads) as (table, _):
        for name in tables.reads:
            table[name]
        found = (table.n,) if of is None else persons_at(table, "0")
        own = held(keeping(table, tables.columns.listed), list(tables.reads)) if tables.reads else table
        try:
            check_read(own, tables)
        except RecordError as error:  # one owner among others: its values stop no round but by its word
            if spelling.misfits == "ask":
                raise
            LOG.warning("your records: %s", owner_text(error))
        if plan.capacity:
            found = fitting(found, (plan.sizes[owner] // rows,))
        planned, sizes = (plan.sizes[owner],), tuple(units * rows for units in found)
        if sizes != planned:
            raise RecordError(other_sizes(planned, sizes), OTHER_SIZES)
        (vectors,) = tables.sited(owner).means(own, np.zeros(own.n, dtype=np.int64), sizes)
    found_mean: Floats = vectors[0]
    return found_mean
