"""Circuits on plain bits, gate by gate as they are written: the oracle of every program. Nothing is traced here."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmpc.circuits.engine import Bundle
from dpmpc.circuits.trace import evaluate
from dpmpc.mpc.contract.lanes import from_planes, to_planes, words_for
from dpmpc.mpc.numbers import field
from dpmpc.mpc.numbers.prg import Prg

__all__ = ["DirectEngine", "evaluate", "less_masks"]

Words = NDArray[np.uint64]


class DirectEngine:
    """Bundles of shape (*wires, words); random bits come from `prg`. `masks`: values (64 words,) of each mask."""

    def __init__(self, lanes: int, prg: Prg, masks: Sequence[Words] = ()) -> None:
        self.lanes = lanes
        self.tail: tuple[int, ...] = (words_for(lanes),)
        self.masks = masks
        self._prg = prg
        self.ands = self.drawn = 0

    def constant(self, bits: Any) -> Bundle:
        wires = np.asarray(bits, dtype=bool)
        return np.where(wires[..., None], np.uint64(2**64 - 1), np.uint64(0)) * np.ones(self.tail, dtype=np.uint64)

    def not_(self, x: Bundle) -> Bundle:
        return ~x

    def random_bits(self, *wires: int) -> Bundle:
        self.drawn += int(np.prod(wires))
        return self._prg.words((*wires, *self.tail))

    def mask_bits(self, *planes: int) -> Bundle:
        (width,) = planes
        bits = [to_planes(value, width) for value in self.masks]
        return np.array(bits, dtype=np.uint64).reshape(len(bits), width, *self.tail)

    async def and_(self, x: Bundle, y: Bundle) -> Bundle:
        self.ands += int(np.prod(np.broadcast_shapes(x.shape, y.shape)[: -len(self.tail)]))
        return x & y


def less_masks(y: Bundle, masks: Sequence[Words]) -> Words:
    """The numbers mod p, one a lane, that `to_field` gave as y: by Python's integers, not by the field's code."""
    total = from_planes(y).astype(object)
    for mask in masks:
        total = total - mask.astype(object)
    return np.asarray(total % field.P, dtype=np.uint64)
