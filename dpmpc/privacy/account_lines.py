"""What the file of an account says: its lines, checked and read. `account` says what they are."""

import json
from collections.abc import Mapping
from dataclasses import field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from dpmpc.codec import loads
from dpmpc.errors import UsageError, as_written
from dpmpc.lazy import dataclass
from dpmpc.privacy.assignment import Assignment
from dpmpc.privacy.book import LedgerError
from dpmpc.privacy.entry import GENESIS, Entry, digest_of
from dpmpc.privacy.ledgers import Reservation

FORMAT = 1
_REMEMBERED = 1 << 12  # lines, some MB


@dataclass(frozen=True)
class Hold:
    """A reservation in an account. `ledger`: the digest of its first line; `name`: whose it is; `head`: its last line's
    by then; `kept`: whether it was to stay where it is; `ended`: (head, releases with a line, token) when the attempt
    was over."""

    key: str
    ledger: str
    name: str
    path: Path
    head: str
    reservation: Reservation
    kept: bool
    ended: tuple[str, tuple[int, ...], str] | None = None

    def lines(self) -> list[Entry]:
        """The releases that the attempt has spent, as it said when it ended."""
        assert self.ended is not None
        _, numbers, token = self.ended
        return [replace(self.reservation.entry, release=number, token=token) for number in numbers]


@dataclass
class Contents:
    """What the file of one data id says."""

    head: str = GENESIS
    torn: bool = False  # the last line is
    open_line: bool = False  # no newline ends it
    holds: dict[str, Hold] = field(default_factory=dict)
    heads: dict[str, set[str]] = field(default_factory=dict)  # of each ledger
    assignments: list[tuple[str, Assignment]] = field(default_factory=list)

    def take(self, line: bytes, record: Mapping[str, Any]) -> None:
        """Adds what a line says, which is this record."""
        kind = record["kind"]
        if kind == "assignment":
            own = {name: value for name, value in record.items() if name not in ("prev", "torn")}
            self.assignments.append((str(record["name"]), Assignment.from_json(own)))
            return
        if kind == "reserved":
            hold = _hold_of(line)
            self.holds[hold.key] = hold
            ledger, head = hold.ledger, hold.head
        else:
            hold = self.holds[record["key"]]
            ledger, head = hold.ledger, str(record["head"])
            ended = head, tuple(int(number) for number in record["spent"]), str(record["token"])
            self.holds[hold.key] = replace(hold, ended=ended)
        self.heads.setdefault(ledger, set()).add(head)


def contents_of(path: Path) -> Contents:
    """What a file says; nothing where there is none. Errors: LedgerError at the first line that does not chain."""
    contents = Contents()
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return contents
    except OSError as error:
        raise UsageError(f"an account must be readable; {path}: {error.strerror}; name another <<account>>") from None
    lines = data.split(b"\n")
    contents.open_line = bool(lines[-1])
    for number, line in enumerate(lines if lines[-1] else lines[:-1], 1):
        record, digest = _parsed(line)
        said = (None, False) if record is None else (record.get("prev"), record.get("torn", False))
        if said != (None if record is None else contents.head, contents.torn):
            raise LedgerError(
                f"line {number} of account {path} does not follow from the line before it: a line was changed, removed "
                "or inserted; restore the file"
            )
        if record is not None:
            with as_written(f"line {number} of account {path}", "restore the file"):
                contents.take(line, record)
        contents.head, contents.torn = digest, record is None
    return contents


@lru_cache(maxsize=_REMEMBERED)  # a process reads its account several times, and every line but the last ones again
def _parsed(line: bytes) -> tuple[Mapping[str, Any] | None, str]:
    """(what a line says, None where it is torn; its digest)."""
    try:
        record = loads(line)
    except ValueError:
        record = None
    return (record if isinstance(record, dict) and record.get("v") == FORMAT else None), digest_of(line)


@lru_cache(maxsize=_REMEMBERED)
def _hold_of(line: bytes) -> Hold:
    record, _ = _parsed(line)
    assert record is not None
    entry = _entry_of(json.dumps(record["entry"]))
    reservation = Reservation(entry, record["first"], record["end"], by=record["name"], whole=bool(record.get("whole")))
    path = Path(record["path"])
    return Hold(record["key"], record["ledger"], record["name"], path, record["head"], reservation, record["kept"])


@lru_cache(maxsize=_REMEMBERED)  # the parties of a run reserve the same, each in a line of its own
def _entry_of(text: str) -> Entry:
    return Entry.from_json(loads(text))
