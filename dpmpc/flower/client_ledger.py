"""What clients spend: a ledger of all clients of one run on this machine, which counts in their account.

A client's process lives for a message, and several may serve one organisation, all on the same data: so a release has
one line, with the token of the attempt, whoever of them seals first. The line is on disk before the first share is
made. It merges with a party's line of the same attempt, where both are at hand.
"""

import hashlib
from pathlib import Path

from dpmpc.aggregation.owner.own_ledger import OwnLedger
from dpmpc.aggregation.plan.asked import Attempt
from dpmpc.aggregation.plan.limits import Limits
from dpmpc.aggregation.plan.plan import Plan
from dpmpc.errors import UsageError
from dpmpc.flower.sealing import Purpose
from dpmpc.privacy.budget import Budget
from dpmpc.privacy.composition import parse_budget
from dpmpc.privacy.ledger import Ledger
from dpmpc.run.here import Books


def clients_ledger(folder: Path, run_id: str) -> Path:
    """Where it is, in the folder of an account."""
    return folder / "owners" / hashlib.sha256(run_id.encode()).hexdigest()[:16] / "ledger_clients.jsonl"


def check_budget_has_data(limits: Limits) -> None:
    """Errors: UsageError for a budget of records that have no name: whoever makes the plan could give a fresh one."""
    if limits.budget is not None and limits.data_id is None:
        raise UsageError("a budget is for the records of one data id; the limits name none; add data_id to them")


def spend(plan: Plan, purpose: Purpose, limits: Limits, account: Path | None) -> None:
    """A line for the release of this attempt, unless it has one. To be called by one process at a time. Errors:
    UsageError for a release that another attempt has spent, a budget that is passed, an account that cannot be written.
    """
    counts = Books(account).account(plan)
    assert counts is not None
    path, token = clients_ledger(counts.folder, plan.run_id), purpose.token.hex()
    entries = Ledger.read(path).entries if path.exists() else ()
    if any(line.release == purpose.release and line.token == token for line in entries):
        return
    attempt = Attempt(0, purpose.release)
    budget = None if limits.budget is None else Budget(*parse_budget(limits.budget))
    with OwnLedger(path, plan, attempt, budget, counts, "clients") as ledger:
        ledger.spend(attempt, purpose.release, token)
