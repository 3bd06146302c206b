"""MPyC's messages over the run's own connections: what its runtime takes for its `MessageExchanger`.

MPyC finds a message by its program counter, which all parties hop alike; whoever listens to a run's frames finds them
by channel and number. So each message is a frame of the channel at hand, of the next number, and begins with its
counter. Who calls whom, greetings, limits, TLS, heartbeats and the end are the link's, as with every backend.
"""

import asyncio
import struct

from dpmpc.errors import PeerError
from dpmpc.mpc.transport.channels import exchange_label
from dpmpc.mpc.transport.link import Connection

_COUNTER = struct.Struct("<q")  # MPyC's program counter
COUNTER = _COUNTER.size  # bytes of a message before MPyC's payload


class Turn:
    """Whose turn it is at this party: one channel at a time, on which MPyC's protocols run. Counts their rounds."""

    def __init__(self) -> None:
        self.rounds = 0
        self.channel = -1
        self._place: int | None = None

    def begin(self, channel: int) -> None:
        """What is sent and received belongs to this channel from now on."""
        self.channel = channel

    def step(self, counter: int) -> None:
        """Count a round: MPyC's messages of one exchange have one program counter."""
        if counter != self._place:
            self._place = counter
            self.rounds += 1


class Exchange:
    """MPyC's end of the connection with one other party."""

    def __init__(self, peer: Connection, turn: Turn) -> None:
        self._peer, self._turn = peer, turn
        self._channel, self._sent, self._read = -1, 0, 0  # frames so far, of this channel
        self._arrived: dict[int, bytes] = {}  # by program counter: what nobody has asked for yet
        self._awaited: dict[int, asyncio.Future[bytes]] = {}
        self._next: asyncio.Future[bytearray] | None = None  # the frame that is read next, while somebody waits

    def _here(self) -> None:
        """The channel that is on now; its frames are counted from 0."""
        if self._channel != self._turn.channel:
            assert not self._awaited and self._next is None, "a channel ends when all its messages have come"
            self._channel, self._sent, self._read = self._turn.channel, 0, 0

    def send(self, counter: int, payload: bytes) -> None:
        """As MPyC calls it. Where the connection has ended nothing is sent: the run hears of that elsewhere."""
        self._turn.step(counter)
        self._here()
        label, self._sent = exchange_label(self._channel, self._sent), self._sent + 1
        try:
            self._peer.send(label, _COUNTER.pack(counter) + payload)
        except PeerError:
            pass

    def receive(self, counter: int) -> "bytes | asyncio.Future[bytes]":
        """As MPyC calls it: the payload, or a future for it, which stays open where the connection ends."""
        self._turn.step(counter)
        self._here()
        if counter in self._arrived:
            return self._arrived.pop(counter)
        self._awaited[counter] = asyncio.get_running_loop().create_future()
        self._wait()
        return self._awaited[counter]

    def _wait(self) -> None:
        if self._awaited and self._next is None:
            self._next = self._peer.receive(exchange_label(self._channel, self._read))
            self._read += 1
            self._next.add_done_callback(self._came)

    def _came(self, frame: "asyncio.Future[bytearray]") -> None:
        self._next = None
        if frame.cancelled() or frame.exception() is not None:  # the connection has ended
            return
        payload = bytes(frame.result())
        counter = _COUNTER.unpack_from(payload.ljust(COUNTER, b"\0"))[0]
        future = self._awaited.pop(counter, None)
        if future is None:
            self._arrived[counter] = payload[COUNTER:]
        elif not future.done():
            future.set_result(payload[COUNTER:])
        self._wait()
