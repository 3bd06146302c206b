"""Heads of clients' accounts in a Flower run, over a server that can read and change none of them: `privacy.heads`.

Before each release a party tells the server, by owner, a name of the head that it remembers of the owner's account: 16
bytes for this attempt, release, owner and party, which say nothing of the head to who does not know it. A client looks
for a head of that name in its own file, and seals nothing where there is none: its account was put back, or it is a
second machine. What it seals is bound to the names that it was told, so where the server told others the shares do not
open; and it holds the head as it is then, with the line of this release, which the party remembers from there on.

Of data without a name nothing is told or shown. A node without a partition-id has no number of its own: it is told and
looks for nothing, and shows no head. Anybody can seal: a server that invents clients can have parties remember what no
account has, and the true client then takes no part until the parties' file on it is removed.
"""

from collections.abc import Callable, Sequence

from dpmpc.aggregation.plan.identities import owner_of_account
from dpmpc.aggregation.plan.plan import Plan
from dpmpc.aggregation.wire.account_heads import memory_failed
from dpmpc.errors import PeerError, UsageError
from dpmpc.flower.prepared import Prepared
from dpmpc.flower.sealing import Purpose
from dpmpc.privacy.heads import NAME, Head, Memory, goes_on, name_of


class ClientHeads:
    """A party's side. On disk is what each owner shows first in an attempt, and what all had shown at its end; between
    these a party knows more than its files."""

    def __init__(self, plan: Plan, party: int, memory: Memory | None) -> None:
        """`memory` None: nothing is remembered beyond this attempt."""
        self._plan, self._party, self._memory = plan, party, memory
        self._heads: list[Head] = []  # by owner
        self._names: dict[int, list[bytes]] = {}  # by release
        self._changed: set[int] = set()  # owners whose heads are not on disk
        self._written: set[int] = set()  # those of whom one of this attempt is

    def begin(self, release: int, purpose: Callable[[int, int], Purpose]) -> bytes:
        """What the server is told before a release: a name for each owner. `purpose`: of (release, owner). Errors:
        PeerError where what is remembered cannot be read."""
        if not self._heads:
            owners = range(self._plan.owners)
            try:
                self._heads = [Head() if self._memory is None else self._memory.of(self._who(j)) for j in owners]
            except UsageError:  # it names a path of this machine
                raise memory_failed(self._party) from None
        found = [name_of(head, purpose(release, j).at(self._party)) for j, head in enumerate(self._heads)]
        self._names[release] = found
        return b"".join(found)

    def told(self, release: int, owner: int) -> bytes:
        """The name that the owner was told before this release."""
        return self._names[release][owner]

    def see(self, owner: int, shown: bytes) -> None:
        """An owner shows the head that its account has now. Errors: PeerError where it was longer, or another."""
        head, last = Head.unpack(shown), self._heads[owner]
        if not head.lines:  # a node without a number of its own
            return
        if head.lines < last.lines or (head.lines == last.lines and head != last):
            raise PeerError(
                f"an owner's account goes on from where it was last seen; party {self._party} saw another of owner "
                f"{owner}; restore its newest copy, or where that is lost do as docs/privacy.md says"
            )
        if head != last:
            self._heads[owner] = head
            self._changed.add(owner)

    def keep(self, *, first: bool) -> None:
        """What was shown is on disk when this returns; with `first`, of owners of whom nothing was written in this
        attempt. Errors: PeerError where it cannot be written."""
        due = self._changed - self._written if first else set(self._changed)
        self._written |= due
        self._changed -= due
        if self._memory is None:
            return
        try:
            for owner in sorted(due):
                self._memory.keep(self._who(owner), self._heads[owner])
        except UsageError:
            raise memory_failed(self._party) from None

    def end(self, release: int) -> None:
        """What was told before a release is needed no more."""
        self._names.pop(release, None)

    def _who(self, owner: int) -> str:
        return owner_of_account(self._plan, owner, owner + 1)


def names_of(tables: object, prepared: Prepared, owner: int) -> list[bytes]:
    """What the server says that each party told this owner. `tables`: of each party, the names of all owners, or this
    one's alone. Errors: UsageError for anything else."""
    plan, found = prepared.plan, list[bytes]()
    for table in tables if isinstance(tables, list) else ():
        if isinstance(table, bytes) and len(table) in (NAME, NAME * plan.owners):
            found.append(table[-NAME:] if len(table) == NAME else table[NAME * owner : NAME * (owner + 1)])
    if len(found) != plan.parties:
        raise UsageError(
            "the server must carry what its parties remember of accounts; its message does not; update it",
            code="message",
        )
    return found


def check_names(digests: Sequence[bytes], told: Sequence[bytes], purpose: Purpose) -> None:
    """`digests`: of the lines of this client's account. Errors: UsageError where it does not go on from where a party
    last saw it."""
    for party, name in enumerate(told):
        if not goes_on(digests, name, purpose.at(party)):
            raise UsageError(
                f"an account goes on from where party {party} last saw it; this one does not, so it was put back, or "
                "this is a second machine; restore the newest copy of <<account>>, or where that is lost do as "
                "docs/privacy.md says"
            )
