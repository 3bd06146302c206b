"""A party of the backend mpyc: shares of vectors as MPyC's finite-field arrays, on an MPyC runtime."""

import asyncio
import hashlib
from collections.abc import Awaitable, Mapping, Sequence
from typing import Any, Protocol, TypeVar

import numpy as np

from dpmpc.circuits.sampler import Sampler
from dpmpc.errors import PeerError, UsageError
from dpmpc.mpc import mpyc_runtime
from dpmpc.mpc.addresses import Endpoint, check_loopback
from dpmpc.mpc.backend import Ints
from dpmpc.mpc.backends.mpyc import fixed
from dpmpc.mpc.backends.mpyc.arithmetic import MpycArithmetic
from dpmpc.mpc.backends.mpyc.drawing import BATCH, P, batch_sizes, drawn_exactly
from dpmpc.mpc.backends.mpyc.exchange import Counters, Greeting, connect
from dpmpc.mpc.link import Connection, Link, Observe
from dpmpc.mpc.tls import Tls

WORD = 8  # bytes of an element of F_p
_END = -2
T = TypeVar("T")


class Sockets(Protocol):
    """What this backend takes from a link: where to listen and call. The connections are MPyC's."""

    addresses: Sequence[Endpoint]
    tls: Tls | None
    bound: Any


