"""The stages of a plan over several machines: each process's part in those before its releases and in those after.

A stage is a run of its own in a folder of its name, between the same processes, with the checks of owners that the plan
has. Each process makes the plan of what follows of what was opened, by itself; the digests of these plans are compared
when the processes meet again, as those of any plan are, so that two that made different ones end there. A stage stays
spent, and what it opened stays here: a process that is started again goes on with it, after it has made of what was
opened, once more, the plan that followed: no file that says otherwise is believed.
"""

import contextlib
import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

from dpmpc.aggregation.owner.accounts import Books
from dpmpc.aggregation.party.resume import spent_releases
from dpmpc.aggregation.plan.asked import Presence
from dpmpc.aggregation.plan.grid import Ints
from dpmpc.aggregation.plan.plan import Plan
from dpmpc.aggregation.plan.stages import after_first, stage_plan, sum_of
from dpmpc.aggregation.wire.paths import ledger_path, opened_path
from dpmpc.aggregation.wire.transcript import read_opened
from dpmpc.codec import loads
from dpmpc.consortium.placement import Placement
from dpmpc.errors import PeerError, UsageError
from dpmpc.folders import write_file
from dpmpc.learning.source import Sum
from dpmpc.local.job import StageJob
from dpmpc.privacy.ledgers import read_ledgers
from dpmpc.run.engine import OPENED as OWNERS
from dpmpc.run.files import MINE, OWN_LEDGER, PRESENT, SETTLED, WHOLE
from dpmpc.run.folder import make_private
from dpmpc.run.once import OPENED, keep_sum
from dpmpc.run.reserve import Reserve
from dpmpc.run.resume import opened_anywhere, presence_anywhere

RunStage = Callable[[Plan, Placement, StageJob], None]
KeepStage = Callable[[Plan, Ints, Path], None]


def settled_plan(out: Path, name: str) -> Path:
    """Where a process keeps the plan that the stage of this name led to."""
    return out / name / SETTLED


def decided_on(plan: Plan, where: Placement) -> Plan:
    """The plan that a process was started with, where this one is what its stage led to."""
    return plan if begins(where) or where.plan_file is None else Plan.read(where.plan_file.with_name(WHOLE))


def begins(where: Placement) -> bool:
    """Whether a process that was given this placement has no stage behind it."""
    return where.plan_file is None or where.plan_file.name != SETTLED


def is_settled(plan: Plan, out: Path) -> bool:
    """Whether the next stage of this plan is over here. Errors: the folder has that of another plan."""
    folder = out / plan.source.schedule.before[0].name
    if not (folder / SETTLED).is_file():
        return False
    if Plan.read(folder / WHOLE) != plan:
        raise UsageError(
            f"<<out>> holds the {folder.name} of another run ({folder}); name another directory, or add <<overwrite>>"
        )
    return True


def check_begins(where: Placement) -> None:
    """Errors: UsageError for a run that is started with the plan that follows a stage, whose limits would be those of
    another file."""
    if not begins(where):
        raise UsageError(
            f"a run is started with its plan.json, which goes on where it was; got {SETTLED}, which a process made for "
            "itself after a stage; name plan.json"
        )


def followed(plan: Plan, out: Path) -> Plan:
    """The plan that follows what the next stage of `plan`, which is over in `out`, has opened. Errors: UsageError where
    that is not here, or nothing can follow."""
    return after_first(plan, *_opened(plan.first, out / plan.source.schedule.before[0].name))


def _opened(made: Plan, folder: Path) -> tuple[Ints, Presence | None]:
    """What a stage that is over opened, and the owners in it. Errors: it is not here."""
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


def check_behind(plan: Plan, where: Placement) -> None:
    """Every stage that is over has its sum in its folder, of which answers are made. Errors: UsageError where it has
    another plan there than what it opened leads to, or has spent another price than the plan counts for it."""
    while plan.source.schedule.before and not where.overwrite and is_settled(plan, where.out):
        made, folder = plan.first, where.out / plan.source.schedule.before[0].name
        entries = [entry for book in read_ledgers(folder) for entry in book.entries if entry.run == made.run_id]
        total, present = _opened(made, folder)
        after = after_first(plan, total, present)
        known = [(folder / name).is_file() and Plan.read(folder / name) for name in (MINE, SETTLED)]
        if known != [made, after] or any(entry.mechanism != made.derived.mechanism for entry in entries):
            raise _disagree(folder)
        keep_sum(folder, sum_of(made, total, present).total)
        plan = after


