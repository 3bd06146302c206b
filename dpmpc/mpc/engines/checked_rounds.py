"""The rounds of a check among three parties, of which one may do anything: coins, sums that are shared anew, openings,
and what all must say alike. Used by the check of ANDs (`checked`) and by that of squares (`owners_checked`).

Party j shares component (j, j + 1) with its successor j + 1, the only receiver of its messages of sums, and (j - 1, j)
with its predecessor. Every coin is the sum of a piece of each component. A party lacks the piece of the two others; its
successor tells it, after all of the stage's messages of this party have come, and never before: so whatever a party may
add to a message is fixed before the coin that weighs it.
Source: docs/active.md.
"""

import hashlib

import numpy as np

from dpmpc.errors import CheatError
from dpmpc.mpc.checked_session import CheckedSession
from dpmpc.mpc.engines.layout import Layout
from dpmpc.mpc.field import Words
from dpmpc.mpc.mesh import Channel
from dpmpc.mpc.prg import Prg

DIGEST = 32  # bytes
COIN = 16  # bytes of a piece of a coin


class CheckedRounds:
    """One check's rounds, on one channel. `ordered`: this party's components, the one that takes its messages first."""

    session: CheckedSession
    channel: Channel

    def begin_rounds(self, session: CheckedSession, channel: Channel) -> None:
        """To be called once, by whoever is made."""
        assert (session.parties, session.threshold) == (3, 1)
        self.session, self.channel = session, channel
        me, ident = session.party, channel.ident
        self.successor, self.predecessor = (me + 1) % 3, (me + 2) % 3
        target = Layout.of(3, 1).target(me)
        self.ordered = sorted(session.mine, key=lambda s: s != target)
        self._pieces = [session.stream(s, "coin", ident) for s in self.ordered]
        self._own = session.stream(self.ordered[1], "sums", ident, me)
        self._next = session.stream(self.ordered[0], "sums", ident, self.successor)
        self._log = hashlib.sha256(f"coins of batch {ident}".encode())

    async def _share(self, part: Words) -> Words:
        """Shares (2, n) of the sum of the parties' summands (n,). Cost: one round, a message to the successor."""
        own, following = (stream.words(part.shape).astype(part.dtype) for stream in (self._own, self._next))
        (received,) = await self._send({self.successor: part ^ own}, [self.predecessor], part)
        return np.stack([part ^ own ^ following, received ^ own])

    async def _send(self, outgoing: dict[int, Words], incoming: list[int], like: Words) -> list[Words]:
        """Elements of the check's field, as many as in `like` from each."""
        payloads = await self.channel.exchange(outgoing, incoming)
        for party, payload in zip(incoming, payloads, strict=True):
            if len(payload) != like.nbytes:
                raise self.cheat("the length of a message of the check", party)
        return [np.frombuffer(payload, dtype=like.dtype) for payload in payloads]

    async def _coin(self) -> Prg:
        """A coin that no party knew, for what has been sent. To be called when all of it has come. Cost: one round."""
        ours, other = (stream.words((COIN // 8,)) for stream in self._pieces)
        (piece,) = await self._send({self.predecessor: ours}, [self.successor], ours)
        seed = (ours ^ other ^ piece).tobytes()
        self._log.update(seed)
        return Prg(seed, "coin")

    async def _open(self, shares: Words) -> Words:
        """What the shares (2, n) share, (n,); the missing component comes from both of its holders. Cost: one round."""
        ours, other = np.ascontiguousarray(shares[0]), np.ascontiguousarray(shares[1])
        outgoing = {self.predecessor: ours, self.successor: other}
        first, second = await self._send(outgoing, [self.successor, self.predecessor], ours)
        if not (first == second).all():
            raise self.cheat("what two holders open of one component")
        opened: Words = ours ^ other ^ first
        return opened

    async def all_say(self, digest: bytes, what: str) -> None:
        """Returns when both others have sent this digest. Cost: one round. Errors: CheatError for another one."""
        others = [self.successor, self.predecessor]
        for party, said in zip(others, await self.channel.exchange(dict.fromkeys(others, digest), others), strict=True):
            if bytes(said) != digest:
                raise self.cheat(what, party)

    def cheat(self, what: str, party: int | None = None) -> CheatError:
        """The error to raise: `what` did not hold, as this party sees it of another."""
        return self.session.cheat(f"{what} of batch {self.channel.ident}", party)
