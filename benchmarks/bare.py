"""The physical limit: the messages of a release between the same processes over bare asyncio TCP, with no computation
and no framing.

Who sends how many bytes to whom, in which order, is as in a release; what the bytes are does not matter, and nobody
looks at them.
"""

import asyncio
import os
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, cast

from dpmpc.aggregation.wire.frames import pieces_of
from dpmpc.benchmarks.cell import BenchCell
from dpmpc.benchmarks.counts import frame_bytes, opening_counts, release_counts
from dpmpc.benchmarks.network import Addresses
from dpmpc.mpc.transport.addresses import inherited
from dpmpc.mpc.transport.wire import HEADER
from dpmpc.processes.worker import Emit, Log

_SCRATCH = 1 << 20
_LINE = bytes(480)  # about a ledger's line
_OWNERS = 255  # how the owners' process introduces itself; a party sends its index
Messages = Sequence[tuple[int, int]]  # (to whom, bytes)


@dataclass(frozen=True)
class MessageSizes:
    """The sizes of a release's messages, headers included."""

    parties: int
    inputs: Sequence[Sequence[int]]  # owners to each party: one block after another
    opening: Sequence[Sequence[Messages]]  # by round, then by sending party
    result: int  # a party to the owners

    @classmethod
    def of(cls, cell: BenchCell) -> "MessageSizes":
        frames = [frame_bytes(cell, piece) for piece in pieces_of(0, cell.owners, cell.dimension)]
        return cls(
            cell.parties, tuple(zip(*frames, strict=True)), opening_messages(cell), release_counts(cell).results_bytes
        )

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def opening_messages(cell: BenchCell) -> tuple[tuple[tuple[tuple[int, int], ...], ...], ...]:
    """By round, then by party: (to whom, bytes). A backend counts its barrier and its opening by sending party; whoever
    sends, sends equal messages to the parties after it, one after another, spread over the rounds.
    """
    n = cell.parties
    found: list[tuple[tuple[tuple[int, int], ...], ...]] = []
    for cost in opening_counts(cell):
        rounds: list[list[list[tuple[int, int]]]] = [[[] for _ in range(n)] for _ in range(cost.rounds)]
        for i, (size, count) in enumerate(zip(cost.bytes_with_headers(HEADER.size), cost.messages_sent, strict=True)):
            for k in range(count):
                to = (i + 1 + k % (n - 1)) % n
                rounds[k * cost.rounds // count][i].append((to, size // count + (k < size % count)))
        found += (tuple(tuple(messages) for messages in sent) for sent in rounds)
    return tuple(found)


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


async def _call(address: Sequence[Any], me: int) -> Pipe:
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
    *,
    index: int,
    traffic: dict[str, Any],
    rounds: int,
    addresses: Addresses,
    owner_addresses: Addresses,
    sockets: tuple[int, int] | None,
    emit: Emit,
    log: Log,
) -> dict[str, Any]:
    """The role of a party: when the opening began and ended in every round. In the second half of the rounds a line is
    on disk before the opening, as the ledger's must be.
    """
    with tempfile.TemporaryFile() as file:
        return asyncio.run(
            _party(index, MessageSizes(**traffic), rounds, file.fileno(), addresses, owner_addresses[index], sockets)
        )


async def _party(
    index: int,
    traffic: MessageSizes,
    rounds: int,
    file: int,
    addresses: Addresses,
    owner_address: Sequence[Any],
    sockets: tuple[int, int] | None,
) -> dict[str, Any]:
    n = traffic.parties
    loop = asyncio.get_running_loop()
    arrived: asyncio.Queue[Pipe] = asyncio.Queue()
    if sockets is None:
        listening = [await loop.create_server(lambda: Pipe(arrived), *at) for at in (addresses[index], owner_address)]
    else:
        listening = [await loop.create_server(lambda: Pipe(arrived), sock=inherited(number)) for number in sockets]
    pipes = {j: await _call(addresses[j], index) for j in range(index + 1, n)}
    while len(pipes) < n:  # the lower parties and the owners call
        pipe = await arrived.get()
        assert pipe.peer is not None
        pipes[pipe.peer] = pipe
    owners = pipes[_OWNERS]
    sizes = [size for messages in traffic.opening for sent in messages for _, size in sent]
    data = memoryview(bytes(max([*sizes, traffic.result])))
    exchanges = [
        (
            [(pipes[to], data[:size]) for to, size in messages[index]],
            [(pipes[j], size) for j, sent in enumerate(messages) if (size := sum(s for to, s in sent if to == index))],
        )
        for messages in traffic.opening
    ]
    due = dict.fromkeys(pipes.values(), 0)  # bytes of openings, so far
    begins, ends = [], []
    for k in range(1, rounds + 1):
        await owners.until(k * sum(traffic.inputs[index]))
        if 2 * k > rounds:
            os.write(file, _LINE)
            os.fsync(file)
        begins.append(time.perf_counter())
        for outgoing, incoming in exchanges:
            for pipe, message in outgoing:
                await pipe.send(message)
            for pipe, size in incoming:
                due[pipe] += size
                await pipe.until(due[pipe])
        ends.append(time.perf_counter())
        await owners.send(data[: traffic.result])
    await owners.until(rounds * sum(traffic.inputs[index]) + 1)  # the owners' goodbye
    for server in listening:
        server.close()
    for pipe in pipes.values():
        pipe.close()
    await asyncio.sleep(0)
    return {"begins": begins, "ends": ends}


def owners(*, traffic: dict[str, Any], rounds: int, owner_addresses: Addresses, emit: Emit, log: Log) -> dict[str, Any]:
    """The role of the owners: seconds of every round, from the first byte out to the last byte in."""
    return asyncio.run(_owners(MessageSizes(**traffic), rounds, owner_addresses))


async def _owners(traffic: MessageSizes, rounds: int, owner_addresses: Addresses) -> dict[str, Any]:
    pipes = [await _call(address, _OWNERS) for address in owner_addresses]
    data = memoryview(bytes(max(size for sizes in traffic.inputs for size in sizes)))
    seconds = []
    for k in range(1, rounds + 1):
        begin = time.perf_counter()
        for block in zip(*traffic.inputs, strict=True):
            for pipe, size in zip(pipes, block, strict=True):
                await pipe.send(data[:size])
        for pipe in pipes:
            await pipe.until(k * traffic.result)
        seconds.append(time.perf_counter() - begin)
    for pipe in pipes:
        await pipe.send(memoryview(b"."))
        pipe.close()
    await asyncio.sleep(0)
    return {"seconds": seconds}
