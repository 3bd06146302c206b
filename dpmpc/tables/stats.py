"""Statistics over all owners as a function call: `dpmpc.stats`. One plan, one release, its answers."""

import json
import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Literal, Unpack

import numpy as np
from numpy.typing import NDArray

from dpmpc.aggregation.owner.accounts import Books
from dpmpc.aggregation.owner.encoding import decode
from dpmpc.aggregation.plan.asked import plan_path
from dpmpc.aggregation.plan.guarantee import promise_of
from dpmpc.aggregation.plan.here import Here
from dpmpc.aggregation.plan.keywords import SourceKeywords
from dpmpc.aggregation.plan.of_vectors import chosen
from dpmpc.aggregation.plan.plan import Plan
from dpmpc.aggregation.plan.settings import Attendance, Choosing, Computing, Noise, Promise
from dpmpc.errors import UsageError
from dpmpc.folders import said_path, write_file
from dpmpc.intake.missing import keeping
from dpmpc.intake.spelling import PLAIN, Spelling
from dpmpc.intake.staging import held
from dpmpc.intake.table import Table
from dpmpc.lazy import cached_property, dataclass
from dpmpc.learning.survey import Survey
from dpmpc.mpc.transport.heartbeat import WAIT
from dpmpc.outcome import Answer, Level, Outcome
from dpmpc.privacy.data_names import data_digest
from dpmpc.privacy.law import DEFAULT_LAW
from dpmpc.privacy.mechanism import Mechanism
from dpmpc.records.loading import Source, opened
from dpmpc.records.mapping import owner_numbers
from dpmpc.records.origins import PUBLIC, Origin
from dpmpc.records.ownership import Kept, fitting
from dpmpc.records.persons import persons_at
from dpmpc.records.schema import Schema
from dpmpc.run.once import OPENED, once, unfinished
from dpmpc.run.resume import begun_as
from dpmpc.run.seat import Seat
from dpmpc.settings import declared, keywords, said
from dpmpc.show import notebook, papers
from dpmpc.show.answers_page import as_html
from dpmpc.show.files import write_outcome
from dpmpc.show.forms import as_csv, as_json, as_markdown, as_text, frame
from dpmpc.show.objects import Sheet, Shown
from dpmpc.show.tables import Table as Printed
from dpmpc.statistics.expected import expected, lines, refuse_hopeless
from dpmpc.statistics.foresight import Expected
from dpmpc.statistics.opened import Opened
from dpmpc.statistics.pooled import pooled
from dpmpc.statistics.scores import Model
from dpmpc.statistics.study import QUESTIONS
from dpmpc.statistics.tables import STEP, Tables, asked_by, told, whose
from dpmpc.synthesis.asking import single
from dpmpc.tables.answer_files import ANSWERS, RELEASES
from dpmpc.tables.questions import asked_of, check_read, tell_of, warn_of


@dataclass(frozen=True, kw_only=True)
class OfTables(Promise, Noise, Choosing, Computing, Attendance):
    """Everything that may be said of a release of tables, but for whose records they are."""


