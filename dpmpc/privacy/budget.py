"""A budget that binds: reserved before a run's first release, held at every line, given back when the run ends.

All ledgers below one folder (`root`) count, and what an account remembers of ledgers elsewhere (`account`). A party
that is given a budget looks at them under a lock on both, adds what living writers have reserved and what it is about
to release itself, and either writes its own reservation before it lets the lock go or is refused. So two runs at the
same time cannot both take what is left. Then every ledger line is held against the limit again, with all lines that
anybody has written by then: one that does not fit is not written, and its release not opened.

Runs that are given no budget reserve too, so that those that are see them coming; they themselves are not stopped.
"""

import contextlib
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path

from dpmpc.errors import DpmpcError, UsageError
from dpmpc.folders import said_path
from dpmpc.lazy import dataclass
from dpmpc.privacy.account import Account
from dpmpc.privacy.book import Book, LedgerError, Reader
from dpmpc.privacy.composition import Prices, require_budget, within
from dpmpc.privacy.entry import Entry
from dpmpc.privacy.ledger import Ledger
from dpmpc.privacy.ledgers import (
    ReleaseTally,
    Reservation,
    drop_reservation,
    ledgers_below,
    merge,
    read_ledgers,
    write_reservation,
)
from dpmpc.privacy.seen import ledgers_of
from dpmpc.processes.locks import alone_at, is_held

_LOCK = "ledgers.lock"
_LOOKS = 20  # at ledgers of which half of a line is seen that its writer is about to complete
_PAUSE = 0.005  # seconds between two of them


@dataclass(frozen=True)
class Budget:
    """(epsilon, delta) for all releases on a data set that the ledgers below `root` know of, and those that `account`
    remembers: of two folders, of one, at least."""

    epsilon: float
    delta: float
    root: Path | None = None
    account: Account | None = None

    @staticmethod
    def below(
        limit: tuple[float, float], ledgers: Path | str | None, out: Path, account: Account | None = None
    ) -> "Budget":
        """The budget over the ledgers below `ledgers`, by default below the folder that the run's directory `out` is
        in. Errors: UsageError where the run's own ledgers would not be among them."""
        root = out.resolve().parent if ledgers is None else said_path(ledgers, "ledgers").resolve()
        if not out.resolve().is_relative_to(root):
            raise UsageError(
                f"a run's own ledgers must count for the runs after it; {out} is not below {root}; put <<out>> below "
                "<<ledgers>>",
                code="together",
            )
        return Budget(*limit, root, account)

    @property
    def limit(self) -> tuple[float, float]:
        """(epsilon, delta)."""
        return self.epsilon, self.delta

    @property
    def where(self) -> Path:
        """The folder to look at."""
        if self.root is not None:
            return self.root
        assert self.account is not None
        return self.account.folder

    def paths(self, data: Iterable[str]) -> tuple[list[Path], list[Book]]:
        """(every ledger that counts, what counts of those that are not there). Errors: as `Account.known`."""
        paths, gone = ledgers_of(self.root, self.account, data)
        return paths, [each.book for each in gone]

    def books(self, data: Iterable[str]) -> list[Book]:
        """Everything that counts, with what living writers have reserved."""
        paths, gone = self.paths(data)
        return [*read_ledgers(Path(), files=paths), *gone]


@contextlib.contextmanager
def alone_below(root: Path | None) -> Iterator[None]:
    """Waits until no other process reserves below `root`, and keeps others waiting."""
    if root is None:
        yield
        return
    with contextlib.ExitStack() as stack:
        try:
            stack.enter_context(alone_at(root / _LOCK))
        except OSError as error:
            raise UsageError(
                f"a budget needs a folder of ledgers that can be written; {root}: {error.strerror}; mend <<ledgers>>",
                code="budget",
            ) from None
        yield


def check_fits(budget: Budget, reservation: Reservation, books: list[Book], ledger: Path) -> None:
    """Returns if what is to be written in `ledger` fits into the budget with all that `books` hold. Errors: UsageError.

    What another party of the same run has reserved already is not asked for twice.
    """
    none = Book((), 0, 0, 0, "", reservation.by or ledger.name, path=ledger)
    mine = replace(next((book for book in books if book.path == ledger), none), reserved=())
    others = [book for book in books if book.path != ledger]
    coming = replace(mine, reserved=replace(reservation, since=len(mine.entries)).missing(mine))
    before, after = merge([*others, mine]), merge([*others, coming])
    more = max(0, len(after) - len(before))
    require_budget(before, reservation.entry, more, budget.limit, sum(book.unknown for book in books))


