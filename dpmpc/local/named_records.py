"""The records that a request names, sorted by owner, and what becomes of them."""

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np

from dpmpc.aggregation.plan.plan import Plan
from dpmpc.aggregation.plan.stages import stage_plan
from dpmpc.errors import RecordError, UsageError, number_of, spelt
from dpmpc.intake.database import filtered_by
from dpmpc.intake.missing import keeping
from dpmpc.intake.profile import look
from dpmpc.intake.staging import held
from dpmpc.intake.table import Ints, Table
from dpmpc.learning.naming import naming_in
from dpmpc.learning.of_schema import described
from dpmpc.learning.task import TASKS, modelled
from dpmpc.local.evaluating import splitting
from dpmpc.local.holdout import check_ids, split_of
from dpmpc.local.job import OwnersJob
from dpmpc.local.surveyed_away import found_nothing
from dpmpc.planning.request import Request
from dpmpc.records import CsvFile, Dataset, Partition, Query, Schema, load_dataset
from dpmpc.records import load as load_source
from dpmpc.records.blocks import arranged
from dpmpc.records.check import Finding, Findings, zeros_said
from dpmpc.records.dataset import Split
from dpmpc.records.derive import spelled_otherwise
from dpmpc.records.loading import Arranging, OpenTable, Source, opened
from dpmpc.records.memory import parse_memory
from dpmpc.records.ownership import KeptOwners, shares
from dpmpc.records.persons import kept, said_of, without_person
from dpmpc.records.planned import OTHER_SIZES, other_sizes
from dpmpc.records.schema import read_bounds
from dpmpc.tables.meet_words import words_needed


def load_records(
    request: Request,
    folder: Path | None = None,
    schema: Schema | None = None,
    records: OpenTable | None = None,
    arranging: Arranging | None = None,
    split: Split | None = None,
) -> Dataset:
    """The data set that the request names, mapped by `schema` if there is one; `folder` may take temporary files.
    `records`: the source, where it is open already. `arranging`: of a source's training rows, as of `data.load`.
    `split`: what says which rows are for training, where a plan does.

    Errors: all that loaders refuse; no data set is named."""
    if request.source is not None:
        dataset = load_source(
            records or source_named(request),
            schema=schema or _schema(request),
            target=request.target,
            owners_column=request.owners_column,
            task=None if request.task is None else TASKS[request.task],
            seed=request.seed,
            test_fraction=0.2 if request.test_fraction is None else request.test_fraction,
            intercept=request.intercept is not False,
            max_rows=request.max_rows,
            bounds=None if request.bounds is None else Path(request.bounds),
            missing=request.missing,
            drop=request.dropped if request.schema is None and schema is None else request.without,
            positive=request.positive,
            classes=request.classes,
            memory=request.memory,
            precision=request.precision,
            folder=folder,
            spelling=request.spelling,
            basis=None if schema else request.basis,
            splitting=split or (splitting(request) if request.evaluate else None),
            person=request.kept,
            arranging=arranging,
            held_out=request.evaluate or request.baseline,
        )
    elif request.data is not None:
        if request.person is not None:
            raise UsageError(
                f"persons are those of a column of your records; data set {request.data} has none; leave <<person>> out"
            )
        dataset = load_dataset(
            request.data,
            data_dir=None if request.data_dir is None else Path(request.data_dir),
            seed=request.seed,
            test_fraction=request.test_fraction,
            intercept=request.intercept,
            max_rows=request.max_rows,
            dimension=request.dimension or 10,
            official_test=request.official_test,
            scale="centred",
            basis=request.basis,
        )
    else:
        raise UsageError("owners need records; none were named; add <<data=NAME>>, <<csv=FILE>> or <<records=SOURCE>>")
    made = modelled(dataset.schema, request.task)
    if made.target != dataset.schema.target:
        raise UsageError(
            f"<<task={made.task}>> takes other targets than {dataset.name} has; leave <<task>> out, or give the records"
            " as <<records=SOURCE>>"
        )
    return dataset if made == dataset.schema else replace(dataset, schema=made)


def _schema(request: Request) -> Schema | None:
    return None if request.schema is None else modelled(Schema.read(Path(request.schema)), request.task)


def source_named(request: Request) -> Source:
    """The source of records that the request names."""
    assert request.source is not None
    if request.database:
        return Query(request.source, request.sql or "")
    return CsvFile(Path(request.source)) if request.csv else request.source


@contextmanager
def open_records(
    request: Request, folder: Path | None = None, person: KeptOwners | None = None, plan: Plan | None = None
) -> Iterator[OpenTable]:
    """The table of the request's source while it is open; `folder` may take temporary files. `person`: what is kept of
    each person's records. `plan`: one that says what is read of them. Errors: as for each kind of source."""
    memory = None if request.memory is None else parse_memory(request.memory)
    known = request.schema is not None or request.task is not None or request.bounds is not None or request.classes
    unsaid = "" if known or request.planned else request.target or ""
    source = source_named(request)
    found = opened(
        source, memory=memory, folder=folder, spelling=request.spelling, person=person, unsaid=unsaid,
        names=_names_of(request, plan),
    )  # fmt: skip
    with found as (table, private):
        yield OpenTable(table, private)