def _disagree(folder: Path) -> UsageError:
    return UsageError(
        f"a plan follows from what its {folder.name} opened, and counts what that cost; the files in {folder} do not "
        "agree on it; restore them, or start a new run, which spends anew: another <<out>> at every process"
    )


def run_before(
    plan: Plan, where: Placement, run: RunStage, say: Callable[[str], None], keep: KeepStage
) -> tuple[Plan, Placement]:
    """The plan of the releases and the placement with its file, after this process's part in all stages before them.
    `run` does one, in the folder and with the plan file of its placement; `keep` is given what one opened, and its
    folder."""
    while before := plan.source.schedule.before:
        name = before[0].name
        settled = settled_plan(where.out, name)
        if where.overwrite or not is_settled(plan, where.out):

            def settle(total: Ints, present: Presence | None, plan: Plan = plan, settled: Path = settled) -> None:
                if present is not None:
                    write_file(settled.parent / PRESENT, json.dumps(list(present)))
                keep_sum(settled.parent, sum_of(plan.first, total, present).total)
                keep(plan.first, total, settled.parent)
                after_first(plan, total, present).write(settled)

            stage = StageJob(name, plan, settle, begins=begins(where))
            run(plan.first, _inside(plan, plan.first, where, name), stage)
            after = Plan.read(settled)
            say(f"{name} opened; plan {after.digest(after.attempt).hex()[:16]}")
        plan, where = Plan.read(settled), replace(where, plan_file=settled)
    return plan, where


def run_after(plan: Plan, where: Placement, run: RunStage, say: Callable[[str], None]) -> None:
    """This process's part in the stages after the releases of `plan`, whose sums are in `where.out`; what each opened,
    the sum over its records, is in its folder as opened.npy."""
    for stage in plan.source.schedule.after:
        folder = where.out / stage.name
        mine = stage_plan(plan, stage, plan.source.ends(stage, opened_sums(plan, where), plan))
        if not where.overwrite and (folder / OPENED).is_file() and Plan.read(folder / MINE) == mine:
            continue

        def settle(total: Ints, present: Presence | None, mine: Plan = mine, folder: Path = folder) -> None:
            who = range(mine.owners) if present is None else present
            write_file(folder / PRESENT, json.dumps(list(who)))
            keep_sum(folder, sum_of(mine, total, present).total)

        run(mine, _inside(plan, mine, where, stage.name), StageJob(stage.name, plan, settle))
        say(f"{stage.name} opened")


def _inside(whole: Plan, mine: Plan, where: Placement, name: str) -> Placement:
    """The placement of a stage."""
    folder = where.out / name
    make_private(where.out)
    make_private(folder)
    whole.write(folder / WHOLE)
    mine.write(folder / MINE)
    ledgers = where.ledgers or str(where.out.resolve().parent)
    return replace(where, out=folder, plan_file=folder / MINE, ledgers=ledgers)


def opened_sums(plan: Plan, where: Placement) -> list[Sum]:
    """What the releases of a run opened, as this process has it, in order. Errors: it has none."""
    mine = where.out / OWNERS if where.party is None or where.role == "both" else opened_path(where.out, where.party)
    found = read_opened(mine, plan.dimension)
    if not found:
        raise PeerError(f"a stage follows from what was opened; {mine} has none; copy the files of another process")
    present = presence_anywhere(where.out, plan) if plan.names_owners else {}
    return [sum_of(plan, found[release], present.get(release)) for release in sorted(found)]


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


def write_whole(plan: Plan, where: Placement) -> None:
    """Has the plan in this process's folder before its first stage, for whoever asks what was refused."""
    if (before := plan.source.schedule.before) and (where.overwrite or not is_settled(plan, where.out)):
        _inside(plan, plan.first, where, before[0].name)


@contextlib.contextmanager
def whole_of(plan: Plan, where: Placement, books: Books) -> Iterator[None]:
    """Has all stages of a plan reserved by this process, if it has several. Errors: as `Reserve.keep`."""
    schedule = plan.source.schedule
    before, after = ([stage_plan(plan, stage) for stage in some] for some in (schedule.before, schedule.after))
    if not before and not after:
        yield
        return

    def spent(each: Plan) -> int:
        folder = where.out if each is plan else where.out / each.run_id.removeprefix(f"{plan.run_id}+")
        ledger = folder / OWN_LEDGER if where.party is None else ledger_path(folder, where.party)
        return spent_releases(ledger, each.run_id)

    who = "_owners" if where.party is None else f"_{where.party}"
    if where.owner is not None and where.party is None:
        who = f"_owner{where.owner}"
    with Reserve(books, where.out, who) as reserve:
        reserve.keep(plan, before, after, spent)
        yield
