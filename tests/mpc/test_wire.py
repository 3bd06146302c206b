"""Frames between processes: what arrives, whatever the pieces, and everything that is refused."""

import asyncio
import contextlib
import itertools
import struct
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from dpmpc.aggregation.wire import frames
from dpmpc.mpc.transport import dial
from dpmpc.mpc.transport.abort_reason import Told, public_reason
from dpmpc.mpc.transport.addresses import bound_socket
from dpmpc.mpc.transport.channels import ALIVE, HELLO, REASON
from dpmpc.mpc.transport.link import part
from dpmpc.mpc.transport.wire import FRAME_COST, HEADER, MAGIC, MAX_HELLO, VERSION, Peer, run_tag
from tests.refusals import refuses
from tests.runs import HANG

RUN = b"run/0"


GREETING = b"here I am"


def greeting(run: bytes = RUN) -> bytes:
    """The first frame of a process."""
    return frame(HELLO, GREETING, run=run)


def frame(label: int, payload: bytes, *, magic: int = MAGIC, version: int = VERSION, run: bytes = RUN) -> bytes:
    """A frame as another process would send it."""
    return HEADER.pack(magic, version, run_tag(run), label, len(payload)) + payload


def announced(size: int, label: int = 1) -> bytes:
    """The header alone of a frame of so many bytes."""
    return HEADER.pack(MAGIC, VERSION, run_tag(RUN), label, size)


@dataclass
class Line:
    """A connection on loopback: the peer that accepted it, the streams at its other end, why the peer says it ended."""

    peer: Peer
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    ended: "asyncio.Future[str]"


LARGEST, ROOM = 3 << 20, 5 << 20


def on_a_line(body: Callable[[Line], Awaitable[None]]) -> None:
    """Runs `body` on a new connection."""

    async def main() -> None:
        made: asyncio.Queue[Peer] = asyncio.Queue()
        ended: asyncio.Future[str] = asyncio.get_running_loop().create_future()

        def make() -> Peer:
            made.put_nowait(Peer("a caller", RUN, on_lost=lambda _, error: ended.set_result(str(error))))
            return made._queue[-1]  # type: ignore[attr-defined,no-any-return]

        bound = bound_socket()
        server = await asyncio.get_running_loop().create_server(make, sock=bound)
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


