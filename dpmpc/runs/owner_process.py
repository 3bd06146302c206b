"""The owners' process of a run: records in, one release after another through the one `Aggregator`, model and report
out. With parties here it is the whole run; with parties elsewhere it plays all owners or one of them."""

import contextlib
import time
from collections.abc import Callable, Sequence
from dataclasses import field, replace
from functools import partial
from pathlib import Path
from typing import Any

from dpmpc.aggregation.owner.accounts import account_of
from dpmpc.aggregation.owner.encoding import decode
from dpmpc.aggregation.owner.local_parties import PartiesHere
from dpmpc.aggregation.owner.opens_sums import OpensSums
from dpmpc.aggregation.owner.own_ledger import OwnLedger
from dpmpc.aggregation.party.beside_owner import named
from dpmpc.aggregation.party.noise_source import about_noise
from dpmpc.aggregation.plan.asked import AGREED, FIRST_ATTEMPT, Attempt, Presence, plan_path
from dpmpc.aggregation.plan.fields import differing
from dpmpc.aggregation.plan.grid import Ints
from dpmpc.aggregation.plan.names import named_errors, noted
from dpmpc.aggregation.plan.plan import Plan
from dpmpc.aggregation.plan.spending import held_against
from dpmpc.aggregation.wire.frames import PartyCost, rows_of_block
from dpmpc.aggregation.wire.paths import ledger_path
from dpmpc.aggregation.wire.transcript import Opened
from dpmpc.errors import DpmpcError, SpentError, UsageError, public_message
from dpmpc.lazy import dataclass
from dpmpc.learning.learner import Learner
from dpmpc.learning.model import with_figures, write_model
from dpmpc.mpc.transport.site_keys import list_in
from dpmpc.privacy.whole import WholeRun, path_of
from dpmpc.processes.logs import log_to
from dpmpc.processes.status import Status, status_path
from dpmpc.processes.worker import Log
from dpmpc.records import Dataset
from dpmpc.runs.adviser import Advice
from dpmpc.runs.before_release import (
    Emit,
    books_of,
    budget_of,
    check_budget,
    check_possible,
    connected,
    forecast_of,
    own_ledger,
    says,
)
from dpmpc.runs.chart import draw
from dpmpc.runs.evaluating import evaluate, held_sizes, inside, plainly
from dpmpc.runs.forecast import forecast, too_few, why_not
from dpmpc.runs.history import History, Row, figure_name, read_history
from dpmpc.runs.job import OPENED, OwnersJob, whole_plan
from dpmpc.runs.own_records import records_and_plan, surveyed, tell
from dpmpc.runs.plain import Evaluator, ordinary, unclipped
from dpmpc.runs.planning import foretold
from dpmpc.runs.report import Costs, add_figures, build_report, read_report, write_report
from dpmpc.runs.resume import note_attempt, presence_anywhere, resume
from dpmpc.runs.sites import SitesHere
from dpmpc.runs.whole_run import evaluation_of, keep_whole

Progress = Callable[[dict[str, Any]], None]


def run_owners(job: OwnersJob, path: Path, progress: Progress) -> None:
    """Does the run, with its log at `path`. Errors: bad input (before any connection), and PeerError when a party
    leaves."""
    who = "owners" if job.owner is None else f"owner_{job.owner}"
    if job.owner is not None:
        job = replace(job, request=job.request.among_others)
    called: Callable[[str], str] = str
    if (plan := job.plan) is not None:
        whole = whole_plan(plan, job.stage)
        called = lambda text: plan.called(differing(text, whole))  # noqa: E731
    with path.open("a", encoding="utf-8") as file:
        write = log_to(file)
        try:
            with Status(status_path(job.out, who), called(who.replace("_", " "))) as status, named_errors(called):
                tell: Emit = lambda event, **fields: progress({"event": event, **fields})  # noqa: E731
                _any(job, *noted(status, write, tell, called))
        except DpmpcError as error:
            write(f"error: {public_message(error)}")
            raise


