"""Arithmetic mod a Mersenne prime p = 2^b - 1 on arrays of words: what the arithmetic engines compute with.

b = 61 is the field of every release, compiled where it can be; smaller ones (3, 5, 7) let tests run the same engines
over all randomness. Values are reduced: 0 <= x < p. A product with a power of two is a rotation of b bits. p = 3 mod 4,
so roots are powers.
"""

import math
from collections.abc import Sequence
from types import ModuleType

import numpy as np
from numpy.typing import NDArray

from dpmpc.mpc.native import choice
from dpmpc.mpc.numbers import field
from dpmpc.mpc.numbers.prg import Prg

Words = NDArray[np.uint64]
Integers = NDArray[np.int64]
_LIMB = 21  # bits of a limb that goes through a product of float64 matrices
_EXACT = 53  # integers below 2^53 are exact there
_COLUMNS = 1 << 12  # of such a product at a time
_PIECE = 1 << 16  # words at a time
_LOW = np.uint64((1 << 32) - 1)


class Mersenne:
    """F_p for p = 2^bits - 1, prime. `compiled` False takes the NumPy twins: the same words, only slower."""

    def __init__(self, bits: int = field.BITS, *, compiled: bool = True) -> None:
        assert bits in (3, 5, 7, field.BITS)
        self.bits = bits
        self.p = (1 << bits) - 1
        self._p = np.uint64(self.p)
        self._compiled = compiled and bits == field.BITS

    @property
    def _kernels(self) -> ModuleType | None:
        return choice.compiled if self._compiled else None

    # -- sums --------------------------------------------------------------------------------------------------------
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

    def total(self, rows: Sequence[Words]) -> Words:
        """The sum of 1 to 32 contiguous arrays (columns,)."""
        if (kernels := self._kernels) is None:
            values = np.stack(rows)
            if self.bits == field.BITS:
                return field.total_twin(values)
            reduced: Words = values.sum(axis=0, dtype=np.uint64) % self._p
            return reduced
        out = np.empty(rows[0].shape, dtype=np.uint64)
        kernels.total(tuple(rows), out, out.size)
        return out

    # -- products ----------------------------------------------------------------------------------------------------
    def dot(
        self, x: Words, y: Words, scale: int = 1, add: Words | None = None, offset: int = 0, out: Words | None = None
    ) -> Words:
        """`scale` times the sum over the first axis of x * y, plus `add`, plus `offset`; the other axes of x and y
        broadcast. `scale` and `offset` are public, of any sign. Written to `out` if that is given, contiguous."""
        shape = np.broadcast_shapes(x.shape[1:], y.shape[1:])
        if (kernels := self._kernels) is not None:
            (rows, columns), x, y = _as_rows(shape, x, y)
            out = np.empty(shape, dtype=np.uint64) if out is None else out
            held = None if add is None else np.ascontiguousarray(add)
            kernels.dot(x, y, held, out, len(x), rows, columns, x.shape[1], y.shape[1], scale % self.p, offset % self.p)
            return out
        result = np.zeros(shape, dtype=np.uint64)
        for a, b in zip(x, y, strict=True):
            result = self.add(result, self._times(a, b))
        if scale % self.p != 1:
            result = self._times(result, np.uint64(scale % self.p))
        if add is not None:
            result = self.add(result, add.reshape(shape))
        if offset % self.p:
            result = self.add(result, np.full(1, offset % self.p, dtype=np.uint64))
        if out is None:
            return result
        out[:] = result
        return out

    def multiply(self, a: Words, b: Words) -> Words:
        """a * b."""
        return self.dot(a[None], b[None])

    def scale(self, a: Words, c: int) -> Words:
        """c * a for a public integer c of any sign and size."""
        c %= self.p
        return a if c == 1 else self.matrix(np.array([[c]], dtype=np.int64), a[None])[0]

    def rotate(self, a: Words, k: int) -> Words:
        """2^k a."""
        k %= self.bits
        if not k:
            return a
        rotated: Words = (a << np.uint64(k)) & self._p | a >> np.uint64(self.bits - k)
        return rotated

    def matrix(self, public: Integers, x: Words) -> Words:
        """`public` (out, in), |c| < p, times x (in, ...)."""
        out = np.empty((len(public), *x.shape[1:]), dtype=np.uint64)
        if (kernels := self._kernels) is not None:
            constants = np.ascontiguousarray(self.constants(public))
            kernels.matrix(constants, np.ascontiguousarray(x), out, *public.shape, math.prod(x.shape[1:]))
            return out
        columns = math.prod(x.shape[1:])
        flat, into = x.reshape(len(x), columns), out.reshape(len(out), columns)
        rows = _limbs(public)
        for start in range(0, flat.shape[1], _COLUMNS):
            into[:, start : start + _COLUMNS] = self._float_product(rows, flat[:, start : start + _COLUMNS])
        return out

    def extract(self, words: Sequence[Words], rows: int) -> Words:
        """(rows, columns): row r is the sum over i of 2^(i r) words[i], for 1 to 32 contiguous arrays (columns,); rows
        <= 32."""
        out = np.empty((rows, words[0].size), dtype=np.uint64)
        if (kernels := self._kernels) is not None:
            kernels.extract(tuple(words), out, rows, words[0].size)
            return out
        for r, row in enumerate(out):
            row[:] = self.total([self.rotate(word, i * r) for i, word in enumerate(words)])
        return out

    def inverse_root(self, a: Words) -> Words:
        """z with a z^2 = 1 where a is a nonzero square, of z and -z the one that a alone decides; 0 where a is 0.

        z = a^(2^(b-2) - 1): for a square, a^(2^(b-1) - 1) = 1 is a z^2. Where a is no square, a z^2 = -1.
        """
        if (kernels := self._kernels) is not None:
            out = np.empty_like(a)
            kernels.inverse_root(np.ascontiguousarray(a), out)
            return out
        return self._ones(a, self.bits - 2)

    # -- inner products ----------------------------------------------------------------------------------------------
    def inner(self, x: Words, y: Words) -> int:
        """The sum of x * y over contiguous arrays of one size."""
        if (kernels := self._kernels) is not None:
            return int(kernels.inner(x, y))
        a, b = x.reshape(-1), y.reshape(-1)
        pieces = range(0, a.size, _PIECE)
        return sum(self._sum(self._times(a[k : k + _PIECE], b[k : k + _PIECE])) for k in pieces) % self.p

    def points(self, u: Words, v: Words) -> Words:
        """(3^k,): at each point of {0, 1, infinity}^k the sum over columns of the products of both rows' multilinear
        extensions; u and v are contiguous (2^k, columns), k >= 1."""
        variables, columns = len(u).bit_length() - 1, u[0].size
        out = np.empty(3**variables, dtype=np.uint64)
        if (kernels := self._kernels) is not None:
            kernels.points(u, v, out, variables, columns)
            return out
        sums = [0] * out.size
        for start in range(0, columns, _COLUMNS):
            f, g = (self.extended(rows[:, start : start + _COLUMNS]) for rows in (u, v))
            sums = [(s + self._sum(row)) % self.p for s, row in zip(sums, self._times(f, g), strict=True)]
        return np.array(sums, dtype=np.uint64)

    def extended(self, rows: Words) -> Words:
        """(3^v, ...): the multilinear extension of rows (2^v, ...) at {0, 1, infinity}^v; at infinity it is the leading
        coefficient. The first variable's digit is the most significant."""
        v, rest = rows.shape[0].bit_length() - 1, rows.shape[1:]
        found = np.empty((3,) * v + rest, dtype=np.uint64)
        found[(slice(0, 2),) * v] = rows.reshape((2,) * v + rest)
        for axis in range(v):
            before, after = (slice(None),) * axis, (slice(0, 2),) * (v - axis - 1)
            low, high, into = (found[(*before, k, *after)] for k in range(3))
            into[...] = self.subtract(high, low)
        return found.reshape(-1, *rest)

    # -- words in ----------------------------------------------------------------------------------------------------
    def constants(self, values: Integers) -> Words:
        """Integers |v| < p as field elements."""
        signed = np.asarray(values, dtype=np.int64)
        reduced: Words = np.where(signed < 0, signed + np.int64(self.p), signed).astype(np.uint64)
        return reduced

    def uniform(self, prg: Prg, count: int) -> Words:
        """The next words of a stream as field elements, exactly uniform given uniform words: b bits of each, drawn
        again where they are p. Whether any is p, once in 2^61, decides a branch."""
        if self._kernels is not None:
            return field.uniform(prg, (count,))
        values = prg.words((count,)) & self._p
        while (again := values == self._p).any():
            values[again] = prg.words((int(again.sum()),)) & self._p
        return values

    # -- twins -------------------------------------------------------------------------------------------------------
    def _sum(self, a: Words) -> int:
        """The sum of all words; halves of words add up without overflow."""
        low, high = int((a & _LOW).sum(dtype=np.uint64)), int((a >> np.uint64(32)).sum(dtype=np.uint64))
        return (low + (high << 32)) % self.p

    def _times(self, a: Words, b: "Words | np.uint64") -> Words:
        if self.bits == field.BITS:
            return field.mul(a, np.asarray(b))
        product: Words = a * b % self._p
        return product

    def _float_product(self, rows: list[tuple[int, NDArray[np.float64]]], x: Words) -> Words:
        """The product with the limbs `rows` of a public matrix, through float64: no sum of limbs' products reaches
        2^53."""
        total = np.zeros((len(rows[0][1]), x.shape[1]), dtype=np.uint64)
        for k in range(-(-self.bits // _LIMB)):
            limb = ((x >> np.uint64(_LIMB * k)) & np.uint64((1 << _LIMB) - 1)).astype(np.float64)
            for shift, row in rows:
                total = self.add(total, self.rotate(self._signed(row @ limb), shift + _LIMB * k))
        return total

    def _signed(self, sums: NDArray[np.float64]) -> Words:
        """Integers below 2^53 in absolute value as field elements."""
        exact = sums.astype(np.int64)
        return field.from_int64(exact) if self.bits == field.BITS else (exact % np.int64(self.p)).astype(np.uint64)

    def _ones(self, a: Words, count: int) -> Words:
        """a^(2^count - 1)."""
        if count == 1:
            return a
        if count % 2:
            root = self._ones(a, count - 1)
            return self._times(self._times(root, root), a)
        half = power = self._ones(a, count // 2)
        for _ in range(count // 2):
            power = self._times(power, power)
        return self._times(power, half)


def _limbs(public: Integers) -> list[tuple[int, NDArray[np.float64]]]:
    """(shift, integers) whose sum of 2^shift * integers is `public`, each small enough for an exact product."""
    terms = public.shape[1]
    if int(np.abs(public).max(initial=0)) * terms << _LIMB < 1 << _EXACT:
        return [(0, public.astype(np.float64))]
    assert terms << 2 * _LIMB < 1 << _EXACT, "too many terms for exact sums"
    rest, sign, mask = np.abs(public), np.sign(public), np.int64((1 << _LIMB) - 1)
    return [(_LIMB * k, (sign * (rest >> np.int64(_LIMB * k) & mask)).astype(np.float64)) for k in range(3)]


def _as_rows(shape: tuple[int, ...], x: Words, y: Words) -> tuple[tuple[int, int], Words, Words]:
    """((rows, columns), x, y): x and y as contiguous (terms, 1 or rows, columns), where `shape` is rows times columns;
    they are copied only if they broadcast along other axes than the first ones."""
    padded = [v.reshape(len(v), *([1] * (len(shape) - v.ndim + 1)), *v.shape[1:]) for v in (x, y)]
    differ = [k for k in range(len(shape)) if any(v.shape[1 + k] != shape[k] for v in padded)]
    cut = differ[-1] + 1 if differ else 0
    columns = math.prod(shape[cut:])
    rows = math.prod(shape[:cut])
    result = []
    for v in padded:
        lead = v.shape[1 : 1 + cut]
        if lead != shape[:cut] and math.prod(lead) != 1:
            v = np.broadcast_to(v, (len(v), *shape))
        result.append(np.ascontiguousarray(v).reshape(len(v), math.prod(v.shape[1 : 1 + cut]), columns))
    return (rows, columns), result[0], result[1]
