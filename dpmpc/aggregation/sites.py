"""One owner, or one party, on a machine of its own: what `dpmpc train -I` starts, for other programs."""

import os
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from dpmpc.aggregation.aggregator import Aggregator
from dpmpc.aggregation.grid import Floats
from dpmpc.aggregation.guarantee import Promise
from dpmpc.aggregation.party import PartyJob, check_index, run_party
from dpmpc.aggregation.plan import Plan
from dpmpc.errors import UsageError
from dpmpc.mpc.addresses import Endpoint, check_loopback, owner_endpoints, parse_endpoints
from dpmpc.processes.supervisor import run_here
from dpmpc.processes.worker import log_to

WAIT = 600.0  # seconds for processes on other machines to be started


def read_plan(plan: Plan | Path | str) -> Plan:
    """The plan, or the one in the file. Errors: UsageError where there is none."""
    return plan if isinstance(plan, Plan) else Plan.read(plan)


def endpoints(plan: Plan, addresses: Sequence[str], tls: Path | str | None) -> list[Endpoint]:
    """Where the plan's parties listen. Errors: UsageError for another number of them, or without TLS one that is not
    of this machine."""
    found = parse_endpoints(addresses)
    if len(found) != plan.parties:
        raise UsageError(f"addresses has one host:port a party; got {len(found)} for {plan.parties} parties; mend it")
    if tls is None:
        check_loopback(e.host for e in found)
    return found


class Owner:
    """One owner of a plan: sends the shares of its vector to the parties, and gets every opened sum.

    with Owner("plan.json", index=0, addresses=["a.example:11365", ...], tls="keys") as owner:
        mean = owner.mean(vector)
    """

    def __init__(
        self,
        plan: Plan | Path | str,
        index: int,
        addresses: Sequence[str],
        *,
        tls: Path | str | None = None,
        wait: float = WAIT,
    ) -> None:
        """Connects with all parties. `addresses`: host:port of each, in order; they listen for owners on port + n.
        `tls`: the folder with ca.crt, owner<index>.crt and .key. Errors: UsageError, PeerError."""
        plan = read_plan(plan)
        if not 0 <= index < plan.owners:
            raise UsageError(f"owners are numbered from 0; got owner {index} of {plan.owners}; mend the index")
        self._aggregator = Aggregator.of_plan(
            plan,
            addresses=owner_endpoints(endpoints(plan, addresses, tls)),
            owners=(index, index + 1),
            tls=None if tls is None else Path(tls),
            wait=wait,
        )

    @property
    def guarantee(self) -> Promise:
        """What all planned releases together keep."""
        return self._aggregator.guarantee

    def mean(self, vector: Any) -> Floats:
        """The noisy mean of all owners' vectors, (d,): one release. `vector` (d,): this owner's own, clipped here."""
        return self._aggregator.mean(vector)

    def sum(self, vector: Any) -> Floats:
        """The noisy sum of all owners' vectors, (d,): one release."""
        return self._aggregator.sum(vector)

    def report(self) -> dict[str, Any]:
        """As `Aggregator.report`."""
        return self._aggregator.report()

    def close(self) -> None:
        """Leave the run; after all planned releases in agreement with the parties."""
        self._aggregator.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._aggregator.__exit__(kind, error, trace)


class Party:
    """One party of a plan; `run` returns when the run is over.

    Party("plan.json", index=1, addresses=["a.example:11365", ...], tls="keys", out="run").run()
    """

    def __init__(
        self,
        plan: Plan | Path | str,
        index: int,
        addresses: Sequence[str],
        *,
        tls: Path | str | None = None,
        out: Path | str,
        wait: float = WAIT,
    ) -> None:
        """`out`: where its ledger, transcript and log go. Errors: UsageError."""
        plan, out = read_plan(plan), Path(out)
        check_index(plan, index)
        found = endpoints(plan, addresses, tls)
        folder = None if tls is None else Path(tls)
        self._job = PartyJob(plan, index, found, owner_endpoints(found), out, wait, tls=folder)

    def run(self) -> None:
        """Connects, makes noise, opens every planned release. Errors: PeerError when another process leaves or does
        not come, UsageError for a taken port or a ledger in use."""
        job = self._job
        job.out.mkdir(mode=0o700, parents=True, exist_ok=True)
        job.plan.write(job.out / f"plan_{job.index}.json")
        path = job.out / f"party_{job.index}.log"
        with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), "a", encoding="utf-8") as file:
            run_here(lambda: run_party(job, log_to(file), lambda event, **fields: None))
