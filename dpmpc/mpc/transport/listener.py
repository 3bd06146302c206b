"""Where a process listens: callers are admitted side by side, each with a deadline, and no stranger costs the run
anything.

A caller that has not said a byte holds a socket and one of `MOST_SILENT` places, for `HANDSHAKE` seconds; no TLS begins
for it, nor for one whose first byte is none of TLS's. From its first byte on it has `HANDSHAKE` seconds for TLS and
`GREETING` for its first frame. Until it was checked it holds a few kilobytes, its certificate's buffers besides, and
one of `MOST_PENDING` places. One more caller takes a place of the address that has most of them, there the one that has
waited longest: so a flood from one address takes places from itself alone, and one from many from whoever has waited
longest. A machine may have all 2^64 addresses of its IPv6 network, so these count as one. A caller that is refused is
dropped, and told why where it showed who it is; the run goes on without it, and so does whoever it pretended to be.
The log names `MOST_NAMED` strangers, however many come and whatever they do.
"""

import asyncio
import contextlib
import gc
import ipaddress
import socket
import ssl
from collections import Counter, deque
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, TypeVar

from dpmpc.errors import PeerError
from dpmpc.mpc.transport.abort_reason import later, reason_of
from dpmpc.mpc.transport.addresses import BACKLOG, Endpoint
from dpmpc.mpc.transport.channels import HELLO
from dpmpc.mpc.transport.link import FAREWELL_SECONDS
from dpmpc.mpc.transport.reaching import listening
from dpmpc.mpc.transport.tls import Tls
from dpmpc.mpc.transport.wire import Peer

HANDSHAKE = 5.0  # seconds
GREETING = 5.0  # seconds
MOST_PENDING = 16
MOST_SILENT = 256
_TLS = b"\x16"  # the first byte of a TLS greeting
_NO_TLS = b"\x15\x03\x03\x00\x02\x02\x0a"  # what TLS says of a message that is none of its own: a fatal alert
_DRAINED = 1 << 16  # bytes of what speaks another protocol
_SHUTDOWN = 2.0  # seconds for the end of a TLS connection
_EXHAUSTED = 0.1  # seconds of rest when the kernel has no descriptors left
_COLLECT = 8  # callers
_KEPT = 8  # refusals that are remembered for messages
MOST_NAMED = 32  # strangers in the log
_STRANGER = "a caller from "

_T = TypeVar("_T")
Admit = Callable[[Peer, bytearray], None]  # checks a greeting, answers it; raises PeerError for a refusal


class Refused(PeerError):
    """A caller that was not admitted, and is told why."""


class Later(PeerError):
    """A caller that is to call again: what it comes for has not begun here."""


