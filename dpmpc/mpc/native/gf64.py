"""Binary fields, and the four things that the check of ANDs (`dpmpc.mpc.engines.fold`) does with them.

GF64 is F_2[X] / (X^64 + X^4 + X^3 + X + 1): a word of 64 lanes is an element, lane l at X^l. Its kernels are compiled;
`BinaryField` is their twin, for words of 64 bits and for small ones, on which the check is put to the test.

Arrays are blocks of rows of eight words: word i of row r of block b belongs to column 8 b + i.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmpc.mpc.native import choice

Words = NDArray[Any]  # of the field's dtype

WIDE = 8  # words of a row of a block
_BLOCKS = 64  # that the twin works on at a time
_NONE = np.zeros(0, dtype=np.uint64)


class BinaryField:
    """F_2[X] / (X^bits + ...) with `bits` lanes a word; `polynomial` is the modulus without its highest term."""

    def __init__(self, bits: int, polynomial: int) -> None:
        self.bits = bits
        self.dtype = np.dtype(f"u{bits // 8}")
        self._polynomial = self.dtype.type(polynomial)
        self._one, self._top = self.dtype.type(1), self.dtype.type(bits - 1)

    def times_x(self, a: Words) -> Words:
        """a X."""
        result: Words = (a << self._one) ^ ((a >> self._top) * self._polynomial)
        return result

    def multiply(self, a: Words, b: Words) -> Words:
        """a b, elementwise, of shapes that go together."""
        a, b = np.broadcast_arrays(a, b)
        out = np.zeros(a.shape, dtype=self.dtype)
        for k in reversed(range(self.bits)):
            out = self.times_x(out) ^ (a & (np.zeros_like(b) - (b >> self.dtype.type(k) & self._one)))
        return out

    def sums(self, x: Words, y: Words, v: int, weights: Words | None = None) -> Words:
        """(3^v,): at the points {0, 1, infinity}^v, the sums over all columns of a party's part of x y, for components
        x, y (2, words) in blocks of 2^v rows. With weights, one a column, x and y are bits, and a word of products
        counts times its weight.

        A party's part is x_0 y_0 + x_0 y_1 + x_1 y_0: component 0 is the one that takes it. The first variable's digit
        is the most significant, and it halves the rows of a block.
        """
        total = np.zeros(3**v, dtype=self.dtype)
        columns = x.shape[1] >> v
        for at in range(0, columns, WIDE * _BLOCKS):
            piece = slice(at << v, (at + WIDE * _BLOCKS) << v)
            (x0, x1), (y0, y1) = (_at_points(part[:, piece].reshape(2, -1, 1 << v, WIDE), v) for part in (x, y))
            if weights is not None:
                products = (x0 & (y0 ^ y1)) ^ (x1 & y0)
                products = self.multiply(products, weights[at : at + WIDE * _BLOCKS].reshape(-1, 1, WIDE))
            else:
                products = self.multiply(x0, y0 ^ y1) ^ self.multiply(x1, y0)
            total ^= np.bitwise_xor.reduce(products, axis=(0, 2))
        return total

    def fold(self, words: Words, factors: Words) -> Words:
        """One word a column: the sum of its rows times their factors. May reuse `words`."""
        rows = words.reshape(-1, len(factors), WIDE)
        result: Words = np.bitwise_xor.reduce(self.multiply(rows, factors[:, None]), axis=1).reshape(-1)
        return result

    def fold_bits(self, words: Words, factors: Words, weights: Words | None = None) -> Words:
        """For each lane l of each column: the sum of the factors of the rows whose bit l is 1, times X^l and the
        column's weight, if there are weights. In blocks of as many rows as a word has lanes; may reuse `words`."""
        rows = words.reshape(-1, len(factors), WIDE)
        lanes = []
        weight = None if weights is None else weights.reshape(-1, WIDE)
        for lane in range(self.bits):
            bits = rows >> self.dtype.type(lane) & self._one
            value = np.bitwise_xor.reduce((np.zeros_like(bits) - bits) & factors[:, None], axis=1)
            if weight is not None:
                value = self.multiply(value, weight)
                weight = self.times_x(weight)
            lanes.append(value)
        return np.stack(lanes, axis=1).reshape(-1)

    def claim(self, z: Words, weights: Words, rows: int) -> Words:
        """(rows,): of each row over all blocks, the sum of its words times their columns' weights."""
        products = self.multiply(z.reshape(-1, rows, WIDE), weights.reshape(-1, 1, WIDE))
        result: Words = np.bitwise_xor.reduce(products, axis=(0, 2))
        return result


def _at_points(rows: Words, v: int) -> tuple[Words, Words]:
    """Both components (blocks, 3^v, WIDE) of rows (2, blocks, 2^v, WIDE) at the points {0, 1, infinity}^v."""
    shape = rows.shape[:2]
    values = rows[:, :, None]
    for _ in range(v):
        low, high = np.split(values, 2, axis=3)
        values = np.stack([low, high, low ^ high], axis=3).reshape(*shape, -1, low.shape[3], WIDE)
    both = values.reshape(*shape, 3**v, WIDE)
    return both[0], both[1]


class _Field64(BinaryField):
    """The same of 64 bits, by the extension where there is one."""

    def multiply(self, a: Words, b: Words) -> Words:
        if choice.compiled is None:
            return super().multiply(a, b)
        if a.shape != b.shape:
            a, b = np.broadcast_arrays(a, b)
        a, b = (np.ascontiguousarray(each) for each in (a, b))
        out = np.empty(a.shape, dtype=np.uint64)
        choice.compiled.gf_multiply(a, b, out)
        return out

    def sums(self, x: Words, y: Words, v: int, weights: Words | None = None) -> Words:
        if choice.compiled is None:
            return super().sums(x, y, v, weights)
        out = np.empty(3**v, dtype=np.uint64)
        choice.compiled.gf_sums(x, y, v, _NONE if weights is None else weights, out)
        return out

    def fold(self, words: Words, factors: Words) -> Words:
        if choice.compiled is None:
            return super().fold(words, factors)
        choice.compiled.gf_fold(words, factors)
        return words[: len(words) // len(factors)]

    def fold_bits(self, words: Words, factors: Words, weights: Words | None = None) -> Words:
        if choice.compiled is None:
            return super().fold_bits(words, factors, weights)
        choice.compiled.gf_fold_bits(words, factors, _NONE if weights is None else weights)
        return words

    def claim(self, z: Words, weights: Words, rows: int) -> Words:
        if choice.compiled is None:
            return super().claim(z, weights, rows)
        out = np.empty(rows, dtype=np.uint64)
        choice.compiled.gf_claim(z, weights, out)
        return out


GF64: BinaryField = _Field64(64, 0x1B)
