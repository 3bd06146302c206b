"""Checked parties check owners' shares: three parties, of which any one may do anything, with owners of its own choice.

Coins and everything that is opened are compared before they are used, so that honest parties weigh alike: of two sums
with different weights under one mask, a cheat would learn their difference. Three shares on no line tell that their
owner or a party has changed one, and not which: so that ends the run.
"""

import hashlib

import numpy as np

from dpmpc.errors import PeerError
from dpmpc.mpc import field
from dpmpc.mpc.checked_session import CheckedSession
from dpmpc.mpc.engines.owners import PrssCheck, failing
from dpmpc.mpc.field import Words
from dpmpc.mpc.owner_checks import OwnerTest


class CheckedOwners(PrssCheck):
    """As `PrssCheck`; whatever fails is final."""

    def __init__(self, session: CheckedSession, ident: int, test: OwnerTest) -> None:
        super().__init__(session, ident, test)
        self.session: CheckedSession = session

    def broken(self, what: str, party: int) -> PeerError:
        return self.session.cheat(what, party)

    async def coin(self) -> bytes:
        """As `OwnerCheck.coin`, compared. Cost: one round more."""
        coin = await super().coin()
        await self._same(b"coin", coin, "the coin for owners' shares")
        return coin

    async def inconsistent(self, weighted: Words) -> tuple[int, ...]:
        """None. Cost: one round more. Errors: CheatError with the owners whose shares are of no one vector."""
        mine = field.add(weighted, await self.masks(weighted.size))
        rows = {self.mesh.party: mine, **await self._shares_of_all(mine)}
        bad = failing(rows, self.threshold)
        if bad:
            raise self.session.over_for(
                f"the shares of owner {', '.join(map(str, bad))} are of no one vector; the owner dealt them so, or a "
                "party changed its own; find out which, then start a new run"
            )
        seen = np.ascontiguousarray(np.stack([rows[i] for i in sorted(rows)]))
        await self._same(b"shares", seen.tobytes(), "what was opened of owners' shares")
        return ()

    async def _same(self, kind: bytes, value: bytes, what: str) -> None:
        digest = hashlib.sha256(b"owners, " + kind + self._bound + value).digest()
        for j, said in (await self._all(digest)).items():
            if said != digest:
                raise self.session.cheat(what, j)
