"""A plan that trains nothing, executed on this machine: all owners' records in one table, the parties as processes.

What is sent and what becomes of a sum is the plan's source's own business, so that one of another package is run as
ours are. A plan file is read as a question: each execution is a run with a name of its own, and counts by itself. One
that was cut short in a folder goes on there under its name.
"""

import contextlib
import secrets
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

from dpmpc.aggregation.plan.asked import plan_path
from dpmpc.aggregation.plan.guarantee import warnings_of
from dpmpc.aggregation.plan.plan import Plan
from dpmpc.aggregation.plan.shown import taking_part
from dpmpc.aggregation.plan.stages import noise_of
from dpmpc.errors import PeerError, RecordError, UsageError, some
from dpmpc.folders import gone_if_empty, make_folder, passing_folder
from dpmpc.intake.missing import keeping
from dpmpc.intake.spelling import canonical
from dpmpc.intake.table import Table
from dpmpc.lazy import dataclass
from dpmpc.local.delivering import deliver_ended, deliver_stage
from dpmpc.local.named_records import as_planned, looked_at, open_records
from dpmpc.local.owner_process import Progress
from dpmpc.planning.request import Request
from dpmpc.records.mapping import owner_numbers
from dpmpc.records.planned import OTHER_SIZES
from dpmpc.run.folder import alone
from dpmpc.run.once import OPENED, is_over, unfinished
from dpmpc.run.owners import Ended
from dpmpc.run.resume import begun_as, opened_anywhere
from dpmpc.run.run import run
from dpmpc.run.seat import Seat
from dpmpc.tables.of_table import OfTable
from dpmpc.tables.questions import check_spelled
from dpmpc.tables.stats import owned

REPORT = "report.json"


def _keeps_nothing(plan: Plan, ended: Ended) -> None:
    pass


@dataclass(frozen=True)
class _AllOwners(OfTable):
    """The records of all owners of a plan, and who hears of its releases. `delivers`: what comes of its own release,
    before that is over."""

    progress: Progress = lambda event: None
    delivers: Callable[[Plan, Ended], None] = _keeps_nothing

    @contextlib.contextmanager
    def shows(self, plan: Plan) -> Iterator[Callable[..., None]]:
        self.progress({"event": "plan", "releases": plan.releases, "first": 0})
        yield lambda event, **fields: self.progress({"event": event, **fields})

    def keeps(self, plan: Plan, out: Path | None, ended: Ended) -> None:
        self.delivers(plan, ended)
        super().keeps(plan, out, ended)


def run_planned(plan: Plan, request: Request, seat: Seat, progress: Progress) -> None:
    """Executes the plan on the records that the request names, in the folder of `seat`, and returns when report.json is
    written. What it promises is said before a record is read; given again it goes on with a run that was cut short, and
    makes none again that is over.

    Errors: UsageError for a plan that is not executed so, or of which another is in the folder; RecordError for records
    that are not those of the plan's owners, before anything is spent; as of releases."""
    out, started = seat.here.folder, time.time()
    _check(plan, request)
    plan = begun_as(replace(plan, run_id=secrets.token_hex(8)), out)
    if _is_over(plan, out):
        progress({"event": "stage", "text": "this run is over; its report is here"})
        return
    unfinished(out, REPORT, "", *(stage.name for stage in plan.source.schedule.before))
    for line in (*taking_part(plan), *_expected(plan), *(f"warning: {text}" for text in warnings_of(plan))):
        progress({"event": "part", "text": plan.called(line)})
    request = as_planned(request, plan)
    with contextlib.ExitStack() as stack:
        scratch = stack.enter_context(passing_folder())
        table = stack.enter_context(open_records(request, scratch, request.kept, plan)).table
        for line in looked_at(plan, request, table):
            progress({"event": "part", "text": line.replace("your records: ", "records: ", 1)})
        if plan.source.STRICT and request.spelling.misfits == "ask":
            check_spelled(table, plan.source.reads, "plan without them")
        own, number = _of_owners(plan, request, table)
        plan.source.check_records(own)
        make_folder(out, "a run needs a directory for its results", private=True)
        stack.enter_context(gone_if_empty(out))  # where a budget has no room for it
        stack.enter_context(alone(out))
        (out / OPENED).unlink(missing_ok=True)  # a file of a source's own, or a run that had not told what came of it
        delivers = partial(_deliver, asked=plan, out=out, started=started)
        records = _AllOwners(plan.source.KIND, own, number, progress=progress, delivers=delivers)
        try:
            run(plan, records, seat)
        except PeerError as error:
            raise type(error)(f"{error.message}; what is finished is kept, give the same again to go on") from None


