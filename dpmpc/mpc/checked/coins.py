"""Coins of a check on replicated shares: public randomness that no t parties knew before all that it weighs was sent.

Among three parties, of whom one is corrupt, a coin is the sum of a piece of each component. Party j shares component
(j, j + 1) with its successor, the only receiver of its messages, and (j - 1, j) with its predecessor. It lacks the
piece of the two others; its successor tells it, after all of the stage's messages of this party have come, and never
before: so whatever a party may add to a message is fixed before the coin that weighs it. (Its predecessor, which has
the piece too, could tell it early, and never tells it.)

Among more parties a message goes to several, and coins are promised (`parties.promised_coins`).
"""

from typing import Protocol

import numpy as np

from dpmpc.mpc.checked.session import CheckedSession
from dpmpc.mpc.numbers import domains
from dpmpc.mpc.numbers.prg import Prg
from dpmpc.mpc.parties.mesh import Channel
from dpmpc.mpc.parties.promised_coins import MOST, PromisedCoins

COIN = 16  # bytes of a piece


class Coins(Protocol):
    """One party's end, on one channel."""

    async def begin(self, coins: int = MOST) -> None:
        """To be called before anything that a coin weighs is sent. `coins`: how many there are at most."""

    async def next(self) -> Prg:
        """A coin that nobody knew, for what has been sent. To be called when all of it has come. Cost: one round."""

    def log(self) -> bytes:
        """A digest of all coins so far."""


def coins_for(session: CheckedSession, channel: Channel) -> Coins:
    """See the module."""
    return PieceCoins(session, channel) if session.parties == 3 else AllCoins(session, channel)


class PieceCoins:
    """Among three parties."""

    def __init__(self, session: CheckedSession, channel: Channel) -> None:
        me, self._session, self._channel = session.party, session, channel
        self._successor, self._predecessor = (me + 1) % 3, (me + 2) % 3
        with_successor, other = sorted(session.mine, key=lambda s: self._successor not in s)
        self._pieces = [session.stream(s, domains.COIN_PIECE, channel.ident) for s in (with_successor, other)]
        self._log, self._number = domains.COINS_LOG.start(session.run_id, channel.ident), 0

    async def begin(self, coins: int = MOST) -> None:
        """See `Coins`. No message."""

    async def next(self) -> Prg:
        """See `Coins`."""
        ours, other = (stream.words((COIN // 8,)) for stream in self._pieces)
        (payload,) = await self._channel.exchange({self._predecessor: ours}, [self._successor])
        if len(payload) != COIN:
            raise self._session.cheat(
                f"the length of a message of the check of batch {self._channel.ident}", self._successor
            )
        seed = (ours ^ other ^ np.frombuffer(payload, dtype="<u8")).tobytes()
        self._log.update(seed)
        self._number += 1
        return domains.COIN.stream(seed, self._session.run_id, self._channel.ident, self._number)

    def log(self) -> bytes:
        """See `Coins`."""
        return self._log.digest()


class AllCoins:
    """Among more parties: promised parts, all needed."""

    def __init__(self, session: CheckedSession, channel: Channel) -> None:
        self._session, self._channel, self._others, self._number = session, channel, sorted(session.peers), 0

    async def begin(self, coins: int = MOST) -> None:
        """See `Coins`. Cost: one round; 32 bytes to each other party."""
        self._coins = PromisedCoins(self._session, self._channel, 0, self._others, max(coins, MOST))
        said = await self._channel.exchange(dict.fromkeys(self._others, self._coins.promise), self._others)
        self._coins.promised({j: bytes(promise) for j, promise in zip(self._others, said, strict=True)})

    async def next(self) -> Prg:
        """See `Coins`."""
        seed, _ = await self._coins.show()
        self._number += 1
        return domains.COIN.stream(seed, self._session.run_id, self._channel.ident, self._number)

    def log(self) -> bytes:
        """See `Coins`."""
        return self._coins.log()
