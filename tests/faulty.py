"""Releases that do it wrongly, for the fault matrix: doubles of a step, of what owners send, of what they compute.

`MATRIX` says which lines of evidence must catch each of them; docs/verify.md shows the same table.
"""

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from typing import Any
from unittest import mock

import numpy as np

from dpmpc.aggregation.owner.local_parties import ROLE
from dpmpc.aggregation.party.job import PartyJob
from dpmpc.aggregation.party.party import run_party
from dpmpc.aggregation.party.release import NoiseSource, ReleaseSteps, Step, release
from dpmpc.aggregation.plan.grid import Floats, Ints
from dpmpc.aggregation.plan.plan import Plan
from dpmpc.local import sites
from dpmpc.mpc.clear.noise import clear_noise
from dpmpc.mpc.contract.backend import Share
from dpmpc.mpc.numbers import field
from dpmpc.mpc.numbers.prg import Prg
from dpmpc.noise.pool import Pool
from dpmpc.privacy.law import LAWS
from dpmpc.processes.worker import Emit, Log
from dpmpc.verify.canaries import Vectors, owners_vectors
from dpmpc.verify.fresh import Send, as_they_are

STRUCTURE, STATISTICS, AUDIT = "structure", "statistics", "audit"


def faulty_party(*, job: dict[str, Any], fault: str, emit: Emit, log: Log) -> None:
    """A party's role whose step is the one called `fault` here."""
    asyncio.run(run_party(PartyJob.from_json(job), log, emit, make_step=globals()[fault]))


CHEATING_SITE, FIRST_CHEATED = 3, 2  # a site of a run of many, and the first release in which it cheats


def cheating_site(**arguments: Any) -> Any:
    """A site's role; one site adds 1000 steps to its share of the sum, and tells nobody."""
    right = ReleaseSteps.add

    def add(self: ReleaseSteps, release: int, total: Share, vector: Share) -> Share:
        share = right(self, release, total, vector)
        if self.holder.party != CHEATING_SITE or release < FIRST_CHEATED:
            return share
        return field.add(share, np.full(share.shape, 1000, dtype=np.uint64))

    with mock.patch.object(ReleaseSteps, "add", add):
        return sites.serve(**arguments)


def dying_site(**arguments: Any) -> Any:
    """A site's role; one site is killed when all have its share of a release."""
    right = ReleaseSteps.publish

    def publish(self: ReleaseSteps, release: int, opened: Ints) -> None:
        if (self.holder.party, release) == (CHEATING_SITE, FIRST_CHEATED):
            os.kill(os.getpid(), signal.SIGKILL)
        right(self, release, opened)

    with mock.patch.object(ReleaseSteps, "publish", publish):
        return sites.serve(**arguments)


def fresh_noise(plan: Plan, rows: int) -> Ints:
    noise = clear_noise(plan.derived.sampler, rows * plan.dimension, Prg.from_os())
    return noise.reshape(rows, plan.dimension)


def more_noise(steps: ReleaseSteps, vectors: int) -> Pool:
    """A second pool, on channels of its own."""
    plan = steps.plan
    return Pool(steps.holder, plan.derived.sampler, plan.releases * vectors, plan.dimension, first_channel=1 << 26)


# -- faults of a party's release step ---------------------------------------------------------------------------------
def noise_per_owner(steps: ReleaseSteps) -> Step:
    extra, m = more_noise(steps, steps.plan.owners - 1), steps.plan.owners - 1

    async def step(number: int) -> Ints:
        share = steps.add(number, await steps.inputs(number), await steps.noise(number))
        for _ in range(m):
            share = steps.holder.add(share, (await extra.take())[1])
        await steps.stand(number, share)
        steps.spend(number)
        return await steps.open(number, share)

    return step


