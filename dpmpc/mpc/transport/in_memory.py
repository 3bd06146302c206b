"""A connection between two roles of one process: frames are handed over in memory, and nothing goes over a wire."""

import asyncio
from typing import Self

from dpmpc.errors import PeerError
from dpmpc.mpc.transport.abort_reason import Reason, Told
from dpmpc.mpc.transport.link import OnLost, Payload


class InMemory:
    """One end; behaves as `wire.Peer` does. Both ends live on one event loop, so it needs no heartbeats. Its bytes are
    counted nowhere."""

    bytes_sent = bytes_received = frames_sent = 0

    def __init__(self, name: str) -> None:
        self.name = name
        self.expects_end = False
        self.on_lost: OnLost | None = None
        self.lost: str | None = None
        self.told: Reason | None = None  # the cause that the other end gave for the end
        self._other: InMemory = self
        self._arrived: dict[int, bytearray] = {}
        self._awaited: dict[int, asyncio.Future[bytearray]] = {}

    @classmethod
    def pair(cls, first: str, second: str) -> tuple[Self, Self]:
        """(the end that speaks with `first`, the end that speaks with `second`)."""
        a, b = cls(first), cls(second)
        a._other, b._other = b, a
        return a, b

    def send(self, label: int, payload: Payload) -> None:
        """Hand over one frame; its bytes are copied. Errors: PeerError when the connection has ended."""
        if self.told is not None:
            raise self._error()
        if self.lost is not None:
            raise PeerError(f"the connection with {self.name} is closed ({self.lost}); see its log")
        self._other._take(label, bytearray(payload))

    def _take(self, label: int, payload: bytearray) -> None:
        future = self._awaited.pop(label, None)
        if future is None:
            assert label not in self._arrived, f"label {label} was sent twice"
            self._arrived[label] = payload
        elif not future.done():
            future.set_result(payload)

    def receive(self, label: int) -> "asyncio.Future[bytearray]":
        """A future for the payload of the frame with this label."""
        future: asyncio.Future[bytearray] = asyncio.get_running_loop().create_future()
        if (payload := self._arrived.pop(label, None)) is not None:
            future.set_result(payload)
        elif self.lost is not None:
            future.set_exception(self._error())
            future.exception()  # whoever awaits it still gets it, nobody is warned twice
        else:
            self._awaited[label] = future
        return future

    def admit(self, largest: int, room: int) -> None:
        """Nothing: what one role of a process sends another is not bounded."""

    def farewell(self, reason: str) -> None:
        """End the connection; the other end is told why."""
        if self.lost is None:
            self.expects_end = True
            self._other.told = reason if isinstance(reason, Reason) else Reason(reason)
            self._end(reason)
            self._other._end(reason)

    async def gone(self, seconds: float) -> None:
        """Returns when the connection has ended: at once, for nothing is under way."""
        self.close()

    def close(self) -> None:
        """End the connection; the other end is told."""
        self.expects_end = True
        for end in (self, self._other):
            end._end("connection closed")

    def _error(self) -> PeerError:
        """What to raise where this connection has ended."""
        if self.told is not None:
            return Told(self.told, self.name)
        return PeerError(f"{self.name} left the run ({self.lost}); see its log")

    def _end(self, why: str) -> None:
        if self.lost is not None:
            return
        self.lost = why
        awaited, self._awaited = self._awaited, {}
        for future in awaited.values():
            if not future.done():
                future.set_exception(self._error())
                future.exception()
        if self.on_lost is not None and not self.expects_end:
            self.on_lost(self, self._error())
