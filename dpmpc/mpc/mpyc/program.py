"""A party's session inside an MPyC program that runs already: its connections, its PRSS keys, its program counters.

Nothing of MPyC is patched, and no connection is opened. An exchange of ours is a message of the program's own, under a
label that no message of MPyC's has: SHA-256 over a fresh program counter and our label, cut to 64 bits (MPyC's own
counters are such hashes; two of k messages in flight meet with probability k^2 2^-65).
"""

import asyncio
import contextlib
from collections.abc import Iterator, Mapping
from typing import Any

from dpmpc.circuits.sampler import Sampler
from dpmpc.errors import UsageError
from dpmpc.mpc.numbers import domains, field
from dpmpc.mpc.numbers.field import Words
from dpmpc.mpc.parties.mesh import Mesh
from dpmpc.mpc.parties.session import check_threshold
from dpmpc.mpc.replicated.backend import SharingHolder
from dpmpc.mpc.transport.link import Connection, Hello, Observe, OnLost, Payload

_HEADER = 12  # bytes of MPyC's


class ProgramConnection:
    """A connection of the program with one peer, as ours are used."""

    expects_end = False

    def __init__(self, protocol: Any, peer: int, counter: bytes) -> None:
        self.name = f"party {peer}"
        self.bytes_sent = self.bytes_received = self.frames_sent = 0
        self._protocol, self._counter = protocol, counter

    def _label(self, label: int) -> int:
        digest = domains.PROGRAM_LABEL.digest(self._counter, label)
        return int.from_bytes(digest[:8], "little", signed=True)

    def send(self, label: int, payload: Payload) -> None:
        self._protocol.send(self._label(label), bytes(payload))
        self.bytes_sent += _HEADER + len(payload)
        self.frames_sent += 1

    def receive(self, label: int) -> "asyncio.Future[bytearray]":
        found = self._protocol.receive(self._label(label))
        result: asyncio.Future[bytearray] = asyncio.get_running_loop().create_future()

        def arrived(payload: bytes) -> None:
            self.bytes_received += _HEADER + len(payload)
            if not result.done():
                result.set_result(bytearray(payload))

        if isinstance(found, asyncio.Future):
            found.add_done_callback(lambda done: None if done.cancelled() else arrived(done.result()))
        else:
            arrived(found)
        return result

    def admit(self, largest: int, room: int) -> None:
        """Nothing: frames are MPyC's, which it does not bound."""

    def farewell(self, reason: str) -> None:
        """Nothing: MPyC has no last words."""

    async def gone(self, seconds: float) -> None:
        """Nothing: the connection stays with the program."""

    def close(self) -> None:
        """Nothing: the connection is the program's."""


class ProgramLink:
    """The program's connections as a link. `counter`: a program counter that nothing else uses."""

    def __init__(self, runtime: Any, counter: bytes) -> None:
        self._runtime, self._counter = runtime, counter

    async def connect(
        self, hello: Hello, run_id: bytes, seconds: float, on_lost: OnLost, observe: Observe | None
    ) -> Mapping[int, Connection]:
        parties = self._runtime.parties
        return {
            party.pid: ProgramConnection(party.protocol, party.pid, self._counter)
            for party in parties
            if party.pid != hello.party
        }

    def abandon(self) -> None:
        """Nothing: the connections are the program's."""


class ProgramSession(SharingHolder):
    """This party's end in the program. Every stream of randomness is bound to the program counter."""

    def __init__(self, runtime: Any, counter: bytes) -> None:
        """Errors: UsageError for a threshold that sharing does not allow, a program without PRSS."""
        parties = len(runtime.parties)
        Mesh.__init__(self, runtime.pid, parties, b"dpmpc/mpyc\0" + counter)
        check_threshold(parties, runtime.threshold)
        if runtime.options.no_prss:
            raise UsageError(
                "noise is made from the program's PRSS keys; it runs with --no-prss; leave that out", code="together"
            )
        self.threshold = runtime.threshold
        self.subsets = field.subsets(parties, self.threshold)
        self.mine = [s for s in self.subsets if self.party in s]
        self.runtime = runtime
        self._keys = {tuple(sorted(subset)): bytes(key) for subset, key in runtime._prss_keys.items()}

    @contextlib.contextmanager
    def needing_all(self) -> Iterator[None]:
        """As everywhere in a program of MPyC's."""
        yield

    async def join_program(self, counter: bytes) -> None:
        """Takes the program's connections."""
        link = ProgramLink(self.runtime, counter)
        hello = Hello(self.party, self.parties, bytes(32))
        self.peers = await link.connect(hello, self.run_id, 0.0, lambda peer, why: None, None)


async def fresh_noise(session: ProgramSession, sampler: Sampler, sizes: list[int]) -> list[Words]:
    """This party's Shamir shares of fresh samples, batch by batch, one after the other."""
    return [await session.noise(sampler, channel, size) for channel, size in enumerate(sizes)]
