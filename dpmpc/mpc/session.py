"""The parties' MPC session: connections, PRSS keys, channels and openings, on an MPyC runtime. The only importer of
mpyc.

Semi-honest security against t < n/2 colluding parties; PRSS makes it computational. One session serves one run: its
PRSS keys are fresh, and every stream derived from them is bound to the run id.

Departures from MPyC 0.11's own start-up: sockets listen on the party's own address only; a peer that never comes or
dies ends the run with a message; frames carry a checked header; array shares travel as raw bytes, never by pickle.
"""

import asyncio
import contextlib
import logging
import socket
import ssl
import struct
import sys
import warnings
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np

from dpmpc.errors import PeerError, UsageError
from dpmpc.mpc import field
from dpmpc.mpc.field import Words
from dpmpc.mpc.prg import Prg
from dpmpc.mpc.tls import Tls, check_name
from dpmpc.mpc.wire import Observe, Peer

_HELLO = struct.Struct("<HHH32s")  # party, parties, threshold, digest of the run's public parameters
_HELLO_LABEL = -1
_END_LABEL = -2
_KEY_BYTES = 16
CONNECT_SECONDS = 10.0


@dataclass(frozen=True)
class Endpoint:
    """Where a party listens."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"


def import_mpyc() -> Any:
    """The module mpyc.runtime, imported without letting it read this program's command line or set up logging."""
    if "mpyc.runtime" in sys.modules:
        return sys.modules["mpyc.runtime"]
    argv, level = sys.argv, logging.root.level
    handlers = list(logging.root.handlers)
    with contextlib.ExitStack() as stack:
        try:
            asyncio.get_running_loop()
        except RuntimeError:  # its module-level runtime wants an event loop
            loop = asyncio.new_event_loop()
            asyncio.set_event_loop(loop)
            stack.callback(loop.close)
            stack.callback(asyncio.set_event_loop, None)
        try:
            sys.argv = [argv[0] if argv else "dpmpc", "--no-log"]
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", DeprecationWarning)  # it uses numpy.core and asyncio's old loop look-up
                import mpyc.runtime
        finally:
            sys.argv = argv
            logging.root.handlers[:] = handlers
            logging.root.setLevel(level)
    return mpyc.runtime


class Channel:
    """A numbered sequence of exchanges between the parties; each exchange is one round.

    All parties call the exchanges of one channel in the same order; different channels may interleave. `ident` is used
    once a run.
    """

    def __init__(self, session: "Session", ident: int) -> None:
        self.session = session
        self.ident = ident
        self.rounds = 0
        self.bytes_sent = 0
        self.messages_sent = 0

    def exchange(self, outgoing: Mapping[int, Any], incoming: Sequence[int]) -> Awaitable[list[bytearray]]:
        """Sends `outgoing` (party -> bytes) now; to be awaited: the payloads that the parties `incoming` send in this
        round.

        Cost: one round. What is computed between the call and the await hides the network's delay.
        """
        label = self.ident << 32 | self.rounds
        self.rounds += 1
        self.session.rounds += 1
        peers = self.session.peers
        for party, payload in outgoing.items():
            view = memoryview(payload).cast("B")
            self.bytes_sent += len(view)
            self.messages_sent += 1
            peers[party].send(label, view)
        futures = [peers[party].receive(label) for party in incoming]

        async def received() -> list[bytearray]:
            return [await future for future in futures]

        return received()

    def words(self, outgoing: Mapping[int, Words], incoming: Sequence[int], size: int) -> Awaitable[list[Words]]:
        """As `exchange`, for contiguous uint64 arrays; each received array is flat and has `size` words.

        Errors: PeerError when a peer sends another length.
        """
        pending = self.exchange(outgoing, incoming)

        async def received() -> list[Words]:
            payloads = await pending
            for party, payload in zip(incoming, payloads, strict=True):
                if len(payload) != 8 * size:
                    raise PeerError(
                        f"party {party} sent {len(payload)} bytes where {8 * size} were due; are all parties of one "
                        "version?"
                    )
            return [np.frombuffer(payload, dtype="<u8") for payload in payloads]

        return received()


