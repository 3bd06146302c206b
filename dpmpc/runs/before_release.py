"""What an owners' process has before its first release: budget, forecast, ledger, and its way to the parties."""

import contextlib
from collections.abc import Callable
from functools import partial
from pathlib import Path

from dpmpc.aggregation.owner.accounts import Books, account_of
from dpmpc.aggregation.owner.aggregator import Aggregator
from dpmpc.aggregation.owner.company import Started
from dpmpc.aggregation.owner.local_parties import PartiesHere
from dpmpc.aggregation.owner.own_ledger import OwnLedger
from dpmpc.aggregation.party.beside_owner import PartyHere
from dpmpc.aggregation.plan.asked import Attempt
from dpmpc.aggregation.plan.plan import Plan
from dpmpc.aggregation.plan.spending import reservation_of
from dpmpc.mpc.contract.backend import BACKENDS, DEFAULT, FOR_MANY
from dpmpc.noise.forecast import Forecast, forecast, refuse_hopeless
from dpmpc.noise.pool import fills
from dpmpc.privacy.book import Book
from dpmpc.privacy.budget import Budget, check_fits
from dpmpc.privacy.composition import parse_budget
from dpmpc.privacy.entry import Entry
from dpmpc.processes.worker import Log
from dpmpc.runs.job import OWN_LEDGER, OwnersJob

Emit = Callable[..., None]


def budget_of(job: OwnersJob) -> Budget | None:
    """The budget that was asked for, over the ledgers below the folder of the run's directory unless another is
    named."""
    return budget_below(job.request.budget, job.request.ledgers, job.out)


def budget_below(text: str | None, ledgers: Path | str | None, out: Path) -> Budget | None:
    """The budget written "EPS,DELTA", as `Budget.below` has it."""
    return None if text is None else Budget.below(parse_budget(text), ledgers, out)


def check_budget(plan: Plan, attempt: Attempt, budget: Budget, ledger: Path, coming: tuple[Entry, ...] = ()) -> None:
    """Returns if the releases that the attempt still has fit into `budget` now, with all that was spent or is reserved
    on the same data, and with what is `coming` before it. What binds is each party's own reservation; this one names
    the cause before anything starts. Errors: they do not; a ledger that was changed."""
    reservation = reservation_of(plan, attempt)
    if reservation.first < reservation.end:
        books = budget.books(reservation.entry.data)
        if coming:
            books = [*books, Book(coming, 0, 0, len(coming), "", "to come")]
        check_fits(budget, reservation, books, ledger.resolve())


def forecast_of(plan: Plan, releases: int, *, here: bool) -> Forecast | None:
    """What the noise made ahead for so many releases will take; None where none is. `here`: all parties are on this
    machine."""
    if not (plan.parties and plan.pool and plan.derived.mechanism.scale and releases):
        return None
    backend = BACKENDS[plan.backend]
    return forecast(backend, plan.derived.sampler, releases, plan.dimension, plan.parties, plan.threshold, here=here)


def check_possible(plan: Plan, releases: int) -> None:
    """Errors: the noise of so many releases does not fit into the memory of this machine, where all parties are."""
    if plan.parties and plan.derived.mechanism.scale and releases:
        sizes = [plan.dimension] if not plan.pool else [k * plan.dimension for k in fills(releases, plan.dimension)]
        many = f"<<backend={FOR_MANY}>>, " if plan.backend == DEFAULT and 5 < plan.parties <= 32 else ""
        at = plan.derived.sampler, sizes, plan.parties, plan.threshold
        refuse_hopeless(
            BACKENDS[plan.backend],
            *at,
            here=True,
            way_out=f"use {many}a smaller <<parties>> or <<threshold>>, or <<pool=False>>",
        )


def says(log: Log, emit: Emit) -> Log:
    def say(text: str) -> None:
        log(text)
        emit("stage", text=text)

    return say


def connected(
    job: OwnersJob,
    plan: Plan,
    attempt: Attempt,
    parties: PartiesHere | None,
    stack: contextlib.ExitStack,
    log: Log,
    emit: Emit,
    ledger: OwnLedger | None,
    wait: list[Callable[[], object]],
) -> Aggregator:
    """What opens the releases of a plan with the owners of `job`, until the end of `stack`. `ledger`: this
    process's own; `wait` gets what waits for the end of a party of this process."""
    here: Started | None = parties
    if job.party is not None:
        here = PartyHere(job.party, log, emit)
        stack.callback(here.end)
    aggregator = Aggregator.of_plan(
        plan,
        job.here,
        parties=here,
        addresses=job.addresses,
        owners=None if job.owner is None else (job.owner, job.owner + 1),
        attempt=attempt,
        say=says(log, emit),
        ledger=ledger,
        books=books_of(job),
    )
    stack.enter_context(aggregator)
    if here is not None:
        wait.append(here.wait)
    emit("connections", of=lambda: list(map(plan.called, aggregator.session.connected)))
    return aggregator


def books_of(job: OwnersJob) -> Books:
    """Where the releases of the job's parties count."""
    return Books(
        budget_of(job), partial(account_of, said=job.request.account, callers=job.request.source is not None)
    )


def own_ledger(job: OwnersJob, plan: Plan, attempt: Attempt, stack: contextlib.ExitStack) -> OwnLedger | None:
    """The ledger of this owner, where parties are elsewhere: theirs are not at hand. A party of this process keeps its
    own, and there is none of the owner's."""
    if job.addresses is None or job.party is not None:
        return None
    who = "" if job.owner is None else f"owner {job.owner}"
    account = account_of(plan, job.request.account, callers=job.request.source is not None)
    return stack.enter_context(OwnLedger(job.out / OWN_LEDGER, plan, attempt, job.budget, account, who))
