"""A page of a run for browsers of this machine: one small server that answers reads alone.

It listens on a loopback address and nowhere else, answers GET and HEAD of three paths, and reads nothing that is sent.
A request by another name than an address or `localhost` is refused: a page elsewhere whose name was made to lead here
(DNS rebinding) reads nothing.
"""

import ipaddress
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from dpmpc.errors import UsageError, public_text
from dpmpc.show.html import HEADERS

_SECONDS = 10  # for a request to come
Pages = dict[str, tuple[str, Callable[[], str]]]  # path -> (type, content)


def server(address: str, pages: Pages) -> ThreadingHTTPServer:
    """A server of these pages, bound and not yet serving. Errors: UsageError for an address that is none of loopback,
    or is taken."""
    host, port = _parts(address)

    class Handler(BaseHTTPRequestHandler):
        timeout = _SECONDS
        server_version, sys_version = "dpmpc", ""

        def do_GET(self) -> None:
            self._answer(body=True)

        def do_HEAD(self) -> None:
            self._answer(body=False)

        def _answer(self, body: bool) -> None:
            if not _local(self.headers.get("Host", "")):
                self._send(421, "text/plain; charset=utf-8", "ask by the address that it listens on\n", body)
                return
            found = pages.get(self.path.partition("?")[0])
            if found is None:
                self._send(404, "text/plain; charset=utf-8", f"there are {', '.join(pages)}\n", body)
                return
            kind, content = found
            try:
                self._send(200, kind, content(), body)
            except UsageError as error:
                self._send(503, "text/plain; charset=utf-8", f"{public_text(error)}\n", body)

        def _send(self, code: int, kind: str, text: str, body: bool) -> None:
            data = text.encode()
            self.send_response(code)
            for name, value in {"Content-Type": kind, "Content-Length": str(len(data)), **HEADERS}.items():
                self.send_header(name, value)
            self.end_headers()
            if body:
                self.wfile.write(data)

        def log_message(self, format: str, *args: object) -> None:
            """Nothing: whoever serves looks at the run, not at who looks."""

    class Server(ThreadingHTTPServer):
        daemon_threads = True
        address_family = 10 if ":" in host else 2  # AF_INET6, AF_INET

        def handle_error(self, request: object, client_address: object) -> None:
            """Nothing: a reader that went away is none of the run's business."""

    try:
        return Server((host, port), Handler)
    except OSError as error:
        raise UsageError(
            f"a page is served on an address that is free; {address}: {error.strerror}; name another port, or 0",
            code="addresses",
        ) from None


def _parts(address: str) -> tuple[str, int]:
    host, mark, port = address.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    try:
        good = mark and ipaddress.ip_address("127.0.0.1" if host == "localhost" else host).is_loopback
        number = int(port)
    except ValueError:
        good, number = "", -1
    if not good or not 0 <= number < 1 << 16:
        raise UsageError(
            f"a page is served to this machine alone, as 127.0.0.1:PORT; got {address}; name a loopback address, and "
            "let a proxy or ssh carry it further",
            code="addresses",
        )
    return ("127.0.0.1" if host == "localhost" else host), number


def _local(host: str) -> bool:
    """Whether a Host header names this machine by an address of loopback, or as localhost."""
    before, mark, port = host.rpartition(":")
    name = before if mark and port.isdecimal() else host
    name = name.removeprefix("[").removesuffix("]")
    if name == "localhost":
        return True
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False
