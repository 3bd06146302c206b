"""The two roles of a measured release: a party and the owners, by the code of `dpmpc.aggregation` that
training runs on.

Times are readings of the monotonic clock, which all processes of a machine share.
"""

import asyncio
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from dpmpc.aggregation.grid import Ints
from dpmpc.aggregation.owner import OwnerClient, OwnerGate, blocks_of
from dpmpc.aggregation.party import PartyJob, run_party
from dpmpc.aggregation.plan import Plan
from dpmpc.errors import DpmpcError
from dpmpc.mpc import field
from dpmpc.mpc.session import Session
from dpmpc.noise.samplers import make_sampler
from dpmpc.processes.memory import peak_memory
from dpmpc.runs.worker import endpoints

STAGES = ("begin", "collect", "noise", "add", "ledger", "open", "publish")
WAIT = 120.0  # seconds for connections: a busy machine may start processes slowly


def party(index: int, plan: str, addresses: list[list[Any]], owner_addresses: list[list[Any]]) -> dict[str, Any]:
    """Times of every stage of every release, and bytes and rounds of every release, at one party."""
    times: list[list[float]] = []
    counts: list[list[int]] = []  # to parties, to owners, received, rounds: before and after each release
    adding: list[float] = []
    offline: dict[str, float] = {}

    def count(session: Session, gate: OwnerGate) -> list[int]:
        return [session.bytes_sent, gate.bytes_sent, session.bytes_received + gate.bytes_received, session.rounds]

    def observe(stage: str, release: int, session: Session, gate: OwnerGate) -> None:
        if stage == "begin":
            times.append([])
            adding.append(-gate.adding_s)
            counts.append([-c for c in count(session, gate)])
        times[-1].append(time.perf_counter())
        if stage == "collect":
            adding[-1] += gate.adding_s
        if stage == "publish":
            counts[-1] = [after + before for after, before in zip(count(session, gate), counts[-1], strict=True)]

    def log(text: str) -> None:
        if text.startswith("connected with all"):
            offline["begin"] = time.perf_counter()
        elif text.startswith("noise made ahead"):
            offline["end"] = time.perf_counter()

    with tempfile.TemporaryDirectory() as out:
        job = PartyJob(Plan.from_text(plan), index, endpoints(addresses), endpoints(owner_addresses), Path(out), WAIT)
        asyncio.run(run_party(job, log, lambda *_, **__: None, observe))
    return {
        "times": times,
        "adding": adding,
        "counts": counts,
        "offline_s": offline["end"] - offline["begin"],
        "peak_memory": peak_memory(),
    }


def owners(plan: str, owner_addresses: list[list[Any]]) -> dict[str, Any]:
    """When every release began and ended for the owners, the seconds they spent sharing in it, the bytes they sent.

    Errors: an opened vector that is not the sum of the owners' vectors and one noise vector.
    """
    return asyncio.run(_owners(Plan.from_text(plan), owner_addresses))


async def _owners(plan: Plan, owner_addresses: list[list[Any]]) -> dict[str, Any]:
    vectors = _Vectors(plan)
    sampler = make_sampler(plan.sampler, plan.law, plan.noise_asked)  # type: ignore[arg-type]
    client = OwnerClient(plan)
    try:
        await client.connect(endpoints(owner_addresses), WAIT)
        await client.ready()
        begins, ends, sharing, sent = [], [], [], []
        for release in range(plan.releases):
            shared, before = client.sharing_s, client.bytes_sent
            begins.append(time.perf_counter())
            opened, _ = await client.release(release, vectors.blocks())
            ends.append(time.perf_counter())
            sharing.append(client.sharing_s - shared)
            sent.append(client.bytes_sent - before)
            if np.abs(field.to_int64(opened) - vectors.total).max() > sampler.largest:
                raise DpmpcError(
                    f"a release must open the owners' sum plus noise; release {release} does not; see `dpmpc verify`"
                )
        await client.finish()
    finally:
        client.abandon()
        await asyncio.sleep(0)
    peak = peak_memory()
    return {"begins": begins, "ends": ends, "sharing": sharing, "bytes_sent": sent, "peak_memory": peak}


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
        for size in self._sizes:
            yield self._block[:size]
