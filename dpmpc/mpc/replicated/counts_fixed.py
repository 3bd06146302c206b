"""The counting twin of the fixed-point engine: what its rounds, bytes and masks cost, without any arithmetic."""

import numpy as np
from numpy.typing import NDArray

from dpmpc.circuits.fixed import CONVERSION_BITS, Draw, Sums
from dpmpc.circuits.program import Program
from dpmpc.mpc.numbers.wide import PACKED_BYTES
from dpmpc.mpc.replicated.counts import CountingBatch
from dpmpc.mpc.replicated.fixed import hiding

Empty = NDArray[np.int64]


class CountingFixed:
    """Adds to the counts of its batch; numbers have shape (*values, 0).

    Predicts exactly what `SharedFixed` does for the same (n, t): rounds, bytes and messages of each party. `distance`
    bounds, for one lane, the statistical distance that all masks together leave.
    """

    def __init__(self, batch: CountingBatch) -> None:
        self.batch = batch
        self.lanes = batch.lanes
        self.subsets, self.dealers = len(batch.layout.subsets), batch.layout.threshold + 1
        self.products = 0  # opened sums a lane
        self.distance = 0.0

    def constant(self, value: int) -> Empty:
        return np.zeros((0,), dtype=np.int64)

    async def numbers(self, program: Program, values: int, width: int) -> Empty:
        if self.batch.masks:
            self.distance += values * 2.0**-CONVERSION_BITS
        self.batch.add_program(program)
        self.batch.add_reveal(len(program.outputs))
        return np.zeros((values, 0), dtype=np.int64)

    async def deal(self, draw: Draw, rows: int) -> list[Empty]:
        for i in range(self.dealers):
            self.batch.add_message(i, PACKED_BYTES * rows * self.lanes, len(self.batch.layout.receivers(i)))
        self.batch.add_round()
        return [np.zeros((rows, 0), dtype=np.int64) for _ in range(self.dealers)]

    async def dot(self, sums: Sums, shift: int, bits: int) -> Empty:
        layout = self.batch.layout
        self.products += len(sums)
        self.distance += len(sums) * hiding(self.batch.masks, bits)
        for i in layout.product_senders:
            self.batch.add_message(i, PACKED_BYTES * len(sums) * self.lanes, len(set(layout.opened_to) - {i}))
        self.batch.add_round()
        return np.zeros((len(sums), 0), dtype=np.int64)

    async def dot_to_field(self, sums: Sums, shift: int, bits: int) -> NDArray[np.uint64]:
        return (await self.dot(sums, shift, bits)).view(np.uint64)
