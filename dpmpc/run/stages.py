"""The stages of a plan, and its own releases, in the folder of one process: which are over, what follows, what is next.

A stage is a run of its own in a folder of its name, between the same processes, with the checks of owners that the
plan has. It is over where its folder has the sum that it opened (`once.is_over`), on one machine as over several;
what is made of that for people is made again by a process that comes again. The plan of what follows is made of what
was opened, at every process by itself and whenever it is asked for: no file says otherwise. Over several machines the
digests of these plans are compared when the processes meet again, as those of any plan are, so that two that made
different ones end there.
"""

import contextlib
import json
from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Generic, TypeVar

from dpmpc.aggregation.owner.accounts import NO_BOOKS, Books
from dpmpc.aggregation.party.resume import spent_releases
from dpmpc.aggregation.plan.asked import Presence, plan_path
from dpmpc.aggregation.plan.grid import Ints
from dpmpc.aggregation.plan.here import Here
from dpmpc.aggregation.plan.plan import Plan
from dpmpc.aggregation.plan.stages import after_first, stage_plan, sum_of
from dpmpc.aggregation.wire.paths import ledger_path, opened_path
from dpmpc.aggregation.wire.transcript import read_opened
from dpmpc.codec import loads
from dpmpc.errors import PeerError, UsageError
from dpmpc.folders import matching, write_file
from dpmpc.lazy import dataclass
from dpmpc.learning.source import Sum
from dpmpc.privacy.ledgers import read_ledgers
from dpmpc.run.files import OWN_LEDGER, OWNERS_OPENED, PRESENT, WHOLE
from dpmpc.run.folder import make_private, opened_nothing
from dpmpc.run.once import OPENED, is_over, keep_sum
from dpmpc.run.reserve import Reserve
from dpmpc.run.resume import opened_anywhere, presence_anywhere, spent_anywhere

H = TypeVar("H", bound=Here)
Keeps = Callable[[Plan, Ints, Path], None]


@dataclass(frozen=True)
class StageJob:
    """What a process of a stage has to know beside the stage's own plan. `whole`: the plan that it is a stage of, which
    limits are held against. `settle`: told what was opened, before the parties hear that it is here. `begins`: whether
    the run begins with it."""

    name: str
    whole: Plan
    settle: Callable[[Ints, Presence | None], None]
    begins: bool = False


def whole_plan(plan: Plan, stage: StageJob | None) -> Plan:
    """What a process's plan is a stage of; itself where it is none."""
    return plan if stage is None else stage.whole


@dataclass(frozen=True)
class StagePart:
    """One meeting of a run's processes. `plan`: of its releases; `asked`: the plan that the run began with, which
    people decided on; `stage`: which stage it is; None: the plan's own releases."""

    plan: Plan
    asked: Plan
    stage: StageJob | None = None

    @property
    def whole(self) -> Plan:
        """What the plan is a stage of; itself for its own releases."""
        return whole_plan(self.plan, self.stage)

    @property
    def begins(self) -> bool:
        """Whether the run begins with it."""
        return self.plan == self.asked if self.stage is None else self.stage.begins


