"""A plan executed with all its stages, by a process that has its owners' records: the one function that does.

    run(plan, records, seat).outcome

The stages before come first, each in a folder of its name; then the plan's own releases; then the stages after. What
differs between a table of questions and a synthetic one, with or without a survey, is the plan, whose source says which
stages there are; and what the process shows meanwhile (`RecordsHere`). All of it is reserved before the first stage.
A process that comes again finds what is over, and goes on there.
"""

import contextlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from dpmpc.aggregation.owner.encoding import decode
from dpmpc.aggregation.plan.asked import Presence
from dpmpc.aggregation.plan.grid import Floats, Ints
from dpmpc.aggregation.plan.here import Here
from dpmpc.aggregation.plan.opening import opening_of
from dpmpc.aggregation.plan.plan import Plan
from dpmpc.aggregation.plan.stages import sum_of
from dpmpc.errors import UsageError
from dpmpc.folders import passing_folder
from dpmpc.lazy import dataclass
from dpmpc.learning.source import Opening, Schedule
from dpmpc.outcome import Outcome
from dpmpc.run.engine import Releasing, releases
from dpmpc.run.once import Once, begins, keep_sum, over, since_in
from dpmpc.run.owners import Ended, Sends, nobody
from dpmpc.run.reserve import Reserve
from dpmpc.run.resume import Since, begun_as
from dpmpc.run.seat import Seat
from dpmpc.run.stages import RunStages, StagePart


class RecordsHere(ABC):
    """The records of the owners that are played here."""

    def ready(self, plan: Plan) -> None:  # noqa: B027
        """Told what is released next, before anything of it is spent. Errors: it is refused; by default nothing is."""

    def then(self, plan: Plan) -> Plan:
        """The plan of the run's own releases, when all that comes before is opened: `plan`, which follows from it, or
        one that is made of what that found. Errors: nothing can follow."""
        return plan

    def coming(self, plan: Plan) -> Sequence[Plan]:
        """What is released after the releases of `plan` beside the stages that its source has, by plans of the price:
        it is reserved with all that comes before. By default nothing."""
        return ()

    def after(self, plan: Plan) -> Sequence[Plan]:
        """The same when the releases of `plan` are opened: the plans as they are executed, each a stage in a folder of
        its name, for no more than its price."""
        return ()

    @abstractmethod
    def plays(self, plan: Plan, seat: Seat, since: Since) -> AbstractContextManager[Sends]:
        """The owners of the releases of a plan, in the folder of `seat`, while these are made. `since`: what earlier
        attempts left. Errors: it is refused, before anything of it is spent."""


class ReadOnce(RecordsHere):
    """Records that are read when a release begins, and never where it is over."""

    def vectors(self, plan: Plan) -> Any:
        """(owners, dimension) the vectors of a plan's one release, whole or in blocks. Secret."""
        raise NotImplementedError

    def shows(self, plan: Plan) -> AbstractContextManager[Callable[..., None]]:
        """Hears what becomes of the release of a plan, until its end."""
        return contextlib.nullcontext(nobody)

    def doing(self, plan: Plan) -> str:
        """What is done meanwhile, for people."""
        return plan.source.DOES

    def keeps(self, plan: Plan, out: Path | None, ended: Ended) -> None:
        """What is written down of it in its folder, from when on it is over."""
        if out is not None:
            keep_sum(out, sum_of(plan, ended.last.total, ended.last.present).total)

    @contextlib.contextmanager
    def plays(self, plan: Plan, seat: Seat, since: Since) -> Iterator[Sends]:
        with self.shows(plan) as hears:
            yield Once(partial(self.vectors, plan), self.doing(plan), hears, partial(self.keeps, plan, seat.out))


@dataclass(frozen=True)
class OpenedRelease:
    """What the last release of a plan opened, public: the sum, the owners in it where some may be missing; and what
    became of its releases, None where that was before this process came."""

    plan: Plan
    total: Ints
    present: Presence | None = None
    ended: Ended | None = None

    @property
    def mean(self) -> Floats:
        """(dimension,) the mean that was opened, with its noise."""
        return decode(self.plan, self.total, self.present)

    @property
    def opening(self) -> Opening:
        """What its source makes an outcome of."""
        return opening_of(self.plan, {0: self.total}, {} if self.present is None else {0: self.present})

    @property
    def bytes_sent(self) -> int:
        """The most that a party sent for the releases that were made now."""
        costs = () if self.ended is None else self.ended.costs
        return max((cost.bytes_to_parties + cost.bytes_to_owners for cost in costs), default=0)


