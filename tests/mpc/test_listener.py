"""Strangers at the listener: each is dropped on its own, none is believed, and the right one is admitted meanwhile."""

import asyncio
import contextlib
import os
import socket
import ssl
import struct
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest

from dpmpc.errors import PeerError
from dpmpc.mpc.parties.session import Session
from dpmpc.mpc.transport import listener as door_module
from dpmpc.mpc.transport.addresses import bound_socket, endpoint_of
from dpmpc.mpc.transport.channels import HELLO, REASON
from dpmpc.mpc.transport.credentials import make_credentials
from dpmpc.mpc.transport.dial import NOBODY_AT_ALL, NOT_ANSWERED, Call, TcpLink, not_here
from dpmpc.mpc.transport.listener import MOST_NAMED, MOST_PENDING, MOST_SILENT, Listener, Refused, origin
from dpmpc.mpc.transport.reaching import NOBODY_LISTENS
from dpmpc.mpc.transport.tls import Tls
from dpmpc.mpc.transport.wire import HEADER, MAGIC, VERSION, Peer, run_tag
from tests.runs import HANG

RUN = b"run"


def header(label: int, size: int) -> bytes:
    return HEADER.pack(MAGIC, VERSION, run_tag(RUN), label, size)


NONSENSE = [
    b"",
    b"abc",
    b"\x16\x03\x01" + bytes(100),  # the beginning of a TLS greeting
    bytes(range(256)),
    header(HELLO, 36)[:-1],
    header(HELLO, 1 << 32),
    header(HELLO, 3) + b"abc",
    header(REASON, 20) + b"party 1 left the run",
    header(HELLO, 36) + struct.pack("<HH32s", 0, 3, b"x" * 32),
    header(HELLO, 36) + struct.pack("<HH32s", 700, 2, bytes(32)),
    header(7, 0) * 1000,
]


async def meet(tls: bool, keys: Path) -> tuple[list[str], list[bool]]:
    """Party 1 is called by all strangers, silent ones among them; then by party 0. What it logs; who was lost."""
    bound = [bound_socket() for _ in range(2)]
    where = [endpoint_of(s) for s in bound]
    sessions = [Session(i, 2, 0, RUN) for i in range(2)]
    log: list[str] = []
    links = [
        TcpLink(i, where, tls=Tls.load(keys, f"party{i}") if tls else None, bound=bound[i], log=log.append)
        for i in range(2)
    ]
    listening = asyncio.ensure_future(sessions[1].connect(links[1], seconds=HANG))
    strangers = []
    for payload in NONSENSE * 3:
        while True:
            try:
                reader, writer = await asyncio.open_connection(where[1].host, where[1].port)
                break
            except OSError:  # party 1 does not listen yet
                await asyncio.sleep(0)
        writer.write(payload)
        strangers.append((reader, writer))
    for _, writer in strangers[1::3]:
        writer.transport.abort()
    await asyncio.gather(listening, sessions[0].connect(links[0], seconds=HANG))
    lost = [s.lost.done() for s in sessions]
    for s in sessions:
        s.abandon()
    for _, writer in strangers:
        writer.transport.abort()
    await asyncio.sleep(0)
    return log, lost


@pytest.mark.parametrize("tls", [False, True])
def test_no_stranger_stops_two_parties_from_meeting(tls: bool, tmp_path: Path) -> None:
    make_credentials(tmp_path / "keys", ("party0", "party1"))
    log, lost = asyncio.run(meet(tls, tmp_path / "keys"))
    assert lost == [False, False]
    if not tls:
        for why in ("it speaks another protocol", "above the 4096 allowed", "a greeting has 36 bytes; got 3"):
            assert any(why in line for line in log), log
    assert len(log) == len(set(log))  # a flood of the same is one line


async def at_a_listener(
    admit: Callable[[Peer, bytearray], None], callers: int, host: str = "127.0.0.1"
) -> tuple[Listener, list[asyncio.StreamReader]]:
    """A listener and silent callers."""
    bound = bound_socket(host)
    listener = Listener(lambda: Peer("a caller", RUN), admit, lambda text: None)
    await listener.open(endpoint_of(bound), bound, None, "this test must listen")
    readers = []
    for _ in range(callers):
        reader, writer = await asyncio.open_connection(*bound.getsockname())
        readers.append(reader)
        WRITERS.append(writer)
    return listener, readers


