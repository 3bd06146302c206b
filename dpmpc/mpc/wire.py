"""Framing of every message between processes: a checked header, then raw bytes of a fixed width. No pickle, no text.

Touches asyncio transports only. A frame is `HEADER` and a payload; the header carries the protocol version, a tag of
the run id, a label (which exchange of which release this is) and the payload's length. A peer that speaks another
version or belongs to another run is refused at its first frame.
"""

import asyncio
import hashlib
import struct
from collections.abc import Callable
from typing import Any, cast

from dpmpc.errors import PeerError
from dpmpc.mpc.link import Observe, OnLost

VERSION = 1
HEADER = struct.Struct("<HHIqQ")  # magic, version, run tag, label, payload bytes
MAGIC = 0xD9C5
MAX_PAYLOAD = 1 << 32
MAX_HELLO = 1 << 20  # of the first frame, whose sender nobody has checked yet
_SCRATCH = 1 << 18


def run_tag(run_id: bytes) -> int:
    """32 bits of SHA-256 of the run id: tells runs apart, authenticates nothing (TLS or loopback does)."""
    return int.from_bytes(hashlib.sha256(run_id).digest()[:4], "little")


class Peer(asyncio.BufferedProtocol):
    """One connection with another process: labelled frames out, labelled frames in, whatever the order.

    Has the interface of MPyC's MessageExchanger (`send`, `receive`), so MPyC's own protocols run over it. When the
    connection ends, every pending and every later `receive` raises PeerError.
    """

    def __init__(
        self,
        name: str,
        run_id: bytes,
        on_lost: OnLost | None = None,
        observe: Observe | None = None,
        on_made: Callable[["Peer"], None] | None = None,
    ) -> None:
        """`on_made` is told when the connection stands: over TLS when the other side has shown a certificate of the
        run's authority, not before."""
        self.name = name
        self.observe = observe
        self.bytes_sent = self.bytes_received = self.frames_sent = 0
        self.expects_end = False
        self.lost: str | None = None
        self._tag = run_tag(run_id)
        self._on_lost, self._on_made = on_lost, on_made
        self._transport: asyncio.Transport | None = None
        self._scratch = bytearray(_SCRATCH)
        self._held = 0  # bytes of an incomplete header at the start of the scratch buffer
        self._label = 0
        self._payload = bytearray()
        self._filled = 0
        self._open_frame = False
        self._direct = False
        self._greeted = False
        self._arrived: dict[int, bytearray] = {}
        self._awaited: dict[int, asyncio.Future[bytearray]] = {}

    # -- sending -----------------------------------------------------------------------------------------------------
    def send(self, label: int, payload: bytes | bytearray | memoryview) -> None:
        """Queue one frame."""
        if self._transport is None or self.lost is not None:
            raise PeerError(f"the connection with {self.name} is closed ({self.lost or 'never opened'}); see its log")
        size = len(payload)
        self.bytes_sent += HEADER.size + size
        self.frames_sent += 1
        if self.observe is not None:
            self.observe(self, True, label, payload)
        self._transport.writelines((HEADER.pack(MAGIC, VERSION, self._tag, label, size), payload))

    @property
    def socket(self) -> Any:
        """The kernel's socket below the connection; None when there is none."""
        return self._transport.get_extra_info("socket") if self._transport else None

    @property
    def certificate(self) -> object:
        """The verified certificate of a TLS peer, as a dict; None without TLS."""
        return self._transport.get_extra_info("peercert") if self._transport else None

    # -- receiving ---------------------------------------------------------------------------------------------------
    def receive(self, label: int) -> "asyncio.Future[bytearray]":
        """A future for the payload of the frame with this label."""
        future: asyncio.Future[bytearray] = asyncio.get_running_loop().create_future()
        if (payload := self._arrived.pop(label, None)) is not None:
            future.set_result(payload)
        elif self.lost is not None:
            future.set_exception(PeerError(f"{self.name} left the run ({self.lost}); see its log"))
            future.exception()  # as in connection_lost
        else:
            self._awaited[label] = future
        return future

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._transport.set_write_buffer_limits(high=1 << 26)
        if self._on_made is not None:
            self._on_made(self)

    def get_buffer(self, sizehint: int) -> memoryview:
        # A long payload is received in place; everything else goes through the scratch buffer.
        self._direct = self._open_frame and len(self._payload) - self._filled >= _SCRATCH // 4
        if self._direct:
            return memoryview(self._payload)[self._filled :]
        return memoryview(self._scratch)[self._held :]

    def buffer_updated(self, nbytes: int) -> None:
        self.bytes_received += nbytes
        if self._direct:
            self._filled += nbytes
            if self._filled == len(self._payload):
                self._deliver()
            return
        end = self._held + nbytes
        self._held = 0
        view = memoryview(self._scratch)
        at = 0
        while True:
            if self._open_frame:
                take = min(end - at, len(self._payload) - self._filled)
                self._payload[self._filled : self._filled + take] = view[at : at + take]
                self._filled += take
                at += take
                if self._filled < len(self._payload):
                    return
                self._deliver()
                if self.lost is not None:  # refused: nothing more of it is read
                    return
            if end - at < HEADER.size:
                self._scratch[: end - at] = bytes(view[at:end])
                self._held = end - at
                return
            if not self._begin(view[at : at + HEADER.size]):
                return
            at += HEADER.size

    def _begin(self, raw: memoryview) -> bool:
        magic, version, tag, label, size = HEADER.unpack(raw)
        if magic != MAGIC or version != VERSION:
            self.abort(f"it speaks another protocol (magic {magic:#x}, version {version}; here {MAGIC:#x}, {VERSION})")
        elif tag != self._tag:
            self.abort("it belongs to another run; give every process the same run id")
        elif size > (most := MAX_PAYLOAD if self._greeted else MAX_HELLO):
            self.abort(f"it announced a frame of {size} bytes, above the {most} allowed")
        else:
            self._label, self._payload, self._filled, self._open_frame = label, bytearray(size), 0, True
            self._greeted = True
            return True
        return False

    def _deliver(self) -> None:
        self._open_frame = False
        payload, self._payload = self._payload, bytearray()
        if self.observe is not None:
            self.observe(self, False, self._label, payload)
        future = self._awaited.pop(self._label, None)
        if future is None:
            if self._label in self._arrived:
                self.abort(f"it sent label {self._label} twice")
                return
            self._arrived[self._label] = payload
        elif not future.done():
            future.set_result(payload)

    # -- the end -----------------------------------------------------------------------------------------------------
    def connection_lost(self, exc: BaseException | None) -> None:
        if self.lost is None:
            self.lost = type(exc).__name__ if exc else "connection closed"
        awaited, self._awaited = self._awaited, {}
        for future in awaited.values():
            if not future.done():
                future.set_exception(PeerError(f"{self.name} left the run ({self.lost}); see its log"))
                future.exception()  # retrieved here: whoever awaits it still gets it, nobody is warned twice
        if self._on_lost is not None and not self.expects_end:
            self._on_lost(self, self.lost)

    def abort(self, why: str) -> None:
        """Refuse the peer and drop the connection."""
        self.lost = why
        if self._transport is not None:
            self._transport.abort()

    def close(self) -> None:
        """Send what is queued, then close."""
        self.expects_end = True
        if self._transport is not None:
            self._transport.close()
