"""The one class that opens sums: owners' vectors in, one noisy sum out; with parties on this machine, with parties
elsewhere, or in the clear with the same arithmetic.

`train`, `verify`, the cost suite, the experiments and the public API are its clients. Nobody else talks to the owners'
or the parties' connections.
"""

import asyncio
import contextlib
import threading
import time
import weakref
from collections.abc import Callable, Coroutine, Iterable, Iterator, Sequence
from concurrent.futures import CancelledError
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Self, TypeVar

import numpy as np

from dpmpc.aggregation.asked import AGREED, FIRST_ATTEMPT, Attempt, Presence, plan_path
from dpmpc.aggregation.background import Background, Pending, Ready
from dpmpc.aggregation.both import PartyHere
from dpmpc.aggregation.encoding import as_blocks, decode, encode
from dpmpc.aggregation.frames import PartyCost, blocks_of, columns_of, rows_of_block
from dpmpc.aggregation.grid import Floats, Ints
from dpmpc.aggregation.guarantee import Promise, privacy_section, promise_of, warnings_of
from dpmpc.aggregation.local import PartiesHere
from dpmpc.aggregation.owner_client import OwnerClient
from dpmpc.aggregation.plan import Plan
from dpmpc.errors import DpmpcError, PeerError, UsageError
from dpmpc.learning.adaptive_clipping import ClippingBound
from dpmpc.mpc.addresses import Endpoint
from dpmpc.mpc.backend import BACKENDS
from dpmpc.mpc.clear_noise import clear_noise
from dpmpc.mpc.prg import Prg
from dpmpc.mpc.pulse import STALL, check_stall
from dpmpc.mpc.reason import public_reason
from dpmpc.mpc.tls import Tls
from dpmpc.privacy.sensitivity import Weights

T = TypeVar("T")
WAIT = 60.0  # seconds for the other processes to come


@dataclass(frozen=True)
class Release:
    """One opened release: its number, the sum (d,) in grid steps, the bytes all processes have sent so far, and the
    owners whose vectors are in it, where some may be missing or fail their checks."""

    number: int
    total: Ints
    bytes_sent: int
    present: Presence | None = None


