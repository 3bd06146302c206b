"""What the parties wrote about a run, read back and sorted: transcripts by attempt, ledgers, opened vectors."""

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dpmpc.aggregation.paths import ledger_path, opened_path, transcript_path
from dpmpc.aggregation.plan import Plan, plan_path
from dpmpc.aggregation.transcript import digest, read_opened, read_transcript
from dpmpc.errors import UsageError
from dpmpc.privacy.ledger import Book, Ledger

Event = dict[str, Any]

_FIELDS: dict[str, dict[str, type]] = {
    "start": {"run": str, "attempt": int, "party": int, "plan": str, "first_release": int},
    "input": {"release": int, "owners": list},
    "present": {"release": int, "owners": list},
    "sum": {"release": int},
    "noise": {"release": int, "index": int},
    "add": {"release": int},
    "ledger": {"release": int, "line": str},
    "send": {"release": int, "digest": str},
    "open": {"release": int, "digest": str},
    "traffic": {"channel": int, "sent": dict, "received": dict},
    "rejected": {"release": int, "inconsistent": list, "too_long": list},
    "lost": {"party": int, "next": int},
    "told": {"of": int, "owners": list},
    "delivered": {"owners": list},
    "end": {"releases": int},
}


@dataclass(frozen=True)
class Attempt:
    """One party's events of one attempt, between its `start` and its `end` (if it came to that)."""

    party: int
    start: Event
    events: tuple[Event, ...]
    ended: bool

    @property
    def number(self) -> int:
        return int(self.start.get("attempt", -1))

    @property
    def name(self) -> str:
        return f"party {self.party}" + (f", attempt {self.number}" if self.number else "")

    def releases(self) -> dict[int, list[Event]]:
        """release -> its events, in order."""
        result: dict[int, list[Event]] = {}
        for event in self.events:
            if "release" in event:
                result.setdefault(event["release"], []).append(event)
        return result

    @property
    def traffic(self) -> list[Event]:
        """The records of what went over the wires."""
        return [event for event in self.events if event["event"] == "traffic"]


@dataclass(frozen=True)
class Records:
    """A run directory as the structure check sees it. Lists are by party."""

    plan: Plan
    attempts: tuple[tuple[Attempt, ...], ...]
    strays: tuple[str, ...]  # events before any start
    books: tuple[Book, ...]
    ledger_lines: tuple[tuple[str, ...], ...]  # digests of the ledgers' lines, in order
    opened: dict[str, dict[int, str]]  # file -> release -> digest

    def attempt(self, party: int, number: int) -> Attempt | None:
        """A party's attempt of this number, if it got so far."""
        return next((a for a in self.attempts[party] if a.number == number), None)

    @property
    def all(self) -> list[Attempt]:
        return [attempt for attempts in self.attempts for attempt in attempts]

    @property
    def numbers(self) -> list[int]:
        """The attempts that some party began."""
        return sorted({attempt.number for attempt in self.all})


def read_records(out: Path) -> Records:
    """Everything the structure check needs from a run directory.

    Errors: not a run directory, a run without MPC, a file that is missing or not what was written, a broken ledger.
    """
    plan = Plan.read(plan_path(out))
    if not plan.parties:
        raise UsageError(
            f"a structure check needs the transcripts of parties; {out} was computed in the clear, without any; "
            "train with --engine mpc"
        )
    attempts, strays, books, lines = [], [], [], []
    opened = {}
    for party in range(plan.parties):
        mine, before = _attempts(party, read_transcript(transcript_path(out, party)))
        attempts.append(mine)
        strays += before
        books.append(Ledger.read(ledger_path(out, party)))
        content = ledger_path(out, party).read_bytes()
        lines.append(tuple(hashlib.sha256(line).hexdigest() for line in content.split(b"\n") if line))
        opened[f"party {party}"] = _digests(opened_path(out, party), plan)
    if (out / "owners.opened.bin").exists():
        opened["the owners"] = _digests(out / "owners.opened.bin", plan)
    return Records(plan, tuple(attempts), tuple(strays), tuple(books), tuple(lines), opened)


def _digests(path: Path, plan: Plan) -> dict[int, str]:
    return {release: digest(values) for release, values in read_opened(path, plan.dimension).items()}


def _check_fields(party: int, event: Event) -> None:
    """Errors: a line that is no event, or an event of a known kind without its fields."""
    known = isinstance(event, dict) and isinstance(event.get("event"), str)
    fields = _FIELDS.get(event["event"], {}) if known else {}
    if not known or not all(isinstance(event.get(name), kind) for name, kind in fields.items()):
        raise UsageError(
            f"an event of a transcript names its kind and has that kind's fields; party {party} has {str(event)[:80]}; "
            "restore the file"
        )


def _attempts(party: int, events: list[Event]) -> tuple[tuple[Attempt, ...], list[str]]:
    result: list[Attempt] = []
    strays: list[str] = []
    start: Event | None = None
    inside: list[Event] = []
    ended = False

    def close() -> None:
        if start is not None:
            result.append(Attempt(party, start, tuple(inside), ended))

    for event in events:
        _check_fields(party, event)
        kind = event["event"]
        if kind == "start":
            close()
            start, inside, ended = event, [], False
        elif kind == "delivered":
            continue  # after the end: which owners have got everything
        elif start is None or ended:
            strays.append(f"party {party}: {kind!r} outside an attempt")
        elif kind == "end":
            ended = True
        else:
            inside.append(event)
    close()
    return tuple(result), strays
