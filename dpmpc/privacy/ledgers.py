"""Many ledgers together: every release counted once, copies of ledgers found, and what live writers have reserved.

A reservation is a small file beside a ledger: the releases that the ledger's writer is about to make. It counts for as
long as that writer holds the lock on its ledger, which the kernel gives back when the process ends in whatever way;
from then on the ledger's lines alone count, and they were on disk before anything was opened. So a reservation is
never lost while its releases can still come, and never outlives its process; nor does it wait for a disk.

A run of several stages has one reservation more, for all of them (`whole`), beside a ledger of its own that never has
a release: the stages' ledgers have theirs. Each of its releases counts until some ledger tells of it.
"""

import json
import os
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from dpmpc.codec import loads, of_json, to_json
from dpmpc.errors import UsageError
from dpmpc.folders import replaced
from dpmpc.lazy import dataclass
from dpmpc.privacy.book import Book, LedgerError
from dpmpc.privacy.entry import Entry, bare
from dpmpc.privacy.ledger import Ledger
from dpmpc.processes.locks import is_held

WHOLE = "ledger.stages"  # how the names begin of ledgers for all stages of a run, which go when it ends


@dataclass(frozen=True)
class Reservation:
    """The releases first .. end - 1 of one attempt of a run, each as `entry` has it but for its number; its token is ""
    until the attempt has begun.

    `since`: how many entries the ledger had when they were reserved: what was spent before is not what was reserved,
    though a plan that is run twice makes the same lines. `by`: whose ledger it is. `whole`: it is for a stage of a run,
    whose releases are written in another ledger.
    """

    entry: Entry
    first: int
    end: int
    since: int = 0
    by: str = ""
    whole: bool = False

    def releases(self) -> Iterator[Entry]:
        """A line for each."""
        return (replace(self.entry, release=number) for number in range(self.first, self.end))

    def missing(self, book: Book) -> tuple[Entry, ...]:
        """Those that the ledger has no line of yet."""
        there = {line.release for line in book.entries[self.since :] if line.run == self.entry.run}
        return tuple(entry for entry in self.releases() if entry.release not in there)


def ledgers_below(root: Path) -> list[Path]:
    """Every ledger*.jsonl in `root` and below, sorted; `root` itself if it is a file. Errors: UsageError where a folder
    cannot be read: what was spent would be told without its ledgers."""

    def unread(error: OSError) -> None:
        if not isinstance(error, FileNotFoundError):  # whose owner removed it meanwhile
            raise UsageError(
                f"what was spent is in ledgers, and every folder of theirs is read; {error.filename}: "
                f"{error.strerror}; change its rights, or name another",
                code="path",
            ) from None

    if not root.is_dir():
        return [root] if root.exists() else []
    found = []
    for folder, _, files in os.walk(root, onerror=unread):
        found += [Path(folder, name) for name in files if name.startswith("ledger") and name.endswith(".jsonl")]
    return sorted(found)


def reservation_path(ledger: Path) -> Path:
    """Where the writer of a ledger keeps what it has reserved."""
    return ledger.with_name(ledger.stem + ".reserved.json")


def write_reservation(ledger: Path, *reservations: Reservation) -> None:
    """There for every process, whole or not at all, when this returns. It need not be on disk: it counts while its
    writer lives, and nobody lives on when the machine fails."""
    path = reservation_path(ledger)
    with replaced(path) as beside:
        with beside.open("w", encoding="utf-8") as file:
            json.dump([to_json(each) for each in reservations], file, allow_nan=False)


def drop_reservation(ledger: Path) -> None:
    """Gives back what is not used; for the ledger's writer, before it closes the ledger. One that cannot be removed
    counts as long as its writer lives."""
    with suppress(OSError):
        reservation_path(ledger).unlink()


def read_reservations(ledger: Path) -> tuple[Reservation, ...]:
    """What is written beside a ledger, whether or not its writer lives. Errors: UsageError for a file that is none."""
    path = reservation_path(ledger)
    try:
        said = loads(path.read_text(encoding="utf-8"))
        return tuple(of_json(Reservation, value) for value in (said if isinstance(said, list) else [said]))
    except FileNotFoundError:
        return ()
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise UsageError(
            f"a reservation is what a party wrote beside its ledger; {path}: {error}; end its run and remove the file",
            code="file",
        ) from None


