"""Where processes listen: addresses in MPyC's numbering, and sockets that are bound before their process starts."""

import contextlib
import ipaddress
import math
import socket
from collections.abc import Iterable, Sequence

from dpmpc.errors import UsageError
from dpmpc.lazy import dataclass

BASE_PORT = 11365  # MPyC's own
BACKLOG = 128  # callers that wait in the kernel
_LATER = 5.0  # seconds by which the kernel gives a peer up after heartbeats do


@dataclass(frozen=True)
class Endpoint:
    """Where a process listens."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def endpoints_here(parties: int, base_port: int) -> list[Endpoint]:
    """Loopback endpoints with MPyC's numbering: party i at base port + i."""
    return [Endpoint("127.0.0.1", base_port + i) for i in range(parties)]


def owner_endpoints(addresses: Sequence[Endpoint]) -> list[Endpoint]:
    """Where each party listens for owners: its own host, port + n."""
    return [Endpoint(a.host, a.port + len(addresses)) for a in addresses]


def parse_endpoints(addresses: Iterable[str], port_here: int | None = None) -> list[Endpoint]:
    """Endpoints from host:port values; an empty host is this machine. `port_here`: where one listens whose port is not
    said; without it a port must be: another one than the site's is found by nobody."""
    result = []
    for address in addresses:
        if address.startswith("["):  # an IPv6 address
            host, _, port = address[1:].partition("]")
            port = port.removeprefix(":")
        elif address.count(":") > 1:
            host, port = address, ""
        else:
            host, _, port = address.partition(":")
        if not (port or port_here) or (port and not (port.isdecimal() and 0 < int(port) < 65536)):
            example = Endpoint(host if host.isprintable() and host else "127.0.0.1", BASE_PORT)
            raise UsageError(
                f"<<addresses>> takes host:port with a port in 1..65535; got {address!r}; write for example "
                f"<<addresses={example}>>",
                code="addresses",
            )
        result.append(Endpoint(host or "127.0.0.1", int(port) if port else port_here or 0))
    return result


def is_loopback(host: str) -> bool:
    """Whether it is an address of this machine alone."""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def check_loopback(hosts: Iterable[str]) -> None:
    """Errors: UsageError if an address that is not loopback is used without TLS."""
    for host in hosts:
        if not is_loopback(host):
            raise UsageError(
                "without TLS only loopback addresses are allowed, for keys and shares would cross the network in "
                f"the clear; got {host}; add <<tls=DIR>>",
                code="addresses",
            )


def bound_socket(host: str = "127.0.0.1", port: int = 0) -> socket.socket:
    """A TCP socket bound to a port of this machine, a free one by default; nobody else can take it. It listens when
    its process does. Errors: OSError when the port is taken."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    bound = socket.socket(family, socket.SOCK_STREAM)
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind((host, port))
    except OSError:
        bound.close()
        raise
    return bound


def waiting_socket(host: str = "127.0.0.1", port: int = 0) -> socket.socket:
    """The same for a process that this one starts. Who calls before it is there waits in the kernel until it is: one
    that is turned away would call again after a pause, which takes longer than all it waits for. Errors: OSError."""
    bound = bound_socket(host, port)
    bound.listen(BACKLOG)
    return bound


def endpoint_of(bound: socket.socket) -> Endpoint:
    """Where a bound socket will listen."""
    host, port = bound.getsockname()[:2]
    return Endpoint(host, port)


def inherited(number: int) -> socket.socket:
    """The socket that the process that started this one bound, by its file descriptor."""
    return socket.socket(fileno=number)


def bear_with(sock: socket.socket, seconds: float) -> None:
    """Lets the kernel give a peer up after so many seconds without a sign of its machine, and no earlier: one that is
    paused, or too busy to read, leaves data on its way unconfirmed. Heartbeats are lost by then, and say it better."""
    with contextlib.suppress(OSError):  # closed already: whoever reads next is told
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for name, value in (
            ("TCP_KEEPIDLE", min(math.ceil(seconds / 3), 1 << 14)),  # the kernel takes no more than 2^15 - 1
            ("TCP_KEEPINTVL", min(math.ceil(seconds / 6), 1 << 14)),
            ("TCP_KEEPCNT", 4),
            ("TCP_USER_TIMEOUT", math.ceil(1000 * (seconds + _LATER))),
        ):
            if hasattr(socket, name):
                sock.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
