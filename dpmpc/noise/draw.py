"""Noise in batches: many lanes share a round, and one batch more is under way than there are threads to compute, so
that they compute while it waits for the network.

Batch k of a draw has the channel `first_channel + k`; what a channel carries is fixed by the sampler and the count, so
that everybody can predict it.
"""

import asyncio
from collections.abc import Sequence

from dpmpc.circuits.sampler import Sampler
from dpmpc.errors import PeerError
from dpmpc.mpc.contract.backend import Backend, Batches, Counts, Gathers, Holder, InBatches, Share
from dpmpc.mpc.transport.channels import NOISE

BATCH = 3 << 14  # samples of one batch, of a backend that does not say


def batches_of(backend: Backend, sampler: Sampler, count: int, parties: int, threshold: int) -> list[int]:
    """The samples of each batch of a draw."""
    most = backend.batch_samples(sampler, count, parties, threshold) if isinstance(backend, Batches) else BATCH
    return batch_sizes(count, most)


def holders_batches(holder: Holder[Share], sampler: Sampler, count: int) -> list[int]:
    """The same, as the backend's holder says."""
    return batch_sizes(count, holder.batch_samples(sampler, count) if isinstance(holder, InBatches) else BATCH)


def batch_sizes(count: int, batch: int = BATCH) -> list[int]:
    """The samples of each batch of a draw of `count`: as equal as can be, the last one less; two at least where there
    is work for them, so that one is computed while the other waits for the network."""
    number = max(-(-count // batch), min(2, -(-count // BATCH)))
    size = -(-count // number) if number else 0
    return [min(size, count - at) for at in range(0, count, size)] if size else []


async def draw(
    holder: Holder[Share], sampler: Sampler, count: int, *, first_channel: int = NOISE, batch: int | None = None
) -> Share:
    """The share of `count` fresh samples. `batch`: as the holder's backend has it, where none is given. Errors:
    PeerError when another party leaves meanwhile."""
    sizes = batch_sizes(count, batch) if batch else holders_batches(holder, sampler, count)
    made = _Made(holder, sizes)
    due = iter(range(len(sizes)))  # whoever is free takes the next

    async def worker() -> None:
        for k in due:
            made.put(k, await holder.noise(sampler, first_channel + k, sizes[k]))

    workers = [asyncio.ensure_future(worker()) for _ in range(min(holder.threads + 1, len(sizes)))]
    try:
        await asyncio.gather(*workers)
    finally:
        for task in workers:
            task.cancel()
        await _settle(workers)
    return made.whole()


class _Made:
    """The batches of a draw, one after the other however they come: in the whole at once, where the holder can."""

    def __init__(self, holder: Holder[Share], sizes: Sequence[int]) -> None:
        self._holder, self._sizes = holder, sizes
        self._parts: dict[int, Share] = {}
        self._gathers: Gathers[Share] | None = holder if isinstance(holder, Gathers) and len(sizes) > 1 else None
        self._whole = self._gathers.zero(sum(sizes)) if self._gathers else None

    def put(self, k: int, share: Share) -> None:
        """Batch k."""
        if self._gathers is not None and self._whole is not None:
            self._gathers.put(self._whole, sum(self._sizes[:k]), share)
        else:
            self._parts[k] = share

    def whole(self) -> Share:
        """When all are there."""
        if self._whole is not None:
            return self._whole
        parts = [self._parts[k] for k in range(len(self._sizes))]
        return self._holder.join(parts) if parts else self._holder.zero(0)


async def _settle(tasks: Sequence["asyncio.Task[None]"]) -> None:
    """Waits for tasks that were cancelled or have failed; the first failure has been raised already."""
    for result in await asyncio.gather(*tasks, return_exceptions=True):
        if isinstance(result, BaseException) and not isinstance(result, PeerError | asyncio.CancelledError):
            raise result


def count_draw(backend: Backend, sampler: Sampler, count: int, parties: int, threshold: int) -> Counts:
    """The cost of a draw, from the backend's counting: exact."""
    sizes = batches_of(backend, sampler, count, parties, threshold)
    costs = {size: backend.count_noise(sampler, size, parties, threshold) for size in set(sizes)}
    return sum((costs[size] for size in sizes), start=Counts())