def noise_twice(steps: ReleaseSteps) -> Step:
    extra = more_noise(steps, 1)

    async def step(number: int) -> Ints:
        share = steps.add(number, await steps.inputs(number), await steps.noise(number))
        share = steps.add(number, share, (await extra.take())[1])
        await steps.stand(number, share)
        steps.spend(number)
        return await steps.open(number, share)

    return step


def doubled_in_silence(steps: ReleaseSteps) -> Step:
    async def step(number: int) -> Ints:
        total, vector = await steps.inputs(number), await steps.noise(number)
        share = steps.add(number, total, steps.holder.add(vector, vector))
        await steps.stand(number, share)
        steps.spend(number)
        return await steps.open(number, share)

    return step


def no_noise(steps: ReleaseSteps) -> Step:
    async def step(number: int) -> Ints:
        share = await steps.inputs(number)
        await steps.stand(number, share)
        steps.spend(number)
        return await steps.open(number, share)

    return step


def noise_thrown_away(steps: ReleaseSteps) -> Step:
    async def step(number: int) -> Ints:
        total, _ = await steps.inputs(number), await steps.noise(number)
        share = steps.add(number, total, steps.holder.zero(steps.plan.dimension))
        await steps.stand(number, share)
        steps.spend(number)
        return await steps.open(number, share)

    return step


class EveryOther:
    """A source that gives out each vector twice, and says so."""

    def __init__(self, source: NoiseSource) -> None:
        self._source, self._taken = source, 0
        self.last: tuple[int, Share] = (-1, None)

    async def fill(self) -> None:
        await self._source.fill()

    async def take(self) -> tuple[int, Share]:
        if self._taken % 2 == 0:
            self.last = await self._source.take()
        self._taken += 1
        return self.last

    @property
    def made(self) -> int:
        return self._source.made


class Lying(EveryOther):
    """The same, with numbers as if each were new."""

    async def take(self) -> tuple[int, Share]:
        number = self._taken
        return number, (await super().take())[1]


def reused_vector(steps: ReleaseSteps) -> Step:
    source = EveryOther(steps.source)

    async def step(number: int) -> Ints:
        total = await steps.inputs(number)
        steps.source = source
        _, last = source.last
        vector = last if number % 2 else await steps.noise(number)
        if number % 2:
            await source.take()
        share = steps.add(number, total, vector)
        await steps.stand(number, share)
        steps.spend(number)
        return await steps.open(number, share)

    return step


def reused_by_the_pool(steps: ReleaseSteps) -> Step:
    steps.source = EveryOther(steps.source)
    return release(steps)


def reused_in_silence(steps: ReleaseSteps) -> Step:
    steps.source = Lying(steps.source)
    return release(steps)


def before_the_last_owner(steps: ReleaseSteps) -> Step:
    async def step(number: int) -> Ints:
        inputs: AsyncIterator[Share] = steps.contributions(number)
        share = await anext(inputs)
        share = steps.add(number, share, await steps.noise(number))
        async for more in inputs:
            share = steps.holder.add(share, more)
        await steps.stand(number, share)
        steps.spend(number)
        return await steps.open(number, share)

    return step


def wrong_scale(steps: ReleaseSteps) -> Step:
    plan = steps.plan
    narrow = LAWS[plan.law].sampler(plan.sampler, 0.7 * plan.derived.scale_steps)
    steps.source = Pool(steps.holder, narrow, plan.releases, plan.dimension)
    return release(steps)


def halves_alike(steps: ReleaseSteps) -> Step:
    """Half of each noise vector repeats the other half, under fresh signs that the parties agree on."""

    async def step(number: int) -> Ints:
        total, vector = await steps.inputs(number), (await steps.noise(number)).copy()
        half = vector.size // 2
        signs = np.random.default_rng(number).random(half) < 0.5
        vector[-half:] = np.where(signs, vector[:half], field.neg(vector[:half]))
        share = steps.add(number, total, vector)
        await steps.stand(number, share)
        steps.spend(number)
        return await steps.open(number, share)

    return step


