"""A party's end of its connections with owners: admits them, adds up their shares, sends them what was opened."""

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import replace

from dpmpc.aggregation.party.adder import Adder
from dpmpc.aggregation.party.admission import Admission, Guest, listed, not_numbered
from dpmpc.aggregation.party.archive import Archive
from dpmpc.aggregation.party.behind import Behind
from dpmpc.aggregation.party.resume import Past
from dpmpc.aggregation.plan.asked import AGREED, Attempt, Presence
from dpmpc.aggregation.plan.grid import Ints
from dpmpc.aggregation.plan.identities import certificate_name, greeting, shows_accounts
from dpmpc.aggregation.plan.plan import Plan
from dpmpc.aggregation.wire.account_heads import Remembered
from dpmpc.aggregation.wire.frames import (
    ANSWER,
    ASKING,
    COUNT,
    HAVE,
    HELLO,
    NO_TOKEN,
    NOBODY,
    OVER,
    READY,
    TELL,
    WAITING,
    WINDOW,
    PartyCost,
    exact,
    pack_beginning,
    pack_result,
    pieces_of,
    result_size,
)
from dpmpc.aggregation.wire.news import names_of_asker
from dpmpc.aggregation.wire.refusal import PARTY, is_refusal, owners_called, refuser
from dpmpc.errors import PeerError
from dpmpc.mpc.contract.backend import BACKENDS, Holder, Share, ToleratesLoss
from dpmpc.mpc.native.speed import MOST_SAID
from dpmpc.mpc.transport import channels
from dpmpc.mpc.transport.abort_reason import Reason, Told, refuses, stays_away
from dpmpc.mpc.transport.addresses import Endpoint
from dpmpc.mpc.transport.channels import block_label
from dpmpc.mpc.transport.dial import START
from dpmpc.mpc.transport.heartbeat import Heartbeat
from dpmpc.mpc.transport.in_memory import InMemory
from dpmpc.mpc.transport.link import Connection
from dpmpc.mpc.transport.listener import Later, Listener, Refused
from dpmpc.mpc.transport.tls import Tls
from dpmpc.mpc.transport.wire import FRAME_COST, HEADER, Peer
from dpmpc.privacy.heads import MOST_SHOWN, Memory

FINISH_SECONDS = 600.0  # for an owner that computes its last figures
FOLLOWED_SECONDS = 10.0  # for an owner to have the end of a stage, which it gets while what follows goes on, too
PARTY_SECONDS = 10.0  # for a party that has left to come again, and hear that the run is over


