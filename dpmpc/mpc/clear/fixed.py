"""The clear twin of the fixed-point engine: the same integers, masks and roundings on Python integers. The oracle,
and `--engine clear`. No secrecy, no network."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmpc.circuits.fixed import CONVERSION_BITS, Draw, Sums
from dpmpc.circuits.program import Program
from dpmpc.mpc.clear.executor import run
from dpmpc.mpc.contract.executor import MaskBits
from dpmpc.mpc.contract.lanes import words_for
from dpmpc.mpc.numbers import domains, wide
from dpmpc.mpc.numbers.field import P as FIELD_P
from dpmpc.mpc.numbers.field import Words
from dpmpc.mpc.numbers.prg import Prg
from dpmpc.mpc.replicated.fixed import mask_bits, numbers, offset, planes
from dpmpc.mpc.replicated.layout import SharingLayout, Subset

Objects = NDArray[np.object_]
Streams = Callable[[Subset, str], Prg]


class ClearFixed:
    """The arithmetic that n parties with threshold t would do, on Python integers; tail (lanes,).

    `streams(subset, purpose)` gives what the parties of a subset would draw from PRSS, `private[i]` what party i
    draws by itself, `bits` the random bits of the program: with the streams of a real run, every number is that run's
    number.
    """

    def __init__(
        self, lanes: int, parties: int, threshold: int, bits: Prg, streams: Streams, private: Sequence[Prg]
    ) -> None:
        self.lanes = lanes
        self._words = words_for(lanes)
        self._bits = bits
        layout = SharingLayout.of(parties, threshold)
        self.subsets, self.dealers = len(layout.subsets), threshold + 1
        masked = [s for s in layout.subsets if s != layout.opened_to]
        self._masks = len(masked)
        self._mask_streams = [streams(s, "fixed mask") for s in masked]
        self._bit_streams = [streams(s, "fixed bits") for s in masked]
        self._private = private

    @classmethod
    def fresh(cls, lanes: int, prg: Prg, parties: int = 3, threshold: int = 1) -> "ClearFixed":
        """An engine whose streams all come from `prg`."""
        key = prg.words((4,)).tobytes()
        private = [domains.SIMULATED.stream(key, i, "private") for i in range(threshold + 1)]

        def streams(subset: tuple[int, ...], purpose: str) -> Prg:
            return domains.SIMULATED.stream(key, bytes(subset), purpose)

        return cls(lanes, parties, threshold, prg, streams, private)

    def constant(self, value: int) -> Objects:
        return np.array([value], dtype=object)

    async def numbers(self, program: Program, values: int, width: int) -> Objects:
        shape, size = (values, 64 * self._words), width + CONVERSION_BITS
        drawn = [wide.draw(stream, shape, size) for stream in self._bit_streams]
        bits = [MaskBits(0, planes(value, size).reshape(-1, self._words)) for value in drawn]
        result = numbers(run(program, self._words, self._bits, bits).reshape(-1, values, self._words))
        for value in drawn:
            result = result - value
        limbs = wide.canonical(result[..., : self.lanes])  # below 2^60, as the bits were
        integers = limbs[:, 0] + (limbs[:, 1] << np.int64(26)) + (limbs[:, 2] << np.int64(52))
        return np.asarray(integers, dtype=object)

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
