"""One fit: the plan that `train` would make, its releases, what they spent."""

import contextlib
import secrets
import tempfile
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dpmpc.aggregation.aggregator import Aggregator
from dpmpc.aggregation.asked import FIRST_ATTEMPT
from dpmpc.aggregation.frames import TOKEN_BYTES, rows_of_block
from dpmpc.aggregation.guarantee import Promise
from dpmpc.aggregation.paths import ledger_path
from dpmpc.aggregation.plan import Plan
from dpmpc.aggregation.spending import entry_of, reservation_of
from dpmpc.data.schema import Schema
from dpmpc.data.table import Floats, Ints
from dpmpc.estimators.errors import EstimatorError
from dpmpc.estimators.records import sorted_by_owner
from dpmpc.estimators.spending import Account, PrivacyWarning, ledger_of
from dpmpc.learning.learner import Learner
from dpmpc.learning.method import METHODS
from dpmpc.privacy.budget import Budget, reserved
from dpmpc.privacy.entry import Entry
from dpmpc.privacy.law import law_for
from dpmpc.privacy.ledger import Ledger
from dpmpc.runs.owners import budget_below, check_budget
from dpmpc.runs.planning import Facts, plan_of
from dpmpc.runs.request import Request

_LIKE_TRAIN = ("method", "lam", "iterations", "step", "radius", "average", "weights", "epsilon", "law", "sampler")
_AS_GIVEN = ("scale", "engine", "parties", "threshold", "data_id", "residual_clip")


@dataclass(frozen=True)
class Fitted:
    """What a fit gives: the model (d,), the promise, the releases, the aggregator's report."""

    theta: Floats
    guarantee: Promise
    ledger: tuple[Entry, ...]
    report: dict[str, Any]
    iterations: int


def share_account(estimator: Any) -> Account:
    """The account of an estimator, which its clones share."""
    if not hasattr(estimator, "_account"):
        estimator._account = Account()
    account: Account = estimator._account
    return account


def plan_for(estimator: Any, schema: Schema, sizes: tuple[int, ...]) -> Plan:
    """The plan of `train` with the estimator's parameters. Errors: what no run can keep."""
    given = {name: getattr(estimator, name) for name in (*_LIKE_TRAIN, *_AS_GIVEN) if hasattr(estimator, name)}
    if not METHODS[estimator.method].repeats:
        del given["iterations"]
    if estimator.backend is not None:
        given["backend"] = estimator.backend
    if not estimator.delta and given["law"] is None:
        given["law"] = law_for(estimator.delta)
    d = len(schema.feature_names)
    request = Request(
        data=estimator.data_id,
        task=schema.task,
        owner_sizes=sizes,
        delta=estimator.delta or None,
        evaluate=False,
        **given,
    )
    facts = Facts(estimator.data_id, schema.task, d, sizes, schema.bounds, schema.to_json(), classes=schema.classes)
    return plan_of(request, facts)


def fit_records(estimator: Any, schema: Schema, X: Floats, y: Floats, groups: Ints) -> Fitted:
    """Learns from the rows X (n, d) in the unit ball, targets y (n,), owners groups (n,).

    Errors: as `plan_of`; a budget that does not suffice; PeerError.
    """
    records, sizes = sorted_by_owner(X, y, groups)
    plan = plan_for(estimator, schema, sizes)
    if plan.bounds == "data":
        warnings.warn(
            "constants of preprocessing (ranges, categories, classes) are read off the records and not covered by the "
            "guarantee; state bounds= and classes= or target_bounds=, or a schema=",
            PrivacyWarning,
            stacklevel=3,
        )
    noise = plan.derived.mechanism.scale * plan.grid.step / plan.divisor
    learner = Learner(plan.learning, plan.releases, records, sizes, noise)
    account = share_account(estimator)
    with _folder(estimator, plan) as (out, budget):
        settings: dict[str, Any] = {"budget": budget} if plan.parties else {}
        try:
            with (
                Aggregator.of_plan(plan, out=out, **settings) as aggregator,
                _spending(plan, out, budget) as spend,
            ):
                for number in range(plan.releases):
                    spend(number)
                    learner.apply(aggregator.mean(learner.vectors(rows_of_block(plan.dimension))))
                promise, report = aggregator.guarantee, aggregator.report()
        finally:
            ledger = ledger_of(out)
            if ledger:
                account.add(ledger)
                account.warn(plan.data_id, plan.epsilon)
    return Fitted(learner.model, promise, ledger, report, learner.iteration)


@contextlib.contextmanager
def _folder(estimator: Any, plan: Plan) -> Iterator[tuple[Path, Budget | None]]:
    """Where the fit writes, a new folder below `ledgers` or one that is removed afterwards, and the budget that holds
    there."""
    if estimator.ledgers is None:
        if estimator.budget is not None:
            raise EstimatorError("a budget is held against ledgers; none are kept; add ledgers=FOLDER")
        with tempfile.TemporaryDirectory(prefix="dpmpc-") as folder:
            yield Path(folder), None
        return
    out = Path(estimator.ledgers).resolve() / plan.run_id
    budget = budget_below(estimator.budget, estimator.ledgers, out)
    if budget is not None:
        check_budget(plan, FIRST_ATTEMPT, budget, ledger_path(out, 0))
    out.mkdir(mode=0o700, parents=True)
    yield out, budget


@contextlib.contextmanager
def _spending(plan: Plan, out: Path, budget: Budget | None) -> Iterator[Any]:
    """What writes a release down before it is opened: the parties do; without parties, this process."""
    if plan.parties or not plan.derived.mechanism.scale:
        yield lambda number: None
        return
    with Ledger(ledger_path(out, 0)) as ledger, reserved(ledger, reservation_of(plan, FIRST_ATTEMPT), budget) as held:
        held.begin(entry_of(plan, FIRST_ATTEMPT, 0, token=secrets.token_hex(TOKEN_BYTES)))

        def spend(number: int) -> None:
            ledger.append(entry_of(plan, FIRST_ATTEMPT, number))

        yield spend