class OwnerGate:
    """Listens for owners, for one attempt of a run."""

    takes_late = False  # whether owners may come, and come again, while the run goes on

    def __init__(
        self,
        plan: Plan,
        attempt: Attempt,
        holder: Holder[Share],
        *,
        heartbeat: Heartbeat | None = None,
        log: Callable[[str], None] = lambda text: None,
        secret: str = "",
        memory: Memory | None = None,
    ) -> None:
        """`secret`: what owners must know besides the plan, for runs of one machine. `log` hears of callers that were
        refused. `memory`: of the heads of owners' accounts."""
        self.plan, self.attempt, self.holder = plan, attempt, holder
        self.lost: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._adder = Adder(plan, holder)
        self._heartbeat, self._log = heartbeat or Heartbeat(), log
        self._secret, self._greeting = secret, greeting(plan, attempt, secret)
        self._accounts = Remembered(plan, holder.party, memory) if shows_accounts(plan, secret) else None
        self._run = plan.session_id(attempt)  # as callers know it, whatever attempt is agreed on
        self.returns = attempt == AGREED  # processes may come again, after a run was interrupted and at its end
        self._admission: Admission[Guest] = Admission(plan.owners, self.returns, self.takes_late)
        self.state = WAITING
        self.token = NO_TOKEN  # of the attempt, when the parties have drawn it
        self.kernels: dict[str, bytes] = {}  # what owners' processes say of theirs, by name
        self._past: Past = {}
        self._archive: Archive | None = None  # when everything was opened
        self._askers: list[Peer] = []
        self._asked_at: dict[int, float] = {}  # by party: when it asked last, or was told that the run is over
        self._after: list[asyncio.Task[None]] = []
        self._tls: Tls | None = None
        self.says = ""  # of the plan, to those that have another (`fields.marks`)
        self.behind: Mapping[bytes, Behind] = {}  # the run's stages that are over here, by their greetings
        self._listener = Listener(self._make, self._greeted, log)
        self._joining: list[asyncio.Task[None]] = []
        self._changed = asyncio.Event()

    async def listen(
        self, endpoint: Endpoint, tls: Tls | None = None, bound: socket.socket | None = None, patience: float = 0.0
    ) -> None:
        """Open the owners' port, on the socket that was bound before if there is one; owners are admitted from now on.
        Errors: as `listening`."""
        self._tls = tls
        if tls is not None:
            self._greeting = greeting(self.plan, self.attempt, self._secret, tls.digest)
            self.says += tls.says
        what, lack = f"party {self.holder.party} must listen for owners", self._heartbeat.lack
        await self._listener.open(endpoint, bound, tls, what, patience, lack)

    def _make(self) -> Peer:
        return Peer("a caller", self._run, self._on_lost)

    def _greeted(self, peer: Guest, payload: bytearray) -> None:
        """Admits an owners' process. Errors: Refused."""
        plan = self.plan
        if len(payload) != HELLO.size:
            raise Refused(f"a greeting has {HELLO.size} bytes; got {len(payload)}; are all processes of one version?")
        first, end, other = HELLO.unpack(payload)
        if first == ASKING and self.returns and isinstance(peer, Peer):
            tells = end != NOBODY and bool(end & TELL)
            asks = end & ~TELL if tells else end
            self._check_certificate(peer, names_of_asker(plan, asks))
            if stage := self.behind.get(other):
                stage.answers(peer, tells=tells)
                self._askers.append(peer)
                return
            self._asked(peer, asks, other)
            if tells and self._archive is not None:
                self._archive.tells(peer)
            return
        if is_refusal(first) and isinstance(peer, Peer):
            self._refused(peer, first, end, other)
            return
        has_all = bool(first & HAVE) and self.returns and isinstance(peer, Peer)
        if has_all:
            first -= HAVE
        if isinstance(peer, Peer):
            self._check_certificate(peer, (certificate_name(plan, first, end),))
        if not first < end <= plan.owners:
            raise Refused(not_numbered(plan.owners, first, end))
        peer.name = owners_called(first, end)
        if other != self._greeting and isinstance(peer, Peer) and peer.other_stage:
            self._of_another_stage(first, end, peer, self.behind.get(other), has_all)
            return
        if other != self._greeting:
            raise Refused(
                f"owners and parties must have the same plan; party {self.holder.party} has "
                f"{self._greeting.hex()[:8]}{self.says}, {peer.name} {other.hex()[:8]}; copy "
                "plan.json again, and have one dpmpc"
            )
        if has_all and isinstance(peer, Peer):
            if self._archive is not None:
                self._archive.deliver(first, end)
            self._asked(peer, NOBODY, other)
            return
        self._admit(first, end, peer)

    def _of_another_stage(self, first: int, end: int, peer: Peer, stage: Behind | None, has_all: bool) -> None:
        """Owners come for another stage of the run. What is over here, they get. What follows has to wait; they have
        all of this one. Errors: Later."""
        if stage is None:
            if self._archive is not None:
                self._archive.deliver(first, end)
                self._changed.set()
            raise Later(self._at_this_stage())
        self._askers.append(peer)
        if has_all:
            stage.answers(peer)
            return
        self._heartbeat.watch(peer)
        self._after.append(asyncio.ensure_future(stage.serves(first, end, peer)))

    def _at_this_stage(self) -> str:
        """What owners are told that come for what follows, while the end of this stage is on its way to others."""
        missing = set() if self._archive is None else set(range(self.plan.owners)) - self._archive.delivered
        whom = f", and waits for {listed(missing)} to have its end" if missing else ""
        return f"it is at {self.plan.run_id}{whom}"

    def _admit(self, first: int, end: int, peer: Guest) -> None:
        """The process of these owners is let in, if it may be. Errors: Refused; PeerError where the run fails, with
        which it is hung up on: it calls again."""
        plan = self.plan
        self._admission, called = self._admission.comes(first, end, peer)
        if called.then == "turn away":
            raise Refused(called.why)
        if called.then == "begin anew":
            self._fail(PeerError(f"{peer.name} has come again; its earlier process is gone"))
            raise PeerError("all begin anew")
        for start, gone in called.dropped:
            if isinstance(gone, Peer):
                gone.farewell(f"every owner must come once; owner {max(first, start)} came again; mend <<index>>")
                gone.discard()
            gone.close()
        peer.send(channels.HELLO, self._answer())
        start, stop, begin, end_of_piece = pieces_of(first, end, plan.dimension)[0]  # no other is larger
        backend, width = BACKENDS[plan.backend], end_of_piece - begin
        largest = backend.payload_bytes(plan.parties, plan.threshold, stop - start, width)[self.holder.party]
        if self.returns:  # what it says of its ledger and its kernels
            largest = max(largest, COUNT.size + MOST_SAID)
        if self._accounts is not None:
            largest = max(largest, MOST_SHOWN)
        if isinstance(peer, Peer):
            peer.admit(largest, (WINDOW + 2) * (largest + FRAME_COST))
            self._heartbeat.watch(peer)
            if self._accounts is not None:
                self._accounts.ask(peer, first, end)
        if self._archive is not None:
            self._after.append(asyncio.ensure_future(self._serve_after(self._archive, first, end, peer)))
        else:
            self._came(first, end, peer)
        self._changed.set()

    def _answer(self) -> bytes:
        gone = sum(1 << j for j in self._parties_gone()).to_bytes(64, "little")
        return ANSWER.pack(self.holder.party, self._greeting, self.state, gone)

    def _asked(self, peer: Peer, party: int, other: bytes) -> None:
        """Somebody of this run asks how it is. Errors: as `_check_plan`."""
        self._check_plan(peer, other)
        peer.send(channels.HELLO, self._answer())
        peer.admit(0, 0)
        self._askers = [each for each in self._askers if each.lost is None] + [peer]
        self._asked_at[party] = asyncio.get_running_loop().time()
        self._changed.set()

    def _check_certificate(self, peer: Peer, names: Sequence[str]) -> None:
        """Errors: Refused for one whose certificate is for none of these names. Of an authority that signs for several
        runs, others have one too."""
        if self._tls is None:
            return
        try:
            self._tls.check(peer, names)
        except PeerError as error:
            raise Refused(error.message) from None

    def _check_plan(self, peer: Peer, other: bytes) -> None:
        """Errors: Refused for one of another plan; Later for one that is at another stage of this run."""
        if other != self._greeting and peer.other_stage:
            raise Later(self._at_this_stage())
        if other != self._greeting:
            raise Refused(
                f"all processes must have the same plan; party {self.holder.party} has "
                f"another{self.says}; copy it again"
            )

    def _refused(self, peer: Peer, first: int, end: int, other: bytes) -> None:
        """A process of this run says that it will not come: nobody waits for it. Errors: Refused for one that is
        none."""
        name, certificate = refuser(self.plan, first, end)
        self._check_certificate(peer, (certificate,))
        self._check_plan(peer, other)
        if self._admission.stage == "waiting" and name not in self._heartbeat.connected:
            self._log(f"{name} refuses to take part")
            self._admission = self._admission.refuses(owner=first != PARTY)
            if self._admission.stage == "failed":
                self._fail(stays_away(name))
        self._asked(peer, NOBODY, other)

    def _fail(self, error: PeerError) -> None:
        if not self.lost.done():
            self.lost.set_exception(error)
            self.lost.exception()

    def _parties_gone(self) -> list[int]:
        """The parties that have left, without which the run goes on."""
        return sorted(self.holder.gone) if isinstance(self.holder, ToleratesLoss) else []

    def _came(self, first: int, end: int, peer: Guest) -> None:
        """An owners' process was admitted."""

    def _missing_text(self) -> str:
        return listed(self._admission.missing)

    def join(self, owner: InMemory) -> None:
        """The owner in this process comes in; it needs no certificate and no heartbeats."""
        self._admission = replace(self._admission, within=owner)
        owner.on_lost = self._on_lost

        async def come() -> None:
            greeting = await owner.receive(channels.HELLO)
            try:
                self._greeted(owner, greeting)
            except Refused as error:
                self._log(f"refused {owner.name}: {error.message}")
                owner.close()

        self._joining.append(asyncio.ensure_future(come()))

    async def admit(self, seconds: float) -> None:
        """Return when all owners are connected; one that leaves before may come again. Errors: PeerError when some do
        not come."""
        try:
            with self._heartbeat.waiting(self._missing_text):
                async with asyncio.timeout(seconds):
                    while self._admission.missing:
                        self._changed.clear()
                        await self._changed.wait()
        except TimeoutError:
            missing = len(self._admission.missing)
            raise PeerError(
                f"all owners must come within {seconds:g} s; {missing} of {self.plan.owners} did not: "
                f"{self._missing_text()}; start their processes{self._listener.refusals()}"
            ) from None
        self._admission = self._admission.begins()
        if not self.returns:
            self._listener.close()

    def beside(self, error: PeerError) -> PeerError:
        """The error that ends the wait for parties, with the owners that have not called either: all who are missing
        are named at once."""
        text = error.cause if isinstance(error, Told) else error.message
        if START not in text or not self._admission.missing:
            return error
        text = text.replace(START, f"; nor has this party heard of {self._missing_text()}{START}", 1)
        if isinstance(error, Told):
            return Told(Reason(text, error.code), error.teller)
        return PeerError(text, code=error.code)

    def turn_away(self) -> None:
        """Who calls from now on finds nobody: this process ends, and would hang up on them without a word."""
        self._listener.close()

    async def see_accounts(self) -> None:
        """Returns when all owners have shown that their accounts go on from where they were. Errors: PeerError where
        one does not."""
        for first, end, peer in self._admission.guests:
            await self._see_account(first, end, peer)

    async def _see_account(self, first: int, end: int, peer: Guest) -> None:
        if self._accounts is not None and isinstance(peer, Peer):
            self._accounts.see(peer.name, first, end, await peer.receive(channels.ACCOUNT))

    def _ended(self, first: int, end: int, peer: Guest, payload: bytearray) -> None:
        """Owners have everything, and say how their account has gone on."""
        if self._accounts is not None and isinstance(peer, Peer) and payload:
            self._accounts.see(peer.name, first, end, payload)

    async def spent(self) -> int:
        """The releases that the owners' own ledgers have lines of: one more than the last."""
        waited = [(peer, peer.receive(channels.SPENT)) for _, _, peer in self._admission.guests]
        return max([self._read_spent(peer, await each) for peer, each in waited], default=0)

    def _read_spent(self, peer: Guest, payload: bytearray) -> int:
        """The releases that owners say are spent; what follows it, of their kernels, is kept."""
        self.kernels[peer.name] = bytes(payload[COUNT.size :])
        return int(COUNT.unpack(exact(peer, payload[: COUNT.size], COUNT.size))[0])

    def begin(self, attempt: Attempt, past: Past) -> None:
        """The parties have agreed on the attempt: the owners are told, with what was opened before."""
        self.attempt, self._past = attempt, past
        for _, _, peer in self._admission.guests:
            self._tell_past(peer)
        self._past = {}

    def _tell_past(self, peer: Guest) -> None:
        peer.send(channels.BEGIN, pack_beginning(self.attempt, self._past))
        for release, payload in self._past.items():
            peer.send(block_label(release, -1), payload)

    def announce(self, bytes_sent: int) -> None:
        """Tell the owners that the noise made ahead is there, how many bytes this party has sent for it, and the token
        of the attempt."""
        for _, _, peer in self._admission.guests:
            peer.send(channels.READY, READY.pack(bytes_sent, self.token))

    async def agree(self, release: int) -> Presence:
        """The owners whose shares of this release have reached all parties; the parties agree on them."""
        return tuple(range(self.plan.owners))

    async def contributions(self, release: int) -> AsyncIterator[tuple[int, int, Share]]:
        """(first, end, share): this party's share (d,) of the sum of owners first .. end - 1, for each owners' process
        as it arrives.

        No message but consent.
        """
        owners = self._admission.guests
        awaited = [peer.receive(block_label(release, 0)) for _, _, peer in owners]
        for (first, end, peer), payload in zip(owners, awaited, strict=True):
            yield first, end, await self._adder.taken(first, end, peer, release, payload)

    async def rows(self, release: int) -> AsyncIterator[tuple[int, int, list[Share]]]:
        """(first, end, shares): this party's shares (k, d) of the vectors of owners first .. end - 1, in order, for
        each owners' process as it arrives. All are kept: 8 bytes a coordinate and owner. No message but consent."""
        owners = self._admission.guests
        awaited = [peer.receive(block_label(release, 0)) for _, _, peer in owners]
        for (first, end, peer), payload in zip(owners, awaited, strict=True):
            yield first, end, await self._adder.rows(first, end, peer, release, payload)

    def publish(self, release: int, opened: Ints, bytes_sent: int, present: Presence | None = None) -> None:
        """Send an opened release to all owners, with the bytes this party has sent so far, and who is in it where some
        may be missing."""
        bytes_sent += len(self._admission.guests) * (HEADER.size + result_size(self.plan))  # these frames too
        payload = pack_result(self.plan, opened, bytes_sent, present)
        for _, _, peer in self._admission.guests:
            peer.send(block_label(release, -1), payload)

    async def finish(self, cost: PartyCost) -> None:
        """Send the costs and end the connections in agreement. Everything was opened: an owner that has left, or does
        not agree within `FINISH_SECONDS`, is not waited for."""
        owners = self._admission.guests
        for _, _, peer in owners:
            peer.expects_end = True
            with contextlib.suppress(PeerError):
                peer.send(channels.COST, cost.pack())
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(FINISH_SECONDS):
                for first, end, peer in owners:
                    with contextlib.suppress(PeerError):
                        self._ended(first, end, peer, await peer.receive(channels.COST))
        self.abandon()
        await asyncio.sleep(0)

    async def linger(self, archive: Archive, cost: PartyCost, seconds: float, *, followed: bool = False) -> None:
        """Everything was opened. Returns when all owners have got it, those too that come again, and parties that came
        again know; at the latest after `seconds`, and after `PARTY_SECONDS` where only parties are missing. `followed`:
        who is not here now gets it at the gate of the next stage too, and is waited for `FOLLOWED_SECONDS`."""
        began = self._admission.stage == "begun"  # else it was over when this process came, and they came as quickly
        self._archive, self.state, self._admission = archive, OVER, self._admission.ends()
        for first, end, peer in self._admission.guests:
            parts = (
                self._part(archive, cost, first, end, peer) if began else self._serve_after(archive, first, end, peer)
            )
            self._after.append(asyncio.ensure_future(parts))
        loop = asyncio.get_running_loop()
        begin = loop.time()
        gone = self._parties_gone()

        def untold() -> str:
            missing = listed(set(range(self.plan.owners)) - archive.delivered)
            parties = [j for j in gone if self._asked_at.get(j, 0.0) < begin]
            if missing:
                return f"{missing} to have the end: start it again if it has ended; this process may be ended too"
            return f"party {parties[0]} to know" if parties else ""

        with self._heartbeat.waiting(untold):
            while untold():
                most = seconds if len(archive.delivered) < self.plan.owners else min(seconds, PARTY_SECONDS)
                if followed and not self._still_here(archive):
                    most = min(most, FOLLOWED_SECONDS)
                left = begin + most - loop.time()
                if left <= 0:
                    break
                self._changed.clear()
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(left):
                        await self._changed.wait()
        self.abandon()
        await asyncio.sleep(0)

    def _still_here(self, archive: Archive) -> bool:
        """Whether an owner is connected, or in this process, that has not got everything."""
        if self._admission.within is not None and self.holder.party not in archive.delivered:
            return True
        here = (each for each in self._admission.guests if not isinstance(each[2], Peer) or each[2].lost is None)
        return any(not set(range(first, end)) <= archive.delivered for first, end, _ in here)

    async def _part(self, archive: Archive, cost: PartyCost, first: int, end: int, peer: Guest) -> None:
        """The end of owners that were there to the last."""
        peer.expects_end = True
        with contextlib.suppress(PeerError):
            peer.send(channels.COST, cost.pack())
            self._ended(first, end, peer, await peer.receive(channels.COST))
            archive.deliver(first, end)
        self._changed.set()

    async def _serve_after(self, archive: Archive, first: int, end: int, peer: Guest) -> None:
        """Owners that come when all is over."""
        peer.expects_end = True
        with contextlib.suppress(PeerError):
            await self._see_account(first, end, peer)
            await archive.serve(first, end, peer)
        self._changed.set()

    def connections(self) -> list[Connection]:
        """The connections with owners."""
        admitted: list[Connection] = [peer for _, _, peer in self._admission.guests]
        within = self._admission.within
        return admitted if within is None or within in admitted else [*admitted, within]

    def abandon(self) -> None:
        """Close everything at once."""
        self._listener.close()
        for task in (*self._joining, *self._after):
            task.cancel()
        for _, _, peer in self._admission.guests:
            peer.close()
        for asker in self._askers:
            asker.close()

    def _on_lost(self, peer: Connection, error: PeerError) -> None:
        before = self._admission
        self._admission = before.loses(peer, final=refuses(error))
        if self._admission.stage == "failed":
            self._fail(error)
        elif self._admission is not before:
            self._left(peer, error)

    def _left(self, peer: Connection, error: PeerError) -> None:
        """It may come again."""
        if isinstance(peer, Peer):
            peer.discard()
        self._log(f"{peer.name} left before the run began: {error.message}")

    @property
    def adding_s(self) -> float:
        """Seconds spent adding up shares."""
        return self._adder.seconds

    @property
    def bytes_sent(self) -> int:
        return sum(peer.bytes_sent for _, _, peer in self._admission.guests)

    @property
    def bytes_received(self) -> int:
        return sum(peer.bytes_received for _, _, peer in self._admission.guests)
