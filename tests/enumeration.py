"""A clear engine whose random bits run through all values: lane l draws the digits of l. For exact laws of circuits."""

import numpy as np
from direct import DirectEngine
from numpy.typing import NDArray

from dpmpc.circuits.engine import Bundle
from dpmpc.circuits.heap import Heap
from dpmpc.mpc.contract.lanes import from_planes, to_planes
from dpmpc.mpc.numbers.prg import Prg


class EveryBitString(DirectEngine):
    """2^bits lanes (at least 64); the k-th random bit drawn is bit k of the lane's number. Each may be drawn once."""

    def __init__(self, bits: int) -> None:
        lanes = max(64, 1 << bits)
        super().__init__(lanes, Prg(b""))
        self.bits = bits
        self._planes = to_planes(np.arange(lanes, dtype=np.uint64), max(bits, 1))

    def random_bits(self, *wires: int) -> Bundle:
        count = int(np.prod(wires))
        assert self.drawn + count <= self.bits, "the circuit draws more bits than are enumerated"
        self.drawn += count
        return self._planes[self.drawn - count : self.drawn].reshape(*wires, *self.tail)

    def rewind(self) -> None:
        """Start again at bit 0."""
        self.drawn = 0


def every_bit_string(bits: int) -> EveryBitString:
    """The engine for a circuit that draws `bits` random bits."""
    return EveryBitString(bits)


def heap_values(heap: Heap) -> NDArray[np.uint64]:
    """The heap's value in each lane of the clear engine."""
    total = np.zeros(1, dtype=np.uint64)
    for weight, column in enumerate(heap.columns):
        for wire in column:
            total = total + (from_planes(wire[None]) << np.uint64(weight))
    return total
