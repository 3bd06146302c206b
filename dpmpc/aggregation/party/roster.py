"""The owners' processes that a party is connected with."""

from collections.abc import Iterable, Iterator

from dpmpc.mpc.transport.in_memory import InMemory
from dpmpc.mpc.transport.link import Connection
from dpmpc.mpc.transport.wire import Peer

Guest = Peer | InMemory


class Roster(dict[int, tuple[int, Guest]]):
    """By first owner: (end, connection)."""

    def each(self) -> list[tuple[int, int, Guest]]:
        """(first, end, connection) of every process, in order."""
        return [(first, *self[first]) for first in sorted(self)]

    def within(self, first: int, end: int) -> Iterator[tuple[int, Guest]]:
        """(first owner, connection) of the processes that have any of the owners first .. end - 1; they may be taken
        off meanwhile."""
        for start, (stop, peer) in list(self.items()):
            if start < end and first < stop:
                yield start, peer

    def first_of(self, peer: Connection) -> int | None:
        """The first owner of this connection, if it is one of these."""
        return next((first for first, (_, each) in self.items() if each is peer), None)

    def missing(self, owners: int) -> set[int]:
        """Those of so many owners that are not connected."""
        here = (range(first, end) for first, (end, _) in self.items())
        return set(range(owners)).difference(*here)

    @property
    def here(self) -> int:
        """How many owners are connected."""
        return sum(end - first for first, (end, _) in self.items())


def listed(owners: Iterable[int]) -> str:
    """At most eight of the owners, in words."""
    every = sorted(owners)
    more = f" and {len(every) - 8} more" if len(every) > 8 else ""
    return ", ".join(f"owner {j}" for j in every[:8]) + more
