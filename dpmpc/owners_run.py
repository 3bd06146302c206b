"""The owners' process of a run, from records to the files in the run directory; also the whole of a run with `--engine clear`."""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from dpmpc.data import Dataset
from dpmpc.errors import UsageError
from dpmpc.field import Words
from dpmpc.history import History, Row
from dpmpc.options import Options
from dpmpc.owner import OwnerClient, PartyCost
from dpmpc.plan import Plan, make_plan
from dpmpc.prg import Prg
from dpmpc.report import Costs, build_report, write_model, write_report
from dpmpc.samplers import make_sampler
from dpmpc.session import Endpoint
from dpmpc.train import Evaluator, Learner, clear_release, facts_of, load
from dpmpc.transcript import Opened, read_opened

Log = Callable[[str], None]
Emit = Callable[..., None]
Release = Callable[[int], Awaitable[tuple[Words, int]]]


@dataclass(frozen=True)
class OwnersJob:
    """What to do, where the parties listen for owners, where to write. `started`: Unix time at which the user's command began."""

    options: Options
    owner_addresses: Sequence[Endpoint]
    out: Path
    wait: float
    started: float
    resume: bool


def plan_path(out: Path) -> Path:
    return out / "plan.json"


def run_owners(job: OwnersJob, log: Log, emit: Emit) -> None:
    """Does the run. Errors: bad input (before any connection), and PeerError when a party leaves."""
    options = job.options
    emit("stage", text="loading records")
    dataset, split = load(options)
    log(
        f"{dataset.name}: {dataset.n} training records, {len(dataset.y_test)} test records, {dataset.d} features, {split.m} owners"
    )
    if job.resume:
        raise UsageError("--resume is not there yet")
    plan = make_plan(options, facts_of(dataset, split))
    known: dict[int, Words] = {}
    plan_path(job.out).write_text(plan.to_text(), encoding="utf-8")
    evaluator = None
    if options.evaluate:
        emit("stage", text="finding the non-private optimum, for comparison")
        evaluator = Evaluator(plan, dataset)
    emit(
        "plan",
        path=str(plan_path(job.out)),
        releases=plan.releases,
        first=plan.first_release,
        dimension=plan.dimension,
        owners=plan.owners,
    )
    learner = Learner(plan, dataset.X, dataset.y)
    with contextlib.closing(History(job.out / "history.csv", plan)) as history:
        asyncio.run(_learn(job, plan, learner, evaluator, history, known, emit, log, dataset))


async def _learn(
    job: OwnersJob,
    plan: Plan,
    learner: Learner,
    evaluator: Evaluator | None,
    history: History,
    known: dict[int, Words],
    emit: Emit,
    log: Log,
    dataset: Dataset,
) -> None:
    async with _engine(job, plan, learner, emit) as (release_of, finish):
        emit("stage", text="training")
        seconds: list[float] = []
        before = 0
        for release in range(plan.first_release, plan.releases):
            begin = time.perf_counter()
            opened, sent = await release_of(release)
            learner.apply(opened)
            seconds.append(time.perf_counter() - begin)
            row = _row(learner, evaluator, release, seconds[-1], sent - before)
            before = sent
            history.append(row)
            emit(
                "iteration",
                done=learner.iteration,
                total=plan.releases,
                loss=row.loss,
                gap=row.gap,
                score=row.score,
                seconds=row.seconds,
            )
        party_costs = await finish()
    costs = Costs(time.time() - job.started, seconds, party_costs, 0)
    write_model(job.out / "model.npz", plan, learner, dataset)
    write_report(job.out / "report.json", build_report(plan, learner, evaluator, dataset, costs))
    log(f"{learner.iteration} iterations; report and model written")
    emit("done")


def _row(learner: Learner, evaluator: Evaluator | None, release: int, seconds: float | None, sent: int | None) -> Row:
    loss = gap = score = None
    if evaluator is not None:
        model = learner.model
        loss, score = evaluator.objective(model), evaluator.score(model)
        gap = loss - evaluator.best
    return Row(learner.iteration, release, loss, gap, score, seconds, sent)


@contextlib.asynccontextmanager
async def _engine(
    job: OwnersJob, plan: Plan, learner: Learner, emit: Emit
) -> AsyncIterator[tuple[Release, Callable[[], Awaitable[list[PartyCost]]]]]:
    """(release -> (opened sum, bytes sent so far), finish -> the parties' costs), in the clear or by MPC."""
    if job.options.engine == "clear":
        sampler = make_sampler(plan.sampler, plan.law, plan.noise_asked)  # type: ignore[arg-type]
        prg = Prg.from_os()

        async def in_the_clear(release: int) -> tuple[Words, int]:
            noise = sampler.clear(plan.dimension, prg)
            return clear_release(learner, noise if plan.noise_steps else 0 * noise), 0

        async def nothing() -> list[PartyCost]:
            return []

        yield in_the_clear, nothing
        return
    client = OwnerClient(plan)
    try:
        emit("stage", text="connecting")
        await client.connect(job.owner_addresses, job.wait)
        emit("stage", text="making noise" if plan.pool else "starting")
        await client.ready()
        with contextlib.closing(Opened(job.out / "owners.opened.bin")) as file:

            async def by_mpc(release: int) -> tuple[Words, int]:
                opened, sent = await client.release(release, learner.vectors())
                file.append(release, opened)
                return opened, sent + client.bytes_sent

            yield by_mpc, client.finish
    finally:
        client.abandon()
        await asyncio.sleep(0)


def opened_anywhere(out: Path, plan: Plan) -> dict[int, Words]:
    """release -> opened vector, from the files of all parties and of the owners in `out`. Errors: two that differ."""
    result: dict[int, Words] = {}
    for path in sorted(out.glob("*.opened.bin")):
        for release, values in read_opened(path, plan.dimension).items():
            if release in result and (result[release] != values).any():
                raise UsageError(
                    f"all files must hold the same opened vectors; release {release} differs in {path}; restore the run directory"
                )
            result[release] = values
    return result
