"""Two servers in one process, over a pipe that a test looks into."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from dpmpc.mpc.two_servers.backend import OtHolder
from dpmpc.processes.supervisor import run_here

Words = NDArray[np.uint64]
T = TypeVar("T")


class Pipe:
    """One direction: frames by label, and all that went through."""

    def __init__(self) -> None:
        self.frames: dict[int, asyncio.Future[bytes]] = {}
        self.sent: list[tuple[int, bytes]] = []

    def frame(self, label: int) -> "asyncio.Future[bytes]":
        return self.frames.setdefault(label, asyncio.get_running_loop().create_future())


class End:
    """What a server sees of the connection."""

    name = "the other server"
    bytes_sent = bytes_received = frames_sent = 0

    def __init__(self, out: Pipe, into: Pipe, spoil: Callable[[int, bytes], bytes]) -> None:
        self._out, self._into, self._spoil = out, into, spoil

    def send(self, label: int, payload: Any) -> None:
        raw = self._spoil(label, bytes(payload))
        self._out.sent.append((label, raw))
        self._out.frame(label).set_result(raw)

    def receive(self, label: int) -> "asyncio.Future[bytes]":
        return self._into.frame(label)


class Two:
    """Two holders that are connected. `sent[i]`: (label, payload) of party i's frames."""

    def __init__(
        self,
        k: int,
        digest: bytes,
        spoil: Callable[[int, bytes], bytes],
        made_by: type[OtHolder] = OtHolder,
        spoils: int = 1,
    ) -> None:
        pipes = Pipe(), Pipe()
        self.sent = [pipe.sent for pipe in pipes]
        self.holders = [made_by(i, k, b"run") for i in (0, 1)]
        for i, holder in enumerate(self.holders):
            keep = spoil if i == spoils else (lambda label, raw: raw)
            holder.peers = {1 - i: End(pipes[i], pipes[1 - i], keep)}
        self.digest = digest

    async def connect(self) -> None:
        await asyncio.gather(*(h.transfers(h.peers[h.other], self.digest) for h in self.holders))


async def read_before(server: OtHolder, promised: Words, channel: int) -> tuple[Words, Callable[[Words], None]]:
    """(the other's share of the opening, what shows it one): `server` promises a share, and reads before it shows."""
    peer, salt, size = server.peers[server.other], bytes(32), promised.nbytes
    peer.send(channel << 32, server._promise(server.party, channel, b"", salt, promised))
    await peer.receive(channel << 32)
    raw = bytes(await peer.receive(channel << 32 | 1))
    assert len(raw) == 32 + size
    return np.frombuffer(raw, dtype=np.uint64, offset=32), lambda share: peer.send(
        channel << 32 | 1, salt + share.tobytes()
    )


def together(
    body: Callable[[Two], Awaitable[T]],
    k: int = 4,
    *,
    connect: bool = True,
    made_by: type[OtHolder] = OtHolder,
    spoil: Callable[[int, bytes], bytes] = lambda label, raw: raw,
    spoils: int = 1,
) -> T:
    """What `body` returns. `spoil`: what the frames of party `spoils` become."""

    async def run() -> T:
        two = Two(k, bytes(32), spoil, made_by, spoils)
        if connect:
            await two.connect()
        try:
            return await body(two)
        finally:
            for holder in two.holders:
                holder.abandon()

    return run_here(run)
