"""Where one process of a run is, and in which books its releases count."""

from collections.abc import Callable, Sequence
from pathlib import Path

from dpmpc.aggregation.owner.accounts import account_of
from dpmpc.aggregation.owner.company import Started
from dpmpc.aggregation.plan.plan import Plan
from dpmpc.aggregation.plan.spending import held_against
from dpmpc.lazy import dataclass
from dpmpc.mpc.transport.addresses import Endpoint
from dpmpc.mpc.transport.heartbeat import STALL, WAIT
from dpmpc.privacy.account import Account
from dpmpc.privacy.budget import Budget
from dpmpc.privacy.composition import parse_budget


@dataclass(frozen=True)
class Books:
    """Which account, and which budget, the releases of a run count in: chosen here, for every stage of it.

    `said`: the account's folder, where one was stated. `budget`: what all releases on the data may spend, with the
    ledgers that count too. `callers`: whether the records are the caller's, whatever they are called. `keeps`: whether
    the ledgers of the run stay where they are. `counts`: False for releases of nobody's records."""

    said: Path | str | None = None
    budget: Budget | None = None
    callers: bool = True
    keeps: bool = True
    counts: bool = True

    def account(self, plan: Plan) -> Account | None:
        """The account that the releases of this plan count in; None for records that count nowhere."""
        if not self.counts:
            return None
        return account_of(plan, self.said, keeps=self.keeps, callers=self.callers)

    def limit(self, plan: Plan) -> Budget | None:
        """The budget, with what the plan's account remembers."""
        return held_against(self.budget, self.account(plan))


NOWHERE = Books(counts=False)


def budget_below(text: str | None, ledgers: Path | str | None, out: Path) -> Budget | None:
    """The budget written "EPS,DELTA", as `Budget.below` has it."""
    return None if text is None else Budget.below(parse_budget(text), ledgers, out)


def budget_alone(text: str | None) -> Budget | None:
    """The budget written "EPS,DELTA", over the account's ledgers alone."""
    return None if text is None else Budget(*parse_budget(text))


@dataclass(frozen=True)
class Here:
    """Where one process of a run is. `out`: its folder, where it has one. `parties`: those that were started here, by
    somebody who ends them, or the one of this process; None: they are started for each release's sake, or listen at
    `addresses`. `owners`: (first, end) of those whose records are here, by default all. `own_ledger`: where this
    process writes its own, which it has where no party here does, and `called` whose it is. `say`: told who is waited
    for."""

    out: Path | None = None
    books: Books = Books()
    parties: Started | None = None
    addresses: Sequence[Endpoint] | None = None
    owners: tuple[int, int] | None = None
    tls: Path | None = None
    wait: float = WAIT
    stall: float = STALL
    own_ledger: Path | None = None
    called: str = ""
    say: Callable[[str], None] = lambda text: None
