"""Coins that no t of n parties know before all messages that a coin weighs have come: promised parts, all needed.

Every party draws a chain of parts, each the hash of the next, and promises them all by the hash of the first. A coin
is a hash of one part of each party. A party shows its part when all messages to it have come, and not before: so while
any honest party still waits for a message, the coin is unknown to everybody. A part that is not the preimage of the one
before is seen; a party that promised two chains to two parties makes two coins, and the logs of all coins are compared
before anything that depends on them is opened.

Guarantees: in the random oracle model for SHA-256: a part is uniform in 2^256 until it is shown.
"""

import secrets
from collections.abc import Mapping, Sequence

import numpy as np

from dpmpc.mpc.numbers import domains
from dpmpc.mpc.parties.checked_mesh import CheckedMesh
from dpmpc.mpc.parties.mesh import Channel, Words

PART = 32  # bytes
MOST = 16  # coins of one promise, where nobody says how many


class PromisedCoins:
    """One party's end, on one channel. `number`: of the batch there; `most`: coins of the promise, public."""

    def __init__(
        self, session: CheckedMesh, channel: Channel, number: int, others: Sequence[int], most: int = MOST
    ) -> None:
        self._session, self._channel, self._others = session, channel, others
        self._place = session.run_id, channel.ident, number
        self._parts, self._shown = self._chain(secrets.token_bytes(PART), most), 0  # how many were shown
        self.promise = self._parts.pop()
        self._known = {session.party: self.promise}
        self._log = domains.PROMISED_LOG.start(*self._place)

    def _chain(self, last: bytes, most: int = MOST) -> list[bytes]:
        """This party's parts, from the last to be shown to the promise."""
        parts = [last]
        for number in reversed(range(most)):
            parts.append(self._before(self._session.party, number, parts[-1]))
        return parts

    def _before(self, party: int, number: int, part: bytes) -> bytes:
        """A party's part of this number, of which 0 is its promise, from the one that it shows after it."""
        return domains.PROMISED.digest(*self._place, party, number, value=part)

    def promised(self, promises: Mapping[int, bytes]) -> None:
        """Takes what every other party promised; before the first coin."""
        self._known |= {j: bytes(promise) for j, promise in promises.items()}

    async def show(self, beside: bytes = b"") -> tuple[bytes, dict[int, bytes]]:
        """(a seed that nobody knew, what each other party said beside it). To be called when all messages to this party
        that the coin weighs have come. Cost: one round; 32 bytes and what is beside to each other party. Errors:
        CheatError for a part that was not promised."""
        own, others = self._parts.pop(), self._others
        pending = self._channel.exchange(dict.fromkeys(others, own + beside), others)
        shown, said = {self._session.party: own}, {}
        for j, payload in zip(others, await pending, strict=True):
            shown[j], said[j] = bytes(payload[:PART]), bytes(payload[PART:])
            if len(payload) != PART + len(beside) or self._before(j, self._shown, shown[j]) != self._known[j]:
                raise self._session.cheat(f"a promised part of a coin on channel {self._channel.ident}", j)
        self._known = shown
        self._shown += 1
        value = b"".join(shown[j] for j in sorted(shown))
        seed = domains.PROMISED_COIN.digest(*self._place, self._shown, value=value)
        self._log.update(seed)
        return seed, said

    def log(self, *more: bytes) -> bytes:
        """A digest of all coins so far, and of `more`."""
        log = self._log.copy()
        for each in more:
            log.update(len(each).to_bytes(8, "little") + each)
        return log.digest()


def words_of(value: bytes, bits: int) -> Words:
    """A digest as numbers below 2^(bits - 1), which are field elements."""
    number, width = int.from_bytes(value, "little"), bits - 1
    count = -(-8 * len(value) // width)
    return np.array([number >> width * k & (1 << width) - 1 for k in range(count)], dtype=np.uint64)


def digest_of(words: Words, bits: int) -> bytes:
    """The inverse of `words_of`; of other numbers, what it is does not matter."""
    number = sum(int(word) << (bits - 1) * k for k, word in enumerate(words))
    return (number & (1 << 8 * PART) - 1).to_bytes(PART, "little")
