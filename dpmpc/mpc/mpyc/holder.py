"""A party of the backend mpyc: shares of vectors as MPyC's finite-field arrays, on an MPyC runtime whose messages go
over the run's own connections."""

import asyncio
import hashlib
from collections.abc import Awaitable, Mapping, Sequence
from typing import Any, Protocol, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from dpmpc.circuits.sampler import Sampler
from dpmpc.errors import PeerError
from dpmpc.mpc.contract.backend import Ints
from dpmpc.mpc.mpyc import fixed
from dpmpc.mpc.mpyc import runtime as mpyc_runtime
from dpmpc.mpc.mpyc.arithmetic import MpycArithmetic
from dpmpc.mpc.mpyc.drawing import BATCH, P, batch_sizes, drawn_exactly
from dpmpc.mpc.mpyc.exchange import Exchange, Turn
from dpmpc.mpc.transport.channels import BARRIER, CONFIRM, KEYS, exchange_label
from dpmpc.mpc.transport.heartbeat import STALL
from dpmpc.mpc.transport.link import Connection, Hello, Link, Observe, agreed_end

WORD = 8  # bytes of an element of F_p
_VERSION = 16  # bytes
T = TypeVar("T")


class Elements(Protocol):
    """An array over F_p, as MPyC has it: of its interface what is used here, since mpyc ships no types."""

    value: NDArray[np.object_]

    def __len__(self) -> int: ...
    def __add__(self, other: Self) -> Self: ...
    def __getitem__(self, part: slice) -> Self: ...


