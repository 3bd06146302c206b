"""Parties check owners' shares: coins that owners cannot know, degrees of shares, and norms.

Everything happens after all shares of a release have come. `OwnerCheck` has what every backend does alike; what differs
is where random sharings come from. Every value that is opened before the one bit an owner is masked by a sharing that
no t parties know. docs/owners.md has the argument.
"""

import secrets
from abc import ABC, abstractmethod
from collections.abc import Sequence

import numpy as np

from dpmpc.errors import PeerError
from dpmpc.mpc.contract.owner_checks import FailedOwners, OwnerTest
from dpmpc.mpc.numbers import domains, field
from dpmpc.mpc.numbers.field import Words
from dpmpc.mpc.numbers.prg import Prg
from dpmpc.mpc.numbers.residues import failing
from dpmpc.mpc.owner_checks.sums import OwnerSums, owner_sums
from dpmpc.mpc.parties.mesh import Mesh
from dpmpc.mpc.parties.session import Session

COIN = 32  # bytes of each party's part of a coin, and of the promise of it


class OwnerCheck(ABC):
    """One release's check at one party, on channels of its own. Shares are checked; norms where a class says so."""

    def __init__(self, mesh: Mesh, threshold: int, ident: int, test: OwnerTest) -> None:
        self.mesh, self.threshold, self.ident, self.test = mesh, threshold, ident, test
        self.channel = mesh.channel(ident)
        self.others = sorted(mesh.peers)

    async def run(self, rows: Sequence[Words]) -> FailedOwners:
        """The owners that failed. `rows`: this party's shares (k, d), all owners' in order: they are fixed now."""
        assert sum(map(len, rows)) == self.test.owners
        coin = await self.coin()
        sums = await owner_sums(rows, coin, self.test)
        bad = await self.inconsistent(sums.weighted)
        return FailedOwners(bad, await self.too_long(rows, _cleared(sums, bad)))

    async def coin(self) -> bytes:
        """A seed that nobody could know before all parties had all shares: each party promises its part when it has
        them, and shows it when all have promised. Cost: two rounds, 32 bytes to each other party in each. Errors:
        PeerError for a part that was not promised."""
        own = secrets.token_bytes(COIN)
        promised = await self._all(self._promise(self.mesh.party, own))
        shown = await self._all(own)
        for j in self.others:
            if self._promise(j, shown[j]) != promised[j]:
                raise self.broken("a promised part of a coin", j)
        shown[self.mesh.party] = own
        return domains.OWNERS_COIN.digest(self.mesh.run_id, self.ident, value=b"".join(shown[j] for j in sorted(shown)))

    def _promise(self, party: int, part: bytes) -> bytes:
        return domains.OWNERS_PROMISE.digest(self.mesh.run_id, self.ident, party, value=part)

    async def _all(self, said: bytes) -> dict[int, bytes]:
        """What each other party says, of as many bytes. Cost: one round."""
        payloads = await self.channel.exchange(dict.fromkeys(self.others, said), self.others)
        found = {j: bytes(payload) for j, payload in zip(self.others, payloads, strict=True)}
        for j, payload in found.items():
            if len(payload) != len(said):
                raise PeerError(
                    f"party {j} sent {len(payload)} bytes where {len(said)} were due; are all parties of one version?"
                )
        return found

    def broken(self, what: str, party: int) -> PeerError:
        """The error to raise where a party did not do what it must."""
        return PeerError(f"{what} must hold; that of party {party} does not; start all parties again")

    @abstractmethod
    async def masks(self, count: int) -> Words:
        """Shares (count,) of degree t of random numbers that no t parties know."""

    async def inconsistent(self, weighted: Words) -> tuple[int, ...]:
        """The owners of whose shares `weighted` (sums, m), each plus a random sharing, some are of no polynomial of
        degree t. Every party sees all shares of the masked numbers. Cost: the masks; one round, 8 bytes an owner and
        sum to each other party."""
        return self._owners_of(failing(await self._masked(weighted), self.threshold))

    async def _masked(self, weighted: Words) -> dict[int, Words]:
        """The shares (sums m,) of all parties of the masked numbers, by party."""
        mine = field.add(weighted.reshape(-1), await self.masks(weighted.size))
        return {self.mesh.party: mine, **await self._shares_of_all(mine)}

    def _owners_of(self, columns: Sequence[int]) -> tuple[int, ...]:
        return tuple(sorted({k % self.test.owners for k in columns}))

    async def _shares_of_all(self, mine: Words) -> dict[int, Words]:
        received = await self.channel.words(dict.fromkeys(self.others, mine), self.others, mine.size)
        for j, words in zip(self.others, received, strict=True):
            if words.max(initial=0) >= field.P:
                raise self.broken("that shares are below p = 2^61 - 1", j)
        return dict(zip(self.others, received, strict=True))

    async def too_long(self, rows: Sequence[Words], sums: OwnerSums) -> tuple[int, ...]:
        """The owners whose norms fail; where norms are not checked, none. Of zeros none fails. `rows`: as
        given, `sums`: of them, with zeros in place of owners whose shares are inconsistent."""
        return ()


class PrssCheck(OwnerCheck):
    """Random sharings without a message, by the session's keys."""

    def __init__(self, session: Session, ident: int, test: OwnerTest) -> None:
        super().__init__(session, session.threshold, ident, test)
        self.session = session

    async def masks(self, count: int) -> Words:
        n, me = self.session.parties, self.session.party
        total = np.zeros(count, dtype=np.uint64)
        for s in self.session.mine:
            drawn = field.uniform(self.session.stream(s, domains.OWNER_SHARES, self.ident), (count,))
            total = field.add(total, field.mul(drawn, field.subset_weight(s, n, me)))
        return total


class DealtCheck(OwnerCheck):
    """Random sharings dealt by t + 1 parties, of which any t miss one. Shares alone are checked."""

    async def masks(self, count: int) -> Words:
        """Cost: one round; 8 bytes a number from each of t + 1 parties to each other one."""
        me, n, dealers = self.mesh.party, self.mesh.parties, range(self.threshold + 1)
        outgoing: dict[int, Words] = {}
        total = np.zeros(count, dtype=np.uint64)
        if me in dealers:
            prg = Prg.from_os()
            dealt = field.share(field.uniform(prg, (count,)), n, self.threshold, prg)
            outgoing = {j: dealt[j] for j in self.others}
            total = dealt[me].copy()
        incoming = [j for j in self.others if j in dealers]
        for j, words in zip(incoming, await self.channel.words(outgoing, incoming, count), strict=True):
            if words.max(initial=0) >= field.P:
                raise self.broken("that shares are below p = 2^61 - 1", j)
            total = field.add(total, words)
        return total


def _cleared(sums: OwnerSums, owners: Sequence[int]) -> OwnerSums:
    """The sums that zeros in place of these owners' vectors would have."""
    weighted, halves, squares = (array.copy() for array in (sums.weighted, sums.halves, sums.squares))
    for array in (weighted, halves, squares):
        array[..., list(owners)] = 0
    return OwnerSums(weighted, halves, squares)
