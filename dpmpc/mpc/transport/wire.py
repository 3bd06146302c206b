"""Framing of every message between processes: a checked header, then raw bytes of a fixed width. No pickle, no text.

Touches asyncio transports only. A frame is `HEADER` and a payload; the header carries the protocol version, a tag of
the run id, a label (which exchange of which release this is) and the payload's length. A peer that speaks another
version is refused at its first frame, one of another run at its second: the first is its greeting, which tells what
differs.

Nothing of an unchecked peer is believed. Until `admit`, one frame of at most MAX_HELLO bytes is read, and nothing after
it. From then on a frame has at most as many bytes as are due, buffers grow as bytes arrive, and what arrives before it
is asked for is bounded.

Two kinds of frames are the connection's own affair, and are counted and observed nowhere: heartbeats (`beat`), and the
last frame of a process that fails, which says why (`farewell`).
"""

import asyncio
import struct
from collections import deque
from typing import Any, cast

from dpmpc.errors import PeerError
from dpmpc.mpc.native.blank import blank
from dpmpc.mpc.numbers import domains
from dpmpc.mpc.transport import abort_reason as reasons
from dpmpc.mpc.transport.abort_reason import Told, without_a_word
from dpmpc.mpc.transport.channels import ALIVE, HELLO, NOTICES, REASON
from dpmpc.mpc.transport.link import Observe, OnLost

VERSION = 7  # of the frames, and of what the structures in them hold
HEADER = struct.Struct("<HHIqQ")  # magic, version, run tag, label, payload bytes
MAGIC = 0xD9C5
MAX_PAYLOAD = 1 << 32
MAX_HELLO = 1 << 12  # of the first frame, whose sender nobody has checked yet
FRAME_COST = 1 << 8  # bytes that a frame costs besides its payload, while nobody has asked for it
_STAGE = 16  # bits of a tag that stages of one run do not share
_SCRATCH = 1 << 16
_PART = 1 << 18  # bytes of a longer payload that are handed to the transport at a time: what it cannot send it copies
_FIRST = 1 << 20  # bytes that are set aside for a payload before any has arrived
_AWAITED = 1 << 26  # the same, where somebody waits for it
_MORE = 8  # times the room, whenever it is full: each time what has arrived is copied


def run_tag(run_id: bytes) -> int:
    """32 bits: of SHA-256 of the run id 16, and above them 16 of the run's that this one is a stage of (X/3 of
    X+survey/3). They tell runs apart, and authenticate nothing (TLS or loopback does)."""
    name, slash, attempt = run_id.rpartition(b"/")
    whole = name.partition(b"+")[0] + slash + attempt
    halves = (domains.TAG_OF_RUN.digest(value=each)[:2] for each in (run_id, whole))
    return int.from_bytes(b"".join(halves), "little")


