"""Names with several addresses, machines that do not answer, ports that are taken for a while: what is waited for, what
is refused, and what is said of each."""

import asyncio
import errno
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from dpmpc.errors import PeerError
from dpmpc.mpc.transport import reaching
from dpmpc.mpc.transport.addresses import Endpoint, bound_socket, endpoint_of, waiting_socket
from dpmpc.mpc.transport.credentials import make_credentials
from dpmpc.mpc.transport.dial import Call
from dpmpc.mpc.transport.heartbeat import Heartbeat
from dpmpc.mpc.transport.reaching import (
    HTTP_ANSWERS,
    NO_ANSWER,
    NO_NAME,
    NO_ROUTE,
    NO_TLS,
    NOBODY_LISTENS,
    Unreached,
    listening,
    other_protocol,
    reach,
    seen,
)
from dpmpc.mpc.transport.tls import Tls, check_dates
from dpmpc.mpc.transport.wire import Peer
from tests.refusals import refuses


@contextmanager
def silent(host: str, port: int = 0) -> Iterator[int]:
    """A port at which the kernel drops what comes, as a firewall does: its queue is full, and nobody empties it."""
    queue = bound_socket(host, port)
    queue.listen(0)
    port = queue.getsockname()[1]
    callers = []
    for _ in range(4):
        caller = socket.socket()
        caller.setblocking(False)
        caller.connect_ex((host, port))
        callers.append(caller)
    try:
        yield port
    finally:
        for each in (queue, *callers):
            each.close()


def named(monkeypatch: pytest.MonkeyPatch, *hosts: str) -> None:
    """The name insel.test has these addresses."""
    real = socket.getaddrinfo

    def look_up(host: str, port: int, *rest: Any, **more: Any) -> list[Any]:
        if host != "insel.test":
            return list(real(host, port, *rest, **more))
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (each, port)) for each in hosts]

    monkeypatch.setattr(socket, "getaddrinfo", look_up)


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (ConnectionRefusedError(errno.ECONNREFUSED, "x"), NOBODY_LISTENS),
        (TimeoutError(), NO_ANSWER),
        (OSError(errno.ETIMEDOUT, "x"), NO_ANSWER),
        (OSError(errno.EHOSTUNREACH, "x"), NO_ROUTE),
        (OSError(errno.ENETUNREACH, "x"), NO_ROUTE),
        (socket.gaierror(socket.EAI_AGAIN, "try again"), f"{NO_NAME} (try again)"),
        (OSError(errno.EACCES, "no"), "no"),
    ],
)
def test_what_is_seen_is_told_apart(error: OSError, said: str) -> None:
    assert seen(error) == said


def test_a_dead_first_address_holds_up_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    """The live one answers while the attempt at the dead one, which has a day, still lasts."""
    with closing(waiting_socket("127.0.0.3")) as live, silent("127.0.0.9", live.getsockname()[1]) as port:
        named(monkeypatch, "127.0.0.9", "127.0.0.3")
        with closing(asyncio.run(reach(Endpoint("insel.test", port), 86_400.0))) as found:
            assert found.getpeername() == ("127.0.0.3", port)


def test_where_no_address_answers_each_says_what_was_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    with closing(bound_socket("127.0.0.3")) as taken, silent("127.0.0.9", taken.getsockname()[1]) as port:
        named(monkeypatch, "127.0.0.9", "127.0.0.3")
        for host, said in (
            ("insel.test", f"127.0.0.9: {NO_ANSWER}; 127.0.0.3: {NOBODY_LISTENS}"),
            ("127.0.0.9", NO_ANSWER),
            ("127.0.0.3", NOBODY_LISTENS),
        ):
            with pytest.raises(Unreached) as error:
                asyncio.run(reach(Endpoint(host, port), 0.6))
            assert str(error.value) == said


def test_a_name_that_nobody_knows_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(*arguments: Any, **more: Any) -> None:
        raise socket.gaierror(socket.EAI_AGAIN, "try again")

    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    with pytest.raises(Unreached, match=NO_NAME):
        asyncio.run(reach(Endpoint("insel.test", 1)))


# -- a port of one's own -----------------------------------------------------------------------------------------------
def failing(monkeypatch: pytest.MonkeyPatch, error: OSError, times: int) -> list[int]:
    """Has the first tries to listen fail; the list has an entry for each try."""
    real, tries = reaching._bound, list[int]()

    async def bound(endpoint: Endpoint) -> list[socket.socket]:
        tries.append(1)
        if len(tries) <= times:
            raise error
        return await real(endpoint)

    monkeypatch.setattr(reaching, "_bound", bound)
    monkeypatch.setattr(reaching, "_PAUSE", (0.0, 0.0))
    return tries


PASSING = [
    OSError(errno.EADDRINUSE, "Address already in use"),
    OSError(errno.EADDRNOTAVAIL, "Cannot assign requested address"),
    socket.gaierror(socket.EAI_AGAIN, "Temporary failure in name resolution"),
]


@pytest.mark.parametrize("error", PASSING, ids=lambda error: str(error.strerror))
def test_what_passes_is_waited_for_and_said_once(monkeypatch: pytest.MonkeyPatch, error: OSError) -> None:
    tries, said = failing(monkeypatch, error, 3), list[str]()

    async def body() -> None:
        heartbeat = Heartbeat(say=said.append)
        for each in await listening(Endpoint("127.0.0.1", 0), "party 1 must listen", 600.0, heartbeat.lack):
            each.close()
        heartbeat.stop()

    asyncio.run(body())
    assert len(tries) == 4 and len(said) == 1
    assert said[0].startswith("waiting for its own address, 127.0.0.1:0 (") and str(error.strerror) in said[0]