@dataclass(frozen=True)
class FinishedPlan:
    """A plan that was executed, by what was opened: `stages` before its own releases, in order, `own`, and those
    `after`."""

    stages: tuple[OpenedRelease, ...]
    own: OpenedRelease
    after: tuple[OpenedRelease, ...] = ()

    @property
    def bytes_sent(self) -> int:
        """By a party, in all that was made now."""
        return sum(each.bytes_sent for each in (*self.stages, self.own, *self.after))

    @property
    def outcome(self) -> Outcome:
        """What its one release means, as its source says it."""
        return self.own.plan.source.outcome(self.own.opening)


def run(plan: Plan, records: RecordsHere, seat: Seat, until: contextlib.ExitStack | None = None) -> FinishedPlan:
    """Executes a plan, stages and all, in the folder of `seat`; without one nothing stays of it. A run that was begun
    there goes on. `until`: the parties of the last stage before its own releases take leave while others go on, and are
    gone at the end of this stack.

    Errors: UsageError where another run is there; as of `RecordsHere`, of stages and of releases."""
    made: dict[str, OpenedRelease] = {}
    before: list[OpenedRelease] = []

    def does(part: StagePart, here: Here) -> None:
        if part.plan.run_id != first:
            records.ready(part.plan)
        last = part.stage is not None and len(part.whole.source.schedule.before) == 1
        own = seat.parties if part.stage is None else None
        where = replace(seat, here=here, parties=own)
        made[part.plan.run_id] = release(part, records, where, until=until if last else None)

    def keeps(stage: Plan, total: Ints, folder: Path) -> None:
        before.append(OpenedRelease(stage, total))

    if seat.out is None and plan.source.schedule == Schedule():
        records.ready(plan)
        with Reserve(seat.books, None) as reserve:
            reserve.keep(plan)
            return FinishedPlan((), release(StagePart(plan, plan), records, seat))
    with contextlib.ExitStack() as ends:
        if seat.out is None:  # stages follow from files
            kept = ends.enter_context(passing_folder())
            seat = replace(seat, here=seat.here.but(out=kept))
        plan = begun_as(plan, seat.here.folder)
        stages = RunStages(plan, seat.here, seat.books)
        stages.check()
        records.ready(next_one := stages.next())  # what is refused leaves no folder
        first = next_one.run_id
        ends.enter_context(stages.reserved(records.coming(plan)))
        own, after = stages.run(does, lambda text: None, keeps, records.then, records.after)
        behind = [OpenedRelease(each, *stages.opened(each)) for each in after]

    def found(each: OpenedRelease) -> OpenedRelease:  # what was over is as its folder has it
        return made.get(each.plan.run_id, each)

    return FinishedPlan(tuple(map(found, before)), made[own.run_id], tuple(map(found, behind)))


def release(
    part: StagePart,
    records: RecordsHere,
    seat: Seat,
    *,
    since: Since | None = None,
    until: contextlib.ExitStack | None = None,
) -> OpenedRelease:
    """Makes the releases of one part of a run, a stage or the plan's own, or finds them in the folder of `seat`.
    `since`: what earlier attempts left, where another process knows it; `until`: its parties are gone at its end.
    Errors: as of `RecordsHere.plays` and of releases."""
    plan, stage = part.plan, part.stage
    if (found := over(plan, seat.out)) is not None:
        return OpenedRelease(plan, found.last.total, found.last.present)
    since = since_in(plan, seat) if since is None else since
    with records.plays(plan, seat, since) as owners:
        begins(plan, seat, since)
        keeps = owners.keeps if stage is None else lambda ended: stage.settle(ended.last.total, ended.last.present)
        ended = releases(plan, owners, seat, since, keeps=keeps, ends=until)
    return OpenedRelease(plan, ended.last.total, ended.last.present, ended)


@contextlib.contextmanager
def rounds(plan: Plan, records: RecordsHere, seat: Seat) -> Iterator[Releasing]:
    """The releases of a plan without stages as `run` makes them, but each when the caller has it opened: for owners
    who answer when a server of theirs asks them. Errors: as of `run`; UsageError for a plan with stages."""
    if plan.source.schedule != Schedule():
        raise UsageError("rounds that a server asks for are of a plan without stages; this one has some", code="plan")
    records.ready(plan)
    with Reserve(seat.books, seat.out) as reserve:
        reserve.keep(plan)
        since = since_in(plan, seat)
        with records.plays(plan, seat, since) as owners:
            begins(plan, seat, since)
            with Releasing(plan, owners, seat, since) as made:
                yield made
