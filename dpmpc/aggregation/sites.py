"""One owner, one party, or both, on a machine of its own: what `dpmpc train -I` starts, for other programs."""

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from dpmpc.aggregation.aggregator import Aggregator
from dpmpc.aggregation.beginning import attempt_of
from dpmpc.aggregation.both import PartyHere, named
from dpmpc.aggregation.encoding import decode
from dpmpc.aggregation.grid import Floats
from dpmpc.aggregation.guarantee import Promise
from dpmpc.aggregation.job import PartyJob
from dpmpc.aggregation.limits import NO_LIMITS, Limits
from dpmpc.aggregation.owner_gate import OwnerGate
from dpmpc.aggregation.party import check_index, run_party
from dpmpc.aggregation.plan import Plan
from dpmpc.errors import DpmpcError, UsageError
from dpmpc.mpc.addresses import Endpoint, check_loopback, owner_endpoints, parse_endpoints
from dpmpc.mpc.pulse import STALL, check_stall
from dpmpc.privacy.budget import Budget
from dpmpc.processes.cores import threads_for
from dpmpc.processes.logs import log_to
from dpmpc.processes.supervisor import run_here

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


def check_apart(plan: Plan) -> None:
    """Errors: UsageError for one role alone where every owner is a party."""
    if plan.role == "both":
        raise UsageError(
            "in this plan every owner is a party, one process a site; one role was asked for; use Site, or plan with "
            'role="apart"'
        )


def _party_job(
    plan: Plan,
    index: int,
    addresses: Sequence[str],
    tls: Path | str | None,
    out: Path,
    wait: float,
    stall: float,
    threads: int | None,
    limits: Limits,
) -> PartyJob:
    check_index(plan, index)
    budget = None
    if limits.budget is not None:
        if limits.data_id is None:  # whoever makes the plan could give the records a fresh name
            raise UsageError("a budget is for the records of one data id; the limits name none; add data_id to them")
        budget = Budget.below(limits.budget, None, out)
    found = endpoints(plan, addresses, tls)
    return PartyJob(
        plan,
        index,
        found,
        owner_endpoints(found),
        out,
        wait,
        attempt=attempt_of(plan),
        tls=None if tls is None else Path(tls),
        threads=threads or threads_for(1),
        budget=budget,
        stall=check_stall(stall),
        outlives=True,
    )


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
        stall: float = STALL,
        limits: Limits = NO_LIMITS,
    ) -> None:
        """Connects with all parties. `addresses`: host:port of each, in order; they listen for owners on port + n.
        `tls`: the folder with ca.crt, owner<index>.crt and .key. `limits`: what the plan must keep, or nothing is sent.
        Errors: UsageError, PeerError."""
        plan = read_plan(plan)
        limits.check(plan)
        if limits.budget is not None:
            raise UsageError(
                "a budget is held against ledgers, which parties keep; an Owner keeps none; give it to Party, or start "
                "the owner with dpmpc train --budget"
            )
        check_apart(plan)
        if not 0 <= index < plan.owners:
            raise UsageError(f"owners are numbered from 0; got owner {index} of {plan.owners}; mend the index")
        self._aggregator = Aggregator.of_plan(
            plan,
            addresses=owner_endpoints(endpoints(plan, addresses, tls)),
            owners=(index, index + 1),
            tls=None if tls is None else Path(tls),
            wait=wait,
            stall=stall,
            attempt=attempt_of(plan),
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

    def catch_up(self) -> list[Floats]:
        """The noisy means that were opened before this process came, or came again, in order; empty at the start of a
        run. To be called before `mean` in a run that is carried on, or that this owner joins late."""
        plan = self._aggregator.plan
        return [decode(plan, release.total, release.present) for release in self._aggregator.catch_up()]

    @property
    def releases_left(self) -> int:
        """How many releases are still to be made."""
        return self._aggregator.plan.releases - self._aggregator.next

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


class Site(Owner):
    """One owner and the party of the same number, in this process: for a plan in which every owner is a party.

    with Site("plan.json", index=0, addresses=["a.example:11365", ...], tls="keys", out="run") as site:
        mean = site.mean(vector)
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
        stall: float = STALL,
        threads: int | None = None,
        limits: Limits = NO_LIMITS,
    ) -> None:
        """As `Owner` and `Party`; one log for both, in `out`. What a role fails with begins with `as owner` or `as
        party`. Errors: UsageError, PeerError."""
        plan, out = read_plan(plan), Path(out)
        limits.check(plan)
        if plan.role != "both":
            raise UsageError(
                'a site needs a plan in which every owner is a party; this one has them apart; make it with role="both"'
            )
        job = _party_job(plan, index, addresses, tls, out, wait, stall, threads, limits)
        out.mkdir(mode=0o700, parents=True, exist_ok=True)
        out.chmod(0o700)
        plan.write(out / f"plan_{index}.json")
        log = os.open(out / f"site_{index}.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        self._log = os.fdopen(log, "a", encoding="utf-8")
        self._party = PartyHere(job, log_to(self._log), lambda event, **fields: None)
        try:
            self._aggregator = Aggregator.of_plan(
                plan,
                parties=self._party,
                addresses=job.owner_addresses,
                owners=(index, index + 1),
                tls=job.tls,
                wait=wait,
                stall=stall,
                attempt=job.attempt,
            )
        except DpmpcError as error:
            self._end()
            raise named(f"owner {index}", error) from None

    def close(self) -> None:
        """Leave the run, both roles; after all planned releases in agreement with the others."""
        try:
            complete = self._aggregator.next >= self._aggregator.plan.releases
            self._aggregator.close()
            if complete:
                self._party.wait()
        finally:
            self._end()

    def _end(self) -> None:
        self._party.end()
        self._log.close()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self.close()
        else:
            self._aggregator.__exit__(kind, error, trace)
            self._end()


class Party:
    """One party of a plan; `run` returns when the run is over. After an interruption the same call carries the run on,
    when all parties are started again with their folders.

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
        stall: float = STALL,
        threads: int | None = None,
        limits: Limits = NO_LIMITS,
    ) -> None:
        """`out`: where its ledger, transcript and log go. `threads`: those that compute; by default as many as this
        process has cores. `limits`: what the plan must keep; their budget counts every ledger below the folder that
        `out` is in. Errors: UsageError."""
        plan, out = read_plan(plan), Path(out)
        limits.check(plan)
        check_apart(plan)
        self._job = _party_job(plan, index, addresses, tls, out, wait, stall, threads, limits)
        self._make_gate: Callable[..., OwnerGate] | None = None  # as of `run_party`

    def run(self) -> None:
        """Connects, makes noise, opens every planned release. Errors: PeerError when another process leaves or does
        not come, UsageError for a taken port or a ledger in use."""
        job = self._job
        job.out.mkdir(mode=0o700, parents=True, exist_ok=True)
        job.out.chmod(0o700)
        job.plan.write(job.out / f"plan_{job.index}.json")
        path = job.out / f"party_{job.index}.log"
        with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), "a", encoding="utf-8") as file:
            run_here(lambda: run_party(job, log_to(file), lambda event, **fields: None, make_gate=self._make_gate))
