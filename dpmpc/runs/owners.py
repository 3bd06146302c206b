"""The owners' process of a run: records in, one release after another through the one `Aggregator`, model and report
out. With parties here it is the whole run; with parties elsewhere it plays all owners or one of them."""

import contextlib
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from dpmpc.aggregation.aggregator import Aggregator
from dpmpc.aggregation.asked import AGREED, FIRST_ATTEMPT, Attempt, Presence, plan_path
from dpmpc.aggregation.beginning import attempt_of
from dpmpc.aggregation.both import PartyHere, named
from dpmpc.aggregation.encoding import decode
from dpmpc.aggregation.frames import PartyCost, rows_of_block
from dpmpc.aggregation.grid import Ints
from dpmpc.aggregation.job import PartyJob
from dpmpc.aggregation.local import PartiesHere
from dpmpc.aggregation.noise_source import about_noise
from dpmpc.aggregation.paths import ledger_path
from dpmpc.aggregation.plan import Plan
from dpmpc.aggregation.settling import spent_releases
from dpmpc.aggregation.spending import entry_of, reservation_of
from dpmpc.aggregation.transcript import Opened
from dpmpc.data import Dataset
from dpmpc.data.loading import OpenTable, opened
from dpmpc.data.memory import parse_memory
from dpmpc.errors import DpmpcError, UsageError
from dpmpc.learning.evaluate import Evaluator
from dpmpc.learning.learner import Learner
from dpmpc.learning.model import write_model
from dpmpc.mpc.addresses import Endpoint
from dpmpc.mpc.backend import BACKENDS, DEFAULT, FOR_MANY
from dpmpc.mpc.pulse import STALL
from dpmpc.noise.forecast import Forecast, forecast, refuse_hopeless
from dpmpc.noise.pool import fills
from dpmpc.privacy.book import Book
from dpmpc.privacy.budget import Budget, Held, check_fits, reserved
from dpmpc.privacy.composition import parse_budget
from dpmpc.privacy.entry import Entry
from dpmpc.privacy.ledger import Ledger
from dpmpc.privacy.ledgers import read_ledgers
from dpmpc.privacy.mechanism import Mechanism
from dpmpc.processes.status import Status, status_path
from dpmpc.processes.worker import Log
from dpmpc.runs.adviser import Advice
from dpmpc.runs.chart import draw
from dpmpc.runs.history import History, Row, read_history
from dpmpc.runs.planning import check_shape, expectation, facts_of, plan_of, settled
from dpmpc.runs.records import load, load_owner, source_named
from dpmpc.runs.report import Costs, build_report, write_report
from dpmpc.runs.request import Request
from dpmpc.runs.resume import note_attempt, presence_anywhere, resume
from dpmpc.runs.sites import SitesHere, SitesRun
from dpmpc.runs.surveying import earlier, survey, wanted

Emit = Callable[..., None]
OPENED = "owners.opened.bin"
OWN_LEDGER = "ledger_owners.jsonl"


@dataclass(frozen=True)
class OwnersJob:
    """What to do and where to write. `started`: Unix time at which the user's command began.

    `addresses`: where parties elsewhere listen for owners; None: the parties are started here, on `base_port` or free
    ports, on `threads` threads each, doing `role`. `tls`: the directory of the owners' certificate and key. `plan`:
    made before; by default it is made here. `owner`: the only one to play here; by default all. `party`: of this
    process too, with the owner's number; its end of the connections. `check`: told the plan before anything is sent,
    and may refuse it; the lines that it returns go into the log. `budget`: what this process's own ledger is held
    against, with parties elsewhere.
    """

    request: Request
    out: Path
    wait: float
    started: float
    resume: bool = False
    addresses: Sequence[Endpoint] | None = None
    base_port: int | None = None
    threads: int | None = None
    role: str | None = None
    tls: Path | None = None
    plan: Path | None = None
    owner: int | None = None
    stall: float = STALL
    check: Callable[[Plan], list[str]] = lambda plan: []
    party: PartyJob | None = None
    budget: Budget | None = None


