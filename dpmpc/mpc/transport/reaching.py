"""A TCP connection with a process whose name may have several addresses, some of them dead; what was seen where none
answers, in words that tell causes apart; and who shows another certificate there.

Addresses are tried side by side, a quarter of a second apart (RFC 8305): one that drops what is sent, as a firewall or
an old entry of a name does, holds up nobody. Each attempt has a time limit.
"""

import asyncio
import contextlib
import errno
import socket
import ssl
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from dpmpc.errors import NotYetError, UsageError
from dpmpc.mpc.transport.addresses import BACKLOG, Endpoint

NOBODY_LISTENS = "nobody listens there"
NO_ANSWER = "no answer: a firewall may drop what is sent there, or the machine is off"
NO_ROUTE = "no route to it: the network of one of the two is down, or lets nothing through"
NO_NAME = "its name is not known to this machine"
NO_TLS = "it answers, but not with TLS"
HTTP_ANSWERS = "HTTP answers there, which is not this run: a proxy, or another program, has this address"
ATTEMPT = 10.0  # seconds for one address to answer
_NEXT = 0.25  # seconds until the next address is tried too
_PROBE = 2.0  # seconds for a look at who answers
_LONGEST = 120  # characters of a name in a certificate that are shown
_SILENT = frozenset({errno.ETIMEDOUT, errno.EAGAIN})
_UNREACHABLE = frozenset({errno.EHOSTUNREACH, errno.ENETUNREACH, errno.ENETDOWN, errno.EHOSTDOWN})
# What keeps a process from listening and may end by itself: the port of one that ends, an address that comes later.
_PASSING = frozenset({errno.EADDRINUSE, errno.EADDRNOTAVAIL, errno.ENETDOWN, errno.EMFILE, errno.ENFILE,
                      errno.ENOBUFS, errno.ENOMEM})  # fmt: skip
_PAUSE = (0.1, 2.0)  # seconds between two tries: at first, and at most

T = TypeVar("T")

Address = tuple[socket.AddressFamily, socket.SocketKind, int, str, Any]  # as `getaddrinfo` gives it


def seen(error: OSError) -> str:
    """What an attempt to connect that failed has seen. Public."""
    if isinstance(error, socket.gaierror):
        return f"{NO_NAME} ({error.strerror})"
    if isinstance(error, ConnectionRefusedError):
        return NOBODY_LISTENS
    if isinstance(error, TimeoutError) or error.errno in _SILENT:
        return NO_ANSWER
    if error.errno in _UNREACHABLE:
        return NO_ROUTE
    return str(error.strerror or error)


class Unreached(OSError):
    """No address of an endpoint answers; its text says what was seen at each."""


async def reach(endpoint: Endpoint, attempt: float = ATTEMPT) -> socket.socket:
    """A socket that is connected with the endpoint, the first of its addresses to answer. Errors: Unreached."""
    loop = asyncio.get_running_loop()
    try:
        async with asyncio.timeout(attempt):
            found = await loop.getaddrinfo(endpoint.host, endpoint.port, type=socket.SOCK_STREAM)
    except OSError as error:
        raise Unreached(NO_NAME if isinstance(error, TimeoutError) else seen(error)) from None
    addresses = _by_turns(list(dict.fromkeys(found)))
    why = dict[int, str]()

    async def one(k: int) -> socket.socket:
        family, kind, protocol, _, address = addresses[k]
        sock = socket.socket(family, kind, protocol)
        try:
            sock.setblocking(False)
            async with asyncio.timeout(attempt):
                await loop.sock_connect(sock, address)
            return sock
        except BaseException as error:
            sock.close()
            if isinstance(error, OSError):
                why[k] = seen(error)
            raise

    pending = set[asyncio.Task[socket.socket]]()
    begun = 0
    try:
        while True:
            if begun < len(addresses):
                pending.add(asyncio.ensure_future(one(begun)))
                begun += 1
            more = begun < len(addresses)
            done, pending = await asyncio.wait(
                pending, timeout=_NEXT if more else None, return_when=asyncio.FIRST_COMPLETED
            )
            answered = [task.result() for task in done if task.exception() is None]
            for late in answered[1:]:
                late.close()
            if answered:
                return answered[0]
            for task in done:
                if not isinstance(task.exception(), OSError):
                    task.result()
            if not pending and not more:
                break
    finally:
        for task in pending:
            task.cancel()
        for outcome in await asyncio.gather(*pending, return_exceptions=True):
            if isinstance(outcome, socket.socket):  # it answered as it was given up
                outcome.close()
    if len(set(why.values())) == 1:
        raise Unreached(next(iter(why.values())))
    raise Unreached("; ".join(f"{addresses[k][4][0]}: {text}" for k, text in sorted(why.items())))


