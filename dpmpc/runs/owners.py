"""The owners' process of a run, from records to the files in the run directory; also the whole of a run with `--engine
clear`."""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from dpmpc.aggregation.owner import OwnerClient, PartyCost
from dpmpc.aggregation.plan import Plan, check_promise, make_plan, plan_path
from dpmpc.aggregation.transcript import Opened
from dpmpc.data import Dataset
from dpmpc.errors import UsageError
from dpmpc.mpc.field import Words
from dpmpc.mpc.prg import Prg
from dpmpc.mpc.session import Endpoint
from dpmpc.mpc.tls import Tls
from dpmpc.noise.samplers import make_sampler
from dpmpc.privacy.composition import parse_budget, require_budget
from dpmpc.privacy.ledger import Ledger, merge
from dpmpc.runs.chart import draw
from dpmpc.runs.history import History, Row, read_history
from dpmpc.runs.report import Costs, build_report, write_model, write_report
from dpmpc.runs.request import Options
from dpmpc.runs.resume import resume
from dpmpc.runs.train import Evaluator, Learner, check_shape, clear_release, facts_of, load, load_owner

Log = Callable[[str], None]
Emit = Callable[..., None]


@dataclass(frozen=True)
class OwnersJob:
    """What to do, where the parties listen for owners, where to write. `started`: Unix time at which the user's command
    began."""

    options: Options
    owner_addresses: Sequence[Endpoint]
    out: Path
    wait: float
    started: float
    resume: bool
    tls: Path | None = None  # the directory of the owners' certificate and key
    plan: Path | None = None  # a plan made before; by default it is made here
    owner: int | None = None  # the only owner to play here; by default all


class Aggregation(Protocol):
    """What opens the sum of the owners' vectors and one noise vector: the parties, or this process in the clear."""

    async def ready(self) -> int:
        """The bytes all have sent so far, when the noise made ahead is there."""

    async def release(self, release: int) -> tuple[Words, int]:
        """The opened sum (d,) of a release, and the bytes all have sent so far."""

    async def finish(self) -> list[PartyCost]:
        """Each party's costs."""


@dataclass(frozen=True)
class _Run:
    job: OwnersJob
    plan: Plan
    dataset: Dataset
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


def run_owners(job: OwnersJob, log: Log, emit: Emit) -> None:
    """Does the run. Errors: bad input (before any connection), and PeerError when a party leaves."""
    emit("stage", text="loading records")
    dataset, plan = _records_and_plan(job)
    log(f"{dataset.name}: {dataset.n} training and {len(dataset.y_test)} test records, {dataset.d} features")
    known: dict[int, Words] = {}
    if job.resume:
        plan, known = resume(job.out, plan)
        log(f"carried on from release {plan.first_release}; {len(known)} opened before")
    if job.options.budget is not None:
        directory = job.out.resolve().parent if job.options.ledgers is None else Path(job.options.ledgers)
        check_budget(plan, directory, parse_budget(job.options.budget))
    plan.write(plan_path(job.out))
    evaluator = None
    if job.options.evaluate and job.owner is None:
        emit("stage", text="finding the non-private optimum, for comparison")
        evaluator = Evaluator(plan, dataset)
    emit("plan", path=str(plan_path(job.out)), releases=plan.releases, first=plan.first_release)
    noted = {row.release for row in read_history(job.out / "history.csv")}
    first, end = (0, plan.owners) if job.owner is None else (job.owner, job.owner + 1)
    learner = Learner(plan, dataset.X, dataset.y, first, end)
    with contextlib.closing(History(job.out / "history.csv", plan)) as history:
        run = _Run(job, plan, dataset, learner, evaluator, history)
        for release in sorted(known):
            learner.apply(known[release])
            if release not in noted:
                run.note(release, None, None)
        if plan.first_release >= plan.releases and not learner.iteration:
            raise UsageError(
                f"a resumed run goes on within its budget; all {plan.releases} releases are spent and none was "
                "opened; start a new run, with a budget of its own"
            )
        costs = asyncio.run(_learn(run, emit))
    write_model(job.out / "model.npz", plan, learner, dataset)
    report = build_report(plan, learner, evaluator, costs)
    write_report(job.out / "report.json", report)
    draw(job.out, report)
    log(f"{learner.iteration} iterations; report and model written")
    emit("done")


