"""The survey of a run: one release, before training, of what a schema needs to know of the owners' records.

It has a plan, parties, ledgers and transcripts of its own, in the folder survey/ of the run, and a part of the run's
budget that the adviser chooses from public numbers; the plan of training carries it (`Plan.before`), and promises both.
Nothing but the names and types of columns decides what is asked: a column of texts, as all of a CSV file are, may hold
numbers, dates, words or all of them, and is surveyed as all; so a field that is no number is a word like any other, and
none ends a run. What is predicted, and the classes of a label, are read off the records by a rule that no neighbour
decides (`records.classes`): with one record changed, or all of one person's, they are the same, or the run ends with an
error before anything is released.
"""

import contextlib
import secrets
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import msgspec
import numpy as np

from dpmpc.aggregation.owner.local_parties import work_out
from dpmpc.aggregation.plan.plan import Plan
from dpmpc.errors import UsageError
from dpmpc.intake.table import Floats, Ints, Table
from dpmpc.lazy import dataclass
from dpmpc.learning.class_weights import names_of, stated
from dpmpc.learning.survey_columns import ANY
from dpmpc.learning.task import TASKS, modelled
from dpmpc.local.evaluating import counted as counted_of
from dpmpc.local.evaluating import evaluation_of, inside, parting, splitting, training_part
from dpmpc.local.learns import Learns
from dpmpc.local.named_records import shared_out
from dpmpc.planning.request import Request
from dpmpc.planning.training import (
    advised_with_survey,
    may_survey,
    on_advised_basis,
    silence,
    surveyed_first,
    too_loud,
    warned_of,
)
from dpmpc.records import Schema
from dpmpc.records.blocks import check_room
from dpmpc.records.check import given
from dpmpc.records.classes import target_read
from dpmpc.records.dataset import Rows, split
from dpmpc.records.derive import TableSettings, features_of, looked, schema_of_bounds
from dpmpc.records.draft import target_of
from dpmpc.records.loading import OpenTable
from dpmpc.records.mapping import Mapping, one_value, owners_in
from dpmpc.records.memory import parse_memory, usual_memory
from dpmpc.records.persons import drawn_apart, persons_of, touched_at_most
from dpmpc.records.schema import Numeric, Range, Target, read_bounds
from dpmpc.run.owners import Sends
from dpmpc.run.resume import Since
from dpmpc.run.run import ReadOnce
from dpmpc.run.seat import Seat


def wanted(request: Request) -> bool:
    """Whether a run that is all here may be surveyed first, as far as the request alone tells: its records have no
    schema, and the budget can be shared. What the columns leave open decides it (`surveyed_first`)."""
    if request.preprocessing is not None:
        return request.preprocessing == "survey"
    return request.source is not None and request.schema is None and not request.planned and may_survey(request)


def survey(
    request: Request, records: OpenTable, tell: Callable[[str], None] = lambda text: None
) -> "tuple[Plan, SurveyInputs] | None":
    """The plan of a run that surveys the records that the request names before it trains, and what it asks of them.
    `tell`: what is warned of, before anything is spent.

    None if the budget is too small for it or bounds leave nothing open, and none was asked for by name.
    Errors: as for records; a target that does not suit the task; options that no run can do; no room for what comes
    after.
    """
    request = replace(request, run_id=request.run_id or secrets.token_hex(8))
    table = records.table
    asked, intake, features = asked_of(request), None, list[str]()
    if request.schema is None and request.bounds is None:
        features = features_of(table, asked)
        intake, table = looked(table, asked)
        if asked.kind == "number":
            target_of(intake[asked.target], "number", None)
    draft = draft_for(request, records.table, table, asked, features)
    if "classes" not in draft.origin.read:  # what training would refuse is refused before the survey is spent
        mapping = Mapping(table, draft)
        mapping.targets()
        if alike := one_value(draft.target, mapping.ends, table.n - mapping.misfits):
            tell(f"warning: {alike}")
    rows, owner_of, sizes = owners_of_records(request, records.table, table)
    persons = None if request.person is None else persons_of(records.table)
    held = counted_of(request, len(rows[1]), None if persons is None else persons[rows[1]])
    inside(request, held, draft.task, draft.classes)  # what was asked for is refused before the survey is spent
    part = training_part(request, counted_of(request, sum(map(len, rows)), persons), table.source)
    asking = SurveyInputs(table, draft, owner_of, sizes, part, replace(records, table=table, rows=rows))
    whole = surveyed_plan(request, asking, tell)
    if whole is None:
        return None
    asks = whole.learning.survey
    assert asks is not None
    memory = usual_memory() if request.memory is None else parse_memory(request.memory)
    check_room(sum(map(len, rows)), asks.places, request.precision, memory, records.private)
    said = (each.text for each in given(draft, table)) if intake is None else intake.findings
    return whole, replace(asking, said=tuple(said))


