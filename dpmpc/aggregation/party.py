"""One party of a run: connect, make noise ahead, then one release after another (`release`). Semi-honest, t < n/2.

A party process sees shares, public parameters and opened releases; never an owner's vector, a noise value or the plain
sum. Everything it does to a release is in its transcript, and the ledger line is on disk before the first message of
the opening is sent.
"""

import asyncio
import contextlib
import time
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from dpmpc.aggregation.owner import OwnerGate, PartyCost
from dpmpc.aggregation.plan import Plan
from dpmpc.aggregation.release import MakeStep, Observer, Tools, release, unobserved
from dpmpc.aggregation.traffic import Traffic
from dpmpc.aggregation.transcript import Opened, Transcript
from dpmpc.errors import UsageError
from dpmpc.mpc.field import Words
from dpmpc.mpc.session import Endpoint, Session
from dpmpc.mpc.tls import Tls
from dpmpc.noise.pool import Pool
from dpmpc.noise.samplers import make_sampler
from dpmpc.privacy.ledger import Ledger
from dpmpc.processes.memory import peak_memory

Log = Callable[[str], None]
Emit = Callable[..., None]


@dataclass(frozen=True)
class PartyJob:
    """Which party of which run this is, where everybody listens, where it writes."""

    plan: Plan
    index: int
    addresses: Sequence[Endpoint]
    owner_addresses: Sequence[Endpoint]
    out: Path
    wait: float
    tls: Path | None = None  # the directory of this party's certificate and key


def ledger_path(out: Path, party: int) -> Path:
    return out / f"ledger_{party}.jsonl"


def transcript_path(out: Path, party: int) -> Path:
    return out / f"party_{party}.transcript.jsonl"


def opened_path(out: Path, party: int) -> Path:
    return out / f"party_{party}.opened.bin"


async def run_party(
    job: PartyJob, log: Log, emit: Emit, observe: Observer = unobserved, make_step: MakeStep = release
) -> None:
    """Returns when the run is over. `observe` is told of every stage of every release; `make_step` makes what does a
    release.

    Errors: PeerError when another process leaves, UsageError for a taken port or ledger."""
    plan, i = job.plan, job.index
    tls = None if job.tls is None else Tls.load(job.tls, f"party{i}")
    traffic = Traffic()
    session = Session(i, plan.parties, plan.threshold, plan.session_id, traffic)
    gate = OwnerGate(plan, i)
    try:
        try:
            await gate.listen(job.owner_addresses[i], tls)
        except OSError as error:
            raise UsageError(
                f"party {i} must listen for owners on {job.owner_addresses[i]}, but that fails "
                f"({error.strerror or error}); choose another base port with -B, or addresses with -P"
            ) from None
        log(
            f"party {i} of {plan.parties}, threshold {plan.threshold}, run {plan.run_id}, attempt {plan.attempt}, "
            f"plan {plan.digest().hex()[:16]}"
        )
        await first_of(_serve(job, tls, session, gate, traffic, log, emit, observe, make_step), session.lost, gate.lost)
    finally:
        gate.abandon()
        session.abandon()
        await asyncio.sleep(0)


async def first_of(body: Coroutine[Any, Any, None], *lost: "asyncio.Future[None]") -> None:
    """Runs `body` to its end, or until one of the futures `lost` fails; then its error is raised and `body`
    cancelled."""
    task = asyncio.ensure_future(body)
    await asyncio.wait([task, *lost], return_when=asyncio.FIRST_COMPLETED)
    if not task.done():
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
        for future in lost:
            if future.done():
                future.result()
    task.result()


async def _serve(
    job: PartyJob,
    tls: Tls | None,
    session: Session,
    gate: OwnerGate,
    traffic: Traffic,
    log: Log,
    emit: Emit,
    observe: Observer,
    make_step: MakeStep,
) -> None:
    plan, i = job.plan, job.index
    with contextlib.ExitStack() as stack:
        ledger = stack.enter_context(Ledger(ledger_path(job.out, i)))
        transcript = stack.enter_context(contextlib.closing(Transcript(transcript_path(job.out, i))))
        opened_file = stack.enter_context(contextlib.closing(Opened(opened_path(job.out, i))))
        transcript.note(
            "start",
            run=plan.run_id,
            attempt=plan.attempt,
            party=i,
            plan=plan.digest().hex(),
            first_release=plan.first_release,
        )
        transcript.flush()
        await session.connect(job.addresses, plan.digest(), seconds=job.wait, tls=tls)
        log("connected with the other parties")
        await gate.admit(job.wait)
        log(f"connected with all {plan.owners} owners")
        begin = time.perf_counter()
        tools = Tools(plan, session, gate, Noise(plan, session), ledger, transcript, opened_file, traffic, observe)
        step = make_step(tools)
        emit("stage", text=f"making noise for {plan.releases - plan.first_release} releases" if plan.pool else "ready")
        await tools.source.fill()
        offline = time.perf_counter() - begin
        log(f"noise made ahead for {tools.source.ahead} releases in {offline:.3f} s")
        gate.announce(session.bytes_sent + gate.bytes_sent)
        begin = time.perf_counter()
        for number in range(plan.first_release, plan.releases):
            tools.publish(number, await step(number))
        online = time.perf_counter() - begin
        tools.end(plan.releases - plan.first_release)
        log(f"{plan.releases - plan.first_release} releases opened in {online:.3f} s")
        emit("stage", text=f"{plan.releases - plan.first_release} releases opened")
        await gate.finish(
            PartyCost(
                bytes_to_parties=session.bytes_sent,
                bytes_to_owners=gate.bytes_sent,
                bytes_received=session.bytes_received + gate.bytes_received,
                offline_rounds=session.rounds - tools.rounds,
                online_rounds=tools.rounds,
                offline_s=offline,
                online_s=online,
                peak_memory=peak_memory(),
            )
        )
        await session.close()
        log("end")


class Noise:
    """This party's shares of the noise of each release of this attempt; each is handed out once, in order."""

    def __init__(self, plan: Plan, session: Session) -> None:
        self._plan, self._session = plan, session
        self._pool: Pool | None = None
        if plan.noise_steps:
            sampler = make_sampler(plan.sampler, plan.law, plan.noise_asked)  # type: ignore[arg-type]
            assert sampler.scale == plan.noise_steps, "all processes must make the same sampler from the same plan"
            left = plan.releases - plan.first_release
            ahead = (
                {} if plan.pool else {"ahead": plan.dimension}
            )  # without a pool: one vector at a time, when it is needed
            self._pool = Pool(session, sampler, left, plan.dimension, **ahead)

    async def fill(self) -> None:
        """Make noise ahead, if the plan says so."""
        if self._pool is not None and self._plan.pool:
            await self._pool.fill()

    @property
    def ahead(self) -> int:
        """How many vectors were made so far."""
        return self._pool.generated if self._pool is not None else 0

    async def take(self, release: int) -> Words:
        """The share (d,) of the noise of `release`."""
        if self._pool is None:
            return np.zeros(self._plan.dimension, dtype=np.uint64)
        return await self._pool.take(release - self._plan.first_release)
