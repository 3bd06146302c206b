"""Owners that learn: each release is the mean of what a learner makes of the model so far, and moves the model."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from dpmpc.aggregation.owner.encoding import decode
from dpmpc.aggregation.owner.opens_sums import Release
from dpmpc.aggregation.plan.grid import Floats
from dpmpc.aggregation.plan.plan import Plan
from dpmpc.aggregation.wire.frames import rows_of_block
from dpmpc.learning.method import Learner
from dpmpc.run.owners import Ended, Made, Opens, Sends, nobody
from dpmpc.run.resume import Since
from dpmpc.run.run import RecordsHere
from dpmpc.run.seat import Seat


class Learns(RecordsHere):
    """The owners here of a plan that trains a model (`run.owners.Sends`), and their records.
    `learner`: has them; its model follows what was opened, the same at every process. `hears`: told what becomes of the
    releases. `opens`: who opens the sums, where owners elsewhere have the records."""

    def __init__(
        self, plan: Plan, learner: Learner, hears: Callable[..., None] = nobody, doing: str = "training",
        opens: Opens | None = None,
    ) -> None:  # fmt: skip
        self.plan, self.learner, self.hears, self.doing, self.opens = plan, learner, hears, doing, opens

    def plays(self, plan: Plan, seat: Seat, since: Since) -> AbstractContextManager[Sends]:
        """These."""
        return nullcontext(self)

    def vectors(self) -> Iterator[Floats]:
        """See `Sends`."""
        return self.learner.vectors(rows_of_block(self.plan.dimension))

    def takes(self, release: Release, made: Made | None) -> None:
        """The model moves."""
        self.learner.apply(decode(self.plan, release.total, release.present))

    def keeps(self, ended: Ended) -> Any:
        """The model is in memory alone."""
