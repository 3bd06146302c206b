"""One owner, one party, or both, on a machine of its own: what `dpmpc train -I` starts, for other programs."""

import contextlib
import hashlib
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self, Unpack

from dpmpc.aggregation.owner.accounts import account_of
from dpmpc.aggregation.owner.aggregator import Aggregator
from dpmpc.aggregation.owner.encoding import decode
from dpmpc.aggregation.owner.own_ledger import OwnLedger
from dpmpc.aggregation.party.beside_owner import PartyHere, named
from dpmpc.aggregation.party.job import PartyJob
from dpmpc.aggregation.party.owner_gate import OwnerGate
from dpmpc.aggregation.party.party import check_index, run_party
from dpmpc.aggregation.plan.grid import Floats
from dpmpc.aggregation.plan.guarantee import Promise
from dpmpc.aggregation.plan.here import AloneKeywords, Here, PartyKeywords
from dpmpc.aggregation.plan.limits import NO_LIMITS, Limits
from dpmpc.aggregation.plan.plan import Plan
from dpmpc.aggregation.wire.refusal import refusal_told
from dpmpc.errors import DpmpcError, UsageError
from dpmpc.folders import OUT, make_folder
from dpmpc.mpc.transport.addresses import owner_endpoints
from dpmpc.mpc.transport.site_keys import list_for
from dpmpc.privacy.budget import Budget
from dpmpc.privacy.composition import parse_budget
from dpmpc.processes.cores import threads_for
from dpmpc.processes.logs import log_to
from dpmpc.processes.supervisor import run_here
from dpmpc.settings import keywords, said


def read_plan(plan: Plan | Path | str) -> Plan:
    """The plan, or the one in the file. Errors: UsageError where there is none."""
    return plan if isinstance(plan, Plan) else Plan.read(plan)


def _told(
    plan: Plan, here: Here, *, party: int | None = None, owners: tuple[int, int] | None = None
) -> contextlib.AbstractContextManager[None]:
    """The others hear it where what is inside refuses: see `refusal_told`."""
    where = lambda: owner_endpoints(here.endpoints(plan.parties))  # noqa: E731
    return refusal_told(lambda: plan, where, here.tls, party=party, owners=owners)


def check_apart(plan: Plan) -> None:
    """Errors: UsageError for one role alone where every owner is a party."""
    if plan.role == "both":
        raise UsageError(
            "in this plan every owner is a party, one process a site; one role was asked for; use Site, or plan with "
            'role="apart"',
            code="plan",
        )


def check_named(limits: Limits) -> None:
    """Errors: UsageError for a budget of records that the limits do not name."""
    if limits.budget is not None and limits.data_id is None:  # whoever makes the plan could give them a fresh name
        raise UsageError(
            "a budget is for the records of one data id; the limits name none; add data_id to them", code="missing"
        )


def _party_job(plan: Plan, index: int, here: Here) -> PartyJob:
    check_index(plan, index)
    limits = here.limits or NO_LIMITS
    budget, counts = None, account_of(plan, here.account, callers=True)
    check_named(limits)
    if limits.budget is not None:
        budget = Budget.below(parse_budget(limits.budget), here.ledgers, here.folder, counts)
    where = here.listening(index, here.endpoints(plan.parties))
    here = here.but(threads=here.threads or threads_for(1))
    return PartyJob(
        plan, index, *where, here, attempt=plan.attempt, budget=budget, account=counts, tolerates_loss=True
    )  # fmt: skip


class Owner:
    """One owner of a plan: sends the shares of its vector to the parties, and gets every opened sum.

    with Owner("plan.json", index=0, addresses=["a.example:11365", ...], tls="keys") as owner:
        mean = owner.mean(vector)
    """

    @keywords(Here)
    def __init__(
        self, plan: Plan | Path | str, index: int, addresses: Sequence[str], **own: Unpack[AloneKeywords]
    ) -> None:
        """Connects with all parties. `addresses`: host:port of each, in order; they listen for owners on port + n.
        `tls`: the folder with ca.crt, owner<index>.crt and .key. `limits`: what the plan must keep, or nothing is sent;
        of vectors nothing is known but their norm, so that the unit is the whole vector unless the limits say more.
        `out`: where its ledger goes, by default in the account's folder, by run and owner: a line is on disk before a
        share leaves, and none is sent twice of one release. `account`: its folder (docs/privacy.md). Errors:
        UsageError, PeerError."""
        plan = read_plan(plan)
        check_apart(plan)
        here = Here(addresses=tuple(addresses), index=f"owner{index}", **said(own))
        where = owner_endpoints(here.endpoints(plan.parties))
        with _told(plan, here, owners=(index, index + 1)):
            (here.limits or NO_LIMITS).check_owner(plan, index, vectors=True)
            list_for(here.tls, plan.file_digest)
            self._ledger = _own_ledger(plan, index, here)
        try:
            self._aggregator = Aggregator.of_plan(
                plan,
                here,
                addresses=where,
                owners=(index, index + 1),
                attempt=plan.attempt,
                ledger=self._ledger,
            )
        except BaseException:
            self._ledger.close()
            raise

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
        return self._aggregator.plan.releases - self._aggregator.session.next

    def report(self) -> dict[str, Any]:
        """As `Aggregator.report`."""
        return self._aggregator.report()

    def close(self) -> None:
        """Leave the run; after all planned releases in agreement with the parties."""
        try:
            self._aggregator.close()
        finally:
            self._ledger.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self._aggregator.__exit__(kind, error, trace)
        finally:
            self._ledger.close()


