"""The rounds of a check on replicated shares among n parties, of which t may do anything: sums that are shared anew,
openings, and what all must say alike. Used by the check of ANDs (`executor`) and by that of squares (`owners`).

A party's message goes to all other members of its target component. Where these are several, a cheat can tell each
another thing: so before anything is opened, each two parties compare a digest of all that was told for each component
that both hold. Any component has an honest member, and all honest members of it then hold the same.
Source: docs/active.md.
"""

import numpy as np

from dpmpc.errors import CheatError
from dpmpc.mpc.checked.coins import coins_for
from dpmpc.mpc.checked.session import CheckedSession
from dpmpc.mpc.numbers import domains
from dpmpc.mpc.numbers.field import Words
from dpmpc.mpc.parties.mesh import Channel
from dpmpc.mpc.replicated.layout import SharingLayout, Subset

DIGEST = 32  # bytes


class CheckedRounds:
    """One check's rounds, on one channel. `ordered`: this party's components, as shares of the check have them; among
    three parties the one first that takes its messages."""

    session: CheckedSession
    channel: Channel

    def begin_rounds(self, session: CheckedSession, channel: Channel) -> None:
        """To be called once, by whoever is made."""
        self.session, self.channel = session, channel
        me, ident = session.party, channel.ident
        self.layout = layout = SharingLayout.of(session.parties, session.threshold)
        self.others = sorted(session.peers)
        target = layout.target(me)
        self.ordered = sorted(session.mine, key=lambda s: s != target) if session.parties == 3 else list(session.mine)
        self._target, self._receivers = self.ordered.index(target), layout.receivers(me)
        self._senders = {j: self.ordered.index(layout.target(j)) for j in self.others if me in layout.target(j)}
        self._masks = [
            (k, j, session.stream(s, domains.SUMS, ident, j))
            for k, s in enumerate(self.ordered)
            for j in s
            if s != layout.target(j)
        ]
        self._coins = coins_for(session, channel)
        told = len(self._receivers) > 1  # else nobody can tell two different things
        self._told = [domains.TOLD.start(session.run_id, bytes(s), ident) for s in self.ordered] if told else []

    async def _share(self, part: Words) -> Words:
        """Shares (K, n) of the XOR of the parties' summands (n,). Cost: one round, a message to each receiver."""
        shares, message = np.zeros((len(self.ordered), *part.shape), dtype=part.dtype), part.copy()
        for k, j, stream in self._masks:
            mask = stream.words(part.shape).astype(part.dtype)
            shares[k] ^= mask
            if j == self.session.party:
                message ^= mask
        for _, k, words in await self._tell(message):
            shares[k] ^= words
        self._note(shares)
        return shares

    async def _tell(self, message: Words) -> list[tuple[int, int, Words]]:
        """(party, its component, its message), of this party's message, which its receivers get, and of those that
        come. Cost: one round."""
        senders = list(self._senders)
        received = await self._send(dict.fromkeys(self._receivers, message), senders, message)
        found = [(self.session.party, self._target, message)]
        return found + [(j, self._senders[j], words) for j, words in zip(senders, received, strict=True)]

    def _note(self, shares: Words) -> None:
        """Remembers what all holders of each component must have alike, (K, n), where they might be told different
        things."""
        for told, words in zip(self._told, shares, strict=False):
            told.update(words.tobytes())

    async def _send(self, outgoing: dict[int, Words], incoming: list[int], like: Words) -> list[Words]:
        """Elements of the check's field, as many as in `like` from each."""
        payloads = await self.channel.exchange(outgoing, incoming)
        for party, payload in zip(incoming, payloads, strict=True):
            if len(payload) != like.nbytes:
                raise self.cheat("the length of a message of the check", party)
        return [np.frombuffer(payload, dtype=like.dtype) for payload in payloads]

    async def _open(self, shares: Words) -> Words:
        """What the shares (K, n) share, XORed, (n,); each missing component comes from all of its holders. Cost: one
        round."""
        me = self.session.party
        outgoing = {j: np.ascontiguousarray(shares[self._lacks(j)]) for j in self.others}
        received = await self._send(outgoing, self.others, outgoing[self.others[0]])
        missing: dict[Subset, Words] = {}
        for j, words in zip(self.others, received, strict=True):
            held = [s for s in self.layout.mine(j) if me not in s]
            for s, row in zip(held, words.reshape(len(held), -1), strict=True):
                if (missing.setdefault(s, row) != row).any():
                    raise self.cheat("what two holders open of one component")
        opened: Words = np.bitwise_xor.reduce(np.stack([*shares, *missing.values()]), axis=0)
        return opened

    def _lacks(self, party: int) -> list[int]:
        """Places of this party's components that another one lacks, in the order of the layout."""
        return [self.ordered.index(s) for s in self.session.mine if party not in s]

    async def agree(self) -> None:
        """Returns when all have said that they have seen the same coins and, where messages have several receivers,
        that each two of them have been told the same. Cost: one round; two for several receivers, for who was not told
        something cannot see that others were told different things. Errors: CheatError."""
        log = self._coins.log()
        if len(self._receivers) == 1:
            return await self.all_say(log, "the coins")
        told = {s: each.digest() for s, each in zip(self.ordered, self._told, strict=True)}
        run, channel, me, said, due = self.session.run_id, self.channel.ident, self.session.party, {}, {}
        for j in self.others:
            value = log + b"".join(told[s] for s in self.session.mine if j in s)
            said[j] = domains.TOLD_ALIKE.digest(run, channel, me, j, value=value)
            due[j] = domains.TOLD_ALIKE.digest(run, channel, j, me, value=value)
        await self._same(said, due, "the coins and what each was told")
        await self.all_say(log, "that all were told the same")

    async def all_say(self, value: bytes, what: str) -> None:
        """Returns when all others have said the same. What is sent is a digest with the party's number, so nobody can
        say it by sending another's back. Cost: one round. Errors: CheatError for another one."""
        run, channel, me = self.session.run_id, self.channel.ident, self.session.party
        said = {j: domains.SAYS.digest(run, channel, what, j, value=value) for j in (me, *self.others)}
        await self._same(dict.fromkeys(self.others, said[me]), said, what)

    async def _same(self, said: dict[int, bytes], due: dict[int, bytes], what: str) -> None:
        told = await self.channel.exchange(said, self.others)
        if any(bytes(words) != due[j] for j, words in zip(self.others, told, strict=True)):
            raise self.cheat(what)  # of no party: a third may have told the two different things

    def cheat(self, what: str, party: int | None = None) -> CheatError:
        """The error to raise: `what` did not hold, as this party sees it of another."""
        return self.session.cheat(f"{what} of batch {self.channel.ident}", party)
