"""Statistics over all owners as a function call: `dpmpc.stats`. One plan, one release, its answers; a survey before it
where nothing is stated of the columns."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, Unpack

from dpmpc.aggregation.owner.accounts import Books
from dpmpc.aggregation.plan.here import Here
from dpmpc.aggregation.plan.keywords import SourceKeywords
from dpmpc.aggregation.plan.plan import Plan
from dpmpc.errors import UsageError
from dpmpc.folders import said_path
from dpmpc.intake.missing import keeping
from dpmpc.intake.spelling import PLAIN, Spelling
from dpmpc.lazy import dataclass
from dpmpc.learning.naming import check_nothing_named
from dpmpc.mpc.transport.heartbeat import WAIT
from dpmpc.outcome import Level
from dpmpc.records.loading import Source, opened
from dpmpc.records.schema import Schema
from dpmpc.run.once import unfinished
from dpmpc.run.run import run
from dpmpc.run.seat import Seat
from dpmpc.settings import keywords
from dpmpc.show.objects import Sheet, Shown
from dpmpc.show.tables import ShownTable as Printed
from dpmpc.statistics.expected import lines, refuse_hopeless
from dpmpc.statistics.foresight import Expected
from dpmpc.statistics.scores import ScoreModel
from dpmpc.tables.answer_files import ANSWERS
from dpmpc.tables.found_first import found_first
from dpmpc.tables.of_table import OfTable
from dpmpc.tables.questions import asked_of, check_read, tell_of, warn_of
from dpmpc.tables.stats import (
    OfTables,
    Statistics,
    called,
    foreseen,
    kept_of,
    opened_tables,
    origin_of_questions,
    owned,
    plan_of_tables,
)


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


@keywords(OfTables)
def stats(
    records: Source,
    queries: Sequence[str | Mapping[str, Any]],
    *,
    owners: str | None = None,
    schema: Schema | Path | str | None = None,
    bounds: Mapping[str, Any] | Path | str | None = None,
    models: Mapping[str, Path | str | ScoreModel] | None = None,
    named: Sequence[str] = (),
    words: Sequence[str] = (),
    spell: Sequence[str] = (),
    about: Literal["data", "population"] = "data",
    confidence: float = 0.95,
    at_once: bool = False,
    hopeless: Literal["refuse", "allow"] = "refuse",
    capacity: Sequence[int] | None = None,
    data_id: str | None = None,
    budget: str | None = None,
    account: Path | str | None = None,
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

    owners: the column that says whose each record is. schema, bounds: public; what may be asked follows from them;
    without either a survey of the columns that questions name comes first, under the same promise. named: columns whose
    values it names, where public lists have their words: those that everybody knows, and `words`; spell: those whose
    words are opened before it, of those that enough records of all owners have.
    models: a name in `evaluate(NAME)` and a run's folder. memory: bytes that the process may hold. spelling: how the
    records are spelled. capacity: of each owner, places for its records or persons, whose numbers are then private.
    about, confidence, at_once: what intervals hold (docs/statistics.md). tell: is called with what becomes of values,
    for their owner's eyes alone; without it a column nearly none of whose values fit is a Python warning.
    settings: epsilon, delta, neighbours, parties and so on, as of `dpmpc.Plan`. out: a new folder for plan, ledgers,
    transcripts and answers. Errors: UsageError for what cannot be asked or would tell nothing (`hopeless`), releases'.
    """
    level = Level(confidence, about, 0 if at_once else 1)
    folder = None if out is None else said_path(out, "out")
    if schema is None and bounds is None:
        return _found_first(
            records, queries, owners, models, named, words, spell, level, hopeless, capacity, data_id, budget, account,
            memory, spelling, folder, wait, tell, settings,
        )  # fmt: skip
    check_nothing_named(named, words, spell)
    if folder is not None:
        unfinished(folder, ANSWERS)
    public = None if schema is None else schema if isinstance(schema, Schema) else Schema.read(Path(schema))
    tables = asked_of(queries, public, bounds, models)
    of, read = kept_of(settings, owners), (*tables.reads, owners)
    with opened(records, memory=memory, spelling=spelling, person=of, names=read) as (table, _):
        own, number, sizes = owned(keeping(table, tables.columns.listed), tables.reads, owners, settings, capacity)
        tables = called(tables, own, owners)
        tell_of(own, tables, tell)
        plan = plan_of_tables(
            tables, sizes, own.source, data_id, settings, origin_of_questions(public, tables),
            capacity=capacity is not None, by_person=True,
        )  # fmt: skip
        warn_of(models, plan.data_id)
        if hopeless == "refuse":
            refuse_hopeless(foreseen(plan, level), plan.epsilon, plan.delta)
        here = Here(out=folder, wait=wait, budget=budget, account=None if account is None else str(account))
        done = run(plan, OfTable("stats", own, number), Seat(here, Books.of(here)))
    found = opened_tables(done.own, level)
    if folder is not None:
        found.write(folder)
    return found


@keywords(OfTables)
def dry(
    records: Source, queries: Sequence[str | Mapping[str, Any]], *, owners: str | None = None,
    schema: Schema | Path | str | None = None, bounds: Mapping[str, Any] | Path | str | None = None,
    models: Mapping[str, Path | str | ScoreModel] | None = None, memory: int | None = None, spelling: Spelling = PLAIN,
    capacity: Sequence[int] | None = None, **settings: Unpack[SourceKeywords],
) -> Dry:  # fmt: skip
    """What `stats` would tell, from public numbers alone; nothing is spent. Of records only their owners are read."""
    tables = asked_of(queries, schema, bounds, models)
    of, read = kept_of(settings, owners), (*tables.reads, owners)
    with opened(records, memory=memory, spelling=spelling, person=of, names=read) as (table, _):
        own, _, sizes = owned(keeping(table, tables.columns.listed), tables.reads, owners, settings, capacity)
        tables = called(tables, own, owners)
        check_read(own, tables)
        plan = plan_of_tables(tables, sizes, own.source, None, settings, capacity=capacity is not None, by_person=True)
    return Dry(plan, foreseen(plan, Level()))


def _found_first(
    records: Source, queries: Sequence[str | Mapping[str, Any]], owners: str | None, models: Any,
    named: Sequence[str], words: Sequence[str], spell: Sequence[str], level: Level, hopeless: str,
    capacity: Sequence[int] | None, data_id: str | None, budget: str | None, account: Path | str | None,
    memory: int | None, spelling: Spelling, folder: Path | None, wait: float, tell: Callable[[str], None] | None,
    settings: Mapping[str, Any],
) -> Statistics:  # fmt: skip
    """`stats` about columns of which nothing is stated."""
    if models:
        raise UsageError("a model is evaluated by a public <<schema>> or <<bounds>>; neither was given; give its own")
    here = Here(out=folder, wait=wait, budget=budget, account=None if account is None else str(account))
    asked = [queries] if isinstance(queries, str | Mapping) else list(queries)
    found = found_first(
        records, asked, owners, named, words, spell, level, hopeless == "refuse", capacity, data_id, memory, spelling,
        Seat(here, Books.of(here)), tell, settings,
    )  # fmt: skip
    if folder is not None:
        found.write(folder)
    return found
