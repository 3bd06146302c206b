"""What a run still has to release, reserved from before its first stage until it is over: one rule for all runs.

The releases of all stages that are to come are reserved together, in place of what was reserved before, as soon as
their plans are known; so two runs beside each other cannot both begin where the budget has room for one
(`privacy.whole`). A run of one stage needs none of that: what its ledgers reserve when it begins binds.
"""

import contextlib
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from dpmpc.aggregation.owner.accounts import Books
from dpmpc.aggregation.plan.asked import Attempt
from dpmpc.aggregation.plan.plan import Plan
from dpmpc.aggregation.plan.spending import reservation_of, stages_of
from dpmpc.aggregation.wire.paths import ledger_path
from dpmpc.folders import passing_folder
from dpmpc.privacy.book import Book
from dpmpc.privacy.budget import Budget, check_fits
from dpmpc.privacy.composition import parse_budget
from dpmpc.privacy.entry import Entry
from dpmpc.privacy.whole import WholeRun, path_of
from dpmpc.processes.closing import Closing

Spent = Callable[[Plan], int]


def nothing(plan: Plan) -> int:
    """That no release of a plan is spent."""
    return 0


def budget_below(text: str | None, ledgers: Path | str | None, out: Path) -> Budget | None:
    """The budget written "EPS,DELTA", as `Budget.below` has it."""
    return None if text is None else Budget.below(parse_budget(text), ledgers, out)


def budget_alone(text: str | None) -> Budget | None:
    """The budget written "EPS,DELTA", over the account's ledgers alone."""
    return None if text is None else Budget(*parse_budget(text))


class Reserve(Closing):
    """The reservation of a run, given back when this is closed. `out`: the run's folder; None: it has none that stays.
    `who`: of several processes that write there."""

    def __init__(self, books: Books, out: Path | None, who: str = "") -> None:
        self._books, self._out, self._who = books, out, who
        self._whole: WholeRun | None = None  # what holds all stages, from when there are several
        self._stack = contextlib.ExitStack()

    def keep(self, plan: Plan, before: Sequence[Plan] = (), after: Sequence[Plan] = (), spent: Spent = nothing) -> None:
        """Reserves the releases of a plan and of the stages before and after it, less those that are `spent`. Errors:
        UsageError where they do not fit into the budget with what others spent or reserved; nothing changes then."""
        limit = self._books.limit(plan)
        if before or after or self._whole is not None:
            self._held().keep(stages_of([*before, plan, *after], spent), limit, self._books.account(plan))
        elif limit is not None:
            ledger = ledger_path(self._out or Path(tempfile.gettempdir()), 0)
            check_budget(plan, Attempt(0, min(spent(plan), plan.releases)), limit, ledger)

    def _held(self) -> WholeRun:
        if self._whole is None:
            out = self._out or self._stack.enter_context(passing_folder())
            self._whole = self._stack.enter_context(WholeRun(path_of(out, self._who), f"stages{self._who}"))
        return self._whole

    def close(self) -> None:
        self._stack.close()


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
