"""The clear twin of the fixed-point engine: the same integers, masks and roundings on Python integers. The oracle,
and `--engine clear`. No secrecy, no network."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmpc.circuits.engine import Bundle
from dpmpc.circuits.fixed import Draw, Sums
from dpmpc.mpc import wide
from dpmpc.mpc.engines.clear import ClearEngine
from dpmpc.mpc.engines.layout import Layout, Subset
from dpmpc.mpc.engines.sharing_fixed import mask_bits, numbers, offset, planes
from dpmpc.mpc.field import P as FIELD_P
from dpmpc.mpc.field import Words
from dpmpc.mpc.prg import Prg

Objects = NDArray[np.object_]
Streams = Callable[[Subset, str], Prg]


class ClearFixed:
    """The arithmetic that n parties with threshold t would do, on Python integers; tail (lanes,).

    `streams(subset, purpose)` gives what the parties of a subset would draw from PRSS, `private[i]` what party i
    draws by itself: with the streams of a real run, every number is that run's number.
    """

    def __init__(
        self, engine: ClearEngine, parties: int, threshold: int, streams: Streams, private: Sequence[Prg]
    ) -> None:
        self.lanes = engine.lanes
        self._words = engine.tail[0]
        layout = Layout.of(parties, threshold)
        self.subsets, self.dealers = len(layout.subsets), threshold + 1
        masked = [s for s in layout.subsets if s != layout.opened_to]
        self._masks = len(masked)
        self._mask_streams = [streams(s, "fixed mask") for s in masked]
        self._bit_streams = [streams(s, "fixed bits") for s in masked]
        self._private = private

    @classmethod
    def fresh(cls, engine: ClearEngine, prg: Prg, parties: int = 3, threshold: int = 1) -> "ClearFixed":
        """An engine whose streams all come from `prg`."""
        key = prg.words((4,)).tobytes()
        private = [Prg(key, "private", i) for i in range(threshold + 1)]
        return cls(engine, parties, threshold, lambda s, purpose: Prg(key, str(s), purpose), private)

    def constant(self, value: int) -> Objects:
        return np.array([value], dtype=object)

    def mask(self, values: int, width: int) -> "ClearIntegers":
        drawn = [wide.draw(stream, (values, 64 * self._words), width) for stream in self._bit_streams]
        return ClearIntegers(drawn, values, width, self.lanes, self._words)

    async def deal(self, draw: Draw, rows: int) -> list[Objects]:
        return [draw(prg).astype(object) for prg in self._private]

    async def dot(self, sums: Sums, shift: int, bits: int) -> Objects:
        masked = self._lowest_masks(len(sums), shift, mask_bits(self._masks, bits)) + offset(self._masks, shift, bits)
        result = []
        for row, pairs in enumerate(sums):
            exact = sum(x * y for x, y in pairs)
            assert np.abs(exact).max(initial=0) < 1 << bits, "a bound of the circuit does not hold"
            result.append((exact + masked[row] >> shift) - (1 << bits - shift))
        return np.stack(result)

    async def dot_to_field(self, sums: Sums, shift: int, bits: int) -> Words:
        return np.asarray(await self.dot(sums, shift, bits) % FIELD_P, dtype=np.uint64)

    def _lowest_masks(self, rows: int, shift: int, bits: int) -> Objects:
        """The sum over the masks of r mod 2^shift: all of r that the rounding depends on."""
        low = np.zeros((rows, wide.LIMBS, self.lanes), dtype=np.int64)
        for stream in self._mask_streams:
            mask = wide.draw(stream, (rows, self.lanes), bits)
            for k in range(wide.LIMBS):
                low[:, k] += mask[:, k] & np.int64((1 << max(0, min(wide.RADIX, shift - wide.RADIX * k))) - 1)
        result: Any = (low[:, 0] + (low[:, 1] << np.int64(wide.RADIX))).astype(object)
        for k in range(2, -(-shift // wide.RADIX)):
            result = result + (low[:, k].astype(object) << wide.RADIX * k)
        return np.asarray(result, dtype=object)


class ClearIntegers:
    """The masks of a conversion."""

    def __init__(self, drawn: list[wide.Wide], values: int, width: int, lanes: int, words: int) -> None:
        self.bits: Bundle = np.zeros((len(drawn), width, values, words), dtype=np.uint64)
        for m, value in enumerate(drawn):
            self.bits[m] = planes(value, width)
        self._drawn = drawn
        self._lanes = lanes

    async def open(self, y: Bundle) -> Objects:
        result = numbers(y)
        for value in self._drawn:
            result = result - value
        limbs = wide.canonical(result[..., : self._lanes])  # below 2^60, as the bits were
        integers = limbs[:, 0] + (limbs[:, 1] << np.int64(26)) + (limbs[:, 2] << np.int64(52))
        return np.asarray(integers, dtype=object)
