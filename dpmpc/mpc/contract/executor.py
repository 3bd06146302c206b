"""What executors of programs share: the loop over layers, the slots, where masks' bits come from.

An executor says where inputs come from and what the ANDs of one layer are; scheduling, liveness and constants are the
program's, XORs and memory are `dpmpc.mpc.native.layers`.
"""

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from dpmpc.circuits.program import Layer, Program
from dpmpc.lazy import dataclass
from dpmpc.mpc.native.layers import Deposit, Room, Slots

Words = NDArray[np.uint64]


class Executor(Protocol):
    """One evaluation of one program. A wire is `components` rows of `words` words."""

    components: int
    words: int
    public: int | None  # the component in which the constant 1 is 1, if it is held

    async def layer(self, slots: Slots, layer: Layer, results: list[Deposit]) -> list[Deposit]:
        """Deposits the results of the ANDs before and the inputs that `layer` loads, does its XORs, and returns the
        results of its ANDs; the last layer has none.

        An executor that checks its ANDs finds their operands in the slots of `layer.ands` when it has done the XORs.
        """


async def execute(program: Program, executor: Executor, room: Room | None = None) -> Words:
    """The program's outputs, (outputs, components, words). `room`: as of `Slots`, for the wires."""
    slots = Slots(program.slots, executor.components, executor.words, room=room)
    slots.set_constants(executor.public)
    results: list[Deposit] = []
    for layer in program.layers:
        results = await executor.layer(slots, layer, results)
    return slots.gather(program.outputs)


@dataclass(frozen=True)
class MaskBits:
    """The bits of one mask, (mask_bits, words), in the one component of its sharing that is not zero."""

    component: int
    planes: Words


def mask_deposits(layer: Layer, masks: Sequence[MaskBits | None], components: int) -> list[Deposit]:
    """What a layer loads of the masks; of a mask that is None, this party holds zeros alone."""
    result = []
    for number, (slots, bits) in layer.by_mask.items():
        mask = masks[number]
        for k in range(components):
            known = mask is not None and mask.component == k
            result.append(Deposit(slots, k, (mask.planes[bits],) if mask is not None and known else ()))
    return result


def given_deposits(layer: Layer, given: Words | None) -> list[Deposit]:
    """What a layer loads of given bits, (given, components, words)."""
    if not len(layer.given):
        return []
    assert given is not None, "the program takes inputs, and none were given"
    slots, numbers = np.ascontiguousarray(layer.given[:, 0]), layer.given[:, 1]
    return [Deposit(slots, k, (given[numbers, k],)) for k in range(given.shape[1])]
