"""What a release of a long vector takes: seconds, processor seconds, memory of a party; ten owners, three parties.

    python benchmarks/studies/long_vectors.py 1e6 1e7

All sizes in one run, after a short one that warms up and says what starting the processes takes, which is not counted.
Owners' vectors are in single precision, one after the other; noise is made within the release.
"""

import contextlib
import os
import resource
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from dpmpc.aggregation.owner.aggregator import Aggregator

OWNERS = 10
SHORT = 1_000


@dataclass(frozen=True)
class Taken:
    """One release of `dimension` coordinates; processor seconds are of all parties together, and of the owners."""

    dimension: int
    seconds: float
    parties_s: float
    owners_s: float
    party_bytes: int

    def over(self, other: "Taken") -> tuple[float, float]:
        """How many times as long as another: by the clock, by processors."""
        used = self.parties_s + self.owners_s, other.parties_s + other.owners_s
        return self.seconds / other.seconds, used[0] / used[1]


def taken(dimension: int) -> Taken:
    """A run of one release."""
    vector = np.random.default_rng(1).normal(size=dimension).astype(np.float32)
    children, own = _children(), time.process_time()
    with Aggregator(
        owners=OWNERS, dimension=dimension, clip=1.0, epsilon=1.0, delta=1e-5, releases=1, pool=False
    ) as aggregator:
        aggregator.wait_for_noise()
        begin = time.perf_counter()
        aggregator.mean(vector for _ in range(OWNERS))
        seconds, used = time.perf_counter() - begin, _children() - children  # before the parties end
        costs = aggregator.finish()
    return Taken(dimension, seconds, used, time.process_time() - own, max(c.peak_memory for c in costs))


def _children() -> float:
    """Processor seconds of the processes below this one, with those that they have waited for: parties are forked from
    a process that stands until this one ends. Linux."""
    stats = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):  # it has ended meanwhile
            stats[int(path.parent.name)] = path.read_text().rpartition(")")[2].split()
    below, new = set[int](), {os.getpid()}
    while new:
        new = {pid for pid, fields in stats.items() if int(fields[1]) in new}
        below |= new
    ticks = sum(int(field) for pid in below for field in stats[pid][11:15])
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    return ticks / os.sysconf("SC_CLK_TCK") + ended.ru_utime + ended.ru_stime


def net(run: Taken, short: Taken) -> Taken:
    """Without what starting takes."""
    parties, owners = run.parties_s - short.parties_s, run.owners_s - short.owners_s
    return Taken(run.dimension, run.seconds, parties, owners, run.party_bytes)


def main(sizes: Sequence[int]) -> None:
    """Prints the table."""
    short = taken(SHORT)
    runs = [net(taken(size), short) for size in sizes]
    print("| d | one release | processor s, three parties | processor s, owners | memory a party | x the first |")
    print("| --- | --- | --- | --- | --- | --- |")
    for run in runs:
        clock, used = run.over(runs[0])
        print(
            f"| {run.dimension:,} | {run.seconds:.3g} s | {run.parties_s:.3g} | {run.owners_s:.3g} | "
            f"{run.party_bytes / 1e6:.0f} MB | {clock:.3g} by the clock, {used:.3g} by processors |",
            flush=True,
        )


if __name__ == "__main__":
    main([int(float(size)) for size in sys.argv[1:]] or [1_000_000, 10_000_000])
