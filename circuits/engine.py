"""The interface between Boolean circuits and whoever records or evaluates them.

A *bundle* is a NumPy array of shape (*wires, *engine.tail). The leading axes are wires and belong to the circuit, which
may index, stack and reshape them; the trailing axes belong to the engine. One wire carries one bit for each of many
independent evaluations (*lanes*), of which a circuit knows nothing. `x ^ y` is XOR in every engine and costs nothing.

A Boolean circuit is run once, on `circuits.trace.Tracer`, which makes a program of it; the program is what executors
run on lanes. The tests also run circuits on plain bits, directly, and hold the programs against that.
"""

from typing import Any, Protocol

from numpy.typing import NDArray

Bundle = NDArray[Any]


class Engine(Protocol):
    """Takes circuits of XOR (free), NOT (free) and AND (one round for a whole bundle)."""

    @property
    def tail(self) -> tuple[int, ...]:
        """Trailing axes of every bundle."""

    def constant(self, bits: Any) -> Bundle:
        """Public bits, an array of 0 and 1 of shape `wires`, the same in every lane."""

    def not_(self, x: Bundle) -> Bundle:
        """NOT of every wire."""

    def random_bits(self, *wires: int) -> Bundle:
        """Fresh secret uniform bits that no coalition of t parties knows. Cost: no message."""

    def mask_bits(self, *planes: int) -> Bundle:
        """Bits (k, *planes, *tail) of k secret masks that a conversion adds before it opens a number, and that are
        then subtracted from it; a circuit asks once. Cost: no message."""

    async def and_(self, x: Bundle, y: Bundle) -> Bundle:
        """AND wire by wire; the leading axes broadcast. Cost: one round for the whole bundle."""
