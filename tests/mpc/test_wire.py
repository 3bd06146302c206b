"""Frames between processes: what arrives, whatever the pieces, and everything that is refused."""

import asyncio
import itertools
import re
import struct
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from dpmpc.errors import PeerError
from dpmpc.mpc.addresses import bound_socket
from dpmpc.mpc.wire import HEADER, MAGIC, MAX_HELLO, MAX_PAYLOAD, VERSION, Peer, run_tag
from tests.runs import HANG

RUN = b"run/0"


def frame(label: int, payload: bytes, *, magic: int = MAGIC, version: int = VERSION, run: bytes = RUN) -> bytes:
    """A frame as another process would send it."""
    return HEADER.pack(magic, version, run_tag(run), label, len(payload)) + payload


def announced(size: int) -> bytes:
    """The header alone of a frame of so many bytes."""
    return HEADER.pack(MAGIC, VERSION, run_tag(RUN), 1, size)


@dataclass
class Line:
    """A connection on loopback: the peer that accepted it, the streams at its other end, why the peer says it ended."""

    peer: Peer
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    ended: "asyncio.Future[str]"


def on_a_line(body: Callable[[Line], Awaitable[None]]) -> None:
    """Runs `body` on a new connection."""

    async def main() -> None:
        made: asyncio.Queue[Peer] = asyncio.Queue()
        ended: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        bound = bound_socket()
        server = await asyncio.get_running_loop().create_server(
            lambda: Peer("a caller", RUN, on_lost=lambda _, why: ended.set_result(why), on_made=made.put_nowait),
            sock=bound,
        )
        reader, writer = await asyncio.open_connection(*bound.getsockname())
        async with asyncio.timeout(HANG):
            peer = await made.get()
        try:
            async with asyncio.timeout(HANG):
                await body(Line(peer, reader, writer, ended))
        finally:
            writer.close()
            peer.close()
            server.close()

    asyncio.run(main())


