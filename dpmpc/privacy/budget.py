"""A budget that binds: reserved before a run's first release, held at every line, given back when the run ends.

All ledgers below one folder (`root`) count. A party that is given a budget looks at them under a lock on that folder,
adds what living writers have reserved and what it is about to release itself, and either writes its own reservation
before it lets the lock go or is refused. So two runs at the same time cannot both take what is left. Then every ledger
line is held against the limit again, with all lines that anybody has written by then: one that does not fit is not
written, and its release not opened.

Runs that are given no budget reserve too, so that those that are see them coming; they themselves are not stopped.
"""

import contextlib
import fcntl
import os
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from dpmpc.errors import UsageError
from dpmpc.privacy.composition import mechanism_for, require_budget, spending_of, within
from dpmpc.privacy.ledger import Book, Entry, Ledger, LedgerError, Reader, after
from dpmpc.privacy.ledgers import (
    Reservation,
    drop_reservation,
    ledgers_below,
    merge,
    read_ledgers,
    write_reservation,
)
from dpmpc.privacy.mechanism import Mechanism
from dpmpc.privacy.spending import NOTHING_HIDDEN, Spending
from dpmpc.processes.locks import is_held

_LOCK = "ledgers.lock"
_LOOKS = 20  # at ledgers of which half of a line is seen that its writer is about to complete
_PAUSE = 0.005  # seconds between two of them


@dataclass(frozen=True)
class Budget:
    """(epsilon, delta) for all releases on a data set that the ledgers below `root` know of."""

    epsilon: float
    delta: float
    root: Path

    @staticmethod
    def below(limit: tuple[float, float], ledgers: Path | str | None, out: Path) -> "Budget":
        """The budget over the ledgers below `ledgers`, by default below the folder that the run's directory `out` is
        in. Errors: UsageError where the run's own ledgers would not be among them."""
        root = out.resolve().parent if ledgers is None else Path(ledgers).resolve()
        if not out.resolve().is_relative_to(root):
            raise UsageError(
                f"a run's own ledgers must count for the runs after it; {out} is not below {root}; put --out below "
                "--ledgers"
            )
        return Budget(*limit, root)

    @property
    def limit(self) -> tuple[float, float]:
        """(epsilon, delta)."""
        return self.epsilon, self.delta

    def to_json(self) -> list[Any]:
        """The same as a JSON value."""
        return [self.epsilon, self.delta, str(self.root)]

    @staticmethod
    def from_json(value: list[Any]) -> "Budget":
        """The budget that `to_json` wrote."""
        return Budget(float(value[0]), float(value[1]), Path(value[2]))


@contextlib.contextmanager
def alone_below(root: Path) -> Iterator[None]:
    """Waits until no other process reserves below `root`, and keeps others waiting."""
    try:
        descriptor = os.open(root / _LOCK, os.O_RDWR | os.O_CREAT, 0o600)
    except OSError as error:
        raise UsageError(
            f"a budget needs a folder of ledgers that can be written; {root}: {error.strerror}; mend --ledgers"
        ) from None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def check_fits(budget: Budget, reservation: Reservation, books: list[Book], ledger: Path) -> None:
    """Returns if what is to be written in `ledger` fits into the budget with all that `books` hold. Errors: UsageError.

    What another party of the same run has reserved already is not asked for twice.
    """
    mine = next((book for book in books if book.path == ledger), Book((), 0, 0, 0, "", ledger.name))
    after = [book for book in books if book.path != ledger]
    after.append(replace(mine, reserved=replace(reservation, since=len(mine.entries)).missing(mine)))
    spent, entry = merge(books), reservation.entry
    require_budget(
        spent,
        entry.data,
        entry.mechanism,
        max(0, len(merge(after)) - len(spent)),
        budget.limit,
        sum(book.unknown for book in books),
        entry.neighbours,
        entry.names,
    )


@contextlib.contextmanager
def reserved(ledger: Ledger, reservation: Reservation, budget: Budget | None) -> Iterator[None]:
    """Keeps what is reserved until this is left. With a budget: it fits, and every line that the ledger is given is
    held against the limit. Errors: UsageError where it does not fit, or the ledger is not below the budget's folder."""
    if reservation.first >= reservation.end:
        yield
        return
    drop_reservation(ledger.path)  # of a process that was killed
    reservation = replace(reservation, since=len(Ledger.read(ledger.path).entries))
    try:
        if budget is None:
            write_reservation(ledger.path, reservation)
        else:
            path = _below(ledger.path, budget.root)
            with alone_below(budget.root):
                check_fits(budget, reservation, read_ledgers(budget.root), path)
                write_reservation(ledger.path, reservation)
            ledger.guard = Watch(budget, reservation.entry, ledger.name, path).check
        yield
    finally:
        drop_reservation(ledger.path)


