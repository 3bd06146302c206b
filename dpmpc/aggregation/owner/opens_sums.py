"""What runs ask of whoever opens their sums."""

from typing import Protocol, TypeVar

from dpmpc.aggregation.owner.session import Progress, Release
from dpmpc.aggregation.wire.frames import PartyCost

Given = TypeVar("Given", contravariant=True)


class OpensSums(Protocol[Given]):
    """Whoever opens the sums of a run, one release after another: an `Aggregator` of vectors that are given here, sites
    whose owners have them (`local.sites.SitesRun`), a courier of sealed shares (`flower.courier.Courier`). They enter
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