def asked_of(request: Request) -> TableSettings:
    """What the request says of the columns."""
    goal = None if request.task is None else TASKS[request.task]
    target = request.target or (Schema.read(Path(request.schema)).target.name if request.schema else "")
    return TableSettings(
        target, request.owners_column, request.dropped, goal, request.positive, request.intercept is not False,
        classes=request.classes,
    )  # fmt: skip


def draft_for(
    request: Request, source: Table, table: Table, asked: TableSettings, features: Sequence[str] = ()
) -> Schema:
    """`_draft_for` on the basis that the request asks for."""
    return _draft_for(request, source, table, asked, features).on(request.basis)


def _draft_for(request: Request, source: Table, table: Table, asked: TableSettings, features: Sequence[str]) -> Schema:
    """What is public of the columns: the schema or the bounds that are given, which a survey then restricts itself to;
    else the types that the features have in their source, and the classes, read off `table`, the same as it is held."""
    if request.schema is not None:
        return modelled(Schema.read(Path(request.schema)), request.task)
    if request.bounds is not None:
        return schema_of_bounds(table, asked, read_bounds(Path(request.bounds)))
    names = features or features_of(source, asked)
    target = _target_of(table, asked, touched_at_most(source, request.kept))
    draft = draft_of(source, names, target, asked.intercept, asked.task)
    read = () if isinstance(target, Range) or asked.classes else ("classes",)
    return msgspec.structs.replace(draft, rests_on=(*draft.rests_on, *read))


def _target_of(table: Table, asked: TableSettings, moved: int) -> Target:
    """What is predicted: as stated, or read off the records in a way that no neighbour decides, of which `moved`
    records may differ."""
    return asked.stated or target_read(table, asked, moved, Range(asked.target, *ANY))


def draft_of(source: Table, features: Sequence[str], target: Target, intercept: bool, task: str = "") -> Schema:
    """What of the columns is known where no bounds are: their types. Of one of texts nothing is known."""
    texts = tuple(name for name in features if source[name].kind == "text")
    columns = tuple(Numeric(name, *ANY) for name in features if name not in texts)
    return Schema(columns, target, intercept, unknown=texts, task=task)


@dataclass(frozen=True)
class SurveyInputs:
    """What a survey is about: a table, what is public of its columns, the owner of each record (n,), -1 for none, and
    how many each has. `records`: those of the table, where training reads them again; `said`: of them, to their owners,
    before anything is spent."""

    table: Table
    draft: Schema
    owner_of: Ints
    sizes: tuple[int, ...]
    part: str = ""
    records: OpenTable | None = None
    said: tuple[str, ...] = ()


def surveyed_plan(
    request: Request, asking: SurveyInputs, tell: Callable[[str], None] = lambda text: None
) -> Plan | None:
    """The plan of a run with a survey, and with words before it where they are wanted, ahead of training. None and
    errors: as of `survey`."""
    if not surveyed_first(request, asking.draft, asking.sizes, complete=False):
        return None
    draft = on_advised_basis(request, asking.draft, asking.sizes)
    if too_loud(request, draft, asking.sizes):
        raise UsageError(silence(draft, asking.sizes), code="enough")
    # the parties of stages that are all here are processes of their own, and all their owners come
    apart = partial(replace, role="apart", min_owners=None)
    name, part, ahead = asking.table.source, asking.part, lambda first: work_out(apart(first))
    whole, advice = advised_with_survey(request, draft, asking.sizes, name, part, ahead=ahead)
    for warning in warned_of(request, whole, advice, draft, asking.sizes):
        tell(f"warning: {warning}")
    whole = apart(whole)
    for plan in whole.ahead:
        work_out(plan)
    return whole


