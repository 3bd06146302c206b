"""The records of all owners in one table, as a run reads them."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

from dpmpc.aggregation.plan.plan import Plan
from dpmpc.intake.table import Ints, Table
from dpmpc.lazy import dataclass
from dpmpc.records.mapping import owners_of
from dpmpc.run.run import ReadOnce
from dpmpc.show import notebook


def _nothing(plan: Plan) -> None:
    pass


@dataclass(frozen=True)
class OfTable(ReadOnce):
    """The records of a table, of which all owners are played here. `asks`: what a notebook
    calls the run; `owner`: whose each record is, (n,), or SQL for that, by which it is read when a release begins;
    `asked`: told of each release before anything of it is spent, and may refuse it."""

    asks: str
    table: Table
    owner: str | Ints
    asked: Callable[[Plan], None] = _nothing

    def ready(self, plan: Plan) -> None:
        self.asked(plan)

    def vectors(self, plan: Plan) -> Any:
        owner = owners_of(self.table, self.owner) if isinstance(self.owner, str) else self.owner
        return plan.source.means(self.table, owner, plan.sizes)

    def shows(self, plan: Plan) -> AbstractContextManager[Callable[..., None]]:
        stage = plan.run_id.partition("+")[2]
        return notebook.releases(f"{self.asks}, {stage}" if stage else self.asks, plan.releases)
