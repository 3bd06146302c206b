"""Owners' vectors in, one noisy sum out; with parties on this machine, with parties elsewhere, or in the clear with the
same arithmetic.

`train`, `verify`, the cost suite, the experiments and the public API are clients of `Aggregator`, which clips, rounds
and takes turns; a `OwnerSession` opens the sums. Nobody else talks to the owners' or the parties' connections.
"""

import contextlib
import threading
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import CancelledError
from types import TracebackType
from typing import Any, ClassVar, Self, Unpack

import numpy as np

from dpmpc.aggregation.owner.accounts import NO_BOOKS, Books
from dpmpc.aggregation.owner.company import Started
from dpmpc.aggregation.owner.encoding import as_blocks, decode, encode
from dpmpc.aggregation.owner.local_parties import PartiesHere
from dpmpc.aggregation.owner.opens_sums import Release
from dpmpc.aggregation.owner.own_ledger import OwnLedger
from dpmpc.aggregation.owner.session import OwnerSession, session_of
from dpmpc.aggregation.plan.asked import FIRST_ATTEMPT, Attempt
from dpmpc.aggregation.plan.grid import Floats, Ints
from dpmpc.aggregation.plan.guarantee import Promise, noise_costs, promise_of, report_of
from dpmpc.aggregation.plan.here import HERE, Here
from dpmpc.aggregation.plan.keywords import AggregatorKeywords
from dpmpc.aggregation.plan.of_vectors import OfVectors
from dpmpc.aggregation.plan.plan import Plan
from dpmpc.aggregation.wire.frames import PartyCost, rows_of_block
from dpmpc.errors import DpmpcError, PeerError, UsageError
from dpmpc.folders import not_new
from dpmpc.learning.adaptive_clipping import ClippingBound
from dpmpc.mpc.transport.addresses import Endpoint
from dpmpc.processes.background import Pending, Ready
from dpmpc.settings import declared, keywords, said

__all__ = ["Aggregator", "Release"]


class ByOneSession:
    """Opens the sums of `plan` through `session`, as a context. `bound`: of clipping, if it follows the vectors; the
    same at all owners."""

    called: ClassVar[str]  # in errors
    session: OwnerSession

    def __init__(self, plan: Plan) -> None:
        """Whoever inherits begins `session` next."""
        self.plan = plan
        self.bound: ClippingBound | None = plan.adaptive
        self._closed = False

    def _taken(self, release: Release) -> Floats:
        """The mean (d,) of a release; a bound that follows the vectors moves."""
        mean = decode(self.plan, release.total, release.present)
        if self.bound is not None:
            mean, self.bound = self.bound.decode(mean)
        return mean

    def _check_open(self) -> None:
        if self._closed:
            raise UsageError(f"a closed {self.called} makes no releases; this one is closed; make another", code="over")

    def _check_left(self) -> None:
        """Errors: this is closed, or all releases are made."""
        self._check_open()
        if self.session.next >= self.plan.releases:
            raise UsageError(
                f"the plan has {self.plan.releases} releases, and all are made; plan more of them, the noise and the "
                "promise depend on their number",
                code="over",
            )

    def report(self) -> dict[str, Any]:
        """The promise and everything it rests on, how many releases were made, warnings: JSON values."""
        return report_of(self.plan, self.bound, self.session.next, self.session.parties_lost)

    def costs(self) -> list[PartyCost]:
        """Every party's costs, after the last release. The parties wait for `finish`: what they have opened may be kept
        before, and is had again by a process that dies meanwhile."""
        self._check_open()
        return self.session.costs()

    def finish(self) -> list[PartyCost]:
        """Every party's costs, after the last release; closes this."""
        costs = self.costs()
        self.session.finish()
        self.abandon()
        return costs

    def close(self) -> None:
        """End the parties that were started here, and all connections. After all planned releases this is agreed with
        the parties; before, they are told to stop. May be called twice."""
        if not self._closed and self.session.next >= self.plan.releases:
            with contextlib.suppress(PeerError):  # everything was opened already
                self.finish()
        self.abandon()

    def abandon(self, error: BaseException | None = None) -> None:
        """End everything at once; no process is left behind. Parties elsewhere are told why, as far as it is public.
        May be called twice."""
        if not self._closed:
            self._closed = True
            self.session.abandon(error)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self.close()
        else:
            self.abandon(error)


