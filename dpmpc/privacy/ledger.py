"""The privacy ledger: one line a release, on disk before the release is opened, each line chained to the one before.

A file holds JSON lines in the order they were appended. Every line carries `prev`, the SHA-256 of the bytes of the
line before it (64 zeros first), so that an edited, removed or inserted line is found; that lines are missing at the
*end* shows only against the digest that `append` returned or against another party's ledger, and `merge` counts a
release that any party wrote down. A line means spent, whether or not the opening came to pass.

Every line also carries a random number, so that no two ledgers begin alike: files whose chains begin with the same
digest are copies of one ledger, whatever their names, and each line of it counts once (`merge`). Where copies go on
separately, their lines differ and count each.

A crash can leave a torn last line. It is kept; the next line says `"torn": true` and chains to its bytes. `append`
had not returned, so this party did not open the release; it is counted as spent all the same, as the release after the
one in the line before it.

A writer holds an exclusive lock on its file for as long as it lives, and the kernel takes it away when it dies: that is
how others know whether what it has reserved (`reservation`) still counts.

What was spent is added up in `composition`.
"""

import hashlib
import json
import os
import secrets
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from dpmpc.errors import DpmpcError, UsageError
from dpmpc.privacy.mechanism import Mechanism
from dpmpc.processes.locks import lock

GENESIS = "0" * 64
FORMAT = 3


@dataclass(frozen=True)
class Entry:
    """One release that is spent.

    `data`: opaque digests given by the owners, never computed from records: one for each owner, or one for them all
    when they always take part together. `planned`, `epsilon`, `delta`: what the run as a whole set out to release and
    promised. `names`: the texts that `data` are digests of. `attempt`: of the run. `neighbours`: what the mechanism's
    sensitivity compares ("record", "owner", "stated"; "" in lines of before it was noted). `owner_sensitivity`: the
    same for all of one owner's records, in the mechanism's norm and unit; None where it was not noted. `present`: the
    owners whose vectors are in it, where some may be missing; what is spent does not depend on it. `lost`: the parties
    without which the run went on, as the writer knew by then.
    """

    run: str
    release: int
    data: tuple[str, ...]
    mechanism: Mechanism
    planned: int
    epsilon: float
    delta: float
    names: tuple[str, ...] = ()
    attempt: int = field(default=0, compare=False)  # no two attempts make the same release
    neighbours: str = ""
    owner_sensitivity: float | None = None
    present: tuple[int, ...] | None = None
    lost: tuple[int, ...] = field(default=(), compare=False)  # two parties may hear of a loss one after the other

    def __post_init__(self) -> None:
        if not self.data or not all(self.data):
            raise UsageError(f"a release needs the digest of its data; got {self.data!r}; give one per owner")


@dataclass(frozen=True)
class Book:
    """A verified ledger file: its entries (torn lines counted in place), how many were torn, and the head of the chain.

    `unknown` counts torn lines without any neighbour to price them by. `identity`: the digest of the ledger's first
    whole line, where that has a random number; `keys`: what tells each entry from all others of that ledger.
    `reserved`: releases that its writer, which lives, has not written down yet.
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


class LedgerError(DpmpcError):
    """A ledger was changed after it was written, or cannot be trusted for another reason."""


class Ledger:
    """An open ledger of one party; holds an exclusive lock on the file until closed."""

    def __init__(self, path: Path | str) -> None:
        """Opens or creates the file and verifies what is in it; LedgerError if it was changed, UsageError if in use."""
        self.path = Path(path)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        created = not self.path.exists()
        self._fd = os.open(self.path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o600)
        self.guard: Callable[[Entry], None] = lambda entry: None  # raises where a line must not be written
        try:
            if not lock(self._fd):
                raise UsageError(
                    f"a ledger has one writer; {self.path} is in use by another process; wait or name another run"
                )
            if created:
                sync_directory(self.path.parent)
            content = self.path.read_bytes()
            reader = Reader(self.path)
            reader.feed(content)
            book = reader.book()
            self.name, self._head = book.name, book.head
            self._empty = not any(entry is not None for _, entry in reader.lines) and not reader.whole_tail
            self._open_line = bool(reader.tail)
            self._torn = self._open_line and not reader.whole_tail
        except BaseException:
            os.close(self._fd)
            raise

    def append(self, entry: Entry) -> str:
        """The digest of the line; when this returns the line is on disk, and the release may be opened.

        Errors: the guard's; nothing is written then."""
        self.guard(entry)
        record: dict[str, object] = {"v": FORMAT, "prev": self._head, **asdict(entry)}
        if entry.present is None:
            del record["present"]
        if not entry.lost:
            del record["lost"]
        record["salt"] = secrets.token_hex(16)
        if self._empty:
            record["by"] = self.name
        if self._torn:
            record["torn"] = True
        line = json.dumps(record, separators=(",", ":"), allow_nan=False).encode()
        payload = (b"\n" if self._open_line else b"") + line + b"\n"
        while payload:
            payload = payload[os.write(self._fd, payload) :]
        os.fsync(self._fd)
        self._head, self._open_line, self._torn, self._empty = _digest(line), False, False, False
        return self._head

    @property
    def head(self) -> str:
        """The digest of the last line."""
        return self._head

    def close(self) -> None:
        """Releases the file and its lock, and with it what was reserved and not used."""
        os.close(self._fd)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @staticmethod
    def read(path: Path | str, head: str | None = None) -> Book:
        """The verified contents of a ledger; with `head`, also that the line of that digest is still there.

        LedgerError names the first line that does not chain.
        """
        path = Path(path)
        try:
            content = path.read_bytes()
        except OSError as error:
            raise UsageError(f"a ledger must be readable; {path}: {error.strerror}; check the path") from None
        reader = Reader(path)
        reader.feed(content)
        book = reader.book()
        if head is not None and head not in {GENESIS, *map(_digest, content.split(b"\n"))}:
            raise LedgerError(f"ledger {path} lost its end: the line with digest {head[:12]} is gone; restore the file")
        return book


