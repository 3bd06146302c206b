"""The counting twin of the fixed-point engine: what its rounds, bytes and masks cost, without any arithmetic."""

import numpy as np
from numpy.typing import NDArray

from dpmpc.circuits.engine import Bundle
from dpmpc.circuits.fixed import CONVERSION_BITS, Draw, Sums
from dpmpc.mpc.engines.counting import CountingEngine
from dpmpc.mpc.engines.sharing_fixed import hiding
from dpmpc.mpc.wide import PACKED_BYTES

Empty = NDArray[np.int64]


class CountingFixed:
    """Adds to the counts of its bit engine; numbers have shape (*values, 0).

    Predicts exactly what `SharedFixed` does for the same (n, t): rounds, bytes and messages of each party. `distance`
    bounds, for one lane, the statistical distance that all masks together leave.
    """

    def __init__(self, engine: CountingEngine) -> None:
        self.engine = engine
        self.products = 0  # opened sums a lane
        self.distance = 0.0
        self.subsets, self.dealers = len(engine.layout.subsets), engine.layout.threshold + 1
        self._masks = self.subsets - 1

    def constant(self, value: int) -> Empty:
        return np.zeros((0,), dtype=np.int64)

    def mask(self, values: int, width: int) -> "CountedIntegers":
        if self._masks:
            self.distance += values * 2.0**-CONVERSION_BITS
        return CountedIntegers(self.engine, self._masks, values, width)

    async def deal(self, draw: Draw, rows: int) -> list[Empty]:
        for i in range(self.dealers):
            for _ in self.engine.layout.receivers(i):
                self._message(i, rows)
        self.engine.rounds += self.engine.layout.parties > 1
        return [np.zeros((rows, 0), dtype=np.int64) for _ in range(self.dealers)]

    async def dot(self, sums: Sums, shift: int, bits: int) -> Empty:
        layout = self.engine.layout
        self.products += len(sums)
        self.distance += len(sums) * hiding(self._masks, bits)
        for i in layout.product_senders:
            for _ in set(layout.opened_to) - {i}:
                self._message(i, len(sums))
        self.engine.rounds += layout.parties > 1
        return np.zeros((len(sums), 0), dtype=np.int64)

    async def dot_to_field(self, sums: Sums, shift: int, bits: int) -> NDArray[np.uint64]:
        return (await self.dot(sums, shift, bits)).view(np.uint64)

    def _message(self, sender: int, rows: int) -> None:
        self.engine.messages_sent[sender] += 1
        self.engine.bytes_sent[sender] += PACKED_BYTES * rows * self.engine.lanes


class CountedIntegers:
    """The cost of one conversion's opening."""

    def __init__(self, engine: CountingEngine, masks: int, values: int, width: int) -> None:
        self._engine = engine
        self.bits: Bundle = np.zeros((masks, width, values, 0), dtype=np.uint64)

    async def open(self, y: Bundle) -> Empty:
        self._engine.count_reveal(y.shape[0] * y.shape[1])
        return np.zeros((y.shape[1], 0), dtype=np.int64)