class SurveyFirst(ReadOnce):
    """The records of a run that is surveyed before it trains. `asking`: what the survey is about; None where it is
    over. `follows`: who trains, of the plan that follows from the survey and the records that it has read; `tell`: told
    what their owners are to hear of the records before anything is spent."""

    def __init__(
        self, whole: Plan, asking: SurveyInputs | None, follows: Callable[[Plan, OpenTable | None], Learns],
        tell: Callable[[str], None] = lambda text: None,
    ) -> None:  # fmt: skip
        self.whole, self._asking, self._follows, self._tell = whole, asking, follows, tell
        self._said = () if asking is None else asking.said
        self.trains: Learns | None = None

    def vectors(self, plan: Plan) -> Iterator[Floats]:
        asking = self._asking
        assert asking is not None
        return plan.source.means(asking.table, asking.owner_of, asking.sizes)

    def ready(self, plan: Plan) -> None:
        """Stages after the first were asked for with it."""
        for line in self._said:
            self._tell(line)
        self._said = ()

    def coming(self, plan: Plan) -> Sequence[Plan]:
        return evaluation_of(plan)

    def after(self, plan: Plan) -> Sequence[Plan]:
        return () if self.trains is None else self.trains.after(plan)

    def then(self, plan: Plan) -> Plan:
        records, self._asking = None if self._asking is None else self._asking.records, None
        self.trains = self._follows(plan, records)
        return self.trains.plan

    @contextlib.contextmanager
    def plays(self, plan: Plan, seat: Seat, since: Since) -> Iterator[Sends]:
        mine = super().plays if self.trains is None else self.trains.plays
        with mine(plan, seat, since) as owners:
            yield owners


def found_by(request: Request, whole: Plan, plan: Plan) -> tuple[Schema, Request]:
    """The schema that a survey led to, and the request with the weights of classes that it counted. `plan`: what
    follows from it in the run of `whole`."""
    assert whole.learning.survey is not None and plan.schema is not None
    schema, weights = Schema.from_json(plan.schema), plan.learning.weights
    if whole.learning.survey.balanced:
        text = stated(dict(zip(names_of(schema.target), weights, strict=True))) if weights else None
        request = replace(request, class_weight=text)
    return schema, request


def with_schema(request: Request, schema: Schema, folder: Path) -> Request:
    """The request of what follows a survey, whose schema is written into its folder."""
    path = folder / "schema.json"
    schema.write(path)
    return replace(
        request, schema=str(path), target=None, drop=(), positive=None, classes=(), bounds=None, preprocessing=None,
        named=(), spell=(), word_list=None, task=schema.task, without=request.dropped,
    )  # fmt: skip


def owners_of_records(request: Request, table: Table, plain: Table | None = None) -> tuple[Rows, Ints, tuple[int, ...]]:
    """The rows for training and for the test; (n,) the owner of each record, -1 for those that are held out; and how
    many each owner has for training. The same split as training's. `plain`: the same records with their texts parsed,
    of which some columns may be left out, that of the ids among them."""
    groups, name = None, request.owners_column
    if name is not None:
        # a number is held as what it means, and an owner's name is a text
        named = plain if plain is not None and name in plain and plain[name].kind == "text" else table
        groups = owners_in(named, name)[0]
    else:
        request.require_owners()
    fraction = 0.2 if request.test_fraction is None else request.test_fraction
    persons = None if request.person is None else persons_of(table)
    if plain is not None and persons is None and request.ids is None:
        table = plain
    if persons is None and _assigned(request, table, fraction):
        by_seed = np.arange(table.n), np.zeros(0, dtype=np.int64)
    elif persons is None:
        by_seed = split(table.n, test_fraction=fraction, max_rows=request.max_rows, seed=request.seed, groups=groups)
    else:
        by_seed = drawn_apart(persons, fraction, request.seed)
    rows = splitting(request)(table, groups, by_seed)
    train = rows[0]
    of = shared_out(
        request,
        len(train),
        None if persons is None else persons[train],
        None if groups is None else groups[train],
    )
    owner_of, filled = np.full(table.n, -1, dtype=np.int64), of.order[: of.n] >= 0
    owner_of[train[of.order[: of.n][filled]]] = np.repeat(np.arange(of.m), of.sizes)[filled]
    return rows, owner_of, tuple(int(size) for size in of.sizes)


def _assigned(request: Request, table: Table, fraction: float) -> bool:
    """Whether the stored assignment alone says which records are held out, of all of them; then nobody draws."""
    if request.max_rows is not None or not 0 <= fraction < 1:
        return False
    return parting(request, table.n, table.source) is not None
