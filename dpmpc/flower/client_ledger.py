"""What clients spend: a ledger of all clients of one plan on this machine, which counts in their account.

A client's process lives for a message, and several may serve one organisation, all on the same data: so a release has
one line, with the token of the attempt, whoever of them is asked first. The line is on disk before a vector is
computed. It merges with a party's line of the same attempt, where both are at hand.

A ledger is of one plan, with its parties' keys, whatever run's name that plan has; and a line that is there already
pays for what is exactly its own: plan, price, release, attempt. Another plan of the same name has a ledger of its own.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from dpmpc.aggregation.owner.accounts import Books
from dpmpc.aggregation.owner.own_ledger import OwnLedger
from dpmpc.aggregation.plan.asked import Attempt
from dpmpc.aggregation.plan.limits import Limits
from dpmpc.aggregation.plan.spending import entry_of
from dpmpc.errors import UsageError
from dpmpc.flower.prepared import Prepared
from dpmpc.flower.sealing import Purpose
from dpmpc.privacy.budget import Budget
from dpmpc.privacy.composition import parse_budget
from dpmpc.privacy.entry import Entry
from dpmpc.privacy.ledger import Ledger


def clients_ledger(folder: Path, digest: bytes) -> Path:
    """Where it is, in the folder of an account. `digest`: of the plan and the parties' keys."""
    return folder / "owners" / digest.hex()[:32] / "ledger_clients.jsonl"


@contextmanager
def spending(
    prepared: Prepared, purpose: Purpose, limits: Limits, account: Path | None
) -> Iterator[Callable[[], None]]:
    """The release fits into the budget while inside; what is given writes its line, unless it has one, and the line is
    on disk when it returns. To be entered by one process at a time. Errors: UsageError for a release that has another
    line, a budget that is passed, an account that cannot be written."""
    plan = prepared.plan
    counts = Books.kept(account).account(plan)
    assert counts is not None
    path, token = clients_ledger(counts.folder, prepared.digest), purpose.token.hex()
    attempt = Attempt(0, purpose.release)
    mine = entry_of(plan, attempt, purpose.release, token=token)
    lines = Ledger.read(path).entries if path.exists() else ()
    if there := [line for line in lines if line.release == purpose.release]:
        if len(there) > 1 or not pays(there[0], mine):
            raise UsageError(
                f"a release has one line, of one plan, price and attempt; {path} has another for release "
                f"{purpose.release}; skip that release, or prepare a new run"
            )
        yield lambda: None
        return
    budget = None if limits.budget is None else Budget(*parse_budget(limits.budget))
    with OwnLedger(path, plan, attempt, budget, counts, "clients") as ledger:
        yield lambda: ledger.spend(attempt, purpose.release, token)


def pays(line: Entry, mine: Entry) -> bool:
    """Whether a line that is there is the one that is due: of the same price, release and attempt."""
    return line == mine
