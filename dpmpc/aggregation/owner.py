"""The owners' end of a run: their own connections to every party, Shamir shares out, opened releases in. Semi-honest.

One process may play all owners or some of them. Each owner's vector is shared on its own, with fresh randomness of the
operating system; blocks of owners travel in one frame, shape (owners, d), 8 bytes a value.
"""

import asyncio
import ssl
import struct
import time
from collections.abc import AsyncIterator, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from dpmpc.aggregation.grid import Ints
from dpmpc.aggregation.plan import Plan
from dpmpc.errors import PeerError
from dpmpc.mpc import field
from dpmpc.mpc.field import Words
from dpmpc.mpc.prg import Prg
from dpmpc.mpc.session import Endpoint
from dpmpc.mpc.tls import Tls, check_name
from dpmpc.mpc.wire import HEADER as FRAME_HEADER
from dpmpc.mpc.wire import Peer

HELLO = struct.Struct("<II32s")  # owners first .. end, digest of the plan
ANSWER = struct.Struct("<I32s")  # party, digest of the plan
READY = struct.Struct("<Q")  # bytes sent so far
COST = struct.Struct("<QQQQQddQ")  # see PartyCost
HELLO_LABEL, READY_LABEL, COST_LABEL = -1, -4, -3
BLOCK_WORDS = 1 << 19  # 4 MiB a frame
WINDOW = 4  # frames to one party that may be under way without its consent
_BLOCK_BITS = 20


@dataclass(frozen=True)
class PartyCost:
    """What one party counted over a run: bytes to parties and to owners, rounds of the noise and of the openings,
    seconds."""

    bytes_to_parties: int
    bytes_to_owners: int
    bytes_received: int
    offline_rounds: int
    online_rounds: int
    offline_s: float
    online_s: float
    peak_memory: int  # bytes


def label(release: int, block: int) -> int:
    """The frame label of a block of shares; with block -1, of the opened release in the other direction."""
    assert 0 <= block + 1 < 1 << _BLOCK_BITS
    return (release + 1) << _BLOCK_BITS | (block + 1)


