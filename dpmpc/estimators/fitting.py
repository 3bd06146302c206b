"""One fit: the survey and the plan that `train` would make, their releases, what they spent."""

import contextlib
import secrets
from collections.abc import Callable, Iterator, Mapping
from dataclasses import field, replace
from typing import Any, Self

import msgspec
import numpy as np

from dpmpc.aggregation.owner.accounts import Books
from dpmpc.aggregation.owner.local_parties import work_out
from dpmpc.aggregation.plan.guarantee import Promise, promise_of, report_of
from dpmpc.aggregation.plan.here import Here
from dpmpc.aggregation.plan.plan import Plan
from dpmpc.errors import UsageError, spelt
from dpmpc.estimators.errors import spelling
from dpmpc.estimators.frames import TARGET, Frame, rows, sorted_by_owner
from dpmpc.estimators.persons import PersonPlaces
from dpmpc.estimators.spending import PrivacyWarning, expect, ledger_of, spent_on, warn, warn_of_fits
from dpmpc.folders import gone_if_empty, make_folder, passing_folder, said_path
from dpmpc.intake.giving import giving_of, looked_at
from dpmpc.intake.profile import look
from dpmpc.intake.spelling import PLAIN
from dpmpc.intake.table import Floats, Ints, Table
from dpmpc.lazy import cached_property, dataclass
from dpmpc.learning.class_weights import BALANCED, names_of, stated
from dpmpc.learning.method import DEFAULT_METHOD, METHODS, Learner
from dpmpc.learning.survey_columns import ANY
from dpmpc.learning.task import modelled
from dpmpc.local.learns import Learns
from dpmpc.local.surveying import SurveyFirst, SurveyInputs, draft_of, found_by, surveyed_plan, wanted
from dpmpc.planning.request import Request
from dpmpc.planning.training import facts_of_schema, foretold, plan_of, settled
from dpmpc.privacy.composition import Spent
from dpmpc.privacy.entry import Entry
from dpmpc.privacy.law import law_for
from dpmpc.privacy.mechanism import Mechanism
from dpmpc.records.derive import check_spelled, check_useful, spelled_otherwise
from dpmpc.records.loading import opened
from dpmpc.records.mapping import zeroed
from dpmpc.records.margins import decided
from dpmpc.records.origins import Element
from dpmpc.records.ownership import Partition, shares
from dpmpc.records.schema import NOTHING_STOOD_OUT, OFF_THE_RECORDS, Labels, Range, Schema, Surveyed, Target
from dpmpc.run.reserve import budget_alone, budget_below
from dpmpc.run.resume import Since
from dpmpc.run.run import OpenedRelease, run
from dpmpc.run.seat import Seat
from dpmpc.settings import declared, said
from dpmpc.show import notebook


@dataclass(frozen=True)
class Fitted:
    """What a fit gives: the schema, the model (d,), the promise, the releases, the aggregator's report,
    and what all fits on the same data have spent by then."""

    schema: Schema
    theta: Floats
    guarantee: Promise
    ledger: tuple[Entry, ...]
    report: dict[str, Any]
    iterations: int
    plan: Plan
    weights: tuple[float, ...] = ()  # of the classes
    spent: Spent | None = None
    columns: dict[str, dict[str, Any]] = field(default_factory=dict)


# Parameters that an estimator reads itself, or that what a fit is given says.
_LEDGERS = "ledgers need a folder that can be written"
_OWN = ("bounds", "schema", "ledgers", "budget", "account", "task", "person", "spelling")


@dataclass(frozen=True)
class Given:
    """What a fit is given: columns by name, their targets y (n,), numbers, the owner of each record (n,).

    `target`: how targets become numbers; None: a quantity whose range is not public. `rarest`: how many records
    have the rarest of its classes; None where its constants are public. `read_off`: makes the schema of bounds, or of
    the records where there are none.
    """

    task: str
    columns: Frame
    y: Floats
    groups: Ints
    target: Target | None
    rarest: int | None
    read_off: Callable[[], Schema]
    scaled: Callable[[Schema], Floats]
    read: tuple[Element, ...] = ()  # off y
    weights: Floats | None = None  # (n,) of the records, 0 to 1
    persons: PersonPlaces | None = None  # where the promise is of these

    @cached_property
    def split(self) -> Partition:
        """Who holds which record; of persons, in which place."""
        n, of = len(self.groups), self.persons  # nothing is drawn, as groups say it
        if of is None:
            return shares(n, None, self.groups, seed=0)
        return shares(n, of.numbers, self.groups, rows=of.rows, seed=0)

    @property
    def sizes(self) -> tuple[int, ...]:
        """How many records, or places, each owner has."""
        return tuple(int(size) for size in self.split.sizes)


