"""Checks of owners' shares by parties that check each other: whatever is used was compared before, and what fails is
final. Shares on no polynomial tell that their owner or a party has changed one, and not which: to settle it in the open
an honest owner would have to show a share that it dealt. So a pair is named, never an owner alone."""

from collections.abc import Sequence

import numpy as np

from dpmpc.errors import PeerError
from dpmpc.mpc.contract.owner_checks import OwnerTest
from dpmpc.mpc.numbers import domains
from dpmpc.mpc.numbers.field import Words
from dpmpc.mpc.numbers.residues import failing
from dpmpc.mpc.owner_checks.checks import DealtCheck, OwnerCheck
from dpmpc.mpc.parties.checked_mesh import CheckedMesh


class ComparedCheck(OwnerCheck):
    """As `OwnerCheck`, compared."""

    session: CheckedMesh

    def broken(self, what: str, party: int) -> PeerError:
        return self.session.cheat(what, party)

    async def coin(self) -> bytes:
        """As `OwnerCheck.coin`. Cost: one round more."""
        coin = await super().coin()
        await self.same("coin", coin, "the coin for owners' shares")
        return coin

    async def inconsistent(self, weighted: Words) -> tuple[int, ...]:
        """None. Cost: one round more. Errors: CheatError with the pairs, of which one each has cheated."""
        rows = await self._masked(weighted)
        bad = self._owners_of(failing(rows, self.threshold))
        if bad:
            raise self.session.over_for(
                f"the shares of {self._pairs(rows, bad)} are of no one vector; the owner dealt them so, or the party "
                "changed its own, and to tell which would show a share; find out which, then start a new run"
            )
        seen = np.ascontiguousarray(np.stack([rows[i] for i in sorted(rows)]))
        await self.same("shares", seen.tobytes(), "what was opened of owners' shares")
        return ()

    def _pairs(self, rows: dict[int, Words], owners: Sequence[int]) -> str:
        """Owners, each with a party: with the one whose share alone is off, where that can be told; else with any of
        the others."""
        others = ", ".join(map(str, self.others[:-1])) + f" or {self.others[-1]}"
        columns = range(next(iter(rows.values())).size)
        named = []
        for owner in owners:
            mine = [k for k in columns if k % self.test.owners == owner]
            off = one_off({i: words[mine] for i, words in rows.items()}, self.threshold)
            named.append(f"owner {owner} at party {others if off is None else off}")
        return " and of ".join(named)

    async def same(self, kind: str, value: bytes, what: str) -> None:
        """Returns when all others have sent their digest of this value. Cost: one round."""

        def digest(party: int) -> bytes:
            return domains.OWNERS_SAME.digest(self.mesh.run_id, self.ident, kind, party, value=value)

        for j, said in (await self._all(digest(self.mesh.party))).items():
            if said != digest(j):
                raise self.session.cheat(what)  # it may be a third one that told them different things


def one_off(rows: dict[int, Words], threshold: int) -> int | None:
    """The one party without whose share all others' are of one polynomial, among n >= 2t + 2: where t at most are
    corrupt and the owner is honest, at least t + 1 honest shares are left, so that polynomial is the owner's, and this
    party has another share than it was dealt. None, where there is none, and among 2t + 1 parties: t corrupt ones can
    make any honest one look so."""
    if len(rows) < 2 * threshold + 2:
        return None
    found = [i for i in rows if not failing({j: words for j, words in rows.items() if j != i}, threshold)]
    return found[0] if len(found) == 1 else None


class ComparedShares(ComparedCheck, DealtCheck):
    """As `DealtCheck`, compared. Among n = 2t + 1 parties it says something where fewer than t of them are corrupt: t
    that are can make any shares of the others shares of one vector."""

    def __init__(self, session: CheckedMesh, ident: int, test: OwnerTest) -> None:
        DealtCheck.__init__(self, session, session.threshold, ident, test)
        self.session = session
        self._dealt = np.zeros(0, dtype=np.uint64)

    async def coin(self) -> bytes:
        """As `ComparedCheck.coin`. Masks are dealt before: one that knows the coin could take a deviation away."""
        self._dealt = await super().masks(self.test.owners * self.test.sums)
        return await super().coin()

    async def masks(self, count: int) -> Words:
        """Those that were dealt; once."""
        masks, self._dealt = self._dealt, np.zeros(0, dtype=np.uint64)
        assert masks.size == count
        return masks
