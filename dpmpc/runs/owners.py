"""The owners' process of a run: records in, one release after another through the one `Aggregator`, model and report
out. With parties here it is the whole run; with parties elsewhere it plays all owners or one of them."""

import contextlib
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from dpmpc.aggregation.aggregator import Aggregator
from dpmpc.aggregation.encoding import decode
from dpmpc.aggregation.frames import rows_of_block
from dpmpc.aggregation.grid import Ints
from dpmpc.aggregation.local import PartiesHere
from dpmpc.aggregation.plan import FIRST_ATTEMPT, Attempt, Plan, plan_path
from dpmpc.aggregation.transcript import Opened
from dpmpc.data import Dataset
from dpmpc.errors import UsageError
from dpmpc.learning.evaluate import Evaluator
from dpmpc.learning.learner import Learner
from dpmpc.learning.model import write_model
from dpmpc.mpc.addresses import Endpoint
from dpmpc.privacy.composition import parse_budget, require_budget
from dpmpc.privacy.ledger import Entry, Ledger, merge
from dpmpc.privacy.mechanism import Mechanism
from dpmpc.processes.worker import Log
from dpmpc.runs.adviser import Advice
from dpmpc.runs.chart import draw
from dpmpc.runs.history import History, Row, read_history
from dpmpc.runs.planning import check_shape, facts_of, plan_of, settled
from dpmpc.runs.records import load, load_owner
from dpmpc.runs.report import Costs, build_report, write_report
from dpmpc.runs.request import Request
from dpmpc.runs.resume import note_attempt, resume
from dpmpc.runs.surveying import earlier, survey, wanted

Emit = Callable[..., None]
OPENED = "owners.opened.bin"


@dataclass(frozen=True)
class OwnersJob:
    """What to do and where to write. `started`: Unix time at which the user's command began.

    `addresses`: where parties elsewhere listen for owners; None: the parties are started here, on `base_port` or free
    ports, doing `role`. `tls`: the directory of the owners' certificate and key. `plan`: made before; by default it is
    made here. `owner`: the only one to play here; by default all.
    """

    request: Request
    out: Path
    wait: float
    started: float
    resume: bool = False
    addresses: Sequence[Endpoint] | None = None
    base_port: int | None = None
    role: str | None = None
    tls: Path | None = None
    plan: Path | None = None
    owner: int | None = None


def run_owners(job: OwnersJob, log: Log, emit: Emit) -> None:
    """Does the run. Errors: bad input (before any connection), and PeerError when a party leaves."""
    with contextlib.ExitStack() as stack:
        parties = None
        if job.addresses is None and job.request.engine == "mpc":  # they import while records are loaded
            settings = {} if job.role is None else {"role": job.role}
            parties = PartiesHere(job.request.parties, job.out, base_port=job.base_port, **settings)
            stack.callback(parties.end)
        _run(job, parties, log, emit)


@dataclass(frozen=True)
class _Run:
    job: OwnersJob
    plan: Plan
    attempt: Attempt
    learner: Learner
    evaluator: Evaluator | None
    history: History

    def note(self, release: int, seconds: float | None, sent: int | None) -> Row:
        """Write the row of the iteration that `release` gave."""
        loss = gap = score = None
        if self.evaluator is not None:
            model = self.learner.model
            loss, score = self.evaluator.objective(model), self.evaluator.score(model)
            gap = loss - self.evaluator.best
        row = Row(self.learner.iteration, release, loss, gap, score, seconds, sent)
        self.history.append(row)
        return row


def _run(job: OwnersJob, parties: PartiesHere | None, log: Log, emit: Emit) -> None:
    job, before = _surveyed(job, emit)
    emit("stage", text="loading records")
    dataset, plan, advice = _records_and_plan(job, before)
    log(f"{dataset.name}: {dataset.n} training and {dataset.test.n} test records, {dataset.d} features")
    for counts in dataset.counts:
        if counts.warning is not None:  # for this process's own terminal: it depends on records
            emit("stage", text=f"warning: {counts.warning}")
    attempt, known = FIRST_ATTEMPT, dict[int, Ints]()
    if job.resume:
        plan, attempt, known = resume(job.out, plan)
        log(f"carried on from release {attempt.first_release}; {len(known)} opened before")
    if job.request.budget is not None:
        check_budget(plan, attempt, _ledgers(job), parse_budget(job.request.budget))
    plan.write(plan_path(job.out))
    note_attempt(job.out, attempt)
    evaluator = None
    if job.request.evaluate and job.owner is None:
        emit("stage", text="finding the non-private optimum, for comparison")
        evaluator = Evaluator(plan.learning, dataset)
    emit("plan", releases=plan.releases, first=attempt.first_release)
    noted = {row.release for row in read_history(job.out / "history.csv")}
    first, end = (0, plan.owners) if job.owner is None else (job.owner, job.owner + 1)
    noise = plan.derived.mechanism.scale * plan.grid.step / plan.divisor
    learner = Learner(plan.learning, plan.releases, dataset.train, plan.sizes[first:end], noise)
    with contextlib.closing(History(job.out / "history.csv", plan.learning)) as history:
        run = _Run(job, plan, attempt, learner, evaluator, history)
        for release in sorted(known):
            learner.apply(decode(plan, known[release]))
            if release not in noted:
                run.note(release, None, None)
        if attempt.first_release >= plan.releases and not learner.iteration:
            raise UsageError(
                f"a resumed run goes on within its budget; all {plan.releases} releases are spent and none was "
                "opened; start a new run, with a budget of its own"
            )
        costs = _learn(run, parties, emit)
    write_model(job.out / "model.npz", learner.model, dataset, plan.run_id)
    report = build_report(plan, attempt, learner, evaluator, costs, advice)
    write_report(job.out / "report.json", report)
    draw(job.out, report)
    log(f"{learner.iteration} iterations; report and model written")


