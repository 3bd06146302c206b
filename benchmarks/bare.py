"""The physical limit: the messages of a release between the same processes over bare asyncio TCP, with no computation
and no framing.

Who sends how many bytes to whom, in which order, is as in a release; what the bytes are does not matter, and nobody
looks at them.
"""

import asyncio
import os
import tempfile
import time
from dataclasses import asdict, dataclass
from typing import Any, cast

from dpmpc.aggregation.owner import blocks_of
from dpmpc.benchmarks.cell import Cell
from dpmpc.benchmarks.counts import WORD, release_counts
from dpmpc.mpc.wire import HEADER

_SCRATCH = 1 << 20
_LINE = bytes(480)  # about a ledger's line
_OWNERS = 255  # how the owners' process introduces itself; a party sends its index


@dataclass(frozen=True)
class Traffic:
    """The sizes of a release's messages, headers included."""

    parties: int
    threshold: int
    inputs: tuple[int, ...]  # owners to each party
    opening: int  # a party to each of `threshold` successors
    result: int  # a party to the owners

    @classmethod
    def of(cls, cell: Cell) -> "Traffic":
        d = cell.dimension
        inputs = tuple(HEADER.size + WORD * d * (end - start) for start, end in blocks_of(0, cell.owners, d))
        return cls(cell.parties, cell.threshold, inputs, HEADER.size + WORD * d, release_counts(cell).results_bytes)

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


class Pipe(asyncio.BufferedProtocol):
    """One connection that counts the bytes it gets and drops them."""

    def __init__(self, arrived: "asyncio.Queue[Pipe] | None" = None) -> None:
        self.received = 0
        self.peer: int | None = None
        self._arrived = arrived
        self._scratch = bytearray(_SCRATCH)
        self._target = 0
        self._full: asyncio.Future[None] | None = None
        self._drained = asyncio.Event()
        self._drained.set()
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._transport.set_write_buffer_limits(high=1 << 22)

    def pause_writing(self) -> None:
        self._drained.clear()

    def resume_writing(self) -> None:
        self._drained.set()

    def get_buffer(self, sizehint: int) -> bytearray:
        return self._scratch

    def buffer_updated(self, nbytes: int) -> None:
        if self.peer is None and self._arrived is not None:  # the first byte says who calls
            self.peer = self._scratch[0]
            nbytes -= 1
            self._arrived.put_nowait(self)
        self.received += nbytes
        if self._full is not None and self.received >= self._target and not self._full.done():
            self._full.set_result(None)

    async def until(self, total: int) -> None:
        """Return when `total` bytes have come since the connection was made."""
        if self.received < total:
            self._target, self._full = total, asyncio.get_running_loop().create_future()
            await self._full

    async def send(self, data: memoryview) -> None:
        """Queue bytes; waits while the queue is long."""
        assert self._transport is not None
        self._transport.write(data)
        await self._drained.wait()

    def close(self) -> None:
        if self._transport is not None:
            self._transport.close()


async def _call(address: list[Any], me: int) -> Pipe:
    loop = asyncio.get_running_loop()
    pipe = Pipe()
    while True:
        try:
            await loop.create_connection(lambda: pipe, address[0], address[1])
            break
        except OSError:  # not there yet
            await asyncio.sleep(0.02)
    await pipe.send(memoryview(bytes([me])))
    return pipe


def party(
    index: int,
    traffic: dict[str, Any],
    rounds: int,
    addresses: list[list[Any]],
    owner_addresses: list[list[Any]],
) -> dict[str, Any]:
    """When the opening began and ended in every round. In the second half of the rounds a line is on disk before the
    opening, as the ledger's must be.
    """
    with tempfile.TemporaryFile() as file:
        return asyncio.run(_party(index, Traffic(**traffic), rounds, file.fileno(), addresses, owner_addresses))


async def _party(
    index: int,
    traffic: Traffic,
    rounds: int,
    file: int,
    addresses: list[list[Any]],
    owner_addresses: list[list[Any]],
) -> dict[str, Any]:
    n, t = traffic.parties, traffic.threshold
    loop = asyncio.get_running_loop()
    arrived: asyncio.Queue[Pipe] = asyncio.Queue()
    servers = [await loop.create_server(lambda: Pipe(arrived), *where[index]) for where in (addresses, owner_addresses)]
    pipes = {j: await _call(addresses[j], index) for j in range(index + 1, n)}
    while len(pipes) < n:  # the lower parties and the owners call
        pipe = await arrived.get()
        assert pipe.peer is not None
        pipes[pipe.peer] = pipe
    owners = pipes[_OWNERS]
    data = memoryview(bytes(max(traffic.opening, traffic.result)))
    successors = [pipes[(index + k) % n] for k in range(1, t + 1)]
    predecessors = [pipes[(index - k) % n] for k in range(1, t + 1)]
    begins, ends = [], []
    for k in range(1, rounds + 1):
        await owners.until(k * sum(traffic.inputs))
        if 2 * k > rounds:
            os.write(file, _LINE)
            os.fsync(file)
        begins.append(time.perf_counter())
        for pipe in successors:
            await pipe.send(data[: traffic.opening])
        for pipe in predecessors:
            await pipe.until(k * traffic.opening)
        ends.append(time.perf_counter())
        await owners.send(data[: traffic.result])
    await owners.until(rounds * sum(traffic.inputs) + 1)  # the owners' goodbye
    for server in servers:
        server.close()
    for pipe in pipes.values():
        pipe.close()
    await asyncio.sleep(0)
    return {"begins": begins, "ends": ends}


def owners(traffic: dict[str, Any], rounds: int, owner_addresses: list[list[Any]]) -> dict[str, Any]:
    """Seconds of every round, from the first byte out to the last byte in."""
    return asyncio.run(_owners(Traffic(**traffic), rounds, owner_addresses))


async def _owners(traffic: Traffic, rounds: int, owner_addresses: list[list[Any]]) -> dict[str, Any]:
    pipes = [await _call(address, _OWNERS) for address in owner_addresses]
    data = memoryview(bytes(max(traffic.inputs)))
    seconds = []
    for k in range(1, rounds + 1):
        begin = time.perf_counter()
        for size in traffic.inputs:
            for pipe in pipes:
                await pipe.send(data[:size])
        for pipe in pipes:
            await pipe.until(k * traffic.result)
        seconds.append(time.perf_counter() - begin)
    for pipe in pipes:
        await pipe.send(memoryview(b"."))
        pipe.close()
    await asyncio.sleep(0)
    return {"seconds": seconds}