class Aggregator:
    """Opens the sums of the owners' vectors, each with one noise vector, one release after another.

        with Aggregator(owners=20, dimension=1000, clip=1.0, epsilon=1.0, delta=1e-5, releases=100) as aggregator:
            mean = aggregator.mean(vectors)

    The parties are processes of this machine, which end with the aggregator, with this process, or with whoever fails.
    `of_plan` is the same for a plan, with parties here or elsewhere.
    """

    def __init__(
        self,
        *,
        owners: int,
        dimension: int,
        clip: float,
        epsilon: float = 1.0,
        delta: float | None = None,
        releases: int = 1,
        parties: int = 3,
        threshold: int | None = None,
        neighbours: str | None = None,
        sensitivity: float | None = None,
        quantile: float | None = None,
        weights: Weights | Sequence[int] = "equal",
        records: Sequence[int] | None = None,
        law: str | None = None,
        sampler: str | None = None,
        calibration: str = "tight",
        scale: float | None = None,
        grid_bits: int | None = None,
        security_bits: float = 40.0,
        backend: str | None = None,
        security: str | None = None,
        engine: Literal["mpc", "clear"] = "mpc",
        pool: bool | None = None,
        check_owners: str | None = None,
        data_id: str = "vectors",
        out: Path | str | None = None,
        wait: float = WAIT,
        stall: float = STALL,
    ) -> None:
        """Arguments as of `Plan.create`. `wait`, `stall`: seconds for the other processes to come, and of silence after
        which one counts as lost. `out`: a new directory for the parties' ledgers, transcripts and logs; without
        one they are gone when the aggregator is closed. Errors: UsageError for what no run can do."""
        plan = Plan.create(
            owners=owners,
            dimension=dimension,
            clip=clip,
            epsilon=epsilon,
            delta=delta,
            releases=releases,
            parties=parties,
            threshold=threshold,
            neighbours=neighbours,
            sensitivity=sensitivity,
            quantile=quantile,
            weights=weights,
            records=records,
            law=law,
            sampler=sampler,
            calibration=calibration,
            scale=scale,
            grid_bits=grid_bits,
            security_bits=security_bits,
            engine=engine,
            pool=pool,
            check_owners=check_owners,
            data_id=data_id,
            backend=backend,
            security=security,
        )
        if out is not None and Path(out).exists() and any(Path(out).iterdir()):
            raise UsageError(f"out must be a new or empty directory; {out} is not; name another")
        self._spent = 0
        self._begin(plan, None if out is None else Path(out), wait, stall=stall)

    @classmethod
    def of_plan(
        cls,
        plan: Plan,
        *,
        out: Path | None = None,
        parties: PartiesHere | PartyHere | None = None,
        addresses: Sequence[Endpoint] | None = None,
        owners: tuple[int, int] | None = None,
        attempt: Attempt = FIRST_ATTEMPT,
        tls: Path | None = None,
        wait: float = WAIT,
        stall: float = STALL,
        say: Callable[[str], None] = lambda text: None,
        spent: int = 0,
        **settings: Any,
    ) -> Self:
        """An aggregator for a plan. `addresses`: where the parties listen for owners; without them the parties are
        processes of this machine: those of `parties`, whom the caller ends, or new ones with `settings` (of
        `LocalParties`). A `PartyHere` is the one of this process; the others are at `addresses`. `owners`: (first, end)
        of those played here, by default all. `attempt` AGREED: the parties agree on it; `spent`: so many releases have
        a line in a ledger here, and are made no more."""
        self = cls.__new__(cls)
        self._spent = spent
        self._begin(plan, out, wait, parties, addresses, owners, attempt, tls, settings, stall, say)
        return self

    @classmethod
    def joining(cls, plan: Plan, parties: PartiesHere, owners: tuple[int, int], wait: float = WAIT) -> Self:
        """An aggregator of the owners first .. end - 1 alone, for parties of this machine that have their job already.
        Whoever gave it to them ends them."""
        addresses = parties.parties.owner_addresses
        return cls.of_plan(plan, parties=parties, addresses=addresses, owners=owners, wait=wait)

    def _begin(
        self,
        plan: Plan,
        out: Path | None,
        wait: float,
        parties: PartiesHere | PartyHere | None = None,
        addresses: Sequence[Endpoint] | None = None,
        owners: tuple[int, int] | None = None,
        attempt: Attempt = FIRST_ATTEMPT,
        tls: Path | None = None,
        settings: dict[str, Any] | None = None,
        stall: float = STALL,
        say: Callable[[str], None] = lambda text: None,
    ) -> None:
        self._stall, self._say = check_stall(stall), say
        self._known: set[int] | None = None  # releases of before this attempt whose vectors come; None: there are none
        self.plan, self.attempt = plan, attempt
        self.first, self.end = owners or (0, plan.owners)
        self.next = attempt.first_release  # the next release
        self._joins = self.next  # the first one that the owners here take part in
        self.bound = plan.adaptive  # of clipping, if it follows the vectors: public, the same at all owners
        self.sharing_s = 0.0  # spent making shares
        self.bytes_before = 0  # sent by all processes when the noise made ahead was there
        self._out, self._addresses, self._tls, self._wait = out, addresses, tls, wait
        self._parties, self._settings = parties, settings or {}
        self._costs: list[PartyCost] = []
        self._closed = False
        self._lock, self._at_work = threading.Lock(), 0  # the number of the thread that makes a release
        self._background: Background | None = None
        self._stop: Callable[[], Any] = lambda: None
        self._client: OwnerClient | None = None
        _ = plan.derived  # what no run can keep is refused here, not in another process
        if plan.parties:
            self._dealer = BACKENDS[plan.backend].dealer(plan.parties, plan.threshold)
        else:
            self._prg = Prg.from_os()
        self._connect()

    # -- connections -------------------------------------------------------------------------------------------------
    def _connect(self) -> None:
        """Connect with all parties. Errors: PeerError when one does not come, UsageError for a taken port."""
        if not self.plan.parties:
            return
        try:
            addresses = self._addresses
            if addresses is None:
                if self._parties is None:
                    self._parties = PartiesHere(self.plan.parties, self._out, **self._settings)
                    self._stop = self._parties.end
                if self._out is not None:
                    self.plan.write(plan_path(self._out))
                self._parties.begin(self.plan, self.attempt, self._wait, (), self._stall)
                addresses = self._parties.parties.owner_addresses
            elif self._parties is None:
                self._background = Background("dpmpc")
                self._stop = weakref.finalize(self, self._background.stop)
            within = self._parties.within if isinstance(self._parties, PartyHere) else {}
            client = OwnerClient(
                self.plan,
                self.attempt,
                self.first,
                self.end,
                within,
                stall=self._stall,
                say=self._say,
                secret="" if self._parties is None else self._parties.parties.secret,
                all_made=self._spent >= self.plan.releases,
            )
            self._client = client
            tls = None if self._tls is None else Tls.load(self._tls, client.name)
            self._run(lambda: client.connect(addresses, self._wait, tls))
        except BaseException as error:
            self.abandon(error)
            raise

    @contextlib.contextmanager
    def _alone(self) -> Iterator[None]:
        """While inside, no other thread makes a release: they are counted one after another. Errors: UsageError where
        this thread is making one, whose vectors then ask for a release themselves."""
        if self._at_work == threading.get_ident():
            raise UsageError(
                "an aggregator makes one release after another; another was asked for while a release's vectors were "
                "being read; make it before, or after"
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
            self._await_noise()

    def _await_noise(self) -> None:
        client = self._client
        if client is None or self.bytes_before:
            return
        if self.attempt == AGREED:
            self.attempt, known = self._run(partial(client.begin, self._spent))
            self._known, self._joins = set(known), self.attempt.first_release
        if self.plan.dropouts:
            self._joins, sent = self._run(partial(client.join, self._joins, self._spent))
        else:
            sent = self._run(client.ready)
        self.bytes_before = sent + client.bytes_sent

    def catch_up(self) -> list[Release]:
        """The releases that were made before the owners here came, or came again, in order: they are part of the
        history that all owners have; with those that are made meanwhile. Empty where nobody came late."""
        with self._alone():
            self._check_open()
            self._await_noise()
            return list(self._missed())

    def _missed(self) -> Iterator[Release]:
        client = self._client
        while client is not None and (self.next < self._joins or client.missed(self.next)):
            if self._known is not None and self.next < self.attempt.first_release and self.next not in self._known:
                self.next += 1  # spent, and never opened
                continue
            total, sent, present = self._run(partial(client.opened, self.next))
            number, self.next = self.next, self.next + 1
            if self.bound is not None:
                self.bound = self.bound.decode(decode(self.plan, total, present))[1]
            yield Release(number, total, sent + client.bytes_sent, present)

    @property
    def bytes_sent(self) -> int:
        """Bytes that the owners here have sent to parties so far, headers included."""
        return 0 if self._client is None else self._client.bytes_sent

    @property
    def token(self) -> str:
        """Of the attempt that goes on, which its parties drew when it began; for a ledger."""
        return "" if self._client is None else self._client.token

    @property
    def connected(self) -> list[str]:
        """The parties that the owners here are connected with, by name."""
        return [] if self._client is None else self._client.connected

    @property
    def parties_lost(self) -> list[int]:
        """The parties that left after noise was made, where the backend opens sums without them."""
        return [] if self._client is None else sorted(self._client.lost)

    def _loop(self) -> Background:
        background = self._background if self._parties is None else self._parties.background
        assert background is not None
        return background

    def _run(self, body: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """What `body` returns on the loop, unless a party fails first. The cause is raised, not its echo here."""
        return self._loop().run(self._guarded(body))

    async def _guarded(self, body: Callable[[], Coroutine[Any, Any, T]]) -> T:
        if self._parties is None:
            return await body()
        task, failure = asyncio.ensure_future(body()), asyncio.ensure_future(self._parties.parties.failure())
        try:
            await asyncio.wait([task, failure], return_when=asyncio.FIRST_COMPLETED)
            if failure.done():
                raise failure.result()
            try:
                return task.result()
            except PeerError as echo:
                raise (await self._parties.parties.cause() or echo) from None
        finally:
            for each in (task, failure):
                each.cancel()
            await asyncio.gather(task, failure, return_exceptions=True)

    # -- releases ----------------------------------------------------------------------------------------------------
    def sum(self, vectors: Any) -> Floats:
        """The noisy (weighted) sum of the owners' vectors, (d,) float64. See `mean`."""
        mean, release = self._mean(vectors)
        return np.asarray(mean * self.plan.divisor_of(release.present))

    def _mean(self, vectors: Any) -> tuple[Floats, Release]:
        bound, release = self._opened(vectors)
        mean = decode(self.plan, release.total, release.present)
        return mean if bound is None else bound.decode(mean)[0], release

    def mean(self, vectors: Any) -> Floats:
        """The noisy mean of the owners' vectors, (d,) float64: one release.

        `vectors`: an array (m, d), or an iterable of m arrays (d,) that is never held whole. Each is clipped to the
        plan's norm. Errors: UsageError for a wrong shape or values that are not finite (nothing is spent then), for
        more releases than planned, for a closed aggregator; PeerError when a party leaves.
        """
        return self._mean(vectors)[0]

    def open(self, vectors: Any) -> Release:
        """One release of the owners' vectors, in grid steps; a clipping bound that adapts moves. See `mean`."""
        return self._opened(vectors)[1]

    def _opened(self, vectors: Any) -> tuple[ClippingBound | None, Release]:
        """The release, and the bound that its vectors were clipped to."""
        with self._alone():
            rows, bound = rows_of_block(self.plan.dimension), self.bound
            blocks = as_blocks(vectors, self.end - self.first, self.plan.dimension - (bound is not None), rows)

            def encoded() -> Iterable[Ints]:
                first = self.first
                for block in blocks:
                    yield encode(self.plan, block if bound is None else bound.encode(block), first)
                    first += len(block)

            release = self._begin_release(encoded()).result()
            if bound is not None:
                self.bound = bound.decode(decode(self.plan, release.total, release.present))[1]
            return bound, release

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
        self._check_open()
        if self.next >= self.plan.releases:
            raise UsageError(
                f"the plan has {self.plan.releases} releases, and all are made; plan more of them, the noise and the "
                "promise depend on their number"
            )
        number = self.next
        if self._client is None:
            release = self._in_the_clear(number, blocks)
            self.next += 1
            return Ready(release)
        self._await_noise()
        if number < self._joins:
            raise UsageError(
                f"an owner that comes late takes the releases it missed first; {self._joins - number} were made; call "
                "catch_up()"
            )
        try:
            return self._send(self._client, number, blocks)
        except DpmpcError as error:
            if self.next == number:
                raise  # nothing was sent
            self.abandon(error)
            raise

    def _send(self, client: OwnerClient, number: int, blocks: Iterable[Ints]) -> Pending[Release]:
        """Deals block after block in this thread and sends it on the loop; the last one goes with the wait for the
        result, which saves a change of threads."""
        d, columns = self.plan.dimension, columns_of(self.plan.dimension)
        due = blocks_of(self.first, self.end, d)
        last, k = len(due) * len(columns) - 1, -1
        for (start, end), vectors in zip(due, blocks, strict=True):
            assert vectors.shape == (end - start, d)
            for column in columns:
                begin, k = time.perf_counter(), k + 1
                payloads = self._dealer.deal(vectors[:, slice(*column)])
                self.sharing_s += time.perf_counter() - begin
                if k < last:
                    self.next = number + 1
                    self._run(partial(client.send, number, k, payloads))
        self.next = number + 1
        return self._loop().submit(self._guarded(partial(self._finish, client, number, last, payloads)))

    async def _finish(self, client: OwnerClient, number: int, block: int, payloads: Sequence[Any]) -> Release:
        await client.send(number, block, payloads)
        total, sent, present = await client.opened(number)
        return Release(number, total, sent + client.bytes_sent, present)

    def _in_the_clear(self, number: int, blocks: Iterable[Ints]) -> Release:
        total = sum((block.sum(axis=0) for block in blocks), start=np.zeros(self.plan.dimension, dtype=np.int64))
        if self.plan.derived.mechanism.scale:
            total = total + clear_noise(self.plan.derived.sampler, self.plan.dimension, self._prg)
        return Release(number, total, 0)

    def _check_open(self) -> None:
        if self._closed:
            raise UsageError("a closed aggregator makes no releases; this one is closed; make another")

    # -- what is promised --------------------------------------------------------------------------------------------
    @property
    def guarantee(self) -> Promise:
        """What all planned releases together keep, made or not."""
        return promise_of(self.plan)

    def report(self) -> dict[str, Any]:
        """The promise and everything it rests on, how many releases were made, warnings: JSON values."""
        return {
            "run": self.plan.run_id,
            "backend": self.plan.backend if self.plan.parties else "clear",
            "owners": self.plan.owners,
            "parties": self.plan.parties,
            "threshold": self.plan.threshold,
            "dimension": self.plan.dimension - (self.bound is not None),
            "clipping_bound": None if self.bound is None else self.bound.value,
            "releases_made": self.next,
            "parties_lost": self.parties_lost,
            "privacy": privacy_section(self.plan),
            "warnings": warnings_of(self.plan),
        }

    # -- the end -----------------------------------------------------------------------------------------------------
    def costs(self) -> list[PartyCost]:
        """Every party's costs, after the last release. The parties wait for `finish`: what they have opened may be kept
        before, and is had again by a process that dies meanwhile."""
        with self._alone():
            self._check_open()
            client = self._client
            if client is not None and not self._costs:
                self._await_noise()
                self._costs = self._run(client.costs)
            return self._costs

    def finish(self) -> list[PartyCost]:
        """Every party's costs, after the last release; closes the aggregator."""
        costs, client = self.costs(), self._client
        if client is not None:
            self._run(client.finish)
            if self._parties is not None and self._stop is self._parties.end:
                self._parties.wait()
        self.abandon()
        return costs

    def close(self) -> None:
        """End the parties that were started here, and all connections. After all planned releases this is agreed with
        the parties; before, they are told to stop. May be called twice."""
        if not self._closed and self.next >= self.plan.releases:
            with contextlib.suppress(PeerError):  # everything was opened already
                self.finish()
        self.abandon()

    def abandon(self, error: BaseException | None = None) -> None:
        """End everything at once; no process is left behind. Parties elsewhere are told why, as far as it is public."""
        if self._closed:
            return
        self._closed = True
        if self._client is not None:
            with contextlib.suppress(RuntimeError):  # the loop has ended
                self._loop().run(self._leave(self._client, error))
        self._stop()

    async def _leave(self, client: OwnerClient, error: BaseException | None) -> None:
        if error is not None:
            await client.leave(public_reason(client.called, error))
        elif self.next < self.plan.releases:
            await client.leave(f"{client.called} left before the last release")
        client.abandon()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self.close()
        else:
            self.abandon(error)