def _below(ledger: Path, root: Path) -> Path:
    """The ledger's path as a search of `root` finds it."""
    found = next((path for path in ledgers_below(root) if path.samefile(ledger)), None)
    if found is None:
        raise UsageError(
            f"a run's own ledgers must count for the runs after it; {ledger} is not below {root}; put --out below "
            "--ledgers"
        )
    return found


class Watch:
    """All lines below a budget's folder, followed as they are written. Cost: a walk through the folder a line."""

    def __init__(self, budget: Budget, entry: Entry, name: str, path: Path) -> None:
        """`entry`: a line of the run that is held; `name`, `path`: of its ledger."""
        self._path = path
        self._budget, self._name, self._planned = budget, name, entry.mechanism
        self._data, self._neighbours = set(entry.data), entry.neighbours
        self._begin()

    def _begin(self) -> None:
        self._readers: dict[Path, tuple[Reader, tuple[int, int, int]]] = {}
        self._seen: set[tuple[str, str]] = set()
        self._written: dict[str, Counter[Entry]] = {}
        self._most: Counter[Entry] = Counter()  # over names
        self._prices: Counter[Mechanism | None] = Counter()

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
            f"{self._budget.root}"
        )

    def _total(self, entry: Entry, ends: list[tuple[str, Entry]], unpriced: int) -> Spending:
        """What is spent with this line, and with what follows the last newlines."""
        prices = self._prices.copy()
        prices[self._planned] += unpriced
        more: Counter[tuple[str, Entry]] = Counter()
        most: Counter[Entry] = Counter()
        for name, line in [*ends, (self._name, entry)]:
            more[name, line] += 1
            if self._written.get(name, Counter())[line] + more[name, line] > self._most[line] + most[line]:
                most[line] += 1
                prices[mechanism_for(line, self._neighbours)] += 1
        return sum((NOTHING_HIDDEN if m is None else spending_of(m, k) for m, k in prices.items()), start=Spending())

    def _follow(self, last: bool) -> tuple[list[tuple[str, Entry]], int, bool]:
        """Takes in what was written since. (what follows the last newlines, how much of it has no price, whether a
        living writer is in the middle of a line). `last`: half of a write is an error now."""
        ends: list[tuple[str, Entry]] = []
        unpriced, unfinished = 0, False
        for path in ledgers_below(self._budget.root):
            try:
                status = path.stat()
            except FileNotFoundError:
                continue
            stamp = (status.st_ino, status.st_size, status.st_mtime_ns)
            reader, before = self._readers.get(path, (None, (stamp[0], 0, 0)))
            if reader is None or before != stamp:
                if before[0] != stamp[0] or stamp[1] < before[1]:  # replaced: what was in it stays spent
                    reader = None
                reader = self._read(path, reader, last)
                if reader is None:
                    unfinished = True
                    continue
                self._readers[path] = (reader, stamp)
            if reader.tail:
                unfinished = unfinished or (path != self._path and is_held(path))
                entries = reader.book().entries
                if not entries:
                    unpriced += 1
                elif self._data & set(entries[-1].data):
                    ends.append((reader.name, entries[-1]))
        return ends, unpriced, unfinished

    def _read(self, path: Path, reader: Reader | None, last: bool) -> Reader | None:
        """The reader with the new lines counted; None where half of a write is seen."""
        fresh = Reader(path) if reader is None else reader
        first = len(fresh.lines)
        with path.open("rb") as file:
            file.seek(fresh.offset)
            content = file.read()
        try:
            fresh.feed(content)
        except LedgerError:
            if last or not is_held(path):
                raise
            self._begin()  # read everything again
            return None
        previous = next((entry for _, entry in reversed(fresh.lines[:first]) if entry is not None), None)
        if previous is None:
            first = 0  # torn lines at the beginning were not priced yet
            previous = next((entry for _, entry in fresh.lines if entry is not None), None)
        for number, (key, entry) in enumerate(fresh.lines[first:], first):
            if entry is not None:
                previous = entry
            elif previous is not None and number:
                previous = after(previous)
            if previous is not None:
                self._count(fresh, key, previous)
        return fresh

    def _count(self, reader: Reader, key: str, entry: Entry) -> None:
        if not self._data & set(entry.data):
            return
        if reader.identity is not None:
            if (reader.identity, key) in self._seen:
                return
            self._seen.add((reader.identity, key))
        mine = self._written.setdefault(reader.name, Counter())
        mine[entry] += 1
        if mine[entry] > self._most[entry]:
            self._most[entry] += 1
            self._prices[mechanism_for(entry, self._neighbours)] += 1
