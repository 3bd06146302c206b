"""A party's end of its connections with owners: admits them, adds up their shares, sends them what was opened."""

import asyncio
import socket
import time
from collections.abc import AsyncIterator

from dpmpc.aggregation.frames import (
    ANSWER,
    HELLO,
    READY,
    WINDOW,
    PartyCost,
    blocks_of,
    certificate_name,
    exact,
    result_bytes,
)
from dpmpc.aggregation.grid import Ints
from dpmpc.aggregation.plan import Attempt, Plan
from dpmpc.errors import PeerError
from dpmpc.mpc import channels
from dpmpc.mpc.addresses import Endpoint
from dpmpc.mpc.backend import Holder, Share
from dpmpc.mpc.channels import block_label
from dpmpc.mpc.dial import listen
from dpmpc.mpc.link import Connection
from dpmpc.mpc.tls import Tls, check_name
from dpmpc.mpc.wire import HEADER, Peer
from dpmpc.mpc.within import Within

Guest = Peer | Within


class OwnerGate:
    """Listens for owners, for one attempt of a run."""

    def __init__(self, plan: Plan, attempt: Attempt, holder: Holder) -> None:
        self.plan, self.attempt, self.holder = plan, attempt, holder
        self.lost: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.adding_s = 0.0  # spent adding up shares
        self._server: asyncio.Server | None = None
        self._tls = False
        self._arrived: asyncio.Queue[Guest] = asyncio.Queue()
        self._made: list[Guest] = []
        self._owners: list[tuple[int, int, Guest]] = []

    async def listen(self, endpoint: Endpoint, tls: Tls | None = None, bound: socket.socket | None = None) -> None:
        """Open the owners' port, on the socket that was bound before if there is one. Errors: UsageError when it is
        taken."""

        def make() -> Peer:
            run_id = self.plan.session_id(self.attempt)
            peer = Peer("the owners' process", run_id, self._on_lost, on_made=self._arrived.put_nowait)
            self._made.append(peer)
            return peer

        self._tls = tls is not None
        self._server = await listen(make, endpoint, bound, tls, f"party {self.holder.party} must listen for owners")

    def join(self, owner: Within) -> None:
        """The owner in this process comes in; it needs no certificate."""
        owner.on_lost = self._on_lost
        self._made.append(owner)
        self._arrived.put_nowait(owner)

    async def admit(self, seconds: float) -> None:
        """Return when all owners are connected. Errors: PeerError when some do not come, come twice, or have another
        plan."""
        plan, missing = self.plan, set(range(self.plan.owners))
        digest = plan.digest(self.attempt)
        try:
            async with asyncio.timeout(seconds):
                while missing:
                    peer = await self._arrived.get()
                    first, end, other = HELLO.unpack(exact(peer, await peer.receive(channels.HELLO), HELLO.size))
                    peer.send(channels.HELLO, ANSWER.pack(self.holder.party, digest))
                    if other != digest:
                        raise PeerError(
                            f"owners and parties must have the same plan; here {digest.hex()[:8]}, theirs "
                            f"{other.hex()[:8]}; copy plan.json again"
                        )
                    if self._tls and isinstance(peer, Peer):
                        check_name(peer.certificate, certificate_name(plan, first, end))
                    mine = set(range(first, min(end, plan.owners + 1)))
                    if not mine or not mine <= missing:
                        raise PeerError(
                            f"every owner must come once; owners {first}..{end - 1} came, missing were {len(missing)} "
                            f"of {plan.owners}; mend -I"
                        )
                    missing -= mine
                    peer.name = f"the owners' process ({first}..{end - 1})"
                    self._owners.append((first, end, peer))
        except TimeoutError:
            raise PeerError(
                f"all owners must come within {seconds:g} s; {len(missing)} of {plan.owners} did not, the first "
                f"is owner {min(missing)}; start their process"
            ) from None
        self._owners.sort(key=lambda entry: entry[0])
        if self._server is not None:
            self._server.close()

    def announce(self, bytes_sent: int) -> None:
        """Tell the owners that the noise made ahead is there, and how many bytes this party has sent for it."""
        for _, _, peer in self._owners:
            peer.send(channels.READY, READY.pack(bytes_sent))

    async def contributions(self, release: int) -> AsyncIterator[tuple[int, int, Share]]:
        """(first, end, share): this party's share (d,) of the sum of owners first .. end - 1, for each owners' process
        as it arrives.

        No message but consent.
        """
        d, holder = self.plan.dimension, self.holder
        for first, end, peer in self._owners:
            total: Share = None
            blocks = blocks_of(first, end, d)
            for k, (start, stop) in enumerate(blocks):
                payload = await peer.receive(block_label(release, k))
                begin = time.perf_counter()
                try:
                    share = holder.collect(payload, stop - start, d)
                except PeerError as error:
                    raise PeerError(f"{peer.name}, release {release}: {error}") from None
                total = share if total is None else holder.add(total, share)
                self.adding_s += time.perf_counter() - begin
                if k + WINDOW < len(blocks):
                    peer.send(block_label(release, k), b"")
            yield first, end, total

    def publish(self, release: int, opened: Ints, bytes_sent: int) -> None:
        """Send an opened release to all owners, with the bytes this party has sent so far."""
        bytes_sent += len(self._owners) * (HEADER.size + result_bytes(len(opened)))  # these frames too
        payload = opened.astype("<i8").tobytes() + bytes_sent.to_bytes(8, "little")
        for _, _, peer in self._owners:
            peer.send(block_label(release, -1), payload)

    async def finish(self, cost: PartyCost) -> None:
        """Send the costs and end the connections in agreement."""
        for _, _, peer in self._owners:
            peer.expects_end = True
            peer.send(channels.COST, cost.pack())
        for _, _, peer in self._owners:
            await peer.receive(channels.COST)
        self.abandon()
        await asyncio.sleep(0)

    def abandon(self) -> None:
        """Close everything at once."""
        if self._server is not None:
            self._server.close()
        for peer in self._made:
            peer.close()

    def _on_lost(self, peer: Connection, why: str) -> None:
        if not self.lost.done():
            self.lost.set_exception(PeerError(f"{peer.name} left the run ({why}); see its log"))
            self.lost.exception()

    @property
    def bytes_sent(self) -> int:
        return sum(peer.bytes_sent for peer in self._made)

    @property
    def bytes_received(self) -> int:
        return sum(peer.bytes_received for peer in self._made)
