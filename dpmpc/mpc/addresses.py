"""Where processes listen: addresses in MPyC's numbering, and sockets that are bound before their process starts."""

import contextlib
import ipaddress
import socket
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from dpmpc.errors import UsageError

BASE_PORT = 11365  # MPyC's own


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


def parse_endpoints(addresses: Iterable[str], base_port: int = BASE_PORT) -> list[Endpoint]:
    """Endpoints from `-P host:port` values, MPyC's meaning: a missing port is base port + index, an empty host is this
    machine."""
    result = []
    for i, address in enumerate(addresses):
        if address.startswith("["):  # an IPv6 address
            host, _, port = address[1:].partition("]")
            port = port.removeprefix(":")
        elif address.count(":") > 1:
            host, port = address, ""
        else:
            host, _, port = address.partition(":")
        if port and not (port.isdigit() and 0 < int(port) < 65536):
            raise UsageError(
                f"-P takes host:port with a port in 1..65535; got {address!r}; write for example -P 127.0.0.1:11365"
            )
        result.append(Endpoint(host or "127.0.0.1", int(port) if port else base_port + i))
    return result


def check_loopback(hosts: Iterable[str]) -> None:
    """Errors: UsageError if an address that is not loopback is used without TLS."""
    for host in hosts:
        try:
            local = host == "localhost" or ipaddress.ip_address(host).is_loopback
        except ValueError:
            local = False
        if not local:
            raise UsageError(
                "without TLS only loopback addresses are allowed, for keys and shares would cross the network in "
                f"the clear; got {host}; add --tls DIR"
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


def endpoint_of(bound: socket.socket) -> Endpoint:
    """Where a bound socket will listen."""
    host, port = bound.getsockname()[:2]
    return Endpoint(host, port)


def inherited(number: int) -> socket.socket:
    """The socket that the process that started this one bound, by its file descriptor."""
    return socket.socket(fileno=number)


def kept_alive(sock: socket.socket) -> None:
    """Lets the kernel report a peer whose machine has gone within about 12 s."""
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