def _names_of(request: Request, plan: Plan | None) -> list[str]:
    """The columns that are read, where a plan, a schema or public bounds say them all; () where nothing does."""
    known: tuple[str, ...] = ()
    if plan is not None:
        known = plan.source.reads if plan.mapped_by is None else plan.mapped_by.names
    elif request.schema is not None:
        known = Schema.read(Path(request.schema)).names
    elif request.bounds is not None:
        known = (*read_bounds(Path(request.bounds)), *request.dropped)
    of = (request.target, request.owners_column, request.ids, request.person, None if plan is None else plan.person)
    return [name for name in (*known, *of) if known and name]


def looked_at(plan: Plan, request: Request, table: Table, sizes: Sequence[int] = ()) -> list[str]:
    """What becomes of an owner's records in this table, all of them, a line each: for the terminal of whoever starts
    the site, in no file."""
    found = held_against(plan, table, sizes).lines()
    of = as_planned(request, plan).kept
    if of is not None and (nobodys := without_person(table, of)) and table.spelling.misfits == "zero":
        what = "has" if nobodys == 1 else "have"
        found = [*found, f"warning: {number_of(nobodys, 'record')} of {table.n} {what} no '{of.column}': left out"]
    if of is not None and (text := said_of(kept(table, of).beyond, of.rows)):
        found = [*found, text]
    if not plan.capacity and (chosen := filtered_by(request.sql)):
        found = [*found, f"warning: {chosen}"]
    return [f"your records: {line}" for line in found]


def held_against(plan: Plan, table: Table, sizes: Sequence[int] = ()) -> Findings:
    """A table's records, held against what a plan reads of them."""
    source, schema = plan.source, plan.mapped_by
    found = source.held_against(table, schema, sizes)
    mine = table
    if schema is None and (reads := [name for name in source.reads if name in table]):
        mine = held(keeping(table, source.listed), reads)
    stops = source.STRICT and table.spelling.misfits == "ask"
    surveyed, target = ((), None) if schema is None else (schema.unknown, schema.target.name)
    return with_spelling(_with_words(found, plan, table), mine, stops, surveyed, target)


def _with_words(found: Findings, plan: Plan, table: Table) -> Findings:
    """The findings, with the words that an owner would vote for in the plan, or in a stage before its releases, and how
    many records of all owners one needs."""
    told: list[Finding] = []
    for stage in plan.source.schedule.before:
        if stage.source.votes is not None:
            made = stage_plan(plan, stage)
            told += [*naming_in(stage.source).votes_told(table), Finding("note", "words", words_needed(made))]
    if plan.source.votes is not None:  # whose source has told the words
        told.append(Finding("note", "words", words_needed(plan)))
    return replace(found, found=(*found.found, *told))


def with_spelling(
    found: Findings, table: Table, refuses: bool = False, surveyed: Collection[str] = (), target: str | None = None
) -> Findings:
    """The findings, with what is to be stated of fields that are spelled otherwise than was stated, at which a run
    `refuses` records where their owner asked for it, and what a look finds. `surveyed`: columns of which a plan knows
    only the name; what they seem to be is said of each."""
    intake = look(table, target=target if target is not None and target in table else None)[0]
    odd = spelled_otherwise(intake)
    said = [Finding("refused" if refuses else "warning", "records", odd)] if odd else []
    notes = [Finding("note", "records", note) for note in intake.findings]
    seen = [column for column in intake.columns if column.name in surveyed]
    if known := ", ".join(f"{c.name} looks like {c.kind}" + f" ({c.missing} missing)" * bool(c.missing) for c in seen):
        notes.append(Finding("note", "surveyed", known))
    findings = (*found.found, *said, *notes)
    return replace(found, found=tuple(replace(each, text=spelt(each.text, _of_a_plan)) for each in findings))


def with_ids(found: Findings, request: Request, plan: Plan, table: Table) -> Findings:
    """The findings, with why a run would refuse the ids of a table of which its plan holds records out."""
    try:
        check_ids(request, plan, table)
    except UsageError as error:
        return replace(found, found=(*found.found, Finding("refused", "records", error.to_owner)))
    return found


def _of_a_plan(name: str, value: str | None) -> str:
    """A setting as a finding names it to an owner whose columns are a plan's: those of all owners."""
    if name in ("drop", "person"):
        return "a line of the plan" if name == "drop" else f"a plan with person = {value}"
    return f"<<{name}>>" if value is None else f"<<{name}={value}>>"


def planned_schema(plan: Plan) -> Schema:
    """The schema that maps every owner's records. Errors: the plan has none."""
    return described(None if plan.schema is None else Schema.from_json(plan.schema))