@dataclass(frozen=True)
class Statistics(Shown):
    """An opened release, public: its plan, the noisy sum (dimension,) over all records, and what intervals hold. Other
    answers to the same release are made by `again`, at no cost. `earlier`: releases of the same records whose tables
    answer with it; `questions`: others than were asked then; `present`: the owners whose records they are, where some
    may be missing."""

    plan: Plan
    total: NDArray[np.float64]
    level: Level
    guarantee: str
    earlier: tuple["Statistics", ...] = ()
    questions: Tables | None = None
    present: tuple[int, ...] | None = None

    @property
    def sizes(self) -> tuple[int, ...]:
        """How many records, or places, the owners have whose records were asked."""
        return self.plan.sizes if self.present is None else tuple(self.plan.sizes[j] for j in self.present)

    @property
    def tables(self) -> Tables:
        """The public questions."""
        return asked_by(self.plan.source)

    @cached_property
    def answers(self) -> tuple[Answer, ...]:
        """An answer a question. Errors: UsageError for one that the release does not answer."""
        return (self.questions or self.tables).answers_from(self.opened, self.level, self.tables)

    @cached_property
    def opened(self) -> Opened:
        """What was opened, by all releases together."""
        noise, plan = noise_of(self.plan) / STEP, self.plan
        rows = plan.person_rows if plan.neighbours == "person" else 1
        alone = self.tables.opened(self.total / STEP, noise, self.sizes, plan.counted, rows)
        return pooled([*(each.opened for each in self.earlier), alone])

    def again(self, level: Level) -> "Statistics":
        """The same release with other intervals."""
        return replace(self, level=level)

    def asked(self, queries: Sequence[str | Mapping[str, Any]]) -> "Statistics":
        """The same release with other questions, as far as its tables answer them; nothing is spent. Errors: what
        cannot be asked."""
        return replace(self, questions=Tables.of(self.tables.columns, queries, None, dict(self.tables.models)))

    @cached_property
    def outcome(self) -> Outcome:
        """The answers with all that stands beside them, as a value."""
        about = [self.guarantee, *whose(self.present, self.plan.owners)]
        return told(self.tables, self.answers, self.level, about, self.total, self.sizes, self.present, self.opened)

    def text(self) -> str:
        """Tables for a terminal."""
        return as_text(self.outcome)

    def json(self) -> str:
        """All numbers with all digits."""
        return as_json(self.outcome)

    def csv(self) -> str:
        """One line a number."""
        return as_csv(self.outcome)

    def markdown(self) -> str:
        """A heading and a table a question."""
        return as_markdown(self.outcome)

    def html(self, title: str = "Statistics") -> str:
        """One page with tables and pictures that needs nothing else."""
        return as_html(self.outcome, title)

    def printed(self, *, everything: bool = False) -> tuple[Printed, ...]:
        """The answers as a paper prints them: Table 1, tables of effects. `everything`: with the levels that may be
        nobody's."""
        return papers.tables(self.outcome, everything=everything)

    def sheet(self) -> Sheet:
        """The answers as a paper prints them."""
        shapes = lambda: [shape for answer in self.answers for shape in answer.shapes]  # noqa: E731
        return Sheet("Statistics", tables=self.printed(), shapes=shapes, way="print(.text()) has every number")

    def _page(self, path: Path) -> Path:
        write_file(path, self.html())
        return path

    def frame(self) -> Any:
        """A pandas data frame with one row a number."""
        return frame(self.outcome)

    def write(self, out: Path | str) -> None:
        """Writes what was opened, and the answers in every form, into a folder."""
        write_outcome(self.outcome, Path(out))


@dataclass(frozen=True)
class Dry(Shown):
    """What a release would tell, before anything is spent: the plan, and how far each question's counts will be off."""

    plan: Plan
    expected: tuple[Expected, ...]

    def sheet(self) -> Sheet:
        """A line a question."""
        head = ("question", "part of the promise", "off by")
        said = (line.split("; off by: ") for line in lines(self.expected))
        parts = zip(self.expected, said, strict=True)
        rows = tuple((each.question, f"{100 * each.share:.0f} %", off) for each, (_, off) in parts)
        return Sheet("What a release would tell; nothing is spent", tables=(Printed(head, rows, labels=3),))

    def text(self) -> str:
        """A line a question."""
        return "\n".join(lines(self.expected)) + "\n"


def noise_of(plan: Plan) -> float:
    """The deviation of the noise in the sum over all records, in records."""
    return plan.derived.mechanism.scale * plan.grid.step


