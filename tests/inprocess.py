"""Parties of the sharing engine in one process, on a network and on streams that a test controls. No secrecy."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from dpmpc.mpc.numbers.domains import Domain
from dpmpc.mpc.numbers.field import subsets
from dpmpc.mpc.numbers.prg import Prg
from dpmpc.mpc.parties.mesh import Channel
from dpmpc.mpc.replicated.backend import SharingHolder
from dpmpc.processes.supervisor import run_here

Words = NDArray[np.uint64]
Subset = tuple[int, ...]
T = TypeVar("T")


class Network:
    """Delivers messages and keeps them: `sent[(sender, receiver)]` lists the payloads in order."""

    def __init__(self, parties: int, threshold: int, make_stream: Callable[..., Any] | None = None) -> None:
        self.parties, self.threshold = parties, threshold
        self.sent: dict[tuple[int, int], list[Words]] = {}
        self._boxes: dict[tuple[int, int, int], asyncio.Future[bytes]] = {}
        self.make_stream = make_stream or (lambda subset, *domain: Prg(bytes(subset), "test", *domain))

    def box(self, sender: int, receiver: int, label: int) -> "asyncio.Future[bytes]":
        return self._boxes.setdefault((sender, receiver, label), asyncio.get_running_loop().create_future())

    def run(self, body: Callable[[Any], Awaitable[T]]) -> list[T]:
        """What `body(session)` returns at each party."""

        async def everybody() -> list[T]:
            return list(await asyncio.gather(*(body(LocalSession(self, i)) for i in range(self.parties))))

        return run_here(everybody)


class LocalSession:
    """What the sharing engine asks of a session, and what a holder does with it."""

    noise, join, zero, work = SharingHolder.draw, SharingHolder.join, SharingHolder.zero, SharingHolder.work
    use_threads, _stop_workers = SharingHolder.use_threads, SharingHolder._stop_workers
    threads, _workers = 1, None

    def __init__(self, network: Network, party: int) -> None:
        self.network, self.party = network, party
        self.parties, self.threshold = network.parties, network.threshold
        self.run_id = b"in one process"
        self.peers = {i: LocalPeer(network, party, i) for i in range(self.parties) if i != party}
        self.rounds = 0

    @property
    def mine(self) -> list[Subset]:
        """The subsets that this party is a member of."""
        return [s for s in subsets(self.parties, self.threshold) if self.party in s]

    def channel(self, ident: int) -> Channel:
        return Channel(self, ident)  # type: ignore[arg-type]

    def stream(self, subset: Subset, domain: Domain, *of: int) -> Any:
        assert self.party in subset
        return self.network.make_stream(subset, domain.name, *of)


class LocalPeer:
    """The connection of party `me` with `other`."""

    def __init__(self, network: Network, me: int, other: int) -> None:
        self._network, self._me, self._other = network, me, other

    def send(self, label: int, payload: memoryview) -> None:
        raw = bytes(payload)
        self._network.sent.setdefault((self._me, self._other), []).append(np.frombuffer(raw, dtype=np.uint64))
        self._network.box(self._me, self._other, label).set_result(raw)

    def receive(self, label: int) -> "asyncio.Future[bytes]":
        return self._network.box(self._other, self._me, label)