class MpycHolder:
    """A share is an MPyC finite-field array (dimension,), as in an MPyC coroutine. One a process: MPyC's types belong
    to the runtime that was made last."""

    def __init__(self, party: int, parties: int, threshold: int, run_id: bytes, observe: Observe | None = None) -> None:
        self.party, self.parties, self.threshold = party, parties, threshold
        self.mpc: Any = mpyc_runtime.make_runtime(party, parties, threshold)
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(_quiet)
        self.lost: asyncio.Future[None] = loop.create_future()
        self.secfld: Any = self.mpc.SecFld(P)
        self.field: Any = self.secfld.field
        self.threads = 1
        self._run_id = run_id
        self._counters = Counters(observe)
        self._peers: Mapping[int, Any] = {}
        self._turn = asyncio.Lock()  # MPyC's program counters must go on alike at all parties: one thing at a time
        self._used: set[int] = set()

    def use_threads(self, threads: int) -> None:
        """MPyC computes in the thread of its event loop."""

    # -- connections -------------------------------------------------------------------------------------------------
    async def connect(self, link: Link, digest: bytes = bytes(32), *, seconds: float = 10.0) -> None:
        if self.parties == 1:
            return
        sockets = _sockets(link)
        if sockets.tls is None:
            check_loopback(endpoint.host for endpoint in sockets.addresses)
        everything = hashlib.sha256(digest + self._run_id + repr((BATCH, fixed.FRACTION, fixed.LENGTH)).encode())
        mine = Greeting(mpyc_runtime.version(), P, self.parties, self.threshold, self.party, everything.digest())
        self._peers = await connect(
            self.mpc,
            mine,
            sockets.addresses,
            sockets.tls,
            sockets.bound,
            seconds,
            self._counters,
            self._on_lost,
            getattr(link, "pulse", None),
        )

    def _on_lost(self, peer: Connection, error: PeerError) -> None:
        if not self.lost.done():
            self.lost.set_exception(error)
            self.lost.exception()

    @property
    def rounds(self) -> int:
        return self._counters.rounds

    @property
    def bytes_sent(self) -> int:
        return sum(peer.bytes_sent for peer in self._peers.values())

    @property
    def bytes_received(self) -> int:
        return sum(peer.bytes_received for peer in self._peers.values())

    @property
    def frames_sent(self) -> int:
        return sum(peer.frames_sent for peer in self._peers.values())

    def connections(self) -> dict[Connection, int]:
        return {peer: party for party, peer in self._peers.items()}

    async def close(self) -> None:
        for peer in self._peers.values():
            peer.expects_end = True
        async with self._turn:  # MPyC's own shutdown unpickles; an opening of nothing agrees on the end as well
            await self._on(_END, self.mpc.output(self.secfld.array(self.zero(1)), threshold=self.parties - 1))
        for peer in self._peers.values():
            if strays := peer.leftover():
                raise PeerError(
                    f"{peer.name} sent {strays} frames that no protocol asked for; are all parties of one version?"
                )
        self.abandon()
        await asyncio.sleep(0)

    def abandon(self) -> None:
        for peer in self._peers.values():
            peer.close()

    # -- shares ------------------------------------------------------------------------------------------------------
    def collect(self, payload: bytes | bytearray, owners: int, dimension: int) -> Any:
        if len(payload) != WORD * owners * dimension:
            raise PeerError(
                f"{owners} shares of {dimension} numbers have {WORD * owners * dimension} bytes; {len(payload)} came; "
                "are all processes of one version?"
            )
        words = np.frombuffer(payload, dtype="<u8").reshape(owners, dimension)
        if words.max(initial=0) >= P:
            raise PeerError("shares must be below p = 2^61 - 1; larger ones came; are all processes of one version?")
        return self.field.array(words.astype(object), check=False).sum(axis=0)

    def zero(self, dimension: int) -> Any:
        return self.field.array(np.zeros(dimension, dtype=object), check=False)

    def add(self, a: Any, b: Any) -> Any:
        return a + b

    def cut(self, share: Any, dimension: int) -> list[Any]:
        return [share[at : at + dimension] for at in range(0, len(share), dimension)]

    def join(self, shares: Sequence[Any]) -> Any:
        return self.field.array(np.concatenate([share.value for share in shares]), check=False)

    def fingerprint(self, share: Any) -> str:
        return hashlib.sha256(self.field.to_bytes(share.value.tolist())).hexdigest()

    # -- noise and openings ------------------------------------------------------------------------------------------
    async def noise(self, sampler: Sampler, channel: int, count: int) -> Any:
        async with self._turn:
            parts = []
            self._use(channel)
            for size in batch_sizes(count):
                parts.append(await self._on(channel, self._draw(sampler, size)))
        return self.join(parts) if parts else self.zero(0)

    async def _draw(self, sampler: Sampler, size: int) -> Any:
        if isinstance(sampler, fixed.SecFxpSampler):
            self.mpc.options.sec_param = sampler.sec_param
            bits = fixed.LENGTH + fixed.FRACTION + sampler.sec_param + 2
            fxp = self.mpc.SecFxp(fixed.LENGTH, fixed.FRACTION, p=mpyc_runtime.prime_of(bits))
            drawn = await self.mpc.gather(await fixed.draw(self.mpc, sampler, fxp, self.secfld, size))
            return self.field.array([each.value for each in drawn][:size])
        chosen = drawn_exactly(sampler)
        engine = MpycArithmetic(self.mpc, self.field, chosen.lanes(size))
        values = await chosen.circuit(engine, size)
        return values.reshape(-1)[:size]

    async def open(self, share: Any, channel: int) -> Ints:
        async with self._turn:
            self._use(channel)
            opened = await self._on(channel, self.mpc.output(self.secfld.array(share)))
        return np.asarray(opened.signed_(), dtype=np.int64)

    async def here(self, channel: int) -> None:
        await self.open(self.zero(1), channel)

    def _use(self, channel: int) -> None:
        if not 0 <= channel < 1 << 31 or channel in self._used:  # holds under -O too
            raise AssertionError(f"channel {channel} is used already")
        self._used.add(channel)

    async def _on(self, channel: int, protocol: Awaitable[T]) -> T:
        """What the protocol returns; all that it sends and receives belongs to the channel."""
        self._counters.channel = channel
        result = await protocol
        for peer in self._peers.values():
            peer.settle()
        return result


def _sockets(link: Any) -> Sockets:
    """Errors: UsageError for a link that has no addresses."""
    if not all(hasattr(link, name) for name in ("addresses", "tls", "bound")):
        raise UsageError(
            "MPyC makes its own connections over TCP; this run's link has no addresses for it; use the link tcp, or "
            "--backend sharing"
        )
    sockets: Sockets = link
    return sockets


def _quiet(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """MPyC's coroutines that waited for a party that left end cancelled, which is no news."""
    if not isinstance(context.get("exception"), asyncio.CancelledError) and "destroyed" not in context["message"]:
        loop.default_exception_handler(context)