@keywords(OfTables)
def stats(
    records: Source,
    queries: Sequence[str | Mapping[str, Any]],
    *,
    owners: str | None = None,
    schema: Schema | Path | str | None = None,
    bounds: Mapping[str, Any] | Path | str | None = None,
    models: Mapping[str, Path | str | Model] | None = None,
    about: Literal["data", "population"] = "data",
    confidence: float = 0.95,
    at_once: bool = False,
    hopeless: Literal["refuse", "allow"] = "refuse",
    capacity: Sequence[int] | None = None,
    data_id: str | None = None,
    budget: str | None = None,
    account: str | None = None,
    memory: int | None = None,
    spelling: Spelling = PLAIN,
    out: Path | str | None = None,
    wait: float = WAIT,
    tell: Callable[[str], None] | None = None,
    **settings: Unpack[SourceKeywords],
) -> Statistics:
    """Answers to questions about the records of several owners, from one release with one copy of noise.

        dpmpc.stats(frame, ["table1 by outcome", "median(age) by sex"], owners="hospital", bounds={...}, epsilon=1,
                    delta=1e-5)

    owners: the column that says whose each record is. schema, bounds: public; what may be asked follows from them.
    models: a name in `evaluate(NAME)` and a run's folder. memory: bytes that the process may hold. spelling: how the
    records are spelled. capacity: of each owner, places for its records or persons, whose numbers are then private.
    about, confidence, at_once: what intervals hold (docs/statistics.md). tell: is called with what becomes of values,
    for their owner's eyes alone; without it a column nearly none of whose values fit is a Python warning.
    settings: epsilon, delta, neighbours, parties and so on, as of `dpmpc.Plan`. out: a new folder for plan, ledgers,
    transcripts and answers. Errors: UsageError for what cannot be asked or would tell nothing (`hopeless`), releases'.
    """
    level = Level(confidence, about, 0 if at_once else 1)
    folder = None if out is None else said_path(out, "out")
    if folder is not None:
        unfinished(folder, ANSWERS)
    public = None if schema is None else schema if isinstance(schema, Schema) else Schema.read(Path(schema))
    tables = asked_of(queries, public, bounds, models)
    of, named = kept_of(settings, owners), (*tables.reads, owners)
    with opened(records, memory=memory, spelling=spelling, person=of, names=named) as (table, _):
        own, number, sizes = owned(keeping(table, tables.columns.listed), tables.reads, owners, settings, capacity)
        tell_of(own, tables, tell)
        plan = plan_of_tables(
            tables, sizes, own.source, data_id, settings, origin_of_questions(public, tables),
            capacity=capacity is not None, by_person=True,
        )  # fmt: skip
        warn_of(models, plan.data_id)
        if hopeless == "refuse":
            refuse_hopeless(foreseen(plan, level), plan.epsilon, plan.delta)
        plan = plan if folder is None else begun_as(plan, folder)
        here = Here(out=folder, wait=wait, budget=budget, account=account)
        seat = Seat(here, Books.of(here))
        with notebook.releases("stats", plan.releases) as emit:
            last = once(plan, partial(tables.means, own, number, sizes), seat, plan.source.DOES, emit=emit).last
    guarantee = str(promise_of(plan))
    found = Statistics(plan, decode(plan, last.total) * sum(sizes), level, guarantee)
    if folder is not None:
        found.write(folder)
    return found


@keywords(OfTables)
def dry(
    records: Source, queries: Sequence[str | Mapping[str, Any]], *, owners: str | None = None,
    schema: Schema | Path | str | None = None, bounds: Mapping[str, Any] | Path | str | None = None,
    models: Mapping[str, Path | str | Model] | None = None, memory: int | None = None, spelling: Spelling = PLAIN,
    capacity: Sequence[int] | None = None, **settings: Unpack[SourceKeywords],
) -> Dry:  # fmt: skip
    """What `stats` would tell, from public numbers alone; nothing is spent. Of records only their owners are read."""
    tables = asked_of(queries, schema, bounds, models)
    of, named = kept_of(settings, owners), (*tables.reads, owners)
    with opened(records, memory=memory, spelling=spelling, person=of, names=named) as (table, _):
        own, _, sizes = owned(keeping(table, tables.columns.listed), tables.reads, owners, settings, capacity)
        check_read(own, tables)
        plan = plan_of_tables(tables, sizes, own.source, None, settings, capacity=capacity is not None, by_person=True)
    return Dry(plan, foreseen(plan, Level()))


def reopened(out: Path | str, level: Level | None = None) -> Statistics:
    """The release in a folder that `stats` wrote, with the same or other intervals; nothing is spent. Of one that
    `synth` wrote: all its releases together, asked for single columns.

    Errors: UsageError where there is none."""
    folder = Path(out)
    if plan_path(folder / QUESTIONS).exists():  # of a run that asked before it trained
        folder = folder / QUESTIONS
    if not plan_path(folder).exists() and all((folder / part / OPENED).exists() for part in RELEASES):
        *earlier, last = (reopened(folder / part, level) for part in RELEASES)
        return replace(last, earlier=tuple(earlier)).asked(single(last.tables.columns))
    plan = Plan.read(plan_path(folder))
    asked_by(plan.source)
    try:
        total = np.load(folder / OPENED, allow_pickle=False)
        then = json.loads((folder / "intervals.json").read_text(encoding="utf-8"))
        said_then, present = then["guarantee"], then.get("present")
    except (OSError, ValueError, KeyError) as error:
        raise UsageError(f"a finished release has {OPENED}; {folder}: {error}; ask again") from None
    found = Statistics(plan, total, level or Level(), said_then, present=None if present is None else tuple(present))
    stage = folder / RELEASES[0]
    return replace(found, earlier=(stage_of(stage),)) if plan_path(stage).exists() else found


def stage_of(folder: Path) -> Statistics:
    """What a stage of tables before a release opened, from its folder."""
    try:
        plan, total = Plan.read(plan_path(folder)), np.load(folder / OPENED, allow_pickle=False)
    except (OSError, ValueError) as error:
        raise UsageError(f"a stage that is over has {OPENED}; {folder}: {error}; restore it") from None
    return Statistics(plan, total, Level(), promise_of(plan).sentence)


