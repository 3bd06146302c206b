"""How frames reach the other parties: the interface that sessions use. Our own framed TCP, with TLS or without, is one
(`dial.TcpLink`)."""

import asyncio
import contextlib
import socket
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Protocol, runtime_checkable

from dpmpc.errors import PeerError
from dpmpc.lazy import dataclass
from dpmpc.mpc.transport.addresses import Endpoint
from dpmpc.mpc.transport.channels import END
from dpmpc.mpc.transport.heartbeat import Heartbeat
from dpmpc.mpc.transport.tls import Tls
from dpmpc.registry import Registry

Payload = bytes | bytearray | memoryview


class Connection(Protocol):
    """Frames to and from one other process, by label, whatever the order."""

    name: str
    expects_end: bool

    @property
    def bytes_sent(self) -> int:
        """Headers included."""

    @property
    def bytes_received(self) -> int:
        """Headers included."""

    @property
    def frames_sent(self) -> int:
        """Frames so far."""

    def send(self, label: int, payload: Payload) -> None:
        """Queue one frame; nobody writes to its payload any more. Errors: PeerError when the connection has ended."""

    def receive(self, label: int) -> "asyncio.Future[bytearray]":
        """The payload of the frame with this label; a label is awaited once. Errors: PeerError when the peer left."""

    def close(self) -> None:
        """Send what is queued, then close."""


@runtime_checkable
class Parting(Protocol):
    """A connection that can say why it ends."""

    def farewell(self, reason: str) -> None:
        """Tell the other side why this process leaves, as the last frame."""

    async def gone(self, seconds: float) -> None:
        """Returns when the connection has ended, at the latest after `seconds`: then it is dropped."""


@runtime_checkable
class Queueing(Protocol):
    """A connection on which what is sent may have to wait."""

    async def flushed(self) -> None:
        """Returns when nothing waits any more, or the connection has ended."""


Observe = Callable[[Connection, bool, int, Payload], None]  # peer, outgoing, label, payload
OnLost = Callable[[Connection, PeerError], None]
FAREWELL_SECONDS = 1.0


async def part(connections: Iterable[Connection], reason: str) -> None:
    """Tells the other sides why this process leaves, and waits a moment until they have read it: who closes at once may
    destroy what is under way."""
    left = [connection for connection in connections if isinstance(connection, Parting)]
    for connection in left:
        connection.farewell(reason)
    await asyncio.gather(*(connection.gone(FAREWELL_SECONDS) for connection in left))


async def agreed_end(peers: Mapping[int, Connection], seconds: float) -> list[int]:
    """Says on all of these connections that the run is over, and waits for as long at most until the others say so; the
    parties that do not."""
    for peer in peers.values():
        peer.expects_end = True
        with contextlib.suppress(PeerError):
            peer.send(END, b"")
    ends = {party: peer.receive(END) for party, peer in peers.items()}
    if ends:
        await asyncio.wait(ends.values(), timeout=seconds)
    return silent_of(ends)


def silent_of(ends: "Mapping[int, asyncio.Future[bytearray]]") -> list[int]:
    """The parties whose last word has not come, or never will."""
    came = {party for party, end in ends.items() if end.done() and not end.cancelled() and end.exception() is None}
    return sorted(ends.keys() - came)


@dataclass(frozen=True)
class Hello:
    """What a process says first: who it is, and which parameters it runs with."""

    party: int
    parties: int
    digest: bytes  # 32 bytes: of all public parameters


class Link(Protocol):
    """The connections of one party of one attempt of a run."""

    async def connect(
        self, hello: Hello, run_id: bytes, seconds: float, on_lost: OnLost, observe: Observe | None
    ) -> Mapping[int, Connection]:
        """Connections with all other parties, each of which has said the same digest and its own number. `observe` sees
        every frame from the first on: a peer that was quicker may send before this returns.

        Errors: PeerError when one does not come in time, is another, or runs with other parameters; UsageError when
        this party cannot listen.
        """

    def abandon(self) -> None:
        """Close everything at once; the peers will notice."""


class MakeLink(Protocol):
    """What a registry entry is: makes a party's link."""

    def __call__(
        self,
        party: int,
        addresses: Sequence[Endpoint],
        *,
        tls: Tls | None = None,
        bound: socket.socket | None = None,
        heartbeat: Heartbeat | None = None,
    ) -> Link:
        """`heartbeat` watches every connection from the moment on at which the other side was checked."""


LINKS: Registry[MakeLink] = Registry("link", "dpmpc.links", {"tcp": "dpmpc.mpc.transport.dial:TcpLink"})