class MpycHolder:
    """A share is an MPyC finite-field array (dimension,), as in an MPyC coroutine. One a process: MPyC's types belong
    to the runtime that was made last."""

    def __init__(self, party: int, parties: int, threshold: int, run_id: bytes, observe: Observe | None = None) -> None:
        self.party, self.parties, self.threshold, self.run_id = party, parties, threshold, run_id
        self.mpc: Any = mpyc_runtime.make_runtime(party, parties, threshold)
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(_quiet(loop.get_exception_handler()))
        self.lost: asyncio.Future[None] = loop.create_future()
        self.secfld: Any = self.mpc.SecFld(P)
        self.field: Any = self.secfld.field
        self.threads = 1
        self._observe = observe
        self._link: Link | None = None
        self._turns, self._turn = Turn(), asyncio.Lock()  # MPyC's counters must hop alike: one thing at a time
        self._peers: Mapping[int, Connection] = {}
        self._barriers = 0
        self._used: set[int] = set()

    def use_threads(self, threads: int) -> None:
        """MPyC computes in the thread of its event loop."""

    # -- connections -------------------------------------------------------------------------------------------------
    async def connect(self, link: Link, digest: bytes = bytes(32), *, seconds: float = 10.0) -> None:
        """Connect, compare versions of MPyC, and deal its PRSS keys. Without TLS these cross the network in the clear:
        loopback only."""
        if self.parties == 1:
            return
        self._link = link
        everything = hashlib.sha256(digest + repr((P, self.threshold, BATCH, fixed.FRACTION, fixed.LENGTH)).encode())
        hello = Hello(self.party, self.parties, everything.digest())
        self._peers = await link.connect(hello, self.run_id, seconds, self._on_lost, self._observe)
        await self._same_version()
        for j, peer in self._peers.items():
            if j > self.party:
                peer.send(KEYS, b"".join(self.mpc._prss_keys_to_peer(j)))
        for j, peer in self._peers.items():
            if j < self.party:
                keys, due = bytes(await peer.receive(KEYS)), self.mpc._prss_keys_from_peer(j)
                if len(keys) != due:
                    raise PeerError(
                        f"party {j} sent {len(keys)} key bytes where {due} were due; are all parties of one version?"
                    )
                self.mpc._prss_keys_from_peer(j, keys)
            self.mpc.parties[j].protocol = Exchange(peer, self._turns)

    async def _same_version(self) -> None:
        mine = mpyc_runtime.version()
        for peer in self._peers.values():
            peer.send(CONFIRM, mine.encode().ljust(_VERSION, b"\0")[:_VERSION])
        for j, peer in self._peers.items():
            theirs = bytes(await peer.receive(CONFIRM)).rstrip(b"\0").decode("ascii", "replace")[:_VERSION]
            if theirs != mine[:_VERSION]:
                raise PeerError(
                    f"all parties must have the same version of MPyC; party {j} has {theirs}, party {self.party} has "
                    f"{mine}; install the same one everywhere"
                )

    def _on_lost(self, peer: Connection, error: PeerError) -> None:
        if not self.lost.done():
            self.lost.set_exception(error)
            self.lost.exception()

    @property
    def rounds(self) -> int:
        return self._turns.rounds + self._barriers

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

    async def close(self, seconds: float = STALL) -> list[int]:
        """See `Holder.close`. MPyC's own shutdown unpickles."""
        silent = await agreed_end(self._peers, seconds)
        self.abandon()
        await asyncio.sleep(0)
        return silent

    def abandon(self) -> None:
        if self._link is not None:
            self._link.abandon()

    # -- shares ------------------------------------------------------------------------------------------------------
    def collect(self, payload: bytes | bytearray, owners: int, dimension: int) -> Elements:
        if len(payload) != WORD * owners * dimension:
            raise PeerError(
                f"{owners} shares of {dimension} numbers have {WORD * owners * dimension} bytes; {len(payload)} came; "
                "are all processes of one version?"
            )
        words = np.frombuffer(payload, dtype="<u8").reshape(owners, dimension)
        if words.max(initial=0) >= P:
            raise PeerError("shares must be below p = 2^61 - 1; larger ones came; are all processes of one version?")
        total: Elements = self.field.array(words.astype(object), check=False).sum(axis=0)
        return total

    def _array(self, values: NDArray[np.object_]) -> Elements:
        array: Elements = self.field.array(values, check=False)
        return array

    def zero(self, dimension: int) -> Elements:
        return self._array(np.zeros(dimension, dtype=object))

    def add(self, a: Elements, b: Elements) -> Elements:
        return a + b

    def kept(self, share: Elements, places: NDArray[np.bool_]) -> Elements:
        return self._array(np.where(places, share.value, 0))

    def cut(self, share: Elements, dimension: int) -> list[Elements]:
        return [share[at : at + dimension] for at in range(0, len(share), dimension)]

    def join(self, shares: Sequence[Elements]) -> Elements:
        return self._array(np.concatenate([share.value for share in shares]))

    def fingerprint(self, share: Elements) -> str:
        return hashlib.sha256(self.field.to_bytes(share.value.tolist())).hexdigest()

    # -- noise and openings ------------------------------------------------------------------------------------------
    async def noise(self, sampler: Sampler, channel: int, count: int) -> Elements:
        async with self._turn:
            parts = []
            self._use(channel)
            for size in batch_sizes(count):
                parts.append(await self._on(channel, self._draw(sampler, size)))
        return self.join(parts) if parts else self.zero(0)

    async def _draw(self, sampler: Sampler, size: int) -> Elements:
        if isinstance(sampler, fixed.SecFxpSampler):
            self.mpc.options.sec_param = sampler.sec_param
            bits = fixed.LENGTH + fixed.FRACTION + sampler.sec_param + 2
            fxp = self.mpc.SecFxp(fixed.LENGTH, fixed.FRACTION, p=mpyc_runtime.prime_of(bits))
            drawn = await self.mpc.gather(await fixed.draw(self.mpc, sampler, fxp, self.secfld, size))
            array: Elements = self.field.array([each.value for each in drawn][:size])
            return array
        chosen = drawn_exactly(sampler)
        engine = MpycArithmetic(self.mpc, self.field, chosen.lanes(size))
        values = await chosen.circuit(engine, size)
        flat: Elements = values.reshape(-1)
        return flat[:size]

    async def open(self, share: Elements, channel: int) -> Ints:
        async with self._turn:
            self._use(channel)
            opened = await self._on(channel, self.mpc.output(self.secfld.array(share)))
        return np.asarray(opened.signed_(), dtype=np.int64)

    async def here(self, channel: int, said: bytes = b"") -> None:
        """See `Holder.here`: frames of the run's own, of which MPyC knows nothing."""
        self._use(channel)
        self._barriers += int(self.parties > 1)
        label = exchange_label(channel, 0)
        for peer in self._peers.values():
            peer.send(label, said)
        coming = [peer.receive(label) for peer in self._peers.values()]
        if any(bytes(told) != said for told in [await each for each in coming]):
            raise PeerError(
                f"all parties must be at one point of one attempt; on channel {channel} they say different things; "
                "start all parties again"
            )

    async def stand(self, share: Elements, said: bytes, channel: int) -> None:
        await self.here(BARRIER + channel, said)

    def _use(self, channel: int) -> None:
        if not 0 <= channel < 1 << 31 or channel in self._used:  # holds under -O too
            raise AssertionError(f"channel {channel} is used already")
        self._used.add(channel)

    async def _on(self, channel: int, protocol: Awaitable[T]) -> T:
        """What the protocol returns; all that it sends and receives belongs to the channel."""
        self._turns.begin(channel)
        return await protocol


def _quiet(before: Any) -> Any:
    """A loop's handler: MPyC's coroutines that waited for a party that left end cancelled, which is no news; the rest
    is for the handler that it had `before`, or None."""

    def told(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        if isinstance(context.get("exception"), asyncio.CancelledError) or "destroyed" in context["message"]:
            return
        if before is None:
            loop.default_exception_handler(context)
        else:
            before(loop, context)

    return told