def _records_and_plan(job: OwnersJob) -> tuple[Dataset, Plan]:
    """The training rows of the owners played here, sorted by owner, and the plan."""
    if job.owner is not None:
        assert job.plan is not None
        plan = _read_plan(job.plan)
        if job.owner >= plan.owners:
            raise UsageError(f"owners are numbered from 0; got owner {job.owner} of {plan.owners}; mend -I")
        return load_owner(job.options, plan, job.owner), plan
    dataset, split = load(job.options)
    facts = facts_of(dataset, split)
    if job.plan is None:
        return dataset, make_plan(job.options, facts)
    plan = _read_plan(job.plan)
    check_shape(plan, dataset, facts.sizes, plan.sizes)
    return dataset, plan


def _read_plan(path: Path) -> Plan:
    """A plan that was made elsewhere; an owner does not take its promise on trust."""
    plan = Plan.read(path)
    check_promise(plan)
    return plan


def check_budget(plan: Plan, ledgers: Path, budget: tuple[float, float]) -> None:
    """Returns if the releases that `plan` still has fit into `budget`, with all that the ledgers below `ledgers` say
    was spent on the same data. Errors: they do not; a ledger that was changed."""
    books = [Ledger.read(path) for path in sorted(ledgers.rglob("ledger*.jsonl"))]
    left = plan.releases - plan.first_release
    if left:
        unknown = sum(book.unknown for book in books)
        require_budget(merge(books), [plan.data_id], plan.mechanism(), left, budget, unknown)


async def _learn(run: _Run, emit: Emit) -> Costs:
    plan, learner = run.plan, run.learner
    replayed = learner.iteration
    seconds: list[float] = []
    with contextlib.closing(Opened(run.job.out / "owners.opened.bin")) as opened_file:
        async with _aggregation(run, emit) as aggregation:
            emit("stage", text="making noise" if plan.pool else "starting")
            before = await aggregation.ready()
            emit("stage", text="training")
            for release in range(plan.first_release, plan.releases):
                begin = time.perf_counter()
                opened, sent = await aggregation.release(release)
                opened_file.append(release, opened)
                learner.apply(opened)
                seconds.append(time.perf_counter() - begin)
                row = run.note(release, seconds[-1], sent - before)
                before = sent
                emit(
                    "iteration",
                    done=row.iteration,
                    total=plan.releases,
                    loss=row.loss,
                    score=row.score,
                    seconds=row.seconds,
                )
            parties = await aggregation.finish()
    return Costs(time.time() - run.job.started, seconds, learner.compute_s, parties, replayed)


@contextlib.asynccontextmanager
async def _aggregation(run: _Run, emit: Emit) -> AsyncIterator[Aggregation]:
    if not run.plan.parties:
        yield _Clear(run.plan, run.learner)
        return
    owner = run.job.owner
    client = OwnerClient(run.plan) if owner is None else OwnerClient(run.plan, owner, owner + 1)
    try:
        emit("stage", text="connecting")
        tls = None if run.job.tls is None else Tls.load(run.job.tls, client.name)
        await client.connect(run.job.owner_addresses, run.job.wait, tls)
        yield _Parties(client, run.learner)
    finally:
        client.abandon()
        await asyncio.sleep(0)


class _Parties:
    """Aggregation by MPC."""

    def __init__(self, client: OwnerClient, learner: Learner) -> None:
        self._client, self._learner = client, learner

    async def ready(self) -> int:
        return await self._client.ready() + self._client.bytes_sent

    async def release(self, release: int) -> tuple[Words, int]:
        opened, sent = await self._client.release(release, self._learner.vectors())
        return opened, sent + self._client.bytes_sent

    async def finish(self) -> list[PartyCost]:
        return await self._client.finish()


class _Clear:
    """The same arithmetic in this process: the same grid, the same law of the noise, no MPC."""

    def __init__(self, plan: Plan, learner: Learner) -> None:
        self._plan, self._learner, self._prg = plan, learner, Prg.from_os()
        self._sampler = make_sampler(plan.sampler, plan.law, plan.noise_asked)  # type: ignore[arg-type]

    async def ready(self) -> int:
        return 0

    async def release(self, release: int) -> tuple[Words, int]:
        noise = self._sampler.clear(self._plan.dimension, self._prg)
        return clear_release(self._learner, noise if self._plan.noise_steps else 0 * noise), 0

    async def finish(self) -> list[PartyCost]:
        return []
