"""The account of what was spent on each data set, kept where no run folder is: deleting runs gives nothing back.

A folder with one append-only file a data id, `<digest>.jsonl`, whose lines chain by SHA-256 like a ledger's. It holds
no record. A line is one of these, with the name of the ledger that it is about:

- *reserved*: the releases first .. end - 1 that a ledger's writer is about to make, and the ledger's head by then. On
  disk before the attempt's first line is in the ledger, so before anything can be spent. A run of several stages has
  one for each of them before the first begins (*whole*), and each stage its own when it begins.
- *ended*: the ledger's head when that attempt was over, and the numbers of the releases that it has lines of. Where the
  writer died before it could say so, whoever reserves next writes it, from the ledger.
- *assignment*: the parts of the data that cost the larger, not the sum (`dpmpc.privacy.assignment`).

What counts of a ledger: its own lines, where it is where it was and has every head that the account remembers; with
what its living writer has reserved (`ledgers.read_ledger`). A ledger that is *missing*, or *older* than the account
remembers, counts everything that was reserved for it: what its lines said is not known any more. A ledger that was
never meant to stay (a run that keeps no folder) counts what its *ended* line says.

A ledger is told by the digest of its first line, which is in it before anything is reserved: a new file of the same
name is another ledger. A torn line is no line: a process that had not finished writing it had spent nothing for it.

Where it is: `account_folder`. Writers lock the file of the data id; readers need no lock. What this rests on: a file
system whose locks and fsync hold, and that nobody takes lines off the end of the account's own files.
"""

import contextlib
import fcntl
import json
import os
import secrets
import sys
from collections.abc import Container, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

from dpmpc.codec import loads
from dpmpc.errors import UsageError
from dpmpc.folders import check_folder, make_folder
from dpmpc.lazy import dataclass
from dpmpc.privacy.account_lines import FORMAT, Contents, Hold, contents_of
from dpmpc.privacy.assignment import Assignment, By
from dpmpc.privacy.book import Book, LedgerError
from dpmpc.privacy.data_names import canonical
from dpmpc.privacy.entry import GENESIS, Entry, bare, digest_of
from dpmpc.privacy.ledger import Ledger, sync_directory
from dpmpc.privacy.ledgers import Reservation, read_ledger
from dpmpc.processes.durable import sync, write_all
from dpmpc.processes.locks import is_held

ENVIRONMENT = "DPMPC_ACCOUNT"
_RULE = "what is spent on named data is written to an account, and before anything is spent"
_WAY = f"name another folder with <<account>>, or in {ENVIRONMENT}"
_CANONICAL: dict[Path, str] = {}  # what a file's lines are about does not change
State = Literal["there", "at work", "not kept", "missing", "older"]


def account_folder(
    environment: Mapping[str, str] = os.environ, platform: str = sys.platform, home: Path | None = None
) -> Path:
    """Where this user's account is: $DPMPC_ACCOUNT, else the platform's place for data that programs keep:
    $XDG_DATA_HOME/dpmpc/account (~/.local/share/dpmpc/account), on macOS ~/Library/Application Support/dpmpc/account.
    """
    if environment.get(ENVIRONMENT):
        return Path(environment[ENVIRONMENT]).expanduser().absolute()
    try:
        home = home or Path.home()
    except RuntimeError:
        raise UsageError(f"{_RULE}; this user has no home folder that could hold it; {_WAY}") from None
    if platform == "darwin":
        return home / "Library" / "Application Support" / "dpmpc" / "account"
    given = Path(environment.get("XDG_DATA_HOME") or "")
    return (given if given.is_absolute() else home / ".local" / "share") / "dpmpc" / "account"


@dataclass(frozen=True)
class Known:
    """A ledger that an account knows, and what of it counts."""

    path: Path
    state: State
    book: Book


