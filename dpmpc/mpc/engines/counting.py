"""The counting engine: what a circuit costs, without evaluating it. Its bundles have no lanes, so they take no memory.

Predicts exactly what `sharing` does for the same (n, t) and number of lanes: ANDs, rounds, random bits, bytes and
messages of each party.
"""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmpc.circuits.convert import FIELD_BITS
from dpmpc.circuits.engine import Bundle
from dpmpc.mpc.engines.lanes import words_for
from dpmpc.mpc.engines.layout import Layout


class CountingEngine:
    """Counts for `lanes` lanes at (parties, threshold); bundles have shape (*wires, 0)."""

    def __init__(self, lanes: int, parties: int = 3, threshold: int = 1) -> None:
        self.lanes = lanes
        self.tail: tuple[int, ...] = (0,)
        self.layout = Layout.of(parties, threshold)
        self.words = words_for(lanes)
        self.ands = 0  # a lane
        self.rounds = 0
        self.random_bits_drawn = 0  # a lane
        self.bytes_sent = [0] * parties  # payload, by party
        self.messages_sent = [0] * parties

    def constant(self, bits: Any) -> Bundle:
        return np.zeros((*np.shape(bits), 0), dtype=np.uint64)

    def not_(self, x: Bundle) -> Bundle:
        return x

    def random_bits(self, *wires: int) -> Bundle:
        self.random_bits_drawn += math.prod(wires)
        return np.zeros((*wires, 0), dtype=np.uint64)

    async def and_(self, x: Bundle, y: Bundle) -> Bundle:
        shape = np.broadcast_shapes(x.shape, y.shape)
        wires = math.prod(shape[:-1])
        if wires:
            self.ands += wires
            if self.layout.parties > 1:
                self.rounds += 1
            for i in range(self.layout.parties):
                receivers = len(self.layout.receivers(i))
                self.messages_sent[i] += receivers
                self.bytes_sent[i] += receivers * wires * self.words * 8
        return np.zeros(shape, dtype=np.uint64)

    def count_reveal(self, wires: int) -> None:
        """Add what `SharingEngine.reveal` of so many wires costs."""
        self.rounds += self.layout.parties > 1
        for sender, _, components in self.layout.opening_sends:
            self.messages_sent[sender] += 1
            self.bytes_sent[sender] += len(components) * wires * self.words * 8

    def field_mask(self) -> "CountedMask":
        return CountedMask(self)


class CountedMask:
    """The cost of one conversion's opening."""

    def __init__(self, engine: CountingEngine) -> None:
        self._engine = engine
        self.bits: Bundle = np.zeros((len(engine.layout.subsets) - 1, FIELD_BITS, 0), dtype=np.uint64)

    async def open(self, y: Bundle) -> NDArray[np.uint64]:
        engine = self._engine
        engine.count_reveal(len(y))
        return np.zeros(0, dtype=np.uint64)
