"""The parties of a run as processes of this machine, started by whoever aggregates."""

import asyncio
import contextlib
import secrets
import shutil
import socket
import tempfile
import weakref
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from dpmpc.aggregation.owner.accounts import NO_BOOKS, Books
from dpmpc.aggregation.owner.imports import PRELOAD
from dpmpc.aggregation.party.job import PartyJob
from dpmpc.aggregation.plan.asked import Attempt
from dpmpc.aggregation.plan.here import HERE, Here
from dpmpc.aggregation.plan.plan import Plan
from dpmpc.aggregation.plan.spending import held_against
from dpmpc.errors import DpmpcError, UsageError
from dpmpc.folders import OUT, make_folder
from dpmpc.learning.method import METHODS
from dpmpc.learning.source import SOURCES
from dpmpc.learning.task import TASKS
from dpmpc.mpc.contract.backend import BACKENDS
from dpmpc.mpc.transport.addresses import Endpoint, endpoint_of, endpoints_here, owner_endpoints, waiting_socket
from dpmpc.mpc.transport.in_memory import InMemory
from dpmpc.privacy.account import Account
from dpmpc.privacy.law import LAWS
from dpmpc.processes import standing
from dpmpc.processes.background import Background
from dpmpc.processes.cores import threads_for
from dpmpc.processes.supervisor import Event, Process, Supervisor

ROLE = "dpmpc.aggregation.party.party:serve"
_WORK_OUT = "dpmpc.aggregation.party.party:work_out"
_ADDED_TO = (LAWS, METHODS, TASKS, SOURCES, BACKENDS)  # by other packages, which a standing process does not import


def work_out(plan: Plan) -> None:
    """What follows from the plan is worked out once for all parties that are started here, and while this process does
    other things."""
    if plan.parties and all(registry.own_alone for registry in _ADDED_TO):
        standing.work_out(PRELOAD, _WORK_OUT, plan.to_text())


class LocalParties:
    """n parties here, each a process; used within one event loop."""

    def __init__(
        self,
        parties: int,
        here: Here,
        books: Books = NO_BOOKS,
        *,
        role: str = ROLE,
        name: str = "party",
        preload: Sequence[str] = PRELOAD,
        extra: Mapping[str, Any] | None = None,
        on_event: Callable[[Process, Event], None] = lambda process, event: None,
    ) -> None:
        """`here`: what all of them are told, with a folder to write into: a `base_port`, where party i listens + i, and
        for owners on + n + i, by default free ports; the `threads` of each party, by default an equal part of the
        cores. `books`: what each holds its ledgers against, and which account they count in, for a plan. `role`: what a
        party's process does, called with `job` and `extra`; `name`: what messages and its log call it; `preload`: what
        it imports at once. Errors: UsageError for a taken port."""
        self.parties, self.out, self._books = parties, here.folder, books
        self._here = here.but(threads=here.threads or threads_for(parties))
        self._counts: tuple[Account, str] | None = None  # the account, and the data set's digest
        self._role, self._extra = role, dict(extra or {})
        self._name, self._preload = name, preload
        self._supervisor = Supervisor(on_event)
        self.secret = secrets.token_hex(16)
        self._sockets = _bind(parties, here.base_port)
        self.addresses = [endpoint_of(s) for s in self._sockets[:parties]]
        self.owner_addresses = [endpoint_of(s) for s in self._sockets[parties:]]

    def ahead(self) -> None:
        """What they will be forked from imports what they need, if it does not stand yet."""
        standing.ahead((*self._preload, self._role.partition(":")[0]))

    async def start(self) -> None:
        """Start the processes: they import what they need and wait for the plan."""
        n = self.parties
        module = self._role.partition(":")[0]
        await self._supervisor.start_together(
            [f"{self._name} {i}" for i in range(n)],
            logs=[self.out / f"{self._name}_{i}.log" for i in range(n)],
            preload=(*self._preload, module),
            sockets=[(self._sockets[i], self._sockets[n + i]) for i in range(n)],
        )

    def begin(self, plan: Plan, attempt: Attempt, own: Sequence[Mapping[str, Any]] = ()) -> None:
        """Give each its job; `own`: what its role gets besides, by party."""
        n = self.parties
        account = self._books.account(plan)
        self._counts = None if account is None else (account, plan.data_id)
        for i, process in enumerate(self._supervisor.processes):
            numbers = self._sockets[i].fileno(), self._sockets[n + i].fileno()
            job = PartyJob(
                plan,
                i,
                self.addresses,
                self.owner_addresses,
                self._here,
                attempt=attempt,
                sockets=numbers,
                secret=self.secret,
                budget=held_against(self._books.budget, account),
                account=account,
            )
            more = own[i] if own else {}
            process.give(self._role, {"job": job.to_json(), **self._extra, **more})
        for bound in self._sockets:
            bound.close()  # the parties have their own

    async def failure(self) -> DpmpcError:
        """Returns the cause when a party fails."""
        return await self._supervisor.failure()

    async def cause(self) -> DpmpcError | None:
        """The cause of a failure that showed elsewhere first; None where no party fails."""
        return await self._supervisor.cause()

    async def done(self) -> list[Any]:
        """What every party's role returned, when all have ended. Errors: the cause of the first failure."""
        return await self._supervisor.done()

    def settle(self) -> None:
        """The account has what they spent, also of a party that was ended before it could say so; for ledgers that are
        about to be removed. Where that fails they count whole."""
        if self._counts is not None and not self._counts[0].keeps:
            with contextlib.suppress(DpmpcError, OSError):
                self._counts[0].settle(self._counts[1])

    async def end(self) -> None:
        """End all; none is left behind."""
        for bound in self._sockets:
            bound.close()
        await self._supervisor.end()
        await asyncio.sleep(0)