REFUSED: dict[str, tuple[list[bytes], str]] = {
    "another magic": (
        [frame(1, b"x", magic=MAGIC ^ 1)],
        "it speaks another protocol (magic 0xd9c4, version 1; here 0xd9c5, 1)",
    ),
    "another version": (
        [frame(1, b"x", version=2)],
        "it speaks another protocol (magic 0xd9c5, version 2; here 0xd9c5, 1)",
    ),
    "no frames at all": (
        [b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"],
        "it speaks another protocol (magic 0x4547, version 8276; here 0xd9c5, 1)",
    ),
    "another run": ([frame(1, b"x", run=b"run/1")], "it belongs to another run; give every process the same run id"),
    "too long a greeting": (
        [announced(MAX_HELLO + 1)],
        f"it announced a frame of {MAX_HELLO + 1} bytes, above the {MAX_HELLO} allowed",
    ),
    "too long a frame": (
        [frame(1, b"x"), announced(MAX_PAYLOAD + 1)],
        f"it announced a frame of {MAX_PAYLOAD + 1} bytes, above the {MAX_PAYLOAD} allowed",
    ),
    "a negative length": (
        [frame(1, b"x"), announced((1 << 64) - 1)],
        f"it announced a frame of {(1 << 64) - 1} bytes, above the {MAX_PAYLOAD} allowed",
    ),
    "a label twice": ([frame(7, b"x"), frame(7, b"y")], "it sent label 7 twice"),
}


@pytest.mark.parametrize("why", REFUSED)
def test_a_peer_that_does_wrong_is_dropped_and_everybody_is_told_why(why: str) -> None:
    frames, reason = REFUSED[why]

    async def body(line: Line) -> None:
        pending = line.peer.receive(99)
        line.writer.write(b"".join(frames))
        assert await line.ended == reason
        for future in (pending, line.peer.receive(100)):  # the one that waits, and whoever comes later
            with pytest.raises(PeerError, match=rf"^a caller left the run \({re.escape(reason)}\); see its log$"):
                await future
        with pytest.raises(PeerError, match=rf"^the connection with a caller is closed \({re.escape(reason)}\)"):
            line.peer.send(1, b"")
        assert await line.reader.read() == b""  # nothing was answered, and the connection is closed

    on_a_line(body)


def test_what_is_allowed_is_delivered() -> None:
    """The longest greeting, then a longer frame; labels in any order, awaited before they come and after."""
    greeting, long = bytes(range(256)) * (MAX_HELLO // 256), b"ab" * (MAX_HELLO + 5)
    assert len(greeting) == MAX_HELLO

    async def body(line: Line) -> None:
        peer, second = line.peer, line.peer.receive(2)
        for label, payload in ((-1, greeting), (3, b"three"), (2, long), (4, b"")):
            line.writer.write(frame(label, payload))
        assert await second == long
        assert await peer.receive(4) == b""
        assert await peer.receive(3) == b"three"
        assert await peer.receive(-1) == greeting
        line.writer.write(frame(3, b"again"))  # a label that was taken is free: who awaits it has asked for it anew
        assert await peer.receive(3) == b"again"
        assert peer.bytes_received == 5 * HEADER.size + len(greeting) + len(long) + 10 and peer.lost is None
        line.writer.close()
        assert await line.ended == "connection closed"
        with pytest.raises(PeerError, match=r"left the run \(connection closed\)"):
            await peer.receive(5)

    on_a_line(body)


def test_frames_have_the_documented_form_and_an_expected_end_is_not_told() -> None:
    async def body(line: Line) -> None:
        line.peer.send(-5, b"hello")
        line.peer.send(1 << 40, bytearray())
        raw = await line.reader.readexactly(2 * 24 + 5)
        assert struct.unpack("<HHIqQ", raw[:24]) == (0xD9C5, 1, run_tag(RUN), -5, 5)
        assert raw == frame(-5, b"hello") + frame(1 << 40, b"")
        assert (line.peer.bytes_sent, line.peer.frames_sent) == (len(raw), 2)
        line.peer.close()
        assert await line.reader.read() == b""
        assert not line.ended.done()

    on_a_line(body)


def test_a_connection_that_was_never_made_sends_nothing() -> None:
    with pytest.raises(PeerError, match="never opened"):
        Peer("a party", RUN).send(1, b"x")


class Dropped(asyncio.Transport):
    """A transport that only notes that it was aborted."""

    aborted = False

    def abort(self) -> None:
        self.aborted = True

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        pass


async def fed(pieces: list[bytes], labels: list[int]) -> tuple[list[bytes], Peer]:
    """What a peer delivers of bytes that arrive in these pieces."""
    peer = Peer("a caller", RUN)
    peer.connection_made(Dropped())
    for piece in pieces:
        view = memoryview(piece)
        while view and peer.lost is None:
            buffer = peer.get_buffer(-1)
            size = min(len(view), len(buffer))
            buffer[:size] = view[:size]
            peer.buffer_updated(size)
            view = view[size:]
    return [bytes(await peer.receive(label)) for label in labels if peer.lost is None], peer


def test_frames_may_be_cut_anywhere() -> None:
    """Short frames cut at every byte; long ones, which are received in place, at random."""
    short = [b"", b"a", b"bcd", b"e" * 40]
    stream = b"".join(frame(k, payload) for k, payload in enumerate(short))
    for cut in range(len(stream) + 1):
        assert asyncio.run(fed([stream[:cut], stream[cut:]], [0, 1, 2, 3]))[0] == short
    assert asyncio.run(fed([bytes([b]) for b in stream], [0, 1, 2, 3]))[0] == short
    random = np.random.default_rng(3)
    payloads = [random.bytes(int(size)) for size in (70_000, 10, 400_000, 65_536, 0, 262_144)]
    stream = b"".join(frame(k, payload) for k, payload in enumerate(payloads))
    for _ in range(20):
        cuts = [0, *np.sort(random.integers(0, len(stream), random.integers(0, 30))).tolist(), len(stream)]
        pieces = [stream[a:b] for a, b in itertools.pairwise(cuts)]
        assert asyncio.run(fed(pieces, list(range(6))))[0] == payloads


@pytest.mark.parametrize("why", REFUSED)
def test_refusals_do_not_depend_on_the_pieces_and_nothing_after_them_is_read(why: str) -> None:
    frames, reason = REFUSED[why]
    stream = b"".join([*frames, frame(50, b"too late")])
    for pieces in ([stream], [stream[:11], stream[11:]], [bytes([b]) for b in stream]):
        _, peer = asyncio.run(fed(pieces, []))
        assert peer.lost == reason and peer._transport.aborted  # type: ignore[union-attr]
        assert 50 not in peer._arrived


def test_what_goes_over_the_wire_is_observed() -> None:
    seen: list[tuple[Any, ...]] = []

    async def body(line: Line) -> None:
        line.peer.observe = lambda peer, outgoing, label, payload: seen.append((outgoing, label, bytes(payload)))
        line.peer.send(3, b"out")
        line.writer.write(frame(4, b"in"))
        await line.peer.receive(4)

    on_a_line(body)
    assert seen == [(True, 3, b"out"), (False, 4, b"in")]
