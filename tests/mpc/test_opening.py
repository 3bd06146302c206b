"""Openings from t + 1 shares: with all parties, with as many lost as may be, and with one too many."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import numpy as np
import pytest

from dpmpc.errors import PeerError
from dpmpc.mpc import field
from dpmpc.mpc.addresses import bound_socket, endpoint_of
from dpmpc.mpc.dial import TcpLink
from dpmpc.mpc.mesh import Mesh
from dpmpc.mpc.opening import open_from_any
from dpmpc.mpc.prg import Prg
from dpmpc.mpc.wire import HEADER
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
