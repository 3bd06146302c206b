"""MPyC's connections between the parties: made where the run says, after a greeting, counted, and noticed when they
end.

MPyC's `Runtime.start` listens on every interface, calls for ever, and deals PRSS keys to whoever answers; so the
sockets are opened here. Over each of them both sides first say who they are, with which MPyC, prime and plan; only then
does MPyC's own `MessageExchanger` take the connection over, with its own handshake.
"""

import asyncio
import socket
import ssl
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, cast

from dpmpc.errors import PeerError, UsageError
from dpmpc.mpc import mpyc_runtime
from dpmpc.mpc import reason as reasons
from dpmpc.mpc.addresses import Endpoint, kept_alive
from dpmpc.mpc.channels import ALIVE, DRAWN, REASON
from dpmpc.mpc.link import Observe, OnLost
from dpmpc.mpc.pulse import Pulse
from dpmpc.mpc.reason import Told, without_a_word
from dpmpc.mpc.tls import Tls, check_name

FRAME = 12  # bytes of MPyC's frame before its payload: program counter and size
_FRAME = struct.Struct("<qI")  # MPyC's own: program counter, size
_GREETING = struct.Struct("<8s16sQHHH32s")  # magic, MPyC's version, prime, parties, threshold, party, digest
_MAGIC = b"dpmpc/my"
_RETRY = 0.02  # seconds between two calls of a party that is not there yet


@dataclass(frozen=True)
class Greeting:
    """What a party says before MPyC's first byte. `digest`: of all public parameters, and of the run and attempt."""

    version: str
    prime: int
    parties: int
    threshold: int
    party: int
    digest: bytes

    def pack(self) -> bytes:
        return _GREETING.pack(
            _MAGIC, self.version.encode(), self.prime, self.parties, self.threshold, self.party, self.digest
        )

    def check(self, payload: bytes) -> int:
        """The number of the party that sent `payload`. Errors: PeerError where it differs in anything but that."""
        magic, version, prime, parties, threshold, party, digest = _GREETING.unpack(payload)
        if magic != _MAGIC:
            raise PeerError("a party must greet as dpmpc's backend mpyc does; something else calls; mend -P / -B")
        theirs = version.rstrip(b"\0").decode("ascii", "replace")
        for name, here, there, way in (
            ("version of MPyC", self.version, theirs, "install the same one everywhere"),
            ("prime", self.prime, prime, "use the same version of dpmpc everywhere"),
            ("number of parties and threshold", (self.parties, self.threshold), (parties, threshold), "mend -M or -T"),
            ("parameters", self.digest.hex()[:8], digest.hex()[:8], "copy plan.json again"),
        ):
            if here != there:
                raise PeerError(
                    f"all parties must have the same {name}; party {party} has {there}, party {self.party} has "
                    f"{here}; {way}"
                )
        return int(party)


class _Frames(dict[int, Any]):
    """What has arrived, or is awaited, by program counter, as MPyC keeps it. Frames of the connection's own are told to
    it and not kept: heartbeats, and the last one, which says why."""

    def __init__(self, own: Callable[[int, bytes], None]) -> None:
        super().__init__()
        self._own = own

    def __setitem__(self, label: int, payload: Any) -> None:
        if label in (ALIVE, REASON):
            self._own(label, payload)
        else:
            super().__setitem__(label, payload)


class Counters:
    """What a party's exchanges with the others come to, and the channel that they belong to now."""

    def __init__(self, observe: Observe | None) -> None:
        self.observe = observe
        self.channel = -1  # below 0: greeting and end, which are not looked at
        self.rounds = 0
        self._place: Any = None

    def step(self, program_counter: int) -> None:
        """Count a round: MPyC's messages of one exchange have one program counter."""
        if program_counter != self._place:
            self._place = program_counter
            self.rounds += 1


