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
from collections.abc import Awaitable, Callable

from dpmpc.aggregation.asked import Presence
from dpmpc.aggregation.frames import exact, pack_presence, presence_bytes, unpack_presence
from dpmpc.aggregation.plan import Plan
from dpmpc.errors import PeerError
from dpmpc.mpc.backend import Holder
from dpmpc.mpc.channels import PRESENCE, exchange_label
from dpmpc.mpc.wire import Peer

_ROUND = struct.Struct("<I")  # of the lock, from 1; 0: none
_TOLD = (1 << 31) - 1  # the exchange in which what was agreed is told
MOST_ROUNDS = 1 << 12


def message_bytes(plan: Plan) -> int:
    """The size of every frame of the agreement."""
    return _ROUND.size + -(-plan.parties // 8) + 2 * presence_bytes(plan)


class Agreement:
    """The agreement on one release, at one party. `enough`: so many parties must lock, more than half of all. `fewest`:
    owners that a release needs."""

    def __init__(self, plan: Plan, holder: Holder, release: int, enough: int) -> None:
        self._plan, self._me, self._enough = plan, holder.party, enough
        self._peers = {party: connection for connection, party in holder.connections().items()}
        self._channel = PRESENCE + release
        self._lock: tuple[int, Presence] = (0, ())
        self._asked: dict[tuple[int, int], asyncio.Future[bytearray]] = {}
        self._lost: set[int] = set()
        self.short: Presence = ()  # the owners of the last round in which they were too few

    async def reached(self, present: Callable[[], Presence], more: Callable[[], Awaitable[bool]]) -> Presence:
        """The owners that were agreed on. `present`: those whose shares are here now. `more`: waits for more of them,
        and says whether to go on. Errors: PeerError where too few owners, or too few parties, are left."""
        try:
            for k in range(MOST_ROUNDS):
                found = await self._round(k, present)
                if found is None:
                    continue
                if len(found) >= self._plan.fewest:
                    self._tell(found)
                    return found
                self.short = found
                if not await more():
                    break
            raise TooFew("owners stayed too few")
        finally:
            for (j, exchange), future in self._asked.items():
                future.cancel()
                peer = self._peers[j]
                if exchange != _TOLD and isinstance(peer, Peer):
                    peer.forget(exchange_label(self._channel, exchange))  # what is told comes, be it late

    # -- one round ---------------------------------------------------------------------------------------------------
    async def _round(self, k: int, present: Callable[[], Presence]) -> Presence | None:
        """What was agreed; too few owners, where all parties see too few; None where another round is due."""
        left = self._left()
        if len(left) + 1 < self._enough:
            raise PeerError(
                f"a release needs {self._enough} of {self._plan.parties} parties; party {self._me} is connected with "
                f"{len(left)} others; start the missing ones, and all others again"
            )
        mine = self._pack((self._me, *left), present(), *self._lock)
        self._send(2 * k, mine, left)
        if not await self._all(k, 2 * k, left):
            return self._told()
        reports = [self._unpack(self._read(j, 2 * k)) for j in left] + [self._unpack(bytearray(mine))]
        if any(parties != reports[-1][0] for parties, _, _, _ in reports):
            await self._all(k, None, left)
            return self._told()
        number, locked = max((number, locked) for _, _, number, locked in reports)
        if not number:
            locked = tuple(sorted(set.intersection(*(set(owners) for _, owners, _, _ in reports))))
            if len(locked) < self._plan.fewest:
                return locked
        assert set(locked) <= set(reports[-1][1]) or number, "a party locks what it has"
        self._lock = (k + 1, locked)
        self._send(2 * k + 1, self._pack((self._me, *left), locked, *self._lock), left)
        if await self._all(k, 2 * k + 1, left, self._enough - 1):
            return locked
        return self._told()

    async def _all(self, k: int, exchange: int | None, left: list[int], needed: int | None = None) -> bool:
        """Whether the frames of this exchange have come from `needed` of those left, by default from all of them. False
        as soon as somebody is lost, has gone on to the next round, or tells what was agreed; with `exchange` None that
        is waited for."""
        waited = [] if exchange is None else [self._ask(j, exchange) for j in left]
        others = [self._ask(j, which) for j in left for which in (2 * k + 2, _TOLD)]
        while True:
            come = sum(future.done() and future.exception() is None for future in waited)
            if exchange is not None and come >= (len(left) if needed is None else needed):
                return True
            if any(future.done() for future in others):  # a lost one's fail, too
                return False
            pending = [future for future in (*waited, *others) if not future.done()]
            await asyncio.wait(pending, return_when=asyncio.FIRST_COMPLETED)

    def _told(self) -> Presence | None:
        """What was agreed, where somebody has told it."""
        for (j, exchange), future in self._asked.items():
            if exchange == _TOLD and future.done() and future.exception() is None:
                return self._unpack(self._read(j, _TOLD))[1]
        return None

    def _left(self) -> list[int]:
        for (j, _), future in self._asked.items():
            if future.done() and future.exception() is not None:
                self._lost.add(j)
        for j in self._peers.keys() - self._lost:
            future = self._ask(j, _TOLD)
            if future.done() and future.exception() is not None:
                self._lost.add(j)
        return sorted(self._peers.keys() - self._lost)

    # -- frames ------------------------------------------------------------------------------------------------------
    def _ask(self, party: int, exchange: int) -> "asyncio.Future[bytearray]":
        if (party, exchange) not in self._asked:
            self._asked[party, exchange] = self._peers[party].receive(exchange_label(self._channel, exchange))
        return self._asked[party, exchange]

    def _read(self, party: int, exchange: int) -> bytearray:
        return exact(self._peers[party], self._asked[party, exchange].result(), message_bytes(self._plan))

    def _send(self, exchange: int, payload: bytes, to: list[int]) -> None:
        for j in to:
            with contextlib.suppress(PeerError):  # seen by whoever awaits its frames
                self._peers[j].send(exchange_label(self._channel, exchange), payload)

    def _tell(self, agreed: Presence) -> None:
        """Whoever is in another round hears it so."""
        self._send(_TOLD, self._pack((), agreed, 0, ()), self._left())

    def _pack(self, parties: tuple[int, ...], owners: Presence, number: int, locked: Presence) -> bytes:
        bits = sum(1 << j for j in parties).to_bytes(-(-self._plan.parties // 8), "little")
        return _ROUND.pack(number) + bits + pack_presence(self._plan, owners) + pack_presence(self._plan, locked)

    def _unpack(self, payload: bytearray) -> tuple[int, Presence, int, Presence]:
        """(parties as bits, owners, number of the lock, locked owners)."""
        size, first = presence_bytes(self._plan), _ROUND.size + -(-self._plan.parties // 8)
        return (
            int.from_bytes(payload[_ROUND.size : first], "little"),
            unpack_presence(self._plan, payload[first : first + size]),
            _ROUND.unpack_from(payload)[0],
            unpack_presence(self._plan, payload[first + size :]),
        )


class TooFew(PeerError):
    """Owners stayed too few."""
