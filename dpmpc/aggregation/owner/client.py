"""The owners' end of a run: their own connections to every party, shares out, opened releases in. Semi-honest.

One process may play all owners or some of them. Each owner's vector is shared on its own, with fresh randomness of the
operating system; blocks of owners travel in one frame.
"""

import asyncio
import contextlib
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import Any

from dpmpc.aggregation.owner.joining import FirstRelease
from dpmpc.aggregation.owner.needed import Needed
from dpmpc.aggregation.plan.asked import AGREED, Attempt, Presence
from dpmpc.aggregation.plan.grid import Ints
from dpmpc.aggregation.plan.identities import certificate_name, greeting, shows_accounts
from dpmpc.aggregation.plan.plan import Plan
from dpmpc.aggregation.wire import frames
from dpmpc.aggregation.wire.account_heads import Digests, HeadsShown
from dpmpc.aggregation.wire.frames import (
    ANSWER,
    BEGINNING,
    COUNT,
    HELLO,
    LATER,
    NOBODY,
    READY,
    WINDOW,
    PartyCost,
    exact,
    result_size,
    unpack_beginning,
    unpack_result,
)
from dpmpc.aggregation.wire.news import News, elsewhere, listen_around, read_answer, say_that_all_is_here
from dpmpc.errors import PeerError
from dpmpc.mpc.contract.backend import BACKENDS, Spares
from dpmpc.mpc.native.speed import kernels_in_use
from dpmpc.mpc.transport import channels
from dpmpc.mpc.transport.abort_reason import public_reason, was_away
from dpmpc.mpc.transport.addresses import Endpoint
from dpmpc.mpc.transport.channels import block_label
from dpmpc.mpc.transport.dial import Call, not_here
from dpmpc.mpc.transport.heartbeat import BEAT, STALL, Heartbeat
from dpmpc.mpc.transport.in_memory import InMemory
from dpmpc.mpc.transport.link import Connection, part
from dpmpc.mpc.transport.reaching import NOBODY_LISTENS
from dpmpc.mpc.transport.rendezvous import Rendezvous
from dpmpc.mpc.transport.tls import Tls
from dpmpc.mpc.transport.wire import FRAME_COST, Peer
from dpmpc.privacy.heads import NAME


