"""Connections over TCP, with TLS or without: who calls, who listens, who is refused."""

import asyncio
import contextlib
import socket
import ssl
import struct
from collections.abc import Awaitable, Callable, Sequence

from dpmpc.errors import PeerError, UsageError
from dpmpc.mpc.addresses import Endpoint
from dpmpc.mpc.channels import HELLO
from dpmpc.mpc.link import Connection, Hello, Observe, OnLost
from dpmpc.mpc.tls import Tls, check_name
from dpmpc.mpc.wire import Peer

_HELLO = struct.Struct("<HH32s")  # party, parties, digest of the run's public parameters
_RETRY = 0.02  # seconds between two calls of a process that is not there yet


async def dial(peer: Peer, endpoint: Endpoint, who: str, tls: Tls | None) -> None:
    """Call until `endpoint` answers; `who` (party0, ...) is the name its certificate must be for.

    Errors: PeerError where the certificate is not of this run's authority, or not for that name.
    """
    loop = asyncio.get_running_loop()
    while True:
        try:
            await loop.create_connection(
                lambda: peer,
                endpoint.host,
                endpoint.port,
                ssl=tls.client if tls else None,
                server_hostname=who if tls else None,
            )
            return
        except ssl.SSLError as error:
            raise PeerError(
                f"{peer.name} ({endpoint}) must show a certificate of this run's authority; {error.reason}; mend --tls"
            ) from None
        except OSError:  # not there yet
            await asyncio.sleep(_RETRY)


async def listen(
    make_peer: Callable[[], Peer], endpoint: Endpoint, bound: socket.socket | None, tls: Tls | None, what: str
) -> asyncio.Server:
    """A server at `endpoint`, on the socket that was bound before if there is one. `what` (party 1 must listen for
    owners) begins the message. Errors: UsageError when the port is taken."""
    loop = asyncio.get_running_loop()
    context = tls.server if tls else None
    try:
        if bound is not None:
            return await loop.create_server(make_peer, sock=bound, ssl=context)
        return await loop.create_server(make_peer, endpoint.host, endpoint.port, ssl=context)
    except OSError as error:
        raise UsageError(
            f"{what} on {endpoint}, but that fails ({error.strerror or error}); choose another base port with -B, or "
            "addresses with -P"
        ) from None


class TcpLink:
    """Framed TCP: a lower index calls, a higher one listens, as in MPyC."""

    def __init__(
        self, party: int, addresses: Sequence[Endpoint], *, tls: Tls | None = None, bound: socket.socket | None = None
    ) -> None:
        """`bound`: the socket of this party's own address, if it is bound already."""
        self._party = party
        self.addresses, self.tls, self.bound = list(addresses), tls, bound
        self._made: list[Peer] = []  # also those that were refused
        self._peers: dict[int, Peer] = {}

    async def connect(
        self, hello: Hello, run_id: bytes, seconds: float, on_lost: OnLost, observe: Observe | None
    ) -> dict[int, Connection]:
        """As `Link` has it. Without TLS the PRSS keys that follow cross the network in the clear: loopback only."""
        assert len(self.addresses) == hello.parties
        me = hello.party
        arrived: asyncio.Queue[Peer] = asyncio.Queue()
        waiting = set(range(hello.parties)) - {me}

        def make(name: str, on_made: Callable[[Peer], None] | None = None) -> Peer:
            self._made.append(Peer(name, run_id, on_lost, observe, on_made))
            return self._made[-1]

        async def call(j: int) -> None:
            peer = make(f"party {j}")
            await dial(peer, self.addresses[j], f"party{j}", self.tls)
            peer.send(HELLO, _pack(hello))
            if self._check(await peer.receive(HELLO), hello) != j:
                raise PeerError(
                    f"{self.addresses[j]} must be party {j}, but another party answers there; mend the order of -P"
                )
            self._admit(j, peer, waiting)

        server = None
        try:
            if not me and self.bound is not None:
                self.bound.close()  # nobody calls the first party
            if me:
                server = await listen(
                    lambda: make("a caller", arrived.put_nowait),
                    self.addresses[me],
                    self.bound,
                    self.tls,
                    f"party {me} must listen",
                )
            async with asyncio.timeout(seconds):
                await _all([call(j) for j in range(me + 1, hello.parties)], self._answers(me, arrived, hello, waiting))
        except TimeoutError:
            who = ", ".join(f"{j} ({self.addresses[j]})" for j in sorted(waiting))
            raise PeerError(
                f"every party must come within {seconds:g} s; missing: party {who}; start it, or mend -P / -B"
            ) from None
        finally:
            if server is not None:
                server.close()
            if waiting:
                self.abandon()
                await asyncio.sleep(0)  # let the transports close
        return dict(self._peers)

    async def _answers(self, callers: int, arrived: "asyncio.Queue[Peer]", hello: Hello, waiting: set[int]) -> None:
        for _ in range(callers):
            peer = await arrived.get()
            payload = await peer.receive(HELLO)
            peer.send(HELLO, _pack(hello))  # before any check, so that both sides can say what differs
            j = self._check(payload, hello)
            if self.tls:
                check_name(peer.certificate, f"party{j}")
            if j >= hello.party or j in self._peers:
                raise PeerError(f"each party must have its own index; a second party {j} calls; mend -I")
            peer.name = f"party {j}"
            self._admit(j, peer, waiting)

    def _admit(self, j: int, peer: Peer, waiting: set[int]) -> None:
        self._peers[j] = peer
        waiting.discard(j)
        _keep_alive(peer)

    def _check(self, payload: bytearray, hello: Hello) -> int:
        if len(payload) != _HELLO.size:
            raise PeerError(f"a greeting has {_HELLO.size} bytes; got {len(payload)}; are all parties of one version?")
        party, parties, digest = _HELLO.unpack(payload)
        if parties != hello.parties or digest != hello.digest:
            raise PeerError(
                f"all parties must run with the same parameters; party {party} has n = {parties}, parameters "
                f"{digest.hex()[:8]}, party {hello.party} has n = {hello.parties}, parameters {hello.digest.hex()[:8]};"
                " copy plan.json again"
            )
        return int(party)

    def abandon(self) -> None:
        """Close all connections at once."""
        for peer in self._made:
            peer.close()


async def _all(calls: Sequence[Awaitable[None]], answers: Awaitable[None]) -> None:
    """Waits for all; when one fails, the others are cancelled and that error is raised."""
    tasks = [asyncio.ensure_future(task) for task in (*calls, answers)]
    try:
        await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _pack(hello: Hello) -> bytes:
    return _HELLO.pack(hello.party, hello.parties, hello.digest)


def _keep_alive(peer: Peer) -> None:
    """Let the kernel report a peer whose machine has gone within about 12 s."""
    sock = peer.socket
    if sock is None:
        return
    with contextlib.suppress(OSError):  # closed already: whoever reads next is told
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for name, value in (
            ("TCP_KEEPIDLE", 4),
            ("TCP_KEEPINTVL", 2),
            ("TCP_KEEPCNT", 4),
            ("TCP_USER_TIMEOUT", 12_000),
        ):
            if hasattr(socket, name):
                sock.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