class Reader:
    """A ledger file, verified as it is read; more of it may be fed when the file has grown.

    `lines`: (key, entry, or None for a torn line) of the lines that are complete. `tail`: the bytes after the last of
    them; `offset`: where these begin.
    """

    def __init__(self, path: Path) -> None:
        self.path, self.name = path, path.name
        self.identity: str | None = None
        self.lines: list[tuple[str, Entry | None]] = []
        self.offset, self.tail, self.whole_tail = 0, b"", False
        self._head = GENESIS
        self._torn = False  # the last complete line

    def feed(self, content: bytes) -> None:
        """Take what the file has from `offset` on. Errors: LedgerError at the first line that does not chain."""
        *complete, tail = content.split(b"\n")
        for line in complete:
            self._take(line, _parsed(line))
        self.offset += len(content) - len(tail)
        parsed = _parsed(tail) if tail else None
        if self._torn and parsed is None:
            raise self._not_as_written(len(self.lines))
        self.tail, self.whole_tail = tail, parsed is not None
        if parsed is not None:
            self._check(parsed)

    def book(self) -> Book:
        """All that was read, what follows the last newline included: a whole line that lacks it, or a torn one."""
        lines, head, identity, name = list(self.lines), self._head, self.identity, self.name
        if self.tail:
            parsed = _parsed(self.tail)
            if parsed is not None and parsed.first is not None and identity is None and not _known(lines):
                identity, name = _digest(self.tail), parsed.first
            lines.append((_key(head, self.tail, parsed), None if parsed is None else parsed.entry))
            head = _digest(self.tail)
        known = _known(lines)
        torn = len(lines) - len(known)
        entries, keys, previous = [], [], known[0] if known else None
        for number, (key, entry) in enumerate(lines):
            if entry is not None:
                previous = entry
            elif previous is not None and number:
                previous = after(previous)
            if previous is not None:
                entries.append(previous)
                keys.append(key)
        unknown = 0 if known else torn
        torn_end = bool(lines) and lines[-1][1] is None
        return Book(
            tuple(entries), torn, unknown, len(lines), head, name, identity, tuple(keys), torn_end, path=self.path
        )

    def _take(self, line: bytes, parsed: "_Parsed | None") -> None:
        if parsed is None:
            if self._torn:
                raise self._not_as_written(len(self.lines))
        else:
            self._check(parsed)
            if parsed.first is not None and not _known(self.lines[:2]):
                self.identity, self.name = _digest(line), parsed.first
        self.lines.append((_key(self._head, line, parsed), None if parsed is None else parsed.entry))
        self._head, self._torn = _digest(line), parsed is None

    def _check(self, parsed: "_Parsed") -> None:
        """Errors: a line that does not follow from the one before."""
        if self._torn and not parsed.torn:
            raise self._not_as_written(len(self.lines))
        if parsed.prev != self._head or parsed.torn != self._torn:
            raise LedgerError(
                f"line {len(self.lines) + 1} of ledger {self.path} does not follow from the line before it: a line was "
                "changed, removed or inserted; restore the file"
            )

    def _not_as_written(self, number: int) -> LedgerError:
        return LedgerError(f"line {number} of ledger {self.path} is not as it was written; restore the file")


def after(entry: Entry) -> Entry:
    """What a torn line after `entry` counts as: the next release of its run, at its price."""
    return replace(entry, release=entry.release + 1)


def sync_directory(directory: Path) -> None:
    """Returns when the names in a directory are on disk."""
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _digest(line: bytes) -> str:
    return hashlib.sha256(line).hexdigest()


@dataclass(frozen=True)
class _Parsed:
    """A whole line. `torn`: whether the line before it is. `first`: whose ledger it begins, where it has a random
    number."""

    entry: Entry
    prev: str
    torn: bool
    first: str | None


def _known(lines: list[tuple[str, Entry | None]]) -> list[Entry]:
    return [entry for _, entry in lines if entry is not None]


def _key(head: str, line: bytes, parsed: _Parsed | None) -> str:
    """What tells a line from all others of its ledger: its digest, which covers all before it."""
    return _digest(line) if parsed is not None else f"torn {head} {_digest(line)}"


def _parsed(line: bytes) -> _Parsed | None:
    """A line's parts, or None if it is not a whole line of a ledger."""
    try:
        record = json.loads(line)
        version = record.pop("v")
        if version not in (1, 2, FORMAT):
            return None
        prev, torn = record.pop("prev"), record.pop("torn", False)
        first = record.pop("by", None) if record.pop("salt", "") else None
        mechanism = _mechanism(version, record.pop("mechanism"))
        data, names = tuple(record.pop("data")), tuple(record.pop("names", ()))
        if (present := record.pop("present", None)) is not None:
            present = tuple(int(owner) for owner in present)
        lost = tuple(int(party) for party in record.pop("lost", ()))
        entry = Entry(mechanism=mechanism, data=data, names=names, present=present, lost=lost, **record)
        return _Parsed(entry, prev, torn, first)
    except (ValueError, TypeError, KeyError, AttributeError, UsageError):
        return None


def _mechanism(version: int, fields: dict[str, Any]) -> Mechanism:
    if version == 1:  # it said both in one word
        law = fields.pop("law")
        fields |= {"law": law.removeprefix("discrete-"), "discrete": law.startswith("discrete-")}
    return Mechanism(**fields)
