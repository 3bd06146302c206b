"""Which party of which run a process is, where everybody is, where it writes: what it is given to do."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from dpmpc.aggregation.plan.asked import FIRST_ATTEMPT, Attempt
from dpmpc.aggregation.plan.here import Here
from dpmpc.aggregation.plan.plan import Plan
from dpmpc.codec import of_json, to_json
from dpmpc.lazy import dataclass
from dpmpc.mpc.transport.addresses import Endpoint
from dpmpc.privacy.account import Account
from dpmpc.privacy.budget import Budget


@dataclass(frozen=True)
class PartyJob:
    """Which party of which attempt of a run this is, where everybody listens, and what it says for itself (`here`).

    `sockets`: file descriptors of sockets that are bound already, for parties and for owners. `budget`: what the
    ledgers are held against. `account`: which remembers them. `secret`: what all processes of a run of one machine
    know, and no other program on it. `tolerates_loss`: whether the run goes on without other parties where it can; on
    one machine, whoever started them ends it. `says`: of its plan, to those that have another (`fields.marks`).
    `followed`: whether another stage of the run follows, at whose gate those that missed the end of this one get it.
    `begins`: whether the run begins with this one.
    """

    plan: Plan
    index: int
    addresses: Sequence[Endpoint]
    owner_addresses: Sequence[Endpoint]
    here: Here
    attempt: Attempt = FIRST_ATTEMPT
    link: str = "tcp"
    sockets: tuple[int, int] | None = None
    budget: Budget | None = None
    account: Account | None = None
    secret: str = ""
    tolerates_loss: bool = False
    followed: bool = False
    begins: bool = True
    says: str = ""

    @property
    def out(self) -> Path:
        """Where it writes."""
        return self.here.folder

    def to_json(self) -> dict[str, Any]:
        """The arguments of the role `serve`."""
        return to_json(self)

    @staticmethod
    def from_json(value: Mapping[str, Any], plans: Mapping[str, Plan] | None = None) -> "PartyJob":
        """The job that `to_json` wrote. `plans`: those that are known here already, by their text."""
        plan = (plans or {}).get(value["plan"])
        if plan is None:
            return of_json(PartyJob, value)
        return of_json(PartyJob, {name: part for name, part in value.items() if name != "plan"}, plan=plan)