def exchanger_class() -> Any:
    """MPyC's `MessageExchanger`, which in addition counts, tells an observer, and says when it ends."""
    base = mpyc_runtime.message_exchanger()

    class Exchanger(base):  # type: ignore[misc, valid-type]
        def __init__(
            self, runtime: Any, caller: int | None, party: int, counters: Counters, on_lost: OnLost, greeted: int
        ) -> None:
            """`caller`: None where the other side called. `greeted`: bytes of the greeting, each way."""
            super().__init__(runtime, caller)
            self.name, self.party = f"party {party}", party
            self.expects_end = False
            self.frames_sent = 0
            self.bytes_received = greeted
            self._greeted, self._counters, self._on_lost = greeted, counters, on_lost
            self._frames: dict[tuple[int, bool], int] = {}  # so far, by channel and direction
            self.buffers = _Frames(self._own_frame)
            self.lost: str | None = None
            self.told: str | None = None  # the cause that the other side gave for the end
            self.heard = self.spoke = False  # since the last heartbeat; for `pulse`
            self.silence = self.pending = 0.0
            self._gone: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._received: list[tuple[int, Any]] = []  # (label, payload or its future), in the order of the protocols

        @property
        def bytes_sent(self) -> int:
            keys = 0 if self.peer_pid is None or self.runtime.pid > self.party else self._handshake()
            return int(self.nbytes_sent) + self._greeted + keys

        def _handshake(self) -> int:
            return 2 + sum(map(len, self.runtime._prss_keys_to_peer(self.party)))

        def _label(self, outgoing: bool) -> int:
            channel = self._counters.channel
            if channel < 0:
                return channel
            number = self._frames.get((channel, outgoing), 0)
            self._frames[channel, outgoing] = number + 1
            return channel << 32 | number

        def send(self, pc: int, payload: bytes) -> None:
            if self.transport.is_closing():
                return  # whoever waits for an answer is told
            self.spoke = True
            if pc == DRAWN:  # dpmpc's own, before MPyC computes anything
                super().send(pc, payload)
                return
            self._counters.step(pc)
            self.frames_sent += 1
            if self._counters.observe is not None:
                self._counters.observe(self, True, self._label(True), payload)
            super().send(pc, payload)

        def receive(self, pc: int) -> Any:
            if pc == DRAWN:
                return self._drawn()
            self._counters.step(pc)
            payload = super().receive(pc)
            if self._counters.observe is not None:
                self._received.append((self._label(False), payload))
            return payload

        async def _drawn(self) -> bytes:
            """The frame of this label, which MPyC hands out as it is where it has arrived already."""
            found = super().receive(DRAWN)
            return bytes(await found if isinstance(found, asyncio.Future) else found)

        def settle(self) -> None:
            """Tell the observer of what was received; to be called when the protocols of a channel have ended."""
            received, self._received = self._received, []
            if (observe := self._counters.observe) is None:
                return
            for label, payload in received:
                observe(self, False, label, payload.result() if hasattr(payload, "done") else payload)

        def leftover(self) -> int:
            """Frames that arrived and that no protocol asked for."""
            return sum(not hasattr(payload, "done") for payload in self.buffers.values())

        @property
        def awaited(self) -> bool:
            """Whether somebody waits for a frame of this party."""
            return any(isinstance(each, asyncio.Future) and not each.done() for each in self.buffers.values())

        def data_received(self, data: bytes) -> None:
            self.bytes_received += len(data)
            self.heard, self.pending = True, 0.0
            if self.peer_pid is None and not self.bytes and int.from_bytes(data[:2], "little") != self.party:
                self.transport.abort()
                return
            super().data_received(data)

        def _own_frame(self, label: int, payload: bytes) -> None:
            self.bytes_received -= FRAME + len(payload)
            if label == REASON:
                self.told = reasons.unpack(payload)
                self.abort(self.told)

        def connection_lost(self, exc: BaseException | None) -> None:
            if not self._gone.done():
                self._gone.set_result(None)
            if self.lost is None:
                self.lost = type(exc).__name__ if exc else "connection closed"
            self._fail()

        def _fail(self) -> None:
            if not self.expects_end:
                self.expects_end = True  # it is said once
                error = (
                    Told(self.told, self.name) if self.told else PeerError(without_a_word(self.name, str(self.lost)))
                )
                self._on_lost(self, error)

        def beat(self) -> None:
            """Let the other side know that this process lives."""
            if self.lost is None and not self.transport.is_closing():
                self.transport.write(_FRAME.pack(ALIVE, 0))

        def abort(self, why: str) -> None:
            """Drop the connection."""
            if self.lost is None:
                self.lost = why
            self.transport.abort()
            self._fail()

        def admit(self, largest: int, room: int) -> None:
            """Frames are MPyC's own, which it does not bound."""

        def farewell(self, reason: str) -> None:
            """Tell the other side why this process leaves, as the last frame."""
            self.expects_end = True
            if self.lost is None and self.transport is not None and not self.transport.is_closing():
                payload = reasons.pack(reason)
                self.transport.write(_FRAME.pack(REASON, len(payload)) + payload)

        async def gone(self, seconds: float) -> None:
            """Returns when the connection has ended, at the latest after `seconds`: then it is dropped."""
            if self.transport is None:
                return
            await asyncio.wait([self._gone], timeout=seconds)
            self.transport.abort()

        def close(self) -> None:
            self.expects_end = True
            if self.transport is not None:
                self.transport.close()

    return Exchanger