def _any(job: OwnersJob, log: Log, emit: Emit) -> None:
    """A run of training, of questions, or a stage."""
    if job.request.executor is not None and job.owner is None:
        raise UsageError(
            "an executor's workers read the records of one owner; this process plays all of them; start each owner "
            "alone with <<index=owner0>> and so on, or leave <<executor>> out"
        )
    with contextlib.ExitStack() as stack:
        opener: Opener = partial(_by_parties, None)
        if job.request.role == "both" and job.party is None:
            sites = SitesHere(job.request.parties, job.here, books_of(job))
            stack.callback(sites.end)
            opener = partial(_by_sites, sites)
        elif job.addresses is None and job.request.engine == "mpc":  # they import while records are loaded
            role = {} if job.role is None else {"role": job.role}
            parties = PartiesHere(job.request.parties, job.here, books_of(job), **role)
            stack.callback(parties.end)
            opener = partial(_by_parties, parties)
        try:
            plan, stage = job.plan, job.stage
            if plan is not None and (stage is not None or not plan.source.TRAINS):
                from dpmpc.runs.one_release import run_alone, run_stage

                run_alone(job, plan, log, emit) if stage is None else run_stage(job, plan, stage, log, emit)
                return
            whole = stack.enter_context(WholeRun(path_of(job.out), "stages"))
            _run(job, opener, log, emit, whole, stack)
        except DpmpcError as error:
            if job.party is None:
                raise
            raise named(f"owner {job.owner}", error) from None


@dataclass(frozen=True)
class _Run:
    job: OwnersJob
    plan: Plan
    attempt: Attempt
    known: dict[int, Ints]  # opened by earlier attempts
    dataset: Dataset
    learner: Learner
    evaluator: Evaluator | None
    history: History
    wait: list[Callable[[], object]] = field(default_factory=list)  # for parties here, at the end
    presence: dict[int, Presence] = field(default_factory=dict)  # by release, where owners may be missing

    def note(self, release: int, seconds: float | None, sent: int | None, present: Presence | None = None) -> Row:
        """Write the row of the iteration that `release` gave."""
        if present is not None:
            self.presence[release] = present
        loss = gap = score = figure = None
        if self.evaluator is not None:
            model = self.learner.model
            loss, score = self.evaluator.objective(model), self.evaluator.score(model)
            gap, figure = loss - self.evaluator.best, self.evaluator.figure(model)
        checked = present if self.plan.checks_owners else None
        failed = "" if checked is None else " ".join(map(str, self.plan.missing(checked)))
        owners = None if present is None else len(present)
        row = Row(self.learner.iteration, release, loss, gap, score, seconds, sent, owners, failed, figure)
        self.history.append(row)
        return row


# What opens the releases of this attempt, until the end of the stack; with this process's own ledger.
Opener = Callable[[_Run, contextlib.ExitStack, Log, Emit, OwnLedger | None], OpensSums[Any]]