WRITERS: list[asyncio.StreamWriter] = []


async def hang_up() -> None:
    """Closes the connections of all callers."""
    for writer in WRITERS:
        writer.transport.abort()
    await asyncio.sleep(0)
    WRITERS.clear()


def test_so_many_callers_may_wait_and_one_more_takes_the_place_of_the_first() -> None:
    """Silent ones, and ones that have said something."""

    async def body(begin: bytes, places: int) -> None:
        listener, readers = await at_a_listener(lambda peer, greeting: peer.admit(), 0)
        there = listener._pending if begin else listener._silent
        for _ in range(places + 3):
            await one_more(listener, readers, begin)
        async with asyncio.timeout(HANG):
            while listener.crowded_out < 3 or len(there) > places:
                await asyncio.sleep(0)
            for reader in readers[:3]:
                with contextlib.suppress(ConnectionError):
                    assert await reader.read() == b""
        assert len(there) == places and not any(reader.at_eof() for reader in readers[3:])
        assert listener.refusals().startswith("; so many called at once that 3 were dropped")
        WRITERS[-1].write(header(HELLO, 0)[len(begin) :])
        async with asyncio.timeout(HANG):
            while len(there) == places:
                await asyncio.sleep(0)
        listener.close()
        for reader in readers[3:-1]:
            with contextlib.suppress(ConnectionError):
                assert await reader.read() == b""
        await hang_up()

    asyncio.run(body(b"", MOST_SILENT))
    asyncio.run(body(header(HELLO, 0)[:1], MOST_PENDING))


async def one_more(
    listener: Listener, readers: list[asyncio.StreamReader], begin: bytes, from_: str = "127.0.0.1"
) -> None:
    """One more caller, which says `begin`, is met before the next."""
    met, silent = listener.met, len(listener._silent)
    reader, writer = await asyncio.open_connection(*listener._sockets[0].getsockname()[:2], local_addr=(from_, 0))
    writer.write(begin)
    readers.append(reader)
    WRITERS.append(writer)
    async with asyncio.timeout(HANG):
        while listener.met == met or (begin and len(listener._silent) > silent):
            await asyncio.sleep(0)


def kept_through_a_flood(
    begin: bytes, places: int, host: str = "127.0.0.1", one: str = "127.0.0.1", others: str = "127.0.0.2"
) -> bool:
    """Whether a caller that is slow, silent or in its greeting, is admitted after three times as many callers from
    other addresses as there are places."""
    admitted = list[Peer]()

    def admit(peer: Peer, greeting: bytearray) -> None:
        peer.admit()
        admitted.append(peer)

    async def body() -> None:
        listener, readers = await at_a_listener(admit, 0, host)
        await one_more(listener, readers, begin, one)
        for k in range(3 * places):
            await one_more(listener, readers, begin, others.format(k + 2))
        assert len(listener._silent) <= MOST_SILENT and len(listener._pending) <= MOST_PENDING
        WRITERS[0].write(header(HELLO, 0)[len(begin) :])
        async with asyncio.timeout(HANG):
            while not admitted and not readers[0].at_eof() and not readers[0].exception():
                await asyncio.sleep(0)
        listener.close()
        for peer in admitted:
            peer.abort("the end")
        await hang_up()

    asyncio.run(body())
    return bool(admitted)


