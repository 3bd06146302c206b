"""What MPyC's protocols cost, exactly: rounds, bytes and messages, for n = 2t + 1 parties (or t = 0, where nothing is
sent).

Elements of a field travel in a fixed number of bytes. Read off MPyC 0.11 and held against real runs by the tests.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmpc.circuits.arithmetic import Pair, Public
from dpmpc.lazy import dataclass

Empty = NDArray[np.uint64]


@dataclass
class SentTally:
    """What one party sends; all send alike."""

    parties: int
    threshold: int
    rounds: int = 0
    bytes_sent: int = 0
    messages: int = 0
    products: int = 0
    random_bits: int = 0

    def random(self, count: int, width: int) -> None:
        """Random bits: for each an element is squared, masked by a sharing of 0 and opened at degree 2t."""
        self.random_bits += count
        self._send(count, width, 2 * self.threshold)

    def reshare(self, count: int, width: int) -> None:
        """Products: every share of degree 2t is shared anew."""
        self.products += count
        self._send(count, width, self.parties - 1 if self.threshold else 0)

    def open(self, count: int, width: int) -> None:
        """An opening at degree t."""
        self._send(count, width, self.threshold)

    def truncate(self, count: int, width: int, bits: int) -> None:
        """Elements less their lowest `bits`: so many random bits each, and one opening."""
        self.random(count * bits, width)
        self.open(count, width)

    def _send(self, count: int, width: int, receivers: int) -> None:
        if receivers and count:
            self.rounds += 1
            self.messages += receivers
            self.bytes_sent += receivers * count * width


class CountingMpyc:
    """The twin of `MpycArithmetic` that counts and computes nothing; values have shape (*wires, 0)."""

    def __init__(self, tally: SentTally, lanes: int, width: int) -> None:
        self.lanes, self.tail = lanes, (0,)
        self._tally, self._width = tally, width

    def constant(self, values: Any) -> Empty:
        return np.zeros((*np.shape(values), 0), dtype=np.uint64)

    def add(self, x: Empty, y: Empty) -> Empty:
        return x + y

    subtract = add

    def matrix(self, public: Public, x: Empty) -> Empty:
        return np.zeros((len(public), *x.shape[1:]), dtype=np.uint64)

    def join(self, parts: Sequence[Empty]) -> Empty:
        return np.concatenate(parts)

    async def random_bits(self, count: int) -> Empty:
        self._tally.random(count * self.lanes, self._width)
        return np.zeros((count, 0), dtype=np.uint64)

    async def dots(self, pairs: Sequence[Pair]) -> list[Empty]:
        results = [np.zeros(np.broadcast_shapes(x.shape[1:], y.shape[1:]), dtype=np.uint64) for x, y in pairs]
        wires = sum(int(np.prod(result.shape[:-1], dtype=np.int64)) for result in results)
        self._tally.reshare(wires * self.lanes, self._width)
        return results
