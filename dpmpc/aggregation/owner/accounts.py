"""Which account a plan's releases count in."""

from pathlib import Path

from dpmpc.aggregation.plan.asked import NAMELESS, data_digest
from dpmpc.aggregation.plan.plan import Plan
from dpmpc.folders import said_path
from dpmpc.privacy.account import Account, account_folder
from dpmpc.privacy.unnamed import process_folder


def account_of(
    plan: Plan, said: Path | str | None = None, *, keeps: bool = True, callers: bool = False
) -> Account | None:
    """The account that a plan's releases count in: as `said`; else none for records dpmpc brings, the process's for
    data without a name, and the user's for every other. `keeps`: whether the run's ledgers stay where they are;
    `callers`: whether the records are the caller's, whatever their name."""
    if said is not None:
        return Account(said_path(said, "account").expanduser().absolute(), keeps)
    if not callers and plan.data_id == data_digest(plan.data):
        from dpmpc.records import NAMES

        if plan.data in NAMES:
            return None
    return Account(process_folder() if plan.data_id in NAMELESS else account_folder(), keeps)
