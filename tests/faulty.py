"""Releases that do it wrongly, for the fault matrix: doubles of a step, of what owners send, of what they compute.

`MATRIX` says which lines of evidence must catch each of them; docs/verify.md shows the same table.
"""

from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, replace

import numpy as np

from dpmpc.aggregation.grid import Floats, Ints
from dpmpc.aggregation.party import Noise
from dpmpc.aggregation.plan import Plan
from dpmpc.aggregation.release import MakeStep, NoiseSource, Step, Tools, release
from dpmpc.mpc import field
from dpmpc.mpc.field import Words
from dpmpc.mpc.prg import Prg
from dpmpc.noise.pool import Pool
from dpmpc.noise.samplers import make_sampler
from dpmpc.verify.canaries import Vectors, owners_vectors
from dpmpc.verify.fresh import Send, as_they_are

STRUCTURE, STATISTICS, AUDIT = "structure", "statistics", "audit"


def sampler_of(plan: Plan):  # type: ignore[no-untyped-def]
    return make_sampler(plan.sampler, plan.law, plan.noise_asked)  # type: ignore[arg-type]


def fresh_noise(plan: Plan, rows: int) -> Ints:
    return sampler_of(plan).clear(rows * plan.dimension, Prg.from_os()).reshape(rows, plan.dimension)


def more_noise(tools: Tools, vectors: int) -> Pool:
    """A second pool, on channels of its own."""
    plan = tools.plan
    return Pool(tools.session, sampler_of(plan), plan.releases * vectors, plan.dimension, first_channel=1 << 26)


# -- faults of a party's release step ---------------------------------------------------------------------------------
def noise_per_owner(tools: Tools) -> Step:
    extra, m = more_noise(tools, tools.plan.owners - 1), tools.plan.owners - 1

    async def step(number: int) -> Words:
        share = tools.add(number, await tools.inputs(number), await tools.noise(number))
        for k in range(m):
            share = field.add(share, await extra.take(number * m + k))
        tools.spend(number)
        return await tools.open(number, share)

    return step


def noise_twice(tools: Tools) -> Step:
    extra = more_noise(tools, 1)

    async def step(number: int) -> Words:
        share = tools.add(number, await tools.inputs(number), await tools.noise(number))
        share = tools.add(number, share, await extra.take(number))
        tools.spend(number)
        return await tools.open(number, share)

    return step


def doubled_in_silence(tools: Tools) -> Step:
    async def step(number: int) -> Words:
        total, vector = await tools.inputs(number), await tools.noise(number)
        share = tools.add(number, total, field.add(vector, vector))
        tools.spend(number)
        return await tools.open(number, share)

    return step


def no_noise(tools: Tools) -> Step:
    async def step(number: int) -> Words:
        share = await tools.inputs(number)
        tools.spend(number)
        return await tools.open(number, share)

    return step


def noise_thrown_away(tools: Tools) -> Step:
    async def step(number: int) -> Words:
        total, vector = await tools.inputs(number), await tools.noise(number)
        share = tools.add(number, total, np.zeros_like(vector))
        tools.spend(number)
        return await tools.open(number, share)

    return step


class EveryOther:
    """A source that gives out each vector twice."""

    def __init__(self, source: NoiseSource) -> None:
        self._source, self._next, self.last = source, 0, np.zeros(0, dtype=np.uint64)

    async def fill(self) -> None:
        await self._source.fill()

    async def take(self, release: int) -> Words:
        if release % 2 == 0:
            self.last = await self._source.take(self._next)
            self._next += 1
        return self.last

    @property
    def ahead(self) -> int:
        return self._source.ahead


def reused_vector(tools: Tools) -> Step:
    source = tools.source = EveryOther(tools.source)

    async def step(number: int) -> Words:
        total = await tools.inputs(number)
        vector = source.last if number % 2 else await tools.noise(number)
        share = tools.add(number, total, vector)
        tools.spend(number)
        return await tools.open(number, share)

    return step


def reused_in_silence(tools: Tools) -> Step:
    tools.source = EveryOther(tools.source)
    return release(tools)


def before_the_last_owner(tools: Tools) -> Step:
    async def step(number: int) -> Words:
        inputs: AsyncIterator[Words] = tools.contributions(number)
        share = await anext(inputs)
        share = tools.add(number, share, await tools.noise(number))
        async for more in inputs:
            share = field.add(share, more)
        tools.spend(number)
        return await tools.open(number, share)

    return step


def wrong_scale(tools: Tools) -> Step:
    plan = tools.plan
    narrow = make_sampler(plan.sampler, plan.law, 0.7 * plan.noise_asked)  # type: ignore[arg-type]
    tools.source = Noise(replace(plan, noise_asked=0.7 * plan.noise_asked, noise_steps=narrow.scale), tools.session)
    return release(tools)


