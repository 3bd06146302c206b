"""MPyC's finite-field arrays as an engine of arithmetic circuits, so that MPyC draws the exact samplers' noise.

An array of values is what an MPyC coroutine holds after `await mpc.gather(x)` for a secure array x over SecFld(2^61 -
1): this party's shares, a finite-field array. Its operators are MPyC's. A product of shares is a share of degree 2t;
`mpc._reshare` brings it back to degree t, as MPyC's own `np_multiply` does, but once for a sum of products.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from dpmpc.circuits.arithmetic import Pair, Public

Shares = Any  # an MPyC finite-field array


class MpycArithmetic:
    """Values of shape (*wires, lanes) over `field`. Circuits run one at a time: MPyC's program counters must go on
    alike at all parties."""

    def __init__(self, mpc: Any, field: Any, lanes: int) -> None:
        """`mpc`: a connected MPyC runtime. `field`: MPyC's GF(2^61 - 1)."""
        self.lanes = lanes
        self.tail: tuple[int, ...] = (lanes,)
        self._mpc, self._field = mpc, field

    def constant(self, values: Any) -> Shares:
        """A public constant is its own share."""
        wires = np.asarray(values).astype(object)
        return self._field.array(np.repeat(wires[..., None], self.lanes, axis=-1))

    def add(self, x: Shares, y: Shares) -> Shares:
        return x + y

    def subtract(self, x: Shares, y: Shares) -> Shares:
        return x - y

    def matrix(self, public: Public, x: Shares) -> Shares:
        flat = x.reshape(len(x), -1)
        return (public.astype(object) @ flat).reshape(len(public), *x.shape[1:])

    def join(self, parts: Sequence[Shares]) -> Shares:
        return self._field.array(np.concatenate([part.value for part in parts]), check=False)

    async def random_bits(self, count: int) -> Shares:
        bits = await self._mpc.np_random_bits(self._field, count * self.lanes)
        return bits.reshape(count, self.lanes)

    async def dots(self, pairs: Sequence[Pair]) -> list[Shares]:
        sums = [np.sum(x.value * y.value, axis=0) for x, y in pairs]
        flat = self._field.array(np.concatenate([each.reshape(-1) for each in sums]))
        if not flat.size:
            return [self._field.array(each) for each in sums]
        flat = await self._mpc._reshare(flat)
        ends = np.cumsum([each.size for each in sums])
        return [flat[end - each.size : end].reshape(each.shape) for each, end in zip(sums, ends, strict=True)]
