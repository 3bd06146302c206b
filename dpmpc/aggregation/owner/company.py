"""The parties of a run as an owner's process finds them: started here, elsewhere, or beside the owner."""

import asyncio
import weakref
from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Any, Protocol, TypeVar

from dpmpc.aggregation.owner.accounts import NO_BOOKS, Books
from dpmpc.aggregation.owner.local_parties import PartiesHere
from dpmpc.aggregation.plan.asked import Attempt, plan_path
from dpmpc.aggregation.plan.here import Here
from dpmpc.aggregation.plan.plan import Plan
from dpmpc.errors import DpmpcError, PeerError
from dpmpc.mpc.transport.addresses import Endpoint
from dpmpc.mpc.transport.in_memory import InMemory
from dpmpc.privacy.account import Account
from dpmpc.processes.background import Background

T = TypeVar("T")


class Company(Protocol):
    """Where the parties listen for owners (`addresses`), the loop that speaks with them, connections that need no wire
    (`within`, by party), the secret that processes of one machine tell each other, "" for none, and the account of a
    party of this process."""

    background: Background
    addresses: Sequence[Endpoint]
    within: Mapping[int, InMemory]
    secret: str
    account: Account | None

    async def guarded(self, body: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """What `body` returns, unless a party that is watched fails first: the cause is raised, not its echo here."""

    def part(self) -> None:
        """Returns when the parties that were started for this run are over, after its last word."""

    def end(self) -> None:
        """Ends what was started for this run, at once. May be called twice."""


class Elsewhere:
    """Parties of other machines, or of other processes that nobody here watches."""

    def __init__(self, addresses: Sequence[Endpoint]) -> None:
        self.background, self.addresses = Background("dpmpc"), addresses
        self.within: Mapping[int, InMemory] = {}
        self.secret = ""
        self.account: Account | None = None
        self._stop = weakref.finalize(self, self.background.stop)

    async def guarded(self, body: Callable[[], Coroutine[Any, Any, T]]) -> T:
        return await body()

    def part(self) -> None:
        """They end by themselves."""

    def end(self) -> None:
        self._stop()


class Watcher(Protocol):
    """What sees the parties fail."""

    async def failure(self) -> DpmpcError: ...
    async def cause(self) -> DpmpcError | None: ...


async def watched(watcher: Watcher, body: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """See `Company.guarded`. The body runs in the caller's task, which a failure cancels: one task less a release."""
    me, failure, watching = asyncio.current_task(), asyncio.ensure_future(watcher.failure()), True
    assert me is not None

    def end(_: object) -> None:
        if watching:
            me.cancel()

    failure.add_done_callback(end)
    try:
        return await body()
    except asyncio.CancelledError:
        if failure.done() and not failure.cancelled() and not me.uncancel():
            raise failure.result() from None
        raise
    except PeerError as echo:
        watching = False
        raise (await watcher.cause() or echo) from None
    finally:
        watching = False
        failure.cancel()


class Started(Protocol):
    """Parties that were started here: processes of this machine, or the party of this process and, at their addresses,
    the others."""

    background: Background
    secret: str
    account: Account | None

    @property
    def owner_addresses(self) -> Sequence[Endpoint]: ...
    @property
    def within(self) -> Mapping[int, InMemory]: ...
    @property
    def parties(self) -> Watcher: ...
    @property
    def end(self) -> Callable[[], object]: ...
    def begin(self, plan: Plan, attempt: Attempt) -> None: ...
    def wait(self) -> object: ...


class Beside:
    """With parties that were started here. `own`: for this run, and ended with it; else by whoever made them."""

    def __init__(self, parties: Started, own: bool) -> None:
        self.background, self._parties, self._own = parties.background, parties, own
        self.addresses, self.within = parties.owner_addresses, parties.within
        self.secret, self.account = parties.secret, parties.account

    def begin(self, plan: Plan, attempt: Attempt) -> None:
        """Gives each its job."""
        self._parties.begin(plan, attempt)

    async def guarded(self, body: Callable[[], Coroutine[Any, Any, T]]) -> T:
        return await watched(self._parties.parties, body)

    def part(self) -> None:
        if self._own:
            self._parties.wait()

    def end(self) -> None:
        if self._own:
            self._parties.end()


def company_of(
    plan: Plan,
    attempt: Attempt,
    here: Here,
    *,
    parties: Started | None = None,
    addresses: Sequence[Endpoint] | None = None,
    books: Books = NO_BOOKS,
    **role: Any,
) -> Company:
    """The parties at `addresses`; without these, processes of this machine that get their job now: `parties`, or new
    ones, with the `role` of `LocalParties`. Errors: UsageError for a taken port."""
    if addresses is not None:  # they have their job
        return Elsewhere(addresses) if parties is None else Beside(parties, own=False)
    beside = Beside(PartiesHere(plan.parties, here, books, **role) if parties is None else parties, own=parties is None)
    try:
        if here.out is not None:
            plan.write(plan_path(here.out))
        beside.begin(plan, attempt)
    except BaseException:
        beside.end()
        raise
    return beside