def kept_of(settings: Mapping[str, Any], owners: str | None) -> Kept | None:
    """What is kept of each person's records, where the promise is of persons."""
    asked = Promise(**{name: value for name, value in said(settings).items() if name in declared(Promise)})
    return None if asked.person is None else Kept(asked.person, asked.person_rows, owners, asked.person_owners or None)


def owned(
    table: Table, reads: Sequence[str], owners: str | None, settings: Mapping[str, Any] | None = None,
    capacity: Sequence[int] | None = None,
) -> tuple[Table, str, tuple[int, ...]]:  # fmt: skip
    """(the table with these columns held, SQL for each record's owner, the owners' numbers of records, or of places for
    them). Errors: RecordError for an owner with more than its capacity."""
    if owners is None:
        raise UsageError("the owners must be known; no column is named; give <<owners_column>>, in Python owners=")
    of = kept_of(settings or {}, owners)
    persons = None if of is None else persons_at(table, owner_numbers(table, owners)[0])
    own = held(table, [owners, *(name for name in reads if name != owners)])
    number, _ = owner_numbers(own, owners)
    counted = own.rows(f"{number} AS owner, count(*)", "GROUP BY 1 ORDER BY 1")
    found = tuple(int(row[1]) for row in counted) if persons is None else persons
    found = found if capacity is None else fitting(found, capacity)
    return own, number, tuple(size * (1 if of is None else of.rows) for size in found)


def plan_of_tables(
    tables: Tables, sizes: Sequence[int], data: str, data_id: str | None, settings: Mapping[str, Any],
    origin: Origin = PUBLIC, before: tuple[Mechanism, ...] = (), *, capacity: bool = False, by_person: bool = False,
) -> Plan:  # fmt: skip
    """The plan of the one release; `before`: what the same run has released already; `capacity`: sizes are of places;
    `by_person`: whoever makes the vectors keeps so many records of each person as the settings say. Errors: settings
    that no run can do; noise that is not Gaussian; owners that may be missing, as the number of records would then not
    be known."""
    if not by_person and settings.get("person") is not None:
        raise UsageError(
            "persons are for training and statistics; this release counts records; leave <<person>> out, or give one "
            "record of each person"
        )
    return replace(_plan_of(tables, sizes, data, data_id, settings, origin, before), capacity=capacity)


def plan_of_survey(
    questions: Survey, sizes: Sequence[int], data: str, data_id: str | None, settings: Mapping[str, Any], *,
    capacity: bool = False, origin: Origin = PUBLIC,
) -> Plan:  # fmt: skip
    """The plan of a survey's one release, by the same rules."""
    return replace(_plan_of(questions, sizes, data, data_id, settings, origin, ()), capacity=capacity)


def _plan_of(
    source: Tables | Survey, sizes: Sequence[int], data: str, data_id: str | None, settings: Mapping[str, Any],
    origin: Origin, before: tuple[Mechanism, ...],
) -> Plan:  # fmt: skip
    asked = OfTables(**said(dict(settings)))
    if not asked.delta or (asked.law and asked.law != DEFAULT_LAW):
        raise UsageError(
            f"intervals are those of Gaussian noise, which needs <<delta>>; got delta {asked.delta:g} and law "
            f"{asked.law or 'by rule'}; give a delta well below 1/n, such as 1e-5"
        )
    if asked.min_owners is not None or asked.check_owners == "zero":
        raise UsageError(
            "tables are of all owners' records, whose number is public; got <<min_owners>> or <<check_owners=zero>>, "
            "by which some may be missing; leave it out, or use <<check_owners=stop>>"
        )
    return Plan(
        run_id=secrets.token_hex(8),
        data=data,
        data_id=data_digest(data_id or data),
        sizes=tuple(sizes),
        dimension=source.coordinates,
        releases=1,
        source=source,
        weights="size",
        bounds=origin.bounds,
        rests_on=origin.read,
        released=before,
        **(chosen(asked) | {"pool": bool(asked.pool)}),
    )


def origin_of_questions(schema: Schema | None, tables: Tables) -> Origin:
    """Where the constants of the questions come from, those of models' schemas too: the promise says so."""
    return tables.origin if schema is None else tables.origin | schema.origin


def foreseen(plan: Plan, level: Level) -> tuple[Expected, ...]:
    """How far the plan's answers will be off."""
    noise, level = noise_of(plan) / STEP, replace(level, answers=max(level.answers, 1))
    return expected(asked_by(plan.source), plan.sizes, noise, level, plan.counted)
