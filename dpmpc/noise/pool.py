"""Noise vectors made ahead of use, as shares; each is handed out once, with its number.

The vectors of an attempt are made in batches of many lanes, so rounds are paid once a batch. Vector k is bound to its
number: its randomness comes from streams of (attempt, batch), and `take` gives it out once.
"""

from collections import deque

from dpmpc.circuits.sampler import Sampler
from dpmpc.mpc.contract.backend import Holder, Share
from dpmpc.mpc.transport.channels import NOISE
from dpmpc.noise.draw import batch_sizes, draw, holders_batches

CAPACITY = 1 << 23  # coordinates held at most: 64 MiB


class Pool:
    """One party's shares of the noise of `vectors` vectors of `dimension` coordinates. All parties fill and take in the
    same order."""

    def __init__(
        self,
        holder: Holder[Share],
        sampler: Sampler,
        vectors: int,
        dimension: int,
        *,
        first_channel: int = NOISE,
        capacity: int = CAPACITY,
        batch: int | None = None,
    ) -> None:
        """`capacity`: coordinates made at a time; one vector at least. `batch`: as of `draw`."""
        self.holder, self.sampler = holder, sampler
        self.vectors, self.dimension = vectors, dimension
        self.made = 0  # vectors
        self.taken = 0  # vectors
        self._channel = first_channel
        self._capacity, self._batch = max(capacity, dimension), batch
        self._waiting: deque[tuple[int, Share]] = deque()

    async def fill(self) -> None:
        """Make as many vectors as are still needed and memory allows. Cost: that of one draw of all their
        coordinates."""
        vectors = min(self.vectors - self.made, self._capacity // self.dimension - len(self._waiting))
        if vectors <= 0:
            return
        count = vectors * self.dimension
        flat = await draw(self.holder, self.sampler, count, first_channel=self._channel, batch=self._batch)
        sizes = batch_sizes(count, self._batch) if self._batch else holders_batches(self.holder, self.sampler, count)
        self._channel += len(sizes)
        for share in self.holder.cut(flat, self.dimension):
            self._waiting.append((self.made, share))
            self.made += 1

    async def take(self) -> tuple[int, Share]:
        """(number, share) of the next vector. Fills the pool when it is empty."""
        if not self.taken < self.vectors:  # holds under -O too: there is no noise beyond the plan's
            raise AssertionError(f"all {self.vectors} noise vectors are taken")
        if not self._waiting:
            await self.fill()
        number, share = self._waiting.popleft()
        if number != self.taken:  # holds under -O too: a vector used twice protects nothing
            raise AssertionError(f"noise vector {number} is next, but {self.taken} were taken")
        self.taken += 1
        return number, share


def fills(vectors: int, dimension: int, capacity: int = CAPACITY) -> list[int]:
    """How many vectors each filling of a pool makes, when it is emptied before it is filled again."""
    most = max(1, capacity // dimension)
    return [min(most, vectors - at) for at in range(0, vectors, most)]