def _own_ledger(plan: Plan, index: int, here: Here) -> OwnLedger:
    """The open ledger of an owner alone. Errors: it has the plan's releases already; a budget that is passed."""
    counts, limits = account_of(plan, here.account, callers=True), here.limits or NO_LIMITS
    assert counts is not None
    check_named(limits)
    run = hashlib.sha256(plan.run_id.encode()).hexdigest()[:16]
    path = (here.out or counts.folder / "owners" / run) / f"ledger_owner_{index}.jsonl"
    budget = None if limits.budget is None else Budget(*parse_budget(limits.budget))
    return OwnLedger(path, plan, plan.attempt, budget, counts, f"owner {index}")


class Site(Owner):
    """One owner and the party of the same number, in this process: for a plan in which every owner is a party.

    with Site("plan.json", index=0, addresses=["a.example:11365", ...], tls="keys", out="run") as site:
        mean = site.mean(vector)
    """

    @keywords(Here)
    def __init__(
        self, plan: Plan | Path | str, index: int, addresses: Sequence[str], **own: Unpack[PartyKeywords]
    ) -> None:
        """As `Owner` and `Party`; one log for both, in `out`. What a role fails with begins with `as owner` or `as
        party`. Errors: UsageError, PeerError."""
        plan = read_plan(plan)
        if plan.role != "both":
            raise UsageError(
                "a site needs a plan in which every owner is a party; this one has them apart; make it with "
                'role="both"',
                code="plan",
            )
        here = Here(addresses=tuple(addresses), index=str(index), role="both", **said(own))
        out = here.folder
        with _told(plan, here, party=index):
            (here.limits or NO_LIMITS).check_owner(plan, index, vectors=True)
            list_for(here.tls, plan.file_digest)
            job = _party_job(plan, index, here)
        make_folder(out, OUT, private=True)
        out.chmod(0o700)
        plan.write(out / f"plan_{index}.json")
        log = os.open(out / f"site_{index}.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        self._log = os.fdopen(log, "a", encoding="utf-8")
        self._party = PartyHere(job, log_to(self._log), lambda event, **fields: None)
        try:
            with _told(plan, here, party=index):
                self._aggregator = Aggregator.of_plan(
                    plan,
                    job.here,
                    parties=self._party,
                    addresses=job.owner_addresses,
                    owners=(index, index + 1),
                    attempt=job.attempt,
                )
        except DpmpcError as error:
            self._end()
            raise named(f"owner {index}", error) from None

    def close(self) -> None:
        """Leave the run, both roles; after all planned releases in agreement with the others."""
        try:
            complete = self._aggregator.session.next >= self._aggregator.plan.releases
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

    @keywords(Here)
    def __init__(
        self, plan: Plan | Path | str, index: int, addresses: Sequence[str], **own: Unpack[PartyKeywords]
    ) -> None:
        """`out`: where its ledger, transcript and log go; it must be said. `threads`: those that compute; by default as
        many as this process has cores. `limits`: what the plan must keep; their budget counts every ledger below
        `ledgers`, by default the folder that `out` is in, and all that the `account` remembers. `listen`: where this
        party listens, if others call it at another address. Errors: UsageError."""
        plan = read_plan(plan)
        check_apart(plan)
        here = Here(addresses=tuple(addresses), index=str(index), **said(own))
        with _told(plan, here, party=index):
            (here.limits or NO_LIMITS).check(plan)
            list_for(here.tls, plan.file_digest)
            self._job = _party_job(plan, index, here)
        self._make_gate: Callable[..., OwnerGate] | None = None  # as of `run_party`

    def run(self) -> None:
        """Connects, makes noise, opens every planned release. Errors: PeerError when another process leaves or does
        not come, UsageError for a taken port or a ledger in use."""
        job = self._job
        make_folder(job.out, OUT, private=True)
        job.out.chmod(0o700)
        job.plan.write(job.out / f"plan_{job.index}.json")
        path = job.out / f"party_{job.index}.log"
        with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), "a", encoding="utf-8") as file:
            with _told(job.plan, job.here, party=job.index):
                run_here(lambda: run_party(job, log_to(file), lambda event, **fields: None, make_gate=self._make_gate))
