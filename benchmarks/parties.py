"""What noise costs against the number of parties: Shamir sharing among many, beside replicated sharing in the same run.

`python -m dpmpc.benchmarks.parties 7 9 16 32` prints one line a number of parties. All parties are processes of this
machine; what other programs do on it shows in the seconds and the rate, little in CPU seconds, not at all in counts.
"""

import sys
import time
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpmpc.benchmarks.quartiles import Figure, figure
from dpmpc.circuits.sampler import Sampler
from dpmpc.errors import DpmpcError
from dpmpc.mpc.backend import BACKENDS, Holder
from dpmpc.mpc.backends.shamir import BATCH
from dpmpc.mpc.channels import NOISE
from dpmpc.mpc.loopback import run_parties
from dpmpc.mpc.wire import HEADER
from dpmpc.noise.draw import batch_sizes, count_draw, draw
from dpmpc.privacy.law import LAWS
from dpmpc.processes.memory import peak_memory

SCALE = float(1 << 20)  # grid steps
FEW = 122  # samples of a draw whose latency is measured
REPLICATED_UP_TO = 9  # its shares grow as comb(n - 1, t): n = 11 makes none in 100 s


@dataclass(frozen=True)
class PartiesCost:
    """`samples` samples of one law among `parties` parties."""

    backend: str
    law: str
    parties: int
    samples: int
    seconds: Figure  # of a draw, of the slowest party
    cpu_seconds: float  # of one draw, the mean of the parties
    few_seconds: Figure  # of a draw of `FEW` samples
    bytes: int  # of a draw, of the party that sends most
    exchanges: int  # of a draw
    memory: int  # bytes, of the party that used most

    @property
    def rate(self) -> float:
        """Samples a second."""
        return self.samples / self.seconds.median


async def _draws(holder: Holder, law: str, samples: int, repetitions: int) -> dict[str, Any]:
    sampler = _sampler(law)
    channel, result = NOISE, dict[str, Any](seconds=[], few=[])
    for k in range(2 * repetitions + 2):  # the first two warm up
        count = FEW if k % 2 else samples
        await holder.here(k)
        sent, rounds, cpu = holder.bytes_sent, holder.rounds, time.process_time()
        begin = time.perf_counter()
        await draw(holder, sampler, count, first_channel=channel)
        channel += len(batch_sizes(count))
        if k >= 2:
            result["few" if k % 2 else "seconds"].append(time.perf_counter() - begin)
        if not k % 2:
            result |= {"bytes": holder.bytes_sent - sent, "exchanges": holder.rounds - rounds}
            result["cpu"] = time.process_time() - cpu
    return result | {"memory": peak_memory()}


def _sampler(law: str) -> Sampler:
    return LAWS[law].sampler("discrete", SCALE)


def measure(
    parties: int, samples: int, repetitions: int = 3, *, law: str = "gaussian", backend: str = "shamir"
) -> PartiesCost:
    """The cost of drawing `samples` samples, over `repetitions` draws after a warm-up.

    Errors: DpmpcError when bytes or exchanges differ from what the backend counts; PeerError when a process dies.
    """
    results = run_parties(_draws, parties, None, (law, samples, repetitions), backend=backend)
    expected = count_draw(BACKENDS[backend], _sampler(law), samples, parties, (parties - 1) // 2)
    found = [r["bytes"] for r in results], {r["exchanges"] for r in results}
    if found != (expected.bytes_with_headers(HEADER.size), {expected.rounds}):
        raise DpmpcError(f"bytes and exchanges must be as counted; got {found}, counted {expected}; report this")
    return PartiesCost(
        backend,
        law,
        parties,
        samples,
        figure(np.array([r["seconds"] for r in results]).max(axis=0)),
        float(np.mean([r["cpu"] for r in results])),
        figure(np.array([r["few"] for r in results]).max(axis=0)),
        max(r["bytes"] for r in results),
        results[0]["exchanges"],
        max(r["memory"] for r in results),
    )


def line(cost: PartiesCost) -> str:
    """One row of the table."""
    return (
        f"{cost.backend:>10} {cost.law:>8} {cost.parties:>3} {cost.samples:>8} {cost.rate:>10,.0f}/s "
        f"{cost.cpu_seconds / cost.samples * 1e6:>8.1f} us {cost.bytes / cost.samples:>7,.0f} B {cost.exchanges:>5} "
        f"{cost.few_seconds.median * 1e3:>8.1f} ms {cost.memory / 1e6:>6.0f} MB"
    )


def main(wanted: list[int]) -> None:
    """Print the table for so many parties each."""
    few = f"{FEW} samples"
    print(f"{'backend':>10} {'law':>8} {'n':>3} {'samples':>8} {'rate':>12} {'CPU':>11}", end=" ")
    print(f"{'bytes':>9} {'exch.':>5} {few:>11} {'memory':>9}")
    for n in wanted:
        print(line(measure(n, 4 * BATCH if n < 16 else 2 * BATCH)), flush=True)
        if n <= REPLICATED_UP_TO:
            print(line(measure(n, 1000 if n > 7 else 4 * BATCH, 1, backend="sharing")), flush=True)


if __name__ == "__main__":
    from dpmpc.benchmarks import parties as module  # the processes find `_draws` there, not in __main__

    module.main([int(word) for word in sys.argv[1:]] or [3, 5, 7, 9, 16, 32])
