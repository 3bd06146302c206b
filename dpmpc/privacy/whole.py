"""What all stages of a run will cost, reserved before the first begins by whoever runs them, until the last is over.

A run may have several stages (a survey, training, an evaluation), each with a ledger of its own that reserves when the
stage begins. Were that all, two runs beside each other could both look at a budget that has room for one, begin, and
one of them end in the middle with a survey spent for nothing. So the process that goes through the stages reserves them
all at once, under the same locks (`budget`), beside a ledger that never has a release. What it has reserved counts
until some ledger tells of that release of that run (`ledgers.merge`), and for as long as the process lives: so a stage
that begins asks for nothing twice, and what is left of a run that dies is free again.

In the account it is a ledger that was not to stay. Where the process died and the ledger is gone before anybody settled
it, everything that was reserved counts, and what stages have spent of it once.
"""

import contextlib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from dpmpc.errors import DpmpcError
from dpmpc.privacy.account import Account
from dpmpc.privacy.book import Book
from dpmpc.privacy.budget import Budget, alone_below
from dpmpc.privacy.composition import require_stages
from dpmpc.privacy.ledger import Ledger
from dpmpc.privacy.ledgers import WHOLE, Reservation, drop_reservation, merge, write_reservation
from dpmpc.processes.closing import Closing


def path_of(out: Path, who: str = "") -> Path:
    """Where the ledger is while the run goes on, in its folder. `who`: of several processes."""
    return out / f"{WHOLE}{who}.jsonl"


class WholeRun(Closing):
    """The reservation of all stages of a run; none until `keep`. `path`: of its ledger; `name`: whose it is."""

    def __init__(self, path: Path, name: str) -> None:
        self._path, self._name = path, name
        self._ledger: Ledger | None = None
        self._account: Account | None = None
        self._keys: dict[str, list[str]] = {}  # of what is reserved in the account, by data set

    def keep(self, reservations: Sequence[Reservation], budget: Budget | None, account: Account | None) -> None:
        """Reserves these, in place of what it had; in the account on disk when this returns. Errors: UsageError where
        they do not fit into the budget, with all that others have spent or reserved: nothing is changed then; the
        ledger is in use; the account cannot be written."""
        mine = tuple(replace(each, whole=True, by=self._name) for each in reservations if each.first < each.end)
        data = sorted({digest for each in reservations for digest in each.entry.data})
        if not mine and self._ledger is None:
            self._take_over(data, account)
            return
        account = None if account is None else replace(account, keeps=False)
        with alone_below(None if budget is None else budget.root), contextlib.ExitStack() as stack:
            files = {}
            if account is not None:
                files = {digest: stack.enter_context(account.writing(digest)) for digest in data}
            if budget is not None and mine:
                self._check(mine, replace(budget, account=account or budget.account))
            if self._ledger is None:
                self._ledger = Ledger(self._path, self._name)
            if account is not None and mine:
                self._ledger.identify(mine[0].entry)
            for digest, file in files.items():
                before = self._keys.get(digest, [])
                self._keys[digest] = [file.reserve(self._ledger, each) for each in mine]
                for key in before:
                    file.end(key, self._book())
            self._account = account
            write_reservation(self._path, *mine)

    def _take_over(self, data: Sequence[str], account: Account | None) -> None:
        """Settles what a process reserved that died when all of it was spent, and removes its ledger at the end."""
        if self._path.exists():
            if account is not None:
                for digest in data:
                    account.settle(digest)
            self._ledger = Ledger(self._path, self._name)

    def _check(self, mine: tuple[Reservation, ...], budget: Budget) -> None:
        books = [each for each in budget.books(mine[0].entry.data) if each.path is None or not self._is(each.path)]
        entries = tuple(entry for each in mine for entry in each.releases())
        after = merge([*books, Book((), 0, 0, 0, "", self._name, path=self._path, planned=entries)])
        require_stages(merge(books), after, mine[0].entry, budget.limit, sum(book.unknown for book in books))

    def _book(self) -> Book:
        """The ledger, also where the run's folder was deleted meanwhile: it has no release."""
        assert self._ledger is not None
        return Book((), 0, 0, 0, self._ledger.head)

    def _is(self, path: Path) -> bool:
        return path.resolve() == self._path.resolve()

    @property
    def held(self) -> bool:
        """Whether something was reserved."""
        return self._ledger is not None

    def close(self) -> None:
        """Gives back what is left, and removes the ledger: from now on the stages' ledgers alone count."""
        if self._ledger is None:
            return
        try:
            with contextlib.suppress(OSError, DpmpcError):  # stages' lines count all the same
                while self._account is not None and self._keys:
                    digest, keys = self._keys.popitem()
                    with self._account.writing(digest) as file:
                        for key in keys:
                            file.end(key, self._book())
        finally:
            drop_reservation(self._path)
            self._path.unlink(missing_ok=True)
            self._ledger.close()
            self._ledger = None
