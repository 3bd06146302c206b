"""Who opens sums: integer vectors in, one noisy sum out, one release after another. Two ways: `Connected` with parties,
wherever they are, and `InTheClear`, with the same arithmetic.

A session is one attempt of a plan's run with the owners first .. end - 1. It knows nothing of real numbers, clipping or
threads that take turns: that is `Aggregator`'s, which has one.
"""

import contextlib
import time
import weakref
from collections.abc import Callable, Coroutine, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Protocol, TypeVar

import numpy as np

from dpmpc.aggregation.owner.accounts import NO_BOOKS, Books
from dpmpc.aggregation.owner.client import OwnerClient
from dpmpc.aggregation.owner.company import Company, Started, company_of
from dpmpc.aggregation.owner.opens_sums import Progress, Release
from dpmpc.aggregation.owner.own_ledger import OwnLedger
from dpmpc.aggregation.owner.standing import meets
from dpmpc.aggregation.plan.asked import AGREED, FIRST_ATTEMPT, Attempt
from dpmpc.aggregation.plan.grid import Ints
from dpmpc.aggregation.plan.here import HERE, Here
from dpmpc.aggregation.plan.plan import Plan
from dpmpc.aggregation.wire.frames import PartyCost, blocks_of, columns_of
from dpmpc.aggregation.wire.paths import ledger_path
from dpmpc.errors import UsageError
from dpmpc.folders import passing_folder
from dpmpc.mpc.clear.noise import clear_noise
from dpmpc.mpc.contract.backend import BACKENDS
from dpmpc.mpc.contract.decisions import decided
from dpmpc.mpc.numbers.prg import Prg
from dpmpc.mpc.transport.abort_reason import public_reason
from dpmpc.mpc.transport.addresses import Endpoint
from dpmpc.mpc.transport.tls import Tls
from dpmpc.processes.background import Pending, Ready

T = TypeVar("T")


class OwnerSession(Progress, Protocol):
    """`sharing_s`: seconds spent making shares."""

    sharing_s: float

    @property
    def bytes_sent(self) -> int:
        """Bytes that the owners here have sent to parties so far, headers included."""

    @property
    def token(self) -> str:
        """Of the attempt that goes on, which its parties drew when it began; for a ledger."""

    @property
    def connected(self) -> list[str]:
        """The parties that the owners here are connected with, by name."""

    def wait_for_noise(self) -> None:
        """Returns when the parties have the noise that they make ahead."""

    def missed(self) -> Iterator[Release]:
        """The releases that were made before the owners here came, or came again, in order; when the noise is there."""

    def begin(self, blocks: Iterable[Ints]) -> Pending[Release] | Ready[Release]:
        """The next release, of vectors in blocks as `frames.blocks_of` has them. `next` moves as soon as anything of it
        has left. Errors: UsageError for an owner that has not taken what it missed."""

    def costs(self) -> list[PartyCost]:
        """Every party's costs, after the last release; the parties wait for `finish`."""

    def finish(self) -> None:
        """The last word, after `costs`."""

    def abandon(self, error: BaseException | None) -> None:
        """Ends everything at once; parties are told why, as far as it is public."""


class InTheClear:
    """No party: this process adds up, and draws the noise."""

    sharing_s = 0.0
    bytes_before = bytes_sent = 0
    token = ""

    def __init__(
        self, plan: Plan, attempt: Attempt, ledger: OwnLedger | None, here: Here = HERE, books: Books = NO_BOOKS
    ) -> None:
        """`ledger`: where releases are noted, if it is given; else one in the folder of `here`, or, with an account or
        a budget, one that is gone at the end."""
        self._plan, self.attempt, self._ledger = plan, attempt, ledger
        stack = contextlib.ExitStack()
        if plan.derived.mechanism.scale:
            self._ledger = _own_ledger(plan, attempt, here.out, books, stack) or ledger
        self._close = weakref.finalize(self, stack.close)
        self.next = attempt.first_release
        self.connected: list[str] = []
        self.parties_lost: list[int] = []
        self._prg = Prg.from_os()

    def wait_for_noise(self) -> None:
        """There is none ahead."""

    def missed(self) -> Iterator[Release]:
        return iter(())

    def begin(self, blocks: Iterable[Ints]) -> Ready[Release]:
        number, derived = self.next, self._plan.derived
        total = sum((block.sum(axis=0) for block in blocks), start=np.zeros(self._plan.dimension, dtype=np.int64))
        if derived.mechanism.scale:
            if self._ledger is not None:
                self._ledger.spend(self.attempt, number, self.token)
            noise = clear_noise(derived.sampler, self._plan.drawn, self._prg)
            total = total + noise if derived.decision is None else decided(total, noise, derived.decision)
        self.next = number + 1
        return Ready(Release(number, total, 0))

    def costs(self) -> list[PartyCost]:
        return []

    def finish(self) -> None:
        if self._ledger is not None:
            self._ledger.end()

    def abandon(self, error: BaseException | None) -> None:
        """Nobody is told."""
        self._close()