def blocks_of(first: int, end: int, dimension: int) -> list[tuple[int, int]]:
    """The blocks in which owners first .. end - 1 send: at most BLOCK_WORDS values each, one owner at least."""
    size = max(1, BLOCK_WORDS // dimension)
    return [(start, min(start + size, end)) for start in range(first, end, size)]


class OwnerClient:
    """Connections of the owners `first` .. `end - 1` with all parties."""

    def __init__(self, plan: Plan, first: int = 0, end: int | None = None) -> None:
        self.plan = plan
        self.first, self.end = first, plan.owners if end is None else end
        assert 0 <= self.first < self.end <= plan.owners
        self.peers: list[Peer] = []
        self._connections: list[Peer] = []  # also those that came to nothing
        self.sharing_s = 0.0  # spent making shares

    @property
    def name(self) -> str:
        """The name that this process's certificate must be for."""
        return certificate_name(self.plan, self.first, self.end)

    async def connect(self, endpoints: Sequence[Endpoint], seconds: float, tls: Tls | None = None) -> None:
        """Connect with every party. Errors: PeerError when one does not answer in time or runs another plan."""
        calls = [asyncio.ensure_future(self._call(i, endpoint, seconds, tls)) for i, endpoint in enumerate(endpoints)]
        try:
            async with asyncio.timeout(seconds):
                self.peers = list(await asyncio.gather(*calls))
        except TimeoutError:
            silent = [i for i, call in enumerate(calls) if not call.done() or call.cancelled()]
            raise PeerError(
                f"every party must answer its owners within {seconds:g} s; missing: party "
                f"{', '.join(f'{i} ({endpoints[i]})' for i in silent)}; start it, or see its log"
            ) from None
        finally:
            for call in calls:
                call.cancel()

    async def _call(self, party: int, endpoint: Endpoint, seconds: float, tls: Tls | None) -> Peer:
        loop = asyncio.get_running_loop()
        peer = Peer(f"party {party}", self.plan.session_id)
        self._connections.append(peer)
        deadline = loop.time() + seconds
        while True:
            try:
                name = f"party{party}" if tls else None
                context = tls.client if tls else None
                await loop.create_connection(
                    lambda: peer, endpoint.host, endpoint.port, ssl=context, server_hostname=name
                )
                break
            except ssl.SSLError as error:
                raise PeerError(
                    f"party {party} ({endpoint}) must show a certificate of this run's authority; {error.reason}; "
                    "mend --tls"
                ) from None
            except OSError:  # not there yet
                if loop.time() > deadline:
                    raise PeerError(
                        f"every party must listen for owners within {seconds:g} s; party {party} ({endpoint}) does "
                        "not; start it, or mend -P / -B"
                    ) from None
                await asyncio.sleep(0.02)
        digest = self.plan.digest()
        peer.send(HELLO_LABEL, HELLO.pack(self.first, self.end, digest))
        index, other = ANSWER.unpack(_exact(peer, await peer.receive(HELLO_LABEL), ANSWER.size))
        if index != party or other != digest:
            raise PeerError(
                f"{endpoint} must be party {party} of the same plan; party {index} with plan {other.hex()[:8]} "
                "answers; mend -P, or copy plan.json again"
            )
        return peer

    async def ready(self) -> int:
        """The bytes all parties have sent so far, when every party has the noise it makes ahead."""
        sizes = [READY.unpack(_exact(peer, await peer.receive(READY_LABEL), READY.size)) for peer in self.peers]
        return sum(size for (size,) in sizes)

    async def release(self, release: int, blocks: Iterable[Ints]) -> tuple[Words, int]:
        """The opened integer sum of one release (d,), and the bytes all parties have sent so far.

        `blocks`: the owners' integer vectors in the order and sizes of `blocks_of`. Errors: PeerError when a party
        leaves, or when the parties' results differ.
        """
        plan = self.plan
        results = [peer.receive(label(release, -1)) for peer in self.peers]
        prg = Prg.from_os()
        due = blocks_of(self.first, self.end, plan.dimension)
        for k, ((start, end), vectors) in enumerate(zip(due, blocks, strict=True)):
            assert vectors.shape == (end - start, plan.dimension)
            if k >= WINDOW:
                for peer in self.peers:
                    _exact(peer, await peer.receive(label(release, k - WINDOW)), 0)
            begin = time.perf_counter()
            shares = field.share(field.from_int64(vectors), plan.parties, plan.threshold, prg)
            self.sharing_s += time.perf_counter() - begin
            for peer, row in zip(self.peers, shares, strict=True):
                peer.send(label(release, k), memoryview(row).cast("B"))
            await asyncio.sleep(0)
        opened: list[Words] = []
        sent = 0
        for peer, future in zip(self.peers, results, strict=True):
            words = np.frombuffer(_exact(peer, await future, 8 * (plan.dimension + 1)), dtype="<u8")
            opened.append(words[:-1])
            sent += int(words[-1])
        if any((other != opened[0]).any() for other in opened[1:]):
            raise PeerError(
                f"all parties must open the same vector; release {release} differs; a party computes wrongly, see "
                "`dpmpc verify`"
            )
        return opened[0], sent

    async def finish(self) -> list[PartyCost]:
        """Every party's costs; ends the connections in agreement."""
        costs = []
        for peer in self.peers:
            costs.append(PartyCost(*COST.unpack(_exact(peer, await peer.receive(COST_LABEL), COST.size))))
            peer.send(COST_LABEL, b"")
        self.abandon()
        await asyncio.sleep(0)
        return costs

    def abandon(self) -> None:
        """Close the connections at once."""
        for peer in self._connections:
            peer.close()

    @property
    def bytes_sent(self) -> int:
        """Bytes these owners have sent to parties, headers included."""
        return sum(peer.bytes_sent for peer in self.peers)


class OwnerGate:
    """A party's end of the same connections: listens for owners and adds up what they send."""

    def __init__(self, plan: Plan, party: int) -> None:
        self.plan = plan
        self.party = party
        self.lost: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._server: asyncio.Server | None = None
        self._tls = False
        self._arrived: asyncio.Queue[Peer] = asyncio.Queue()
        self._connections: list[Peer] = []
        self._owners: list[tuple[int, int, Peer]] = []
        self.adding_s = 0.0  # spent adding up shares

    async def listen(self, endpoint: Endpoint, tls: Tls | None = None) -> None:
        """Open the owners' port. Errors: OSError when it is taken."""

        def accept() -> Peer:
            peer = Peer("the owners' process", self.plan.session_id, self._on_lost, on_made=self._arrived.put_nowait)
            self._connections.append(peer)
            return peer

        self._tls = tls is not None
        context = tls.server if tls else None
        self._server = await asyncio.get_running_loop().create_server(accept, endpoint.host, endpoint.port, ssl=context)

    async def admit(self, seconds: float) -> None:
        """Return when all owners are connected. Errors: PeerError when some do not come, come twice, or have another
        plan."""
        digest, missing = self.plan.digest(), set(range(self.plan.owners))
        try:
            async with asyncio.timeout(seconds):
                while missing:
                    peer = await self._arrived.get()
                    first, end, other = HELLO.unpack(_exact(peer, await peer.receive(HELLO_LABEL), HELLO.size))
                    peer.send(HELLO_LABEL, ANSWER.pack(self.party, digest))
                    if other != digest:
                        raise PeerError(
                            f"owners and parties must have the same plan; here {digest.hex()[:8]}, theirs "
                            f"{other.hex()[:8]}; copy plan.json again"
                        )
                    if self._tls:
                        check_name(peer.certificate, certificate_name(self.plan, first, end))
                    mine = set(range(first, min(end, self.plan.owners + 1)))
                    if not mine or not mine <= missing:
                        raise PeerError(
                            f"every owner must come once; owners {first}..{end - 1} came, missing were {len(missing)} "
                            f"of {self.plan.owners}; mend -I"
                        )
                    missing -= mine
                    peer.name = f"the owners' process ({first}..{end - 1})"
                    self._owners.append((first, end, peer))
        except TimeoutError:
            raise PeerError(
                f"all owners must come within {seconds:g} s; {len(missing)} of {self.plan.owners} did not, the first "
                f"is owner {min(missing)}; start their process"
            ) from None
        self._owners.sort(key=lambda entry: entry[0])
        if self._server is not None:
            self._server.close()

    def announce(self, bytes_sent: int) -> None:
        """Tell the owners that the noise made ahead is there, and how many bytes this party has sent for it."""
        for _, _, peer in self._owners:
            peer.send(READY_LABEL, READY.pack(bytes_sent))

    async def contributions(self, release: int) -> AsyncIterator[tuple[int, int, Words]]:
        """(first, end, share): this party's share (d,) of the sum of owners first .. end - 1, for each owners' process
        as it arrives.

        No message but consent.
        """
        d = self.plan.dimension
        for first, end, peer in self._owners:
            total = np.zeros(d, dtype=np.uint64)
            blocks = blocks_of(first, end, d)
            for k, (start, stop) in enumerate(blocks):
                payload = _exact(peer, await peer.receive(label(release, k)), 8 * (stop - start) * d)
                begin = time.perf_counter()
                shares = np.frombuffer(payload, dtype="<u8").reshape(stop - start, d)
                if shares.max() >= field.P:
                    raise PeerError(
                        f"shares must be below p = 2^61 - 1; {peer.name} sent larger ones in release {release}; are "
                        "all of one version?"
                    )
                total = field.add(total, field.total(shares))
                self.adding_s += time.perf_counter() - begin
                if k + WINDOW < len(blocks):
                    peer.send(label(release, k), b"")
            yield first, end, total

    def publish(self, release: int, opened: Words, bytes_sent: int) -> None:
        """Send an opened release to all owners, with the bytes this party has sent so far."""
        bytes_sent += len(self._owners) * (FRAME_HEADER.size + 8 * (len(opened) + 1))  # these frames too
        payload = np.append(opened, np.uint64(bytes_sent)).astype("<u8").tobytes()
        for _, _, peer in self._owners:
            peer.send(label(release, -1), payload)

    async def finish(self, cost: PartyCost) -> None:
        """Send the costs and end the connections in agreement."""
        payload = COST.pack(
            cost.bytes_to_parties,
            cost.bytes_to_owners,
            cost.bytes_received,
            cost.offline_rounds,
            cost.online_rounds,
            cost.offline_s,
            cost.online_s,
            cost.peak_memory,
        )
        for _, _, peer in self._owners:
            peer.expects_end = True
            peer.send(COST_LABEL, payload)
        for _, _, peer in self._owners:
            await peer.receive(COST_LABEL)
        self.abandon()
        await asyncio.sleep(0)

    def abandon(self) -> None:
        """Close everything at once."""
        if self._server is not None:
            self._server.close()
        for peer in self._connections:
            peer.close()

    def _on_lost(self, peer: Peer, why: str) -> None:
        if not self.lost.done():
            self.lost.set_exception(PeerError(f"{peer.name} left the run ({why}); see its log"))
            self.lost.exception()

    @property
    def bytes_sent(self) -> int:
        return sum(peer.bytes_sent for peer in self._connections)

    @property
    def bytes_received(self) -> int:
        return sum(peer.bytes_received for peer in self._connections)


def certificate_name(plan: Plan, first: int, end: int) -> str:
    """`owners` for a process that plays all owners, `owner7` for one that plays owner 7 alone; no other has a
    certificate."""
    if (first, end) == (0, plan.owners):
        return "owners"
    return f"owner{first}" if end == first + 1 else f"owners {first}..{end - 1}"


def _exact(peer: Peer, payload: bytearray, size: int) -> bytearray:
    if len(payload) != size:
        raise PeerError(
            f"{peer.name} sent {len(payload)} bytes where {size} were due; are all processes of one version?"
        )
    return payload
