"""The owners' end of a run: their own connections to every party, shares out, opened releases in. Semi-honest.

One process may play all owners or some of them. Each owner's vector is shared on its own, with fresh randomness of the
operating system; blocks of owners travel in one frame.
"""

import asyncio
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np

from dpmpc.aggregation import frames
from dpmpc.aggregation.frames import ANSWER, HELLO, READY, WINDOW, PartyCost, exact, result_bytes
from dpmpc.aggregation.grid import Ints
from dpmpc.aggregation.plan import Attempt, Plan
from dpmpc.errors import PeerError
from dpmpc.mpc import channels
from dpmpc.mpc.addresses import Endpoint
from dpmpc.mpc.backend import BACKENDS, Spares
from dpmpc.mpc.channels import block_label
from dpmpc.mpc.dial import dial
from dpmpc.mpc.link import Connection
from dpmpc.mpc.tls import Tls
from dpmpc.mpc.wire import Peer


class OwnerClient:
    """Connections of the owners `first` .. `end - 1` with all parties, for one attempt of a run."""

    def __init__(
        self,
        plan: Plan,
        attempt: Attempt,
        first: int = 0,
        end: int | None = None,
        within: Mapping[int, Connection] = MappingProxyType({}),
    ) -> None:
        """`within`: connections with parties of this process, by number; the others are called."""
        self.plan, self.attempt = plan, attempt
        self.first, self.end = first, plan.owners if end is None else end
        assert 0 <= self.first < self.end <= plan.owners
        self.peers: list[Connection] = []
        self.lost: dict[int, PeerError] = {}  # parties that left after noise was made and are not needed
        backend = BACKENDS[plan.backend]
        self._spare = backend.spare(plan.parties, plan.threshold) if isinstance(backend, Spares) else 0
        self._sent: dict[int, int] = {}  # bytes of each party, as it said last
        self._within = within
        self._made: list[Connection] = []  # also those that came to nothing

    @property
    def name(self) -> str:
        """The name that this process's certificate must be for."""
        return frames.certificate_name(self.plan, self.first, self.end)

    async def connect(self, endpoints: Sequence[Endpoint], seconds: float, tls: Tls | None = None) -> None:
        """Connect with every party. Errors: PeerError when one does not answer in time or runs another plan."""
        calls = [asyncio.ensure_future(self._call(i, endpoint, tls)) for i, endpoint in enumerate(endpoints)]
        try:
            async with asyncio.timeout(seconds):
                self.peers = list(await asyncio.gather(*calls))
        except TimeoutError:
            silent = [i for i, call in enumerate(calls) if not call.done() or call.cancelled()]
            raise PeerError(
                f"every party must answer its owners within {seconds:g} s; missing: party "
                f"{', '.join(f'{i} ({endpoints[i]})' for i in silent)}; start it, see its log, or mend -P / -B"
            ) from None
        finally:
            for call in calls:
                call.cancel()
            await asyncio.gather(*calls, return_exceptions=True)

    async def _call(self, party: int, endpoint: Endpoint, tls: Tls | None) -> Connection:
        if party in self._within:
            peer = self._within[party]
            self._made.append(peer)
        else:
            called = Peer(f"party {party}", self.plan.session_id(self.attempt))
            self._made.append(called)
            await dial(called, endpoint, f"party{party}", tls)
            peer = called
        digest = self.plan.digest(self.attempt)
        peer.send(channels.HELLO, HELLO.pack(self.first, self.end, digest))
        index, other = ANSWER.unpack(exact(peer, await peer.receive(channels.HELLO), ANSWER.size))
        if index != party or other != digest:
            raise PeerError(
                f"{endpoint} must be party {party} of the same plan; party {index} with plan {other.hex()[:8]} "
                "answers; mend -P, or copy plan.json again"
            )
        return peer

    async def ready(self) -> int:
        """The bytes all parties have sent so far, when every party has the noise it makes ahead."""
        for party, peer in enumerate(self.peers):
            (self._sent[party],) = READY.unpack(exact(peer, await peer.receive(channels.READY), READY.size))
        return sum(self._sent.values())

    def _without(self, party: int, error: PeerError) -> None:
        """Go on without a party. Errors: the given one, if too many have left."""
        self.lost[party] = error
        if len(self.lost) > self._spare:
            raise error

    def _left(self) -> list[tuple[int, Connection]]:
        return [(party, peer) for party, peer in enumerate(self.peers) if party not in self.lost]

    async def send(self, release: int, block: int, payloads: Sequence[Any]) -> None:
        """Send one block of shares, a payload a party; waits for consent where too many are under way."""
        if block >= WINDOW:
            for party, peer in self._left():
                consent = await self._from(party, peer, block_label(release, block - WINDOW))
                if consent is not None:
                    exact(peer, consent, 0)
        for party, peer in self._left():
            try:
                peer.send(block_label(release, block), payloads[party])
            except PeerError as error:
                self._without(party, error)

    async def _from(self, party: int, peer: Connection, label: int) -> bytearray | None:
        """The frame, or None where the party has left and is not needed."""
        try:
            return await peer.receive(label)
        except PeerError as error:
            self._without(party, error)
            return None

    async def opened(self, release: int) -> tuple[Ints, int]:
        """The opened sum of one release (d,) in grid steps, and the bytes all parties have sent so far.

        Errors: PeerError when a party leaves, or when the parties' results differ.
        """
        results: list[Ints] = []
        for party, peer in self._left():
            payload = await self._from(party, peer, block_label(release, -1))
            if payload is not None:
                words = np.frombuffer(exact(peer, payload, result_bytes(self.plan.dimension)), dtype="<i8")
                results.append(words[:-1])
                self._sent[party] = int(words[-1])
        if any((other != results[0]).any() for other in results[1:]):
            raise PeerError(
                f"all parties must open the same vector; release {release} differs; a party computes wrongly, see "
                "`dpmpc verify`"
            )
        return results[0], sum(self._sent.values())

    async def finish(self) -> list[PartyCost]:
        """The costs of every party that is left; ends the connections in agreement."""
        costs = []
        for party, peer in self._left():
            payload = await self._from(party, peer, channels.COST)
            if payload is not None:
                costs.append(PartyCost.unpack(exact(peer, payload, frames.COST.size)))
                peer.send(channels.COST, b"")
        self.abandon()
        await asyncio.sleep(0)
        return costs

    def abandon(self) -> None:
        """Close the connections at once."""
        for peer in self._made:
            peer.close()

    @property
    def bytes_sent(self) -> int:
        """Bytes these owners have sent to parties, headers included."""
        return sum(peer.bytes_sent for peer in self.peers)
