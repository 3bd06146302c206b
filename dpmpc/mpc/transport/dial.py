"""Connections over TCP, with TLS or without: who calls, who listens, who is refused."""

import asyncio
import socket
import ssl
import struct
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial

from dpmpc.errors import PeerError, public_message
from dpmpc.mpc.transport.abort_reason import Told, comes_later, public_reason
from dpmpc.mpc.transport.addresses import Endpoint
from dpmpc.mpc.transport.channels import HELLO
from dpmpc.mpc.transport.heartbeat import Heartbeat
from dpmpc.mpc.transport.link import FAREWELL_SECONDS, Connection, Hello, Observe, OnLost, part
from dpmpc.mpc.transport.listener import HANDSHAKE, Later, Listener, Refused
from dpmpc.mpc.transport.reaching import (
    HTTP_ANSWERS,
    NO_TLS,
    NOBODY_LISTENS,
    Unreached,
    other_protocol,
    reach,
    seen,
    shown_there,
)
from dpmpc.mpc.transport.rendezvous import Rendezvous
from dpmpc.mpc.transport.tls import Tls
from dpmpc.mpc.transport.wire import Peer

GREETING = struct.Struct("<HH32s")  # party, parties, digest of the run's public parameters
_MEETING = 1 << 24  # bytes of a frame, while some have not come
START = "; start it"  # the way out where a party is missing
NOT_CALLED = "it has not called"
NOT_ANSWERED = "it has not answered yet"  # a call is under way, and none has ended
NOBODY_AT_ALL = "nobody of this run is there: it has not begun, or has ended; ask whoever runs it"
_NOT_VALID_YET = 9  # X509_V_ERR_CERT_NOT_YET_VALID
# What OpenSSL's listener answers to a certificate that is not valid yet by its machine's clock, and to no other that
# is well formed: authorities that it does not know, signatures and dates that are over have alerts of their own.
_THEIR_CLOCK = "ALERT_BAD_CERTIFICATE"
_OTHER_PROTOCOL = ("WRONG_VERSION_NUMBER", "HTTP_REQUEST", "UNEXPECTED_MESSAGE", "RECORD_LAYER_FAILURE")
_RETRY = (0.02, 0.5)  # seconds between two calls of a process that is not there yet: at first, and at most
_SHUTDOWN = 2.0  # seconds for the end of a TLS connection


class Call:
    """Calls a process until it answers; `problem` says why it has not."""

    def __init__(self, endpoint: Endpoint, who: str, tls: Tls | None) -> None:
        """`who` (party0, ...) is the name its certificate must be for."""
        self.endpoint, self.who, self._tls = endpoint, who, tls
        self.problem = NOT_ANSWERED

    async def greeted(
        self, make_peer: Callable[[], Peer], greeting: bytes, check: Callable[[Peer, bytearray], None]
    ) -> Peer:
        """The connection, once the other side has answered `greeting` and `check` has found the answer right.

        A side that hangs up before it answers is called again; one that was greeted hears why, where the call is
        cancelled with a reason. Errors: PeerError where its certificate is not of this run's authority or not for its
        name, where it refuses this process, or where `check` fails.
        """
        pause = _RETRY[0]
        while True:
            peer = make_peer()
            try:
                answer = await self.once(peer, greeting)
                if answer is not None:
                    check(peer, answer)
                    return peer
            except Later as error:
                self.problem = error.message
            except asyncio.CancelledError as cancelled:  # the other side may have admitted this one by now
                if cancelled.args and peer.frames_sent:
                    peer.farewell(public_message(cancelled.args[0]))
                    await peer.gone(FAREWELL_SECONDS)
                raise
            finally:
                if not peer.admitted:
                    peer.abort("it was not admitted")
            await asyncio.sleep(pause)
            pause = min(2 * pause, _RETRY[1])

    async def once(self, peer: Peer, greeting: bytes) -> bytearray | None:
        """What the other side says to a greeting; None where it is to be called again. Errors: as `greeted`."""
        there = f"{peer.name} ({self.endpoint})"
        try:
            await self._connect(peer)
        except ssl.SSLCertVerificationError as error:
            if error.verify_code == _NOT_VALID_YET:  # by the clock of this machine, which may not be in step yet
                self.problem = "its certificate is not valid yet by this machine's clock"
                return None
            shown = await shown_there(self.endpoint, self.who)
            raise PeerError(
                f"{there} must show a certificate of this run's authority; {error.verify_message}{shown}; mend <<tls>>"
            ) from None
        except ssl.SSLError as error:
            if error.reason in _OTHER_PROTOCOL:  # whoever has this address now may go, and the party come
                if self.problem not in (HTTP_ANSWERS, NO_TLS):
                    self.problem = await other_protocol(self.endpoint)
                return None
            raise PeerError(
                f"{there} must show a certificate of this run's authority; {error.reason}; mend <<tls>>"
            ) from None
        except Unreached as error:
            self.problem = str(error)
            return None
        except OSError as error:
            self.problem = "it hangs up" if isinstance(error, ConnectionError) else seen(error)
            return None
        if self._tls is not None:
            self._tls.check(peer, (self.who,))
        try:
            peer.send(HELLO, greeting)
            return await peer.receive(HELLO)
        except Told as error:
            if why := comes_later(error.cause):
                self.problem = why
                return None
            raise PeerError(f"{there} refuses this process: {error.cause}", code="plan") from None
        except PeerError:
            if isinstance(peer.broken, ssl.SSLError):
                if _THEIR_CLOCK in (peer.broken.reason or ""):
                    self.problem = "it does not take this process's certificate; its clock may not be in step yet"
                    return None
                raise PeerError(
                    f"{there} must accept this process's certificate; {peer.broken.reason}; mend <<tls>>"
                ) from None
            if peer.refused:
                raise PeerError(
                    f"{there} must be a process of this run; {peer.lost}; mend <<addresses>> / <<base_port>>"
                ) from None
            self.problem = "it hangs up"
            return None

    async def _connect(self, peer: Peer) -> None:
        loop = asyncio.get_running_loop()
        sock = await reach(self.endpoint)
        if self._tls is None:
            await loop.create_connection(lambda: peer, sock=sock)
            return
        await loop.create_connection(
            lambda: peer,
            sock=sock,
            ssl=self._tls.client,
            server_hostname=self.who,
            ssl_handshake_timeout=HANDSHAKE,
            ssl_shutdown_timeout=_SHUTDOWN,
        )


