"""The two roles of a measured release: a party, and the owners as a client of the one `Aggregator`; the code of
`dpmpc.aggregation` that training runs on.

Times are readings of the monotonic clock, which all processes of a machine share.
"""

import asyncio
import time
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

import numpy as np

from dpmpc.aggregation.owner.aggregator import Aggregator
from dpmpc.aggregation.party.job import PartyJob
from dpmpc.aggregation.party.owner_gate import OwnerGate
from dpmpc.aggregation.party.party import run_party
from dpmpc.aggregation.party.release import ReleaseSteps, Step, release
from dpmpc.aggregation.plan.grid import Ints
from dpmpc.aggregation.plan.here import Here
from dpmpc.aggregation.plan.plan import Plan
from dpmpc.aggregation.wire.frames import blocks_of
from dpmpc.benchmarks.network import Addresses
from dpmpc.errors import DpmpcError
from dpmpc.folders import passing_folder
from dpmpc.mpc.contract.backend import Holder, Share
from dpmpc.mpc.transport.addresses import Endpoint
from dpmpc.processes.memory import peak_memory
from dpmpc.processes.worker import Emit, Log

STAGES = ("begin", "collect", "noise", "add", "stand", "ledger", "open", "publish")
WAIT = 120.0  # seconds for connections: a busy machine may start processes slowly


class Observed:
    """Times of every stage of every release at a party, and what each release and the noise made ahead sent."""

    def __init__(self) -> None:
        self.times: list[list[float]] = []
        self.adding: list[float] = []  # seconds
        self.counts: list[list[int]] = []  # to parties, to owners, received, rounds
        self.ahead: list[int] = []  # to parties, rounds

    def make_step(self, steps: ReleaseSteps) -> Step:
        """What does a release, as ever; made after all connections stand and before any noise is."""
        self.ahead = [-steps.holder.bytes_sent, -steps.holder.rounds]
        return release(steps)

    def stage(self, stage: str, number: int, holder: Holder[Share], gate: OwnerGate) -> None:
        """Notes that a stage has ended."""
        if stage == "begin":
            if not self.times:
                self.ahead = _sum(self.ahead, [holder.bytes_sent, holder.rounds])
            self.times.append([])
            self.adding.append(-gate.adding_s)
            self.counts.append([-c for c in _count(holder, gate)])
        self.times[-1].append(time.perf_counter())
        if stage == "collect":
            self.adding[-1] += gate.adding_s
        if stage == "publish":
            self.counts[-1] = _sum(self.counts[-1], _count(holder, gate))


def _count(holder: Holder[Share], gate: OwnerGate) -> list[int]:
    return [holder.bytes_sent, gate.bytes_sent, holder.bytes_received + gate.bytes_received, holder.rounds]


def _sum(a: list[int], b: list[int]) -> list[int]:
    return [x + y for x, y in zip(a, b, strict=True)]


def party(
    *,
    index: int,
    plan: str,
    addresses: Addresses,
    owner_addresses: Addresses,
    sockets: tuple[int, int] | None,
    emit: Emit,
    log: Log,
) -> dict[str, Any]:
    """The role of a party."""
    observed = Observed()
    with passing_folder() as out:
        job = PartyJob(
            Plan.from_text(plan), index, _endpoints(addresses), _endpoints(owner_addresses),
            Here(out=out, wait=WAIT),
            sockets=sockets,
        )  # fmt: skip
        asyncio.run(run_party(job, log, emit, observed.stage, observed.make_step))
    return vars(observed)


def owners(*, plan: str, owner_addresses: Addresses, emit: Emit, log: Log) -> dict[str, Any]:
    """The role of the owners: when every release began and ended, the seconds they spent sharing in it, the bytes they
    sent, and the costs that the parties reported.

    Errors: an opened vector that is not the sum of the owners' vectors and one noise vector.
    """
    planned = Plan.from_text(plan)
    vectors, largest = _Vectors(planned), planned.derived.sampler.largest
    begins, ends, sharing, sent = [], [], [], []
    with Aggregator.of_plan(planned, Here(wait=WAIT), addresses=_endpoints(owner_addresses)) as aggregator:
        aggregator.wait_for_noise()
        for _ in range(planned.releases):
            shared, before = aggregator.session.sharing_s, aggregator.session.bytes_sent
            begins.append(time.perf_counter())
            opened = aggregator.open_steps(vectors.blocks())
            ends.append(time.perf_counter())
            sharing.append(aggregator.session.sharing_s - shared)
            sent.append(aggregator.session.bytes_sent - before)
            if np.abs(opened.total - vectors.total).max() > largest:
                raise DpmpcError(
                    f"a release must open the owners' sum plus noise; release {opened.number} does not; see `dpmpc "
                    "verify`"
                )
        costs = aggregator.finish()
    return {
        "begins": begins,
        "ends": ends,
        "sharing": sharing,
        "bytes_sent": sent,
        "costs": [asdict(cost) for cost in costs],
        "peak_memory": peak_memory(),
    }


def _endpoints(addresses: Addresses) -> list[Endpoint]:
    return [Endpoint(*address) for address in addresses]


class _Vectors:
    """Integer vectors of all owners: one random block, which every block repeats, so that making them takes no part
    in the times.
    """

    def __init__(self, plan: Plan) -> None:
        self._sizes = [end - start for start, end in blocks_of(0, plan.owners, plan.dimension)]
        bound = int(plan.clip / plan.grid.step)
        self._block = np.random.default_rng(5).integers(-bound, bound + 1, (self._sizes[0], plan.dimension))
        self.total: Ints = sum(
            (self._block[:size].sum(axis=0) for size in self._sizes), start=np.zeros(plan.dimension, np.int64)
        )

    def blocks(self) -> Iterator[Ints]:
        """As `Aggregator.open_steps` takes them."""
        for size in self._sizes:
            yield self._block[:size]
