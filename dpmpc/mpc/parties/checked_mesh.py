"""A mesh whose parties check each other, whatever keys they have: the first check that fails is the end, and openings
that no t shares can change. Security with abort.
"""

from typing import Any

import numpy as np

from dpmpc.errors import PeerError
from dpmpc.mpc.contract.security import Verdict
from dpmpc.mpc.numbers import domains, field
from dpmpc.mpc.numbers.field import Words
from dpmpc.mpc.numbers.residues import failing, recombine
from dpmpc.mpc.parties.abort import AbortsForGood
from dpmpc.mpc.parties.mesh import Channel, Mesh


class CheckedMesh(AbortsForGood, Mesh):
    """As `Mesh`. After a failed check every later call fails with the same error."""

    threshold: int

    def __init__(self, *arguments: Any, **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        self._verdicts: list[Verdict] = []

    def judged(self, verdict: Verdict) -> None:
        """Note a batch whose check held, as all parties have said."""
        self._verdicts.append(verdict)

    def verdicts(self) -> list[Verdict]:
        """Those since this was asked last."""
        found, self._verdicts = self._verdicts, []
        return found

    async def here(self, channel: int, said: bytes = b"") -> None:
        """As `Mesh.here`. Errors: CheatError where parties say different things."""
        self.still_on()
        await super().here(channel, said)

    def apart(self, channel: int) -> PeerError:
        return self.cheat(f"that all are at one point of one attempt, on channel {channel}")

    async def open_words(self, shares: Words, channel: Channel) -> Words:
        """The values whose shares of degree t these are, from the shares of all parties, which must lie on one
        polynomial; the digests of what came out are compared.

        Cost: two rounds; to each other party 8 bytes a value, and 32. Errors: CheatError, before any party has given
        the values out, for shares below p that are of no one polynomial (any t wrong shares, where 2t < n) or
        another digest; PeerError for words that no share has.
        """
        self.still_on()
        flat = np.ascontiguousarray(shares).reshape(-1)
        others = sorted(self.peers)
        received = await channel.words(dict.fromkeys(others, flat), others, flat.size)
        for i, words in zip(others, received, strict=True):
            if words.max(initial=0) >= field.P:
                raise self.cheat("a share below p = 2^61 - 1", i)
        rows = {self.party: flat, **dict(zip(others, received, strict=True))}
        if failing(rows, self.threshold):
            raise self.cheat(f"that the shares opened on channel {channel.ident} are of one vector")
        first = sorted(rows)[: self.threshold + 1]
        opened = recombine([rows[k] for k in first], first).reshape(shares.shape)
        value = np.ascontiguousarray(opened).tobytes()
        digests = {i: domains.OPENED.digest(self.run_id, channel.ident, i, value=value) for i in rows}
        own = digests[self.party]
        for i, said in zip(others, await channel.exchange(dict.fromkeys(others, own), others), strict=True):
            if bytes(said) != digests[i]:
                raise self.cheat(f"the vector opened on channel {channel.ident}", i)
        return opened