class Peer(asyncio.BufferedProtocol):
    """One connection with another process: labelled frames out, labelled frames in, whatever the order.

    Has the interface of MPyC's MessageExchanger (`send`, `receive`), so MPyC's own protocols run over it. When the
    connection ends, every pending and every later `receive` raises PeerError.
    """

    def __init__(self, name: str, run_id: bytes, on_lost: OnLost | None = None, observe: Observe | None = None) -> None:
        self.name = name
        self.observe = observe
        self.bytes_sent = self.bytes_received = self.frames_sent = 0
        self.expects_end = False
        self.lost: str | None = None
        self.told: reasons.Reason | None = None  # the cause that the other side gave for the end
        self.broken: BaseException | None = None  # what the transport failed with
        self.refused = False  # whether this side dropped the connection for what came over it
        self.admitted = False
        self.other_run = False  # whether its greeting had the tag of another run
        self.other_stage = False  # whether that was another stage of this run
        self.heard = self.spoke = False  # since the last heartbeat; for `heartbeat`
        self.silence = self.pending = 0.0  # seconds of each; likewise
        self.waits_for = ""  # whom the other side waits for, as its last heartbeat said
        self._tag = run_tag(run_id)
        self._on_lost = on_lost
        self._transport: asyncio.Transport | None = None
        self._scratch = bytearray(HEADER.size + MAX_HELLO)
        self._held = 0  # bytes at the start of the scratch buffer that were not read yet
        self._label = 0
        self._size = 0
        self._payload = bytearray()
        self._filled = 0
        self._open_frame = False
        self._direct = False
        self._greeted = self._left = False
        self._largest, self._room = MAX_HELLO, MAX_HELLO + FRAME_COST
        self._kept = 0  # what the frames cost that nobody has asked for
        self._arrived: dict[int, bytearray] = {}
        self._awaited: dict[int, asyncio.Future[bytearray]] = {}
        self._gone: asyncio.Future[None] | None = None
        self._queue: deque[bytes | memoryview] = deque()  # what the transport has not been given
        self._paused = False  # whether it has enough
        self._flushed: asyncio.Future[None] | None = None

    def belongs_to(self, run_id: bytes) -> None:
        """The frames of this connection are those of another stage of the run, for which the other side has come."""
        self._tag = run_tag(run_id)

    def admit(self, largest: int = MAX_PAYLOAD, room: int = MAX_PAYLOAD) -> None:
        """Read on: the other side is who it should be. A frame may have `largest` bytes from now on, and frames that
        nobody has asked for `room` in all, each with FRAME_COST."""
        self._largest, self._room = largest, room + FRAME_COST
        if self.admitted:
            return
        self.admitted = True
        scratch = bytearray(_SCRATCH)
        scratch[: self._held] = self._scratch[: self._held]
        self._scratch = scratch
        if self._transport is not None and self.lost is None:
            self._read(self._held)
            self._transport.resume_reading()

    # -- sending -----------------------------------------------------------------------------------------------------
    def send(self, label: int, payload: bytes | bytearray | memoryview) -> None:
        """Queue one frame. A long payload is read while it is sent: nobody writes to it any more."""
        if self._transport is None or self.lost is not None:
            raise self._end("the connection was never opened")
        size = len(payload)
        self.bytes_sent += HEADER.size + size
        self.frames_sent += 1
        self.spoke = True
        if self.observe is not None:
            self.observe(self, True, label, payload)
        header = HEADER.pack(MAGIC, VERSION, self._tag, label, size)
        if size <= _PART:
            self._put(header + payload if size else header)
            return
        view = memoryview(payload).cast("B")
        self._put(header, *(view[at : at + _PART] for at in range(0, size, _PART)))

    def _put(self, *parts: bytes | memoryview) -> None:
        """Queue bytes."""
        self._queue.extend(parts)
        self._hand_on()

    def _hand_on(self) -> None:
        """Gives the transport what it can send, and a part more."""
        while self._queue and not self._paused and self._transport is not None:
            self._transport.write(self._queue.popleft())
        if not self._queue and not self._paused and self._flushed is not None:
            flushed, self._flushed = self._flushed, None
            flushed.set_result(None)

    def pause_writing(self) -> None:
        self._paused = True

    def resume_writing(self) -> None:
        self._paused = False
        self._hand_on()

    async def flushed(self) -> None:
        """Returns when the kernel has all that was sent, or the connection has ended."""
        if self._transport is None or not (self._queue or self._paused):
            return
        if self._flushed is None:
            self._flushed = asyncio.get_running_loop().create_future()
        await asyncio.shield(self._flushed)

    def beat(self, waits_for: str = "") -> None:
        """Let the other side know that this process lives, and for whom it waits."""
        if self._transport is not None and self.lost is None:
            said = reasons.pack(waits_for)
            self._put(HEADER.pack(MAGIC, VERSION, self._tag, ALIVE, len(said)) + said)

    def farewell(self, reason: str) -> None:
        """Tell the other side why this process leaves, as the last frame; what else it sends is not read any more."""
        if self._transport is None or self.lost is not None:
            return
        payload = reasons.pack(reason)
        self._put(HEADER.pack(MAGIC, VERSION, self._tag, REASON, len(payload)) + payload)
        self.lost, self.expects_end, self._left = reason, True, True
        self._fail()
        self._transport.resume_reading()  # for the end of the connection, and to throw away what comes before it

    async def gone(self, seconds: float) -> None:
        """Returns when the connection has ended, at the latest after `seconds`: then it is dropped."""
        if self._transport is None:
            return
        if self._gone is None:
            self._gone = asyncio.get_running_loop().create_future()
        await asyncio.wait([self._gone], timeout=seconds)
        if not self._gone.done():
            self._transport.abort()

    @property
    def socket(self) -> Any:
        """The kernel's socket below the connection; None when there is none."""
        return self._transport.get_extra_info("socket") if self._transport else None

    @property
    def certificate(self) -> object:
        """The verified certificate of a TLS peer, as a dict; None without TLS."""
        return self._transport.get_extra_info("peercert") if self._transport else None

    @property
    def certificate_bytes(self) -> bytes | None:
        """The same as DER."""
        shown = self._transport.get_extra_info("ssl_object") if self._transport else None
        found: bytes | None = None if shown is None else shown.getpeercert(binary_form=True)
        return found

    # -- receiving ---------------------------------------------------------------------------------------------------
    def receive(self, label: int) -> "asyncio.Future[bytearray]":
        """A future for the payload of the frame with this label."""
        future: asyncio.Future[bytearray] = asyncio.get_running_loop().create_future()
        if (payload := self._arrived.pop(label, None)) is not None:
            self._kept -= len(payload) + FRAME_COST
            future.set_result(payload)
        elif self.lost is not None:
            future.set_exception(self._end(self.lost))
            future.exception()  # as in _fail
        else:
            self._awaited[label] = future
        return future

    def has(self, label: int) -> bool:
        """Whether this frame has come, and nobody has asked for it."""
        return label in self._arrived

    def forget(self, label: int) -> None:
        """Nobody waits for this frame any more; it is not expected to come."""
        self._awaited.pop(label, None)

    @property
    def awaited(self) -> bool:
        """Whether somebody waits for a frame of this peer."""
        return any(label > NOTICES and not future.done() for label, future in self._awaited.items())

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._transport.set_write_buffer_limits(high=1)

    def get_buffer(self, sizehint: int) -> memoryview:
        # A long payload is received in place; everything else goes through the scratch buffer.
        if self.lost is not None:
            return memoryview(self._scratch)
        self._direct = self._open_frame and self._size - self._filled >= len(self._scratch) // 4 and not self._held
        if self._direct:
            if self._filled == len(self._payload):
                self._grow()
            return memoryview(self._payload)[self._filled :]
        return memoryview(self._scratch)[self._held :]

    def _grow(self) -> None:
        """More room for a payload that has filled what it had: at most `_MORE` times as much as has arrived."""
        longer = blank(min(self._size, _MORE * len(self._payload)))
        memoryview(longer)[: self._filled] = memoryview(self._payload)[: self._filled]  # without a copy between
        self._payload = longer

    def buffer_updated(self, nbytes: int) -> None:
        if self.lost is not None:  # refused, or told farewell: nothing more of it is read
            return
        self.bytes_received += nbytes
        self.heard = True
        if self._direct:
            self._filled += nbytes
            if self._filled == self._size:
                self._deliver()
            return
        self._read(self._held + nbytes)

    def _read(self, end: int) -> None:
        """Read the first `end` bytes of the scratch buffer."""
        self._held = at = 0
        view = memoryview(self._scratch)
        while self.lost is None:
            if self._open_frame:
                take = min(end - at, self._size - self._filled)
                while self._filled + take > len(self._payload):
                    self._grow()
                memoryview(self._payload)[self._filled : self._filled + take] = view[at : at + take]
                self._filled += take
                at += take
                if self._filled < self._size:
                    return
                self._deliver()
                continue
            if self._greeted and not self.admitted:
                assert self._transport is not None
                self._transport.pause_reading()
                break
            if end - at < HEADER.size:
                break
            if not self._begin(at, end):
                return
            at += HEADER.size
            if not self._open_frame:  # all of it is here
                at += self._size
                self._deliver()
        if self.lost is None and at < end:
            self._scratch[: end - at] = bytes(view[at:end])
            self._held = end - at

    def _begin(self, at: int, end: int) -> bool:
        """Read the header at byte `at` of the scratch buffer, and the payload if it ends by `end`; whether to go on."""
        magic, version, tag, label, size = HEADER.unpack_from(self._scratch, at)
        if magic != MAGIC or version != VERSION:
            self._refuse(
                f"it speaks another protocol (magic {magic:#x}, version {version}; here {MAGIC:#x}, {VERSION})"
            )
        elif not self._greeted and label not in (HELLO, REASON):
            self._refuse("it does not greet first")
        elif tag != self._tag and self._greeted:
            self._refuse("it belongs to another run; give every process the same run id")
        elif size > (most := reasons.MOST_REASON if label in (ALIVE, REASON) else self._largest):
            self._refuse(f"it announced a frame of {size} bytes, above the {most} allowed")
        else:
            self.other_run = self.other_run or tag != self._tag
            self.other_stage = self.other_run and tag >> _STAGE == self._tag >> _STAGE
            self._label, self._size, self._filled, self._greeted = label, size, 0, True
            at += HEADER.size
            self._open_frame = size > end - at
            most = _AWAITED if label in self._awaited else _FIRST
            self._payload = blank(min(size, most)) if self._open_frame else self._scratch[at : at + size]
            return True
        return False

    def _deliver(self) -> None:
        self._open_frame = False
        payload, self._payload = self._payload, bytearray()
        if self._label in (ALIVE, REASON):
            self.bytes_received -= HEADER.size + len(payload)
            if self._label == REASON:
                self.told = reasons.unpack(payload)
                self.abort(self.told)
            else:
                self.waits_for = reasons.unpack(payload) if payload else ""
            return
        self.pending = 0.0
        if self.observe is not None:
            self.observe(self, False, self._label, payload)
        future = self._awaited.pop(self._label, None)
        if future is None:
            self._kept += len(payload) + FRAME_COST
            if self._label in self._arrived:
                self._refuse(f"it sent label {self._label} twice")
            elif self._kept > self._room:
                self._refuse(f"it sent more than the {self._room} bytes allowed that nobody had asked for")
            else:
                self._arrived[self._label] = payload
        elif not future.done():
            future.set_result(payload)

    # -- the end -----------------------------------------------------------------------------------------------------
    def connection_lost(self, exc: BaseException | None) -> None:
        if self._gone is not None and not self._gone.done():
            self._gone.set_result(None)
        self.broken, self._transport = exc, None  # which holds on to the buffers of TLS
        self._drop()
        self._scratch, self._payload = bytearray(), bytearray()  # somebody may hold this object for a while
        if self.lost is None:
            self.lost = (str(exc) or type(exc).__name__) if exc else "connection closed"
        self._fail()

    def _end(self, how: str) -> PeerError:
        """What to raise where this connection has ended."""
        if self.told is not None:
            return Told(self.told, self.name)
        if self._left:
            return PeerError(f"the connection with {self.name} was ended here: {self.lost}")
        return PeerError(without_a_word(self.name, self.lost or how))

    def _fail(self) -> None:
        """Tell everybody who waits, once."""
        assert self.lost is not None
        awaited, self._awaited = self._awaited, {}
        for future in awaited.values():
            if not future.done():
                future.set_exception(self._end(self.lost))
                future.exception()  # retrieved here: whoever awaits it still gets it, nobody is warned twice
        on_lost, self._on_lost = self._on_lost, None
        if on_lost is not None and not self.expects_end:
            on_lost(self, self._end(self.lost))

    def discard(self) -> None:
        """Forget what has arrived: nobody will ask for it."""
        self._arrived, self._kept = {}, 0

    def _refuse(self, why: str) -> None:
        self.refused = True
        self.discard()
        self.abort(why)

    def abort(self, why: str) -> None:
        """Refuse the peer and drop the connection."""
        if self.lost is None:
            self.lost = why
        if self._transport is not None:
            self._transport.abort()
        self._drop()
        self._fail()

    def _drop(self) -> None:
        """Nothing more is sent."""
        self._queue.clear()
        self.resume_writing()

    def close(self) -> None:
        """Send what is queued, then close."""
        self.expects_end = True
        if self._transport is not None:
            while self._queue:
                self._transport.write(self._queue.popleft())
            self._transport.close()
