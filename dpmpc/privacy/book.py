"""A ledger file as it is read: its chain verified, torn lines priced, and what it knows of releases that it has no line
of."""

import copy
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from dpmpc.errors import DpmpcError
from dpmpc.lazy import dataclass
from dpmpc.privacy.entry import (
    ATTEMPT,
    ELSEWHERE,
    GENESIS,
    RELEASE,
    Entry,
    LedgerLine,
    after,
    bare,
    digest_of,
    may_spend,
    parsed,
)


class LedgerError(DpmpcError):
    """A ledger was changed after it was written, or cannot be trusted for another reason."""

    code = "ledger"


@dataclass(frozen=True)
class MadeElsewhere:
    """The releases first .. end - 1 of `entry`'s run, which this ledger knows of and has no line of: others made them,
    or may. `key`: of the line that tells. `parties`: those that are known to have them."""

    key: str
    entry: Entry
    first: int
    end: int
    parties: tuple[int, ...] = ()

    def releases(self) -> Iterator[Entry]:
        """A line for each, of an attempt that is not known."""
        return (replace(bare(self.entry), release=number) for number in range(self.first, self.end))


@dataclass(frozen=True)
class Book:
    """A verified ledger file: its entries (torn lines counted in place), how many were torn, and the head of the chain.

    `unknown` counts torn lines without any neighbour to price them by. `identity`: the digest of the ledger's first
    whole line, where that has a random number; `keys`: what tells each entry from all others of that ledger.
    `reserved`: releases that its writer, which lives, has not written down yet. `gaps`: releases of earlier attempts
    that others made; `open`: those that others may make, without this party. `planned`: what the writer, which lives,
    has reserved for all stages of its run, whose lines other ledgers will have.
    """

    entries: tuple[Entry, ...]
    torn: int
    unknown: int
    lines: int
    head: str
    name: str = ""  # whose ledger it is: as its first line has it, else of the file
    identity: str | None = None
    keys: tuple[str, ...] = ()
    torn_end: bool = False  # the last line is torn
    reserved: tuple[Entry, ...] = ()
    path: Path | None = None
    gaps: tuple[MadeElsewhere, ...] = ()
    open: tuple[MadeElsewhere, ...] = ()
    planned: tuple[Entry, ...] = ()

    @property
    def unreserved(self) -> "Book":
        """The same without what a living writer has reserved."""
        return replace(self, reserved=(), planned=())

    @property
    def source(self) -> str:
        """What tells this ledger from all others; its copies have the same."""
        return self.identity or str(self.path)


class Reader:
    """A ledger file, verified as it is read; more of it may be fed when the file has grown.

    `entries`: (key, entry) of what its complete lines spend, in order; torn ones without any neighbour to price them by
    are not among them yet (`unpriced`). `tail`: the bytes after the last complete line; `offset`: where these begin.
    """

    def __init__(self, path: Path) -> None:
        self.path, self.name = path, path.name
        self.identity: str | None = None
        self.entries: list[tuple[str, Entry]] = []
        self.unpriced: list[str] = []
        self.gaps: list[MadeElsewhere] = []
        self.open: dict[str, MadeElsewhere] = {}  # by run
        self.lines, self.torn = 0, 0
        self.offset, self.tail = 0, b""
        self.begun = False  # whether it has a whole line
        self.torn_end = False  # whether the last complete line is torn
        self.head = GENESIS
        self._due: Entry | None = None  # what a torn line would be
        self._next: dict[str, int] = {}  # by run: one more than the last release that this ledger has or knows of

    @property
    def source(self) -> str:
        """As `Book.source`."""
        return self.identity or str(self.path)

    def feed(self, content: bytes) -> None:
        """Take what the file has from `offset` on. Errors: LedgerError at the first line that does not chain."""
        *complete, tail = content.split(b"\n")
        for line in complete:
            self._take(line, parsed(line))
        self.offset += len(content) - len(tail)
        found = parsed(tail) if tail else None
        self.tail = tail
        if found is not None or self.torn_end:  # a newline follows a torn line with the next one only
            self._check(tail, found)

    def whole(self) -> "Reader":
        """All that was read, what follows the last newline included: a whole line that lacks it, or a torn one."""
        if not self.tail:
            return self
        end = copy.copy(self)
        end.entries, end.unpriced, end.gaps = list(self.entries), list(self.unpriced), list(self.gaps)
        end.open, end._next = dict(self.open), dict(self._next)
        end._take(self.tail, parsed(self.tail))
        return end

    def book(self) -> Book:
        """The same as a value."""
        end = self.whole()
        return Book(
            tuple(entry for _, entry in end.entries),
            end.torn,
            len(end.unpriced),
            end.lines,
            end.head,
            end.name,
            end.identity,
            tuple(key for key, _ in end.entries),
            end.torn_end,
            path=self.path,
            gaps=tuple(end.gaps),
            open=tuple(end.open.values()),
        )

    def _take(self, line: bytes, found: LedgerLine | None) -> None:
        digest = digest_of(line)
        self._check(line, found)
        if found is not None:
            if found.first is not None and not self.begun:
                self.identity, self.name = digest, found.first
            self.begun = True
            self._follow(digest, found)
        elif may_spend(line):
            key = f"torn {self.head} {digest}"
            self.torn += 1
            if self._due is None:
                self.unpriced.append(key)
            else:
                self._spend(key, self._due)
        self.lines += 1
        self.head, self.torn_end = digest, found is None

    def _follow(self, key: str, line: LedgerLine) -> None:
        entry = line.entry
        for torn in self.unpriced:
            self.entries.append((torn, entry if line.kind == RELEASE else bare(entry)))
        self.unpriced = []
        if line.kind == RELEASE:
            self._spend(key, entry)
        elif line.kind == ELSEWHERE:
            self.open[entry.run] = MadeElsewhere(key, entry, entry.release, entry.planned, line.parties)
        else:
            assert line.kind == ATTEMPT
            self.open.pop(entry.run, None)
            before = self._next.get(entry.run, 0)
            if entry.release < before:  # the run was begun anew
                before = 0
            if entry.release > before:
                self.gaps.append(MadeElsewhere(key, entry, before, entry.release))
            self._due, self._next[entry.run] = entry, entry.release

    def _spend(self, key: str, entry: Entry) -> None:
        self.entries.append((key, entry))
        if (span := self.open.get(entry.run)) is not None and span.first <= entry.release:
            del self.open[entry.run]
            if entry.release + 1 < span.end:
                self.open[entry.run] = replace(span, first=entry.release + 1)
        self._due, self._next[entry.run] = after(entry), entry.release + 1

    def _check(self, line: bytes, found: LedgerLine | None) -> None:
        """Errors: a line that does not follow from the one before. After a torn line comes one that says so, or half of
        the beginning of an attempt: two changed lines are not two torn ones."""
        if self.torn_end and (not found.torn if found else not line or may_spend(line)):
            raise LedgerError(f"line {self.lines} of ledger {self.path} is not as it was written; restore the file")
        if found is None:
            return
        if found.prev != self.head or found.torn != self.torn_end:
            raise LedgerError(
                f"line {self.lines + 1} of ledger {self.path} does not follow from the line before it: a line was "
                "changed, removed or inserted; restore the file"
            )
