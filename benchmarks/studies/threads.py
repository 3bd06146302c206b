"""One party's work on noise against its cores: a party of three that has a machine to itself.

    python benchmarks/studies/threads.py [--cores 1,2] [--batches 20] [--repetitions 5] [--law gaussian] [--processes]

The messages of the two others are there at once (words of zeros of the right sizes; what they hold does not change what
is done with them), so that nothing but this party's own work is measured. The process is pinned to its cores and takes
as many threads. Runs go by turns; medians are reported. With --processes also what the party would gain at most if its
channels were shared out among processes: so many at once, each on a core of its own with its part of the batches.
"""

import argparse
import asyncio
import functools
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Awaitable, Mapping, Sequence
from typing import Any

import numpy as np

from dpmpc.circuits.convert import FIELD_BITS
from dpmpc.mpc.contract.backend import BACKENDS, DEFAULT
from dpmpc.mpc.contract.lanes import words_for
from dpmpc.mpc.numbers.field import Words
from dpmpc.noise.draw import BATCH, draw
from dpmpc.privacy.law import DEFAULT_LAW, LAWS
from dpmpc.processes.memory import keep_freed_blocks

SCALE = float(1 << 20)  # grid steps
PARTIES, THRESHOLD = 3, 1


class AnsweredChannel:
    """A channel whose peers have answered already."""

    def words(self, outgoing: Mapping[int, Words], incoming: Sequence[int], size: int) -> Awaitable[list[Words]]:
        return _now([_zeros(size) for _ in incoming])

    def exchange(self, outgoing: Mapping[int, Any], incoming: Sequence[int]) -> Awaitable[list[bytearray]]:
        """The opening of the masked bits, the one exchange that is no layer."""
        return _now([bytearray(8 * FIELD_BITS * words_for(BATCH)) for _ in incoming])


@functools.cache
def _zeros(size: int) -> Words:
    return np.zeros(size, dtype=np.uint64)


async def _now(payloads: list[Any]) -> list[Any]:
    return payloads


async def work(law: str, batches: int, threads: int) -> dict[str, float]:
    """Seconds and processor seconds a sample of one draw, after a warm-up."""
    holder: Any = BACKENDS[DEFAULT].holder(0, PARTIES, THRESHOLD, bytes(16))
    holder.channel = lambda ident: AnsweredChannel()
    holder.use_threads(threads)
    sampler = LAWS[law].sampler("discrete", SCALE)
    await draw(holder, sampler, 2 * BATCH, batch=BATCH)
    begin, cpu = time.perf_counter(), time.process_time()
    await draw(holder, sampler, batches * BATCH, first_channel=1 << 26, batch=BATCH)
    count = batches * BATCH
    return {"seconds": (time.perf_counter() - begin) / count, "cpu": (time.process_time() - cpu) / count}


def measure(law: str, batches: int, cores: int, processes: int = 1) -> dict[str, float]:
    """`work` in so many processes at once, each pinned to so many cores of its own; seconds: of all together."""
    command = [sys.executable, __file__, "--law", law, "--batches", str(batches // processes), "--work", str(cores)]
    started = [
        subprocess.Popen([*command, "--first", str(k * cores)], stdout=subprocess.PIPE, text=True)
        for k in range(processes)
    ]
    found = [json.loads(process.communicate()[0]) for process in started]
    seconds = 1 / sum(1 / each["seconds"] for each in found)
    return {"seconds": seconds, "cpu": statistics.mean(each["cpu"] for each in found)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else "")
    parser.add_argument("--cores", default=",".join(str(k + 1) for k in range(len(os.sched_getaffinity(0)))))
    parser.add_argument("--batches", type=int, default=20)
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument("--law", default=DEFAULT_LAW)
    parser.add_argument("--processes", action="store_true")
    parser.add_argument("--work", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--first", type=int, default=0, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.work:
        keep_freed_blocks()  # as every party does
        mine = slice(arguments.first, arguments.first + arguments.work)
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[mine])
        print(json.dumps(asyncio.run(work(arguments.law, arguments.batches, arguments.work))))
        return
    cores = [int(k) for k in arguments.cores.split(",")]
    ways = [(k, 1) for k in cores] + [(1, k) for k in cores if arguments.processes and k > 1]
    runs: dict[tuple[int, int], list[dict[str, float]]] = {way: [] for way in ways}
    for _ in range(arguments.repetitions):
        for way in ways:
            runs[way].append(measure(arguments.law, arguments.batches, *way))
    base = [run["seconds"] for run in runs[ways[0]]]
    for (k, processes), found in runs.items():
        seconds, cpu = (1e9 * statistics.median(run[key] for run in found) for key in ("seconds", "cpu"))
        ratios = [one / run["seconds"] for one, run in zip(base, found, strict=True)]
        who = f"{processes} process{'es' if processes > 1 else ''}, {k} core{'s' if k > 1 else ''} each"
        print(
            f"{who}: {seconds:.0f} ns a sample, {1e3 / seconds:.1f} M samples/s, {cpu:.0f} ns of processor; "
            f"{statistics.median(ratios):.2f} times as fast as the first"
        )


if __name__ == "__main__":
    main()