def _surveyed(job: OwnersJob, emit: Emit) -> tuple[OwnersJob, tuple[Mechanism, ...]]:
    """The job with the schema of its survey, and what that released; as it was, if it has none."""
    request = job.request
    if job.addresses is not None or job.plan is not None or job.owner is not None or not wanted(request):
        return job, ()
    found = earlier(request, job.out) if job.resume else None
    if found is None and not job.resume:
        emit("stage", text="surveying the records")
        found = survey(request, job.out, job.wait, partial(_check_both, job))
    if found is None:
        return job, ()
    return replace(job, request=found.request), found.before


def _check_both(job: OwnersJob, survey: Plan, training: Plan) -> None:
    """Errors: a survey and the training after it do not fit into the budget together."""
    if job.request.budget is not None:
        coming = Entry(survey.run_id, 0, (survey.data_id,), survey.derived.mechanism, 1, survey.epsilon, survey.delta)
        budget = parse_budget(job.request.budget)
        check_budget(training, FIRST_ATTEMPT, _ledgers(job), budget, (coming,))


def _ledgers(job: OwnersJob) -> Path:
    return job.out.resolve().parent if job.request.ledgers is None else Path(job.request.ledgers)


def _records_and_plan(job: OwnersJob, before: tuple[Mechanism, ...]) -> tuple[Dataset, Plan, Advice | None]:
    """The training rows of the owners played here, sorted by owner, the plan, and the advice that is in it."""
    plan = None if job.plan is None else Plan.read(job.plan)
    if job.owner is not None:
        assert plan is not None
        return load_owner(job.request, plan, job.owner, job.out), plan, None
    dataset, split = load(job.request, job.out)
    facts = replace(facts_of(dataset, split), before=before)
    if plan is None:
        request, advice = settled(job.request, facts)
        return dataset, plan_of(request, facts), advice
    check_shape(plan, dataset, facts.sizes, plan.sizes)
    return dataset, plan, None


def check_budget(
    plan: Plan, attempt: Attempt, ledgers: Path, budget: tuple[float, float], coming: Sequence[Entry] = ()
) -> None:
    """Returns if the releases that the attempt still has fit into `budget`, with all that the ledgers below `ledgers`
    say was spent on the same data, and with what is `coming` before it. Errors: they do not; a ledger that was changed.
    """
    books = [Ledger.read(path) for path in sorted(ledgers.rglob("ledger*.jsonl"))]
    left = plan.releases - attempt.first_release
    if left:
        unknown = sum(book.unknown for book in books)
        require_budget([*merge(books), *coming], [plan.data_id], plan.derived.mechanism, left, budget, unknown)


def _learn(run: _Run, parties: PartiesHere | None, emit: Emit) -> Costs:
    plan, learner, job = run.plan, run.learner, run.job
    replayed = learner.iteration
    seconds: list[float] = []
    owners = None if job.owner is None else (job.owner, job.owner + 1)
    with contextlib.closing(Opened(job.out / OPENED)) as opened:
        if plan.parties:
            emit("stage", text="connecting")
        with Aggregator.of_plan(
            plan,
            out=job.out,
            parties=parties,
            addresses=job.addresses,
            owners=owners,
            attempt=run.attempt,
            tls=job.tls,
            wait=job.wait,
        ) as aggregator:
            emit("stage", text="making noise" if plan.pool else "starting")
            aggregator.wait_for_noise()
            before = aggregator.bytes_before
            emit("stage", text="training")
            for number in range(run.attempt.first_release, plan.releases):
                begin = time.perf_counter()
                release = aggregator.open(learner.vectors(rows_of_block(plan.dimension)))
                opened.append(number, release.total)
                learner.apply(decode(plan, release.total))
                seconds.append(time.perf_counter() - begin)
                row = run.note(number, seconds[-1], release.bytes_sent - before)
                before = release.bytes_sent
                emit(
                    "iteration",
                    done=row.iteration,
                    total=plan.releases,
                    loss=row.loss,
                    score=row.score,
                    seconds=row.seconds,
                )
            costs = aggregator.finish()
        if parties is not None:
            parties.wait()
    return Costs(time.time() - job.started, seconds, learner.compute_s, costs, replayed)
