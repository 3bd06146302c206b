"""What an owners' process, or a process of a stage, is given to do."""

from collections.abc import Callable, Sequence
from pathlib import Path

from dpmpc.aggregation.owner.accounts import Books
from dpmpc.aggregation.owner.company import Started
from dpmpc.aggregation.party.job import PartyJob
from dpmpc.aggregation.plan.here import Here
from dpmpc.aggregation.plan.plan import Plan
from dpmpc.lazy import dataclass
from dpmpc.mpc.transport.addresses import Endpoint
from dpmpc.planning.request import Request
from dpmpc.privacy.budget import Budget
from dpmpc.processes.worker import Log
from dpmpc.run.files import OWN_LEDGER
from dpmpc.run.reserve import budget_below
from dpmpc.run.seat import Seat
from dpmpc.run.stages import StageJob

SAID = "opened.json"  # what the source of a plan says of the sum, where it is no training and no question


Emit = Callable[..., None]


def says(log: Log, emit: Emit) -> Log:
    """Says a line in the log, and to who is there."""

    def say(text: str) -> None:
        log(text)
        emit("stage", text=text)

    return say


@dataclass(frozen=True)
class OwnersJob:
    """What to do. `here`: what this process says for itself, its folder first. `started`: Unix time at which the user's
    command began.

    `addresses`: where parties elsewhere listen for owners; None: the parties are started here, doing `role`. `plan`:
    made before; by default it is made here. `owner`: the only one to play here; by default all. `party`: of this
    process too, with the owner's number; its end of the connections. `check`: told the plan before anything is sent,
    and may refuse it; the lines that it returns go into the log. `budget`: what this process's own ledger is held
    against, with parties elsewhere. `stage`: what the plan is a stage of, if it is one. `begins`: whether no stage was
    before, so that the owner is told what becomes of its records.
    """

    request: Request
    here: Here
    started: float
    resume: bool = False
    addresses: Sequence[Endpoint] | None = None
    role: str | None = None
    plan: Plan | None = None
    owner: int | None = None
    check: Callable[[Plan], list[str]] = lambda plan: []
    party: PartyJob | None = None
    budget: Budget | None = None
    stage: StageJob | None = None
    begins: bool = False

    @property
    def out(self) -> Path:
        """Where it writes."""
        return self.here.folder

    @property
    def books(self) -> Books:
        """Where this process's releases count. With parties elsewhere the budget is this process's own; else it is over
        the ledgers below the folder of the run's directory, unless another is named."""
        request = self.request
        if self.addresses is not None:
            return request.books(self.budget)
        return request.books(budget_below(request.budget, request.ledgers, self.out))

    def seat(self, say: Callable[[str], None], parties: Started | None = None) -> Seat:
        """Its seat in the run. Its own ledger, where parties are elsewhere: theirs are not at hand. A party of this
        process keeps its own, and there is none of the owner's."""
        alone = self.addresses is not None and self.party is None
        return Seat(
            self.here,
            self.books,
            parties,
            self.addresses,
            owners=None if self.owner is None else (self.owner, self.owner + 1),
            own_ledger=self.out / OWN_LEDGER if alone else None,
            called="" if self.owner is None else f"owner {self.owner}",
            say=say,
        )
