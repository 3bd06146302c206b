"""What runs ask of whoever opens their sums."""

from typing import Protocol, TypeVar

from dpmpc.aggregation.owner.session import Release
from dpmpc.aggregation.plan.asked import Attempt
from dpmpc.aggregation.wire.frames import PartyCost

Given = TypeVar("Given", contravariant=True)


class OpensSums(Protocol[Given]):
    """Whoever opens the sums of a run, one release after another: an `Aggregator` of vectors that are given here, sites
    whose owners have them (`runs.sites.SitesRun`), a courier of sealed shares (`flower.courier.Courier`). They enter
    and leave as contexts."""

    @property
    def attempt(self) -> Attempt:
        """The attempt of the run, agreed on where the parties do that."""

    @property
    def next(self) -> int:
        """The release that is made next."""

    @property
    def bytes_before(self) -> int:
        """Sent by all processes when the noise made ahead was there."""

    @property
    def parties_lost(self) -> list[int]:
        """The parties that left after noise was made, where the backend opens sums without them."""

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
