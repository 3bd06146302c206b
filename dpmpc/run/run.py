"""A plan executed with all its stages, by a process that has its owners' records: the one function that does.

    run(plan, records, seat).outcome

The stages before come first, each in a folder of its name; then the plan's own releases; then the stages after. What
differs between a table of questions and a synthetic one, with or without a survey, is the plan, whose source says which
stages there are; and what the process shows meanwhile (`RecordsHere`). A process that comes again finds what is over,
and goes on there.
"""

import contextlib
import tempfile
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Protocol

from dpmpc.aggregation.owner.encoding import decode
from dpmpc.aggregation.plan.asked import Presence
from dpmpc.aggregation.plan.grid import Floats, Ints
from dpmpc.aggregation.plan.here import Here
from dpmpc.aggregation.plan.opening import opening_of
from dpmpc.aggregation.plan.plan import Plan
from dpmpc.lazy import dataclass
from dpmpc.learning.source import Schedule
from dpmpc.outcome import Outcome
from dpmpc.run.engine import nobody
from dpmpc.run.once import once
from dpmpc.run.resume import begun_as
from dpmpc.run.seat import Seat
from dpmpc.run.stages import RunStages, StagePart


class RecordsHere(Protocol):
    """The records of the owners that are played here."""

    def vectors(self, plan: Plan) -> Any:
        """(owners, dimension) the vectors of a plan's one release, whole or in blocks. Secret."""

    def ready(self, plan: Plan) -> None:
        """Told what is released next, before anything of it is spent. Errors: it is refused."""

    def shows(self, plan: Plan) -> AbstractContextManager[Callable[..., None]]:
        """Hears what becomes of the release of a plan, until its end."""


class VectorsOnce:
    """What owners send in one release, made when it begins and never where it is over (`RecordsHere`)."""

    def __init__(self, made: Callable[[], Any]) -> None:
        self._made = made

    def vectors(self, plan: Plan) -> Any:
        return self._made()

    def ready(self, plan: Plan) -> None:
        """Nothing is refused."""

    def shows(self, plan: Plan) -> AbstractContextManager[Callable[..., None]]:
        return contextlib.nullcontext(nobody)


@dataclass(frozen=True)
class OpenedRelease:
    """What the one release of a plan opened, public: the sum, the owners in it where some may be missing, and the bytes
    that the parties sent for it, 0 where that was before this process came."""

    plan: Plan
    total: Ints
    present: Presence | None = None
    bytes_sent: int = 0

    @property
    def mean(self) -> Floats:
        """(dimension,) the mean that was opened, with its noise."""
        return decode(self.plan, self.total, self.present)


@dataclass(frozen=True)
class FinishedPlan:
    """A plan that was executed, by what was opened: `stages` before its own release, in order, and `own`."""

    stages: tuple[OpenedRelease, ...]
    own: OpenedRelease

    @property
    def bytes_sent(self) -> int:
        """By a party, in all that was made now."""
        return sum(each.bytes_sent for each in (*self.stages, self.own))

    @property
    def outcome(self) -> Outcome:
        """What its own release means, as its source says it."""
        present = {} if self.own.present is None else {0: self.own.present}
        return self.own.plan.source.outcome(opening_of(self.own.plan, {0: self.own.total}, present))


def run(plan: Plan, records: RecordsHere, seat: Seat, until: contextlib.ExitStack | None = None) -> FinishedPlan:
    """Executes a plan whose source reads records once, stages and all, in the folder of `seat`; without one nothing
    stays of it. A run that was begun there goes on. `until`: the parties of its own release take leave while others go
    on, and are gone at the end of this stack.

    Errors: UsageError where another run is there; as of `RecordsHere.ready`, of stages and of releases."""
    made: dict[str, OpenedRelease] = {}
    before: list[OpenedRelease] = []

    def does(part: StagePart, here: Here) -> None:
        if part.plan.run_id != first:
            records.ready(part.plan)
        leave = until if part.stage is None else None
        made[part.plan.run_id] = _made(part, records, replace(seat, here=here), leave)

    def keeps(stage: Plan, total: Ints, folder: Path) -> None:
        before.append(OpenedRelease(stage, total))

    if seat.out is None and plan.source.schedule == Schedule():
        records.ready(plan)
        return FinishedPlan((), _made(StagePart(plan, plan), records, seat, until))
    with contextlib.ExitStack() as ends:
        if seat.out is None:  # stages follow from files
            kept = Path(ends.enter_context(tempfile.TemporaryDirectory(prefix="dpmpc-", ignore_cleanup_errors=True)))
            seat = replace(seat, here=seat.here.but(out=kept))
        plan = begun_as(plan, seat.here.folder)
        stages = RunStages(plan, seat.here, seat.books)
        stages.check()
        records.ready(next_one := stages.next())  # what is refused leaves no folder
        first = next_one.run_id
        ends.enter_context(stages.reserved())
        own = stages.run(does, lambda text: None, keeps)
    return FinishedPlan(tuple(made.get(each.plan.run_id, each) for each in before), made[own.run_id])


def _made(part: StagePart, records: RecordsHere, seat: Seat, until: contextlib.ExitStack | None) -> OpenedRelease:
    """The one release of a part, made now or found in the folder of `seat`."""
    plan, stage = part.plan, part.stage
    keeps = None if stage is None else lambda ended: stage.settle(ended.last.total, ended.last.present)
    with records.shows(plan) as emit:
        ended = once(plan, partial(records.vectors, plan), seat, plan.source.DOES, emit=emit, ends=until, keeps=keeps)
    sent = max((cost.bytes_to_parties + cost.bytes_to_owners for cost in ended.costs), default=0)
    return OpenedRelease(plan, ended.last.total, ended.last.present, sent)