def _own_ledger(
    plan: Plan, attempt: Attempt, out: Path | None, books: Books, stack: contextlib.ExitStack
) -> OwnLedger | None:
    """This process's ledger, where no party has one; open until the end of `stack`."""
    account, budget = books.account(plan), books.budget
    if account is None and budget is None and out is None:
        return None
    with contextlib.ExitStack() as opening:
        if out is None:
            out = opening.enter_context(passing_folder())
        ledger = opening.enter_context(OwnLedger(ledger_path(out, 0), plan, attempt, budget, account))
        stack.push(opening.pop_all())
    return ledger


class Connected:
    """With the parties of a company."""

    def __init__(
        self,
        plan: Plan,
        company: Company,
        owners: tuple[int, int],
        attempt: Attempt = FIRST_ATTEMPT,
        here: Here = HERE,
        *,
        say: Callable[[str], None] = lambda text: None,
        ledger: OwnLedger | None = None,
    ) -> None:
        """Connects with all parties; ends the company where that fails. Arguments as of `session_of`. Errors: PeerError
        when one does not come, UsageError for a taken port, and for an account that is another owner of the plan."""
        self.plan, self._company, self.attempt, self._ledger = plan, company, attempt, ledger
        self._first, self._end = owners
        self.next = attempt.first_release
        self._known: set[int] | None = None  # releases of before this attempt whose vectors come; None: there are none
        self._spent = 0 if ledger is None else ledger.spent
        self.bytes_before, self.sharing_s = 0, 0.0
        self._noise_here = False
        self._costs: list[PartyCost] = []
        self.dealer = BACKENDS[plan.backend].dealer(plan.parties, plan.threshold)
        self._client: OwnerClient | None = None
        account = company.account if ledger is None else ledger.account
        try:
            if account is not None:
                meets(plan, owners, company.addresses, account)
            self._client = OwnerClient(
                plan,
                attempt,
                *owners,
                company.within,
                stall=here.stall,
                say=say,
                secret=company.secret,
                all_made=self._spent >= plan.releases,
                account=None if account is None else partial(account.digests, plan.data_id),
            )
            keys = None
            if here.tls is not None:
                alone = 0.0 if here.index is None else here.patience  # as at a party
                keys = self._run(partial(Tls.valid, here.tls, self._client.name, alone, self._client.lack))
            self._run(partial(self._client.connect, company.addresses, here.patience, keys))
        except BaseException as error:
            self.abandon(error)
            raise

    @property
    def client(self) -> OwnerClient:
        """The owners' end of the connections."""
        assert self._client is not None
        return self._client

    @property
    def bytes_sent(self) -> int:
        return self.client.bytes_sent

    @property
    def token(self) -> str:
        return self.client.token

    @property
    def connected(self) -> list[str]:
        return self.client.connected

    @property
    def parties_lost(self) -> list[int]:
        return sorted(self.client.lost)

    def _run(self, body: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """What `body` returns on the loop, unless a party fails first."""
        return self._company.background.run(self._company.guarded(body))

    def ready(self) -> None:
        """As `wait_for_noise`, for a process that plays all owners and never comes late."""
        if not self._noise_here:
            self._agree()
            self._noise_is_here(self._run(self.client.ready))

    def _noise_is_here(self, sent: int) -> None:
        """The parties have said so, and what they have sent: nothing, where a run is over and the one party that tells
        its end is in this process."""
        self._noise_here, self.bytes_before = True, sent + self.client.bytes_sent

    def _agree(self) -> None:
        """The attempt that the parties have agreed on, where they do."""
        if self.attempt == AGREED:
            self.attempt, known = self._run(partial(self.client.begin, self._spent))
            self._known = set(known)

    def wait_for_noise(self) -> None:
        client = self.client
        if self._noise_here:
            return
        self._agree()
        if self.plan.dropouts:
            self._noise_is_here(self._run(partial(client.join, client.joining.first, self._spent)))
        self.ready()

    def missed(self) -> Iterator[Release]:
        client = self.client
        while client.missed(self.next):
            if self._known is not None and self.next < self.attempt.first_release and self.next not in self._known:
                self.next += 1  # spent, and never opened
                continue
            yield self.opened()

    def opened(self) -> Release:
        """The next release, of what was sent for it."""
        total, sent, present = self._run(partial(self.client.opened, self.next))
        number, self.next = self.next, self.next + 1
        return Release(number, total, sent + self.client.bytes_sent, present)

    def begin(self, blocks: Iterable[Ints]) -> Pending[Release]:
        """Deals block after block in this thread and sends it on the loop; the last one goes with the wait for the
        result, which saves a change of threads."""
        self.wait_for_noise()
        number, d, columns = self.next, self.plan.dimension, columns_of(self.plan.dimension)
        if (missed := self.client.joining.first - number) > 0:
            raise UsageError(
                f"an owner that comes late takes the releases it missed first; {missed} were made; call catch_up()"
            )
        due = blocks_of(self._first, self._end, d)
        last, k = len(due) * len(columns) - 1, -1
        for (start, end), vectors in zip(due, blocks, strict=True):
            assert vectors.shape == (end - start, d)
            if k < 0 and self._ledger is not None:  # a line, before anything of the release leaves
                self._ledger.sends(self.attempt, number, self.token)
            for column in columns:
                began, k = time.perf_counter(), k + 1
                payloads = self.dealer.deal(vectors[:, slice(*column)])
                self.sharing_s += time.perf_counter() - began
                if k < last:
                    self.next = number + 1
                    self.send(number, k, payloads)
        self.next = number + 1
        body = partial(self._finish, number, last, payloads)
        return self._company.background.submit(self._company.guarded(body))

    def send(self, number: int, block: int, payloads: Sequence[Any]) -> None:
        """One block of a release: a payload for each party."""
        self._run(partial(self.client.send, number, block, payloads))

    def told(self, number: int, size: int) -> list[bytes]:
        """What each party remembers of accounts before this release, in `size` bytes: for who carries sealed shares."""
        return self._run(partial(self.client.told, number, size))

    async def _finish(self, number: int, block: int, payloads: Sequence[Any]) -> Release:
        await self.client.send(number, block, payloads)
        total, sent, present = await self.client.opened(number)
        if self._ledger is not None:
            self._ledger.opened(number)
        return Release(number, total, sent + self.client.bytes_sent, present)

    def costs(self) -> list[PartyCost]:
        if not self._costs:
            self.wait_for_noise()
            self._costs = self._run(self.client.costs)
        return self._costs

    def finish(self) -> None:
        if self._ledger is not None:
            self._ledger.end()
        self._run(self.client.finish)
        self._company.part()

    def abandon(self, error: BaseException | None) -> None:
        if self._client is not None:
            with contextlib.suppress(RuntimeError):  # the loop has ended
                self._company.background.run(self._leave(self._client, error))
        self._company.end()

    async def _leave(self, client: OwnerClient, error: BaseException | None) -> None:
        if error is not None:
            await client.leave(public_reason(client.called, error))
        elif self.next < self.plan.releases:
            await client.leave(f"{client.called} left before the last release")
        client.abandon()


def session_of(
    plan: Plan,
    here: Here = HERE,
    *,
    parties: Started | None = None,
    addresses: Sequence[Endpoint] | None = None,
    owners: tuple[int, int] | None = None,
    attempt: Attempt = FIRST_ATTEMPT,
    say: Callable[[str], None] = lambda text: None,
    ledger: OwnLedger | None = None,
    books: Books = NO_BOOKS,
) -> OwnerSession:
    """The session of a plan. Arguments as of `Aggregator.of_plan`. Errors: PeerError when a party does not come."""
    if not plan.parties:
        return InTheClear(plan, attempt, ledger, here, books)
    company = company_of(plan, attempt, here, parties=parties, addresses=addresses, books=books)
    return Connected(plan, company, owners or (0, plan.owners), attempt, here, say=say, ledger=ledger)
