"""One party's connections with all others, and the numbered channels on them. What every backend's parties have in
common; no keys, no arithmetic."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from dpmpc.errors import PeerError, UsageError
from dpmpc.mpc.native import choice
from dpmpc.mpc.numbers.prg import forks
from dpmpc.mpc.transport.channels import BARRIER, exchange_label
from dpmpc.mpc.transport.heartbeat import STALL
from dpmpc.mpc.transport.link import Connection, Hello, Link, Observe, Queueing, agreed_end

Words = NDArray[np.uint64]
T = TypeVar("T")
CONNECT_SECONDS = 10.0


class Channel:
    """A numbered sequence of exchanges between the parties; each exchange is one round.

    All parties call the exchanges of one channel in the same order; different channels may interleave. `ident` is used
    once an attempt of a run.
    """

    def __init__(self, mesh: "Mesh", ident: int) -> None:
        self.mesh = mesh
        self.ident = ident
        self.rounds = 0
        self.bytes_sent = 0
        self.messages_sent = 0

    def exchange(self, outgoing: Mapping[int, Any], incoming: Sequence[int]) -> Awaitable[list[bytearray]]:
        """Sends `outgoing` (party -> bytes) now; to be awaited: the payloads that the parties `incoming` send in this
        round.

        Cost: one round. What is computed between the call and the await hides the network's delay.
        """
        label = exchange_label(self.ident, self.rounds)
        if self.mesh.parties > 1:  # one party alone waits for nobody
            self.rounds += 1
            self.mesh.rounds += 1
        peers = self.mesh.peers
        for party, payload in outgoing.items():
            view = memoryview(payload).cast("B")
            self.bytes_sent += len(view)
            self.messages_sent += 1
            peers[party].send(label, view)
        futures = [peers[party].receive(label) for party in incoming]

        async def received() -> list[bytearray]:
            return [await future for future in futures]

        return received()

    async def flushed(self, party: int) -> None:
        """Returns when all that was sent to this party is under way."""
        peer = self.mesh.peers[party]
        if isinstance(peer, Queueing):
            await peer.flushed()

    def words(self, outgoing: Mapping[int, Words], incoming: Sequence[int], size: int) -> Awaitable[list[Words]]:
        """As `exchange`, for contiguous uint64 arrays; each received array is flat and has `size` words.

        Errors: PeerError when a peer sends another length.
        """
        pending = self.exchange(outgoing, incoming)

        async def received() -> list[Words]:
            payloads = await pending
            for party, payload in zip(incoming, payloads, strict=True):
                if len(payload) != 8 * size:
                    raise PeerError(
                        f"party {party} sent {len(payload)} bytes where {8 * size} were due; are all parties of one "
                        "version?",
                        code="message",
                    )
            return [np.frombuffer(payload, dtype="<u8") for payload in payloads]

        return received()


class Mesh:
    """The connections of party `party` of `parties`; everything on them is bound to `run_id`."""

    def __init__(self, party: int, parties: int, run_id: bytes, observe: Observe | None = None) -> None:
        """`observe` sees every frame that the protocols send or receive. Needs a running event loop."""
        if not 0 <= party < parties:
            raise UsageError(
                f"a party's index lies in 0..n-1; got {party} for n = {parties}; mend <<index>> or <<parties>>"
            )
        self.party, self.parties, self.run_id = party, parties, run_id
        self.peers: Mapping[int, Connection] = {}
        self.lost: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.rounds = 0  # exchanges of all channels; concurrent ones count each
        self._observe = observe
        self._link: Link | None = None
        self._channels: set[int] = set()
        self._forks = forks()
        self.threads = 1
        self._workers: ThreadPoolExecutor | None = None

    def use_threads(self, threads: int) -> None:
        """From now on kernels run on so many threads; on 1, the event loop's own. Layers of programs are shared out
        within a kernel, as one takes less time than to hand it over; what `work` gets goes to a thread as a whole."""
        self._stop_workers()
        choice.use_threads(threads)
        self.threads = threads
        self._workers = ThreadPoolExecutor(threads, "kernels") if threads > 1 else None

    async def work(self, job: Callable[[], T]) -> T:
        """What the job returns, done where kernels run. A kernel lets go of the interpreter's lock."""
        if self._workers is None:
            return job()
        return await asyncio.get_running_loop().run_in_executor(self._workers, job)

    def _stop_workers(self) -> None:
        if self._workers is not None:
            self._workers.shutdown(wait=False)

    async def connect(self, link: Link, digest: bytes = bytes(32), *, seconds: float = CONNECT_SECONDS) -> None:
        """Connect with every other party; `digest` binds the public parameters. Errors: as `Link.connect`."""
        if self.parties == 1:
            return
        self._link = link
        hello = Hello(self.party, self.parties, digest)
        self.peers = await link.connect(hello, self.run_id, seconds, self._on_lost, self._observe)

    def _on_lost(self, peer: Connection, error: PeerError) -> None:
        if not self.lost.done():
            self.lost.set_exception(error)
            self.lost.exception()

    async def here(self, channel: int, said: bytes = b"") -> None:
        """Returns when all parties have come to this point and have said the same. Cost: `count_here`. Errors:
        PeerError for one that says something else."""
        others = sorted(self.peers)
        told = await self.channel(channel).exchange(dict.fromkeys(others, said), others)
        if any(bytes(each) != said for each in told):
            raise self.apart(channel)

    def apart(self, channel: int) -> PeerError:
        """The error to raise where parties say different things. It may be a third one that made them differ."""
        return PeerError(
            f"all parties must be at one point of one attempt; on channel {channel} they say different things; start "
            "all parties again"
        )

    async def stand(self, share: Words, said: bytes, channel: int) -> None:
        """The barrier before the opening on this channel: see `Holder.stand`. Cost: one round, on a channel of its own.
        Nothing is said of shares: one that is known, and a digest of another, would let values be tried out."""
        await self.here(BARRIER + channel, said)

    async def close(self, seconds: float = STALL) -> list[int]:
        """See `Holder.close`."""
        silent = await agreed_end(self.peers, seconds)
        self.abandon()
        await asyncio.sleep(0)
        return silent

    def abandon(self) -> None:
        """Close the connections at once; the peers will notice."""
        self._stop_workers()
        if self._link is not None:
            self._link.abandon()

    def channel(self, ident: int) -> Channel:
        """A new channel. Numbers are public and must agree between the parties; each is used once an attempt, in the
        process that began it."""
        if not 0 <= ident < 1 << 31 or ident in self._channels:  # holds under -O too: streams are bound to the number
            raise AssertionError(f"channel {ident} is used already")
        if self._forks != forks():  # and what they hide would be used twice
            raise AssertionError("a party computes in the process that began it, and not in one that was forked later")
        self._channels.add(ident)
        return Channel(self, ident)

    @property
    def bytes_sent(self) -> int:
        """Bytes this party has sent to other parties, headers included."""
        return sum(peer.bytes_sent for peer in self.peers.values())

    @property
    def bytes_received(self) -> int:
        """Bytes this party has received from other parties, headers included."""
        return sum(peer.bytes_received for peer in self.peers.values())

    @property
    def frames_sent(self) -> int:
        """Frames this party has sent to other parties."""
        return sum(peer.frames_sent for peer in self.peers.values())

    def connections(self) -> dict[Connection, int]:
        """The connections with other parties, and whose they are."""
        return {peer: party for party, peer in self.peers.items()}
