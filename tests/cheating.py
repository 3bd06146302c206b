"""Three checked parties in one process, on a network that cheats for one of them: every message that leaves it can be
changed, dropped or answered early. The real holders, keys and checks; no sockets."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from dpmpc.circuits.program import Program, program_of
from dpmpc.errors import DpmpcError, PeerError
from dpmpc.mpc.backends.checked import CheckedHolder
from dpmpc.mpc.engines.checked import CheckedBatch
from dpmpc.mpc.field import Words

Tamper = Callable[[int, int, int, bytearray], bytearray | None]  # (sender, receiver, label, payload)


def honest(sender: int, receiver: int, label: int, payload: bytearray) -> bytearray:
    return payload


@dataclass
class Wires:
    """All messages, in order, and what the cheat makes of them."""

    tamper: Tamper = honest
    sent: list[tuple[int, int, int, bytes]] = field(default_factory=list)  # as they arrive
    boxes: dict[tuple[int, int, int], "asyncio.Future[bytearray]"] = field(default_factory=dict)
    ended: bool = False

    def box(self, sender: int, receiver: int, label: int) -> "asyncio.Future[bytearray]":
        key = (sender, receiver, label)
        if key not in self.boxes:
            self.boxes[key] = asyncio.get_running_loop().create_future()
            if self.ended:
                self.boxes[key].set_exception(PeerError("a party has left"))
        return self.boxes[key]

    def end(self) -> None:
        """A party has left: whoever waits for anything is told."""
        self.ended = True
        for box in self.boxes.values():
            if not box.done():
                box.set_exception(PeerError("a party has left"))
                box.exception()


class Wire:
    """The connection of `me` with `other`."""

    bytes_sent = bytes_received = frames_sent = 0

    def __init__(self, wires: Wires, me: int, other: int) -> None:
        self._wires, self._me, self._other = wires, me, other

    def send(self, label: int, payload: Any) -> None:
        found = self._wires.tamper(self._me, self._other, label, bytearray(payload))
        if found is None or self._wires.ended:
            return
        self._wires.sent.append((self._me, self._other, label, bytes(found)))
        box = self._wires.box(self._me, self._other, label)
        assert not box.done(), "nothing is sent twice"
        box.set_result(found)

    def receive(self, label: int) -> "asyncio.Future[bytearray]":
        return self._wires.box(self._other, self._me, label)


class LinkHere:
    """Makes the connections of one party."""

    def __init__(self, wires: Wires, me: int) -> None:
        self._wires, self._me = wires, me

    async def connect(self, *_: Any) -> dict[int, Wire]:
        return {j: Wire(self._wires, self._me, j) for j in range(3) if j != self._me}

    def abandon(self) -> None:
        pass


Body = Callable[[CheckedHolder], Awaitable[Any]]


def play(
    body: Body, tamper: Tamper = honest, make: Callable[..., CheckedHolder] = CheckedHolder
) -> tuple[list[Any], Wires]:
    """What `body(holder)` returns at each party, or the error that it ended with; and the messages.

    The first error ends the run, as a connection that closes would; who had finished before has finished.
    """

    async def everybody() -> tuple[list[Any], Wires]:
        wires = Wires(tamper)
        holders = [make(i, 3, 1, b"run") for i in range(3)]

        async def one(holder: CheckedHolder) -> Any:
            try:
                await holder.connect(LinkHere(wires, holder.party))
                return await body(holder)
            except DpmpcError as error:
                wires.end()
                return error

        return list(await asyncio.wait_for(asyncio.gather(*map(one, holders)), 60)), wires

    return asyncio.run(everybody())


async def _circuit(engine: Any) -> Any:
    """Two layers of ANDs on random bits, into the bits of a number."""
    x = engine.random_bits(4)
    first = await engine.and_(x[:3], x[1:])
    second = await engine.and_(first[:2], first[1:] ^ x[:2])
    return np.concatenate([first, second, x[:1]])


TINY: Program = program_of(_circuit)


class KeptBatch(CheckedBatch):
    """A batch whose conversion opens the program's outputs as they are."""


async def release(holder: CheckedHolder, lanes: int = 64) -> Words:
    """A batch of a tiny program, converted; its first numbers opened."""
    batch = CheckedBatch(holder, 7, lanes)
    values = await batch.to_field(TINY)
    return await holder.open(values[:4], 8)