class RunStages(Generic[H]):
    """All parts of a run as the process at `here` takes them: a folder for each stage in its own. `books`: where they
    count."""

    def __init__(self, plan: Plan, here: H, books: Books = NO_BOOKS) -> None:
        self.plan, self.here, self._books = plan, here, books
        self._out = here.folder

    def next(self) -> Plan:
        """The plan of the first part that is not over here."""
        plan = self.plan
        while plan.source.schedule.before:
            if not self._over(plan):
                return plan.first
            plan = self._after(plan)
        return plan

    def check(self) -> None:
        """Every stage before that is over has its sum in its folder, of which answers are made. Errors: UsageError
        where it has another plan there, or has spent another price than the plan counts for it, or what it opened is
        gone."""
        plan = self.plan
        while plan.source.schedule.before and self._over(plan):
            made, folder = plan.first, self._folder(plan)
            entries = [entry for book in read_ledgers(folder) for entry in book.entries if entry.run == made.run_id]
            if any(entry.mechanism != made.derived.mechanism for entry in entries):
                raise _disagree(folder)
            keep_sum(folder, sum_of(made, *self._opened(made, folder)).total)
            plan = self._after(plan)

    def begin(self) -> None:
        """Has the plan in this process's folder before its first stage, for whoever asks what was refused."""
        if (before := self.plan.source.schedule.before) and not self._over(self.plan):
            self._inside(self.plan, self.plan.first, before[0].name)

    @contextlib.contextmanager
    def reserved(self, coming: Sequence[Plan] = ()) -> Iterator[None]:
        """Has all stages reserved by this process; of one of several processes, whose ledger binds as it begins, only
        where there are several stages. `coming`: what is to come after the stages of the plan. Errors: as
        `Reserve.keep`."""
        schedule, where = self.plan.source.schedule, self.here
        before, after = ([stage_plan(self.plan, each) for each in some] for some in (schedule.before, schedule.after))
        after += coming
        if not before and not after and where.index is not None:
            yield
            return

        def spent(each: Plan) -> int:
            folder = self._out / each.run_id.removeprefix(self.plan.run_id).removeprefix("+")
            if where.index is None:  # all processes are here
                return spent_anywhere(folder, each)
            ledger = folder / OWN_LEDGER if where.party is None else ledger_path(folder, where.party)
            return spent_releases(ledger, each.run_id)

        who = "_owners" if where.party is None else f"_{where.party}"
        if where.owner is not None and where.party is None:
            who = f"_owner{where.owner}"
        with Reserve(self._books, self._out, who) as reserve:
            reserve.keep(self.plan, before, after, spent)
            yield

    def run(
        self,
        does: Callable[[StagePart, H], None],
        say: Callable[[str], None],
        keeps: Keeps | None = None,
        then: Callable[[Plan], Plan] = lambda plan: plan,
        others: Callable[[Plan], Sequence[Plan]] = lambda plan: (),
    ) -> tuple[Plan, list[Plan]]:
        """Has every part done that is not over: the stages before, each of which leads to what follows; the plan's own
        releases; the stages after. Returns the plan of its own releases, and of each stage after. `does`: does one,
        where it is told; `keeps`: given what a stage before has opened, and its folder; the same again where the
        process comes again; `then`: the plan of its own releases, of the one that follows from the stages before them;
        `others`: what comes after these beside the stages of their source."""
        plan = then(self.before(does, say, keeps))
        does(StagePart(plan, self.plan), self.here)
        return plan, self.after(plan, does, say, others(plan))

    def before(
        self, does: Callable[[StagePart, H], None], say: Callable[[str], None], keeps: Keeps | None = None
    ) -> Plan:
        """The plan of the run's own releases, after the stages before them."""
        plan = self.plan
        while before := plan.source.schedule.before:
            if not self._over(plan):
                self._leads(does, plan, before[0].name, keeps)
                after = self._after(plan)
                say(f"{before[0].name} opened; plan {after.digest(after.attempt).hex()[:16]}")
            elif keeps is not None:  # it may have died before all of that was there
                keeps(plan.first, self._opened(plan.first, self._folder(plan))[0], self._folder(plan))
            plan = self._after(plan)
        return plan

    def after(
        self, plan: Plan, does: Callable[[StagePart, H], None], say: Callable[[str], None],
        others: Sequence[Plan] = (),
    ) -> list[Plan]:  # fmt: skip
        """Has the stages done after the releases of `plan`, which are made and whose sums are here, and those that are
        `others`; returns the plan of each."""
        own = (
            stage_plan(plan, stage, plan.source.ends(stage, self._sums(plan), plan))
            for stage in plan.source.schedule.after
        )
        made = []
        for mine in chain(own, others):
            name = mine.run_id.rpartition("+")[2]
            if self.here.overwrite or not is_over(mine, self._out / name):
                self._ends(does, plan, mine, name)
                say(f"{name} opened")
            made.append(mine)
        return made

    def opened(self, stage: Plan) -> tuple[Ints, Presence | None]:
        """What a stage opened that is over, and the owners in it. Errors: UsageError where that is not here."""
        return self._opened(stage, self._out / stage.run_id.rpartition("+")[2])

    def _leads(self, does: Callable[[StagePart, H], None], plan: Plan, name: str, keeps: Keeps | None) -> None:
        """Has the next stage of a plan done."""
        made, here = plan.first, self._inside(plan, plan.first, name)

        def settle(total: Ints, present: Presence | None) -> None:
            if present is not None:
                write_file(here.folder / PRESENT, json.dumps(list(present)))
            after_first(plan, total, present)  # what nothing can follow is never over
            keep_sum(here.folder, sum_of(made, total, present).total)
            if keeps is not None:
                keeps(made, total, here.folder)

        does(StagePart(made, self.plan, StageJob(name, plan, settle, begins=plan == self.plan)), here)

    def _ends(self, does: Callable[[StagePart, H], None], plan: Plan, made: Plan, name: str) -> None:
        """Has a stage after the plan's own releases done."""
        here = self._inside(plan, made, name)

        def settle(total: Ints, present: Presence | None) -> None:
            who = range(made.owners) if present is None else present
            write_file(here.folder / PRESENT, json.dumps(list(who)))
            keep_sum(here.folder, sum_of(made, total, present).total)

        does(StagePart(made, self.plan, StageJob(name, plan, settle)), here)

    def _folder(self, plan: Plan) -> Path:
        """The folder of the next stage of a plan."""
        return self._out / plan.source.schedule.before[0].name

    def _over(self, plan: Plan) -> bool:
        """Whether the next stage of this plan is over here. Errors: the folder has that of another plan, or another
        plan of the stage."""
        folder = self._folder(plan)
        if self.here.overwrite or not (folder / OPENED).is_file():
            return False
        if not (folder / WHOLE).is_file() or Plan.read(folder / WHOLE) != plan:
            raise _of_another(folder)
        if not is_over(plan.first, folder):
            raise _disagree(folder)
        return True

    def _after(self, plan: Plan) -> Plan:
        """The plan that follows what the next stage of `plan`, which is over here, has opened. Errors: UsageError where
        that is not here, or nothing can follow."""
        return after_first(plan, *self._opened(plan.first, self._folder(plan)))

    def _opened(self, made: Plan, folder: Path) -> tuple[Ints, Presence | None]:
        """What a stage opened, and the owners in it. Errors: it is not here."""
        found = opened_anywhere(folder, made)
        if 0 not in found:
            raise _disagree(folder)
        if not made.names_owners:
            return found[0], None
        if not (folder / PRESENT).is_file():
            return found[0], presence_anywhere(folder, made).get(0)
        present = loads((folder / PRESENT).read_text(encoding="utf-8"))
        if not isinstance(present, list) or not all(j in range(made.owners) for j in present):
            raise _disagree(folder)
        return found[0], tuple(present)

    def _inside(self, whole: Plan, mine: Plan, name: str) -> H:
        """Where a stage is. Errors: another run has spent there."""
        folder = self._out / name
        if not self.here.overwrite and plan_path(folder).is_file() and Plan.read(plan_path(folder)) != mine:
            if not opened_nothing(*matching(folder, "ledger_*.jsonl"), *matching(folder, "*.opened.bin")):
                raise _of_another(folder)
        make_private(self._out)
        make_private(folder)
        whole.write(folder / WHOLE)
        mine.write(plan_path(folder))
        return self.here.but(out=folder, ledgers=self.here.ledgers or str(self._out.resolve().parent))

    def _sums(self, plan: Plan) -> list[Sum]:
        """What the plan's own releases opened, as this process has it, in order. Errors: it has none."""
        party = None if self.here.role == "both" else self.here.party
        mine = self._out / OWNERS_OPENED if party is None else opened_path(self._out, party)
        found = read_opened(mine, plan.dimension)
        if not found:
            raise PeerError(f"a stage follows from what was opened; {mine} has none; copy the files of another process")
        present = presence_anywhere(self._out, plan) if plan.names_owners else {}
        return [sum_of(plan, found[release], present.get(release)) for release in sorted(found)]


def _of_another(folder: Path) -> UsageError:
    return UsageError(
        f"<<out>> holds the {folder.name} of another run ({folder}); name another directory, or add <<overwrite>>",
        code="over",
    )


def _disagree(folder: Path) -> UsageError:
    return UsageError(
        f"a plan follows from what its {folder.name} opened, and counts what that cost; the files in {folder} do not "
        "agree on it; restore them, or start a new run, which spends anew: another <<out>> at every process",
        code="over",
    )


def opened_by_party(plan: Plan, out: Path, index: int) -> tuple[Ints, Presence | None]:
    """What party `index` opened in the one release of a stage, and the owners in it. Errors: nothing."""
    found = read_opened(opened_path(out, index), plan.dimension)
    if 0 not in found:
        raise PeerError(f"a stage is opened by all parties; party {index} has none in {out}; copy its files from "
                        "another party")  # fmt: skip
    return found[0], presence_anywhere(out, plan).get(0) if plan.names_owners else None


def coming(plan: Plan) -> list[Plan]:
    """The plans of all stages, as far as they are known beforehand: what each costs."""
    schedule = plan.source.schedule
    return [stage_plan(plan, stage) for stage in (*schedule.before, *schedule.after)]
