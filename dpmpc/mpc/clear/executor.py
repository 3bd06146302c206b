"""The clear executor: bits as they are. `--engine clear` uses it. No secrecy, no network."""

from collections.abc import Sequence

import numpy as np

from dpmpc.circuits.convert import FIELD_BITS
from dpmpc.circuits.program import Layer, Program
from dpmpc.circuits.trace import evaluate
from dpmpc.mpc.contract.executor import MaskBits, Words, execute, given_deposits, mask_deposits
from dpmpc.mpc.contract.lanes import from_planes, to_planes, words_for
from dpmpc.mpc.native.layers import Deposit, ProductLayer, Slots
from dpmpc.mpc.numbers import field
from dpmpc.mpc.numbers.prg import Prg

_PRODUCT = ProductLayer([(0, [0])])


class ClearExecutor:
    """One component: the bit. Random bits come from `prg`."""

    components = 1
    public: int | None = 0

    def __init__(self, words: int, prg: Prg, masks: Sequence[MaskBits] = (), given: Words | None = None) -> None:
        self.words = words
        self._prg, self._masks, self._given = prg, masks, given

    def _inputs(self, layer: Layer) -> list[Deposit]:
        result = [*mask_deposits(layer, self._masks, 1), *given_deposits(layer, self._given)]
        if len(layer.random):
            result.append(Deposit(layer.random, 0, (self._prg.reserve((len(layer.random), self.words)),)))
        return result

    async def layer(self, slots: Slots, layer: Layer, results: list[Deposit]) -> list[Deposit]:
        slots.run(layer, self._inputs(layer), _PRODUCT)
        return []


def run(program: Program, words: int, prg: Prg, masks: Sequence[MaskBits] = (), given: Words | None = None) -> Words:
    """The program's outputs (outputs, words), with random bits from `prg` and given bits (given, words)."""
    shaped = None if given is None else given[:, None]
    return evaluate(execute(program, ClearExecutor(words, prg, masks, shaped)))[:, 0]


class ClearBatch:
    """One batch of `lanes` evaluations in the clear; `prg` is all their randomness."""

    def __init__(self, lanes: int, prg: Prg, masks: int = 2) -> None:
        self.lanes, self.masks = lanes, masks
        self._prg = prg

    async def to_field(self, program: Program, less: int = 0) -> Words:
        """See `ProgramEngine.to_field`: the numbers themselves. Masks are drawn first."""
        words = words_for(self.lanes)
        values = [field.uniform(self._prg, (64 * words,)) for _ in range(program.masks)]
        opened = run(program, words, self._prg, [MaskBits(0, to_planes(v, FIELD_BITS)) for v in values])
        result = field.fold(from_planes(opened))
        for value in values:
            result = field.sub(result, value)
        return field.sub(result, np.full(1, less % field.P, dtype=np.uint64))[: self.lanes]