def not_here(missing: Mapping[int, tuple[Endpoint, str]], alone: bool) -> str:
    """Which parties are missing, where, and why, for messages. `alone`: none has come. A process that comes when a run
    is over finds nobody, as one does that comes first: it is told what that may mean."""
    nobody = alone and all(why in (NOBODY_LISTENS, NOT_CALLED) for _, why in missing.values())
    last = max(missing, default=-1)
    return ", ".join(
        f"party {j} ({where}, {why}{f'; {NOBODY_AT_ALL}' if nobody and j == last else ''})"
        for j, (where, why) in missing.items()
    )


class TcpLink:
    """Framed TCP: a lower index calls, a higher one listens, as in MPyC."""

    def __init__(
        self,
        party: int,
        addresses: Sequence[Endpoint],
        *,
        tls: Tls | None = None,
        bound: socket.socket | None = None,
        heartbeat: Heartbeat | None = None,
        log: Callable[[str], None] | None = None,
    ) -> None:
        """`bound`: the socket of this party's own address, if it is bound already. `log` hears of callers that were
        refused, by default as the heartbeat says who is waited for."""
        self._party = party
        self.addresses, self.tls, self.bound = list(addresses), tls, bound
        self._heartbeat, self._own_heartbeat = heartbeat or Heartbeat(), heartbeat is None
        self._log = log or self._heartbeat.say
        self._peers: dict[int, Connection] = {}
        self.says = ""  # of the parameters, to those that have others
        self.patience = 0.0  # seconds for what this machine lacks yet, to listen

    @property
    def heartbeat(self) -> Heartbeat:
        """What watches the connections."""
        return self._heartbeat

    async def connect(
        self, hello: Hello, run_id: bytes, seconds: float, on_lost: OnLost, observe: Observe | None
    ) -> dict[int, Connection]:
        """As `Link` has it. A party that leaves before all have come may come again. Without TLS the PRSS keys that
        follow cross the network in the clear: loopback only."""
        assert len(self.addresses) == hello.parties
        me = hello.party
        rendezvous = Rendezvous(set(range(hello.parties)) - {me}, on_lost, again=True)
        desk = _Desk(hello, rendezvous, self.tls, self._heartbeat, self.says)
        self._peers = rendezvous.here
        calls = {j: Call(self.addresses[j], f"party{j}", self.tls) for j in range(me + 1, hello.parties)}

        def make(name: str) -> Peer:
            return Peer(name, run_id, rendezvous.lost, observe)

        def missing() -> str:
            why = {j: calls[j].problem if j in calls else NOT_CALLED for j in rendezvous.missing()}
            alone = not rendezvous.here and not listener.crowded_out
            return not_here({j: (self.addresses[j], each) for j, each in why.items()}, alone)

        def call(j: int) -> Callable[[], Awaitable[Connection]]:
            return lambda: calls[j].greeted(lambda: make(f"party {j}"), _pack(hello), partial(desk.answered, j))

        listener = Listener(lambda: make("a caller"), desk.greeted, self._log)
        try:
            if me:
                at, what, lack = self.addresses[me], f"party {me} must listen", self._heartbeat.lack
                await listener.open(at, self.bound, self.tls, what, self.patience, lack)
            elif self.bound is not None:
                self.bound.close()  # nobody calls the first party
            for j in calls:
                rendezvous.keep_calling(j, call(j))
            with self._heartbeat.waiting(missing):
                async with asyncio.timeout(seconds):
                    await rendezvous.all_come()
        except TimeoutError:
            error = PeerError(
                f"every party must come within {seconds:g} s; missing: {missing()}{START}, or mend <<addresses>> / "
                f"<<base_port>>{listener.refusals()}"
            )
            listener.close()
            await self._leave(me, error, rendezvous)
            raise error from None
        except BaseException as error:
            listener.close()
            await self._leave(me, error, rendezvous)
            raise
        await rendezvous.end()
        listener.close()
        for peer in self._peers.values():
            if isinstance(peer, Peer):
                peer.admit()
        return dict(self._peers)

    async def _leave(self, me: int, error: BaseException, rendezvous: Rendezvous) -> None:
        reason = public_reason(f"party {me}", error)
        await rendezvous.end(reason)  # before: whoever comes meanwhile is told too
        await part(self._peers.values(), reason)

    def abandon(self) -> None:
        """Close all connections at once."""
        if self._own_heartbeat:  # another one may have connections with others to watch
            self._heartbeat.stop()
        for peer in list(self._peers.values()):
            peer.close()


