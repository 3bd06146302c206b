"""Carrying on an interrupted run: what was spent, what was opened, which attempt is next and where it begins."""

import json
from collections.abc import Mapping
from dataclasses import asdict, field, replace
from pathlib import Path

from dpmpc.aggregation.party.resume import spent_releases
from dpmpc.aggregation.plan.asked import FIRST_ATTEMPT, Attempt, Presence, plan_path
from dpmpc.aggregation.plan.grid import Ints
from dpmpc.aggregation.plan.plan import Plan
from dpmpc.aggregation.wire.transcript import read_opened, read_transcript
from dpmpc.codec import loads
from dpmpc.errors import UsageError
from dpmpc.folders import matching, write_file
from dpmpc.lazy import dataclass
from dpmpc.privacy.ledger import Ledger
from dpmpc.run.files import WHOLE


@dataclass(frozen=True)
class Since:
    """What earlier attempts at a run left: the attempt that is made now, release -> what was opened, and the owners in
    it, where some may be missing."""

    attempt: Attempt = FIRST_ATTEMPT
    known: Mapping[int, Ints] = field(default_factory=dict)
    present: Mapping[int, Presence] = field(default_factory=dict)


def begun_as(fresh: Plan, out: Path) -> Plan:
    """The plan under the name of the run that was begun in `out`; as it is, where none was. Errors: UsageError where
    the request or the records lead to another plan than the one there."""
    stages = [out / stage.name / WHOLE for stage in fresh.source.schedule.before[:1]]
    begun = [path for path in (*stages, plan_path(out)) if path.is_file()]
    if not begun:
        return fresh
    plan = Plan.read(begun[0])
    if replace(fresh, run_id=plan.run_id) != plan:
        raise UsageError(
            f"a resumed run must have the records and options it began with; {out} has another plan; start a new run",
            code="plan",
        )
    return plan


def left(plan: Plan, out: Path) -> Since:
    """What earlier attempts at this plan left in `out`, on one machine: the first of its attempts where none was made.

    A release that any ledger there has a line for is spent, opened or not; the next attempt goes on after it, so the
    run never makes more releases than were planned."""
    if not plan_path(out).is_file() or not _attempted(out, plan):
        return Since()
    known, spent = opened_anywhere(out, plan), spent_anywhere(out, plan)
    attempt = Attempt(last_attempt(out).number + 1, max(spent, max(known, default=-1) + 1))
    return Since(attempt, known, presence_anywhere(out, plan) if plan.names_owners else {})


def _attempted(out: Path, plan: Plan) -> bool:
    """Whether a process in `out` has begun an attempt at this plan: else there is a plan alone, or the ledgers of
    another run, which stay when that is replaced."""
    kept = [path for each in ("party_*.transcript.jsonl", "*.opened.bin") for path in matching(out, each)]
    named = (plan.run_id.encode() in path.read_bytes() for path in matching(out, "ledger_*.jsonl"))
    return attempt_path(out).exists() or any(path.stat().st_size for path in kept) or any(named)


def spent_anywhere(out: Path, plan: Plan) -> int:
    """How many releases of this plan are spent, by the ledgers of all processes in `out`."""
    return max((spent_releases(path, plan.run_id) for path in matching(out, "ledger_*.jsonl")), default=0)


def attempt_path(out: Path) -> Path:
    """Where a run directory keeps the number of its last attempt."""
    return out / "attempt.json"


def note_attempt(out: Path, attempt: Attempt) -> None:
    """Writes that this attempt begins, before any other process hears of it."""
    write_file(attempt_path(out), json.dumps(asdict(attempt)))


def last_attempt(out: Path) -> Attempt:
    """The last attempt that was begun in `out`, by what the owners' process noted or a party's transcript tells."""
    found = [FIRST_ATTEMPT]
    if attempt_path(out).exists():
        found.append(Attempt(**loads(attempt_path(out).read_text(encoding="utf-8"))))
    for path in matching(out, "party_*.transcript.jsonl"):
        starts = [event for event in read_transcript(path) if event.get("event") == "start"]
        found += [Attempt(event["attempt"], event["first_release"]) for event in starts]
    return max(found, key=lambda attempt: attempt.number)


def presence_anywhere(out: Path, plan: Plan) -> dict[int, Presence]:
    """release -> the owners in it, from the ledgers of all parties in `out`, where owners may be missing."""
    books = [Ledger.read(path) for path in matching(out, "ledger_*.jsonl")]
    return {
        entry.release: entry.present
        for book in books
        for entry in book.entries
        if entry.run == plan.run_id and entry.present is not None
    }


def opened_anywhere(out: Path, plan: Plan) -> dict[int, Ints]:
    """release -> opened vector, from the files of all parties and of the owners in `out`. Errors: two that differ."""
    result: dict[int, Ints] = {}
    for path in matching(out, "*.opened.bin"):
        for release, values in read_opened(path, plan.dimension).items():
            if release in result and (result[release] != values).any():
                raise UsageError(
                    f"all files must hold the same opened vectors; release {release} differs in {path}; restore the "
                    "run directory",
                    code="file",
                )
            result[release] = values
    return result