def request_for(estimator: Any, given: Given) -> Request:
    """What `train` would be asked, with the estimator's parameters. Errors: what no run can keep."""
    given_to = estimator.get_params()
    own = said({name: getattr(estimator, name) for name in declared(Request) if name in given_to})
    for name in _OWN:
        own.pop(name, None)
    if given.persons is not None:
        own["person"] = given.persons.name
    if isinstance(own.get("class_weight"), Mapping):
        own["class_weight"] = stated({str(name): float(weight) for name, weight in own["class_weight"].items()})
    if given.weights is not None:
        own.setdefault("method", DEFAULT_METHOD)
    if own.get("method") and not METHODS[own["method"]].repeats:
        own.pop("iterations", None)
    if not own.get("delta"):
        own["law"] = own.get("law") or law_for(None)
    return Request(
        **own,
        records=estimator.data_id,
        target=TARGET,
        task=given.task,
        owner_sizes=given.sizes,
        evaluate=False,
        run_id=secrets.token_hex(8),
    )


def fit_records(estimator: Any, given: Given) -> Fitted:
    """Surveys, where no schema is given and the budget can be shared, and learns, as `train` does.

    Errors: as `plan_of`; a budget that does not suffice; PeerError.
    """
    request = request_for(estimator, given)
    with _folder(estimator, str(request.run_id)) as seat, contextlib.ExitStack() as survey:
        for line in _giving(given):
            expect(line)

        def trains(schema: Schema, before: tuple[Mechanism, ...], request: Request) -> _Fit:
            features = rows(schema, given.columns, spelling=estimator.spelling or PLAIN)
            return _learning(request, schema, before, features, given, survey)

        found = _surveyed(estimator, request, given, seat, survey)
        if found is None:
            schema = modelled(given.read_off().on(request.basis), given.task)
            fit = trains(_rests_on(estimator, given, schema), (), request)
            own = run(fit.plan, fit, seat).own
        else:
            whole, asking = found

            def follows(plan: Plan, records: object) -> _Fit:
                schema, now = found_by(request, whole, plan)
                return trains(_rests_on(estimator, given, schema, surveyed=True), plan.released, now)

            first = SurveyFirst(whole, asking, follows)
            own = run(whole, first, seat, survey).own
            assert isinstance(first.trains, _Fit)
            fit = first.trains
        fitted = _fitted(fit, own, seat)
    fits, total = spent_on(estimator.account, fitted.plan)
    warn_of_fits(fits, total, fitted.plan)
    return replace(fitted, spent=total, columns=_accounted(given, fitted.schema))


def _accounted(given: Given, schema: Schema) -> dict[str, dict[str, Any]]:
    """Every column that a fit was given: how many features it has, or why it has none."""
    used = {column.name: len(column.features) for column in schema.columns}
    why = {"survey": NOTHING_STOOD_OUT, "data": OFF_THE_RECORDS}.get(schema.bounds, "not in the schema")
    surveyed = any(isinstance(column, Surveyed) for column in schema.columns)
    why = NOTHING_STOOD_OUT if surveyed else why
    return {"used": used, "left_out": {name: why for name in given.columns if name not in used}}


def _surveyed(
    estimator: Any, request: Request, given: Given, seat: Seat, until: contextlib.ExitStack
) -> tuple[Plan, SurveyInputs] | None:
    """The plan of a fit with a survey, and what that asks of the records, which are held until the end of this stack;
    None where there is none."""
    if not wanted(request) or (estimator.schema is not None and request.preprocessing is None):
        return None
    target = given.target or Range(TARGET, *ANY)
    table = {**given.columns, TARGET: given.y} if isinstance(target, Range) else given.columns
    if given.target and request.class_weight == BALANCED:
        y = np.nan_to_num(given.y)
        code = np.asarray(y > 0 if isinstance(given.target, Labels) else y, dtype=np.int64)
        named = np.array(names_of(given.target), dtype=object)[code]
        named[np.isnan(given.y)] = None
        table = {**table, given.target.name: named}
    held = opened(table, folder=seat.out, spelling=estimator.spelling or PLAIN)
    records, _ = until.enter_context(held)
    _look(records, estimator)
    if estimator.schema is not None:
        draft = modelled(given.read_off(), given.task)
    elif estimator.bounds is not None:
        draft = msgspec.structs.replace(given.read_off(), target=target, task=given.task)
    else:
        draft = draft_of(records, list(given.columns), target, estimator.fit_intercept, given.task)
    draft = msgspec.structs.replace(draft.on(request.basis), rests_on=(*draft.rests_on, *given.read))
    asking = SurveyInputs(records, draft, given.groups, given.sizes)
    whole = surveyed_plan(request, asking, expect)
    return None if whole is None else (whole, asking)