@dataclass(frozen=True)
class Account:
    """The account in a folder. `keeps`: whether the ledgers that count in it stay where they are written."""

    folder: Path
    keeps: bool = True

    def path(self, data: str) -> Path:
        """The file of the data set of this digest."""
        return self.folder / f"{data}.jsonl"

    def others(self, data: str) -> list[str]:
        """The digests under which this account has spending on the same data set beside its own: of its name as it was
        written, before names were folded (`data_names`)."""
        return [each for each in self._files() if each != data and _canonical(self.path(each)) == data]

    def digests(self, data: str) -> list[bytes]:
        """SHA-256 of every line of the file of this data set that has an end, in order: what `heads` chains."""
        try:
            lines = self.path(data).read_bytes().split(b"\n")[:-1]
        except OSError:  # whoever writes to it says so
            return []
        return [bytes.fromhex(digest_of(line)) for line in lines]

    def check(self) -> None:
        """Errors: UsageError where nothing could be written here; nothing is."""
        check_folder(self.folder, _RULE, _WAY)

    def data(self) -> list[str]:
        """The digests of all data sets that it knows, sorted."""
        return sorted({_canonical(self.path(each)) for each in self._files()})

    def _files(self) -> list[str]:
        """The digests that have a file. Errors: UsageError where the folder cannot be read, which may have some."""
        try:
            names = os.listdir(self.folder)
        except (FileNotFoundError, NotADirectoryError):
            return []
        except OSError as error:
            raise UsageError(f"{_RULE}; {self.folder}: {error.strerror}; {_WAY}", code="path") from None
        stems = (name.removesuffix(".jsonl") for name in names if name.endswith(".jsonl"))
        return sorted(stem for stem in stems if len(stem) == len(GENESIS))

    @contextlib.contextmanager
    def writing(self, data: str) -> Iterator["Writer"]:
        """The file of this data set, for this process alone while inside; what was written is on disk when this is
        left. Others may write by then: parties that reserve one after the other wait for the disk together. Errors:
        UsageError where it cannot be written; LedgerError where it was changed."""
        make_folder(self.folder, _RULE, _WAY, private=True)
        path = self.path(data)
        try:
            created = not path.exists()
            descriptor = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o600)
        except OSError as error:
            raise UsageError(f"{_RULE}; {self.folder}: {error.strerror}; {_WAY}") from None
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            if created:
                sync_directory(self.folder)
            writer = Writer(descriptor, self, data, contents_of(path))
            try:
                yield writer
            finally:
                writer.leave()
        finally:
            os.close(descriptor)

    def assignment(
        self, data: str, name: str, parts: Mapping[str, int], by: By = "record", made: Assignment | None = None
    ) -> Assignment:
        """The stored assignment of the rows of this data set that is called `name`, for example its id's column: where
        there is none, the one that was `made`, or one with a new key.

        Every run on the data that asks for it has the same parts. Errors: UsageError where the stored one has other
        parts, or goes by something else; an account that cannot be written."""
        with self.writing(data) as file:
            return file.assignment(name, parts, by, made or self._others_assignments(data).get(name))

    def assignments(self, data: str) -> dict[str, Assignment]:
        """The stored assignments of this data set, by name."""
        return {**self._others_assignments(data), **dict(contents_of(self.path(data)).assignments)}

    def _others_assignments(self, data: str) -> dict[str, Assignment]:
        return {k: v for each in self.others(data) for k, v in contents_of(self.path(each)).assignments}

    def known(self, data: str, found: Mapping[str, Path] | None = None) -> list[Known]:
        """Every ledger that has spent on this data set, and what of it counts. `found`: where ledgers are by now, by
        the digests of their first lines, if they were moved. Errors: LedgerError where a file was changed.

        A ledger that is not to stay goes after the account says what it held: where one is missing, and the account
        has grown since it was read, it is read anew."""
        earlier = [known for other in self.others(data) for known in self._known(other, found)]
        return [*earlier, *self._known(data, found)]

    def _known(self, data: str, found: Mapping[str, Path] | None) -> list[Known]:
        """What the file of this digest knows."""
        contents = contents_of(self.path(data))
        while True:
            known, head = _known(contents, found or {}), contents.head
            if all(each.state != "missing" for each in known):
                return known
            contents = contents_of(self.path(data))
            if contents.head == head:
                return known

    def settle(self, data: str) -> None:
        """Ends every attempt whose writer has died and whose ledger is there; before ledgers are removed that were not
        to stay."""
        with self.writing(data) as file:
            file.settle()


