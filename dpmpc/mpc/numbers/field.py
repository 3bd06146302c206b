"""Arithmetic and Shamir sharing in F_p for p = 2^61 - 1, on NumPy uint64 arrays. Touches no network and no file.

Every release is a vector over this field. The prime is of Mersenne form, so a product reduces with shifts, and the
addition of two 61-bit numbers is ones' complement addition, which the Boolean to Shamir conversion
(`circuits.convert`) uses. Values are kept reduced: 0 <= x < p. Shares follow MPyC's convention: party i holds the
polynomial's value at i + 1.
"""

import functools
import itertools
from collections.abc import Callable
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from dpmpc.mpc.native import choice
from dpmpc.mpc.numbers.prg import Prg

Words = NDArray[np.uint64]

BITS = 61
P = (1 << BITS) - 1
_P = np.uint64(P)
_61 = np.uint64(BITS)
_32 = np.uint64(32)
_29 = np.uint64(29)
_LOW32 = np.uint64((1 << 32) - 1)
_LOW29 = np.uint64((1 << 29) - 1)
_3 = np.uint64(3)
_BLOCK = 1 << 14  # words that are shared at a time
_MOST_POINTS = 32  # of a polynomial that the kernel continues
_PIECE = 1 << 16  # words of a long vector that are computed on at a time


def in_pieces(function: Callable[..., Any], *arrays: Any) -> Any:
    """function(*arrays), elementwise on arrays (d,), a piece at a time where they are long: what it makes on the way
    stays in a core's cache, where whole arrays would be new memory each time."""
    size = arrays[0].size
    if arrays[0].ndim != 1 or size <= _PIECE or any(a.shape != (size,) for a in arrays):
        return function(*arrays)
    first = function(*(a[:_PIECE] for a in arrays))
    whole = np.empty(size, dtype=first.dtype)
    whole[:_PIECE] = first
    for start in range(_PIECE, size, _PIECE):
        piece = slice(start, start + _PIECE)
        whole[piece] = function(*(a[piece] for a in arrays))
    return whole


def fold(x: Words) -> Words:
    """x mod p for any uint64 x."""
    x = (x & _P) + (x >> _61)
    reduced: Words = np.minimum(x, x - _P)  # x - p wraps to a huge word when x < p
    return reduced


def add(a: Words, b: Words) -> Words:
    """a + b mod p, elementwise."""
    return cast(Words, in_pieces(_add, a, b))


def _add(a: Words, b: Words) -> Words:
    s = a + b
    reduced: Words = np.minimum(s, s - _P)
    return reduced


def sub(a: Words, b: Words) -> Words:
    """a - b mod p, elementwise."""
    s = a - b
    reduced: Words = np.minimum(s, s + _P)
    return reduced


def neg(a: Words) -> Words:
    """-a mod p, elementwise."""
    return np.where(a == 0, a, _P - a)


def mul(a: Words, b: Words | int) -> Words:
    """a * b mod p, elementwise; b may be a public integer of any size or sign."""
    if isinstance(b, int):
        b %= P
        if b == 1:
            return a
        if P - b < 8:
            return neg(mul(a, P - b))
        if b < 8:  # 61 + 3 bits fit a word
            return fold(a * np.uint64(b))
        b = np.array(b, dtype=np.uint64)
    a_hi, a_lo, b_hi, b_lo = a >> _32, a & _LOW32, b >> _32, b & _LOW32
    low = a_lo * b_lo
    mid = a_hi * b_lo + a_lo * b_hi  # < 2^62
    # 2^64 = 2^3 and 2^61 = 1 (mod p); the four terms are below 2^61 each, so their sum fits a word.
    total = ((a_hi * b_hi) << _3) + (mid >> _29) + ((mid & _LOW29) << _32) + (low & _P) + (low >> _61)
    return fold(total)


def total(values: Words) -> Words:
    """Sum over the first axis mod p, of words below p."""
    if choice.compiled is None or not values.flags.c_contiguous:
        return total_twin(values)
    sums = np.empty(values.shape[1:], dtype=np.uint64)
    choice.compiled.column_sums(values, sums)
    return sums


def total_twin(values: Words) -> Words:
    """As `total`, by NumPy. Seven words are added before a reduction: 7 p < 2^64."""
    while len(values) > 7:
        groups = len(values) // 7
        sums = fold(values[: 7 * groups].reshape(7, groups, *values.shape[1:]).sum(axis=0, dtype=np.uint64))
        values = np.concatenate([sums, values[7 * groups :]]) if len(values) % 7 else sums
    return fold(values.sum(axis=0, dtype=np.uint64))


