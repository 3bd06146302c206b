"""The release of questions over all owners: its plan, what was opened, its answers; and those in a folder again."""

import json
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmpc.aggregation.plan.asked import plan_path
from dpmpc.aggregation.plan.guarantee import promise_of
from dpmpc.aggregation.plan.of_vectors import chosen
from dpmpc.aggregation.plan.plan import Plan
from dpmpc.aggregation.plan.settings import Attendance, Choosing, Computing, Noise, PromiseSettings
from dpmpc.errors import UsageError
from dpmpc.folders import write_file
from dpmpc.intake.staging import held
from dpmpc.intake.table import Table
from dpmpc.lazy import cached_property, dataclass
from dpmpc.learning.survey import Survey
from dpmpc.outcome import Answer, Level, Outcome
from dpmpc.privacy.data_names import data_digest
from dpmpc.privacy.law import DEFAULT_LAW
from dpmpc.privacy.mechanism import Mechanism
from dpmpc.records.mapping import owner_numbers
from dpmpc.records.origins import PUBLIC, Origin
from dpmpc.records.ownership import KeptOwners, fitting
from dpmpc.records.persons import persons_at
from dpmpc.records.schema import Schema
from dpmpc.run.files import WHOLE
from dpmpc.run.once import OPENED
from dpmpc.run.run import OpenedRelease
from dpmpc.settings import declared, said
from dpmpc.show import papers
from dpmpc.show.answers_page import as_html
from dpmpc.show.files import write_outcome
from dpmpc.show.forms import as_csv, as_json, as_markdown, as_text, frame
from dpmpc.show.objects import Sheet, Shown
from dpmpc.show.tables import ShownTable as Printed
from dpmpc.statistics.expected import expected
from dpmpc.statistics.foresight import Expected
from dpmpc.statistics.opened import Opened
from dpmpc.statistics.pooled import pooled
from dpmpc.statistics.study import QUESTIONS
from dpmpc.statistics.tables import STEP, Tables, asked_by, told, whose
from dpmpc.synthesis.asking import single
from dpmpc.synthesis.source import FIRST


@dataclass(frozen=True, kw_only=True)
class OfTables(PromiseSettings, Noise, Choosing, Computing, Attendance):
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


def opened_tables(opened: OpenedRelease, level: Level | None = None) -> Statistics:
    """What a release of tables opened."""
    plan = opened.plan
    return Statistics(plan, opened.mean * sum(plan.sizes), level or Level(), str(promise_of(plan)))


def noise_of(plan: Plan) -> float:
    """The deviation of the noise in the sum over all records, in records."""
    return plan.derived.mechanism.scale * plan.grid.step


def reopened(out: Path | str, level: Level | None = None) -> Statistics:
    """The release in a folder that `stats` wrote, with the same or other intervals; nothing is spent. Of one that
    `synth` wrote: all its releases together, asked for single columns.

    Errors: UsageError where there is none."""
    folder = Path(out)
    if plan_path(folder / QUESTIONS).exists():  # of a run that asked before it trained
        folder = folder / QUESTIONS
    plan = Plan.read(plan_path(folder))
    asked_by(plan.source)
    try:
        total = np.load(folder / OPENED, allow_pickle=False)
        then = json.loads((folder / "intervals.json").read_text(encoding="utf-8"))
        said_then, present = then["guarantee"], then.get("present")
    except (OSError, ValueError, KeyError) as error:
        raise UsageError(f"a finished release has {OPENED}; {folder}: {error}; ask again") from None
    found = Statistics(plan, total, level or Level(), said_then, present=None if present is None else tuple(present))
    stage = folder / FIRST
    if not plan_path(stage).exists():
        return found
    both = replace(found, earlier=(stage_of(stage),))
    whole = stage / WHOLE
    drawn = whole.is_file() and Plan.read(whole).source.DRAWS  # whose own questions no person asked
    return both.asked(single(found.tables.columns)) if drawn else both


def stage_of(folder: Path) -> Statistics:
    """What a stage of tables before a release opened, from its folder."""
    try:
        plan, total = Plan.read(plan_path(folder)), np.load(folder / OPENED, allow_pickle=False)
    except (OSError, ValueError) as error:
        raise UsageError(f"a stage that is over has {OPENED}; {folder}: {error}; restore it") from None
    return Statistics(plan, total, Level(), promise_of(plan).sentence)


def kept_of(settings: Mapping[str, Any], owners: str | None) -> KeptOwners | None:
    """What is kept of each person's records, where the promise is of persons."""
    asked = PromiseSettings(
        **{name: value for name, value in said(settings).items() if name in declared(PromiseSettings)}
    )
    return (
        None
        if asked.person is None
        else KeptOwners(asked.person, asked.person_rows, owners, asked.person_owners or None)
    )


def owned(
    table: Table, reads: Sequence[str], owners: str | None, settings: Mapping[str, Any] | None = None,
    capacity: Sequence[int] | None = None,
) -> tuple[Table, str, tuple[int, ...]]:  # fmt: skip
    """(the table with these columns held, SQL for each record's owner, the owners' numbers of records, or of places for
    them). Errors: RecordError for an owner with more than its capacity."""
    if owners is None:
        raise UsageError(
            "the owners must be known; no column is named; give <<owners_column>>, in Python owners=", code="missing"
        )
    of = kept_of(settings or {}, owners)
    persons = None if of is None else persons_at(table, owner_numbers(table, owners)[0])
    own = held(table, [owners, *(name for name in reads if name != owners)])
    number, _ = owner_numbers(own, owners)
    counted = own.rows(f"{number} AS owner, count(*)", "GROUP BY 1 ORDER BY 1")
    found = tuple(int(row[1]) for row in counted) if persons is None else persons
    found = found if capacity is None else fitting(found, capacity)
    return own, number, tuple(size * (1 if of is None else of.rows) for size in found)


def called(tables: Tables, table: Table, owners: str | None) -> Tables:
    """The questions with the owners' names as the column that says whose a record is has them. Errors: one owner, of
    whom nothing can be kept apart."""
    if owners is None or not tables.tells_owners:
        return tables
    return tables.among(owner_numbers(table, owners)[1])


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
    among = tables.of_many(len(sizes))
    return replace(_plan_of(among, sizes, data, data_id, settings, origin, before), capacity=capacity)


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
            f"{asked.law or 'by rule'}; give a delta well below 1/n, such as 1e-5",
            code="together",
        )
    if asked.min_owners is not None or asked.check_owners == "zero":
        raise UsageError(
            "tables are of all owners' records, whose number is public; got <<min_owners>> or <<check_owners=zero>>, "
            "by which some may be missing; leave it out, or use <<check_owners=stop>>",
            code="together",
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
        found=origin.found,
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