def _canonical(path: Path) -> str:
    """The digest that what is spent in this file adds up under: its own, unless a line says that it is of a name."""
    found = _CANONICAL.get(path)
    if found is None:
        lines = (hold.reservation.entry for hold in contents_of(path).holds.values())
        entry = next(lines, None)
        if entry is None:  # nothing is reserved in it yet
            return path.stem
        found = next((to for name in entry.names if (to := canonical(path.stem, name)) != path.stem), path.stem)
        _CANONICAL[path] = found
    return found


class Writer:
    """The account's file of one data set, held alone."""

    def __init__(self, descriptor: int, account: Account, data: str, contents: Contents) -> None:
        self._descriptor, self._account, self._data, self.contents = descriptor, account, data, contents
        self._due = False  # whether something is written that may not be on disk

    def append(self, kind: str, record: Mapping[str, Any]) -> None:
        """Writes a line; it is on disk when the file is left (`Account.writing`), the parts of data at once."""
        contents = self.contents
        whole = {"v": FORMAT, "kind": kind, "prev": contents.head, **record}
        if contents.torn:
            whole["torn"] = True
        line = json.dumps(whole, separators=(",", ":"), allow_nan=False).encode()
        payload = (b"\n" if contents.open_line else b"") + line + b"\n"
        self._due = True
        with self._refusing():
            write_all(self._descriptor, payload)
            if kind == "assignment":  # who is in which part is written elsewhere too, by its key
                self._sync()
        contents.head, contents.torn, contents.open_line = digest_of(line), False, False
        contents.take(line, loads(line))

    def leave(self) -> None:
        """Lets others write, and returns when all is on disk. Errors: UsageError where it cannot be."""
        if self._due:
            with self._refusing():
                fcntl.flock(self._descriptor, fcntl.LOCK_UN)
                self._sync()

    def _sync(self) -> None:
        sync(self._descriptor)
        self._due = False

    @contextlib.contextmanager
    def _refusing(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise UsageError(
                f"{_RULE}; {self._account.folder}: {error.strerror}; make room, or {_WAY}", code="path"
            ) from None

    def assignment(
        self, name: str, parts: Mapping[str, int], by: By = "record", made: Assignment | None = None
    ) -> Assignment:
        """As `Account.assignment`."""
        stored = dict(self.contents.assignments).get(name)
        if stored is None:
            stored = made or Assignment.drawn(parts, by)
            self.append("assignment", {"name": name, **stored.to_json()})
        if (dict(stored.parts), stored.by) != (dict(parts), by):
            raise UsageError(
                f"a data set keeps its parts, for rows that move would be in both; stored are {dict(stored.parts)} "
                f"by {stored.by} of {name!r}, asked for {dict(parts)} by {by}; use the stored ones, or another "
                "name (what is spent then adds up)",
                code="over",
            )
        return stored

    def reserve(self, ledger: Ledger, reservation: Reservation) -> str:
        """Notes what `ledger`'s writer is about to spend; its key. Attempts whose writers have died are ended.
        Errors: LedgerError where this ledger is older than the account remembers."""
        assert ledger.identity is not None  # its first line is written
        self.settle()
        for each in _known(self.contents, {}, {ledger.identity}):
            if each.state == "older" and each.book.source == ledger.identity:
                raise LedgerError(
                    f"a ledger goes on where it ended; {ledger.path} is older than the account {self._account.folder} "
                    "remembers; restore the file, or begin a new run in another folder"
                )
        key = secrets.token_hex(16)
        self.append(
            "reserved",
            {
                "key": key,
                "ledger": ledger.identity,
                "name": ledger.name,
                "path": str(ledger.path.resolve()),
                "head": ledger.head,
                "kept": self._account.keeps,
                "entry": bare(reservation.entry).to_json(),
                "first": reservation.first,
                "end": reservation.end,
                **({"whole": True} if reservation.whole else {}),
            },
        )
        return key

    def settle(self) -> None:
        """Ends every attempt whose writer has died and whose ledger is here."""
        open_ = {hold.ledger for hold in self.contents.holds.values() if hold.ended is None}
        books = {each.book.source: each.book for each in _known(self.contents, {}, open_) if each.state == "there"}
        for hold in list(self.contents.holds.values()):
            if hold.ended is None and hold.ledger in books:
                self.end(hold.key, books[hold.ledger])

    def end(self, key: str, book: Book) -> None:
        """Notes that the attempt is over, with the head of its ledger, as it is, and what has a line in it."""
        hold = self.contents.holds[key]
        others = [each.ended[1] for each in self.contents.holds.values() if each.ledger == hold.ledger and each.ended]
        mine = [entry for entry in book.entries if entry.run == hold.reservation.entry.run]
        lines = [line for line in mine if not any(line.release in ended for ended in others)]
        token = lines[-1].token if lines else ""
        self.append("ended", {"key": key, "head": book.head, "spent": [line.release for line in lines], "token": token})


def _known(contents: Contents, found: Mapping[str, Path], only: Container[str] | None = None) -> list[Known]:
    """What counts of each ledger, or `only` of those with these identities: the others are not read."""
    ledgers: dict[str, list[Hold]] = {}
    for hold in contents.holds.values():
        if only is None or hold.ledger in only:
            ledgers.setdefault(hold.ledger, []).append(hold)
    return [_state(holds, contents.heads[identity], found.get(identity)) for identity, holds in ledgers.items()]


def _state(holds: list[Hold], heads: set[str], path: Path | None) -> Known:
    """What counts of one ledger, of which these were reserved and these heads are remembered."""
    last = holds[-1]
    if not last.kept and all(hold.ended for hold in holds):
        lines = [line for hold in holds for line in hold.lines()]
        keys = tuple(f"{hold.key} {number}" for hold in holds for number in hold.ended[1])  # type: ignore[index]
        return Known(last.path, "not kept", Book(tuple(lines), 0, 0, 0, "", last.name, last.ledger, keys))
    path = path or last.path
    live = is_held(path)
    try:
        book = read_ledger(path)
        there = {GENESIS, *map(digest_of, path.read_bytes().split(b"\n"))}
    except (UsageError, FileNotFoundError):
        if path.is_file():
            raise
    else:
        if book.source == last.ledger:
            if heads <= there:
                return Known(path, "at work" if live else "there", book)
            return Known(path, "older", replace(_whole(holds, book), path=None, gaps=(), open=()))
    return Known(path, "missing", _whole(holds, Book((), 0, 0, 0, "", last.name, last.ledger)))


def _whole(holds: list[Hold], book: Book) -> Book:
    """The ledger with everything that was reserved for it. What was for all stages of a run, and was given back, each
    stage has reserved anew before it began."""
    if holds[-1].reservation.whole:
        return replace(book, planned=_all_reserved([hold for hold in holds if not hold.ended], book))
    return replace(book, reserved=_all_reserved(holds, book))


def _all_reserved(holds: list[Hold], book: Book) -> tuple[Entry, ...]:
    """Everything that was reserved for a ledger, each release once, but for those that it has lines of."""
    lines = {bare(entry) for entry in book.entries}  # of a price: one plan's line is none of another of its name
    coming = {bare(e): e for hold in holds for e in hold.reservation.releases()}
    return tuple(entry for key, entry in coming.items() if key not in lines)
