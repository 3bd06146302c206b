"""Openings from t + 1 shares: with all parties, with as many lost as may be, and with one too many."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import numpy as np
import pytest

from dpmpc.errors import PeerError
from dpmpc.mpc.contract.backend import BACKENDS
from dpmpc.mpc.numbers import field
from dpmpc.mpc.numbers.prg import Prg
from dpmpc.mpc.parties.mesh import Mesh
from dpmpc.mpc.parties.opening import open_from_any
from dpmpc.mpc.transport.addresses import bound_socket, endpoint_of
from dpmpc.mpc.transport.dial import TcpLink
from dpmpc.mpc.transport.heartbeat import LEAST_STALL, Heartbeat
from dpmpc.mpc.transport.wire import HEADER
from tests.refusals import refuses
from tests.runs import HANG

Words = Any


def with_parties(n: int, body: Callable[[list[Mesh]], Awaitable[None]]) -> None:
    """Runs `body` on the connected meshes of n parties, over TCP, in one process."""

    async def main() -> None:
        parties = [Mesh(i, n, b"opening") for i in range(n)]
        bound = [bound_socket() for _ in range(n)]
        where = [endpoint_of(s) for s in bound]
        try:
            links = [TcpLink(i, where, bound=s) for i, s in enumerate(bound)]
            await asyncio.gather(*(p.connect(link, seconds=HANG) for p, link in zip(parties, links, strict=True)))
            await body(parties)
        finally:
            for party in parties:
                party.abandon()
            await asyncio.sleep(0.01)

    asyncio.run(main())


def shares_of(values: Words, n: int, t: int) -> Words:
    return field.share(values, n, t, Prg.from_os())


@pytest.mark.parametrize(("n", "t"), [(3, 1), (5, 2), (6, 2), (7, 3)])
def test_sums_open_from_the_parties_that_are_left(n: int, t: int) -> None:
    values = field.uniform(Prg.from_os(), (3, 5))

    async def body(parties: list[Mesh]) -> None:
        shares = shares_of(values, n, t)

        def opening(party: Mesh, channel: int) -> Awaitable[Words]:
            return open_from_any(party, t, shares[party.party], channel)

        sent = [p.bytes_sent for p in parties]
        opened = await asyncio.gather(*(opening(p, 5) for p in parties))
        assert all((o == values).all() for o in opened)
        assert [p.bytes_sent - b for p, b in zip(parties, sent, strict=True)] == [(n - 1) * (HEADER.size + 120)] * n
        for gone in range(n - t - 1):
            parties[gone].abandon()
        left = parties[n - t - 1 :]
        opened = await asyncio.gather(*(opening(p, 6) for p in left))
        assert all((o == values).all() for o in opened) and len(left) == t + 1
        parties[n - t - 1].abandon()
        names = ", ".join(f"party {j}" for j in range(n - t))
        for error in await asyncio.gather(*(opening(p, 7) for p in left[1:]), return_exceptions=True):
            assert isinstance(error, PeerError) and "\n" not in str(error)
            assert f"needs the shares of {t + 1} parties; only {t} are left, for {names} left the run" in str(error)

    with_parties(n, body)


def test_a_share_of_another_length_is_refused() -> None:
    async def body(parties: list[Mesh]) -> None:
        sizes = (4, 5, 4)
        results = await asyncio.gather(
            *(open_from_any(p, 1, np.ones(k, dtype=np.uint64), 5) for p, k in zip(parties, sizes, strict=True)),
            return_exceptions=True,
        )
        assert all(isinstance(r, PeerError) and "bytes where" in str(r) for r in results)

    with_parties(3, body)


def test_words_that_no_share_has_are_refused() -> None:
    async def body(parties: list[Mesh]) -> None:
        sent = [np.full(2, field.P if p.party == 1 else field.P - 1, dtype=np.uint64) for p in parties]
        results = await asyncio.gather(
            *(open_from_any(p, 1, words, 5) for p, words in zip(parties, sent, strict=True)), return_exceptions=True
        )
        assert [isinstance(r, PeerError) and "party 1 sent larger ones" in str(r) for r in results] == [1, 0, 1]

    with_parties(3, body)


def test_many_party_connections_beat_and_one_that_is_silent_is_lost() -> None:
    """After the rendezvous each connection is watched: one silent party can be done without, two cannot."""

    async def main() -> None:
        bound = [bound_socket() for _ in range(3)]
        where = [endpoint_of(s) for s in bound]
        heartbeats = [Heartbeat(LEAST_STALL) for _ in bound]
        holders = [BACKENDS["shamir"].holder(i, 3, 1, b"beats") for i in range(3)]
        links = [
            TcpLink(i, where, bound=s, heartbeat=heartbeat)
            for i, (s, heartbeat) in enumerate(zip(bound, heartbeats, strict=True))
        ]
        try:
            await asyncio.gather(*(h.connect(k, bytes(32), seconds=HANG) for h, k in zip(holders, links, strict=True)))
            holders[0].tolerate_loss()  # type: ignore[attr-defined]
            peers = {party: peer for peer, party in holders[0].connections().items()}
            for silent in (1, 2):
                assert not holders[0].lost.done()
                for _ in range(int(LEAST_STALL) + 1):
                    for j, peer in peers.items():
                        peer.heard = j > silent  # type: ignore[attr-defined]
                    heartbeats[0].tick()
            with refuses("peer", 1, 3):
                holders[0].lost.result()
        finally:
            for holder in holders:
                holder.abandon()
            await asyncio.sleep(0)

    asyncio.run(main())