class Listener:
    """Listens for other processes, from `open` to `close`."""

    def __init__(self, make_peer: Callable[[], Peer], admit: Admit, log: Callable[[str], None]) -> None:
        """`admit` gets a caller and its greeting, and calls `Peer.admit`. `log` hears of refusals, once each."""
        self._make, self._admit, self._log = make_peer, admit, log
        self._tls: ssl.SSLContext | None = None
        self._sockets: list[socket.socket] = []
        self._loop: asyncio.AbstractEventLoop | None = None
        self._again: dict[socket.socket, asyncio.TimerHandle] = {}  # of sockets that rest
        self._silent: dict[socket.socket, tuple[str, asyncio.TimerHandle]] = {}  # in the order of their coming
        self._pending: dict[asyncio.Task[None], str] = {}  # likewise; with their addresses
        self._unmet: set[socket.socket] = set()  # whose turn has not come yet
        self._refused: deque[str] = deque(maxlen=_KEPT)
        self.met = 0  # callers so far
        self._over = 0  # those whose turn is over
        self.crowded_out = 0  # callers whose places others took
        self._named = 0  # strangers in the log

    async def open(
        self,
        endpoint: Endpoint,
        bound: socket.socket | None,
        tls: Tls | None,
        what: str,
        patience: float = 0.0,
        lacking: Callable[[str], None] = lambda text: None,
    ) -> None:
        """Listen at `endpoint`, on the socket that was bound before if there is one. Else as `listening` has it, errors
        too."""
        self._tls = tls.server if tls else None
        if bound is not None:
            bound.listen(BACKLOG)
        self._sockets = [bound] if bound is not None else await listening(endpoint, what, patience, lacking)
        for each in self._sockets:
            each.setblocking(False)
        self._loop = asyncio.get_running_loop()
        for each in self._sockets:
            self._listen(self._loop, each)

    def close(self) -> None:
        """Listen no more; callers that are not admitted yet are dropped."""
        for task in self._pending:
            task.cancel()
        for timer in self._again.values():
            timer.cancel()
        for each in self._sockets:
            if self._loop is not None and each not in self._again:
                self._loop.remove_reader(each)
            each.close()
        for connection in list(self._silent):
            self._heard(connection)
            connection.close()
        for connection in self._unmet:
            connection.close()
        self._sockets = []
        self._again.clear()
        self._unmet.clear()

    def refusals(self) -> str:
        """The last callers that were refused, for a message; empty if none was."""
        crowd = f"; so many called at once that {self.crowded_out:,} were dropped" if self.crowded_out else ""
        return crowd + (f"; refused meanwhile: {', '.join(self._refused)}" if self._refused else "")

    def _listen(self, loop: asyncio.AbstractEventLoop, listening: socket.socket) -> None:
        """Callers are taken where they are announced: one that a task was handed while it is cancelled would be lost,
        open."""
        self._again.pop(listening, None)
        loop.add_reader(listening, self._accept, loop, listening)

    def _accept(self, loop: asyncio.AbstractEventLoop, listening: socket.socket) -> None:
        try:
            connection, address = listening.accept()
        except (BlockingIOError, InterruptedError, ConnectionAbortedError):  # the caller has gone again
            return
        except OSError:  # no descriptors left
            loop.remove_reader(listening)
            self._again[listening] = loop.call_later(_EXHAUSTED, self._listen, loop, listening)
            return
        connection.setblocking(False)
        self.met += 1
        if len(self._silent) >= MOST_SILENT:
            gone = _longest_of_most({each: where for each, (where, _) in self._silent.items()})
            self._heard(gone)
            gone.close()
            self.crowded_out += 1
        late = loop.call_later(HANDSHAKE if self._tls else GREETING, self._says_nothing, connection)
        self._silent[connection] = origin(address[0]), late
        loop.add_reader(connection, self._speaks, connection)

    def _heard(self, connection: socket.socket) -> str:
        """Where a caller that was silent is from; it is none of them any more."""
        where, late = self._silent.pop(connection)
        late.cancel()
        assert self._loop is not None
        self._loop.remove_reader(connection)
        return where

    def _says_nothing(self, connection: socket.socket) -> None:
        where = self._heard(connection)
        connection.close()
        said = f"no TLS handshake within {HANDSHAKE:g} s" if self._tls else f"no greeting within {GREETING:g} s"
        self._refuse(_caller(where), said)

    def _speaks(self, connection: socket.socket) -> None:
        """A silent caller has said something, or is gone."""
        try:
            first = connection.recv(1, socket.MSG_PEEK)
        except (BlockingIOError, InterruptedError):
            return
        except OSError:
            first = b""
        where = self._heard(connection)
        if not first or (self._tls is not None and first != _TLS):
            if first:
                with contextlib.suppress(OSError):
                    connection.recv(_DRAINED)  # an end with bytes unread is a reset, which takes the answer away
                    connection.send(_NO_TLS)
            connection.close()
            self._refuse(_caller(where), "no TLS handshake (it speaks another protocol)" if first else "it hung up")
            return
        if len(self._pending) >= MOST_PENDING:
            gone = _longest_of_most(self._pending)
            del self._pending[gone]
            gone.cancel()
            self.crowded_out += 1
        self._unmet.add(connection)
        task = asyncio.ensure_future(self._meet(connection, _caller(where)))
        self._pending[task] = where
        task.add_done_callback(partial(self._met, connection))

    def _met(self, connection: socket.socket, task: "asyncio.Task[None]") -> None:
        self._pending.pop(task, None)
        self._over += 1
        if self._tls is not None and self._over % _COLLECT == 0:  # not by `met`, which stands still while many end
            gc.collect()  # dead TLS connections are cycles with half a megabyte of buffers each
        if connection in self._unmet:  # it was dropped before its turn came
            self._unmet.discard(connection)
            connection.close()

    async def _meet(self, connection: socket.socket, who: str) -> None:
        """One caller, from its first byte to its admission or its end."""
        loop = asyncio.get_running_loop()
        self._unmet.discard(connection)
        peer = self._make()
        peer.name = who
        limits: dict[str, Any] = {}
        if self._tls is not None:
            limits = {"ssl_handshake_timeout": HANDSHAKE, "ssl_shutdown_timeout": _SHUTDOWN}
        try:
            try:
                await loop.connect_accepted_socket(lambda: peer, connection, ssl=self._tls, **limits)
            except (OSError, ssl.SSLError) as error:  # ssl's is an OSError, and a time-out too
                self._refuse(who, f"no TLS handshake ({_short(error)})")
                return
            async with asyncio.timeout(GREETING):
                greeting = await peer.receive(HELLO)
            self._admit(peer, greeting)
        except TimeoutError:
            self._refuse(who, f"no greeting within {GREETING:g} s")
        except Refused as error:
            self._refuse(peer.name, error.message)
            peer.farewell(reason_of(error))  # whoever reads it spells its settings
            await peer.gone(FAREWELL_SECONDS)
        except Later as error:  # nobody is refused
            peer.farewell(later(error.message))
            await peer.gone(FAREWELL_SECONDS)
        except PeerError:
            self._refuse(who, peer.lost or "it hung up")
        finally:
            if not peer.admitted:
                peer.abort("it was not admitted")
                connection.close()

    def _refuse(self, who: str, why: str) -> None:
        text = f"{who}: {why}"
        if text in self._refused:  # a flood of the same is one line
            return
        self._refused.append(text)
        self._named += who.startswith(_STRANGER)
        if not who.startswith(_STRANGER) or self._named <= MOST_NAMED:
            self._log(f"refused {text}")
        if who.startswith(_STRANGER) and self._named == MOST_NAMED:
            self._log(f"refused {MOST_NAMED} strangers; those that come now are refused without a line")


def _caller(where: str) -> str:
    return f"{_STRANGER}{where}"


def origin(address: str) -> str:
    """Where a caller is from, as far as it cannot choose by itself: its IPv4 address, or the 64 bits of its IPv6
    network."""
    plain, _, zone = address.partition("%")
    found = ipaddress.ip_address(plain)
    if isinstance(found, ipaddress.IPv4Address):
        return plain
    if found.ipv4_mapped is not None:
        return str(found.ipv4_mapped)
    network = ipaddress.IPv6Network((found, 64), strict=False)
    return f"{network}%{zone}" if zone else str(network)


def _longest_of_most(places: Mapping[_T, str]) -> _T:
    """Of callers in the order of their coming, each with its address: the first of the address that has most."""
    counts = Counter(places.values())
    most = max(counts.values())
    return next(each for each, where in places.items() if counts[where] == most)


def _short(error: BaseException) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        return error.verify_message
    return getattr(error, "reason", None) or str(error) or type(error).__name__