def party_adds_its_own(tools: Tools) -> Step:
    """Party 0 shares noise of its own with the others; all add it."""
    session, plan = tools.session, tools.plan

    async def step(number: int) -> Words:
        share = tools.add(number, await tools.inputs(number), await tools.noise(number))
        channel = session.channel(1 << 23 | number)
        if session.party == 0:
            mine = field.from_int64(fresh_noise(plan, 1)[0])
            rows = field.share(mine, session.parties, session.threshold, Prg.from_os())
            await channel.words({j: rows[j].copy() for j in range(1, session.parties)}, [], 0)
            own = rows[0]
        else:
            (own,) = await channel.words({}, [0], plan.dimension)
        share = field.add(share, own)
        tools.spend(number)
        return await tools.open(number, share)

    return step


def extra_opening(tools: Tools) -> Step:
    async def step(number: int) -> Words:
        total = await tools.inputs(number)
        await tools.session.open(total, tools.session.channel(1 << 23 | number))
        share = tools.add(number, total, await tools.noise(number))
        tools.spend(number)
        return await tools.open(number, share)

    return step


def ledger_after_opening(tools: Tools) -> Step:
    async def step(number: int) -> Words:
        share = tools.add(number, await tools.inputs(number), await tools.noise(number))
        opened = await tools.open(number, share)
        tools.spend(number)
        return opened

    return step


def one_share_changed(tools: Tools) -> Step:
    """Party 0 adds to its own share, and tells nobody."""

    async def step(number: int) -> Words:
        share = tools.add(number, await tools.inputs(number), await tools.noise(number))
        if tools.session.party == 0:
            share = field.add(share, field.from_int64(fresh_noise(tools.plan, 1)[0]))
        tools.spend(number)
        return await tools.open(number, share)

    return step


# -- faults of owners --------------------------------------------------------------------------------------------------
def every_owner_adds_noise(plan: Plan, vectors: Ints) -> Ints:
    return vectors + fresh_noise(plan, len(vectors))


def sum_instead_of_mean(plan: Plan, theta: Floats, X: Floats, y: Floats, first: int, end: int) -> list[Ints]:
    """Owners forget to divide by their numbers of records."""
    return [plan.sizes[0] * block for block in owners_vectors(plan, theta, X, y, first, end)]


@dataclass(frozen=True)
class Fault:
    """A double and the lines of evidence that catch it."""

    what: str
    caught_by: frozenset[str]
    make_step: MakeStep = release
    send: Send = as_they_are
    vectors: Vectors = owners_vectors


def _fault(what: str, *caught_by: str, **double: Callable) -> Fault:  # type: ignore[type-arg]
    return Fault(what, frozenset(caught_by), **double)


MATRIX = [
    _fault("none: the product as it is"),
    _fault("one noise vector for every owner, made by the parties", STRUCTURE, STATISTICS, make_step=noise_per_owner),
    _fault("every owner adds noise to its own vector", STATISTICS, send=every_owner_adds_noise),
    _fault("noise added twice: a second vector", STRUCTURE, STATISTICS, make_step=noise_twice),
    _fault("the same vector added twice over, in silence", STATISTICS, make_step=doubled_in_silence),
    _fault("no noise", STRUCTURE, STATISTICS, AUDIT, make_step=no_noise),
    _fault("noise taken but not added, in silence", STATISTICS, AUDIT, make_step=noise_thrown_away),
    _fault("a noise vector used for two releases", STRUCTURE, STATISTICS, make_step=reused_vector),
    _fault("the same, with the pool at fault", STATISTICS, make_step=reused_in_silence),
    _fault("noise added before the last owner's input", STRUCTURE, make_step=before_the_last_owner),
    _fault("noise of 0.7 times the scale", STRUCTURE, STATISTICS, make_step=wrong_scale),
    _fault("a party shares noise of its own and all add it", STRUCTURE, STATISTICS, make_step=party_adds_its_own),
    _fault("the sum is opened too, before the noise", STRUCTURE, make_step=extra_opening),
    _fault("the ledger line is written after the opening", STRUCTURE, make_step=ledger_after_opening),
    _fault("owners do not divide by their numbers of records", AUDIT, vectors=sum_instead_of_mean),
]


def table() -> str:
    """The matrix as docs/verify.md shows it."""
    lines = ["| fault | structure | statistics | audit |", "| --- | --- | --- | --- |"]
    for fault in MATRIX:
        cells = ["caught" if line in fault.caught_by else "-" for line in (STRUCTURE, STATISTICS, AUDIT)]
        lines.append(f"| {fault.what} | {' | '.join(cells)} |")
    return "\n".join(lines)
