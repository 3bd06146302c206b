"""The interface between circuits and whoever evaluates them.

A *bundle* is a NumPy uint64 array of shape (*wires, *engine.tail). The leading axes are wires and belong to the
circuit, which may index, stack and reshape them; the trailing axes belong to the engine (lanes, share components,
labels). One wire carries one bit for each of `engine.lanes` independent evaluations (*lanes*). `x ^ y` is XOR in every
engine and costs nothing.
"""

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

Bundle = NDArray[np.uint64]


class FieldMask(Protocol):
    """Secret uniform field elements whose bits and values are both shared; used once."""

    bits: Bundle  # (k, 61, *tail), least significant bit first

    async def open(self, y: Bundle) -> NDArray[np.uint64]:
        """Shares in F_p of y - (sum of the k masks), p = 2^61 - 1, one a lane; y (61, *tail) is opened to those who
        may see it."""


class Engine(Protocol):
    """Evaluates circuits of XOR (free), NOT (free) and AND (one round for a whole bundle)."""

    @property
    def lanes(self) -> int:
        """Evaluations side by side."""

    @property
    def tail(self) -> tuple[int, ...]:
        """Trailing axes of every bundle."""

    def constant(self, bits: Any) -> Bundle:
        """Public bits, an array of 0 and 1 of shape `wires`, the same in every lane."""

    def not_(self, x: Bundle) -> Bundle:
        """NOT of every wire."""

    def random_bits(self, *wires: int) -> Bundle:
        """Fresh secret uniform bits that no coalition of t parties knows. Cost: no message."""

    async def and_(self, x: Bundle, y: Bundle) -> Bundle:
        """AND wire by wire; the leading axes broadcast. Cost: one round for the whole bundle."""

    def field_mask(self) -> FieldMask:
        """Fresh masks for `circuits.convert`. Cost: no message."""
