"""Noise in batches: many lanes share a round, and two batches are under way at a time.

Batch k of a draw has the channel `first_channel + k`; what a channel carries is fixed by the sampler and the count, so
that everybody can predict it.
"""

import asyncio
from collections.abc import Sequence

from dpmpc.circuits.sampler import Sampler
from dpmpc.errors import PeerError
from dpmpc.mpc.backend import Backend, Counts, Holder, Share
from dpmpc.mpc.channels import NOISE

BATCH = 1 << 15  # samples of one batch: its working set fits a core's cache
TOGETHER = 2  # batches in flight: one computes while another waits for the network


def batch_sizes(count: int, batch: int = BATCH) -> list[int]:
    """The samples of each batch of a draw of `count`: as equal as can be, the last one less."""
    number = -(-count // batch)
    size = -(-count // number) if number else 0
    return [min(size, count - at) for at in range(0, count, size)] if size else []


async def draw(
    holder: Holder, sampler: Sampler, count: int, *, first_channel: int = NOISE, batch: int = BATCH
) -> Share:
    """The share of `count` fresh samples. Errors: PeerError when another party leaves meanwhile."""
    sizes = batch_sizes(count, batch)
    parts: list[Share] = [None] * len(sizes)

    async def worker(first: int) -> None:
        for k in range(first, len(sizes), TOGETHER):
            parts[k] = await holder.noise(sampler, first_channel + k, sizes[k])

    workers = [asyncio.ensure_future(worker(first)) for first in range(min(TOGETHER, len(sizes)))]
    try:
        await asyncio.gather(*workers)
    finally:
        for task in workers:
            task.cancel()
        await _settle(workers)
    return holder.join(parts) if parts else holder.zero(0)


async def _settle(tasks: Sequence["asyncio.Task[None]"]) -> None:
    """Waits for tasks that were cancelled or have failed; the first failure has been raised already."""
    for result in await asyncio.gather(*tasks, return_exceptions=True):
        if isinstance(result, BaseException) and not isinstance(result, PeerError | asyncio.CancelledError):
            raise result


def count_draw(backend: Backend, sampler: Sampler, count: int, parties: int, threshold: int) -> Counts:
    """The cost of a draw, from the backend's counting: exact."""
    costs = {size: backend.count_noise(sampler, size, parties, threshold) for size in set(batch_sizes(count))}
    return sum((costs[size] for size in batch_sizes(count)), start=Counts())
