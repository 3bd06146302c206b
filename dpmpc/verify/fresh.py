"""Fresh releases with known inputs, through the same party and owner code as a training run, in real processes.

The step of a release and the owners' arithmetic are arguments: what a deployed run uses, or a test double.
"""

import asyncio
import multiprocessing
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np

from dpmpc.aggregation.grid import Ints
from dpmpc.aggregation.owner import OwnerClient
from dpmpc.aggregation.party import PartyJob, run_party
from dpmpc.aggregation.plan import Plan, plan_path
from dpmpc.aggregation.release import MakeStep, release
from dpmpc.errors import DpmpcError, PeerError, UsageError
from dpmpc.mpc import field
from dpmpc.mpc.loopback import free_base_port
from dpmpc.mpc.prg import Prg
from dpmpc.mpc.session import endpoints_here
from dpmpc.noise.samplers import Law, make_sampler
from dpmpc.runs.folder import prepare
from dpmpc.runs.launcher import owner_endpoints
from dpmpc.runs.worker import log_to
from dpmpc.verify.audit import Trials
from dpmpc.verify.canaries import CANARIES, Canaries, Known, processes_of
from dpmpc.verify.claim import claimed_epsilon, shift_of
from dpmpc.verify.statistics import Sample

Send = Callable[[Plan, Ints], Ints]  # what an owner makes of its vectors before it shares them


def as_they_are(plan: Plan, vectors: Ints) -> Ints:
    """`vectors`."""
    return vectors


@dataclass(frozen=True)
class Outcome:
    """K releases: what was opened (K, d), and the known inputs of each."""

    plan: Plan
    opened: Ints
    known: list[Known]

    def sample(self) -> Sample:
        """What was opened less the exact sums."""
        plan, sums = self.plan, np.stack([k.total for k in self.known])
        bits = np.stack([k.bits for k in self.known])
        law = cast(Law, plan.law)
        discrete = plan.sampler == "discrete"
        return Sample(plan.owners, law, plan.noise_steps, discrete, self.opened - sums, sums, bits)

    def trials(self, name: str) -> Trials:
        """Every canary of every release: its coordinate sees its bit and no other's."""
        plan = self.plan
        base = np.stack([k.base for k in self.known])
        scores = (self.opened - base)[:, 1:].astype(np.float64) / plan.noise_steps
        bits = np.stack([k.bits for k in self.known])
        moved = np.stack([k.total for k in self.known]) - base
        influence = np.abs(moved[:, 1:][bits]) / plan.noise_steps
        return Trials(
            name,
            scores.reshape(-1),
            bits.reshape(-1),
            shift_of(plan),
            (float(influence.min()), float(influence.max())),
            claimed_epsilon(plan),
            plan.delta,
        )


def in_the_clear(plan: Plan, canaries: Canaries) -> Outcome:
    """K releases of the same owners and the same sampler's arithmetic, without MPC: many more in the same time."""
    known = [canaries.draw() for _ in range(plan.releases)]
    sampler = make_sampler(plan.sampler, plan.law, plan.noise_asked)  # type: ignore[arg-type]
    noise = sampler.clear(plan.releases * plan.dimension, Prg.from_os()).reshape(plan.releases, plan.dimension)
    return Outcome(plan, np.stack([k.total for k in known]) + noise, known)


def by_parties(
    plan: Plan, canaries: Canaries, out: Path, *, make_step: MakeStep = release, send: Send = as_they_are
) -> Outcome:
    """K releases by parties in processes of their own; their transcripts, ledgers and logs are left in `out`.

    Errors: the first party's error, one line; PeerError when a party dies.
    """
    _clear(out)
    prepare(out, overwrite=True, resume=False)
    plan.write(plan_path(out))
    addresses = endpoints_here(plan.parties, free_base_port(2 * plan.parties))
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["dpmpc.verify.fresh"])  # imports are paid once, not by each party of each run
    processes, pipes = [], []
    try:
        for i in range(plan.parties):
            here, there = context.Pipe(duplex=False)
            job = PartyJob(plan, i, addresses, owner_endpoints(addresses), out, 30.0)
            process = context.Process(target=_party, args=(there, job, make_step), daemon=True)
            process.start()
            there.close()
            processes.append(process)
            pipes.append(here)
        try:
            opened, known = asyncio.run(_owners(plan, canaries, owner_endpoints(addresses), send))
        except PeerError as error:
            raise _cause(pipes, error) from None
    finally:
        for process in processes:
            process.join(timeout=3.0)
            if process.is_alive():
                process.terminate()
                process.join()
    return Outcome(plan, opened, known)


def _clear(out: Path) -> None:
    """Takes away the ledgers of an earlier verification in `out`: nobody's records. Errors: another run is there."""
    if plan_path(out).exists():
        if f'"data":"{CANARIES}"' not in plan_path(out).read_text(encoding="utf-8"):  # of any version
            raise UsageError(f"--work holds nothing but fresh releases; {out} has another run; name another directory")
        for path in out.glob("ledger_*.jsonl"):
            path.unlink()


def _cause(pipes: list[Any], echo: PeerError) -> DpmpcError:
    """The error that a party met first, rather than the owners' echo of it."""
    for pipe in pipes:
        try:
            if pipe.poll(1.0) and isinstance(error := pipe.recv(), DpmpcError) and not isinstance(error, PeerError):
                return error
        except EOFError:
            continue
    return echo


def _party(pipe: Any, job: PartyJob, make_step: MakeStep) -> None:
    with (job.out / f"party_{job.index}.log").open("a", encoding="utf-8") as file:
        try:
            asyncio.run(run_party(job, log_to(file), lambda *_, **__: None, make_step=make_step))
        except DpmpcError as error:
            print(f"error: {error}", file=file)
            pipe.send(error)
            return
        pipe.send(None)


async def _owners(plan: Plan, canaries: Canaries, endpoints: Any, send: Send) -> tuple[Ints, list[Known]]:
    clients = [OwnerClient(plan, first, end) for first, end in processes_of(plan.owners)]
    opened, known = [], []
    try:
        for client in clients:
            await client.connect(endpoints, 30.0)
        for client in clients:
            await client.ready()
        for number in range(plan.releases):
            inputs = canaries.draw()
            shares = [[send(plan, block) for block in blocks] for blocks in inputs.halves]
            results = await asyncio.gather(
                *(client.release(number, blocks) for client, blocks in zip(clients, shares, strict=True))
            )
            opened.append(field.to_int64(results[0][0]))
            known.append(inputs)
        for client in clients:
            await client.finish()
    finally:
        for client in clients:
            client.abandon()
        await asyncio.sleep(0)
    return np.stack(opened), known
