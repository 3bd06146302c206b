"""What the parties wrote about a run, read back and sorted: transcripts by attempt, ledgers, opened vectors."""

import hashlib
from pathlib import Path
from typing import Any

from dpmpc.aggregation.plan.asked import plan_path
from dpmpc.aggregation.plan.plan import Plan
from dpmpc.aggregation.wire.paths import ledger_path, opened_path, transcript_path
from dpmpc.aggregation.wire.transcript import digest, read_opened, read_transcript
from dpmpc.errors import UsageError
from dpmpc.folders import below, matching
from dpmpc.lazy import cached_property, dataclass
from dpmpc.privacy.book import Book
from dpmpc.privacy.ledger import Ledger
from dpmpc.run.folder import run_folder

Event = dict[str, Any]

_FIELDS: dict[str, dict[str, type]] = {
    "start": {"run": str, "attempt": int, "party": int, "plan": str, "first_release": int},
    "input": {"release": int, "owners": list},
    "present": {"release": int, "owners": list},
    "sum": {"release": int},
    "noise": {"release": int, "index": int},
    "add": {"release": int},
    "stand": {"release": int},
    "ledger": {"release": int, "line": str},
    "send": {"release": int, "digest": str},
    "open": {"release": int, "digest": str},
    "traffic": {"channel": int, "sent": dict, "received": dict},
    "rejected": {"release": int, "inconsistent": list, "too_long": list},
    "lost": {"party": int, "next": int},
    "told": {"of": int, "owners": list},
    "skipped": {"of": int},
    "delivered": {"owners": list},
    "end": {"releases": int},
}
_ITEMS = {kind: tuple(fields.items()) for kind, fields in _FIELDS.items()}


@dataclass(frozen=True)
class AttemptEvents:
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

    @cached_property
    def lost(self) -> frozenset[int]:
        """The parties without which it went on."""
        return frozenset(int(event["party"]) for event in self.events if event["event"] == "lost")

    @cached_property
    def releases(self) -> dict[int, list[Event]]:
        """release -> its events, in order."""
        result: dict[int, list[Event]] = {}
        for event in self.events:
            if "release" in event:
                result.setdefault(event["release"], []).append(event)
        return result

    @cached_property
    def traffic(self) -> list[Event]:
        """The records of what went over the wires, one a channel. Where a party was lost, shares may come when the
        opening is over and noted: they are a second record, which is joined with the first."""
        found = [event for event in self.events if event["event"] == "traffic"]
        if not self.lost:
            return found
        joined: list[Event] = []
        place: dict[int, int] = {}
        for event in found:
            k = place.setdefault(event["channel"], len(joined))
            if k < len(joined) and not any(joined[k][way].keys() & event[way].keys() for way in ("sent", "received")):
                joined[k] = joined[k] | {way: joined[k][way] | event[way] for way in ("sent", "received")}
            else:
                joined.append(event)
        return joined


@dataclass(frozen=True)
class RunFiles:
    """A run directory as the structure check sees it. Lists are by party; those that are `elsewhere` have nothing in
    them: their files are at other sites."""

    plan: Plan
    attempts: tuple[tuple[AttemptEvents, ...], ...]
    strays: tuple[str, ...]  # events before any start
    books: tuple[Book, ...]
    ledger_lines: tuple[tuple[str, ...], ...]  # digests of the ledgers' lines, in order
    opened: dict[str, dict[int, str]]  # file -> release -> digest
    elsewhere: tuple[int, ...] = ()

    def attempt(self, party: int, number: int) -> AttemptEvents | None:
        """A party's attempt of this number, if it got so far."""
        return next((a for a in self.attempts[party] if a.number == number), None)

    @property
    def all(self) -> list[AttemptEvents]:
        return [attempt for attempts in self.attempts for attempt in attempts]

    @property
    def numbers(self) -> list[int]:
        """The attempts that some party began."""
        return sorted({attempt.number for attempt in self.all})


