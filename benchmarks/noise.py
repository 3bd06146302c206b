"""What noise costs: the samplers against each other and against MPyC's fixed-point arrays, as samples a second on the
same machine in the same run.
"""

import time
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dpmpc.benchmarks.parties import FEW, Draw
from dpmpc.benchmarks.parties import measure as measure_draw
from dpmpc.benchmarks.quartiles import Figure, figure
from dpmpc.errors import DpmpcError
from dpmpc.mpc.contract.backend import BACKENDS, DEFAULT, Holder, Share
from dpmpc.mpc.parties.loopback import run_parties
from dpmpc.mpc.transport.channels import NOISE
from dpmpc.mpc.transport.wire import HEADER
from dpmpc.noise.draw import count_draw, draw, holders_batches
from dpmpc.noise.sampling import drawn_for_study
from dpmpc.privacy.law import LAWS

SCALE = float(1 << 20)  # grid steps
PLAIN = "MPyC's SecFxp"
PLAIN_SAMPLERS = {"gaussian": "box-muller", "laplace": "log-laplace"}  # that MPyC users write; others have no baseline
_HERE = 0  # + repetition: the channel on which all parties meet before it


def samplers() -> list[tuple[str, str]]:
    """(law, sampler) for every sampler of every law: first each law's own choice, then the others."""
    found = [(place, law, name) for law, entry in LAWS.items() for place, name in enumerate(entry.samplers)]
    return [(law, name) for _, law, name in sorted(found, key=lambda each: each[0])]


@dataclass(frozen=True)
class NoiseCost:
    """One sampler at `count` samples a draw."""

    law: str
    sampler: str
    backend: str
    parties: int
    count: int
    seconds: Figure  # of a draw
    rounds: int | None  # of a draw
    bytes: int  # of a draw, of the party that sends most
    gates: dict[str, int]  # by kind, a sample
    network: str = "loopback"

    @property
    def rate(self) -> float:
        """Samples a second."""
        return self.count / self.seconds.median


async def _draw_often(
    holder: Holder[Share], backend: str, parties: int, law: str, name: str, count: int, repetitions: int
) -> dict[str, Any]:
    sampler = drawn_for_study(backend, law, name, SCALE, count, parties, BACKENDS[backend].threshold(parties))
    channel = NOISE
    seconds, rounds, sent = [], 0, 0
    for k in range(repetitions + 1):  # the first warms up
        await holder.here(_HERE + k)
        rounds, sent = holder.rounds, holder.bytes_sent
        begin = time.perf_counter()
        await draw(holder, sampler, count, first_channel=channel)
        seconds.append(time.perf_counter() - begin)
        rounds, sent = holder.rounds - rounds, holder.bytes_sent - sent
        channel += len(holders_batches(holder, sampler, count))
    return {"seconds": seconds[1:], "rounds": rounds, "bytes": sent}


def measure_sampler(
    law: str, name: str, parties: int, count: int, repetitions: int, backend: str = DEFAULT
) -> NoiseCost:
    """The cost of drawing `count` samples, over `repetitions` draws after a warm-up.

    Errors: UsageError for a law that has no such sampler or a backend that cannot have so many parties; DpmpcError when
    rounds or bytes differ from the backend's counting; PeerError when a process dies.
    """
    entry = BACKENDS[backend]
    t = entry.threshold(parties)
    entry.check(parties, t)
    expected = count_draw(entry, drawn_for_study(backend, law, name, SCALE, count, parties, t), count, parties, t)
    results = run_parties(_draw_often, parties, t, (backend, parties, law, name, count, repetitions), backend=backend)
    sent = expected.bytes_with_headers(HEADER.size) or [0] * parties
    found = [r["rounds"] for r in results], [r["bytes"] for r in results]
    due = [expected.rounds] * parties, sent
    if found != due:
        raise DpmpcError(f"rounds and bytes must be as counted; {law}/{name}: {found}, counted {due}; report this")
    seconds = np.array([r["seconds"] for r in results]).max(axis=0)
    return NoiseCost(law, name, backend, parties, count, figure(seconds), expected.rounds, max(sent), expected.sample)


def measure_over(
    network: str, law: str, parties: int, count: int, repetitions: int, backend: str = DEFAULT
) -> list[NoiseCost]:
    """The costs of drawing a few samples and `count`, by the law's exact sampler, over a slow network.

    Errors: as `measure_sampler`.
    """
    entry = BACKENDS[backend]
    t = entry.threshold(parties)
    entry.check(parties, t)
    what = Draw(backend, law, parties, count, network, repetitions)
    seconds = measure_draw(what).seconds
    found = []
    for size, name in ((FEW, "few"), (count, "draw")):
        cost = count_draw(entry, what.sampler, size, parties, t)
        sent = max(cost.bytes_with_headers(HEADER.size))
        found.append(
            NoiseCost(law, "discrete", backend, parties, size, seconds[name], cost.rounds, sent, cost.sample, network)
        )
    return found


def measure_plain(law: str, count: int, repetitions: int) -> NoiseCost:
    """The same noise as MPyC's users write it, on its fixed-point arrays: the backend mpyc's, for n = 3."""
    cost = measure_sampler(law, PLAIN_SAMPLERS[law], 3, count, repetitions, "mpyc")
    return replace(cost, sampler=PLAIN)