def one_without_noise(steps: ReleaseSteps) -> Step:
    """One release of all has no noise, in silence."""

    async def step(number: int) -> Ints:
        total, vector = await steps.inputs(number), await steps.noise(number)
        if number == steps.plan.releases // 3:
            vector = steps.holder.zero(steps.plan.dimension)
        share = steps.add(number, total, vector)
        await steps.stand(number, share)
        steps.spend(number)
        return await steps.open(number, share)

    return step


def narrower(steps: ReleaseSteps, factor: float, where: Callable[[int], Any]) -> Step:
    """In the coordinates `where` (a release) has `factor` times the noise, from a second pool."""
    plan = steps.plan
    sampler = LAWS[plan.law].sampler(plan.sampler, factor * plan.derived.scale_steps)
    other = Pool(steps.holder, sampler, plan.releases, plan.dimension, first_channel=1 << 26)

    async def step(number: int) -> Ints:
        total, vector = await steps.inputs(number), (await steps.noise(number)).copy()
        narrow = (await other.take())[1]
        vector[where(number)] = narrow[where(number)]
        share = steps.add(number, total, vector)
        await steps.stand(number, share)
        steps.spend(number)
        return await steps.open(number, share)

    return step


def one_narrow_coordinate(steps: ReleaseSteps) -> Step:
    return narrower(steps, 0.5, lambda number: slice(5, 6))


def every_50th_narrow(steps: ReleaseSteps) -> Step:
    return narrower(steps, 0.3, lambda number: slice(None) if number % 50 == 17 else slice(0))


def party_adds_its_own(steps: ReleaseSteps) -> Step:
    """Party 0 shares noise of its own with the others; all add it."""
    session: Any = steps.holder
    plan = steps.plan

    async def step(number: int) -> Ints:
        share = steps.add(number, await steps.inputs(number), await steps.noise(number))
        channel = session.channel(1 << 23 | number)
        if session.party == 0:
            mine = field.from_int64(fresh_noise(plan, 1)[0])
            rows = field.share(mine, session.parties, session.threshold, Prg.from_os())
            await channel.words({j: rows[j].copy() for j in range(1, session.parties)}, [], 0)
            own = rows[0]
        else:
            (own,) = await channel.words({}, [0], plan.dimension)
        share = steps.holder.add(share, own)
        await steps.stand(number, share)
        steps.spend(number)
        return await steps.open(number, share)

    return step


def extra_opening(steps: ReleaseSteps) -> Step:
    async def step(number: int) -> Ints:
        total = await steps.inputs(number)
        await steps.holder.open(total, 1 << 23 | number)
        share = steps.add(number, total, await steps.noise(number))
        await steps.stand(number, share)
        steps.spend(number)
        return await steps.open(number, share)

    return step


def ledger_after_opening(steps: ReleaseSteps) -> Step:
    async def step(number: int) -> Ints:
        share = steps.add(number, await steps.inputs(number), await steps.noise(number))
        await steps.stand(number, share)
        opened = await steps.open(number, share)
        steps.spend(number)
        return opened

    return step


def no_barrier(steps: ReleaseSteps) -> Step:
    async def step(number: int) -> Ints:
        share = steps.add(number, await steps.inputs(number), await steps.noise(number))
        steps.spend(number)
        return await steps.open(number, share)

    return step


def one_share_changed(steps: ReleaseSteps) -> Step:
    """Party 0 adds to its own share, and tells nobody."""

    async def step(number: int) -> Ints:
        share = steps.add(number, await steps.inputs(number), await steps.noise(number))
        if steps.holder.party == 0:
            share = steps.holder.add(share, field.from_int64(fresh_noise(steps.plan, 1)[0]))
        await steps.stand(number, share)
        steps.spend(number)
        return await steps.open(number, share)

    return step


