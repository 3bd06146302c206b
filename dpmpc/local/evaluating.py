"""The figures of a run inside its promise: held-out records, and one noisy release of them after training.

Guarantees: a record is held out or trained on, by a draw that its owner keeps and that no value decides
(`privacy.assignment`). Two neighbouring data sets differ in one record, which keeps its id or its place, so they differ
in one part alone. If it is trained on, the survey and the releases of training spend (epsilon, delta), and what is
released about the other part has the same law for both, whatever model was opened; if it is held out, all that came
before has, and the evaluation, made for (epsilon, delta) whatever the model, spends that. So the run costs the larger
price and not the sum. Whole owners have records in both parts, for whom prices add up; there no evaluation is made
inside.
"""

import math
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmpc.aggregation.plan.guarantee import promise_of
from dpmpc.aggregation.plan.plan import Plan
from dpmpc.aggregation.plan.stages import stage_plan
from dpmpc.errors import RecordError, UsageError
from dpmpc.folders import said_path
from dpmpc.intake.files import files_digest
from dpmpc.intake.scratch import in_scratch
from dpmpc.intake.table import Floats, Ints, Table
from dpmpc.lazy import dataclass
from dpmpc.learning.source import Stage
from dpmpc.local.holdout import ids_of
from dpmpc.mpc.native.hashes import keyed_hashes
from dpmpc.planning.forecast import cells_at, forecast, too_few, why_not
from dpmpc.planning.request import Request
from dpmpc.privacy.account import Account, account_folder
from dpmpc.privacy.assignment import Assignment
from dpmpc.privacy.data_names import data_digest
from dpmpc.privacy.gaussian import epsilon_of_mu, mu_of_budget
from dpmpc.records import Dataset, Schema
from dpmpc.records.dataset import Rows, Split
from dpmpc.records.persons import persons_of
from dpmpc.statistics.columns import Columns, category
from dpmpc.statistics.evaluated import tables_of, totals
from dpmpc.statistics.held_out import EVALUATION, HELD_OUT, TRAINING
from dpmpc.statistics.tables import STEP, Tables, asked_by

_PLACES = "places in "  # how an assignment without ids is called, before the digest of the file
TEST = 0.2


def inside(request: Request, held: int, task: str = "logistic", classes: int = 2) -> bool:
    """Whether a run's figures come from inside its promise. A function of public numbers.

    Errors: UsageError where that was asked for and cannot be."""
    if not request.evaluate or request.figures == "plain":
        return False
    reason = why_not(request) or too_few(request, held, task, classes)
    if reason and request.figures is not None:
        raise UsageError(
            f"figures inside the promise must tell something; {reason}; hold out more with <<test_fraction>>, raise "
            "<<epsilon>>, or use <<figures=plain>>",
            code="enough",
        )
    return not reason


