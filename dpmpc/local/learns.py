"""Owners that learn: each release is the mean of what a learner makes of the model so far, and moves the model."""

from collections.abc import Callable, Iterator
from typing import Any

from dpmpc.aggregation.owner.encoding import decode
from dpmpc.aggregation.owner.opens_sums import Release
from dpmpc.aggregation.plan.grid import Floats
from dpmpc.aggregation.plan.plan import Plan
from dpmpc.aggregation.wire.frames import rows_of_block
from dpmpc.learning.method import Learner
from dpmpc.run.owners import Ended, Made, nobody


class Learns:
    """The owners here of a plan that trains a model (`run.engine.Sends`). `learner`: has their records; its model
    follows what was opened, the same at every process. `hears`: told what becomes of the releases."""

    def __init__(
        self, plan: Plan, learner: Learner, hears: Callable[..., None] = nobody, doing: str = "training"
    ) -> None:
        self.plan, self.learner, self.hears, self.doing = plan, learner, hears, doing

    def vectors(self) -> Iterator[Floats]:
        """See `Sends`."""
        return self.learner.vectors(rows_of_block(self.plan.dimension))

    def takes(self, release: Release, made: Made | None) -> None:
        """The model moves."""
        self.learner.apply(decode(self.plan, release.total, release.present))

    def keeps(self, ended: Ended) -> Any:
        """The model is in memory alone."""