@pytest.mark.parametrize("error", PASSING, ids=lambda error: str(error.strerror))
def test_what_does_not_pass_in_time_is_no_refusal(monkeypatch: pytest.MonkeyPatch, error: OSError) -> None:
    """Its exit code is one after which a service is started again."""
    failing(monkeypatch, error, 1 << 60)
    with refuses("not-yet", 1, "127.0.0.1", 0, setting="listen") as raised:
        asyncio.run(listening(Endpoint("127.0.0.1", 0), "party 1 must listen"))
    assert raised.value.exit_code == 6 and raised.value.message.count("<<listen>>") == 1


def test_what_never_passes_is_refused_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    tries = failing(monkeypatch, PermissionError(errno.EACCES, "Permission denied"), 1 << 60)
    with refuses("path", setting="listen"):
        asyncio.run(listening(Endpoint("127.0.0.1", 80), "party 1 must listen", 600.0))
    assert len(tries) == 1


def test_a_port_that_is_taken_is_had_when_it_is_free() -> None:
    taken = waiting_socket()
    where, said = endpoint_of(taken), list[str]()

    async def body() -> None:
        trying = asyncio.ensure_future(listening(where, "party 1 must listen", 600.0, lack))
        for each in await trying:
            assert endpoint_of(each) == where
            each.close()

    def lack(text: str) -> None:
        said.append(text)
        taken.close()  # as the first try has failed

    asyncio.run(body())
    assert "Address already in use" in said[0] and said[-1] == ""


# -- who answers -------------------------------------------------------------------------------------------------------
class _Page(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(502)
        self.end_headers()

    def log_message(self, *words: Any) -> None:
        """Nobody is told."""


@contextmanager
def serving(handle: Callable[[socket.socket], None]) -> Iterator[Endpoint]:
    """A program that hands each caller to `handle`."""
    there = waiting_socket()

    def serve() -> None:
        while True:
            try:
                caller, _ = there.accept()
            except OSError:
                return
            with closing(caller):
                try:
                    handle(caller)
                except OSError:
                    pass

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        yield endpoint_of(there)
    finally:
        there.shutdown(socket.SHUT_RDWR)
        there.close()
        thread.join()


def called(endpoint: Endpoint, tls: Tls) -> Call:
    """The call after one try."""

    async def body() -> Call:
        call = Call(endpoint, "party1", tls)
        peer = Peer("party 1", b"r" * 8, lambda peer, error: None, None)
        try:
            assert await call.once(peer, b"hello") is None
        finally:
            peer.abort("over")
        return call

    return asyncio.run(body())


def test_a_page_in_place_of_a_party_is_named_and_waited_for(tmp_path: Path) -> None:
    make_credentials(tmp_path, ["party0", "party1"])
    server = HTTPServer(("127.0.0.1", 0), _Page)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        where = Endpoint("127.0.0.1", server.server_address[1])
        assert asyncio.run(other_protocol(where)) == HTTP_ANSWERS
        assert called(where, Tls.load(tmp_path, "party0")).problem == HTTP_ANSWERS
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def test_another_program_in_place_of_a_party_is_named(tmp_path: Path) -> None:
    make_credentials(tmp_path, ["party0", "party1"])

    def mail(caller: socket.socket) -> None:
        caller.sendall(b"220 mail.example ESMTP\r\n")
        caller.recv(1000)

    with serving(mail) as where:
        assert asyncio.run(other_protocol(where)) == NO_TLS
        assert called(where, Tls.load(tmp_path, "party0")).problem == NO_TLS


def test_who_shows_another_certificate_is_named(tmp_path: Path) -> None:
    """As a proxy does that ends TLS between two sites."""
    make_credentials(tmp_path / "ours", ["party0", "party1"])
    make_credentials(tmp_path / "theirs", ["party1"])
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(tmp_path / "theirs" / "party1.crt", tmp_path / "theirs" / "party1.key")

    def proxy(caller: socket.socket) -> None:
        with closing(context.wrap_socket(caller, server_side=True)) as inside:
            inside.recv(1)

    with serving(proxy) as where:
        with pytest.raises(PeerError) as error:
            called(where, Tls.load(tmp_path / "ours", "party0"))
    assert "what came is for party1" in str(error.value) and "signed by" in str(error.value)


def test_a_certificate_of_tomorrow_is_no_refusal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The clock of a machine that has just begun may not be in step."""
    import datetime

    make_credentials(tmp_path, ["party0"])

    class Then(datetime.datetime):
        days = 0

        @classmethod
        def now(cls, tz: datetime.tzinfo | None = None) -> "Then":
            return super().now(tz) + datetime.timedelta(days=cls.days)

    monkeypatch.setattr("dpmpc.mpc.transport.tls.datetime.datetime", Then)
    check_dates(tmp_path / "party0.crt")
    for days, broken in ((-30, "not-yet"), (40_000, "usage")):
        monkeypatch.setattr(Then, "days", days)
        with refuses(broken, "party0.crt"):
            check_dates(tmp_path / "party0.crt")