def run_owners(job: OwnersJob, log: Log, emit: Emit) -> None:
    """Does the run. Errors: bad input (before any connection), and PeerError when a party leaves."""
    who = "owners" if job.owner is None else f"owner_{job.owner}"
    with contextlib.ExitStack() as stack:
        status = stack.enter_context(Status(status_path(job.out, who), who.replace("_", " ")))
        log, emit = status.logs(log), status.emits(emit)
        parties: PartiesHere | SitesHere | None = None
        if job.request.role == "both" and job.party is None:
            parties = SitesHere(job.request.parties, job.out, job.base_port, job.threads, budget_of(job))
            stack.callback(parties.end)
        elif job.addresses is None and job.request.engine == "mpc":  # they import while records are loaded
            settings: dict[str, Any] = {} if job.role is None else {"role": job.role}
            settings |= {"base_port": job.base_port, "threads": job.threads, "budget": budget_of(job)}
            parties = PartiesHere(job.request.parties, job.out, **settings)
            stack.callback(parties.end)
        try:
            _run(job, parties, log, emit)
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
        loss = gap = score = None
        if self.evaluator is not None:
            model = self.learner.model
            loss, score = self.evaluator.objective(model), self.evaluator.score(model)
            gap = loss - self.evaluator.best
        checked = present if self.plan.checks_owners else None
        failed = "" if checked is None else " ".join(map(str, self.plan.missing(checked)))
        owners = None if present is None else len(present)
        row = Row(self.learner.iteration, release, loss, gap, score, seconds, sent, owners, failed)
        self.history.append(row)
        return row


def _run(job: OwnersJob, parties: PartiesHere | SitesHere | None, log: Log, emit: Emit) -> None:
    if job.plan is not None:  # before a record is read
        for line in job.check(Plan.read(job.plan)):
            log(line)
    with contextlib.ExitStack() as while_read:
        job, before, records = _surveyed(job, emit, while_read)
        emit("stage", text="loading records", phase="loading records")
        dataset, plan, advice = _records_and_plan(job, before, records)
    if job.plan is None:
        for line in job.check(plan):
            log(line)
    log(f"{dataset.name}: {dataset.n} training and {dataset.test.n} test records, {dataset.d} features")
    for counts in dataset.counts:
        if counts.warning is not None:  # for this process's own terminal: it depends on records
            emit("stage", text=f"warning: {counts.warning}")
    attempt, known = FIRST_ATTEMPT, dict[int, Ints]()
    if job.resume:
        plan, attempt, known = resume(job.out, plan)
        log(f"carried on from release {attempt.first_release}; {len(known)} opened before")
    if job.addresses is not None:
        attempt = attempt_of(plan)
    budget = budget_of(job)
    if budget is not None:
        check_budget(plan, attempt, budget, ledger_path(job.out, 0))
    if job.addresses is None:
        _check_possible(plan, plan.releases - attempt.first_release)
    plan.write(plan_path(job.out))
    if attempt != AGREED:
        note_attempt(job.out, attempt)
    evaluator = None
    if job.request.evaluate and job.owner is None:
        emit("stage", text="finding the non-private optimum, for comparison")
        evaluator = Evaluator(plan.learning, dataset)
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
            raise UsageError(
                f"a resumed run goes on within its budget; all {plan.releases} releases are spent and none was "
                "opened; start a new run, with a budget of its own"
            )
        _learn(run, parties, log, emit, partial(_keep, run, advice))
    log(f"{learner.iteration} iterations; report and model written")


def _keep(run: _Run, advice: Advice | None, attempt: Attempt, costs: Costs) -> None:
    """Writes model and report."""
    job, dataset = run.job, run.dataset
    write_model(job.out / "model.npz", run.learner.model, dataset, run.plan.run_id)
    report = build_report(
        run.plan, attempt, run.learner, run.evaluator, costs, advice, run.presence, dataset.group_names
    )
    write_report(job.out / "report.json", report)
    draw(job.out, report)


def _surveyed(
    job: OwnersJob, emit: Emit, while_read: contextlib.ExitStack
) -> tuple[OwnersJob, tuple[Mechanism, ...], OpenTable | None]:
    """The job with the schema of its survey, what that released, and the records as it has read them, open as long as
    `while_read`; the job as it was, if it has none."""
    request = job.request
    if job.addresses is not None or job.plan is not None or job.owner is not None or not wanted(request):
        return job, (), None
    found = earlier(request, job.out) if job.resume else None
    if found is None and not job.resume:
        emit("stage", text="surveying the records")
        memory = None if request.memory is None else parse_memory(request.memory)
        source = opened(source_named(request), memory=memory, folder=job.out)
        records = OpenTable(*while_read.enter_context(source))
        found = survey(request, records, job.out, job.wait, partial(_check_both, job), budget_of(job))
    if found is None:
        while_read.close()
        return job, (), None
    return replace(job, request=found.request), found.before, found.records


