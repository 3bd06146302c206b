"""Openings from t + 1 shares: with all parties, with as many lost as may be, and with one too many."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import numpy as np
import pytest

from dpmpc.errors import PeerError
from dpmpc.mpc import field
from dpmpc.mpc.loopback import free_base_port
from dpmpc.mpc.opening import open_from_any
from dpmpc.mpc.prg import Prg
from dpmpc.mpc.session import Session, endpoints_here
from dpmpc.mpc.wire import HEADER

Words = Any


def with_sessions(n: int, t: int, body: Callable[[list[Session]], Awaitable[None]]) -> None:
    """Runs `body` on the connected sessions of n parties, over TCP, in one process."""

    async def main() -> None:
        sessions = [Session(i, n, t, b"opening", prss=False) for i in range(n)]
        here = endpoints_here(n, free_base_port(n))
        try:
            await asyncio.gather(*(session.connect(here) for session in sessions))
            await body(sessions)
        finally:
            for session in sessions:
                session.abandon()
            await asyncio.sleep(0.01)

    asyncio.run(main())


def shares_of(values: Words, n: int, t: int) -> Words:
    return field.share(values, n, t, Prg.from_os())


@pytest.mark.parametrize(("n", "t"), [(3, 1), (5, 2), (6, 2), (7, 3)])
def test_sums_open_from_the_parties_that_are_left(n: int, t: int) -> None:
    values = field.uniform(Prg.from_os(), (3, 5))

    async def body(sessions: list[Session]) -> None:
        shares = shares_of(values, n, t)
        sent = [s.bytes_sent for s in sessions]
        opened = await asyncio.gather(*(open_from_any(s, shares[s.party], s.channel(5)) for s in sessions))
        assert all((o == values).all() for o in opened)
        assert [s.bytes_sent - b for s, b in zip(sessions, sent, strict=True)] == [(n - 1) * (HEADER.size + 120)] * n
        for gone in range(n - t - 1):
            sessions[gone].abandon()
        left = sessions[n - t - 1 :]
        opened = await asyncio.gather(*(open_from_any(s, shares[s.party], s.channel(6)) for s in left))
        assert all((o == values).all() for o in opened) and len(left) == t + 1
        sessions[n - t - 1].abandon()
        waiting = asyncio.gather(
            *(open_from_any(s, shares[s.party], s.channel(7)) for s in left[1:]), return_exceptions=True
        )
        names = ", ".join(f"party {j}" for j in range(n - t))
        for error in await waiting:
            assert isinstance(error, PeerError) and "\n" not in str(error)
            assert f"needs the shares of {t + 1} parties; only {t} are left, for {names} left the run" in str(error)

    with_sessions(n, t, body)


def test_a_share_of_another_length_is_refused() -> None:
    async def body(sessions: list[Session]) -> None:
        sizes = (4, 5, 4)
        results = await asyncio.gather(
            *(
                open_from_any(s, np.ones(k, dtype=np.uint64), s.channel(5))
                for s, k in zip(sessions, sizes, strict=True)
            ),
            return_exceptions=True,
        )
        assert any(isinstance(r, PeerError) and "bytes where" in str(r) for r in results)

    with_sessions(3, 1, body)