def _rests_on(estimator: Any, given: Given, schema: Schema, surveyed: bool = False) -> Schema:
    """The schema that records are mapped by, with what of it was read off the records, which is warned of."""
    # all records of a person that are kept, where the promise is of persons
    owners = estimator.person_owners or len(given.sizes)
    touched = 1 if given.persons is None else given.persons.rows * owners
    if surveyed and given.rarest is not None and not decided(given.rarest, touched, touched):
        schema = msgspec.structs.replace(schema, bounds="data")
    if set(given.read) - set(schema.origin.read):
        schema = msgspec.structs.replace(schema, rests_on=(*schema.rests_on, *given.read))
    if set(schema.origin.read) - {"classes"}:  # that alone is an "if" of the promise, where no one record decides it
        classes = surveyed and estimator.schema is None
        what = "the classes" if classes else "constants of preprocessing (ranges, categories, classes)"
        warn(
            f"{what} are read off the records and not covered by the guarantee; state bounds= and classes= or "
            "target_bounds=, or a schema=",
            PrivacyWarning,
        )
    return schema


def _giving(given: Given) -> Iterator[str]:
    """A line on each column that nearly gives the target by itself."""
    step = -(-len(given.y) // looked_at(len(given.columns))) or 1
    truth = np.asarray(given.y, dtype=np.float64)[::step]
    there = np.isfinite(truth)
    read = {name: np.asarray(values)[::step][there] for name, values in given.columns.items()}
    columns = {name: values if values.dtype.kind == "f" else list(map(str, values)) for name, values in read.items()}
    number = given.target is None or isinstance(given.target, Range)
    yield from (line for _, line in giving_of(columns, truth[there], number))


def _look(records: Table, estimator: Any) -> None:
    """Looks at a frame as `train` looks at a file. Warns of what is odd. Errors, before anything is spent: columns of
    no use; numbers or dates that are spelled otherwise than was stated; with a schema or bounds, which may mean them as
    words, that is a warning."""
    for column in records.columns:
        if column.kind == "other":
            raise UsageError(records.refusal(column))
    if not hasattr(estimator, "feature_names_in_"):  # an array, of numbers, without names
        return
    intake = look(records, target=TARGET if TARGET in records else None)[0]
    if estimator.schema is None and estimator.bounds is None:
        check_spelled(intake)
        check_useful(intake)
    lines = [line for line in intake.findings if " alone gives the target" not in line]  # `_giving` said it
    odd = [*([text] if (text := spelled_otherwise(intake)) else []), *lines]
    if odd:
        warn(spelt("; ".join(odd), spelling))


def _learning(
    request: Request,
    schema: Schema,
    before: tuple[Mechanism, ...],
    X: Floats,
    given: Given,
    survey: contextlib.ExitStack,
) -> "_Fit":
    """`survey`: the end of what came before."""
    y = zeroed(X, given.scaled(schema))  # a target that is missing, where that was stated to count as a zero vector
    records, sizes = sorted_by_owner(X, y, given.split, given.weights), given.sizes
    facts = facts_of_schema(str(request.data_id), schema, sizes, before)
    request, advice = settled(request, facts)
    plan = plan_of(request, facts, work_out, chosen=True)
    for text in () if before else foretold(plan, advice):  # those of a survey were told before it
        expect(text)
    survey.close()
    noise = plan.derived.mechanism.scale * plan.grid.step / plan.divisor
    return _Fit(plan, Learner(plan.learning, plan.releases, records, sizes, noise), schema)


class _Fit(Learns):
    """The owners of a fit, whose model is in memory alone."""

    def __init__(self, plan: Plan, learner: Learner, schema: Schema) -> None:
        super().__init__(plan, learner, doing="fitting")
        self.schema = schema

    @contextlib.contextmanager
    def plays(self, plan: Plan, seat: Seat, since: Since) -> Iterator[Self]:
        with notebook.releases("fit", plan.releases) as self.hears:
            yield self


def _fitted(fit: _Fit, own: OpenedRelease, seat: Seat) -> Fitted:
    assert seat.out is not None and own.ended is not None
    plan, model, done = fit.plan, fit.learner.model, fit.learner.iteration
    entries, report = ledger_of(seat.out), report_of(plan, None, plan.releases, list(own.ended.lost))
    return Fitted(fit.schema, model, promise_of(plan), entries, report, done, plan, plan.learning.weights)


@contextlib.contextmanager
def _folder(estimator: Any, run_id: str) -> Iterator[Seat]:
    """Where the fit is, in a new folder below `ledgers` or one that is removed afterwards."""
    keeps = estimator.ledgers is not None
    own = None if estimator.account is None else said_path(estimator.account, "account")
    if not keeps:
        with passing_folder() as folder:
            books = Books.kept(own, budget_alone(estimator.budget), keeps=False)
            yield Seat(Here(out=folder), books)
        return
    out = said_path(estimator.ledgers, "ledgers").resolve() / run_id
    books = Books.kept(own, budget_below(estimator.budget, estimator.ledgers, out))
    make_folder(out, _LEDGERS, "name another with <<ledgers>>", private=True, new=True)
    with gone_if_empty(out):  # it is not, as soon as anything was to be spent
        yield Seat(Here(out=out), books)
