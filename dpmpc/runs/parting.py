"""An owner's records in the parts of a plan over several machines: which of them a release or a stage is of.

The parts follow from the plan and from the records' ids: their places in a file that stays as it is, or a column.
Before anything is sent a digest of these is on disk in the owner's account, under the name of the assignment; records
that come with other ids to the same assignment are refused, for one that moved would be in both parts.
"""

import hashlib
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmpc.aggregation.owner.accounts import account_of
from dpmpc.aggregation.plan.plan import Plan
from dpmpc.data.dataset import Rows, Split
from dpmpc.data.files import files_digest
from dpmpc.data.planned import OTHER_SIZES, other_sizes
from dpmpc.data.spelling import canonical
from dpmpc.data.table import Ints, Table
from dpmpc.errors import RecordError, UsageError
from dpmpc.privacy.assignment import Parted
from dpmpc.runs.request import Request


def split_of(request: Request, plan: Plan, owner: int) -> Split | None:
    """What says which rows of an owner the plan's own releases are of, none for a test; None: all."""
    parted = plan.source.parted(plan.data_id)
    if parted is None:
        return None

    def by_plan(table: Table, groups: Ints | None, by_seed: Rows) -> Rows:
        mine = rows_of(request, plan, parted, plan.part, owner, table)
        return np.flatnonzero(mine).astype(np.int64), np.empty(0, dtype=np.int64)

    return by_plan


def rows_of(request: Request, whole: Plan, parted: Parted, label: str, owner: int, table: Table) -> NDArray[np.bool_]:
    """(n,) which rows of an owner's table are in the part of this label. Errors: they are not as many as planned; no
    ids, or others than an earlier run had, before anything is spent."""
    planned = (parted.whole[owner],)
    if (table.n,) != planned:
        raise RecordError(other_sizes(planned, (table.n,)), OTHER_SIZES)
    name, ids = _identified(request, table)
    _keep(request, whole, parted, owner, name)
    return parted.rows(label.rpartition("/")[2], ids(), owner)


def _identified(request: Request, table: Table) -> tuple[str, Callable[[], Any]]:
    """What the ids are, with their digest, and the ids. Errors: there are none."""
    if request.ids is not None:
        ids = ids_of(table, request.ids)
        digest = hashlib.sha256("\0".join(sorted(ids)).encode()).hexdigest()
        return f"ids {digest[:32]}", lambda: ids
    if request.database or request.source is None:
        raise UsageError(
            "held-out records are known again by an id; rows of a database have no place; name the column of their ids "
            "with <<ids>>"
        )
    return f"places in {files_digest(request.source)[:32]}", lambda: range(table.n)


def _keep(request: Request, whole: Plan, parted: Parted, owner: int, name: str) -> None:
    """Notes the ids in the owner's account. Errors: it has others."""
    account = account_of(whole, request.account, callers=request.source is not None)
    if account is None:
        return
    whose = f"{parted.assignment.identity} of owner {owner}: "
    known = [each for each in account.assignments(whole.data_id) if each.startswith(whose)]
    if any(each != whose + name for each in known):
        raise UsageError(
            "records are held out by their place in a file that stays as it is, or by their ids; since an earlier run "
            "on this data id these are others, or are told apart otherwise; use the file as it was, or name the "
            "column of ids that it had with <<ids>>, or plan with another data_id"
        )
    parts = dict(parted.assignment.parts)
    account.assignment(whole.data_id, whose + name, parts, "record", parted.assignment)


def ids_of(table: Table, name: str) -> list[str]:
    """The id of each row, as text. Errors: a row has none."""
    if table.one(f"count(*) FILTER (WHERE {table.missing(name)})")[0]:
        raise UsageError(f"every record has an id; '{name}' of {table.source} is empty in some; fill it in")
    return [canonical(str(row[0])) for row in table.rows(f"CAST({table.text(name)} AS VARCHAR)")]


def check_alone(plan: Plan, owner: int | None) -> None:
    """Errors: one process plays several owners of a plan that parts their records."""
    if owner is None and plan.source.parted(plan.data_id) is not None:
        raise UsageError(
            "each owner of this plan holds out records of its own, by a process of its own; got <<index=owners>>; "
            "start each with <<index=owner0>> and so on, or plan with <<test_fraction=0>>"
        )
