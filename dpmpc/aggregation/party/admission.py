"""Which owners' processes a party lets in, and what the loss of one means, as a value: no clock, no connection.

`owner_gate` has the connections: it asks here what becomes of a caller, and does it. So every order in which owners
come, leave and come again at several parties can be tried (`tests/aggregation/test_meetings.py`).
"""

from collections.abc import Iterable
from dataclasses import replace
from typing import Generic, Literal, NamedTuple, TypeVar

from dpmpc.lazy import dataclass
from dpmpc.mpc.transport.in_memory import InMemory
from dpmpc.mpc.transport.wire import Peer

Guest = Peer | InMemory
G = TypeVar("G")  # a connection
Stage = Literal["waiting", "begun", "over", "failed"]
Then = Literal["admit", "serve", "turn away", "begin anew"]


class Called(NamedTuple, Generic[G]):
    """What becomes of a caller. "admit": it takes part; "serve": it gets the end of a run that is over; "turn away":
    with `why`; "begin anew": it is hung up on, as the run fails and all come again. `dropped`: connections of these
    owners from before, which may be dead."""

    then: Then
    dropped: tuple[tuple[int, G], ...] = ()
    why: str = ""


@dataclass(frozen=True)
class Admission(Generic[G]):
    """The owners' processes that a party is connected with. `owners`: how many there are; `returns`: processes may come
    again, after a run was interrupted and at its end; `late`: they may come, and come again, while it goes on.
    `within`: the connection with an owner in this process. `guests`: (first owner, end, connection), in order,
    no owner twice. `stage`: "waiting" for owners; "begun"; "over": all was opened; "failed": all must begin anew."""

    owners: int
    returns: bool = False
    late: bool = False
    within: G | None = None
    guests: tuple[tuple[int, int, G], ...] = ()
    stage: Stage = "waiting"

    # -- what happens ------------------------------------------------------------------------------------------------
    def comes(self, first: int, end: int, guest: G) -> "tuple[Admission[G], Called[G]]":
        """The process of the owners first .. end - 1 has called."""
        if not first < end <= self.owners:
            return self, Called("turn away", why=not_numbered(self.owners, first, end))
        before = tuple((start, each) for start, stop, each in self.guests if start < end and first < stop)
        if self.stage == "failed" or (self.stage == "begun" and not self.late):
            if self.returns:  # its earlier process is gone, noticed or not
                return replace(self, stage="failed"), Called("begin anew", before)
            return self, Called("turn away", why=_once(first))
        if any(each is self.within for _, each in before):
            return self, Called("turn away", why=_once(first, "is in one process with this party"))
        rest = tuple(each for each in self.guests if not (each[0] < end and first < each[1]))
        guests = tuple(sorted((*rest, (first, end, guest)), key=lambda each: each[0]))
        return replace(self, guests=guests), Called("serve" if self.stage == "over" else "admit", before)

    def loses(self, guest: object, *, final: bool = False) -> "Admission[G]":
        """A connection has ended. `final`: its process has said that it refuses to go on."""
        known = self.first_of(guest) is not None
        if self.stage == "over" or not (known or (guest is self.within and not self.late)):
            return self
        if self.late or (guest is not self.within and self.stage == "waiting" and not final):
            return self.without(guest)  # it may come again
        return replace(self, stage="failed")

    def refuses(self, *, owner: bool) -> "Admission[G]":
        """A process that is not here says that it will not come; `owner`: an owners' process, not a party."""
        needed = self.stage == "waiting" and not (self.late and owner)
        return replace(self, stage="failed") if needed else self

    def without(self, guest: object) -> "Admission[G]":
        """This connection is dropped."""
        return replace(self, guests=tuple(each for each in self.guests if each[2] is not guest))

    def begins(self) -> "Admission[G]":
        """The run begins with those that are here."""
        assert self.late or not self.missing
        return replace(self, stage="begun") if self.stage == "waiting" else self

    def ends(self) -> "Admission[G]":
        """Everything was opened."""
        return replace(self, stage="over")

    # -- what is known -----------------------------------------------------------------------------------------------
    def first_of(self, guest: object) -> int | None:
        """The first owner of this connection, if it is one of these."""
        return next((first for first, _, each in self.guests if each is guest), None)

    @property
    def missing(self) -> frozenset[int]:
        """The owners that are not connected."""
        return frozenset(range(self.owners)).difference(*(range(first, end) for first, end, _ in self.guests))

    @property
    def here(self) -> int:
        """How many owners are connected."""
        return sum(end - first for first, end, _ in self.guests)


def not_numbered(owners: int, first: int, end: int) -> str:
    """Why a caller is turned away that says it is owners first .. end - 1, of so many."""
    return (
        f"owners are numbered from 0 to {owners - 1}; {first}..{end - 1} came; mend <<index>>, or copy plan.json again"
    )


def _once(first: int, what: str = "came again") -> str:
    return f"every owner must come once; owner {first} {what}; mend <<index>>"


def listed(owners: Iterable[int]) -> str:
    """At most eight of the owners, in words."""
    every = sorted(owners)
    more = f" and {len(every) - 8} more" if len(every) > 8 else ""
    return ", ".join(f"owner {j}" for j in every[:8]) + more