def _check_both(job: OwnersJob, survey: Plan, training: Plan) -> None:
    """Errors: a survey and the training after it do not fit into the budget together."""
    budget = budget_of(job)
    if budget is not None:
        coming = (entry_of(survey, FIRST_ATTEMPT, 0),)
        check_budget(training, FIRST_ATTEMPT, budget, ledger_path(job.out, 0), coming)


def _records_and_plan(
    job: OwnersJob, before: tuple[Mechanism, ...], records: OpenTable | None
) -> tuple[Dataset, Plan, Advice | None]:
    """The training rows of the owners played here, sorted by owner, the plan, and the advice that it follows or what
    is expected of it. `records`: those of the request, where they are open."""
    plan = None if job.plan is None else Plan.read(job.plan)
    if job.owner is not None:
        assert plan is not None
        return load_owner(job.request, plan, job.owner, job.out), plan, None
    dataset, split = load(job.request, job.out, plan, records)
    facts = replace(facts_of(dataset, split), before=before)
    if plan is None:
        request, advice = settled(job.request, facts)
        return dataset, plan_of(request, facts), advice or expectation(request, facts)
    check_shape(plan, dataset, facts.sizes, plan.sizes)
    return dataset, plan, None


def budget_of(job: OwnersJob) -> Budget | None:
    """The budget that was asked for, over the ledgers below the folder of the run's directory unless another is
    named."""
    return budget_below(job.request.budget, job.request.ledgers, job.out)


def budget_below(text: str | None, ledgers: Path | str | None, out: Path) -> Budget | None:
    """The budget written "EPS,DELTA", as `Budget.below` has it."""
    return None if text is None else Budget.below(parse_budget(text), ledgers, out)


def check_budget(plan: Plan, attempt: Attempt, budget: Budget, ledger: Path, coming: tuple[Entry, ...] = ()) -> None:
    """Returns if the releases that the attempt still has fit into `budget` now, with all that was spent or is reserved
    on the same data, and with what is `coming` before it. What binds is each party's own reservation; this one names
    the cause before anything starts. Errors: they do not; a ledger that was changed."""
    reservation = reservation_of(plan, attempt)
    if reservation.first < reservation.end:
        books = read_ledgers(budget.root)
        if coming:
            books = [*books, Book(coming, 0, 0, len(coming), "", "to come")]
        check_fits(budget, reservation, books, ledger.resolve())


def forecast_of(plan: Plan, releases: int, *, here: bool) -> Forecast | None:
    """What the noise made ahead for so many releases will take; None where none is. `here`: all parties are on this
    machine."""
    if not (plan.parties and plan.pool and plan.derived.mechanism.scale and releases):
        return None
    backend = BACKENDS[plan.backend]
    return forecast(backend, plan.derived.sampler, releases, plan.dimension, plan.parties, plan.threshold, here=here)


def _check_possible(plan: Plan, releases: int) -> None:
    """Errors: the noise of so many releases does not fit into the memory of this machine, where all parties are."""
    if plan.parties and plan.derived.mechanism.scale and releases:
        sizes = [plan.dimension] if not plan.pool else [k * plan.dimension for k in fills(releases, plan.dimension)]
        many = f"--backend {FOR_MANY}, " if plan.backend == DEFAULT and 5 < plan.parties <= 32 else ""
        at = plan.derived.sampler, sizes, plan.parties, plan.threshold
        refuse_hopeless(BACKENDS[plan.backend], *at, here=True, way_out=f"use {many}a smaller -M or -T, or --no-pool")