def _run(job: OwnersJob, opener: Opener, log: Log, emit: Emit, whole: WholeRun, until: contextlib.ExitStack) -> None:
    if job.plan is not None:  # before a record is read
        for line in job.check(job.plan):
            log(line)
    with contextlib.ExitStack() as while_read:
        job, before, records = surveyed(job, emit, while_read, whole)
        emit("stage", text="loading records", phase="loading records")
        dataset, plan, advice = records_and_plan(job, emit, before, records, until)
    if job.plan is None:
        for line in job.check(plan):
            log(line)
    tell(dataset, plan, job, log, emit)
    for text in () if before else foretold(plan, advice):  # those of a survey were told before it
        emit("stage", text=f"warning: {text}")
    attempt, known = FIRST_ATTEMPT, dict[int, Ints]()
    if job.resume:
        plan, attempt, known = resume(job.out, plan)
        log(f"carried on from release {attempt.first_release}; {len(known)} opened before")
    if job.addresses is not None:
        attempt = plan.attempt
    account = account_of(plan, job.request.account, callers=job.request.source is not None)
    budget = held_against(budget_of(job), account)
    if budget is not None:
        check_budget(plan, attempt, budget, ledger_path(job.out, 0))
    if job.addresses is None:
        check_possible(plan, plan.releases - attempt.first_release)
    plan.write(plan_path(job.out))
    if attempt != AGREED:
        note_attempt(job.out, attempt)
    evaluator, within = None, _evaluated_inside(job, plan, dataset)
    if whole.held or within.inside:
        keep_whole(whole, job, [plan, *(evaluation_of(plan) if within.inside else [])], attempt)
    if within.reason:
        emit("stage", text=within.reason)
    if within.plainly:
        emit("stage", text="finding the non-private optimum, for comparison")
        evaluator = Evaluator(plan.learning, dataset, unclipped(job.request, dataset, job.out))
    emit("plan", releases=plan.releases, first=attempt.first_release)
    emit("begin", run=plan.run_id, releases=plan.releases, first=attempt.first_release)
    noted = {row.release for row in read_history(job.out / "history.csv")}
    first, end = (0, plan.owners) if job.owner is None else (job.owner, job.owner + 1)
    noise = plan.derived.mechanism.scale * plan.grid.step / plan.divisor
    learner = Learner(plan.learning, plan.releases, dataset.train, plan.sizes[first:end], noise)
    with contextlib.closing(History(job.out / "history.csv", plan.learning)) as history:
        run = _Run(job, plan, attempt, known, dataset, learner, evaluator, history)
        sets = presence_anywhere(job.out, plan) if plan.names_owners else {}
        for release in sorted(known):
            learner.apply(decode(plan, known[release], sets.get(release)))
            if release not in noted:
                run.note(release, None, None, sets.get(release))
            elif release in sets:
                run.presence[release] = sets[release]
        if attempt.first_release >= plan.releases and not learner.iteration:
            raise SpentError(
                f"a resumed run goes on within its budget; all {plan.releases} releases are spent and none was "
                "opened; start a new run, with a budget of its own"
            )
        _learn(run, opener, log, emit, partial(_keep, run, advice))
    if within.inside:
        _evaluate(run, emit)
    log(f"{learner.iteration} iterations; report and model written")


def _keep(run: _Run, advice: Advice | None, attempt: Attempt, costs: Costs) -> None:
    """Writes model and report."""
    job, dataset = run.job, run.dataset
    write_model(job.out / "model.npz", run.learner.model, dataset, run.plan.run_id, run.plan.learning.weights)
    report = build_report(
        run.plan, attempt, run.learner, run.evaluator, costs, advice, run.presence, _names(run), dataset.columns
    )
    report["tls"] = job.tls is not None  # between its processes; of one machine's none needs it
    listed = None if job.tls is None else list_in(job.tls)
    report["keys"] = None if listed is None else listed.number
    if job.request.baseline and job.owner is None:
        beside = ordinary(job.request, dataset, job.out)
        report["baseline"] = None if beside is None else {"what": beside[0], "figures": beside[1].to_json()}
    write_report(job.out / "report.json", report)
    draw(job.out, report)


@dataclass(frozen=True)
class _Within:
    """Whether figures come from inside the promise, whether plain ones are looked at, and what is said about it."""

    inside: bool
    plainly: bool
    reason: str = ""


def _evaluated_inside(job: OwnersJob, plan: Plan, dataset: Dataset) -> _Within:
    """Which figures the run will have. Errors: those asked for cannot be had."""
    request, here = job.request, job.owner is None and job.addresses is None and job.plan is None
    if not here:
        return _Within(False, request.evaluate and job.owner is None)
    learning, held = plan.learning, sum(held_sizes(request, dataset, plan.owners)[1])
    found = inside(request, held, learning.task, learning.classes) and bool(plan.part)
    reason = ""
    if request.evaluate and request.figures is None and request.source is not None and not found and held:
        why = why_not(request) or too_few(request, held, learning.task, learning.classes)
        reason = f"figures will be of plain records, outside the guarantee; inside, {why}"
    elif found and request.source is not None:
        reason = forecast(request, held, learning.task, learning.classes)
    return _Within(found, plainly(request, found), reason)


def _evaluate(run: _Run, emit: Emit) -> None:
    """Makes the evaluation, and puts its figures into the report."""
    job = run.job
    emit("stage", text="evaluating the model on held-out records, inside the guarantee", phase="evaluating")
    figures, said = evaluate(
        job.request, run.plan, run.dataset, run.learner.model, job.out, job.wait, budget_of(job)
    )  # fmt: skip
    with_figures(job.out / "model.npz", figures.to_json())
    report = read_report(job.out)
    add_figures(report, figures.to_json(), figures.warnings)
    report["evaluation"] = said
    write_report(job.out / "report.json", report)