def _by_turns(found: list[Address]) -> list[Address]:
    """Addresses of two families alternate, in the order in which the resolver prefers them."""
    first = [each for each in found if each[0] == found[0][0]]
    other = [each for each in found if each[0] != found[0][0]]
    merged = [pair for both in zip(first, other, strict=False) for pair in both]
    least = min(len(first), len(other))
    return merged + first[least:] + other[least:]


async def other_protocol(endpoint: Endpoint) -> str:
    """What answers where TLS was due and something else came: `HTTP_ANSWERS`, or `NO_TLS`."""
    with contextlib.suppress(OSError, TimeoutError, asyncio.IncompleteReadError):
        async with asyncio.timeout(_PROBE):
            reader, writer = await asyncio.open_connection(sock=await reach(endpoint, _PROBE))
            try:
                writer.write(b"GET / HTTP/1.0\r\n\r\n")
                if await reader.readexactly(5) == b"HTTP/":
                    return HTTP_ANSWERS
            finally:
                writer.close()
    return NO_TLS


async def shown_there(endpoint: Endpoint, who: str) -> str:
    """For whom the certificate is that came from the endpoint, and who signed it, for a message: it was refused, and is
    looked at on a connection of its own over which nothing is said. "" where it is not to be had."""
    from cryptography import x509

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    try:
        async with asyncio.timeout(_PROBE):
            sock = await reach(endpoint, _PROBE)
            _, writer = await asyncio.open_connection(sock=sock, ssl=context, server_hostname=who)
            try:
                raw = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
            finally:
                writer.close()
        certificate = x509.load_der_x509_certificate(raw)
    except (OSError, TimeoutError, ValueError, TypeError):
        return ""
    try:
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        told = ", ".join(names.get_values_for_type(x509.DNSName))
    except (x509.ExtensionNotFound, ValueError):
        told = ""
    mine = _shown(told or certificate.subject.rfc4514_string())
    signer = _shown(certificate.issuer.rfc4514_string())
    return f"; what came is for {mine}, signed by {signer}: a proxy between the two must let TLS through"


def _shown(text: str) -> str:
    """A text of somebody else's as it may be printed."""
    plain = "".join(letter if letter.isprintable() else "?" for letter in text)
    return (plain[:_LONGEST] + " ..." if len(plain) > _LONGEST else plain) or "nobody"


async def waited_for(
    attempt: Callable[[], Awaitable[T]], patience: float, lacking: Callable[[str], None] = lambda text: None
) -> T:
    """What `attempt` gives: where it raises NotYetError, it is tried again, up to `patience` seconds. `lacking` hears
    what this machine lacks, and "" at the end. Errors: those of `attempt`."""
    loop = asyncio.get_running_loop()
    end, pause = loop.time() + patience, _PAUSE[0]
    try:
        while True:
            try:
                return await attempt()
            except NotYetError as error:
                if loop.time() + pause > end:
                    raise
                lacking(error.lacks)
            await asyncio.sleep(pause)
            pause = min(2 * pause, _PAUSE[1])
    finally:
        lacking("")


async def listening(
    endpoint: Endpoint, what: str, patience: float = 0.0, lacking: Callable[[str], None] = lambda text: None
) -> list[socket.socket]:
    """Sockets that listen at all addresses of the endpoint's host. What passes by itself is waited for, up to
    `patience` seconds: a port that another process still has, a name that is not known yet, an address that is not on
    this machine yet. `what` (party 1 must listen) begins the messages; `lacking` hears what is waited for, and "" at
    the end. Errors: UsageError for what does not pass; NotYetError where it did not in time."""
    said = f" for {patience:g} s" if patience else ""

    async def attempt() -> list[socket.socket]:
        try:
            return await _bound(endpoint)
        except OSError as error:
            why = f"{NO_NAME} ({error.strerror})" if isinstance(error, socket.gaierror) else str(error.strerror)
            failed = f"{what} on {endpoint}, but that fails ({why})"
            if not isinstance(error, socket.gaierror) and error.errno not in _PASSING:
                raise UsageError(
                    f"{failed}; listen elsewhere with <<listen>>, or mend <<addresses>>", code="path"
                ) from None
            raise NotYetError(
                f"{failed}{said}; free it and start again, or listen elsewhere with <<listen>>, or "
                "mend <<addresses>> / <<base_port>>",
                lacks=f"its own address, {endpoint} ({why})",
            ) from None

    return await waited_for(attempt, patience, lacking)


async def _bound(endpoint: Endpoint) -> list[socket.socket]:
    """Errors: OSError."""
    found = await asyncio.get_running_loop().getaddrinfo(
        endpoint.host, endpoint.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
    )
    with contextlib.ExitStack() as stack:
        sockets = []
        for family, kind, protocol, _, address in dict.fromkeys(found):
            each = stack.enter_context(socket.socket(family, kind, protocol))
            each.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if family == socket.AF_INET6:
                each.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            each.bind(address)
            each.listen(BACKLOG)
            sockets.append(each)
        stack.pop_all()
    return sockets
