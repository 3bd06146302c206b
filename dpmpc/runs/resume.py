"""Carrying on an interrupted run: what was spent, what was opened, which attempt is next and where it begins."""

import json
from dataclasses import asdict, replace
from pathlib import Path

from dpmpc.aggregation.party.resume import spent_releases
from dpmpc.aggregation.plan.asked import FIRST_ATTEMPT, Attempt, Presence, plan_path
from dpmpc.aggregation.plan.grid import Ints
from dpmpc.aggregation.plan.plan import Plan
from dpmpc.aggregation.wire.transcript import read_opened, read_transcript
from dpmpc.codec import loads
from dpmpc.errors import UsageError
from dpmpc.folders import write_file
from dpmpc.privacy.ledger import Ledger


def resume(out: Path, fresh: Plan) -> tuple[Plan, Attempt, dict[int, Ints]]:
    """(the plan, the next attempt, release -> opened vector of the earlier ones) for the interrupted run in `out`.

    A release that any party's ledger has a line for is spent, opened or not; the next attempt goes on after it, so the
    run never makes more releases than were planned. Errors: the request or records lead to another plan than the one in
    `out`; nothing is left to do.
    """
    plan = Plan.read(plan_path(out))
    if replace(fresh, run_id=plan.run_id) != plan:
        raise UsageError(
            f"a resumed run must have the records and options it began with; {out} has another plan; start a new run"
        )
    if (out / "report.json").exists():
        raise UsageError(f"<<resume>> is for interrupted runs; {out} is finished; see its report.json")
    known = opened_anywhere(out, plan)
    spent = max((spent_releases(path, plan.run_id) for path in sorted(out.glob("ledger_*.jsonl"))), default=0)
    return plan, Attempt(last_attempt(out).number + 1, max(spent, max(known, default=-1) + 1)), known


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
    for path in sorted(out.glob("party_*.transcript.jsonl")):
        starts = [event for event in read_transcript(path) if event.get("event") == "start"]
        found += [Attempt(event["attempt"], event["first_release"]) for event in starts]
    return max(found, key=lambda attempt: attempt.number)


def presence_anywhere(out: Path, plan: Plan) -> dict[int, Presence]:
    """release -> the owners in it, from the ledgers of all parties in `out`, where owners may be missing."""
    books = [Ledger.read(path) for path in sorted(out.glob("ledger_*.jsonl"))]
    return {
        entry.release: entry.present
        for book in books
        for entry in book.entries
        if entry.run == plan.run_id and entry.present is not None
    }


def opened_anywhere(out: Path, plan: Plan) -> dict[int, Ints]:
    """release -> opened vector, from the files of all parties and of the owners in `out`. Errors: two that differ."""
    result: dict[int, Ints] = {}
    for path in sorted(out.glob("*.opened.bin")):
        for release, values in read_opened(path, plan.dimension).items():
            if release in result and (result[release] != values).any():
                raise UsageError(
                    f"all files must hold the same opened vectors; release {release} differs in {path}; restore the "
                    "run directory"
                )
            result[release] = values
    return result
