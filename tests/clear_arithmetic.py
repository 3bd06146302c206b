"""The clear twin of the arithmetic engines: field elements as they are. The oracle of every arithmetic circuit. No
secrecy, no network."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from dpmpc.circuits.arithmetic import Pair, Public
from dpmpc.mpc.numbers.mersenne import Mersenne, Words
from dpmpc.mpc.numbers.prg import Prg

_FIELD = Mersenne()


class ClearArithmetic:
    """Values of shape (*wires, lanes); random bits come from `prg`."""

    def __init__(self, lanes: int, prg: Prg) -> None:
        self.lanes = lanes
        self.tail: tuple[int, ...] = (lanes,)
        self._prg = prg

    def constant(self, values: Any) -> Words:
        wires = _FIELD.constants(values)
        return np.broadcast_to(wires[..., None], (*wires.shape, self.lanes))

    def add(self, x: Words, y: Words) -> Words:
        return _FIELD.add(x, y)

    def subtract(self, x: Words, y: Words) -> Words:
        return _FIELD.subtract(x, y)

    def matrix(self, public: Public, x: Words) -> Words:
        return _FIELD.matrix(public, x)

    def join(self, parts: Sequence[Words]) -> Words:
        return np.concatenate(parts)

    async def random_bits(self, count: int) -> Words:
        size = count * self.lanes
        words = self._prg.words((-(-size // 64),))
        bits = np.unpackbits(words.view(np.uint8), count=size)
        return bits.reshape(count, self.lanes).astype(np.uint64)

    async def dots(self, pairs: Sequence[Pair]) -> list[Words]:
        return [_FIELD.dot(x, y) for x, y in pairs]