class Held:
    """What a ledger's writer has reserved, before its attempt begins and after: beside the ledger and in an account."""

    def __init__(
        self, ledger: Ledger, reservation: Reservation, budget: Budget | None, account: Account | None = None
    ) -> None:
        self._ledger, self._budget, self._account = ledger, budget, account
        self._keys: dict[str, str] = {}  # of what is reserved in the account, by data set
        lines = Ledger.read(ledger.path).entries
        self._lines = {line.release for line in lines if line.run == reservation.entry.run}
        if self._lines and max(self._lines) >= reservation.first:
            raise UsageError(
                f"a run spends each release once; {ledger.path} has release {max(self._lines)} of run "
                f"{reservation.entry.run}, this attempt would begin with {reservation.first}; begin a new one, with "
                "another <<run_id>>",
                code="budget",
            )
        self._reservation = replace(reservation, since=len(lines), by=ledger.name)
        self._watch: Callable[[Entry], None] = lambda entry: None
        ledger.guard = self._line
        self._path = ledger.path if budget is None else _below(ledger.path, budget.root)

    def keep(self) -> None:
        """Write it down. Errors: UsageError where it does not fit into the budget, or the account cannot be written."""
        entry = self._reservation.entry
        if self._account is not None and self._budget is None and set(entry.data) - self._keys.keys():
            self._account.check()
            self._ledger.identify(entry)  # which waits for a disk, and here nobody waits for that
        with alone_below(None if self._budget is None else self._budget.root), contextlib.ExitStack() as stack:
            files = {}
            if self._account is not None:  # for this process alone: what is reserved there, and what is held against it
                due = {data for data in entry.data if self._budget is not None or data not in self._keys}
                files = {data: stack.enter_context(self._account.writing(data)) for data in sorted(due)}
            if self._budget is not None:
                check_fits(self._budget, self._reservation, self._budget.books(entry.data), self._path)
            if files:
                self._ledger.identify(entry)
            for data, file in files.items():
                if data not in self._keys:
                    self._keys[data] = file.reserve(self._ledger, self._reservation)
            write_reservation(self._ledger.path, self._reservation)
        if self._budget is not None:
            self._watch = Watch(self._budget, entry, self._ledger.name, self._path).check

    def check(self, entry: Entry) -> None:
        """Errors: UsageError for a line beyond the budget, and for a second one of a release."""
        if entry.run == self._reservation.entry.run and entry.release in self._lines:
            raise UsageError(
                f"a run spends each release once; {entry.release} has a line; begin a new run", code="budget"
            )
        self._watch(entry)

    def _line(self, entry: Entry) -> None:
        self.check(entry)
        self._lines.add(entry.release)

    def begin(self, entry: Entry) -> None:
        """The attempt has begun, with the release of `entry`: what is reserved is of it, and told from what other
        attempts at the same plan have spent or reserved. Errors: UsageError where it does not fit now."""
        self._ledger.begin(entry)  # first, for it tells what others made meanwhile
        self._reservation = replace(self._reservation, entry=entry, first=entry.release)
        if entry.release < self._reservation.end:
            self.keep()

    def end(self) -> None:
        """The attempt is over: the account gets the ledger's head, once. Where that fails the ledger's own lines still
        count."""
        if self._account is None or not self._keys:
            return
        with contextlib.suppress(OSError, DpmpcError):
            book = Ledger.read(self._ledger.path)
            while self._keys:
                data, key = self._keys.popitem()
                with self._account.writing(data) as file:
                    file.end(key, book)


@contextlib.contextmanager
def reserved(
    ledger: Ledger, reservation: Reservation, budget: Budget | None, account: Account | None = None
) -> Iterator[Held]:
    """Keeps what is reserved until this is left, also in the account, which remembers what came of it. With a budget:
    it fits, and every line that the ledger is given is held against the limit. Errors: UsageError where the ledger has
    a line of one of these releases, it does not fit, the ledger is not below the budget's folder, or the account cannot
    be written."""
    drop_reservation(ledger.path)  # of a process that was killed
    try:
        held = Held(ledger, reservation, budget, account)
        if reservation.first < reservation.end:
            held.keep()
        try:
            yield held
        finally:
            held.end()
    finally:
        drop_reservation(ledger.path)


def _below(ledger: Path, root: Path | None) -> Path:
    """The ledger's path as a search of `root` finds it, or as an account has it."""
    if root is None:
        return ledger.resolve()
    found = next((path for path in ledgers_below(root) if path.samefile(ledger)), None)
    if found is None:
        raise UsageError(
            f"a run's own ledgers must count for the runs after it; {ledger} is not below {root}; put <<out>> below "
            "<<ledgers>>",
            code="budget",
        )
    return found