class _Desk:
    """Checks greetings between parties: who it is, by its certificate first; then what it runs."""

    def __init__(
        self, hello: Hello, rendezvous: Rendezvous, tls: Tls | None, heartbeat: Heartbeat, says: str = ""
    ) -> None:
        self._hello, self._rendezvous, self._tls, self._heartbeat = hello, rendezvous, tls, heartbeat
        self._says = says

    def answered(self, j: int, peer: Peer, payload: bytearray) -> None:
        """Admits the party that was called as party j. Errors: PeerError."""
        found = self._check(peer, payload)
        if found != j:
            raise PeerError(
                f"party {j} must answer at its address, but party {found} does; mend the order of <<addresses>>"
            )
        self._admit(j, peer)

    def greeted(self, peer: Peer, payload: bytearray) -> None:
        """Answers a party that calls, and admits it. Errors: Refused; Later."""
        try:
            j, parties, _ = self._parts(payload)
            if self._tls:
                self._tls.check(peer, (f"party{j}",))
            if not j < parties:
                raise PeerError(f"a party's index lies in 0..n-1; {j} of {parties} calls; mend <<index>>")
            peer.name = f"party {j}"
            self._check(peer, payload)
            if j >= self._hello.party:
                raise PeerError(f"each party must have its own index; another party {j} calls; mend <<index>>")
        except Later:
            raise
        except PeerError as error:
            raise Refused(error.message) from None
        self._rendezvous.forget(j, f"each party must have its own index; a second party {j} called; mend <<index>>")
        peer.send(HELLO, _pack(self._hello))
        self._admit(j, peer)

    def _parts(self, payload: bytearray) -> tuple[int, int, bytes]:
        if len(payload) != GREETING.size:
            raise PeerError(
                f"a greeting has {GREETING.size} bytes; got {len(payload)}; are all parties of one version?"
            )
        party, parties, digest = GREETING.unpack(payload)
        return int(party), int(parties), bytes(digest)

    def _check(self, peer: Peer, payload: bytearray) -> int:
        """The number of the party that greets. Errors: PeerError where it does not belong to this run; Later where it
        is at another of its stages."""
        hello = self._hello
        party, parties, digest = self._parts(payload)
        if parties == hello.parties and digest != hello.digest and peer.other_stage:
            raise Later(f"party {hello.party} is at another stage of the run; call again")
        if parties != hello.parties or digest != hello.digest:
            raise PeerError(
                f"all parties must run with the same parameters; party {party} has n = {parties}, parameters "
                f"{digest.hex()[:8]}, party {hello.party} has n = {hello.parties}, parameters "
                f"{hello.digest.hex()[:8]}{self._says}; copy plan.json again, and have one dpmpc"
            )
        if peer.other_run:
            raise PeerError(f"party {party} belongs to another run; give every process the same run id")
        return party

    def _admit(self, j: int, peer: Peer) -> None:
        self._heartbeat.watch(peer)
        self._rendezvous.come(j, peer)
        peer.admit(_MEETING, 4 * _MEETING)


def _pack(hello: Hello) -> bytes:
    return GREETING.pack(hello.party, hello.parties, hello.digest)
