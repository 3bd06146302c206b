"""Strangers at the parties of every backend: while one waits for the others, and while they compute."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from dpmpc.circuits.sampler import discrete_gaussian
from dpmpc.mpc.contract.backend import BACKENDS
from dpmpc.mpc.transport.addresses import Endpoint, bound_socket, endpoint_of
from dpmpc.mpc.transport.credentials import make_credentials
from dpmpc.mpc.transport.dial import TcpLink
from dpmpc.mpc.transport.tls import Tls
from tests.mpc.test_listener import NONSENSE, RUN
from tests.runs import HANG

CASES = {name: next(n for n in (2, 3, 5) if BACKENDS[name].threshold(n) >= 1) for name in BACKENDS.names()}
SAYS = [bytes(200), *NONSENSE]


class Strangers:
    """Callers of parties 1, 2, ...: of each once without TLS, and, where there is TLS, once with the certificate of an
    owner of the run."""

    def __init__(self, where: list[Endpoint], tls: Tls | None) -> None:
        self._where, self._tls = where, tls
        self.writers: list[asyncio.StreamWriter] = []

    async def _call(self, party: int, tls: Tls | None, payload: bytes) -> None:
        at = self._where[party]
        secured = {} if tls is None else {"ssl": tls.client, "server_hostname": f"party{party}"}
        while True:
            try:
                _, writer = await asyncio.open_connection(at.host, at.port, **secured)
                break
            except ConnectionRefusedError:  # it does not listen yet
                await asyncio.sleep(0)
        writer.write(payload)
        self.writers.append(writer)

    async def call(self) -> None:
        """All say what they have to say, at each party."""
        async with asyncio.timeout(HANG):
            for party in range(1, len(self._where)):
                for payload in SAYS:
                    await self._call(party, None, payload)
                    if self._tls is not None:
                        await self._call(party, self._tls, payload)

    def hang_up(self) -> None:
        for writer in self.writers:
            writer.transport.abort()


async def run(name: str, n: int, keys: Path | None) -> tuple[list[int], list[bool], int]:
    """(opened coordinates of each party, who was lost, callers before the parties had met)."""
    backend = BACKENDS[name]
    bound = [bound_socket() for _ in range(n)]
    where = [endpoint_of(s) for s in bound]
    holders = [backend.holder(i, n, backend.threshold(n), RUN) for i in range(n)]
    links = [
        TcpLink(i, where, tls=None if keys is None else Tls.load(keys, f"party{i}"), bound=bound[i]) for i in range(n)
    ]
    strangers = Strangers(where, None if keys is None else Tls.load(keys, "owner0"))

    async def one(holder: Any, channel: int) -> int:
        if name == "mpyc":  # of whose runtimes a process has one: here its parties meet, and say that they live
            await holder.here(channel)
            return 64
        share = await holder.noise(discrete_gaussian(300.0), channel, 64)
        return len(await holder.open(share, channel + 1))

    pairs = list(zip(holders, links, strict=True))
    waiting = [asyncio.ensure_future(holder.connect(link, bytes(32), seconds=HANG)) for holder, link in pairs[1:]]
    await strangers.call()
    await asyncio.gather(holders[0].connect(links[0], bytes(32), seconds=HANG), *waiting)
    before, calls = len(strangers.writers), asyncio.ensure_future(strangers.call())
    async with asyncio.timeout(HANG):
        opened = await asyncio.gather(*(one(holder, 5) for holder in holders))
    calls.cancel()  # there is no listener any more, or it is busy
    await asyncio.gather(calls, return_exceptions=True)
    lost = [h.lost.done() for h in holders]
    for holder in holders:
        holder.abandon()
    strangers.hang_up()
    await asyncio.sleep(0)
    return opened, lost, before


@pytest.mark.parametrize("tls", [False, True])
@pytest.mark.parametrize("name", CASES)
def test_no_stranger_ends_a_party(name: str, tls: bool, tmp_path: Path) -> None:
    keys = tmp_path / "keys"
    if tls:
        make_credentials(keys, [*(f"party{i}" for i in range(CASES[name])), "owner0"])
    opened, lost, called = asyncio.run(run(name, CASES[name], keys if tls else None))
    assert opened == [64] * CASES[name] and not any(lost) and called == len(SAYS) * (CASES[name] - 1) * (1 + tls)
