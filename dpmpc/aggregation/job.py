"""Which party of which run a process is, where everybody is, where it writes: what it is given to do."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dpmpc.aggregation.asked import FIRST_ATTEMPT, Attempt
from dpmpc.aggregation.plan import Plan
from dpmpc.mpc.addresses import Endpoint
from dpmpc.mpc.pulse import STALL
from dpmpc.privacy.budget import Budget


@dataclass(frozen=True)
class PartyJob:
    """Which party of which attempt of a run this is, where everybody listens, where it writes.

    `sockets`: file descriptors of sockets that are bound already, for parties and for owners. `tls`: the directory of
    this party's certificate and key. `threads`: those that compute. `budget`: what the ledgers are held against.
    `stall`: seconds of silence after which a process counts as lost. `secret`: what all processes of a run of one
    machine know, and no other program on it. `outlives`: whether the run goes on without other parties where it can;
    on one machine, whoever started them ends it.
    """

    plan: Plan
    index: int
    addresses: Sequence[Endpoint]
    owner_addresses: Sequence[Endpoint]
    out: Path
    wait: float
    attempt: Attempt = FIRST_ATTEMPT
    tls: Path | None = None
    link: str = "tcp"
    sockets: tuple[int, int] | None = None
    threads: int = 1
    budget: Budget | None = None
    stall: float = STALL
    secret: str = ""
    outlives: bool = False

    def to_json(self) -> dict[str, Any]:
        """The arguments of the role `serve`."""
        return {
            "plan": self.plan.to_text(),
            "index": self.index,
            "addresses": [[e.host, e.port] for e in self.addresses],
            "owner_addresses": [[e.host, e.port] for e in self.owner_addresses],
            "out": str(self.out),
            "wait": self.wait,
            "attempt": [self.attempt.number, self.attempt.first_release],
            "tls": None if self.tls is None else str(self.tls),
            "link": self.link,
            "sockets": self.sockets,
            "threads": self.threads,
            "budget": None if self.budget is None else self.budget.to_json(),
            "stall": self.stall,
            "secret": self.secret,
            "outlives": self.outlives,
        }

    @staticmethod
    def from_json(value: dict[str, Any]) -> "PartyJob":
        """The job that `to_json` wrote."""
        return PartyJob(
            plan=Plan.from_text(value["plan"]),
            index=value["index"],
            addresses=[Endpoint(*pair) for pair in value["addresses"]],
            owner_addresses=[Endpoint(*pair) for pair in value["owner_addresses"]],
            out=Path(value["out"]),
            wait=value["wait"],
            attempt=Attempt(*value["attempt"]),
            tls=None if value["tls"] is None else Path(value["tls"]),
            link=value["link"],
            sockets=None if value["sockets"] is None else tuple(value["sockets"]),
            threads=value["threads"],
            budget=None if value["budget"] is None else Budget.from_json(value["budget"]),
            stall=value["stall"],
            secret=value["secret"],
            outlives=value["outlives"],
        )