class Aggregator(ByOneSession):
    """Opens the sums of the owners' vectors, each with one noise vector, one release after another.

        with Aggregator(owners=20, dimension=1000, clip=1.0, epsilon=1.0, delta=1e-5, releases=100) as aggregator:
            mean = aggregator.mean(vectors)

    The parties are processes of this machine, which end with the aggregator, with this process, or with whoever fails.
    `of_plan` is the same for a plan, with parties here or elsewhere.
    """

    called = "aggregator"

    @keywords(OfVectors, Here)
    def __init__(
        self,
        *,
        owners: int,
        dimension: int,
        clip: float,
        **given: Unpack[AggregatorKeywords],
    ) -> None:
        """Arguments as of `Plan.create`, and of `Here`: `budget`, `account`: what all releases on this `data_id` may
        spend, and where that is kept (docs/settings.md); `wait`, `stall`: seconds for the other processes to come, and
        of silence after which one counts as lost; `out`: a new directory for the parties' ledgers, transcripts and
        logs; without one they are gone when the aggregator is closed. Errors: UsageError for what no run can do."""
        own = declared(Here)
        here = Here(**said({name: value for name, value in given.items() if name in own}))
        asked: dict[str, Any] = {name: value for name, value in given.items() if name not in own}
        plan = Plan.create(owners=owners, dimension=dimension, clip=clip, **asked)
        if (out := here.out) is not None and out.exists() and (not out.is_dir() or any(out.iterdir())):
            raise not_new(out)
        for text in noise_costs(plan):
            warnings.warn(f"before anything is spent: {text}", UserWarning, stacklevel=3)
        self._begin(plan, here, books=Books.of(here))

    @classmethod
    def of_plan(
        cls,
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
    ) -> Self:
        """An aggregator for a plan. `here`: what this process says for itself; of parties that are started here their
        folder, ports and threads too. `addresses`: where the parties listen for owners; without them the parties are
        processes of this machine: those of `parties`, whom the caller ends, or new ones, which count in `books`. A
        `PartyHere` is the one of this process; the others are at `addresses`. `owners`: (first, end)
        of those played here, by default all. `attempt` AGREED: the parties agree on it; `ledger`: of this
        process, which has a line before a share leaves; what has one already is made no more."""
        self = cls.__new__(cls)
        self._begin(
            plan,
            here,
            parties=parties,
            addresses=addresses,
            owners=owners,
            attempt=attempt,
            say=say,
            ledger=ledger,
            books=books,
        )
        return self

    @classmethod
    def joining(cls, plan: Plan, parties: PartiesHere, owners: tuple[int, int], here: Here = HERE) -> Self:
        """An aggregator of the owners first .. end - 1 alone, for parties of this machine that have their job already.
        Whoever gave it to them ends them."""
        addresses = parties.parties.owner_addresses
        return cls.of_plan(plan, here, parties=parties, addresses=addresses, owners=owners)

    def _begin(self, plan: Plan, here: Here, *, owners: tuple[int, int] | None = None, **session: Any) -> None:
        """`session`: arguments of `session_of`."""
        super().__init__(plan)
        self.first, self.end = owners or (0, plan.owners)
        self._lock, self._at_work = threading.Lock(), 0  # the number of the thread that makes a release
        _ = plan.derived  # what no run can keep is refused here, not in another process
        self.session = session_of(plan, here, owners=owners, **session)

    # -- turns -------------------------------------------------------------------------------------------------------
    @contextlib.contextmanager
    def _alone(self) -> Iterator[None]:
        """While inside, no other thread makes a release: they are counted one after another. Errors: UsageError where
        this thread is making one, whose vectors then ask for a release themselves."""
        if self._at_work == threading.get_ident():
            raise UsageError(
                "an aggregator makes one release after another; another was asked for while a release's vectors were "
                "being read; make it before, or after",
                code="over",
            )
        with self._lock:
            self._at_work = threading.get_ident()
            try:
                yield
            except (CancelledError, RuntimeError):  # the loop's end
                if not self._closed:
                    raise
                raise UsageError(
                    "the aggregator was closed while it was at work in another thread; make another"
                ) from None
            finally:
                self._at_work = 0

    def wait_for_noise(self) -> None:
        """Returns when the parties have the noise that they make ahead; a release would wait for it too."""
        with self._alone():
            self.session.wait_for_noise()

    def catch_up(self) -> list[Release]:
        """The releases that were made before the owners here came, or came again, in order: they are part of the
        history that all owners have; with those that are made meanwhile. Empty where nobody came late."""
        with self._alone():
            self._check_open()
            self.session.wait_for_noise()
            found = []
            for release in self.session.missed():
                if self.bound is not None:
                    self._taken(release)
                found.append(release)
            return found

    # -- releases ----------------------------------------------------------------------------------------------------
    def sum(self, vectors: Any) -> Floats:
        """The noisy (weighted) sum of the owners' vectors, (d,) float64. See `mean`."""
        with self._alone():
            release = self._opened(vectors)
            return np.asarray(self._taken(release) * self.plan.divisor_of(release.present))

    def mean(self, vectors: Any) -> Floats:
        """The noisy mean of the owners' vectors, (d,) float64: one release.

        `vectors`: an array (m, d), or an iterable of m arrays (d,) that is never held whole. Each is clipped to the
        plan's norm. Errors: UsageError for a wrong shape or values that are not finite (nothing is spent then), for
        more releases than planned, for a closed aggregator; PeerError when a party leaves.
        """
        with self._alone():
            return self._taken(self._opened(vectors))

    def open(self, vectors: Any) -> Release:
        """One release of the owners' vectors, in grid steps; a clipping bound that adapts moves. See `mean`."""
        with self._alone():
            release = self._opened(vectors)
            if self.bound is not None:
                self._taken(release)
            return release

    def _opened(self, vectors: Any) -> Release:
        rows, bound = rows_of_block(self.plan.dimension), self.bound
        blocks = as_blocks(vectors, self.end - self.first, self.plan.dimension - (bound is not None), rows)

        def encoded() -> Iterable[Ints]:
            first = self.first
            for block in blocks:
                yield encode(self.plan, block if bound is None else bound.encode(block), first)
                first += len(block)

        return self._begin_release(encoded()).result()

    def open_steps(self, blocks: Iterable[Ints]) -> Release:
        """One release of integer vectors: grid steps, clipped and rounded already, in blocks as `frames.blocks_of` has
        them. Their owners' own code is `open`."""
        with self._alone():
            return self._begin_release(blocks).result()

    def begin_steps(self, blocks: Iterable[Ints]) -> Pending[Release] | Ready[Release]:
        """As `open_steps`, without waiting for the result: other owners' processes may be played by this thread too."""
        with self._alone():
            return self._begin_release(blocks)

    def _begin_release(self, blocks: Iterable[Ints]) -> Pending[Release] | Ready[Release]:
        self._check_left()
        number = self.session.next
        try:
            return self.session.begin(blocks)
        except DpmpcError as error:
            if self.session.next == number:
                raise  # nothing was sent
            self.abandon(error)
            raise

    # -- what is promised --------------------------------------------------------------------------------------------
    @property
    def guarantee(self) -> Promise:
        """What all planned releases together keep, made or not."""
        return promise_of(self.plan)

    def costs(self) -> list[PartyCost]:
        """Every party's costs, after the last release. The parties wait for `finish`: what they have opened may be kept
        before, and is had again by a process that dies meanwhile."""
        with self._alone():
            return super().costs()