def read_records(out: Path) -> RunFiles:
    """Everything the structure check needs: from a run directory, which has all parties; from the folder or the kit of
    one site, which has one; or from a folder of several sites' folders or kits.

    Errors: not a run directory, a run without MPC, an owner's folder, a file that is missing or not what was written,
    a broken ledger.
    """
    folders = places(out)
    plan, sites = _plan_in(out, folders)
    if not plan.parties:
        raise UsageError(
            f"a structure check needs the transcripts of parties; {out} was computed in the clear, without any; "
            "train with <<engine=mpc>>",
            code="missing",
        )
    attempts: list[tuple[AttemptEvents, ...]] = []
    strays: list[str] = []
    books: list[Book] = []
    lines: list[tuple[str, ...]] = []
    elsewhere: list[int] = []
    opened = {}
    for party in range(plan.parties):
        found = [place for place in folders if transcript_path(place, party).exists()]
        if len(found) > 1:
            raise UsageError(
                f"a party has one transcript; party {party} has one in {found[0]} and in {found[1]}; name the folder "
                "of one run"
            )
        if sites and not found:
            elsewhere.append(party)
            attempts.append(())
            books.append(Book((), 0, 0, 0, ""))
            lines.append(())
            continue
        folder = found[0] if found else out
        mine, before = _attempts(party, read_transcript(transcript_path(folder, party)))
        attempts.append(mine)
        strays += before
        books.append(Ledger.read(ledger_path(folder, party)))
        content = ledger_path(folder, party).read_bytes()
        lines.append(tuple(hashlib.sha256(line).hexdigest() for line in content.split(b"\n") if line))
        opened[f"party {party}"] = _digests(opened_path(folder, party), plan)
    if len(elsewhere) == plan.parties:
        if of_stages := below(out, "party_*.transcript.jsonl"):
            raise UsageError(
                f"what is verified are a run's releases, or those of a stage; {out} has those of stages alone, for the "
                f"run ended before its own; name a stage's folder, as {of_stages[0].parent}"
            )
        raise UsageError(
            f"parties keep transcripts, owners do not; {out} has none; name a party's folder, or one that has the "
            "folders of all sites",
            code="path",
        )
    owners = [place / "owners.opened.bin" for place in folders if (place / "owners.opened.bin").exists()]
    for path in owners:
        opened["the owners" if len(owners) == 1 else f"the owners in {path.parent}"] = _digests(path, plan)
    return RunFiles(plan, tuple(attempts), tuple(strays), tuple(books), tuple(lines), opened, tuple(elsewhere))


def places(out: Path) -> list[Path]:
    """The folders with a run's files: that of `out`, or those of the sites in `out`."""
    here = run_folder(out)
    if _has_run(here):
        return [here]
    inner = [run_folder(folder) for folder in matching(out, "*") if folder.is_dir()]
    return [folder for folder in inner if _has_run(folder)] or [here]


def _has_run(folder: Path) -> bool:
    """Whether the folder is one of a run's processes."""
    return any(matching(folder, name) for name in ("plan*.json", "party_*.transcript.jsonl"))


def _plan_in(out: Path, folders: list[Path]) -> tuple[Plan, bool]:
    """(the plan, whether these are sites: then a party may be elsewhere). Errors: there is none, or another one."""
    alone = bool(matching(out, "plan_*.json")) or (out / "ledger_owners.jsonl").exists()
    sites = alone or len(folders) > 1 or folders[0] != out
    found: list[tuple[Plan, Path]] = []
    for place in folders:
        for path in (plan_path(place), *matching(place, "plan_*.json")):
            if path.is_file():
                found.append((Plan.read(path), place))
    for plan, place in found[1:]:
        if plan != found[0][0]:
            raise UsageError(
                f"all sites of a run have one plan; {found[0][1]} and {place} differ; name the folder of one run"
            )
    return (found[0][0] if found else Plan.read(plan_path(out))), sites


def _digests(path: Path, plan: Plan) -> dict[int, str]:
    return {release: digest(values) for release, values in read_opened(path, plan.dimension).items()}


def _check_fields(party: int, event: Event) -> None:
    """Errors: a line that is no event, or an event of a known kind without its fields."""
    known = isinstance(event, dict) and isinstance(event.get("event"), str)
    right = known
    for name, kind in _ITEMS.get(event["event"], ()) if known else ():
        right = right and isinstance(event.get(name), kind)
    if not right:
        raise UsageError(
            f"an event of a transcript names its kind and has that kind's fields; party {party} has {str(event)[:80]}; "
            "restore the file",
            code="file",
        )


def _attempts(party: int, events: list[Event]) -> tuple[tuple[AttemptEvents, ...], list[str]]:
    result: list[AttemptEvents] = []
    strays: list[str] = []
    start: Event | None = None
    inside: list[Event] = []
    ended = False

    def close() -> None:
        if start is not None:
            result.append(AttemptEvents(party, start, tuple(inside), ended))

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