def _aggregator(
    run: _Run, parties: PartiesHere | SitesHere | None, stack: contextlib.ExitStack, log: Log, emit: Emit, spent: int
) -> Aggregator | SitesRun:
    """What opens the releases of this attempt. `spent`: as many have a line in the ledger here."""
    job, plan = run.job, run.plan

    def say(text: str) -> None:
        log(text)
        emit("stage", text=text)

    if isinstance(parties, SitesHere):
        records, known = run.dataset.train, run.known
        return stack.enter_context(
            parties.of(plan, run.attempt, job.wait, job.out, records, known, stall=job.stall, say=say)
        )
    here: PartiesHere | PartyHere | None = parties
    if job.party is not None:
        here = PartyHere(job.party, log, emit)
        stack.callback(here.end)
    aggregator = Aggregator.of_plan(
        plan,
        out=job.out,
        parties=here,
        addresses=job.addresses,
        owners=None if job.owner is None else (job.owner, job.owner + 1),
        attempt=run.attempt,
        tls=job.tls,
        wait=job.wait,
        stall=job.stall,
        say=say,
        spent=spent,
    )
    stack.enter_context(aggregator)
    if here is not None:
        run.wait.append(here.wait)
    emit("connections", of=lambda: aggregator.connected)
    return aggregator


def _learn(
    run: _Run,
    parties: PartiesHere | SitesHere | None,
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
        # With parties elsewhere, this process keeps a ledger of its own: theirs are not at hand.
        own = job.addresses is not None and job.party is None
        who = None if job.owner is None else f"owner {job.owner}"
        ledger, spent = outer.enter_context(Ledger(job.out / OWN_LEDGER, who)) if own else None, 0
        held: Held | None = None
        if ledger is not None:
            spent = min(spent_releases(ledger.path, plan.run_id), plan.releases) if run.attempt == AGREED else 0
            mine = replace(run.attempt, first_release=max(spent, run.attempt.first_release))
            held = outer.enter_context(reserved(ledger, reservation_of(plan, mine), job.budget))
        if plan.parties:
            emit("stage", text="connecting", phase="connecting")
        left = plan.releases - run.attempt.first_release
        expected = forecast_of(plan, left, here=job.addresses is None) or about_noise(plan, left)
        with contextlib.ExitStack() as stack:
            aggregator = _aggregator(run, parties, stack, log, emit, spent)
            emit("stage", text=f"making noise: {expected}" if expected else "starting", phase="making noise")
            aggregator.wait_for_noise()
            before = aggregator.bytes_before
            emit("stage", text="training", phase="releasing")
            attempt, first = run.attempt, run.attempt.first_release
            if isinstance(aggregator, Aggregator):
                before, replayed = _catch_up(run, aggregator, opened, before), learner.iteration
                attempt, first = aggregator.attempt, aggregator.next
                if attempt.number:
                    log(f"attempt {attempt.number} goes on with release {first}; {replayed} were opened before")
                if held is not None and first < plan.releases:
                    held.begin(entry_of(plan, attempt, first, token=aggregator.token))
            for number in range(first, plan.releases):
                begin = time.perf_counter()
                if ledger is not None:
                    ledger.append(entry_of(plan, attempt, number))  # before a share of it leaves
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
                    seconds=row.seconds,
                )

            def costs(of: Sequence[PartyCost]) -> Costs:
                lost = aggregator.parties_lost if isinstance(aggregator, Aggregator) else ()
                return Costs(time.time() - job.started, seconds, learner.compute_s, of, replayed, lost)

            comes_again = isinstance(aggregator, Aggregator) and run.attempt == AGREED
            if isinstance(aggregator, Aggregator) and comes_again:
                keep(attempt, costs(aggregator.costs()))
            of = aggregator.finish()
            for wait in run.wait:
                wait()
            if not comes_again:
                keep(attempt, costs(of))


def _catch_up(run: _Run, aggregator: Aggregator, opened: Opened, before: int) -> int:
    """Takes what was opened before this process came; the bytes that all processes had sent by then."""
    plan = run.plan
    while several := aggregator.catch_up():  # others go on meanwhile
        for missed in several:
            opened.append(missed.number, missed.total)
            run.learner.apply(decode(plan, missed.total, missed.present))
            run.note(missed.number, None, None, missed.present)
            before = max(before, missed.bytes_sent)
    if aggregator.next >= plan.releases and not run.learner.iteration:
        raise UsageError(
            f"a run goes on within its budget; all {plan.releases} releases are spent and none was opened; start a new "
            "run, with a budget of its own"
        )
    return before