class Session:
    """What one party knows of a run's MPC: who it is, its peers, its PRSS keys."""

    def __init__(
        self,
        party: int,
        parties: int,
        threshold: int,
        run_id: bytes,
        observe: Observe | None = None,
        *,
        prss: bool = True,
    ) -> None:
        """Without `prss` there is no key for each (n-t)-subset and no MPyC runtime: for n beyond ten or so, where the
        engine makes keys by pairs."""
        if not 0 <= party < parties:
            raise UsageError(f"a party's index lies in 0..n-1; got {party} for n = {parties}; mend -I or -M")
        if not 0 <= 2 * threshold < parties:
            raise UsageError(
                f"the threshold t must satisfy 0 <= 2t < n; got t = {threshold}, n = {parties}; mend -T or -M"
            )
        self.party = party
        self.parties = parties
        self.threshold = threshold
        self.run_id = run_id
        self.subsets = field.subsets(parties, threshold) if prss else []
        self.mine = [s for s in self.subsets if party in s]
        self.peers: dict[int, Peer] = {}
        self._observe = observe  # sees every frame between the parties
        self._connections: list[Peer] = []  # also those that were refused
        self.lost: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.rounds = 0  # exchanges of all channels; concurrent ones count each
        self._channels: set[int] = set()
        self.runtime: Any = self._mpyc_runtime() if prss else None

    def _mpyc_runtime(self) -> Any:
        """An MPyC runtime of this party that uses this session's connections and keys.

        `mix32_64bit` makes MPyC marshal arrays as fixed-width bytes; `transfer`, which pickles, is closed.
        """
        module = import_mpyc()
        options = SimpleNamespace(
            threshold=self.threshold,
            no_log=True,
            no_prss=False,
            ssl=False,
            no_async=self.parties == 1,
            no_barrier=False,
            mix32_64bit=True,
            sec_param=60,
            bit_length=64,
        )
        parties = [module.Party(i) for i in range(self.parties)]
        runtime = module.Runtime(self.party, parties, options)

        async def closed(*_: object, **__: object) -> None:
            raise AssertionError("Runtime.transfer pickles and is not used here")

        runtime.transfer = closed
        for name in ("sectypes", "asyncoro", "mpctools", "seclists", "secpols", "secgroups", "random", "statistics"):
            sys.modules[f"mpyc.{name}"].runtime = runtime  # type: ignore[attr-defined]
        return runtime

    # -- connections -------------------------------------------------------------------------------------------------
    async def connect(
        self,
        endpoints: Sequence[Endpoint],
        digest: bytes = bytes(32),
        *,
        seconds: float = CONNECT_SECONDS,
        tls: Tls | None = None,
    ) -> None:
        """Connect with every other party; a lower index calls, a higher one listens, as in MPyC. `digest` binds the
        public parameters.

        Without `tls` PRSS keys cross the network in the clear: loopback only.
        Errors: PeerError when a party does not come in time or runs with other parameters; UsageError when the port is
        taken.
        """
        assert len(endpoints) == self.parties
        if self.parties == 1:
            return
        loop = asyncio.get_running_loop()
        arrived: asyncio.Queue[Peer] = asyncio.Queue()
        server = None

        def accept() -> Peer:
            return self._connection("a caller", arrived.put_nowait)

        if self.party:
            here = endpoints[self.party]
            try:
                server = await loop.create_server(accept, here.host, here.port, ssl=tls.server if tls else None)
            except OSError as error:
                raise UsageError(
                    f"party {self.party} must listen on {here}, but that fails ({error.strerror or error}); "
                    "choose another base port with -B, or addresses with -P"
                ) from None
        waiting: set[int] = set(range(self.parties)) - {self.party}
        try:
            async with asyncio.timeout(seconds):
                callers = asyncio.gather(
                    *(self._call(j, endpoints[j], digest, waiting, tls) for j in range(self.party + 1, self.parties))
                )
                try:
                    for _ in range(self.party):
                        await self._answer(await arrived.get(), digest, waiting, tls)
                    await callers
                finally:
                    callers.cancel()
        except TimeoutError:
            who = ", ".join(f"{j} ({endpoints[j]})" for j in sorted(waiting))
            raise PeerError(
                f"every party must come within {seconds:g} s; missing: party {who}; start it, or mend -P / -B"
            ) from None
        finally:
            if server is not None:
                server.close()
            if waiting:
                self.abandon()
                await asyncio.sleep(0)  # let the transports close
        for j, peer in self.peers.items():
            if self.runtime is not None:
                self.runtime.parties[j].protocol = peer
            _keep_alive(peer)

    def _connection(self, name: str, on_made: Callable[[Peer], None] | None = None) -> Peer:
        peer = Peer(name, self.run_id, self._on_lost, self._observe, on_made)
        self._connections.append(peer)
        return peer

    def _hello(self, digest: bytes) -> bytes:
        return _HELLO.pack(self.party, self.parties, self.threshold, digest)

    def _check_hello(self, payload: bytes | bytearray, digest: bytes) -> int:
        party, parties, threshold, other = _HELLO.unpack(payload[: _HELLO.size])
        if (parties, threshold) != (self.parties, self.threshold) or other != digest:
            raise PeerError(
                f"all parties must run with the same parameters; party {party} has n = {parties}, t = {threshold}, "
                "parameters "
                f"{other.hex()[:8]}, party {self.party} has n = {self.parties}, t = {self.threshold}, parameters "
                f"{digest.hex()[:8]}"
            )
        return int(party)

    async def _call(self, j: int, endpoint: Endpoint, digest: bytes, waiting: set[int], tls: Tls | None) -> None:
        loop = asyncio.get_running_loop()
        peer = self._connection(f"party {j}")
        while True:
            try:
                name = f"party{j}" if tls else None
                await loop.create_connection(
                    lambda: peer, endpoint.host, endpoint.port, ssl=tls.client if tls else None, server_hostname=name
                )
                break
            except ssl.SSLError as error:
                raise PeerError(
                    f"party {j} ({endpoint}) must show a certificate of this run's authority; {error.reason}; mend "
                    "--tls"
                ) from None
            except OSError:  # not there yet
                await asyncio.sleep(0.02)
        keys = [self._new_key(s) for s in self.mine if s[0] == self.party and j in s]
        peer.send(_HELLO_LABEL, self._hello(digest) + b"".join(keys))
        if self._check_hello(await peer.receive(_HELLO_LABEL), digest) != j:
            raise PeerError(f"{endpoint} must be party {j}, but another party answers there; mend the order of -P")
        self.peers[j] = peer
        waiting.discard(j)

    async def _answer(self, peer: Peer, digest: bytes, waiting: set[int], tls: Tls | None) -> None:
        payload = await peer.receive(_HELLO_LABEL)
        peer.send(_HELLO_LABEL, self._hello(digest))  # before any check, so that both sides can say what differs
        j = self._check_hello(payload, digest)
        if tls:
            check_name(peer.certificate, f"party{j}")
        if j >= self.party or j in self.peers:
            raise PeerError(f"each party must have its own index; a second party {j} calls; mend -I")
        peer.name = f"party {j}"
        shared = [s for s in self.mine if s[0] == j]
        keys = bytes(payload[_HELLO.size :])
        if len(keys) != _KEY_BYTES * len(shared):
            raise PeerError(
                f"party {j} sent {len(keys)} key bytes where {_KEY_BYTES * len(shared)} were due; are all parties "
                "of one version?"
            )
        for k, subset in enumerate(shared):
            self.runtime._prss_keys[subset] = keys[k * _KEY_BYTES : (k + 1) * _KEY_BYTES]
        self.peers[j] = peer
        waiting.discard(j)

    def _new_key(self, subset: tuple[int, ...]) -> bytes:
        key = self.runtime._prss_keys[subset]  # drawn by MPyC from `secrets` when the runtime was made
        assert len(key) == _KEY_BYTES
        return bytes(key)

    def _on_lost(self, peer: Peer, why: str) -> None:
        if not self.lost.done():
            self.lost.set_exception(PeerError(f"{peer.name} left the run ({why}); see its log"))
            self.lost.exception()

    async def close(self) -> None:
        """Agree that the run is over, then close the connections."""
        for peer in self.peers.values():
            peer.expects_end = True
        for peer in self.peers.values():
            peer.send(_END_LABEL, b"")
        for peer in self.peers.values():
            with contextlib.suppress(PeerError):
                await peer.receive(_END_LABEL)
        self.abandon()
        await asyncio.sleep(0)

    def abandon(self) -> None:
        """Close the connections at once; the peers will notice."""
        for peer in self._connections:
            peer.close()

    # -- what the protocols use --------------------------------------------------------------------------------------
    def channel(self, ident: int) -> Channel:
        """A new channel. Numbers are public and must agree between the parties; each is used once a run."""
        if not 0 <= ident < 1 << 31 or ident in self._channels:  # holds under -O too: streams are bound to the number
            raise AssertionError(f"channel {ident} is used already")
        self._channels.add(ident)
        return Channel(self, ident)

    def stream(self, subset: tuple[int, ...], *domain: bytes | int | str) -> Prg:
        """Pseudorandom words that exactly the parties of `subset` know. A domain is used once a run."""
        return Prg(bytes(self.runtime._prss_keys[subset]), self.run_id, *domain)

    async def open(self, shares: Words, channel: Channel) -> Words:
        """The values whose Shamir shares of degree t in F_p the parties hold; everybody learns them.

        Cost: one round, t messages of 8 bytes a value a party.
        """
        n, t = self.parties, self.threshold
        flat = np.ascontiguousarray(shares).reshape(-1)
        successors = [(self.party + k) % n for k in range(1, t + 1)]
        predecessors = [(self.party - k) % n for k in range(1, t + 1)]
        received = await channel.words(dict.fromkeys(successors, flat), predecessors, flat.size)
        return field.recombine([flat, *received], [self.party, *predecessors]).reshape(shares.shape)

    @property
    def bytes_sent(self) -> int:
        """Bytes this party has sent to other parties, headers included."""
        return sum(peer.bytes_sent for peer in self.peers.values())

    @property
    def bytes_received(self) -> int:
        """Bytes this party has received from other parties, headers included."""
        return sum(peer.bytes_received for peer in self.peers.values())


