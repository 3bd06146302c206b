"""Parties of the sharing engine in one process, on a network and on streams that a test controls. No secrecy."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from dpmpc.mpc.field import subsets
from dpmpc.mpc.prg import Prg

Words = NDArray[np.uint64]
Subset = tuple[int, ...]
T = TypeVar("T")


class Network:
    """Delivers messages and keeps them: `sent[(sender, receiver)]` lists the payloads in order."""

    def __init__(self, parties: int, threshold: int, make_stream: Callable[..., Any] | None = None) -> None:
        self.parties, self.threshold = parties, threshold
        self.sent: dict[tuple[int, int], list[Words]] = {}
        self._boxes: dict[tuple[int, int, int, int], asyncio.Future[bytes]] = {}
        self.make_stream = make_stream or (lambda subset, *domain: Prg(bytes(subset), "test", *domain))

    def box(self, sender: int, receiver: int, ident: int, number: int) -> "asyncio.Future[bytes]":
        return self._boxes.setdefault((sender, receiver, ident, number), asyncio.get_running_loop().create_future())

    def run(self, body: Callable[[Any], Awaitable[T]]) -> list[T]:
        """What `body(session)` returns at each party."""

        async def everybody() -> list[T]:
            return list(await asyncio.gather(*(body(LocalSession(self, i)) for i in range(self.parties))))

        return asyncio.run(everybody())


class LocalSession:
    """What the sharing engine asks of a session."""

    def __init__(self, network: Network, party: int) -> None:
        self.network, self.party = network, party
        self.parties, self.threshold = network.parties, network.threshold
        self.run_id = b"in one process.."

    @property
    def mine(self) -> list[Subset]:
        """The subsets that this party is a member of."""
        return [s for s in subsets(self.parties, self.threshold) if self.party in s]

    def channel(self, ident: int) -> "LocalChannel":
        return LocalChannel(self, ident)

    def stream(self, subset: Subset, *domain: Any) -> Any:
        assert self.party in subset
        return self.network.make_stream(subset, *domain)


class LocalChannel:
    """As `dpmpc.mpc.session.Channel`."""

    def __init__(self, session: LocalSession, ident: int) -> None:
        self.session, self.ident = session, ident
        self.rounds = self.bytes_sent = self.messages_sent = 0

    async def exchange(self, outgoing: Mapping[int, Any], incoming: Sequence[int]) -> list[bytes]:
        network, me, number = self.session.network, self.session.party, self.rounds
        self.rounds += 1
        for party, payload in outgoing.items():
            raw = bytes(memoryview(payload).cast("B"))
            self.messages_sent += 1
            self.bytes_sent += len(raw)
            network.sent.setdefault((me, party), []).append(np.frombuffer(raw, dtype=np.uint64))
            network.box(me, party, self.ident, number).set_result(raw)
        return [await network.box(party, me, self.ident, number) for party in incoming]

    async def words(self, outgoing: Mapping[int, Words], incoming: Sequence[int], size: int) -> list[Words]:
        received = [np.frombuffer(raw, dtype=np.uint64) for raw in await self.exchange(outgoing, incoming)]
        assert all(len(words) == size for words in received)
        return received
