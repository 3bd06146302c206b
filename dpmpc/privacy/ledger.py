"""The privacy ledger: one line a release, on disk before the release is opened, each line chained to the one before.

A file holds JSON lines in the order they were appended. Every line carries `prev`, the SHA-256 of the bytes of the
line before it (64 zeros first), so that an edited, removed or inserted line is found; that lines are missing at the
*end* shows only against the digest that `append` returned or against another party's ledger, and `merge` counts a
release that any party wrote down. A line means spent, whether or not the opening came to pass.

A crash can leave a torn last line. It is kept; the next line says `"torn": true` and chains to its bytes. `append`
had not returned, so the release was not opened; it is counted as spent all the same, at the price of its neighbour.

What was spent is added up in `composition`.
"""

import fcntl
import hashlib
import json
import os
from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from dpmpc.errors import DpmpcError, UsageError
from dpmpc.privacy.mechanism import Mechanism

GENESIS = "0" * 64
FORMAT = 2


@dataclass(frozen=True)
class Entry:
    """One release that is spent.

    `data`: opaque digests given by the owners, never computed from records: one for each owner, or one for them all
    when they always take part together. `planned`, `epsilon`, `delta`: what the run as a whole set out to release and
    promised.
    """

    run: str
    release: int
    data: tuple[str, ...]
    mechanism: Mechanism
    planned: int
    epsilon: float
    delta: float

    def __post_init__(self) -> None:
        if not self.data or not all(self.data):
            raise UsageError(f"a release needs the digest of its data; got {self.data!r}; give one per owner")


@dataclass(frozen=True)
class Book:
    """A verified ledger file: its entries (torn lines counted in place), how many were torn, and the head of the chain.

    `unknown` counts torn lines without any neighbour to price them by.
    """

    entries: tuple[Entry, ...]
    torn: int
    unknown: int
    lines: int
    head: str
    name: str = ""  # of the file, which says whose ledger it is


class LedgerError(DpmpcError):
    """A ledger was changed after it was written, or cannot be trusted for another reason."""


class Ledger:
    """An open ledger of one party; holds an exclusive lock on the file until closed."""

    def __init__(self, path: Path | str) -> None:
        """Opens or creates the file and verifies what is in it; LedgerError if it was changed, UsageError if in use."""
        self._path = Path(path)
        self._path.parent.mkdir(parents=True, exist_ok=True)
        created = not self._path.exists()
        self._fd = os.open(self._path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            try:
                fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise UsageError(
                    f"a ledger has one writer; {self._path} is in use by another process; wait or name another run"
                ) from None
            if created:
                _sync_directory(self._path.parent)
            content = self._path.read_bytes()
            self._head = _parse(content, self._path).head
            self._open_line = bool(content) and not content.endswith(b"\n")
            self._torn = self._open_line and _entry(_last_line(content)) is None
        except BaseException:
            os.close(self._fd)
            raise

    def append(self, entry: Entry) -> str:
        """The digest of the line; when this returns the line is on disk, and the release may be opened."""
        record: dict[str, object] = {"v": FORMAT, "prev": self._head, **asdict(entry)}
        if self._torn:
            record["torn"] = True
        line = json.dumps(record, separators=(",", ":"), allow_nan=False).encode()
        payload = (b"\n" if self._open_line else b"") + line + b"\n"
        while payload:
            payload = payload[os.write(self._fd, payload) :]
        os.fsync(self._fd)
        self._head, self._open_line, self._torn = _digest(line), False, False
        return self._head

    @property
    def head(self) -> str:
        """The digest of the last line."""
        return self._head

    def close(self) -> None:
        """Releases the file and its lock."""
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
        book = _parse(content, path)
        if head is not None and head not in {GENESIS, *map(_digest, content.split(b"\n"))}:
            raise LedgerError(f"ledger {path} lost its end: the line with digest {head[:12]} is gone; restore the file")
        return book


def merge(books: Iterable[Book]) -> tuple[Entry, ...]:
    """The releases in several parties' ledgers, the copies of one release counted once.

    Guarantees: never fewer than any party wrote down. Copies are equal entries in ledgers of different names
    (`ledger_0.jsonl`, `ledger_1.jsonl`: different parties). What one party wrote twice, in one file (a repeated
    iteration) or in two (a plan that was run twice), and what parties describe differently, counts each time.
    """
    written: dict[str, Counter[Entry]] = {}
    for book in books:
        written.setdefault(book.name, Counter()).update(book.entries)
    total: Counter[Entry] = Counter()
    for entries in written.values():
        total |= entries
    return tuple(total.elements())


def _digest(line: bytes) -> str:
    return hashlib.sha256(line).hexdigest()


def _last_line(content: bytes) -> bytes:
    return content.rsplit(b"\n", 1)[-1]


def _entry(line: bytes) -> tuple[Entry, str, bool] | None:
    """(entry, prev, whether the line before it is torn) of a line, or None if it is not a whole line of a ledger."""
    try:
        record = json.loads(line)
        version = record.pop("v")
        if version not in (1, FORMAT):
            return None
        prev, torn = record.pop("prev"), record.pop("torn", False)
        mechanism = _mechanism(version, record.pop("mechanism"))
        return Entry(mechanism=mechanism, data=tuple(record.pop("data")), **record), prev, torn
    except (ValueError, TypeError, KeyError, AttributeError, UsageError):
        return None


def _mechanism(version: int, fields: dict[str, Any]) -> Mechanism:
    if version == 1:  # it said both in one word
        law = fields.pop("law")
        fields |= {"law": law.removeprefix("discrete-"), "discrete": law.startswith("discrete-")}
    return Mechanism(**fields)


def _parse(content: bytes, path: Path) -> Book:
    lines = content.split(b"\n")
    complete = lines.pop() == b""  # what follows the last newline: nothing, unless the end is torn
    if not complete:
        lines.append(_last_line(content))
    parsed = [_entry(line) for line in lines]
    entries: list[Entry | None] = []
    head = GENESIS
    for number, (line, item) in enumerate(zip(lines, parsed, strict=True)):
        if item is None:
            following = parsed[number + 1] if number + 1 < len(lines) else None
            if (following is None or not following[2]) and (complete or number + 1 < len(lines)):
                raise LedgerError(f"line {number + 1} of ledger {path} is not as it was written; restore the file")
            entries.append(None)
        else:
            entry, prev, torn = item
            if prev != head or torn != (number > 0 and parsed[number - 1] is None):
                raise LedgerError(
                    f"line {number + 1} of ledger {path} does not follow from the line before it: a line was changed, "
                    "removed or inserted; restore the file"
                )
            entries.append(entry)
        head = _digest(line)
    known = [entry for entry in entries if entry is not None]
    torn_lines = len(entries) - len(known)
    previous: Entry | None = known[0] if known else None
    counted: list[Entry] = []
    for item_or_torn in entries:
        previous = item_or_torn if item_or_torn is not None else previous
        if previous is not None:
            counted.append(previous)
    unknown = 0 if known else torn_lines
    return Book(entries=tuple(counted), torn=torn_lines, unknown=unknown, lines=len(lines), head=head, name=path.name)


def _sync_directory(directory: Path) -> None:
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