@pytest.mark.parametrize(("begin", "places"), [(b"", MOST_SILENT), (header(HELLO, 0)[:1], MOST_PENDING)])
def test_a_flood_from_one_address_takes_no_place_from_another(
    begin: bytes, places: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert kept_through_a_flood(begin, places)
    monkeypatch.setattr(door_module, "_longest_of_most", lambda of: next(iter(of)))  # with the mend taken out
    assert not kept_through_a_flood(begin, places)


FLOOD = """
import asyncio, subprocess, sys
subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
open("/proc/sys/net/ipv6/ip_nonlocal_bind", "w").write("1")
for network in ("fd77::/64", "fd78::/64"):
    subprocess.run(["ip", "-6", "route", "add", "local", network, "dev", "lo"], check=True)
from tests.mpc import test_listener as here
print(here.kept_through_a_flood(bytes.fromhex(sys.argv[1]), int(sys.argv[2]), "fd77::1", "fd77::2", "fd78::{:x}"))
"""
_TRY = "ip link set lo up && ip -6 route add local fd77::/64 dev lo && echo 1 > /proc/sys/net/ipv6/ip_nonlocal_bind"


@pytest.mark.parametrize(("begin", "places"), [(b"", MOST_SILENT), (header(HELLO, 0)[:1], MOST_PENDING)])
def test_nor_does_one_from_all_addresses_of_an_ipv6_network(begin: bytes, places: int) -> None:
    """In a network of its own, where this machine has 2^64 addresses. Each caller comes from another one."""
    own = ["unshare", "-Urn"]
    tried = subprocess.run([*own, "sh", "-c", _TRY], capture_output=True, text=True, check=False)
    if tried.returncode:
        pytest.skip(f"the kernel gives no networks of one's own: {tried.stderr.strip()[:80]}")
    root = Path(__file__).resolve().parents[2]
    done = subprocess.run(
        [*own, sys.executable, "-c", FLOOD, begin.hex(), str(places)],
        cwd=root, env={**os.environ, "PYTHONPATH": str(root)},
        capture_output=True, text=True, timeout=HANG, check=False,
    )  # fmt: skip
    assert done.stdout.split() == ["True"], done.stderr[-2000:]


@pytest.mark.parametrize(
    ("address", "said"),
    [
        ("127.0.0.2", "127.0.0.2"), ("::ffff:10.1.2.3", "10.1.2.3"), ("::1", "::/64"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"), ("2001:db8:1:2:ffff::", "2001:db8:1:2::/64"),
        ("2001:db8:1:3::", "2001:db8:1:3::/64"), ("fe80::1%eth0", "fe80::/64%eth0"),
    ],
)  # fmt: skip
def test_a_caller_is_from_what_it_cannot_choose(address: str, said: str) -> None:
    assert origin(address) == said


def test_the_log_names_so_many_strangers_and_everybody_else() -> None:
    """A stranger's address and what it does are its own choice, so lines that differ have no end; whoever showed who it
    is has its line."""
    log: list[str] = []
    door = Listener(lambda: Peer("a caller", RUN), lambda peer, greeting: None, log.append)
    for k in range(10 * MOST_NAMED):
        door._refuse(door_module._caller(f"10.0.{k % 7}.{k % 256}"), f"magic {k}")
        door._refuse("party 0", "it has another plan")
    assert len(log) == MOST_NAMED + 1 + log.count("refused party 0: it has another plan")
    assert "it has another plan" in log[1] and "without a line" in "".join(log)
    door._refuse("party 1", "it has another plan")
    assert log[-1] == "refused party 1: it has another plan" and "magic 319" in door.refusals()


def test_no_tls_begins_for_callers_that_speak_none(tmp_path: Path) -> None:
    """However many come, silent or with other bytes: not one connection is made of them."""
    make_credentials(tmp_path / "keys", ("party0",))
    made, log = list[int](), list[str]()

    def make() -> Peer:
        made.append(1)
        return Peer("a caller", RUN)

    async def body() -> None:
        bound, readers = bound_socket(), list[asyncio.StreamReader]()
        listener = Listener(make, lambda peer, greeting: peer.admit(), log.append)
        await listener.open(endpoint_of(bound), bound, Tls.load(tmp_path / "keys", "party0"), "this test must listen")
        for k in range(2 * MOST_SILENT):
            await one_more(listener, readers, (b"", b"GET / HTTP/1.0")[k % 2])
            assert len(listener._silent) <= MOST_SILENT and not listener._pending
        listener.close()
        await hang_up()

    asyncio.run(body())
    assert not made and log == ["refused a caller from 127.0.0.1: no TLS handshake (it speaks another protocol)"]


def test_a_flooded_listener_is_not_called_one_where_nobody_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither by who calls it, before an attempt has ended, nor by itself, where its callers did not come through."""
    monkeypatch.setattr(door_module, "MOST_SILENT", 8)
    with bound_socket() as silent:
        call = Call(endpoint_of(silent), "party1", None)
    assert call.problem == NOT_ANSWERED and NOBODY_LISTENS not in not_here({1: (call.endpoint, call.problem)}, True)

    async def body() -> str:
        bound = [bound_socket() for _ in range(2)]
        where = [endpoint_of(s) for s in bound]
        session = Session(1, 2, 0, RUN)
        link = TcpLink(1, where, bound=bound[1])
        listening = asyncio.ensure_future(session.connect(link, seconds=2.0))
        while not listening.done() and len(WRITERS) < 20:
            with contextlib.suppress(OSError):  # it does not listen yet
                _, writer = await asyncio.open_connection(where[1].host, where[1].port)
                WRITERS.append(writer)
        with pytest.raises(PeerError) as error:
            await listening
        await hang_up()
        bound[0].close()
        return error.value.message

    said = asyncio.run(body())
    assert "it has not called" in said and "so many called at once that" in said and NOBODY_AT_ALL not in said


def test_dead_tls_connections_are_collected_once_for_every_eight(monkeypatch: pytest.MonkeyPatch) -> None:
    """However many callers had come when they end: 17 that are there together, and end together, cost two."""
    collected, listener = list[int](), Listener(lambda: Peer("a caller", RUN), lambda *_: None, lambda text: None)
    monkeypatch.setattr(door_module.gc, "collect", lambda: collected.append(1))
    listener._tls, listener.met = ssl.create_default_context(), 16
    for _ in range(17):
        with socket.socket() as connection:
            listener._met(connection, cast(Any, None))
    assert len(collected) == 2


def test_who_does_not_greet_in_time_is_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(door_module, "GREETING", 0.0)

    async def body() -> None:
        listener, (reader,) = await at_a_listener(lambda peer, greeting: peer.admit(), 1)
        async with asyncio.timeout(HANG):
            with contextlib.suppress(ConnectionError):
                assert await reader.read() == b""
        assert listener.refusals() == "; refused meanwhile: a caller from 127.0.0.1: no greeting within 0 s"
        listener.close()
        await hang_up()

    asyncio.run(body())


def test_who_is_refused_is_told_why_with_settings_marked() -> None:
    """Each site spells them as its own surface does."""
    why = b"another plan; mend <<index>>"

    def refuse(peer: Peer, greeting: bytearray) -> None:
        raise Refused("another plan; mend <<index>>")

    async def body() -> None:
        listener, (reader,) = await at_a_listener(refuse, 1)
        WRITERS[0].write(header(HELLO, 1) + b"x")
        async with asyncio.timeout(HANG):
            assert await reader.readexactly(HEADER.size + len(why)) == header(REASON, len(why)) + why
            WRITERS[0].close()
            assert await reader.read() == b""
        listener.close()
        await hang_up()

    asyncio.run(body())


def test_a_party_that_leaves_before_all_are_here_may_come_again() -> None:
    """Of three, the second comes, dies without a word, and comes again; then the third."""

    async def body() -> None:
        bound = [bound_socket() for _ in range(3)]
        where = [endpoint_of(s) for s in bound]
        first = Session(0, 3, 1, RUN)
        waiting = asyncio.ensure_future(first.connect(TcpLink(0, where, bound=bound[0]), seconds=HANG))
        early = Session(1, 3, 1, RUN)
        link = TcpLink(1, where, bound=bound[1].dup())
        dying = asyncio.ensure_future(early.connect(link, seconds=HANG))
        async with asyncio.timeout(HANG):
            while not link._peers:
                await asyncio.sleep(0)
        for peer in list(link._peers.values()):
            peer.abort("killed")
        dying.cancel()
        await asyncio.gather(dying, return_exceptions=True)
        assert not waiting.done()
        again = [Session(i, 3, 1, RUN) for i in (1, 2)]
        links = [TcpLink(i, where, bound=bound[i]) for i in (1, 2)]
        await asyncio.gather(waiting, *(s.connect(l, seconds=HANG) for s, l in zip(again, links, strict=True)))
        for session in (first, *again):
            session.abandon()
        await asyncio.sleep(0)

    asyncio.run(body())


def test_those_who_are_here_are_told_who_never_came() -> None:
    async def body() -> list[str]:
        bound = [bound_socket() for _ in range(3)]
        where = [endpoint_of(s) for s in bound]
        sessions = [Session(i, 3, 1, RUN) for i in (0, 1)]
        results = await asyncio.gather(
            sessions[0].connect(TcpLink(0, where, bound=bound[0]), seconds=0.5),
            sessions[1].connect(TcpLink(1, where, bound=bound[1]), seconds=HANG),
            return_exceptions=True,
        )
        bound[2].close()
        assert all(isinstance(result, PeerError) for result in results), results
        return [str(result) for result in results]

    first, second = asyncio.run(body())
    assert "missing: party 2" in first and second == f"{first} (told by party 0)"
