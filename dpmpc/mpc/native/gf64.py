"""Binary fields, and what the checks of ANDs (`dpmpc.mpc.checked.fold`) and of oblivious transfers
(`dpmpc.mpc.two_servers.consistency`) do with them.

GF64 is F_2[X] / (X^64 + X^4 + X^3 + X + 1): a word of 64 lanes is an element, lane l at X^l. Its kernels are compiled;
`BinaryField` is their twin, for words of 64 bits and for small ones, on which the check is put to the test.

Arrays are blocks of rows of eight words: word i of row r of block b belongs to column 8 b + i; those of `weigh` are
plain matrices.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmpc.mpc.native import choice

Words = NDArray[Any]  # of the field's dtype

WIDE = 8  # words of a row of a block
_BLOCKS = 64  # that the twin works on at a time
_NONE = np.zeros(0, dtype=np.uint64)

Rights = Sequence[Sequence[int]]  # by component of x, those of y whose sum it is multiplied with
THREE: Rights = ((0, 1), (0,))  # among three parties


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

    def sums(self, x: Words, y: Words, v: int, weights: Words | None = None, rights: Rights = THREE) -> Words:
        """(3^v,): at the points {0, 1, infinity}^v, the sums over all columns of a party's part of x y, for components
        x, y (K, words) in blocks of 2^v rows. With weights, one a column, x and y are bits, and a word of products
        counts times its weight.

        A party's part is the sum over k of x_k times the sum of y_l over l in rights[k]; among three parties x_0 y_0 +
        x_0 y_1 + x_1 y_0, where component 0 is the one that takes it. The first variable's digit is the most
        significant, and it halves the rows of a block.
        """
        total = np.zeros(3**v, dtype=self.dtype)
        columns = x.shape[1] >> v
        for at in range(0, columns, WIDE * _BLOCKS):
            piece = slice(at << v, (at + WIDE * _BLOCKS) << v)
            xs, ys = (_at_points(part[:, piece].reshape(len(part), -1, 1 << v, WIDE), v) for part in (x, y))
            for left, which in zip(xs, rights, strict=True):
                right = np.bitwise_xor.reduce(ys[list(which)], axis=0)
                if weights is not None:
                    products = self.multiply(left & right, weights[at : at + WIDE * _BLOCKS].reshape(-1, 1, WIDE))
                else:
                    products = self.multiply(left, right)
                total ^= np.bitwise_xor.reduce(products, axis=(0, 2))
        return total

    def fold(self, words: Words, factors: Words) -> Words:
        """One word a column: the sum of its rows times their factors. May reuse `words`."""
        rows = words.reshape(-1, len(factors), WIDE)
        result: Words = np.bitwise_xor.reduce(self.multiply(rows, factors[:, None]), axis=1).reshape(-1)
        return result

    def fold_bits(
        self, x: Words, y: Words, factors: Words, weights: Words, v: int | None, rights: Rights = THREE
    ) -> tuple[Words, Words, Words]:
        """(x, y, sums): for each lane l of each column, the sum of the factors of the rows whose bit l is 1; of x times
        X^l and the column's weight. Then their `sums` at {0, 1, infinity}^v, none for v None.

        x and y are (K, words), in blocks of as many rows as a word has lanes, and may be reused.
        """
        powers = [weights.reshape(-1, WIDE)]
        for _ in range(self.bits - 1):
            powers.append(self.times_x(powers[-1]))
        each, count = np.stack(powers, axis=1), len(x)
        x = np.stack([self.multiply(self._lanes(part, factors), each) for part in x]).reshape(count, -1)
        y = np.stack([self._lanes(part, factors) for part in y]).reshape(count, -1)
        return x, y, factors[:0] if v is None else self.sums(x, y, v, None, rights)

    def _lanes(self, words: Words, factors: Words) -> Words:
        """(blocks, lanes, WIDE): the sums of the factors of the rows whose bit is 1."""
        rows, lanes = words.reshape(-1, len(factors), WIDE), []
        for lane in range(self.bits):
            bits = rows >> self.dtype.type(lane) & self._one
            lanes.append(np.bitwise_xor.reduce((np.zeros_like(bits) - bits) & factors[:, None], axis=1))
        return np.stack(lanes, axis=1)

    def claim(self, z: Words, weights: Words, rows: int) -> Words:
        """(rows,): of each row over all blocks, the sum of its words times their columns' weights."""
        products = self.multiply(z.reshape(-1, rows, WIDE), weights.reshape(-1, 1, WIDE))
        result: Words = np.bitwise_xor.reduce(products, axis=(0, 2))
        return result

    def weigh(self, z: Words, weights: Words, out: Words) -> None:
        """To out (rows,), XORed: of each row of z (rows, columns) the sum of its words times their columns' weights."""
        out ^= np.bitwise_xor.reduce(self.multiply(z, weights), axis=1)


def _at_points(rows: Words, v: int) -> Words:
    """(K, blocks, 3^v, WIDE), rows (K, blocks, 2^v, WIDE) at the points {0, 1, infinity}^v."""
    shape = rows.shape[:2]
    values = rows[:, :, None]
    for _ in range(v):
        low, high = np.split(values, 2, axis=3)
        values = np.stack([low, high, low ^ high], axis=3).reshape(*shape, -1, low.shape[3], WIDE)
    return values.reshape(*shape, 3**v, WIDE)


def _encoded(rights: Rights) -> NDArray[np.int32]:
    return np.array([number for which in rights for number in (len(which), *which)], dtype=np.int32)


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

    def sums(self, x: Words, y: Words, v: int, weights: Words | None = None, rights: Rights = THREE) -> Words:
        if choice.compiled is None:
            return super().sums(x, y, v, weights, rights)
        out = np.empty(3**v, dtype=np.uint64)
        choice.compiled.gf_sums(x, y, _encoded(rights), v, _NONE if weights is None else weights, out)
        return out

    def fold(self, words: Words, factors: Words) -> Words:
        if choice.compiled is None:
            return super().fold(words, factors)
        choice.compiled.gf_fold(words, factors)
        return words[: len(words) // len(factors)]

    def fold_bits(
        self, x: Words, y: Words, factors: Words, weights: Words, v: int | None, rights: Rights = THREE
    ) -> tuple[Words, Words, Words]:
        if choice.compiled is None:
            return super().fold_bits(x, y, factors, weights, v, rights)
        out = np.empty(0 if v is None else 3**v, dtype=np.uint64)
        choice.compiled.gf_fold_bits(x, y, _encoded(rights), factors, weights, -1 if v is None else v, out)
        return x, y, out

    def claim(self, z: Words, weights: Words, rows: int) -> Words:
        if choice.compiled is None:
            return super().claim(z, weights, rows)
        out = np.empty(rows, dtype=np.uint64)
        choice.compiled.gf_claim(z, weights, out)
        return out

    def weigh(self, z: Words, weights: Words, out: Words) -> None:
        if choice.compiled is None:
            return super().weigh(z, weights, out)
        choice.compiled.gf_weigh(z, weights, out)


GF64: BinaryField = _Field64(64, 0x1B)