def read_ledgers(root: Path, *, files: Iterable[Path] | None = None) -> list[Book]:
    """Every ledger below `root` (or in `files`), with what live writers have reserved; one for all stages of a run that
    has just ended is none. Errors: as `Ledger.read`."""
    found = []
    for path in ledgers_below(root) if files is None else files:
        try:
            found.append(read_ledger(path))
        except UsageError:
            if path.exists() or not path.name.startswith(WHOLE):
                raise
    return found


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
    found = read_reservations(path) if live else ()
    if not found:
        return book
    name = book.name if book.identity else found[0].by or book.name
    reserved, planned = ([e for r in found if r.whole == whole for e in r.missing(book)] for whole in (False, True))
    return replace(book, name=name, reserved=tuple(reserved), planned=tuple(planned))


class ReleaseTally:
    """Releases, each counted once, as lines of ledgers come.

    Lines of one attempt (one `token`) tell of the same release where they have one number and one price, whoever wrote
    them: it counts as often as the ledger has it that has it most often. A ledger that does not say which owners were
    in it (an owner's own) agrees with every other; two that say different owners are two releases. Lines without a
    token are compared by the names of the ledgers, as equal lines of different parties.
    """

    def __init__(self) -> None:
        self._groups: dict[Entry, _Group] = {}

    def add(self, source: str, name: str, entry: Entry) -> bool:
        """Take a line of the ledger `source` of the party `name`; whether there is one release more."""
        group = self._groups.setdefault(_release(entry), _Group())
        before = group.count()
        group.add(source if entry.token else name, entry.present)
        return group.count() > before

    def more(self, lines: Iterable[tuple[str, str, Entry]]) -> list[Entry]:
        """The releases that there would be more with these (source, name, line); nothing is changed."""
        changed: dict[Entry, _Group] = {}
        found = []
        for source, name, entry in lines:
            key = _release(entry)
            if key not in changed:
                changed[key] = self._groups[key].copy() if key in self._groups else _Group()
            before = changed[key].count()
            changed[key].add(source if entry.token else name, entry.present)
            found += [entry] * (changed[key].count() - before)
        return found

    def elements(self) -> Iterator[Entry]:
        """All releases."""
        for entry, group in self._groups.items():
            yield from (entry for _ in range(group.count()))


class _Group:
    """What ledgers say of one release: by ledger, how often with which owners."""

    def __init__(self) -> None:
        self._by: dict[str, Counter[tuple[int, ...] | None]] = {}

    def add(self, source: str, present: tuple[int, ...] | None) -> None:
        self._by.setdefault(source, Counter())[present] += 1

    def count(self) -> int:
        if len(self._by) == 1:
            return next(iter(self._by.values())).total()
        told: Counter[tuple[int, ...] | None] = Counter()
        for each in self._by.values():
            told |= each
        del told[None]
        return max([told.total(), *(each.total() for each in self._by.values())])

    def copy(self) -> "_Group":
        other = _Group()
        other._by = {source: each.copy() for source, each in self._by.items()}
        return other


def _release(entry: Entry) -> Entry:
    return replace(entry, present=None) if entry.token and entry.present is not None else entry


def merge(books: Iterable[Book]) -> tuple[Entry, ...]:
    """The releases in several ledgers, those that live writers have reserved included; the copies of one release
    counted once.

    Guarantees: never fewer than any process wrote down or knows of. One release is: the lines of one attempt with its
    number, in whatever ledgers (`ReleaseTally`); of lines without a token, equal ones in ledgers of different names
    (`ledger_0.jsonl`, `ledger_1.jsonl`: different parties); and the same line of ledgers that begin with the same
    digest: copies of one file. What one party wrote twice, in one ledger (a repeated iteration) or in two (a plan that
    was run twice), and what is described differently, counts each time. What a ledger has no line of but knows to be
    spent, or has reserved before its attempt began, counts beside that party's own lines, where all ledgers together
    have fewer. What is reserved for all stages of a run counts where no ledger tells of that release of that run; what
    several processes of it have, once.
    """
    books = list(books)
    tally = _tally(books)
    claims = _claims(books)
    most: Counter[Entry] = Counter()
    for name, claimed in claims.items():
        own = Counter(bare(entry) for entry in _tally([b for b in books if b.name == name]).elements())
        most |= Counter({entry: count + own[entry] for entry, count in claimed.items()})
    found = list(tally.elements())
    if most:
        most.subtract(Counter(bare(entry) for entry in found))
        found += (+most).elements()
    return (*found, *_to_come(books, found))


