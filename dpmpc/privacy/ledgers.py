"""Many ledgers together: every release counted once, copies of ledgers found, and what live writers have reserved.

A reservation is a small file beside a ledger: the releases that the ledger's writer is about to make. It counts for as
long as that writer holds the lock on its ledger, which the kernel gives back when the process ends in whatever way;
from then on the ledger's lines alone count, and they were on disk before anything was opened. So a reservation is
never lost while its releases can still come, and never outlives its process.
"""

import json
import os
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from dpmpc.errors import UsageError
from dpmpc.privacy.ledger import Book, Entry, Ledger, LedgerError, sync_directory
from dpmpc.privacy.mechanism import Mechanism
from dpmpc.processes.locks import is_held


@dataclass(frozen=True)
class Reservation:
    """The releases first .. end - 1 of one attempt of a run, each as `entry` has it but for its number.

    `since`: how many entries the ledger had when they were reserved: what was spent before is not what was reserved,
    though a plan that is run twice makes the same lines.
    """

    entry: Entry
    first: int
    end: int
    since: int = 0

    def releases(self) -> Iterator[Entry]:
        """A line for each."""
        return (replace(self.entry, release=number) for number in range(self.first, self.end))

    def missing(self, book: Book) -> tuple[Entry, ...]:
        """Those that the ledger has no line of yet."""
        there = {line.release for line in book.entries[self.since :] if line.run == self.entry.run}
        return tuple(entry for entry in self.releases() if entry.release not in there)


def ledgers_below(root: Path) -> list[Path]:
    """Every ledger*.jsonl in `root` and below, sorted; `root` itself if it is a file."""
    if not root.is_dir():
        return [root] if root.exists() else []
    found = []
    for folder, _, files in os.walk(root):
        found += [Path(folder, name) for name in files if name.startswith("ledger") and name.endswith(".jsonl")]
    return sorted(found)


def reservation_path(ledger: Path) -> Path:
    """Where the writer of a ledger keeps what it has reserved."""
    return ledger.with_name(ledger.stem + ".reserved.json")


def write_reservation(ledger: Path, reservation: Reservation) -> None:
    """On disk, whole or not at all, when this returns."""
    path = reservation_path(ledger)
    partial = path.with_suffix(".tmp")
    with open(os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as file:
        json.dump(asdict(reservation), file, allow_nan=False)
        file.flush()
        os.fsync(file.fileno())
    partial.replace(path)
    sync_directory(path.parent)


def drop_reservation(ledger: Path) -> None:
    """Gives back what is not used; for the ledger's writer, before it closes the ledger."""
    reservation_path(ledger).unlink(missing_ok=True)


def read_reservation(ledger: Path) -> Reservation | None:
    """What is written beside a ledger, whether or not its writer lives. Errors: UsageError for a file that is none."""
    path = reservation_path(ledger)
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
        entry = value["entry"]
        mechanism = Mechanism(**entry.pop("mechanism"))
        data, names = tuple(entry.pop("data")), tuple(entry.pop("names"))
        return Reservation(
            Entry(mechanism=mechanism, data=data, names=names, **entry),
            *(value[name] for name in ("first", "end", "since")),
        )
    except FileNotFoundError:
        return None
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise UsageError(
            f"a reservation is what a party wrote beside its ledger; {path}: {error}; end its run and remove the file"
        ) from None


def read_ledgers(root: Path, *, files: Iterable[Path] | None = None) -> list[Book]:
    """Every ledger below `root` (or in `files`), with what live writers have reserved. Errors: as `Ledger.read`."""
    return [read_ledger(path) for path in (ledgers_below(root) if files is None else files)]


def read_ledger(path: Path) -> Book:
    """A ledger, with what its writer has reserved if it lives. Errors: as `Ledger.read`.

    Liveness is asked first: whatever a writer did that has ended by then is among the lines that are read afterwards.
    """
    live = is_held(path)
    for _ in range(20 if live else 0):  # half of a write may be seen; it is whole a moment later
        with suppress(LedgerError):
            book = Ledger.read(path)
            if not book.torn_end:
                break
        time.sleep(0.005)
    else:
        book = Ledger.read(path)
    reservation = read_reservation(path) if live else None
    return book if reservation is None else replace(book, reserved=reservation.missing(book))


def merge(books: Iterable[Book]) -> tuple[Entry, ...]:
    """The releases in several parties' ledgers, those that live writers have reserved included; the copies of one
    release counted once.

    Guarantees: never fewer than any party wrote down. Copies of a release are equal entries in ledgers of different
    names (`ledger_0.jsonl`, `ledger_1.jsonl`: different parties); and the same line of ledgers that begin with the same
    digest: copies of one file. What one party wrote twice, in one ledger (a repeated iteration) or in two (a plan that
    was run twice), and what parties describe differently, counts each time.
    """
    written: dict[str, Counter[Entry]] = {}
    seen: set[tuple[str, str]] = set()
    for book in books:
        mine = written.setdefault(book.name, Counter())
        mine.update(book.reserved)
        if book.identity is None:
            mine.update(book.entries)
            continue
        for key, entry in zip(book.keys, book.entries, strict=True):
            if (book.identity, key) not in seen:
                seen.add((book.identity, key))
                mine[entry] += 1
    total: Counter[Entry] = Counter()
    for entries in written.values():
        total |= entries
    return tuple(total.elements())


def copies(books: Iterable[Book]) -> list[list[str]]:
    """The paths of ledgers that are copies of one, group by group."""
    groups: dict[str, list[str]] = {}
    for book in books:
        if book.identity is not None:
            groups.setdefault(book.identity, []).append(str(book.path))
    return [paths for paths in groups.values() if len(paths) > 1]


def attempts(books: Iterable[Book]) -> Counter[str]:
    """run -> attempts that left lines: those of one ledger by their numbers; two ledgers of one party are two."""
    by_name: dict[str, dict[tuple[str, str], set[int]]] = {}
    for number, book in enumerate(books):
        for entry in book.entries:
            ledgers = by_name.setdefault(book.name, {})
            ledgers.setdefault((entry.run, book.identity or str(number)), set()).add(entry.attempt)
    total: Counter[str] = Counter()
    for ledgers in by_name.values():
        mine: Counter[str] = Counter()
        for (run, _), numbers in ledgers.items():
            mine[run] += len(numbers)
        total |= mine
    return total
