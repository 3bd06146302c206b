"""What noise costs against the number of parties: Shamir sharing among many beside replicated sharing in the same run,
each semi-honest and checked.

All parties are processes of this machine; what other programs do on it shows in the seconds and the rate, little in CPU
seconds, not at all in counts.
"""

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from dpmpc.benchmarks.network import Addresses, named
from dpmpc.benchmarks.quartiles import figure
from dpmpc.benchmarks.result_file import Record
from dpmpc.circuits.sampler import Sampler
from dpmpc.errors import DpmpcError
from dpmpc.mpc.contract.backend import BACKENDS, CHECKED, DEFAULT, FOR_MANY, Holder, Share
from dpmpc.mpc.contract.security import checked_backend
from dpmpc.mpc.transport.addresses import Endpoint, inherited
from dpmpc.mpc.transport.channels import NOISE
from dpmpc.mpc.transport.dial import TcpLink
from dpmpc.mpc.transport.wire import HEADER
from dpmpc.noise.draw import count_draw, draw, holders_batches
from dpmpc.privacy.law import DEFAULT_LAW, LAWS
from dpmpc.processes.cores import threads_for
from dpmpc.processes.memory import peak_memory
from dpmpc.processes.worker import Emit, Log

SCALE = float(1 << 20)  # grid steps
FEW = 122  # samples of a draw whose latency is measured
NUMBERS = (3, 5, 7, 9, 16, 32)
REPLICATED_UP_TO = 9  # its shares grow as comb(n - 1, t): n = 11 makes none in 100 s
PUBLISHED = {16: 16.0}  # parties -> samples a second; see below
PUBLISHED_BY = "Franzese et al. 2025, another trust model"
_WAIT = 120.0  # seconds for connections: a busy machine may start processes slowly


@dataclass(frozen=True)
class Draw:
    """What is drawn, by whom, over which network."""

    backend: str
    law: str
    parties: int
    samples: int
    network: str = "loopback"
    repetitions: int = 3

    @property
    def sampler(self) -> Sampler:
        """The law's exact sampler."""
        return LAWS[self.law].sampler("discrete", SCALE)

    def __str__(self) -> str:
        return f"{self.samples:,} samples of {self.law} noise at n={self.parties} {self.backend} {self.network}"


def draws(numbers: Sequence[int], quick: bool, law: str = DEFAULT_LAW) -> list[Draw]:
    """The rows of the table: Shamir sharing, semi-honest and checked; replicated sharing up to `REPLICATED_UP_TO`, and
    checked while it can be; lan and wan besides."""
    found = []
    for n in numbers:
        many = (1 << 13) if quick else (1 << 15) if n < 16 else (1 << 14)
        if n >= 3:
            found += [Draw(FOR_MANY, law, n, many), Draw(CHECKED[FOR_MANY], law, n, many)]
        if n <= REPLICATED_UP_TO:
            found.append(Draw(DEFAULT, law, n, many if n <= 7 else 1000, repetitions=3 if n <= 7 else 1))
        if n >= 3 and checked_backend("active", None, n) == CHECKED[DEFAULT]:
            found.append(Draw(CHECKED[DEFAULT], law, n, many))
    for network, samples in (("lan", 1 << 13), ("wan", 1 << 11)):
        some = [n for n in numbers if n in ((7,) if quick else (3, 7, 16))]
        found += [Draw(FOR_MANY if n > 3 else DEFAULT, law, n, samples, network, 1) for n in some]
    return found


def owners(*, emit: Emit, log: Log, **where: Any) -> None:
    """The owners' role: there are none here."""


def party(
    *,
    index: int,
    draw: dict[str, Any],
    run_id: bytes,
    addresses: Addresses,
    owner_addresses: Addresses,
    sockets: Sequence[int] | None,
    emit: Emit,
    log: Log,
) -> dict[str, Any]:
    """The role of a party: its times, counts and memory."""
    what = Draw(**draw)

    async def main() -> dict[str, Any]:
        entry = BACKENDS[what.backend]
        holder = entry.holder(index, what.parties, entry.threshold(what.parties), run_id)
        holder.use_threads(threads_for(what.parties))
        bound = inherited(sockets[0]) if sockets else None
        try:
            await holder.connect(
                TcpLink(index, [Endpoint(*a) for a in addresses], bound=bound), bytes(32), seconds=_WAIT
            )
            result = await _draws(holder, what)
            await holder.close()
            return result
        finally:
            holder.abandon()
            await asyncio.sleep(0)

    return asyncio.run(main())


async def _draws(holder: Holder[Share], what: Draw) -> dict[str, Any]:
    sampler, channel = what.sampler, NOISE
    result: dict[str, Any] = {"seconds": [], "few": []}
    for k in range(2 * what.repetitions + 2):  # the first two warm up
        count = FEW if k % 2 else what.samples
        await holder.here(k)
        sent, rounds, cpu = holder.bytes_sent, holder.rounds, time.process_time()
        begin = time.perf_counter()
        await draw(holder, sampler, count, first_channel=channel)
        channel += len(holders_batches(holder, sampler, count))
        if k >= 2:
            result["few" if k % 2 else "seconds"].append(time.perf_counter() - begin)
        if not k % 2:
            result |= {"bytes": holder.bytes_sent - sent, "rounds": holder.rounds - rounds}
            result["cpu"] = time.process_time() - cpu
    return result | {"memory": peak_memory()}


def measure(what: Draw) -> Record:
    """The cost of a draw, over its repetitions after a warm-up; `few`: of a draw of `FEW` samples. Seconds are those of
    the slowest party, CPU seconds the mean of all.

    Errors: DpmpcError when bytes or exchanges differ from what the backend counts; PeerError when a process dies.
    """
    network = named(what.network)
    with network.places(what.parties) as places:
        arguments = {"draw": asdict(what), "run_id": str(what).encode()}
        _, results = places.run("dpmpc.benchmarks.parties", arguments)
    entry = BACKENDS[what.backend]
    threshold = entry.threshold(what.parties)
    expected = count_draw(entry, what.sampler, what.samples, what.parties, threshold)
    found = [r["bytes"] for r in results], {r["rounds"] for r in results}
    if found != (expected.bytes_with_headers(HEADER.size), {expected.rounds}):
        raise DpmpcError(f"bytes and exchanges must be as counted; got {found}, counted {expected}; report this")
    seconds = figure(np.array([r["seconds"] for r in results]).max(axis=0))
    key = {name: value for name, value in asdict(what).items() if name != "repetitions"}
    return Record(
        "parties",
        {**key, "threshold": threshold},
        {"exchanges": expected.rounds, "bytes_a_sample": max(found[0]) / what.samples, **expected.sample},
        {"draw": seconds, "few": figure(np.array([r["few"] for r in results]).max(axis=0))},
        {
            "samples_a_second": what.samples / seconds.median,
            "cpu_us_a_sample": float(np.mean([r["cpu"] for r in results])) / what.samples * 1e6,
            "memory": max(r["memory"] for r in results),
            "network_made_by": network.how,
        },
    )


def run(numbers: Sequence[int], quick: bool, progress: Callable[[str], None]) -> list[Record]:
    """The records of `draws`, one after another on the same machine."""
    records = []
    for what in draws(numbers, quick):
        progress(str(what))
        records.append(measure(what))
    return records