# -- faults of owners --------------------------------------------------------------------------------------------------
def every_owner_adds_noise(plan: Plan, vectors: Ints) -> Ints:
    return vectors + fresh_noise(plan, len(vectors))


def sum_instead_of_mean(plan: Plan, theta: Floats, X: Floats, y: Floats, first: int, end: int) -> list[Ints]:
    """Owners forget to divide by their numbers of records."""
    return [plan.sizes[0] * block for block in owners_vectors(plan, theta, X, y, first, end)]


@dataclass(frozen=True)
class Fault:
    """A double and the lines of evidence that catch it. `step`: the name of a party's step here."""

    what: str
    caught_by: frozenset[str]
    step: str | None = None
    send: Send = as_they_are
    vectors: Vectors = owners_vectors
    shape: tuple[int, int] = (24, 80)  # coordinates and releases of a run that shows it

    @property
    def role(self) -> dict[str, Any]:
        """What a party's process does."""
        return {"role": ROLE} if self.step is None else party_with(self.step)


def party_with(step: str) -> dict[str, Any]:
    """Settings of local parties whose step is `step`."""
    return {"role": "tests.faulty:faulty_party", "extra": {"fault": step}}


def _fault(what: str, *caught_by: str, step: Callable[..., Any] | None = None, **double: Any) -> Fault:
    return Fault(what, frozenset(caught_by), None if step is None else step.__name__, **double)


MATRIX = [
    _fault("none: the product as it is"),
    _fault("one noise vector for every owner, made by the parties", STRUCTURE, STATISTICS, step=noise_per_owner),
    _fault("every owner adds noise to its own vector", STATISTICS, send=every_owner_adds_noise),
    _fault("noise added twice: a second vector", STRUCTURE, STATISTICS, step=noise_twice),
    _fault("the same vector added twice over, in silence", STATISTICS, step=doubled_in_silence),
    _fault("no noise", STRUCTURE, STATISTICS, AUDIT, step=no_noise),
    _fault("noise taken but not added, in silence", STATISTICS, AUDIT, step=noise_thrown_away),
    _fault("a noise vector used for two releases", STRUCTURE, STATISTICS, step=reused_vector),
    _fault("the pool hands a vector out twice", STRUCTURE, STATISTICS, step=reused_by_the_pool),
    _fault("the same, and the pool says they are two", STATISTICS, step=reused_in_silence),
    _fault("noise added before the last owner's input", STRUCTURE, step=before_the_last_owner),
    _fault("noise of 0.7 times the scale", STRUCTURE, STATISTICS, step=wrong_scale),
    _fault("half of each vector repeats the other, under fresh signs", STATISTICS, step=halves_alike),
    _fault("one release without noise, in silence", STATISTICS, step=one_without_noise),
    _fault("one coordinate at half the noise", STRUCTURE, STATISTICS, step=one_narrow_coordinate, shape=(16, 300)),
    _fault("every 50th release at 0.3 of the noise", STRUCTURE, STATISTICS, step=every_50th_narrow, shape=(32, 200)),
    _fault("a party shares noise of its own and all add it", STRUCTURE, STATISTICS, step=party_adds_its_own),
    _fault("the sum is opened too, before the noise", STRUCTURE, step=extra_opening),
    _fault("the ledger line is written after the opening", STRUCTURE, step=ledger_after_opening),
    _fault("a sum is opened before all parties have said that they have all inputs", STRUCTURE, step=no_barrier),
    _fault("owners do not divide by their numbers of records", AUDIT, vectors=sum_instead_of_mean),
]


def table() -> str:
    """The matrix as docs/verify.md shows it."""
    lines = ["| fault | structure | statistics | audit |", "| --- | --- | --- | --- |"]
    for fault in MATRIX:
        cells = ["caught" if line in fault.caught_by else "-" for line in (STRUCTURE, STATISTICS, AUDIT)]
        lines.append(f"| {fault.what} | {' | '.join(cells)} |")
    return "\n".join(lines)
