"""The counting twin of the arithmetic engines: what a circuit costs, without evaluating it. Its values take no memory.

Predicts exactly what `many` does for the same (n, t), lanes and chunk: products, random bits, exchanges, and bytes and
messages of each party, but for redrawn bits (one in 2^61).
"""

import math
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmpc.circuits.arithmetic import Arithmetic, Pair, Public
from dpmpc.circuits.trace import evaluate
from dpmpc.mpc.shamir.engine import CHUNK
from dpmpc.mpc.shamir.layout import ManyLayout

Empty = NDArray[np.uint64]
Circuit = Callable[[Arithmetic], Coroutine[Any, Any, Any]]


class CountingArithmetic:
    """Counts for `lanes` lanes at (parties, threshold); values have shape (*wires, 0)."""

    def __init__(
        self, lanes: int, parties: int = 3, threshold: int = 1, *, planned: int = 0, chunk: int = CHUNK
    ) -> None:
        self.lanes = lanes
        self.tail: tuple[int, ...] = (0,)
        self.layout = ManyLayout.of(parties, threshold)
        self.products = 0  # a lane
        self.rounds = 0  # of products
        self.random_bits_drawn = 0  # a lane
        self.exchanges = 0
        self.bytes_sent = [0] * parties  # payload, by party
        self.messages_sent = [0] * parties
        self._planned, self._masks, self._chunk = planned * lanes, 0, chunk

    def constant(self, values: Any) -> Empty:
        return np.zeros((*np.shape(values), 0), dtype=np.uint64)

    def add(self, x: Empty, y: Empty) -> Empty:
        return x + y

    subtract = add

    def matrix(self, public: Public, x: Empty) -> Empty:
        assert public.shape[1] == len(x)
        return np.zeros((len(public), *x.shape[1:]), dtype=np.uint64)

    def join(self, parts: Sequence[Empty]) -> Empty:
        return np.concatenate(parts)

    async def random_bits(self, count: int) -> Empty:
        self.random_bits_drawn += count
        planned, self._planned = self._planned, 0
        self._pipeline(planned, count * self.lanes)
        return np.zeros((count, 0), dtype=np.uint64)

    async def dots(self, pairs: Sequence[Pair]) -> list[Empty]:
        results = []
        for x, y in pairs:
            assert len(x) == len(y)
            shape = np.broadcast_shapes(x.shape[1:], y.shape[1:])
            results.append(np.zeros(shape, dtype=np.uint64))
        count = sum(math.prod(result.shape[:-1]) for result in results)
        if not count:
            return results
        self.products += count
        self.rounds += 1
        self._take(count * self.lanes)
        self._by_kings(count * self.lanes)
        return results

    def _take(self, words: int) -> None:
        if self._masks < words:
            self._pipeline(words - self._masks, 0)
        self._masks -= words

    def _by_kings(self, words: int) -> None:
        n, layout = self.layout.parties, self.layout
        self._exchange({(i, k): self._slice(words, k) for i in range(n) for k in range(n) if i != k})
        self._exchange({(k, i): self._slice(words, k) for k in range(n) for i in layout.told(k)})

    def _slice(self, words: int, king: int) -> int:
        first, end = self.layout.bounds(words, king)
        return end - first

    def _pipeline(self, products: int, bits: int) -> None:
        n, layout, total = self.layout.parties, self.layout, products + bits
        drawn = opened = 0
        for k in range(-(-total // self._chunk) + 2 * (bits > 0)):
            size = max(0, min(self._chunk, total - k * self._chunk))
            words = {(i, j): layout.columns(size) for i in range(n) for j in layout.sent(i)} if size else {}
            for i in range(n):
                for j in range(n):
                    if i != j:
                        more = self._slice(drawn, j) + self._slice(opened, i)
                        words[i, j] = words.get((i, j), 0) + more
            self._exchange(words)
            drawn, opened = size - max(0, min(size, products - k * self._chunk)), drawn
        self._masks += products

    def _exchange(self, words: dict[tuple[int, int], int]) -> None:
        self.exchanges += 1
        for (sender, _), count in words.items():
            self.bytes_sent[sender] += 8 * count
            self.messages_sent[sender] += count > 0


def count_circuit(
    circuit: Circuit, lanes: int, parties: int, threshold: int, *, chunk: int = CHUNK
) -> CountingArithmetic:
    """The cost of the circuit when its products' masks are dealt together with its random bits."""
    first = CountingArithmetic(0, parties, threshold)
    evaluate(circuit(first))
    engine = CountingArithmetic(lanes, parties, threshold, planned=first.products, chunk=chunk)
    evaluate(circuit(engine))
    return engine