def shared(request: Request, schema: Schema, sizes: tuple[int, ...]) -> tuple[tuple[int, ...], str]:
    """(how many of its records each owner of several machines holds out for figures inside the promise, what is to be
    said of them), or ((), why there will be none). From public numbers alone.

    Errors: UsageError where a share was stated and there can be no figures."""
    share = TEST if request.test_fraction is None else request.test_fraction
    rows = request.person_rows if request.person else 1
    held = tuple(rows * math.floor(size // rows * share + 0.5) for size in sizes)
    reason = why_not(request)
    if not reason and request.capacity is not None and not request.person and request.test_fraction is None:
        reason = "where numbers of records are private they are held out by their ids; state <<test_fraction>> for that"
    if not reason and schema.missing == "drop":
        reason = "held-out records are drawn from all records"
    if not reason and not all(0 < part < size for part, size in zip(held, sizes, strict=True)):
        reason = f"each owner holds out some records and not all; a share of {share:g} leaves one none"
    reason = reason or too_few(request, sum(held), schema.task, schema.classes)
    if not reason:
        return held, forecast(request, sum(held), schema.task, schema.classes)
    if request.test_fraction:
        raise UsageError(
            f"figures inside the promise must tell something; {reason}; hold out more with <<test_fraction>>, raise "
            "<<epsilon>>, or use <<test_fraction=0>>",
            code="enough",
        )
    return (), f"no figures of the model inside the promise, all records are trained on: {reason}"


def in_places(request: Request) -> tuple[float, str]:
    """The share of places, or of the persons in a column, that owners of several machines hold out; (0, "") where parts
    have exact sizes."""
    if not request.person and request.capacity is None:
        return 0.0, ""
    return float(TEST if request.test_fraction is None else request.test_fraction), request.person or ""


def plainly(request: Request, inside: bool) -> bool:
    """Whether figures of plain records are looked at too: as asked, of public data, and where there are no others."""
    return request.evaluate and (
        request.figures in ("plain", "both") or not inside or (request.figures is None and request.data is not None)
    )


def counted(request: Request, n: int, persons: Ints | None) -> int:
    """The public number of records, of which n are here: of places, where some may be empty. `persons`: whose each
    record is."""
    if request.capacity is not None:
        return sum(request.capacity) * (1 if persons is None else request.person_rows)
    return n if persons is None else request.person_rows * len(np.unique(persons))


def all_of(request: Request, dataset: Dataset) -> int:
    """The public number of training and held-out records: `counted`."""
    persons = None if dataset.persons is None else np.concatenate(dataset.persons)
    return counted(request, dataset.rows, persons)


@dataclass(frozen=True)
class Holdout:
    """Who is held out: by the stored assignment of the owner's account, which no value of a record decides."""

    assignment: Assignment
    ids: str | None

    def held(self, table: Table) -> NDArray[np.bool_]:
        """(n,) whether each row is held out. Errors: UsageError for a row without id."""
        ids = range(table.n) if self.ids is None else ids_of(table, self.ids)
        return np.asarray(self.assignment.parts_of(ids, keyed_hashes) == self.assignment.names.index(HELD_OUT))


def _fraction(request: Request) -> float:
    usual = TEST if request.data != "synthetic" else 0.5
    return usual if request.test_fraction is None else request.test_fraction


def training_part(request: Request, n: int, source: str) -> str:
    """What ledgers say of releases on the records that are trained on, of n in all; "" where no evaluation is made
    inside the promise. Those of a public data set are parted by its rows' places, the seed and the sizes."""
    if request.source is None:
        if not inside(request, int(_fraction(request) * n)):
            return ""
        said = f"{request.data}/{n}/{request.seed}/{_fraction(request)}/{request.max_rows}/{request.dimension}"
        return f"record:{data_digest(said)[:16]}/{TRAINING}"
    parted = parting(request, n, source)
    return "" if parted is None else parted.assignment.label(TRAINING)


def parting(request: Request, n: int, source: str) -> Holdout | None:
    """How n records of this name are parted for figures inside the promise; None where there are no such figures, or
    the records are a public data set's. What is drawn here for the first time is on disk when this returns.

    Errors: UsageError for a file that changed and has no ids, before anything is spent."""
    if request.source is None or not inside(request, int(_fraction(request) * n)):
        return None
    data = data_digest(request.data_id or source)
    own = None if request.account is None else said_path(request.account, "account").expanduser().absolute()
    account = Account(account_folder() if own is None else own)
    share = Fraction(_fraction(request)).limit_denominator(1000)
    parts = {TRAINING: share.denominator - share.numerator, HELD_OUT: share.numerator}
    if name := request.person or request.ids:  # a promise of persons needs parts of persons
        return Holdout(account.assignment(data, f"ids {name}", parts, "person"), name)
    if request.database:
        raise UsageError(
            "held-out records are known again by an id; rows of a database have no place; name the column of their ids "
            "with <<ids>>, or use <<figures=plain>>",
            code="missing",
        )
    name = _PLACES + files_digest(request.source)[:32]
    others = [known for known in account.assignments(data) if known.startswith(_PLACES) and known != name]
    if others and not in_scratch(Path(request.source)):
        raise UsageError(
            f"records without ids are held out by their place in a file that stays as it is; {source} changed since; "
            "name the column of their ids with <<ids>>, or use <<figures=plain>>",
            code="missing",
        )
    return Holdout(account.assignment(data, name, parts), None)


def splitting(request: Request) -> Split:
    """What says which rows are for training: the assignment where there are figures inside the promise, else the
    seed."""

    def by_assignment(table: Table, groups: Ints | None, by_seed: Rows) -> Rows:
        persons = None if request.person is None else persons_of(table)
        parted = parting(request, counted(request, sum(map(len, by_seed)), persons), table.source)
        if parted is None:
            return by_seed
        held, drawn = parted.held(table), np.sort(np.concatenate(by_seed))
        rows = drawn[~held[drawn]], drawn[held[drawn]]
        if groups is not None and np.count_nonzero(np.bincount(groups[rows[0]])) < np.count_nonzero(
            np.bincount(groups)
        ):
            raise UsageError(
                "every owner needs at least one record to train on; one has none that is not held out; use a smaller "
                "<<test_fraction>>, or <<figures=plain>>"
            )
        return rows

    return by_assignment


def held_sizes(request: Request, dataset: Dataset, owners: int) -> tuple[Ints, tuple[int, ...]]:
    """(n,) the owner of each held-out record, and how many each has, or places for how many: by the column of owners,
    else as many each. Errors: RecordError for more than an owner's capacity."""
    n = dataset.held_out
    persons = None if dataset.persons is None else dataset.persons[1]
    number, units = np.arange(n), n
    if persons is not None:
        there, number = np.unique(persons, return_inverse=True)
        units = len(there)
    owner = number * owners // max(units, 1) if dataset.test_groups is None else dataset.test_groups
    owner = owner.astype(np.int64)
    # records, or persons at an owner
    each = owner if persons is None else np.unique(owner * units + number) // max(units, 1)
    found, rows = np.bincount(each, minlength=owners), 1 if persons is None else request.person_rows
    if request.capacity is not None:
        if (found > np.array(request.capacity)).any():
            raise RecordError(
                f"held-out records, or persons, are at most as many as <<capacity>>; owners have {found[:8]}; raise it",
                "held-out records, or persons, are at most as many as the capacity of each owner; one has more",
            )
        found = np.array(request.capacity)
    return owner, tuple(int(size) * rows for size in found)


def evaluation_of(training: Plan) -> list[Plan]:
    """A plan of the price of the evaluation after this one, if it has a part of the data for it: what is asked, of how
    many records, has no part in the price."""
    if not training.part or not training.delta:
        return []
    return [_evaluation(training, Tables.of(Columns((category("outcome", ("no", "yes")),)), ["table(outcome)"]))]


def _evaluation(training: Plan, asked: Tables, sizes: tuple[int, ...] = ()) -> Plan:
    """The plan of a release of what is asked of held-out records: what one part costs, the other may too. All their
    owners are here, by processes of their own."""
    epsilon = epsilon_of_mu(mu_of_budget(training.epsilon, training.delta), training.delta)
    plan = stage_plan(training, Stage(EVALUATION, asked, epsilon, HELD_OUT, sizes))
    return replace(plan, role="apart", min_owners=None, check_owners="no", bounds=training.bounds)


class HeldOut:
    """The held-out records of a run, as its model is asked about them. `training`: its plan."""

    def __init__(self, request: Request, training: Plan, dataset: Dataset) -> None:
        self._request, self._training, self._dataset = request, training, dataset
        self._owner, self._sizes = held_sizes(request, dataset, training.owners)
        self._cells = cells_at(request, sum(self._sizes), dataset.schema)

    def plan(self, theta: Any) -> Plan:
        """The plan of the evaluation of a model."""
        tables = tables_of(self._dataset.schema, theta, self._training.learning.weights, cells=self._cells)
        return _evaluation(self._training, tables, self._sizes)

    def means(self, plan: Plan, theta: Any) -> Iterator[Floats]:
        """(owners, dimension) the vector of each owner in the evaluation of a model, all of them at once. Secret."""
        test, schema, sizes = self._dataset.test, self._dataset.schema, plan.sizes
        parts = (
            totals(schema, theta, None, X, test.y[rows], self._owner[rows], len(sizes), cells=self._cells)
            for rows, X in test.blocks()
        )
        vectors = sum(parts, np.zeros((len(sizes), asked_by(plan.source).layout.dimension), dtype=np.int64))
        yield vectors * STEP / np.maximum(np.array(sizes, dtype=np.float64), 1.0)[:, None]


def section(plan: Plan) -> dict[str, Any]:
    """What report.json says of an evaluation."""
    promise = promise_of(plan)
    return {
        "promise": {"epsilon": promise.epsilon, "delta": promise.delta, "neighbours": promise.neighbours},
        "held_out": list(plan.sizes),
        "counted": plan.counted,
        "cost": (
            f"epsilon = {promise.epsilon:.6g}, delta = {promise.delta:.3g} for held-out records"
            f"{' with the questions, which read all' * bool(plan.released)}, which training did not see, so that no "
            "record pays for both"
        ),
        "noise": plan.derived.mechanism.scale * plan.grid.step,
        "coordinates": plan.dimension,
    }
