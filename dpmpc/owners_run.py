"""The owners' process of a run, from records to the files in the run directory; also the whole of a run with `--engine clear`."""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from dpmpc.data import Dataset
from dpmpc.errors import UsageError
from dpmpc.field import Words
from dpmpc.history import History, Row, read_history
from dpmpc.ledger import Ledger
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
    plan = make_plan(options, facts_of(dataset, split))
    known: dict[int, Words] = {}
    if job.resume:
        plan, known = resume(job.out, plan)
        log(f"carried on from release {plan.first_release}; {len(known)} opened before")
    write_plan(plan_path(job.out), plan)
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
    noted = {row.release for row in read_history(job.out / "history.csv")} if job.resume else set()
    with contextlib.closing(History(job.out / "history.csv", plan)) as history:
        for release in sorted(known):
            learner.apply(known[release])
            if release not in noted:
                history.append(_row(learner, evaluator, release, None, None))
        if plan.first_release >= plan.releases and not learner.iteration:
            raise UsageError(
                f"a resumed run goes on within its budget; all {plan.releases} releases are spent and none was opened; "
                "start a new run, with a budget of its own"
            )
        asyncio.run(_learn(job, plan, learner, evaluator, history, emit, log, dataset))


async def _learn(
    job: OwnersJob,
    plan: Plan,
    learner: Learner,
    evaluator: Evaluator | None,
    history: History,
    emit: Emit,
    log: Log,
    dataset: Dataset,
) -> None:
    replayed = learner.iteration
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
    costs = Costs(time.time() - job.started, seconds, party_costs, replayed)
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


def resume(out: Path, fresh: Plan) -> tuple[Plan, dict[int, Words]]:
    """(the plan of the next attempt, release -> opened vector of the earlier ones) for the interrupted run in `out`.

    A release that any party's ledger has a line for is spent, opened or not; the next attempt goes on after it, so the run never makes
    more releases than were planned. Errors: the options or records lead to another plan than the one in `out`; nothing is left to do.
    """
    plan = Plan.read(plan_path(out))
    expected = replace(fresh, run_id=plan.run_id, attempt=plan.attempt, first_release=plan.first_release)
    if expected != plan:
        raise UsageError(f"a resumed run must have the records and options it began with; {out} has another plan; start a new run")
    if (out / "report.json").exists():
        raise UsageError(f"--resume is for interrupted runs; {out} is finished; see its report.json")
    known = opened_anywhere(out, plan)
    spent = max((spent_releases(path) for path in sorted(out.glob("ledger_*.jsonl"))), default=0)
    return plan.resumed(max(spent, max(known, default=-1) + 1)), known


def spent_releases(ledger: Path) -> int:
    """One more than the number of the last release that has a line in this ledger; a torn last line is one more."""
    book = Ledger.read(ledger)
    torn = not ledger.read_bytes().endswith(b"\n") and book.lines > 0
    return max((entry.release + 1 for entry in book.entries), default=0) + torn


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


def write_plan(path: Path, plan: Plan) -> None:
    """Writes plan.json whole or not at all."""
    partial = path.with_suffix(".tmp")
    partial.write_text(plan.to_text(), encoding="utf-8")
    partial.replace(path)