def _names(run: _Run) -> tuple[str, ...]:
    """What the owners are called: by the consortium, or in the records."""
    return run.dataset.group_names if run.plan.names is None else run.plan.names.owners


def _by_sites(
    sites: SitesHere, run: _Run, stack: contextlib.ExitStack, log: Log, emit: Emit, ledger: OwnLedger | None
) -> OpensSums[Any]:
    """`Opener` where every owner is a party, and all sites are here."""
    records, job = run.dataset.train, run.job
    here = sites.of(
        run.plan, run.attempt, job.out, records, run.known, say=says(log, emit)
    )  # fmt: skip
    return stack.enter_context(here)


def _by_parties(
    parties: PartiesHere | None, run: _Run, stack: contextlib.ExitStack, log: Log, emit: Emit, ledger: OwnLedger | None
) -> OpensSums[Any]:
    """`Opener` with parties here, elsewhere or none."""
    return connected(run.job, run.plan, run.attempt, parties, stack, log, emit, ledger, run.wait)


def _learn(
    run: _Run,
    opener: Opener,
    log: Log,
    emit: Emit,
    keep: Callable[[Attempt, Costs], None],
) -> None:
    """All releases that are left. `keep` writes down what came of them, before the parties hear that it is here."""
    plan, learner, job = run.plan, run.learner, run.job
    replayed = learner.iteration
    seconds: list[float] = []
    with contextlib.ExitStack() as outer:
        opened = outer.enter_context(contextlib.closing(Opened(job.out / OPENED)))
        ledger = own_ledger(job, plan, run.attempt, outer)
        if plan.parties:
            emit("stage", text="connecting", phase="connecting")
        left = plan.releases - run.attempt.first_release
        expected = forecast_of(plan, left, here=job.addresses is None) or about_noise(plan, left)
        with contextlib.ExitStack() as stack:
            aggregator = opener(run, stack, log, emit, ledger)
            emit("stage", text=f"making noise: {expected}" if expected else "starting", phase="making noise")
            aggregator.wait_for_noise()
            before = aggregator.session.bytes_before
            emit("stage", text="training", phase="releasing")
            before, replayed = _catch_up(run, aggregator, opened, before), learner.iteration
            attempt, first = aggregator.session.attempt, aggregator.session.next
            if attempt.number:
                log(f"attempt {attempt.number} goes on with release {first}; {replayed} were opened before")
            for number in range(first, plan.releases):
                begin = time.perf_counter()
                release = aggregator.open(learner.vectors(rows_of_block(plan.dimension)))
                opened.append(number, release.total)
                learner.apply(decode(plan, release.total, release.present))
                seconds.append(time.perf_counter() - begin)
                emit("release", done=number + 1)
                row = run.note(number, seconds[-1], release.bytes_sent - before, release.present)
                before = release.bytes_sent
                emit(
                    "iteration",
                    done=row.iteration,
                    total=plan.releases,
                    loss=row.loss,
                    score=row.score,
                    figure=row.figure,
                    figure_name=None if row.figure is None else figure_name(plan.learning),
                    seconds=row.seconds,
                )

            def costs(of: Sequence[PartyCost]) -> Costs:
                lost = aggregator.session.parties_lost
                return Costs(time.time() - job.started, seconds, learner.compute_s, of, replayed, lost)

            comes_again = run.attempt == AGREED
            if comes_again:
                keep(attempt, costs(aggregator.costs()))
            of = aggregator.finish()
            for wait in run.wait:
                wait()
            if not comes_again:
                keep(attempt, costs(of))


def _catch_up(run: _Run, aggregator: OpensSums[Any], opened: Opened, before: int) -> int:
    """Takes what was opened before this process came; the bytes that all processes had sent by then."""
    plan = run.plan
    while several := aggregator.catch_up():  # others go on meanwhile
        for missed in several:
            opened.append(missed.number, missed.total)
            run.learner.apply(decode(plan, missed.total, missed.present))
            run.note(missed.number, None, None, missed.present)
            before = max(before, missed.bytes_sent)
    if aggregator.session.next >= plan.releases and not run.learner.iteration:
        raise SpentError(
            f"a run goes on within its budget; all {plan.releases} releases are spent and none was opened; start a new "
            "run, with a budget of its own"
        )
    return before
