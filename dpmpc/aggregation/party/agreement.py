"""The parties that are left agree on the owners of one release, whatever fails meanwhile.

Single-decree consensus in rounds, without a leader (Lamport, The Part-Time Parliament, 1998, with every party a
proposer of the same value). In round k each party reports whom it is connected with, the owners whose shares it has,
and what it locked last. With reports of all it is connected with, all of the same connections, and of enough parties,
it locks the owners of the latest lock that was reported, or where there is none those whose shares all have; and says
so. What enough parties have locked in one round is agreed, and whoever knows tells the others.

Why there is no second set: two rounds' reports have a party in common, for `enough` is more than half; so what was
agreed is reported to every later round as a lock, and the latest lock is it. In one round there is one set, for the
common party of two reports has named one list of connections. A party locks a set only of owners whose shares it has,
for it was among those who reported. A share of the release leaves a party after it knows what was agreed, never
before: so nobody ever sees shares of two sums under one noise vector, whose difference would be plain.
"""

import asyncio
import contextlib
import struct
from collections.abc import Awaitable, Callable, Sequence

from dpmpc.aggregation.party.ballot import TOLD, Ballot, BallotMessage, Said
from dpmpc.aggregation.plan.asked import Presence
from dpmpc.aggregation.plan.plan import Plan
from dpmpc.aggregation.wire.frames import exact, pack_presence, presence_bytes, unpack_presence
from dpmpc.errors import PeerError
from dpmpc.mpc.contract.backend import Holder, Share
from dpmpc.mpc.transport.channels import PRESENCE, exchange_label
from dpmpc.mpc.transport.wire import Peer

_ROUND = struct.Struct("<I")  # of the lock, from 1; 0: none
MOST_ROUNDS = 1 << 12


def message_bytes(plan: Plan) -> int:
    """The size of every frame of the agreement."""
    return _ROUND.size + -(-plan.parties // 8) + 2 * presence_bytes(plan)


class Agreement:
    """The agreement on one release, at one party: a `Ballot` on the party's connections. `enough`: so many parties must
    lock, more than half of all. `fewest`: owners that a release needs."""

    def __init__(self, plan: Plan, holder: Holder[Share], release: int, enough: int) -> None:
        self._plan, self._enough = plan, enough
        self._peers = {party: connection for connection, party in holder.connections().items()}
        self._ballot = Ballot(holder.party, frozenset(self._peers), enough, plan.fewest)
        self._channel = PRESENCE + release
        self._asked: dict[tuple[int, int], asyncio.Future[bytearray]] = {}
        self._heard: set[tuple[int, int]] = set()
        self.short: Presence = ()  # the owners of the last round in which they were too few

    async def reached(self, present: Callable[[], Presence], more: Callable[[], Awaitable[bool]]) -> Presence:
        """The owners that were agreed on. `present`: those whose shares are here now. `more`: waits for more of them,
        and says whether to go on. Errors: PeerError where too few owners, or too few parties, are left."""
        try:
            while self._ballot.round < MOST_ROUNDS:
                self._hear()
                if self._ballot.stage == "agreed":
                    return self._ballot.found
                if self._ballot.stage == "short":
                    self.short = self._ballot.found
                    if not await more():
                        break
                    self._hear()
                if self._ballot.waits:
                    await self._news()
                else:
                    self._take(self._ballot.begin(present()))
                if self._ballot.stage == "alone":
                    raise self._alone()
            raise TooFew("owners stayed too few")
        finally:
            for (j, exchange), future in self._asked.items():
                future.cancel()
                peer = self._peers[j]
                if exchange != TOLD and isinstance(peer, Peer):
                    peer.forget(exchange_label(self._channel, exchange))  # what is told comes, be it late

    def _alone(self) -> PeerError:
        ballot = self._ballot
        return PeerError(
            f"a release needs {self._enough} of {self._plan.parties} parties; party {ballot.me} is connected with "
            f"{len(ballot.left)} others; start the missing ones, and all others again"
        )

    # -- what happens ------------------------------------------------------------------------------------------------
    def _take(self, step: tuple[Ballot, Sequence[BallotMessage]]) -> None:
        """The next ballot; what it says is sent."""
        self._ballot, sent = step
        for each in sent:
            payload = self._pack(each.said)
            for j in each.to:
                with contextlib.suppress(PeerError):  # seen by whoever awaits its frames
                    self._peers[j].send(exchange_label(self._channel, each.exchange), payload)

    def _hear(self) -> None:
        """Takes what has come, frames before losses. A frame of a later exchange is asked for when it may count."""
        while fresh := [at for at in self._open() if at not in self._heard and self._asked[at].done()]:
            fresh.sort(key=lambda at: self._asked[at].exception() is not None)
            j, exchange = fresh[0]
            self._heard.add((j, exchange))
            if self._asked[j, exchange].exception() is None:
                self._take(self._ballot.hears(j, exchange, self._unpack(self._read(j, exchange))))
            else:
                self._take(self._ballot.loses(j))

    def _open(self) -> list[tuple[int, int]]:
        """The frames that are awaited, of those that are not lost; they are asked for."""
        ballot = self._ballot
        wanted = ballot.awaited if ballot.waits else (TOLD,)
        every = [(j, exchange) for j in sorted(ballot.others - ballot.lost) for exchange in wanted]
        for j, exchange in every:
            if (j, exchange) not in self._asked:
                self._asked[j, exchange] = self._peers[j].receive(exchange_label(self._channel, exchange))
        return every

    async def _news(self) -> None:
        """Returns when anything that is awaited has come, or somebody is lost."""
        pending = [self._asked[at] for at in self._open() if at not in self._heard]
        await asyncio.wait(pending, return_when=asyncio.FIRST_COMPLETED)

    # -- frames ------------------------------------------------------------------------------------------------------
    def _read(self, party: int, exchange: int) -> bytearray:
        return exact(self._peers[party], self._asked[party, exchange].result(), message_bytes(self._plan))

    def _pack(self, said: Said) -> bytes:
        bits = sum(1 << j for j in said.parties).to_bytes(-(-self._plan.parties // 8), "little")
        owners, locked = pack_presence(self._plan, said.owners), pack_presence(self._plan, said.locked)
        return _ROUND.pack(said.number) + bits + owners + locked

    def _unpack(self, payload: bytearray) -> Said:
        size, first = presence_bytes(self._plan), _ROUND.size + -(-self._plan.parties // 8)
        parties = int.from_bytes(payload[_ROUND.size : first], "little")
        return Said(
            tuple(j for j in range(8 * (first - _ROUND.size)) if parties >> j & 1),
            unpack_presence(self._plan, payload[first : first + size]),
            _ROUND.unpack_from(payload)[0],
            unpack_presence(self._plan, payload[first + size :]),
        )


class TooFew(PeerError):
    """Owners stayed too few."""
