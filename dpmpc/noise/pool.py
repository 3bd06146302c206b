"""Noise vectors made ahead of use, as Shamir shares; each is used once.

The vectors of releases 0 .. T-1 are generated in batches of many lanes, so rounds are paid once a batch. Vector k is
bound to its index: its randomness comes from PRSS streams of (run id, batch number), and `take` gives it out for
release k alone and once.
"""

import asyncio
from collections import deque

import numpy as np

from dpmpc.mpc.field import Words
from dpmpc.mpc.session import Session
from dpmpc.noise.samplers import Sampler

FIRST_CHANNEL = 1 << 24  # channels of noise batches; the lower ones are the run's
BATCH = 1 << 15  # lanes of one batch: its working set fits a core's cache
AHEAD = 1 << 23  # coordinates held at most: 64 MiB
TOGETHER = 2  # batches in flight: one computes while another waits for the network


class Pool:
    """One party's shares of the noise of a run of `releases` vectors of `dimension` coordinates. All parties fill and
    take in the same order."""

    def __init__(
        self,
        session: Session,
        sampler: Sampler,
        releases: int,
        dimension: int,
        *,
        first_channel: int = FIRST_CHANNEL,
        ahead: int = AHEAD,
        batch: int = BATCH,
    ) -> None:
        self.session, self.sampler = session, sampler
        self.releases, self.dimension = releases, dimension
        self.generated = 0  # vectors
        self.taken = 0  # vectors
        self._channel = first_channel
        self._ahead, self._batch = max(ahead, dimension), batch
        self._vectors: deque[Words] = deque()

    async def fill(self) -> None:
        """Generate as many vectors as the run still needs and memory allows. Cost: `Sampler.shares` of all their
        coordinates."""
        vectors = min(self.releases - self.generated, self._ahead // self.dimension - len(self._vectors))
        if vectors <= 0:
            return
        flat = await draw(
            self.session, self.sampler, vectors * self.dimension, first_channel=self._channel, batch=self._batch
        )
        self._channel += batches(vectors * self.dimension, self._batch)
        self._vectors.extend(flat.reshape(vectors, self.dimension))
        self.generated += vectors

    async def take(self, release: int) -> Words:
        """Shares (dimension,) of the noise of this release; releases are taken in order, each once. Fills the pool
        when it is empty."""
        if not release == self.taken < self.releases:  # holds under -O too: a vector used twice protects nothing
            raise AssertionError(f"noise vector {release} asked for, {self.taken} is next")
        if not self._vectors:
            await self.fill()
        self.taken += 1
        return self._vectors.popleft()


def batches(count: int, batch: int = BATCH) -> int:
    """How many batches `draw` makes."""
    return -(-count // batch)


async def draw(
    session: Session, sampler: Sampler, count: int, *, first_channel: int = FIRST_CHANNEL, batch: int = BATCH
) -> Words:
    """Shares (count,) of fresh samples, in batches on channels first_channel, first_channel + 1, ..., two in flight at
    a time."""
    out = np.empty(count, dtype=np.uint64)
    number = batches(count, batch)
    size = -(-count // number) if number else 0  # equal batches

    async def worker(first: int) -> None:
        for k in range(first, number, TOGETHER):
            part = out[k * size : (k + 1) * size]
            part[:] = await sampler.shares(session, first_channel + k, len(part))

    async with asyncio.TaskGroup() as group:
        for first in range(min(TOGETHER, number)):
            group.create_task(worker(first))
    return out
