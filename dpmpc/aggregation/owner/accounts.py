"""Which account a plan's releases count in, and what they are held against."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Self

from dpmpc.aggregation.plan.here import Here
from dpmpc.aggregation.plan.plan import Plan
from dpmpc.aggregation.plan.spending import held_against
from dpmpc.folders import said_path
from dpmpc.lazy import dataclass
from dpmpc.privacy.account import Account, account_folder
from dpmpc.privacy.budget import Budget
from dpmpc.privacy.composition import parse_budget
from dpmpc.privacy.data_names import data_digest
from dpmpc.privacy.unnamed import process_folder

Choose = Callable[[Plan], Account | None]


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
    return Account(account_folder() if plan.of_named_data else process_folder(), keeps)


def _none(plan: Plan) -> Account | None:
    return None


@dataclass(frozen=True)
class Books:
    """Where the releases of a run on this machine count: the budget that ledgers are held against, and which account
    remembers a plan's."""

    budget: Budget | None = None
    account: Choose = _none

    @classmethod
    def of(cls, here: Here, *, callers: bool = True) -> Self:
        """As the process says. `callers`: whether the records are the caller's, whatever their name."""
        budget = None if here.budget is None else Budget(*parse_budget(here.budget))
        return cls.kept(here.account, budget, keeps=here.out is not None, callers=callers)

    @classmethod
    def kept(
        cls, said: Path | str | None, budget: Budget | None = None, *, keeps: bool = True, callers: bool = True
    ) -> Self:
        """In the account of this folder, or the usual one. `keeps`, `callers`: as of `account_of`."""
        return cls(budget, partial(account_of, said=said, keeps=keeps, callers=callers))

    def limit(self, plan: Plan) -> Budget | None:
        """The budget, with what the plan's account remembers."""
        return held_against(self.budget, self.account(plan))


NO_BOOKS = Books()  # nothing counts: for what dpmpc itself makes