def _check(plan: Plan, request: Request) -> None:
    """Errors: the plan is for processes that are started one by one; the request leaves records out."""
    source, all_of = plan.source, "a plan that is executed whole makes one release of all records of its owners"
    parts = [name for name in (plan.part, *(each.part or each.name for each in source.schedule.after)) if name]
    for found, what, way in (
        (source.TRAINS, "trains", "train without <<plan_file>>, or start each process with <<index>>"),
        (not source.OF_RECORDS, "is of vectors that a program makes", "open them with dpmpc.Aggregator.of_plan"),
        (plan.releases != 1, f"has {plan.releases}", "plan one"),
        (plan.role == "both", "has every owner as a party", "start each site with <<index>> and <<role=both>>"),
        (bool(parts), f"is of parts, {some(parts)}", "start each process with <<index>>"),
    ):
        if found:
            raise UsageError(f"{all_of}; this one of {source.KIND} {what}; {way}", code="plan")
    if request.source is None:
        raise UsageError(
            "owners need records; none were named; add <<csv=FILE>>, <<records=SOURCE>> or <<database=URL>>, or start "
            "one process of several with <<index>>",
            code="missing",
        )
    for name in ("test_fraction", "max_rows", "executor", "owners", "owner_sizes"):
        if getattr(request, name) is not None:
            raise UsageError(
                f"a plan is of all records of its owners, whom <<owners_column>> tells apart; got <<{name}>>; leave it "
                "out",
                code="together",
            )


def _is_over(plan: Plan, out: Path) -> bool:
    """Whether all that comes of the plan is in the folder."""
    if not plan_path(out).is_file() or (made := Plan.read(plan_path(out))).run_id != plan.run_id:
        return False
    results = (REPORT, plan.source.RESULT) if plan.source.DRAWS else (REPORT,)
    return is_over(made, out) and all((out / name).is_file() for name in results)


def _expected(plan: Plan) -> list[str]:
    """How far what is opened will be off, a line each."""
    asked = (*plan.ahead[: plan.source.asked_first], plan)
    return [line for each in asked for line in each.source.expects(each.sizes, noise_of(each), each.counted)]


def _of_owners(plan: Plan, request: Request, table: Table) -> tuple[Table, str]:
    """(the table with the columns that are read, SQL for each record's number of its owner in the plan). Owners with
    names are those in their column; others have its order. Errors: they are others, or have other numbers of records.
    """
    reads = plan.source.reads or table.names
    settings = {name: getattr(plan, name) for name in ("neighbours", "person", "person_rows", "person_owners")}
    table, column = keeping(table, plan.source.listed), request.owners_column
    place = list(range(plan.owners))
    if column is not None and plan.names is not None:
        planned, found = [canonical(name) for name in plan.names.owners], owner_numbers(table, column)[1]
        if set(planned) != set(found):
            raise RecordError(
                f"the owners of a plan with names are those in the records; the plan's are {some(planned)}, those of "
                f"'{column}' {some(list(found))}; write the same names, or plan again",
                "the owners of the records are not those that the plan names",
            )
        place = [planned.index(name) for name in found]
    full = request.capacity
    capacity = None if full is None else tuple(full[j] for j in place)
    own, number, sizes = owned(table, reads, column, settings, capacity)
    if sizes != (due := tuple(plan.sizes[j] for j in place)):
        raise RecordError(
            f"owners hold as many records as the plan says, in the order of '{column}' {some(list(map(str, due)))}; "
            f"these are {some(list(map(str, sizes)))}; mend the file, or plan again",
            OTHER_SIZES,
        )
    return own, f"CAST(list_extract({place}, {number} + 1) AS INTEGER)"


def _deliver(plan: Plan, ended: Ended, asked: Plan, out: Path, started: float) -> None:
    """What came of the stages that people asked for, and of the plan's own release, in its folder."""
    for stage in asked.source.schedule.before:
        folder = out / stage.name
        made = Plan.read(plan_path(folder))
        deliver_stage(made, opened_anywhere(folder, made)[0], folder)
    deliver_ended(plan, asked, ended, out, time.time() - started)