class PartiesHere:
    """`LocalParties` and the loop that watches them, for use from any thread. They end with `end`, with this object, or
    with this process."""

    def __init__(self, parties: int, here: Here = HERE, books: Books = NO_BOOKS, **role: Any) -> None:
        """The processes start with the plan, where a standing process imports what they need meanwhile; elsewhere at
        once, and wait for it. Without a folder to write into they have a temporary one that is removed at the end.
        `role`: as of `LocalParties`."""
        temporary = tempfile.mkdtemp(prefix="dpmpc-") if here.out is None else None
        here = here if temporary is None else here.but(out=Path(temporary))
        make_folder(here.folder, OUT, private=True)
        self.parties = LocalParties(parties, here, books, **role)
        self.owner_addresses, self.secret = self.parties.owner_addresses, self.parties.secret
        self.within: Mapping[int, InMemory] = {}  # all connections need a wire
        self.account: Account | None = None  # each party chooses its own
        self.background = Background("dpmpc")
        self.end = weakref.finalize(self, _end, self.background, self.parties, temporary)
        self._started = not standing.POSSIBLE
        if self._started:
            self.background.run(self.parties.start())
        else:
            self.parties.ahead()

    def begin(self, plan: Plan, attempt: Attempt, own: Sequence[Mapping[str, Any]] = ()) -> None:
        """Give each its job; `own`: what its role gets besides, by party."""

        work_out(plan)

        async def begin() -> None:
            if not self._started:
                self._started = True
                await self.parties.start()
            self.parties.begin(plan, attempt, own)

        self.background.run(begin())

    def wait(self) -> list[Any]:
        """What every party's role returned, when all have ended. Errors: the cause of the first failure."""
        return self.background.run(self.parties.done())


def _end(background: Background, parties: LocalParties, temporary: str | None) -> None:
    try:
        background.run(parties.end())
    finally:
        background.stop()
        parties.settle()
        if temporary is not None:
            shutil.rmtree(temporary, ignore_errors=True)


def _bind(parties: int, base_port: int | None) -> list[socket.socket]:
    """Sockets for parties, then for owners."""
    if base_port is None:
        return [waiting_socket() for _ in range(2 * parties)]
    wanted: list[Endpoint] = endpoints_here(parties, base_port)
    bound: list[socket.socket] = []
    for k, endpoint in enumerate((*wanted, *owner_endpoints(wanted))):
        try:
            bound.append(waiting_socket(endpoint.host, endpoint.port))
        except OSError as error:
            for other in bound:
                other.close()
            what = "must listen" if k < parties else "must listen for owners"
            raise UsageError(
                f"party {k % parties} {what} on {endpoint}, but that fails ({error.strerror or error}); choose another "
                "base port with <<base_port>>, or leave it out",
                code="addresses",
            ) from None
    return bound