def from_int64(values: NDArray[np.int64]) -> Words:
    """Signed integers, |v| < p / 2, as field elements."""
    words = values.view(np.uint64)
    reduced: Words = np.minimum(words, words + _P)  # a negative v is 2^64 - |v| as a word, and wraps to p - |v|
    return reduced


def to_int64(values: Words) -> NDArray[np.int64]:
    """Field elements as integers of least absolute value."""
    signed: NDArray[np.int64] = in_pieces(_to_int64, values)
    return signed


def _to_int64(values: Words) -> NDArray[np.int64]:
    signed = values.astype(np.int64)
    return np.where(values > _P >> np.uint64(1), signed - np.int64(P), signed)


def share(values: Words, parties: int, threshold: int, prg: Prg) -> Words:
    """Shamir shares of secret `values`, shape (parties, *values.shape); row i belongs to party i.

    The polynomials are drawn by their forward differences at 0, which are uniform exactly when the coefficients are
    (Newton's basis; t < p), and evaluated with t additions a share. `prg` must be secret to the owner. Any `threshold`
    rows together are uniform; any threshold + 1 determine the values. Blocks stay in a core's cache.
    """
    flat = np.ascontiguousarray(values).reshape(-1)
    shares = np.empty((parties, flat.size), dtype=np.uint64)
    spare = np.empty(min(_BLOCK, flat.size), dtype=np.uint64)
    for start in range(0, flat.size, _BLOCK):
        block = slice(start, start + _BLOCK)
        value = flat[block]
        differences = [uniform(prg, value.shape) for _ in range(threshold)]
        reduced = spare[: value.size]
        for row in shares[:, block]:
            if not differences:
                row[:] = value
            for k, difference in enumerate(differences):
                into = differences[k - 1] if k else row
                np.add(into if k else value, difference, out=into)
                np.minimum(into, np.subtract(into, _P, out=reduced), out=into)
            value = row
    return shares.reshape(parties, *values.shape)


def uniform(prg: Prg, shape: tuple[int, ...]) -> Words:
    """Field elements, exactly uniform given uniform bits: 61-bit words, drawn again where they are p."""
    values = prg.words(shape)
    if choice.compiled is not None:
        found = choice.compiled.cut(values)
    else:
        values &= _P
        found = values.max(initial=0) == _P
    while found:
        again = values == _P
        values[again] = prg.words((int(again.sum()),)) & _P
        found = (values == _P).any()
    return values


def continue_into(shares: Words, start: int, values: NDArray[np.int64], known: Words) -> None:
    """Writes to `shares` (rows, columns), from column `start` on, polynomials of degree t at t + 1, t + 2, ...

    They are `values` (width,) at 0, signed or reduced, and `known` (t, width) at 1 .. t.
    By backward differences: t (t + 1) / 2 subtractions, then t additions a share (Newton).
    """
    t = len(known)
    if choice.compiled is not None and t <= _MOST_POINTS:
        choice.compiled.continued(values.view(np.uint64), known, shares, start, t, len(shares))
        return
    table = [from_int64(values), *known]
    for order in range(1, t + 1):
        for i in range(t - order + 1):
            table[i] = sub(table[i + 1], table[i])
    for row in shares[:, start : start + values.size]:  # table[t - k]: the k-th backward difference at the last point
        for i in range(1, t + 1):
            table[i] = add(table[i], table[i - 1])
        row[:] = table[t]


@functools.cache
def lagrange(nodes: tuple[int, ...], x: int, prime: int = P) -> tuple[int, ...]:
    """Coefficients c with f(x) = sum c_k f(nodes[k]) mod `prime` for every polynomial f of degree below len(nodes)."""
    weights = []
    for i in nodes:
        numerator = denominator = 1
        for j in nodes:
            if j != i:
                numerator = numerator * (x - j) % prime
                denominator = denominator * (i - j) % prime
        weights.append(numerator * pow(denominator, -1, prime) % prime)
    return tuple(weights)


@functools.cache
def subset_weight(subset: tuple[int, ...], parties: int, party: int) -> int:
    """f_S(party + 1) for the polynomial f_S of degree n - |S| that is 1 at 0 and 0 at every party outside S.

    A value known to exactly the parties of S has the Shamir shares value * f_S(i + 1): no message (Cramer, Damgård,
    Ishai 2005).
    """
    return lagrange((0, *(j + 1 for j in range(parties) if j not in subset)), party + 1)[0]


def subsets(parties: int, threshold: int) -> list[tuple[int, ...]]:
    """The (n - t)-subsets of the parties, in lexicographic order: one replicated component, one PRSS key each."""
    return list(itertools.combinations(range(parties), parties - threshold))
