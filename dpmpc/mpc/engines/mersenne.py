"""Arithmetic mod a Mersenne prime p = 2^b - 1 on NumPy arrays: what the arithmetic engines do with words.

b = 61 is the field of every release; smaller ones (3, 5, 7) let tests run the same engines over all randomness. Values
are reduced: 0 <= x < p. A product with a power of two is a rotation of b bits. p = 3 mod 4, so roots are powers.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dpmpc.mpc import field
from dpmpc.circuits.arithmetic import Public
from dpmpc.mpc.prg import Prg

Words = NDArray[np.uint64]
_LIMB = 21  # bits of a limb that goes through a product of float64 matrices
_EXACT = 53  # integers below 2^53 are exact there
_COLUMNS = 1 << 12  # of such a product at a time


class Mersenne:
    """F_p for p = 2^bits - 1, prime."""

    def __init__(self, bits: int = field.BITS) -> None:
        assert bits in (3, 5, 7, 61)
        self.bits = bits
        self.p = (1 << bits) - 1
        self._p = np.uint64(self.p)
        self._bits = np.uint64(bits)

    def add(self, a: Words, b: Words) -> Words:
        """a + b."""
        s = a + b
        reduced: Words = np.minimum(s, s - self._p)
        return reduced

    def subtract(self, a: Words, b: Words) -> Words:
        """a - b."""
        s = a - b
        reduced: Words = np.minimum(s, s + self._p)
        return reduced

    def multiply(self, a: Words, b: Words) -> Words:
        """a * b."""
        return field.mul(a, b) if self.bits == field.BITS else a * b % self._p

    def scale(self, a: Words, c: int) -> Words:
        """c * a for a public integer c of any sign and size."""
        return field.mul(a, c) if self.bits == field.BITS else a * np.uint64(c % self.p) % self._p

    def rotate(self, a: Words, k: int) -> Words:
        """2^k a."""
        k %= self.bits
        if not k:
            return a
        rotated: Words = (a << np.uint64(k)) & self._p | a >> np.uint64(self.bits - k)
        return rotated

    def total(self, values: Words) -> Words:
        """The sum over the first axis."""
        if self.bits == field.BITS:
            return field.total(values)
        return values.sum(axis=0, dtype=np.uint64) % self._p

    def dot(self, x: Words, y: Words) -> Words:
        """The sum over the first axis of x * y; the other axes broadcast."""
        result = self.multiply(x[0], y[0])
        for a, b in zip(x[1:], y[1:], strict=True):
            result = self.add(result, self.multiply(a, b))
        return result

    def constants(self, values: Sequence[int] | Public) -> Words:
        """Integers |v| < p as field elements."""
        signed = np.asarray(values, dtype=np.int64)
        reduced: Words = np.where(signed < 0, signed + np.int64(self.p), signed).astype(np.uint64)
        return reduced

    def matrix(self, public: Public, x: Words) -> Words:
        """public (out, in), |c| < p, times x (in, ...).

        Exact in float64: both are cut into limbs such that no sum of limbs' products reaches 2^53.
        """
        out, terms = public.shape
        flat = x.reshape(terms, -1)
        if not terms or not flat.size:
            return np.zeros((out, *x.shape[1:]), dtype=np.uint64)
        rows = _limbs_of(public, terms)
        result = np.empty((out, flat.shape[1]), dtype=np.uint64)
        mask = np.uint64((1 << _LIMB) - 1)
        for start in range(0, flat.shape[1], _COLUMNS):
            block = flat[:, start : start + _COLUMNS]
            total = np.zeros((out, block.shape[1]), dtype=np.uint64)
            for k in range(-(-self.bits // _LIMB)):
                limb = ((block >> np.uint64(_LIMB * k)) & mask).astype(np.float64)
                for shift, row in rows:
                    total = self.add(total, self.rotate(self._signed(row @ limb), shift + _LIMB * k))
            result[:, start : start + _COLUMNS] = total
        return result.reshape(out, *x.shape[1:])

    def _signed(self, sums: NDArray[np.float64]) -> Words:
        """Integers below 2^53 in absolute value as field elements."""
        exact = sums.astype(np.int64)
        if self.bits == field.BITS:
            return field.from_int64(exact)
        return (exact % np.int64(self.p)).astype(np.uint64)

    def inverse_root(self, a: Words) -> Words:
        """z with a z^2 = 1 where a is a nonzero square, of z and -z the one that a alone decides; 0 where a is 0.

        z = a^(2^(b-2) - 1): for a square, a^(2^(b-1) - 1) = 1 is a z^2. Where a is no square, a z^2 = -1.
        """
        return self._ones(a, self.bits - 2)

    def _ones(self, a: Words, count: int) -> Words:
        """a^(2^count - 1)."""
        if count == 1:
            return a
        if count % 2:
            root = self._ones(a, count - 1)
            return self.multiply(self.multiply(root, root), a)
        half = power = self._ones(a, count // 2)
        for _ in range(count // 2):
            power = self.multiply(power, power)
        return self.multiply(power, half)

    def uniform(self, prg: Prg, count: int) -> Words:
        """The next words of a stream as field elements, exactly uniform given uniform words: b bits of each, drawn
        again where they are p."""
        values = prg.words((count,)) & self._p
        while values.max(initial=0) == self._p:
            again = values == self._p
            values[again] = prg.words((int(again.sum()),)) & self._p
        return values


def _limbs_of(public: Public, terms: int) -> list[tuple[int, NDArray[np.float64]]]:
    """(shift, integers) whose sum of 2^shift * integers is `public`, each small enough for an exact product."""
    most = terms << _LIMB
    if int(np.abs(public).max(initial=0)) * most < 1 << _EXACT:
        return [(0, public.astype(np.float64))]
    assert terms << 2 * _LIMB < 1 << _EXACT, "too many terms for exact sums"
    rest = np.abs(public)
    sign = np.sign(public)
    mask = np.int64((1 << _LIMB) - 1)
    return [(_LIMB * k, (sign * (rest >> np.int64(_LIMB * k) & mask)).astype(np.float64)) for k in range(3)]