class OwnerClient:
    """Connections of the owners `first` .. `end - 1` with all parties, for one attempt of a run."""

    def __init__(
        self,
        plan: Plan,
        attempt: Attempt,
        first: int = 0,
        end: int | None = None,
        within: Mapping[int, InMemory] = MappingProxyType({}),
        *,
        stall: float = STALL,
        say: Callable[[str], None] = lambda text: None,
        secret: str = "",
        all_made: bool = False,
        account: Digests | None = None,
    ) -> None:
        """`within`: connections with parties of this process, by number; the others are called. `say` gets the lines on
        who is waited for; `stall` and `secret` as the parties have them. `all_made`: the ledger here has a line of the
        last release, so parties that are not there any more may not come again. `account`: the digests of the lines of
        the account, whose head the parties are shown. Needs a running event loop only from `connect` on."""
        self.plan, self.attempt = plan, attempt
        self.first, self.end = first, plan.owners if end is None else end
        assert 0 <= self.first < self.end <= plan.owners
        self.peers: dict[int, Connection] = {}
        self.token = ""  # of the attempt, once the parties are ready
        self.lost: dict[int, PeerError] = {}  # parties that left after noise was made and are not needed
        backend = BACKENDS[plan.backend]
        spares = isinstance(backend, Spares) and not plan.checks_owners  # which all parties do together
        spare = backend.spare(plan.parties, plan.threshold) if isinstance(backend, Spares) and spares else 0
        self._sent: dict[int, int] = {}  # bytes of each party, as it said last
        self._within = within
        self._account = HeadsShown(account) if shows_accounts(plan, secret) else None
        self._here: dict[int, Connection] = {}
        self._heartbeat = Heartbeat(stall, say)
        self._secret, self._greeting = secret, greeting(plan, attempt, secret)
        self._returns = attempt == AGREED
        self._needed = Needed(plan.parties, spare, self._returns)
        self._all_made = all_made
        self._where: tuple[Sequence[Endpoint], Tls | None] = ((), None)
        self._cause: PeerError | None = None  # the first loss that was noticed here
        self.joining = FirstRelease(attempt.first_release)

    @property
    def name(self) -> str:
        """The name that this process's certificate must be for."""
        return certificate_name(self.plan, self.first, self.end)

    @property
    def lack(self) -> Callable[[str], None]:
        """Hears what this machine lacks yet."""
        return self._heartbeat.lack

    async def connect(self, endpoints: Sequence[Endpoint], seconds: float, tls: Tls | None = None) -> None:
        """Connect with every party. Errors: PeerError when one does not answer in time, runs another plan, or leaves
        before all are here."""
        # A party that was here may have begun with the others: without it there is no run to wait for.
        rendezvous = Rendezvous(range(len(endpoints)), self._on_lost, again=False)
        self._where = endpoints, tls
        if tls is not None:
            self._greeting = greeting(self.plan, self.attempt, self._secret, tls.digest)
        asking: asyncio.Task[None] | None = None
        if self._returns:
            run_id = self.plan.session_id(self.attempt)
            around = listen_around(endpoints, tls, run_id, self._greeting, NOBODY, partial(self._hear, rendezvous))
            asking = asyncio.ensure_future(around)
        self._here = rendezvous.here
        calls = [Call(endpoint, f"party{i}", tls) for i, endpoint in enumerate(endpoints)]

        def missing() -> str:
            found = {i: (calls[i].endpoint, calls[i].problem) for i in rendezvous.missing()}
            return not_here(found, rendezvous.here.keys() <= self._within.keys())

        async def come() -> None:
            both = rendezvous.all_come(), self._all_ended(rendezvous, calls)
            tasks = [asyncio.ensure_future(each) for each in both]
            try:
                done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
                done.pop().result()
            finally:
                for task in tasks:
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)

        for i, call in enumerate(calls):
            rendezvous.keep_calling(i, partial(self._call, rendezvous, i, call))
        try:
            with self._heartbeat.waiting(missing):
                async with asyncio.timeout(seconds):
                    await come()
        except TimeoutError:
            error = PeerError(
                f"every party must answer its owners within {seconds:g} s; missing: {missing()} (other "
                "owners are not known before); start it, or mend <<addresses>> "
                "/ <<base_port>>"
            )
            await rendezvous.end(public_reason(self.called, error))
            raise error from None
        except BaseException as error:
            await rendezvous.end(public_reason(self.called, error))
            raise
        finally:
            await rendezvous.end()
            if asking is not None:
                asking.cancel()
        self._needed = self._needed.meets(self._here)
        for i in self._needed.lost & self._here.keys():
            self._here.pop(i).close()
        self.peers = dict(sorted(self._here.items()))
        self.lost = {i: PeerError(f"party {i} has left the run") for i in sorted(self._needed.lost)}
        if self._needed.failed:
            raise next(iter(self.lost.values()))
        await self._show_account()

    async def _show_account(self) -> None:
        """The parties hear that the account here goes on from where they saw it. Errors: UsageError where it does not;
        PeerError where one that is needed leaves."""
        if self._account is None:
            return
        elsewhere = [(party, peer) for party, peer in self._left() if party not in self._within]
        for (party, peer), each in [(at, at[1].receive(channels.ACCOUNT)) for at in elsewhere]:
            try:
                peer.send(channels.ACCOUNT, self._account.first(party, await each))
            except PeerError as error:
                self._without(party, error)

    async def _all_ended(self, rendezvous: Rendezvous, calls: Sequence[Call]) -> None:
        """Errors: PeerError when all releases were made and nobody has listened for `stall` seconds; else it waits for
        ever."""
        loop = asyncio.get_running_loop()
        since = loop.time()
        while self._returns and self._all_made:
            if rendezvous.here or any(call.problem != NOBODY_LISTENS for call in calls):
                since = loop.time()
            elif loop.time() - since >= self._heartbeat.stall:
                raise PeerError(
                    f"all releases of this run were made, and no party has listened for {self._heartbeat.stall:g} s, "
                    f"<<stall>>: they have ended; {elsewhere(self.plan)}start the parties again, which keep what was "
                    "opened, and then this"
                )
            await asyncio.sleep(min(BEAT, self._heartbeat.stall))
        await loop.create_future()

    def _hear(self, rendezvous: Rendezvous, party: int, news: News) -> bool:
        """Parties without which the run goes on are not waited for."""
        self._needed, excused = self._needed.hears(party, news, rendezvous.here)
        for j in excused:
            rendezvous.excuse(j)
        return False

    async def _call(self, rendezvous: Rendezvous, party: int, call: Call) -> Connection:
        def check(peer: Connection, payload: bytearray) -> None:
            index, other, news = read_answer(exact(peer, payload, ANSWER.size))
            if index != party or other != self._greeting:
                raise PeerError(
                    f"{call.endpoint} must be party {party} of the same plan; party {index} with plan "
                    f"{other.hex()[:8]} answers; mend <<addresses>>, or copy plan.json or the list of keys again"
                )
            rendezvous.come(party, peer)
            self._hear(rendezvous, party, news)

        def admit(peer: Peer, payload: bytearray) -> None:
            check(peer, payload)
            self._heartbeat.watch(peer)
            largest = max(result_size(self.plan), frames.COST.size)
            largest = max(largest, BEGINNING.size + self.plan.releases, NAME * self.plan.owners)
            history = self.plan.releases if self.plan.dropouts or self._returns else 0
            peer.admit(largest, (WINDOW + 5 + history) * (largest + FRAME_COST))

        run_id = self.plan.session_id(self.attempt)
        hello = HELLO.pack(self.first, self.end, self._greeting)
        if party in self._within:
            inner = self._within[party]
            inner.on_lost = rendezvous.lost
            inner.send(channels.HELLO, hello)
            check(inner, await inner.receive(channels.HELLO))
            return inner
        return await call.greeted(partial(Peer, f"party {party}", run_id, rendezvous.lost), hello, admit)

    def _on_lost(self, peer: Connection, error: PeerError) -> None:
        """Whoever awaits something of it is told; the others' frames are on their way."""

    @property
    def called(self) -> str:
        """What others call this process."""
        one = self.end == self.first + 1 and self.plan.owners > 1
        return f"owner {self.first}" if one else "the owners' process"

    async def leave(self, reason: str) -> None:
        """End the connections, and tell the parties why."""
        self._heartbeat.stop()
        await part(list(self._here.values()), reason)

    async def ready(self) -> int:
        """The bytes all parties have sent so far, when every party has the noise it makes ahead."""
        tokens = set[bytes]()
        for party, payload in (await self._from_all(channels.READY, READY.size)).items():
            self._sent[party], token = READY.unpack(payload)
            tokens.add(token)
        tokens.discard(frames.NO_TOKEN)  # said by parties whose run is over
        if len(tokens) > 1:
            raise PeerError("all parties must have drawn one token for an attempt; they differ; start all again")
        self.token = tokens.pop().hex() if tokens else ""
        return sum(self._sent.values())

    async def begin(self, spent: int) -> tuple[Attempt, list[int]]:
        """(the attempt that the parties have agreed on, the releases before it whose vectors they tell: `opened`).
        `spent`: as many releases have a line in the ledger here. Errors: PeerError where parties differ."""
        kernels = (await asyncio.to_thread(kernels_in_use)).pack()
        for _, peer in self._left():
            with contextlib.suppress(PeerError):  # it is not needed, or else that is found below
                peer.send(channels.SPENT, COUNT.pack(spent) + kernels)
        told = [bytes(payload) for payload in (await self._from_all(channels.BEGIN)).values()]
        if any(each != told[0] for each in told[1:]):
            raise PeerError("all parties must tell of the same attempt; they differ; start all processes again")
        attempt, opened = unpack_beginning(told[0])
        self.joining = FirstRelease(attempt.first_release)
        return attempt, opened

    async def join(self, known: int, least: int = 0) -> int:
        """The bytes all parties have sent so far, where owners may come late: with which release this process may begin
        is known now (`joining`). It has the opened vectors of the releases before `known`, and gets the others; it
        takes part from `least` on. Returns when the parties have the noise that they make ahead. With which release it
        begins is said when it sends the first one: until then nobody waits for it, if it has something to catch up
        with."""
        for _, peer in self._left():
            with contextlib.suppress(PeerError):
                peer.send(channels.KNOWN, COUNT.pack(known))
        sent = await self.ready()
        answers = await self._from_all(channels.JOIN, COUNT.size)
        named = {party: int(COUNT.unpack(payload)[0]) for party, payload in answers.items()}
        self.joining = self.joining.named(named.values(), least, self.plan.releases)
        for party, peer in self._left():
            if self.joining.first > named.get(party, 0):  # it would wait for shares that do not come
                with contextlib.suppress(PeerError):
                    peer.send(channels.JOIN, COUNT.pack(LATER))
        return sent

    def missed(self, release: int) -> bool:
        """Whether this process gets a release without having taken part, as it comes late or catches up."""
        label, peers = block_label(release, -1), [peer for _, peer in self._left()]
        told = all(isinstance(peer, Peer) and peer.has(label) for peer in peers)
        return self.joining.misses(release, told=told)

    def _begins(self, release: int) -> None:
        """The parties hear with which release this process begins, if it has not begun."""
        if self.joining.behind:
            self.joining = self.joining.begins()
            for _, peer in self._left():
                with contextlib.suppress(PeerError):
                    peer.send(channels.JOIN, COUNT.pack(release))

    def _without(self, party: int, error: PeerError) -> None:
        """Go on without a party. Errors: the given one, if too many have left."""
        self.lost[party] = error
        self._cause = self._cause or error
        self._needed = self._needed.loses(party)
        if self._needed.failed:
            raise was_away(self.called, self._cause, self._heartbeat.away, self._heartbeat.stall)

    def _left(self) -> list[tuple[int, Connection]]:
        return [(party, peer) for party, peer in self.peers.items() if party not in self.lost]

    async def _from_all(self, label: int, size: int | None = None) -> dict[int, bytearray]:
        """The payload of this frame from every party that is left, by number; of `size` bytes, where that is known.
        Errors: PeerError where one that is needed leaves."""
        awaited = [(party, peer, peer.receive(label)) for party, peer in self._left()]
        found = {}
        for party, peer, each in awaited:
            try:
                payload = await each
            except PeerError as error:
                self._without(party, error)
                continue
            found[party] = payload if size is None else exact(peer, payload, size)
        return found

    async def send(self, release: int, block: int, payloads: Sequence[Any]) -> None:
        """Send one block of shares, a payload a party; waits for consent where too many are under way."""
        self._begins(release)
        if block >= WINDOW:
            await self._from_all(block_label(release, block - WINDOW), 0)
        for party, peer in self._left():
            try:
                peer.send(block_label(release, block), payloads[party])
            except PeerError as error:
                self._without(party, error)

    async def opened(self, release: int) -> tuple[Ints, int, Presence | None]:
        """(the opened sum of one release (d,) in grid steps, the bytes all parties have sent so far, who is in it).

        The last is None where nobody may be missing. Errors: PeerError when a party leaves, or when the parties'
        results differ.
        """
        payloads = await self._from_all(block_label(release, -1), result_size(self.plan))
        results = [unpack_result(self.plan, payload) for payload in payloads.values()]
        self._sent |= {party: sent for party, (_, sent, _) in zip(payloads, results, strict=True)}
        total, _, present = results[0]
        if any((other != total).any() or who != present for other, _, who in results[1:]):
            raise PeerError(
                f"all parties must open the same vector; release {release} differs; a party computes wrongly, see "
                "`dpmpc verify`"
            )
        return total, sum(self._sent.values()), present

    async def told(self, release: int, size: int) -> list[bytes]:
        """What each party remembers of accounts before a release (`channels.heads_label`). Errors: PeerError when one
        leaves."""
        return [bytes(each) for each in (await self._from_all(channels.heads_label(release), size)).values()]

    async def costs(self) -> list[PartyCost]:
        """The costs of every party that is left, after the last release; asked for once."""
        payloads = await self._from_all(channels.COST, frames.COST.size)
        return [PartyCost.unpack(payload) for payload in payloads.values()]

    async def finish(self) -> None:
        """Says that everything is here, and ends the connections in agreement."""
        for party, peer in self._left():
            with contextlib.suppress(PeerError):  # it may have left already
                peer.send(channels.COST, b"" if self._account is None else self._account.since(party))
        (endpoints, tls), run_id = self._where, self.plan.session_id(self.attempt)
        cut_off = [i for i in range(len(endpoints)) if i not in self._needed.left_out and self._cut_off(i)]
        self.abandon()
        await asyncio.sleep(0)
        if self._returns and cut_off:  # they would wait for this process
            owners = self.first, self.end
            tell = partial(say_that_all_is_here, tls=tls, run_id=run_id, greeting=self._greeting, owners=owners)
            await asyncio.gather(*(tell(i, endpoints[i]) for i in cut_off))

    def _cut_off(self, party: int) -> bool:
        """Whether the connection with a party was lost, or not waited for as another had everything."""
        peer = self.peers.get(party)
        return peer is None or (isinstance(peer, Peer) and peer.lost is not None)

    def abandon(self) -> None:
        """Close the connections at once."""
        self._heartbeat.stop()
        for peer in self._here.values():
            peer.close()

    @property
    def connected(self) -> list[str]:
        """The parties that are connected, by name."""
        return [*self._heartbeat.connected, *(inner.name for inner in self._within.values())]

    @property
    def bytes_sent(self) -> int:
        """Bytes these owners have sent to parties, headers included."""
        return sum(peer.bytes_sent for peer in self.peers.values())
