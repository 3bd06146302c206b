"""The privacy ledger: one line a release, on disk before the release is opened, each line chained to the one before.

A file holds JSON lines in the order they were appended. Every line carries `prev`, the SHA-256 of the bytes of the
line before it (64 zeros first), so that an edited, removed or inserted line is found; that lines are missing at the
*end* shows only against the digest that `append` returned or against another party's ledger, and `merge` counts a
release that any party wrote down. A line means spent, whether or not the opening came to pass.

Every line also carries a random number, so that no two ledgers begin alike: files whose chains begin with the same
digest are copies of one ledger, whatever their names, and each line of it counts once (`merge`). Where copies go on
separately, their lines differ and count each.

An attempt at a run begins with a line of its own (`begin`), which spends nothing: it has what the parties drew together
for this attempt, and every line after it has that too. So the ledgers of all processes of one attempt, parties and
owners, tell of the same releases, and those of two attempts at one plan do not, whoever holds which (`ledgers.merge`).

A crash can leave a torn last line. It is kept; the next line says `"torn": true` and chains to its bytes. `append`
had not returned, so this party did not open the release; it is counted as spent all the same, as the release after the
one in the line before it. Half of a line that is no release spends nothing; how it begins tells.

A writer holds an exclusive lock on its file for as long as it lives, and the kernel takes it away when it dies: that is
how others know whether what it has reserved (`reservation`) still counts.

What was spent is added up in `composition`.
"""

import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

from dpmpc.errors import UsageError
from dpmpc.folders import make_folder
from dpmpc.privacy.book import Book, LedgerError, Reader
from dpmpc.privacy.entry import ATTEMPT, ELSEWHERE, GENESIS, RELEASE, Entry, LedgerLine, digest_of, packed
from dpmpc.processes.closing import Closing
from dpmpc.processes.durable import write_whole
from dpmpc.processes.locks import lock

_RULE, _WAY = "what is spent is written to a ledger before it is", "name another folder"
_REMEMBERED = 1 << 18  # bytes of a ledger whose contents are kept for the next who asks


class Ledger(Closing):
    """An open ledger of one party; holds an exclusive lock on the file until closed."""

    def __init__(self, path: Path | str, name: str | None = None) -> None:
        """Opens or creates the file and verifies what is in it; LedgerError if it was changed, UsageError if in use.
        `name`: whose it is, in a new one; by default the file's name."""
        self.path = Path(path)
        self._token = ""  # of the attempt that was begun
        self.identity: str | None = None  # what tells it from all others (`Book.source`); None until it has a line
        make_folder(self.path.parent, _RULE, _WAY)
        created = not self.path.exists()
        try:
            self._fd = os.open(self.path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o600)
        except OSError as error:
            raise UsageError(f"{_RULE}; {self.path}: {error.strerror}; {_WAY}") from None
        self.guard: Callable[[Entry], None] = lambda entry: None  # raises where a line must not be written
        try:
            if not lock(self._fd):
                raise UsageError(
                    f"a ledger has one writer; {self.path} is in use by another process; wait or name another run",
                    code="over",
                )
            if created:
                sync_directory(self.path.parent)
            reader = Reader(self.path)
            reader.feed(self.path.read_bytes())
            self._open_line = bool(reader.tail)
            reader = reader.whole()
            self.name, self._head = reader.name, reader.head
            self._empty, self._torn = not reader.begun, reader.torn_end
            self.identity = None if self._empty else reader.identity or str(self.path.resolve())
            if self._empty and name is not None:
                self.name = name
        except BaseException:
            os.close(self._fd)
            raise

    def identify(self, entry: Entry) -> None:
        """Gives an empty ledger its first line, by which it is told from all others: it spends nothing, and prices a
        torn line after it like `entry`."""
        if self._empty:
            self._write(ATTEMPT, replace(entry, release=0, token=""))

    def begin(self, entry: Entry) -> None:
        """An attempt begins, of which `entry` is the first release: its token is every line's from now on. Nothing is
        spent; on disk when this returns."""
        self._write(ATTEMPT, entry)
        self._token = entry.token

    def goes_on(self, entry: Entry, parties: Sequence[int]) -> None:
        """Note that the run goes on without this process, from the release of `entry` on, and that `parties` have the
        rest: until another attempt begins here, all that was planned counts as spent, with a line here or without."""
        self._write(ELSEWHERE, entry, tuple(parties))

    def append(self, entry: Entry, *, checked: bool = False) -> str:
        """The digest of the line; when this returns the line is on disk, and the release may be opened. `checked`: the
        guard has let it pass, and it may be opened already.

        Errors: the guard's; nothing is written then."""
        if not entry.token:
            entry = replace(entry, token=self._token)
        if not checked:
            self.guard(entry)
        return self._write(RELEASE, entry)

    def _write(self, kind: str, entry: Entry, parties: tuple[int, ...] = ()) -> str:
        line = packed(LedgerLine(kind, entry, self._head, self._torn, self.name if self._empty else None, parties))
        payload, head = (b"\n" if self._open_line else b"") + line + b"\n", digest_of(line)
        write_whole(self._fd, payload)  # after it nothing can fail: this object's next line follows this one
        self._head, self._open_line, self._torn, self._empty = head, False, False, False
        self.identity = self.identity or self._head
        return self._head

    @property
    def head(self) -> str:
        """The digest of the last line."""
        return self._head

    def close(self) -> None:
        """Releases the file and its lock, and with it what was reserved and not used."""
        os.close(self._fd)

    @staticmethod
    def read(path: Path | str, head: str | None = None) -> Book:
        """The verified contents of a ledger; with `head`, also that the line of that digest is still there.

        LedgerError names the first line that does not chain.
        """
        path = Path(path)
        try:
            content = path.read_bytes()
        except OSError as error:
            raise UsageError(
                f"a ledger must be readable; {path}: {error.strerror}; check the path", code="path"
            ) from None
        book = (_book if len(content) <= _REMEMBERED else _book.__wrapped__)(path, content)
        if head is not None and head not in {GENESIS, *map(digest_of, content.split(b"\n"))}:
            raise LedgerError(f"ledger {path} lost its end: the line with digest {head[:12]} is gone; restore the file")
        return book


@lru_cache(maxsize=64)
def _book(path: Path, content: bytes) -> Book:
    """What a ledger of these bytes says. A run asks several times about the ledgers of earlier ones, which stay."""
    reader = Reader(path)
    reader.feed(content)
    return reader.book()


def sync_directory(directory: Path) -> None:
    """Returns when the names in a directory are on disk."""
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
