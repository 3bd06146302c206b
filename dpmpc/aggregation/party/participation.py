"""In which releases owners take part at one party where they may come late, as a value: no clock, no connection.

`resuming_gate` has the connections: it asks here with which release a process may begin, whose shares count, who is
waited for and who gets what is published. So every order of these events can be tried, at several parties
(`tests/aggregation/test_participation.py`).

Why a release has one sharing of an owner, or none: a process that was told a release to begin with may have sent
shares of it to some parties. One that comes for the same owner is told the next release by every party that knows of
the first; and with a party that has left, which may be the only one that knows, by all.
"""

from collections.abc import Iterable
from dataclasses import replace
from typing import Generic, NamedTuple, TypeVar

from dpmpc.aggregation.plan.asked import Presence
from dpmpc.lazy import dataclass

S = TypeVar("S")  # a share


class Shared(NamedTuple, Generic[S]):
    """The share of a release's sum over the owners first .. end - 1."""

    release: int
    first: int
    end: int
    share: S


@dataclass(frozen=True)
class Participation(Generic[S]):
    """`start`: the attempt's first release; `open`: the one that takes shares. `told`: owners whose processes were told
    with which release they may begin. By the first owner of a process that is here: `behind`, those that have something
    to catch up with and have not said when they begin; `joined`, (first owner, the release it begins with) of those
    that have; `served`, those that get what is published. `shares`: those that are here."""

    start: int
    open: int
    told: frozenset[int] = frozenset()
    behind: frozenset[int] = frozenset()
    joined: tuple[tuple[int, int], ...] = ()
    served: frozenset[int] = frozenset()
    shares: tuple[Shared[S], ...] = ()

    @classmethod
    def of(cls, start: int) -> "Participation[S]":
        """Of an attempt that begins with this release."""
        return cls(start, start)

    # -- a process ---------------------------------------------------------------------------------------------------
    def comes(self, first: int, end: int) -> "Participation[S]":
        """The process of the owners first .. end - 1 is let in; what an earlier one of them said holds no more."""
        gone = frozenset(range(first, end))
        late = self.open > self.start or not self.told.isdisjoint(gone)
        return replace(
            self,
            behind=self.behind - gone | ({first} if late else frozenset()),
            joined=tuple(each for each in self.joined if each[0] not in gone),
            served=self.served - gone,
        )

    def names(self, first: int, end: int, *, lost: bool) -> "tuple[Participation[S], int]":
        """Also, the release with which this process may begin; it is told so, and all that is published from now on.
        `lost`: whether a party has left. One that was here before has sent shares of the open release at most, and they
        count where they have reached all parties. It shares the next one anew: of two sharings, parties could add up
        different ones."""
        owners = frozenset(range(first, end))
        again = lost or not self.told.isdisjoint(owners)
        return replace(self, told=self.told | owners, served=self.served | {first}), self.open + again

    def lags(self, first: int) -> "Participation[S]":
        """This process begins later than was named here: another party knows of an earlier one, or its own ledger."""
        return replace(self, behind=self.behind | {first})

    def joins(self, first: int, release: int) -> "Participation[S]":
        """This process begins with a release, and is waited for from it on."""
        joined = (*(each for each in self.joined if each[0] != first), (first, release))
        return replace(self, behind=self.behind - {first}, joined=joined)

    def shared(self, release: int, first: int, end: int, share: S) -> "Participation[S]":
        """All shares of a process have come, of a release that may be closed: then they are dropped. No owner counts
        twice, whatever its process sends."""
        if not self.takes(release):
            return self
        rest = (each for each in self.shares if each.release != release or each.end <= first or end <= each.first)
        return replace(self, shares=(*rest, Shared(release, first, end, share)))

    # -- a release ---------------------------------------------------------------------------------------------------
    def closes(self, release: int) -> "Participation[S]":
        """The parties have agreed on the owners of a release: later shares are dropped."""
        return replace(self, open=release + 1)

    def taken(self, release: int, agreed: Presence) -> "tuple[Participation[S], list[Shared[S]]]":
        """Also, the shares of the release that are added up, by first owner."""
        of = sorted((each for each in self.shares if each.release == release), key=lambda each: each.first)
        found = [each for each in of if each.first in agreed]
        if not set(agreed) <= {j for each in found for j in range(each.first, each.end)}:
            raise AssertionError(f"release {release} was agreed with owners whose shares are not here")
        return replace(self, shares=tuple(each for each in self.shares if each.release != release)), found

    # -- what is known -----------------------------------------------------------------------------------------------
    def takes(self, release: int) -> bool:
        """Whether shares of this release count."""
        return release >= self.open

    def present(self, release: int) -> Presence:
        """The owners whose shares of a release are here."""
        of = sorted((each.first, each.end) for each in self.shares if each.release == release)
        return tuple(j for first, end in of for j in range(first, end))

    def late(self, release: int, here: Iterable[int]) -> list[int]:
        """Of the processes that are here, by first owner: those that take part in a release and have not sent it."""
        sent = {each.first for each in self.shares if each.release == release}
        joined = dict(self.joined)
        return [at for at in here if at not in self.behind | sent and joined.get(at, release) <= release]
