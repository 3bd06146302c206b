"""A heap of bits: many bits of many weights that stand for their weighted sum, and its reduction to two numbers."""

from collections.abc import Iterable

import numpy as np

from .adders import carry_save
from .engine import Bundle, Engine


class Heap:
    """Bits by weight: `columns[i]` holds single wires (*tail) of weight 2^i. Its value is the sum of all, a
    nonnegative integer."""

    def __init__(self, columns: Iterable[Iterable[Bundle]] = ()) -> None:
        self.columns: list[list[Bundle]] = [list(column) for column in columns]

    def put(self, weight: int, *wires: Bundle) -> None:
        """Add wires of weight 2^weight."""
        while len(self.columns) <= weight:
            self.columns.append([])
        self.columns[weight].extend(wires)

    def put_number(self, bits: Bundle, weight: int = 0) -> None:
        """Add 2^weight times the number `bits` (width, *tail)."""
        for i, wire in enumerate(bits):
            self.put(weight + i, wire)

    @property
    def size(self) -> int:
        """Bits in the heap."""
        return sum(map(len, self.columns))


async def compress(engine: Engine, heap: Heap, width: int, *, end_around: bool) -> tuple[Bundle, Bundle]:
    """Two numbers (width, *tail) whose sum is the heap's value, mod 2^width, or mod 2^width - 1 with `end_around`.

    Cost: one round for each height of 2, 3, 4, 6, 9, 13, ... below the highest column; about size - 2 width ANDs and
    one more for each column above the first full one.
    Source: Dadda 1965. Every column is taken down to the next height at once; a half adder is a full adder with a
    constant 0.
    """
    assert len(heap.columns) <= width
    columns = Heap(heap.columns).columns + [[] for _ in range(width - len(heap.columns))]
    zero = engine.constant(np.zeros((), dtype=bool))
    heights = [2]
    while heights[-1] < max(map(len, columns)):
        heights.append(heights[-1] * 3 // 2)
    for target in reversed(heights[:-1]):
        adders = _plan([len(column) for column in columns], target, end_around=end_around)
        inputs: list[list[Bundle]] = [[], [], []]
        for column, (full, half) in zip(columns, adders, strict=True):
            for k in range(full + half):
                for part in range(3):
                    inputs[part].append(column.pop() if part < 2 or k < full else zero)
        if not inputs[0]:
            continue
        sums, carries = await carry_save(engine, *(np.stack(wires) for wires in inputs))
        done = 0
        for i, (full, half) in enumerate(adders):
            columns[i].extend(sums[done : done + full + half])
            if i + 1 < width or end_around:
                columns[(i + 1) % width].extend(carries[done : done + full + half])
            done += full + half
    first, second = (np.stack([column[k] if len(column) > k else zero for column in columns]) for k in range(2))
    return first, second


def _plan(counts: list[int], target: int, *, end_around: bool) -> list[tuple[int, int]]:
    """(full adders, half adders) for each column, so that no column is higher than `target` when the carries have come
    in."""
    wrapped = 0  # carries from the last column into the first: guessed, until the guess is right
    while True:
        adders, carry = [], wrapped
        for count in counts:
            excess = max(0, count + carry - target)
            adders.append((excess // 2, excess % 2))
            carry = excess // 2 + excess % 2
        if not end_around or carry <= wrapped:
            return adders
        wrapped = carry
