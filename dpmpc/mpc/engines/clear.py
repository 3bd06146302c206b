"""The clear engine: bits as they are. The oracle of every circuit; `--engine clear` uses it too. No secrecy, no
network."""

from collections.abc import Coroutine
from typing import Any, TypeVar

import numpy as np

from dpmpc.circuits.convert import FIELD_BITS
from dpmpc.circuits.engine import Bundle
from dpmpc.mpc import field
from dpmpc.mpc.engines.lanes import Words, from_planes, to_planes, words_for
from dpmpc.mpc.prg import Prg

T = TypeVar("T")
_ONES = np.uint64(0xFFFFFFFFFFFFFFFF)


class ClearEngine:
    """Bundles of shape (*wires, words); random bits come from `prg`."""

    def __init__(self, lanes: int, prg: Prg, masks: int = 2) -> None:
        self.lanes = lanes
        self.tail: tuple[int, ...] = (words_for(lanes),)
        self._prg = prg
        self._masks = masks

    def constant(self, bits: Any) -> Bundle:
        wires = np.asarray(bits, dtype=bool)
        return np.where(wires[..., None], _ONES, np.uint64(0)) * np.ones(self.tail, dtype=np.uint64)

    def not_(self, x: Bundle) -> Bundle:
        return ~x

    def random_bits(self, *wires: int) -> Bundle:
        return self._prg.words((*wires, *self.tail))

    async def and_(self, x: Bundle, y: Bundle) -> Bundle:
        return x & y

    def field_mask(self) -> "ClearMask":
        return ClearMask([field.uniform(self._prg, (64 * self.tail[0],)) for _ in range(self._masks)], self.lanes)


class ClearMask:
    """Uniform field elements and their bits."""

    def __init__(self, values: list[Words], lanes: int) -> None:
        self.bits: Bundle = np.stack([to_planes(v, FIELD_BITS) for v in values])
        self._values = values
        self._lanes = lanes

    async def open(self, y: Bundle) -> Words:
        result = from_planes(y)
        result = np.where(result == np.uint64(field.P), np.uint64(0), result)
        for value in self._values:
            result = field.sub(result, value)
        return result[: self._lanes]


def evaluate(circuit: Coroutine[Any, Any, T]) -> T:
    """What the circuit returns; it must not wait for anything, as none does on the clear and the counting engine."""
    try:
        circuit.send(None)
    except StopIteration as stop:
        return stop.value  # type: ignore[no-any-return]
    raise AssertionError("a circuit waited outside an event loop")