class Greeter(asyncio.Protocol):
    """The first bytes of a connection. When both sides agree, `take_over` gets the transport and what came after."""

    def __init__(
        self, mine: Greeting, expected: int | None, take_over: Callable[[int, asyncio.Transport], Any], failed: Any
    ) -> None:
        """`expected`: the party that is called; None: this side is called, by a party of a lower number. `failed`: a
        future for the error."""
        self._mine, self._expected, self._take_over, self._failed = mine, expected, take_over, failed
        self._bytes = bytearray()
        self.transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)
        if self._expected is not None:
            self.transport.write(self._mine.pack())

    def data_received(self, data: bytes) -> None:
        assert self.transport is not None
        self._bytes += data
        if len(self._bytes) < _GREETING.size:
            return
        if self._expected is None:
            self.transport.write(self._mine.pack())  # before any check, so that both sides can say what differs
        try:
            party = self._mine.check(bytes(self._bytes[: _GREETING.size]))
            called = self._expected
            if party != called if called is not None else party >= self._mine.party:
                raise PeerError(f"each party must have its own index; party {party} is there; mend -I or -P")
            if (certificate := self.transport.get_extra_info("peercert")) is not None:
                check_name(certificate, f"party{party}")
            exchanger = self._take_over(party, self.transport)
        except PeerError as error:
            if not self._failed.done():
                self._failed.set_exception(error)
            self.transport.close()
            return
        self.transport.set_protocol(exchanger)
        exchanger.connection_made(self.transport)
        kept_alive(self.transport.get_extra_info("socket"))
        if len(self._bytes) > _GREETING.size:
            exchanger.data_received(bytes(self._bytes[_GREETING.size :]))

    def abandon(self) -> None:
        """Close the connection at once."""
        if self.transport is not None:
            self.transport.close()


async def connect(
    runtime: Any,
    mine: Greeting,
    endpoints: Sequence[Endpoint],
    tls: Tls | None,
    bound: socket.socket | None,
    seconds: float,
    counters: Counters,
    on_lost: OnLost,
    pulse: Pulse | None = None,
) -> dict[int, Any]:
    """MPyC's connections, by party: a lower index calls, a higher one listens. `bound`: the socket of this party's own
    address, if it is bound already. `pulse` watches them from the moment on at which all have come.

    Errors: PeerError when a party does not come in time, is another, or runs with other parameters; UsageError when
    this one cannot listen.
    """
    loop, me, exchanger = asyncio.get_running_loop(), mine.party, exchanger_class()
    complete: asyncio.Future[None] = loop.create_future()
    failed: asyncio.Future[None] = loop.create_future()
    found: dict[int, Any] = {}
    greeters: list[Greeter] = []
    runtime.parties[me].protocol = complete  # MPyC says here that all have come

    def take_over(party: int, transport: asyncio.Transport) -> Any:
        if party in found:
            raise PeerError(f"each party must have its own index; a second party {party} calls; mend -I")
        found[party] = exchanger(runtime, party if me < party else None, party, counters, on_lost, _GREETING.size)
        return found[party]

    def greeter(expected: int | None) -> Greeter:
        greeters.append(Greeter(mine, expected, take_over, failed))
        return greeters[-1]

    server, calls = None, []
    try:
        if me:
            server = await _listen(lambda: greeter(None), endpoints[me], bound, tls, me)
        elif bound is not None:
            bound.close()  # nobody calls the first party
        calls = [asyncio.ensure_future(_call(greeter, j, endpoints[j], tls)) for j in range(me + 1, mine.parties)]
        async with asyncio.timeout(seconds):
            waiting = {complete, failed, *calls}
            while not complete.done():
                done, waiting = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
                for each in done:
                    each.result()
    except TimeoutError:
        missing = ", ".join(f"{j} ({endpoints[j]})" for j in range(mine.parties) if j != me and j not in found)
        raise PeerError(
            f"every party must come within {seconds:g} s; missing: party {missing or 'none, but MPyC waits'}; start it,"
            " or mend -P / -B"
        ) from None
    finally:
        if server is not None:
            server.close()
        for call in calls:
            call.cancel()
        await asyncio.gather(*calls, return_exceptions=True)
        if not complete.done():
            complete.cancel()
            for each in found.values():
                each.close()
            for caller in greeters:
                caller.abandon()
            await asyncio.sleep(0)  # let the transports close
        failed.cancel()
    if pulse is not None:
        for each in found.values():
            pulse.watch(each)
    return found


async def _call(greeter: Callable[[int | None], Greeter], party: int, endpoint: Endpoint, tls: Tls | None) -> None:
    """Call until the endpoint answers."""
    loop = asyncio.get_running_loop()
    while True:
        try:
            await loop.create_connection(
                lambda: greeter(party),
                endpoint.host,
                endpoint.port,
                ssl=tls.client if tls else None,
                server_hostname=f"party{party}" if tls else None,
            )
            return
        except ssl.SSLError as error:
            raise PeerError(
                f"party {party} ({endpoint}) must show a certificate of this run's authority; {error.reason}; mend "
                "--tls"
            ) from None
        except OSError:  # not there yet
            await asyncio.sleep(_RETRY)


async def _listen(
    make: Callable[[], Greeter], endpoint: Endpoint, bound: socket.socket | None, tls: Tls | None, party: int
) -> asyncio.Server:
    loop, context = asyncio.get_running_loop(), tls.server if tls else None
    try:
        if bound is not None:
            return await loop.create_server(make, sock=bound, ssl=context)
        return await loop.create_server(make, endpoint.host, endpoint.port, ssl=context)
    except OSError as error:
        raise UsageError(
            f"party {party} must listen on {endpoint}, but that fails ({error.strerror or error}); choose another base "
            "port with -B, or addresses with -P"
        ) from None
