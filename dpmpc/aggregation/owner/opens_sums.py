"""What runs ask of whoever opens their sums, and get: a sum after the other, and how far the run has come."""

from typing import Protocol, TypeVar

from dpmpc.aggregation.plan.asked import Attempt, Presence
from dpmpc.aggregation.plan.grid import Ints
from dpmpc.aggregation.wire.frames import PartyCost
from dpmpc.lazy import dataclass

Given = TypeVar("Given", contravariant=True)


@dataclass(frozen=True)
class Release:
    """One opened release: its number, the sum (d,) in grid steps, the bytes all processes have sent so far, and the
    owners whose vectors are in it, where some may be missing or fail their checks."""

    number: int
    total: Ints
    bytes_sent: int
    present: Presence | None = None


class Progress(Protocol):
    """`attempt`: of the run, agreed on where the parties do that; `next`: the release that is made next;
    `bytes_before`: sent by all processes when the noise made ahead was there."""

    attempt: Attempt
    next: int
    bytes_before: int

    @property
    def parties_lost(self) -> list[int]:
        """The parties that left after noise was made, where the backend opens sums without them."""


class OpensSums(Protocol[Given]):
    """Whoever opens the sums of a run, one release after another: an `Aggregator` of vectors that are given here, sites
    whose owners have them (`local.sites.SitesRun`), one who carries sealed shares (`carrier.Carrier`). They enter
    and leave as contexts."""

    @property
    def session(self) -> Progress:
        """The attempt of the run, and how far it has come."""

    def wait_for_noise(self) -> None:
        """Returns when the parties have the noise that they make ahead; a release would wait for it too."""

    def catch_up(self) -> list[Release]:
        """The releases that were made before the owners here came, or came again, in order; with those that are made
        meanwhile. Empty where nobody came late."""

    def open(self, vectors: Given) -> Release:
        """The next release, in grid steps."""

    def costs(self) -> list[PartyCost]:
        """Every party's costs, after the last release. The parties wait for `finish` where a process may come again."""

    def finish(self) -> list[PartyCost]:
        """Every party's costs, after the last release; the end."""
