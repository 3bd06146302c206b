"""The interface between arithmetic circuits over F_p, p = 2^61 - 1, and whoever evaluates them; products side by side.

Values are arrays of shape (*wires, *engine.tail), of whatever type the engine has. The leading axes belong to the
circuit, which may index and reshape them; the trailing ones to the engine. One wire carries one field element for each
of `engine.lanes` independent evaluations. Sums, public constants and public matrices are local; a *sum* of products
costs what one product costs, for it is opened or shared again once.
"""

import math
from collections.abc import Callable, Coroutine, Generator, Sequence
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from .convert import FIELD_BITS

P = (1 << FIELD_BITS) - 1
Values = Any  # an engine's array: indexed and reshaped along its leading axes, combined by the engine alone
Pair = tuple[Values, Values]
Public = NDArray[np.int64]
T = TypeVar("T")


class Arithmetic(Protocol):
    """Evaluates circuits of sums (free) and sums of products (one round for all that are asked for together)."""

    @property
    def lanes(self) -> int:
        """Evaluations side by side."""

    @property
    def tail(self) -> tuple[int, ...]:
        """Trailing axes of every array of values."""

    def constant(self, values: Any) -> Values:
        """Public integers of shape `wires`, |v| < p, the same in every lane."""

    def add(self, x: Values, y: Values) -> Values:
        """x + y; leading axes broadcast."""

    def subtract(self, x: Values, y: Values) -> Values:
        """x - y; leading axes broadcast."""

    def matrix(self, public: Public, x: Values) -> Values:
        """(out, *rest): `public` (out, in), integers |c| < p, times x (in, *rest). Local."""

    def join(self, parts: Sequence[Values]) -> Values:
        """Arrays one after another along their first axis."""

    async def random_bits(self, count: int) -> Values:
        """(count, *tail): fresh secret values, 0 or 1 with equal probability, that no coalition of t parties knows."""

    async def dots(self, pairs: Sequence[Pair]) -> list[Values]:
        """For each pair the sum over the first axis of x * y; the other leading axes broadcast. Cost: one product for
        every wire of the results, one round for all."""


class Bits:
    """Random bits that were drawn together, handed out once each; not for use while `in_step` runs."""

    def __init__(self, bits: Values) -> None:
        self._bits, self._taken = bits, 0

    def take(self, *wires: int) -> Values:
        """The next bits, in this shape."""
        count = math.prod(wires)
        self._taken += count
        assert self._taken <= len(self._bits), "more bits taken than were drawn"
        taken: Values = self._bits[self._taken - count : self._taken].reshape(*wires, *self._bits.shape[1:])
        return taken


def signs(engine: Arithmetic, bits: Values) -> Values:
    """1 - 2 b."""
    return engine.subtract(engine.constant(1), engine.add(bits, bits))


async def dot(engine: Arithmetic, x: Values, y: Values) -> Values:
    """The sum over the first axis of x * y. Cost: one product a wire of the result, one round."""
    return (await engine.dots([(x, y)]))[0]


async def multiply(engine: Arithmetic, x: Values, y: Values) -> Values:
    """x * y, wire by wire; leading axes broadcast. Cost: one product a wire, one round."""
    return (await engine.dots([(x[None], y[None])]))[0]


async def in_step(engine: Arithmetic, *circuits: Callable[[Arithmetic], Coroutine[Any, Any, Any]]) -> list[Any]:
    """What each circuit returns when all run side by side: the products they wait for share a round.

    A circuit gets an engine to do everything on, and draws no random bits there: bits are drawn before, all at once.
    Cost: the products of all; the rounds of the longest.
    """
    inner = _Stepped(engine)
    running = {k: circuit(inner) for k, circuit in enumerate(circuits)}
    given: dict[int, list[Values] | None] = dict.fromkeys(running)
    results: list[Any] = [None] * len(circuits)
    while running:
        asked: dict[int, _Asked] = {}
        for k, circuit in list(running.items()):
            try:
                asked[k] = circuit.send(given[k])
            except StopIteration as stop:
                results[k] = stop.value
                del running[k]
        pairs = [pair for request in asked.values() for pair in request.pairs]
        products = iter(await engine.dots(pairs) if pairs else ())
        given = {k: [next(products) for _ in request.pairs] for k, request in asked.items()}
    return results


class _Asked:
    """Products that a circuit waits for."""

    def __init__(self, pairs: Sequence[Pair]) -> None:
        self.pairs = list(pairs)

    def __await__(self) -> Generator["_Asked", list[Values], list[Values]]:
        return (yield self)


class _Stepped:
    """An engine whose products wait for those of the circuits beside."""

    def __init__(self, engine: Arithmetic) -> None:
        self.lanes, self.tail = engine.lanes, engine.tail
        self.constant, self.add, self.subtract = engine.constant, engine.add, engine.subtract
        self.matrix, self.join = engine.matrix, engine.join

    async def random_bits(self, count: int) -> Values:
        raise AssertionError("random bits are drawn before circuits run in step")

    async def dots(self, pairs: Sequence[Pair]) -> list[Values]:
        return await _Asked(pairs)