def _keep_alive(peer: Peer) -> None:
    """Let the kernel report a peer whose machine has gone within about 12 s."""
    sock = peer._transport.get_extra_info("socket") if peer._transport else None
    if sock is None:
        return
    with contextlib.suppress(OSError):  # closed already: whoever reads next is told
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for name, value in (
            ("TCP_KEEPIDLE", 4),
            ("TCP_KEEPINTVL", 2),
            ("TCP_KEEPCNT", 4),
            ("TCP_USER_TIMEOUT", 12_000),
        ):
            if hasattr(socket, name):
                sock.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)


def endpoints_here(parties: int, base_port: int) -> list[Endpoint]:
    """Loopback endpoints with MPyC's numbering: party i at base port + i."""
    return [Endpoint("127.0.0.1", base_port + i) for i in range(parties)]


def parse_endpoints(addresses: Iterable[str], base_port: int) -> list[Endpoint]:
    """Endpoints from `-P host:port` values, MPyC's meaning: a missing port is base port + index, an empty host is this
    machine."""
    result = []
    for i, address in enumerate(addresses):
        if address.startswith("["):  # an IPv6 address
            host, _, port = address[1:].partition("]")
            port = port.removeprefix(":")
        elif address.count(":") > 1:
            host, port = address, ""
        else:
            host, _, port = address.partition(":")
        if port and not (port.isdigit() and 0 < int(port) < 65536):
            raise UsageError(
                f"-P takes host:port with a port in 1..65535; got {address!r}; write for example -P 127.0.0.1:11365"
            )
        result.append(Endpoint(host or "127.0.0.1", int(port) if port else base_port + i))
    return result
