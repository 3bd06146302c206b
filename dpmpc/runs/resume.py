"""Carrying on an interrupted run: what was spent, what was opened, where the next attempt begins."""

from dataclasses import replace
from pathlib import Path

from dpmpc.aggregation.plan import Plan, plan_path
from dpmpc.aggregation.transcript import read_opened
from dpmpc.errors import UsageError
from dpmpc.mpc.field import Words
from dpmpc.privacy.ledger import Ledger


def resume(out: Path, fresh: Plan) -> tuple[Plan, dict[int, Words]]:
    """(the plan of the next attempt, release -> opened vector of the earlier ones) for the interrupted run in `out`.

    A release that any party's ledger has a line for is spent, opened or not; the next attempt goes on after it, so the
    run never makes more releases than were planned. Errors: the options or records lead to another plan than the one in
    `out`; nothing is left to do.
    """
    plan = Plan.read(plan_path(out))
    expected = replace(fresh, run_id=plan.run_id, attempt=plan.attempt, first_release=plan.first_release)
    if expected != plan:
        raise UsageError(
            f"a resumed run must have the records and options it began with; {out} has another plan; start a new run"
        )
    if (out / "report.json").exists():
        raise UsageError(f"--resume is for interrupted runs; {out} is finished; see its report.json")
    known = opened_anywhere(out, plan)
    spent = max((spent_releases(path, plan.run_id) for path in sorted(out.glob("ledger_*.jsonl"))), default=0)
    return plan.resumed(max(spent, max(known, default=-1) + 1)), known


def spent_releases(ledger: Path, run_id: str) -> int:
    """One more than the number of the run's last release with a line in this ledger; a torn last line is one more."""
    book = Ledger.read(ledger)
    torn = not ledger.read_bytes().endswith(b"\n") and book.lines > 0
    return max((entry.release + 1 for entry in book.entries if entry.run == run_id), default=0) + torn


def opened_anywhere(out: Path, plan: Plan) -> dict[int, Words]:
    """release -> opened vector, from the files of all parties and of the owners in `out`. Errors: two that differ."""
    result: dict[int, Words] = {}
    for path in sorted(out.glob("*.opened.bin")):
        for release, values in read_opened(path, plan.dimension).items():
            if release in result and (result[release] != values).any():
                raise UsageError(
                    f"all files must hold the same opened vectors; release {release} differs in {path}; restore the "
                    "run directory"
                )
            result[release] = values
    return result
