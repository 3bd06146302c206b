"""What noise costs: the samplers against each other and against plain MPyC, as samples a second on the same machine
in the same run.
"""

import time
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpmpc.benchmarks import plain
from dpmpc.benchmarks.quartiles import Figure, figure
from dpmpc.errors import DpmpcError
from dpmpc.mpc.loopback import run_parties
from dpmpc.mpc.session import Session
from dpmpc.noise.pool import batches, draw
from dpmpc.noise.samplers import Law, make_sampler
from dpmpc.noise.sampling import predict
from dpmpc.runs.request import SamplerName

SCALE = float(1 << 20)  # grid steps
SAMPLERS: tuple[tuple[Law, SamplerName], ...] = (
    ("gaussian", "discrete"),
    ("laplace", "discrete"),
    ("gaussian", "box-muller"),
    ("laplace", "log-laplace"),
)
PLAIN = "plain MPyC"
_START = 1


@dataclass(frozen=True)
class NoiseCost:
    """One sampler at `count` samples a draw."""

    law: str
    sampler: str
    parties: int
    count: int
    seconds: Figure  # of a draw
    rounds: int | None  # of a draw; plain MPyC does not count them
    bytes: int  # of a draw, of the party that sends most
    ands: int | None  # a sample

    @property
    def rate(self) -> float:
        """Samples a second."""
        return self.count / self.seconds.median


async def _draw_often(session: Session, law: Law, name: str, count: int, repetitions: int) -> dict[str, Any]:
    sampler = make_sampler(name, law, SCALE)
    channel = 1 << 24
    seconds, rounds, sent = [], 0, 0
    for k in range(repetitions + 1):  # the first warms up
        await session.open(np.zeros(1, dtype=np.uint64), session.channel(_START + k))  # all parties are here
        rounds, sent = session.rounds, session.bytes_sent
        begin = time.perf_counter()
        await draw(session, sampler, count, first_channel=channel)
        seconds.append(time.perf_counter() - begin)
        rounds, sent = session.rounds - rounds, session.bytes_sent - sent
        channel += batches(count)
    return {"seconds": seconds[1:], "rounds": rounds, "bytes": sent}


def measure_sampler(law: Law, name: str, parties: int, count: int, repetitions: int) -> NoiseCost:
    """The cost of drawing `count` samples, over `repetitions` draws after a warm-up.

    Errors: DpmpcError when rounds or bytes differ from the counting engine's; PeerError when a process dies.
    """
    results = run_parties(_draw_often, parties, None, (law, name, count, repetitions))
    expected = predict(make_sampler(name, law, SCALE), count, parties, (parties - 1) // 2)
    found = [r["rounds"] for r in results], [r["bytes"] for r in results]
    due = [expected["rounds"]] * parties, expected["bytes"]
    if found != due:
        raise DpmpcError(f"rounds and bytes must be as counted; {law}/{name}: {found}, counted {due}; report this")
    seconds = np.array([r["seconds"] for r in results]).max(axis=0)
    return NoiseCost(
        law,
        name,
        parties,
        count,
        figure(seconds),
        expected["rounds"],
        max(expected["bytes"]),
        expected["ands_per_sample"],
    )


def measure_plain(law: Law, parties: int, count: int, repetitions: int) -> NoiseCost:
    """The same for plain MPyC, as `dpmpc.benchmarks.plain` writes it."""
    costs = [plain.measure(law, count, parties) for _ in range(repetitions)]
    return NoiseCost(
        law, PLAIN, parties, count, figure([c.seconds for c in costs]), None, max(c.bytes_sent for c in costs), None
    )