STRANGERS: dict[str, tuple[list[bytes] | Callable[[], list[bytes]], str]] = {
    "another magic": (
        [frame(HELLO, b"x", magic=MAGIC ^ 1)],
        f"it speaks another protocol (magic 0xd9c4, version {VERSION}; here 0xd9c5, {VERSION})",
    ),
    "another version": (
        [frame(HELLO, b"x", version=1)],
        f"it speaks another protocol (magic 0xd9c5, version 1; here 0xd9c5, {VERSION})",
    ),
    "no frames at all": (
        [b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"],
        f"it speaks another protocol (magic 0x4547, version 8276; here 0xd9c5, {VERSION})",
    ),
    "no greeting": ([frame(1, b"x")], "it does not greet first"),
    "too long a greeting": (
        [announced(MAX_HELLO + 1, HELLO)],
        f"it announced a frame of {MAX_HELLO + 1} bytes, above the {MAX_HELLO} allowed",
    ),
    "4 GiB for a greeting": (
        [announced(1 << 32, HELLO)],
        f"it announced a frame of {1 << 32} bytes, above the {MAX_HELLO} allowed",
    ),
}
REFUSED: dict[str, tuple[list[bytes] | Callable[[], list[bytes]], str]] = {
    "another run": ([frame(1, b"x", run=b"run/1")], "it belongs to another run; give every process the same run id"),
    "too long a frame": (
        [frame(1, b"x"), announced(LARGEST + 1)],
        f"it announced a frame of {LARGEST + 1} bytes, above the {LARGEST} allowed",
    ),
    "a negative length": (
        [frame(1, b"x"), announced((1 << 64) - 1)],
        f"it announced a frame of {(1 << 64) - 1} bytes, above the {LARGEST} allowed",
    ),
    "a heartbeat with a load": (
        [announced(501, ALIVE)],
        "it announced a frame of 501 bytes, above the 500 allowed",
    ),
    "a label twice": ([frame(7, b"x"), frame(7, b"y")], "it sent label 7 twice"),
    "too many frames": (
        lambda: [frame(1000 + k, b"") for k in range(ROOM // FRAME_COST + 2)],
        f"it sent more than the {ROOM + FRAME_COST} bytes allowed that nobody had asked for",
    ),
    "too much": (
        lambda: [frame(k, bytes(LARGEST)) for k in range(2)],
        f"it sent more than the {ROOM + FRAME_COST} bytes allowed that nobody had asked for",
    ),
}
WRONG = STRANGERS | REFUSED


def wrong(why: str) -> tuple[list[bytes], str, bool]:
    """(frames, what is said of them, whether a greeting is the first); of many bytes, when a test asks for them."""
    sent, reason = WRONG[why]
    frames = sent() if callable(sent) else sent
    return ([greeting(), *frames], reason, True) if why in REFUSED else (frames, reason, False)


@pytest.mark.parametrize("why", WRONG)
def test_a_peer_that_does_wrong_is_dropped_and_everybody_is_told_why(why: str) -> None:
    frames, reason, admitted = wrong(why)

    async def body(line: Line) -> None:
        pending = line.peer.receive(99)
        if admitted:
            line.peer.admit(LARGEST, ROOM)
        line.writer.write(b"".join(frames))
        told = f"a caller left the run without a word ({reason})"
        assert (await line.ended).startswith(told)
        for future in (pending, line.peer.receive(100)):  # the one that waits, and whoever comes later
            with refuses("peer", told):
                await future
        with refuses("peer", told):
            line.peer.send(1, b"")
        with contextlib.suppress(ConnectionError):
            assert await line.reader.read() == b""  # nothing was answered, and the connection is closed

    on_a_line(body)


def test_nothing_is_read_after_a_greeting_until_its_sender_was_admitted() -> None:
    async def body(line: Line) -> None:
        peer, second = line.peer, line.peer.receive(2)
        line.writer.write(greeting() + frame(2, b"two") + frame(3, bytes(100_000)))
        assert await peer.receive(HELLO) == GREETING
        await asyncio.sleep(0)
        assert not second.done() and len(peer._scratch) <= HEADER.size + MAX_HELLO
        assert peer.bytes_received <= HEADER.size + MAX_HELLO
        peer.admit(LARGEST, ROOM)
        assert await second == b"two" and await peer.receive(3) == bytes(100_000)

    on_a_line(body)


def test_a_payload_gets_room_as_it_arrives() -> None:
    """A header that announces 1 GiB costs a mebibyte, whoever sends it; what arrives then gets eight times as much."""

    async def body() -> None:
        for arrived, room in ((100_000, 1 << 20), ((1 << 20) + 100_000, 8 << 20)):
            pieces = [greeting(), announced(1 << 30), bytes(arrived)]
            _, peer = await fed(pieces, [], largest=1 << 32, room=1 << 32)
            assert peer._size == 1 << 30 and peer._filled == arrived and len(peer._payload) == room

    asyncio.run(body())


def test_a_payload_that_is_waited_for_gets_room_at_once() -> None:
    """Up to 64 MiB, which nothing is written to before it arrives."""

    async def body() -> None:
        for size, room in ((9 << 20, 9 << 20), (1 << 30, 1 << 26)):
            peer = Peer("a caller", RUN)
            peer.connection_made(Dropped())
            peer.admit(1 << 32, 1 << 32)
            waits = peer.receive(1)
            feed(peer, greeting() + announced(size))
            assert len(peer._payload) == room and not waits.done()

    asyncio.run(body())


def test_a_long_payload_is_sent_as_it_lies_in_memory_and_in_its_turn() -> None:
    """The other side reads nothing at first: parts wait as views of the payload, and a heartbeat and a short frame
    behind them. What `flushed` waits for is that the transport has all of it, and what `close` sends is all of it."""
    payload = np.random.default_rng(5).integers(0, 256, 40 << 20, dtype=np.uint8)

    async def body(line: Line) -> None:
        peer = line.peer
        await peer.flushed()
        peer.send(1, memoryview(payload))
        peer.beat()
        peer.send(2, b"short")
        waits = asyncio.ensure_future(peer.flushed())
        await asyncio.sleep(0)
        assert peer._transport is not None and peer._transport.get_write_buffer_size() <= 1 << 18
        *views, beat, short = peer._queue
        assert views and all(isinstance(view, memoryview) and view.obj is payload for view in views)
        assert bytes(short) == frame(2, b"short") and not waits.done()
        due = frame(1, payload.tobytes()) + bytes(beat) + frame(2, b"short")
        assert await line.reader.readexactly(len(due)) == due
        await waits
        peer.send(3, memoryview(payload))
        assert peer._queue
        peer.close()
        assert await line.reader.read() == frame(3, payload.tobytes())

    on_a_line(body)


def test_what_waits_to_be_sent_goes_with_the_connection() -> None:
    async def body(line: Line) -> None:
        line.peer.send(1, bytes(40 << 20))
        waits = asyncio.ensure_future(line.peer.flushed())
        await asyncio.sleep(0)
        assert line.peer._queue and not waits.done()
        line.peer.abort("enough")
        await waits
        assert not line.peer._queue and "enough" in await line.ended

    on_a_line(body)


def test_what_is_allowed_is_delivered() -> None:
    """The longest greeting, then a longer frame; labels in any order, awaited before they come and after."""
    hello, long = bytes(range(256)) * (MAX_HELLO // 256), b"ab" * (LARGEST // 2)
    assert len(hello) == MAX_HELLO

    async def body(line: Line) -> None:
        peer, second = line.peer, line.peer.receive(2)
        for label, payload in ((HELLO, hello), (3, b"three"), (2, long), (4, b"")):
            line.writer.write(frame(label, payload))
        assert await peer.receive(HELLO) == hello
        peer.admit(LARGEST, ROOM)
        assert await second == long
        assert await peer.receive(4) == b""
        assert await peer.receive(3) == b"three"
        line.writer.write(frame(3, b"again"))  # a label that was taken is free: who awaits it has asked for it anew
        assert await peer.receive(3) == b"again"
        assert peer.bytes_received == 5 * HEADER.size + len(hello) + len(long) + 10 and peer.lost is None
        line.writer.close()
        assert "(connection closed)" in await line.ended
        with refuses("peer", "connection closed"):
            await peer.receive(5)

    on_a_line(body)


def test_heartbeats_are_no_traffic() -> None:
    """Neither sent nor received are they counted, observed or kept."""
    seen: list[int] = []

    async def body(line: Line) -> None:
        peer = line.peer
        peer.observe = lambda _, outgoing, label, payload: seen.append(label)
        line.writer.write(greeting() + frame(ALIVE, b"owner\x1b 1") + frame(5, b"x"))
        assert await peer.receive(HELLO) == GREETING
        peer.admit(LARGEST, ROOM)
        assert await peer.receive(5) == b"x" and peer.waits_for == "owner  1"
        peer.beat()
        assert await line.reader.readexactly(HEADER.size) == frame(ALIVE, b"")
        peer.beat("party 2 (h:1, nobody listens there)")
        assert await line.reader.readexactly(HEADER.size + 35) == frame(ALIVE, b"party 2 (h:1, nobody listens there)")
        assert (peer.bytes_sent, peer.frames_sent) == (0, 0)
        assert peer.bytes_received == 2 * HEADER.size + len(GREETING) + 1 and seen == [HELLO, 5]

    on_a_line(body)


def test_the_last_frame_says_why_and_what_came_before_it_can_still_be_had() -> None:
    async def body(line: Line) -> None:
        peer, pending = line.peer, line.peer.receive(9)
        line.writer.write(greeting() + frame(5, b"x") + frame(REASON, b"party 2 never came\n\x1b[2J"))
        assert await peer.receive(HELLO) == GREETING
        peer.admit(LARGEST, ROOM)
        told = "party 2 never came  [2J (told by a caller)"  # nothing of it moves a terminal's cursor
        assert await line.ended == told
        assert await peer.receive(5) == b"x"
        for future in (pending, peer.receive(6)):
            with refuses("peer", told, kind=Told) as raised:
                await future
            assert public_reason("me", raised.value) == "party 2 never came  [2J"  # the cause, not its echo

    on_a_line(body)


def test_a_farewell_is_sent_and_nothing_more_is_read() -> None:
    async def body(line: Line) -> None:
        peer = line.peer
        pending = peer.receive(3)
        line.writer.write(greeting())
        await peer.receive(HELLO)
        peer.admit(LARGEST, ROOM)
        leaving = asyncio.ensure_future(part([peer], "a disk is full"))
        await asyncio.sleep(0)
        assert await line.reader.readexactly(HEADER.size + 14) == frame(REASON, b"a disk is full")
        line.writer.write(frame(3, b"late"))
        line.writer.close()
        await leaving
        with refuses("peer", "a disk is full"):
            await pending
        assert not line.ended.done()

    on_a_line(body)


def test_frames_have_the_documented_form_and_an_expected_end_is_not_told() -> None:
    async def body(line: Line) -> None:
        line.peer.send(-5, b"hello")
        line.peer.send(1 << 40, bytearray())
        raw = await line.reader.readexactly(2 * 24 + 5)
        assert struct.unpack("<HHIqQ", raw[:24]) == (0xD9C5, VERSION, run_tag(RUN), -5, 5)
        assert raw == frame(-5, b"hello") + frame(1 << 40, b"")
        assert (line.peer.bytes_sent, line.peer.frames_sent) == (len(raw), 2)
        line.peer.close()
        assert await line.reader.read() == b""
        assert not line.ended.done()

    on_a_line(body)


def test_a_connection_that_was_never_made_sends_nothing() -> None:
    with refuses("peer", "never opened"):
        Peer("a party", RUN).send(1, b"x")


class Dropped(asyncio.Transport):
    """A transport that only notes that it was aborted."""

    aborted = False

    def abort(self) -> None:
        self.aborted = True

    def resume_reading(self) -> None:
        pass

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        pass


def feed(peer: Peer, piece: bytes) -> None:
    """As if these bytes arrived."""
    view = memoryview(piece)
    while view and peer.lost is None:
        buffer = peer.get_buffer(-1)
        size = min(len(view), len(buffer))
        buffer[:size] = view[:size]
        peer.buffer_updated(size)
        view = view[size:]


async def fed(
    pieces: list[bytes], labels: list[int], largest: int = LARGEST, room: int = ROOM
) -> tuple[list[bytes], Peer]:
    """What a peer delivers of bytes that arrive in these pieces."""
    peer = Peer("a caller", RUN)
    peer.connection_made(Dropped())
    peer.admit(largest, room)
    for piece in pieces:
        feed(peer, piece)
    return [bytes(await peer.receive(label)) for label in labels if peer.lost is None], peer


def test_frames_may_be_cut_anywhere() -> None:
    """Short frames cut at every byte; long ones, which are received in place, at random."""
    short = [b"", b"a", b"bcd", b"e" * 40]
    stream = greeting() + b"".join(frame(k, payload) for k, payload in enumerate(short))
    for cut in range(len(stream) + 1):
        assert asyncio.run(fed([stream[:cut], stream[cut:]], [0, 1, 2, 3]))[0] == short
    assert asyncio.run(fed([bytes([b]) for b in stream], [0, 1, 2, 3]))[0] == short
    random = np.random.default_rng(3)
    payloads = [random.bytes(int(size)) for size in (70_000, 10, 400_000, 65_536, 0, 262_144)]
    stream = greeting() + b"".join(frame(k, payload) for k, payload in enumerate(payloads))
    for _ in range(20):
        cuts = [0, *np.sort(random.integers(0, len(stream), random.integers(0, 30))).tolist(), len(stream)]
        pieces = [stream[a:b] for a, b in itertools.pairwise(cuts)]
        assert asyncio.run(fed(pieces, list(range(6))))[0] == payloads


def test_a_payload_that_is_cut_near_the_end_of_its_room_is_as_long_as_announced() -> None:
    """What is left is then short, and comes by the scratch buffer, where the room made at first is not full yet."""
    payload = np.random.default_rng(4).bytes((1 << 20) + 4_000)
    stream = frame(1, payload)
    for cut in (1 << 20, (1 << 20) - 1, (1 << 20) - 872, (1 << 20) - 12_000, (1 << 20) - 12_500):
        at = HEADER.size + cut
        assert asyncio.run(fed([greeting(), stream[:at], stream[at:]], [1]))[0] == [payload]


@pytest.mark.parametrize("why", WRONG)
def test_refusals_do_not_depend_on_the_pieces_and_nothing_after_them_is_read(why: str) -> None:
    frames, reason, admitted = wrong(why)
    stream = b"".join([*frames, frame(50, b"too late")])
    assert admitted == stream.startswith(greeting())
    ways = [[stream], [stream[:11], stream[11:]]]
    if len(stream) < 10_000:
        ways.append([bytes([b]) for b in stream])
    for pieces in ways:
        _, peer = asyncio.run(fed(pieces, [], LARGEST if admitted else MAX_HELLO))
        assert peer.lost == reason and peer._transport.aborted  # type: ignore[union-attr]
        assert 50 not in peer._arrived


def test_what_goes_over_the_wire_is_observed() -> None:
    seen: list[tuple[Any, ...]] = []

    async def body(line: Line) -> None:
        line.peer.observe = lambda peer, outgoing, label, payload: seen.append((outgoing, label, bytes(payload)))
        line.peer.send(3, b"out")
        line.peer.admit()
        line.writer.write(greeting() + frame(4, b"in"))
        await line.peer.receive(4)

    on_a_line(body)
    assert seen == [(True, 3, b"out"), (False, HELLO, GREETING), (False, 4, b"in")]


def test_another_layout_is_another_version() -> None:
    """A process of an older version hears so in one line, rather than read nonsense: whoever changes one of these
    raises VERSION, and writes the new pair here."""
    structs = [
        HEADER,
        dial.GREETING,
        frames.HELLO,
        frames.ANSWER,
        frames.BEGINNING,
        frames.READY,
        frames.COUNT,
        frames.COST,
    ]
    assert (VERSION, " ".join(each.format for each in structs)) == (
        7,
        "<HHIqQ <HH32s <II32s <I32sB64s <QQ <Q16s <Q <QQQQQddQ",
    )


def test_the_tags_of_a_runs_stages_are_alike_in_half() -> None:
    """By which a process that is at another stage is told apart from one of another run."""
    tags = {name: run_tag(name) for name in (b"run/3", b"run+survey/3", b"run+evaluation/3", b"run/4", b"other/3")}
    assert len(set(tags.values())) == 5
    halves = [tag >> 16 for tag in tags.values()]
    assert halves[0] == halves[1] == halves[2] and len(set(halves[2:])) == 3