class Watch:
    """All lines below a budget's folder, followed as they are written. Cost: a walk through the folder a line."""

    def __init__(self, budget: Budget, entry: Entry, name: str, path: Path) -> None:
        """`entry`: a line of the run that is held; `name`, `path`: of its ledger."""
        self._path = path
        self._budget, self._name, self._planned = budget, name, entry
        self._data, self._neighbours = set(entry.data), entry.neighbours
        self._begin()

    def _begin(self) -> None:
        self._readers: dict[Path, tuple[Reader, tuple[int, int, int]]] = {}
        self._replaced: list[Reader] = []  # of files that are there no more, or as they were
        self._gone: list[Book] = []  # of ledgers that are not there, what the account remembers
        self._taken: dict[Path, int] = {}  # entries of a reader that are counted
        self._seen: set[tuple[str, str]] = set()
        self._tally = ReleaseTally()
        self._prices = Prices(self._neighbours)

    def check(self, entry: Entry) -> None:
        """Returns if the limit holds with this line. Errors: UsageError if not; LedgerError for a changed ledger."""
        for look in range(_LOOKS):
            ends, unpriced, unfinished = self._follow(last=look + 1 == _LOOKS)
            if unfinished and look + 1 < _LOOKS:
                time.sleep(_PAUSE)
                continue
            if within(self._total(entry, ends, unpriced), self._budget.limit):
                return
            break
        epsilon, delta = self._budget.limit
        raise UsageError(
            f"every release must fit into the budget of epsilon {epsilon:g}, delta {delta:g}; release {entry.release} "
            f"does not, for others have spent on the same data since this run began; see dpmpc budget "
            f"{self._budget.where}",
            code="budget",
        )

    def _total(self, entry: Entry, ends: list[tuple[str, str, Entry]], unpriced: int) -> Prices:
        """What is spent with this line, and with what follows the last newlines."""
        readers = [reader for reader, _ in self._readers.values()]
        if self._gone or any(reader.gaps or reader.open for reader in (*readers, *self._replaced)):
            prices = self._anew([*readers, *self._replaced], entry)
        else:
            prices = self._prices.copy()
            mine = self._readers.get(self._path)
            source = str(self._path) if mine is None else mine[0].source
            for line in self._tally.more([*ends, (source, self._name, entry)]):
                prices.add(line)
        return prices.add(self._planned, unpriced)

    def _anew(self, readers: list[Reader], entry: Entry) -> Prices:
        """The prices of all that these ledgers have or know of, and of this line."""
        books = [reader.book() for reader in readers]
        k = next((k for k, book in enumerate(books) if book.path == self._path), None)
        if k is None:
            books.append(Book((entry,), 0, 0, 1, "", self._name, path=self._path))
        else:  # the line belongs to this attempt, which is not one that goes on without this process
            still = tuple(span for span in books[k].open if span.entry.run != entry.run)
            lines, keys = (*books[k].entries, entry), (*books[k].keys, "to come")
            books[k] = replace(books[k], entries=lines, keys=keys, open=still)
        mine = (line for line in merge([*books, *self._gone]) if self._data & set(line.data))
        return Prices(self._neighbours, mine)

    def _follow(self, last: bool) -> tuple[list[tuple[str, str, Entry]], int, bool]:
        """Takes in what was written since. (what follows the last newlines, how much of it has no price, whether a
        living writer is in the middle of a line). `last`: half of a write is an error now."""
        ends: list[tuple[str, str, Entry]] = []
        unpriced, unfinished = 0, False
        paths, self._gone = self._budget.paths(self._data)
        for path in paths:
            try:
                status = path.stat()
            except FileNotFoundError:
                continue
            stamp = (status.st_ino, status.st_size, status.st_mtime_ns)
            reader, before = self._readers.get(path, (None, (stamp[0], 0, 0)))
            if reader is None or before != stamp:
                if reader is not None and (before[0] != stamp[0] or stamp[1] < before[1]):
                    self._replaced.append(reader)  # what was in it stays spent
                    reader = None
                reader = self._read(path, reader, last)
                if reader is None:
                    unfinished = True
                    continue
                self._readers[path] = (reader, stamp)
            if reader.tail:
                unfinished = unfinished or (path != self._path and is_held(path))
                whole = reader.whole()
                fresh = whole.entries[len(reader.entries) :]
                ends += [(whole.source, whole.name, line) for _, line in fresh if self._data & set(line.data)]
                unpriced += len(whole.unpriced)
            else:
                unpriced += len(reader.unpriced)
        return ends, unpriced, unfinished

    def _read(self, path: Path, reader: Reader | None, last: bool) -> Reader | None:
        """The reader with the new lines counted; None where half of a write is seen."""
        if reader is None:
            reader = Reader(path)
            self._taken[path] = 0
        content = b""
        with contextlib.suppress(FileNotFoundError), path.open("rb") as file:
            file.seek(reader.offset)
            content = file.read()
        try:
            reader.feed(content)
        except LedgerError:
            if last or not is_held(path):
                raise
            self._begin()  # read everything again
            return None
        for key, entry in reader.entries[self._taken[path] :]:
            self._count(reader, key, entry)
        self._taken[path] = len(reader.entries)
        return reader

    def _count(self, reader: Reader, key: str, entry: Entry) -> None:
        if not self._data & set(entry.data):
            return
        if reader.identity is not None:
            if (reader.identity, key) in self._seen:
                return
            self._seen.add((reader.identity, key))
        if self._tally.add(reader.source, reader.name, entry):
            self._prices.add(entry)