def _to_come(books: Iterable[Book], found: Iterable[Entry]) -> list[Entry]:
    """What is reserved for the stages of runs, but for the releases that were `found`."""
    by_name: dict[str, Counter[tuple[str, int]]] = {}
    entries: dict[tuple[str, int], Entry] = {}
    for book in books:
        for entry in book.planned:
            by_name.setdefault(book.name, Counter())[entry.run, entry.release] += 1
            entries.setdefault((entry.run, entry.release), bare(entry))
    if not entries:
        return []
    most: Counter[tuple[str, int]] = Counter()
    for each in by_name.values():
        most |= each
    most.subtract(Counter((entry.run, entry.release) for entry in found))
    return [entries[key] for key in (+most).elements()]


def _tally(books: Iterable[Book]) -> ReleaseTally:
    """Their lines, each line of copies once, and what is reserved for an attempt that has begun."""
    tally, seen = ReleaseTally(), set[tuple[str, str]]()
    for book in books:
        for number, entry in enumerate(book.entries):
            if book.identity is not None:
                if (book.identity, book.keys[number]) in seen:
                    continue
                seen.add((book.identity, book.keys[number]))
            tally.add(book.source, book.name, entry)
        for entry in book.reserved:
            if entry.token:
                tally.add(book.source, book.name, entry)
    return tally


def _claims(books: Iterable[Book]) -> dict[str, Counter[Entry]]:
    """name -> releases that ledgers of this name know of without a line, of attempts that they cannot name."""
    claims: dict[str, Counter[Entry]] = {}
    seen: set[tuple[str, str]] = set()
    for book in books:
        running = {entry.run for entry in book.reserved}
        spans = [*book.gaps, *(span for span in book.open if span.entry.run not in running)]
        fresh = [span for span in spans if (book.source, span.key) not in seen]
        seen |= {(book.source, span.key) for span in fresh}
        mine = [entry for span in fresh for entry in span.releases()]
        mine += [bare(entry) for entry in book.reserved if not entry.token]
        if mine:
            claims.setdefault(book.name, Counter()).update(mine)
    return claims


@dataclass(frozen=True)
class RunPart:
    """A run of which the ledgers at hand hold a part. `lines`: releases with a line; `counted`: with those that others
    made, or may. `parties`: those that are known to have the rest, where the run went on without the process here."""

    run: str
    lines: int
    counted: int
    planned: int
    parties: tuple[int, ...]


def parts(books: Iterable[Book]) -> list[RunPart]:
    """The runs that are known to have releases which no ledger at hand has a line of, and whose processes are not
    running here."""
    books = list(books)
    running = {entry.run for book in books for entry in (*book.reserved, *book.planned)}
    lines = Counter(entry.run for entry in merge(replace(b.unreserved, gaps=(), open=()) for b in books))
    counted = Counter(entry.run for entry in merge(b.unreserved for b in books))
    spans = [span for book in books for span in (*book.gaps, *book.open)]
    found = []
    for run in sorted({span.entry.run for span in spans} - running):
        if counted[run] > lines[run]:
            mine = [span for span in spans if span.entry.run == run]
            have = sorted({party for span in mine for party in span.parties})
            found.append(RunPart(run, lines[run], counted[run], max(span.entry.planned for span in mine), tuple(have)))
    return found


def copies(books: Iterable[Book]) -> list[list[str]]:
    """The paths of ledgers that are copies of one, group by group."""
    groups: dict[str, list[str]] = {}
    for book in books:
        if book.identity is not None:
            groups.setdefault(book.identity, []).append(str(book.path))
    return [paths for paths in groups.values() if len(paths) > 1]


def attempts(books: Iterable[Book]) -> Counter[str]:
    """run -> attempts that left lines: by their tokens; where there are none, those of one ledger by their numbers, and
    two ledgers of one party are two."""
    tokens: set[tuple[str, str]] = set()
    by_name: dict[str, dict[tuple[str, str], set[int]]] = {}
    for number, book in enumerate(books):
        for entry in book.entries:
            if entry.token:
                tokens.add((entry.run, entry.token))
                continue
            ledgers = by_name.setdefault(book.name, {})
            ledgers.setdefault((entry.run, book.identity or str(number)), set()).add(entry.attempt)
    total: Counter[str] = Counter()
    for ledgers in by_name.values():
        mine: Counter[str] = Counter()
        for (run, _), numbers in ledgers.items():
            mine[run] += len(numbers)
        total |= mine
    return total + Counter(run for run, _ in tokens)
