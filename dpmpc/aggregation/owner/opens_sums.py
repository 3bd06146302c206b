"""What runs ask of whoever opens their sums, and what those share that do it through one session."""

import contextlib
from types import TracebackType
from typing import Any, ClassVar, Protocol, Self, TypeVar

from dpmpc.aggregation.owner.encoding import decode
from dpmpc.aggregation.owner.session import Progress, Release, Session
from dpmpc.aggregation.plan.grid import Floats
from dpmpc.aggregation.plan.guarantee import report_of
from dpmpc.aggregation.plan.plan import Plan
from dpmpc.aggregation.wire.frames import PartyCost
from dpmpc.errors import PeerError, UsageError
from dpmpc.learning.adaptive_clipping import ClippingBound

Given = TypeVar("Given", contravariant=True)


class OpensSums(Protocol[Given]):
    """Whoever opens the sums of a run, one release after another: an `Aggregator` of vectors that are given here, sites
    whose owners have them (`runs.sites.SitesRun`), a courier of sealed shares (`flower.courier.Courier`). They enter
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


class ByOneSession:
    """Opens the sums of `plan` through `session`, as a context. `bound`: of clipping, if it follows the vectors; the
    same at all owners."""

    called: ClassVar[str]  # in errors
    session: Session

    def __init__(self, plan: Plan) -> None:
        """Whoever inherits begins `session` next."""
        self.plan = plan
        self.bound: ClippingBound | None = plan.adaptive
        self._closed = False

    def _taken(self, release: Release) -> Floats:
        """The mean (d,) of a release; a bound that follows the vectors moves."""
        mean = decode(self.plan, release.total, release.present)
        if self.bound is not None:
            mean, self.bound = self.bound.decode(mean)
        return mean

    def _check_open(self) -> None:
        if self._closed:
            raise UsageError(f"a closed {self.called} makes no releases; this one is closed; make another")

    def report(self) -> dict[str, Any]:
        """The promise and everything it rests on, how many releases were made, warnings: JSON values."""
        return report_of(self.plan, self.bound, self.session.next, self.session.parties_lost)

    def costs(self) -> list[PartyCost]:
        """Every party's costs, after the last release. The parties wait for `finish`: what they have opened may be kept
        before, and is had again by a process that dies meanwhile."""
        self._check_open()
        return self.session.costs()

    def finish(self) -> list[PartyCost]:
        """Every party's costs, after the last release; closes this."""
        costs = self.costs()
        self.session.finish()
        self.abandon()
        return costs

    def close(self) -> None:
        """End the parties that were started here, and all connections. After all planned releases this is agreed with
        the parties; before, they are told to stop. May be called twice."""
        if not self._closed and self.session.next >= self.plan.releases:
            with contextlib.suppress(PeerError):  # everything was opened already
                self.finish()
        self.abandon()

    def abandon(self, error: BaseException | None = None) -> None:
        """End everything at once; no process is left behind. Parties elsewhere are told why, as far as it is public.
        May be called twice."""
        if not self._closed:
            self._closed = True
            self.session.abandon(error)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self.close()
        else:
            self.abandon(error)
