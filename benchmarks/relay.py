"""A slow network on one machine, without privileges: forwards bytes with a delay and a rate limit, as tc's netem
would do to packets.

It stands in where the kernel has no netem. TCP's own behaviour over a long line (slow start, loss) is not in it, as
it would not be on a connection that is warm and has large windows.
"""

import asyncio
from dataclasses import dataclass
from typing import Any

from dpmpc.mpc.transport.addresses import inherited
from dpmpc.processes.worker import Emit, Log

_CHUNK = 1 << 15


@dataclass
class Gate:
    """One direction of one process's connection with the network: when it is free again."""

    bandwidth: float | None  # bytes a second; None: unlimited
    free: float = 0.0

    def pass_through(self, now: float, size: int) -> float:
        """When the last of `size` bytes that come at `now` has passed."""
        if self.bandwidth is None:
            return now
        self.free = max(now, self.free) + size / self.bandwidth
        return self.free


def relay(*, routes: list[list[Any]], delay: float, bandwidth: float, emit: Emit, log: Log) -> None:
    """The role of a relay: forwards for ever. `routes`: (socket bound here, host, port there, source, target); a
    negative process index has an unlimited connection.
    """
    asyncio.run(_relay(routes, delay, bandwidth))


async def _relay(routes: list[list[Any]], delay: float, bandwidth: float) -> None:
    gates: dict[tuple[int, str], Gate] = {}

    def gate(process: int, direction: str) -> Gate:
        return gates.setdefault((process, direction), Gate(bandwidth if process >= 0 else None))

    loop = asyncio.get_running_loop()
    for here, host, there, source, target in routes:

        async def accept(
            reader: asyncio.StreamReader,
            writer: asyncio.StreamWriter,
            host: str = host,
            port: int = there,
            source: int = source,
            target: int = target,
        ) -> None:
            while True:
                try:
                    upstream = await asyncio.open_connection(host, port)
                    break
                except OSError:  # not there yet
                    await asyncio.sleep(0.02)
            await asyncio.gather(
                _forward(reader, upstream[1], gate(source, "out"), gate(target, "in"), delay, loop),
                _forward(upstream[0], writer, gate(target, "out"), gate(source, "in"), delay, loop),
            )

        await asyncio.start_server(accept, sock=inherited(here))
    await asyncio.Event().wait()


async def _forward(
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    out: Gate,
    into: Gate,
    delay: float,
    loop: asyncio.AbstractEventLoop,
) -> None:
    queue: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue(maxsize=4096)  # the line's own memory

    async def deliver() -> None:
        while True:
            due, data = await queue.get()
            if due > loop.time():
                await asyncio.sleep(due - loop.time())
            if not data:
                break
            writer.write(data)
        writer.close()

    delivery = asyncio.create_task(deliver())
    try:
        while data := await reader.read(_CHUNK):
            left = out.pass_through(loop.time(), len(data))
            await queue.put((into.pass_through(left + delay, len(data)), data))
    except OSError:
        pass
    await queue.put((loop.time() + delay, b""))
    await delivery