def fits_at_first(job: OwnersJob) -> Schema | None:
    """What the records of a job that begins a run with a stage are held against before it is spent; None for any other
    job, and where nothing is learnt."""
    stage = job.stage
    return stage.whole.mapped_by if stage is not None and stage.begins else None


def misfits_said(schema: Schema, bad: int, rows: int) -> str:
    """What an owner is told of so many records whose target does not fit, where no table is here to say more."""
    text = f"of {number_of(bad, 'record')} the target does not fit"
    return f"'{schema.target.name}': {zeros_said(bad, rows, text)}"


def load(
    request: Request, folder: Path | None = None, plan: Plan | None = None, records: OpenTable | None = None
) -> tuple[Dataset, Partition]:
    """The data set, its training rows sorted by owner, and the partition that says who holds which; with a plan, by its
    schema.

    Errors: as `load_records`; an owner without records.
    """
    if plan is not None:
        request = as_planned(request, plan)
    made: list[Partition] = []

    def arranging(n: int, persons: Ints | None, groups: Ints | None) -> Ints:
        if groups is None:
            request.require_owners()
        made.append(shared_out(request, n, persons, groups))
        return made[0].order[: made[0].n]

    dataset = load_records(request, folder, None if plan is None else planned_schema(plan), records, arranging)
    if not made:  # a data set by name
        order = arranging(dataset.n, dataset.persons and dataset.persons[0], dataset.groups)
        dataset = _arranged(dataset, order, folder)
    return dataset, made[0]


def shared_out(request: Request, n: int, persons: Ints | None, groups: Ints | None) -> Partition:
    """Who holds which of n training rows, of these persons and owners where columns say so: places for persons, and up
    to capacities. Errors: as `shares`."""
    return shares(
        n, persons, groups, rows=request.person_rows, capacity=request.capacity, owners=request.owners,
        sizes=request.owner_sizes, skew=request.skew, seed=request.seed,
    )  # fmt: skip


def _arranged(dataset: Dataset, order: Ints, folder: Path | None) -> Dataset:
    """The same with these training rows in this order, a zero vector for each negative number."""
    if np.array_equal(order, np.arange(dataset.n)):
        return dataset
    rest = np.arange(dataset.training, dataset.records.n)
    sorted_ = arranged(dataset.records, np.concatenate([order, rest]), folder)
    return replace(dataset, records=sorted_, training=len(order))


def as_planned(request: Request, plan: Plan) -> Request:
    """The request with what its plan says of persons and of capacities."""
    said = {name: getattr(plan, name) for name in ("person", "person_rows", "person_owners", "neighbours")}
    width = plan.person_rows if plan.persons is not None else 1
    return replace(request, **said, capacity=tuple(n // width for n in plan.sizes) if plan.capacity else None)


def load_owner(
    request: Request, plan: Plan, owner: int, folder: Path | None = None, records: OpenTable | None = None
) -> Dataset:
    """The records of one owner that takes part from its own machine; all are for training, unless a test fraction is
    given. `records`: the source, where it is open already.

    Errors: as `load_records`; records that the plan's schema does not fit, or not as many as it says.
    """
    if owner >= plan.owners:
        raise UsageError(
            f"owners are numbered from 0; got owner {owner} of {plan.owners}; mend <<index>>", code="range"
        )
    if request.test_fraction is None:
        request = replace(request, test_fraction=0.0)
    request = as_planned(request, plan)
    split = split_of(request, plan, owner)
    dataset = load_records(request, folder, planned_schema(plan), records, split=split)
    check_shape(plan, dataset)
    left_out = () if folder is None else found_nothing(folder, dataset.schema)
    dataset = replace(dataset, left_out=left_out)  # what else is in its file is nobody's business
    if not plan.counted:
        persons, alone = dataset.persons and dataset.persons[0], np.zeros(dataset.n, dtype=np.int64)
        places = (plan.sizes[owner] // plan.person_rows,) if plan.capacity or split is not None else None
        order = shares(dataset.n, persons, alone, rows=plan.person_rows, capacity=places, seed=request.seed).order
        dataset = _arranged(dataset, order, folder)
    check_sizes((dataset.n,), (plan.sizes[owner],))
    return dataset


def check_shape(plan: Plan, dataset: Dataset) -> None:
    """Errors: the records were not mapped by the plan's schema."""
    if dataset.schema.digest != plan.schema_digest:
        raise UsageError(
            f"records are mapped by the plan's schema, {(plan.schema_digest or 'none')[:16]}; those of {dataset.name} "
            f"have {dataset.schema.digest[:16]}; use the same data set and options as the plan, or plan again"
        )


def check_sizes(sizes: tuple[int, ...], planned: tuple[int, ...]) -> None:
    """Errors: the records, or places, are not as many as planned."""
    if sizes != planned:
        raise RecordError(other_sizes(planned, sizes), OTHER_SIZES)
