"""What owners and parties say of owners' accounts when they meet, and when the last release is made: `privacy.heads`.

A party sends each owners' process the head that it remembers of its account for the plan's data; the owner checks that
its file goes on from there, and sends what shows it. At the end, with all lines of this run in the file, it sends what
followed since. So what a backup brings back, or a second machine does not know, is missed at the next meeting.
"""

from collections.abc import Callable, Sequence

from dpmpc.aggregation.plan.identities import owner_of_account
from dpmpc.aggregation.plan.plan import Plan
from dpmpc.errors import PeerError, UsageError
from dpmpc.mpc.transport.channels import ACCOUNT
from dpmpc.mpc.transport.link import Connection
from dpmpc.privacy.heads import Head, HeadError, Memory, seen, shown

Digests = Callable[[], Sequence[bytes]]  # of the lines of an account's file, as it is now


class HeadsShown:
    """An owners' process's side: what it has shown each party of its account. `digests` None: it keeps none."""

    def __init__(self, digests: Digests | None) -> None:
        self._digests = digests
        self._heads: dict[int, Head] = {}  # by party: the last that it was shown

    def first(self, party: int, remembered: bytes | bytearray) -> bytes:
        """The answer to a party that remembers this. Errors: UsageError where the account does not go on from there;
        PeerError for what is no head."""
        if self._digests is None:
            return b""
        digests = self._digests()
        try:
            self._heads[party] = Head.unpack(remembered)
            payload = shown(digests, self._heads[party])
        except HeadError as error:
            raise UsageError(
                f"an account goes on from where party {party} last saw it; {error}, so it was put back, or this is a "
                "second machine; restore the newest copy of <<account>>, or where that is lost do as docs/privacy.md "
                "says",
                code="ledger",
            ) from None
        self._heads[party] = Head().after(digests)
        return payload

    def since(self, party: int) -> bytes:
        """What followed, for the last frame of a run; empty where nothing was shown."""
        if self._digests is None or party not in self._heads:
            return b""
        return shown(self._digests(), self._heads[party])


def memory_failed(party: int) -> PeerError:
    """For all to read: it names no path of the party's machine."""
    return PeerError(
        f"a party remembers owners' accounts in files below its own; party {party} cannot read or write one; "
        "mend its <<account>>"
    )


class Remembered:
    """A party's side: what it remembers of owners' accounts. `memory` None: nothing, and all is well."""

    def __init__(self, plan: Plan, party: int, memory: Memory | None) -> None:
        self._plan, self._party, self._memory = plan, party, memory
        self._heads: dict[str, Head] = {}  # by owner: where its account was when it was last asked, or has shown it

    def ask(self, peer: Connection, first: int, end: int) -> None:
        """Sends what is remembered of these owners' account. Errors: PeerError where that cannot be read."""
        who = owner_of_account(self._plan, first, end)
        try:
            self._heads[who] = Head() if self._memory is None else self._memory.of(who)
        except UsageError:  # it names a path of this machine
            raise memory_failed(self._party) from None
        peer.send(ACCOUNT, self._heads[who].pack())

    def see(self, name: str, first: int, end: int, payload: bytes | bytearray) -> None:
        """Remembers what these owners have shown. Errors: PeerError where it does not go on from what it was."""
        if self._memory is None:
            return
        who = owner_of_account(self._plan, first, end)
        try:
            self._heads[who] = seen(payload, self._heads[who])
            self._memory.keep(who, self._heads[who])
        except UsageError:
            raise memory_failed(self._party) from None
        except HeadError as error:
            raise PeerError(
                f"an owner's account goes on from where it was last seen; party {self._party} saw another of {name}: "
                f"{error}; restore its newest copy, or where that is lost do as docs/privacy.md says"
            ) from None
