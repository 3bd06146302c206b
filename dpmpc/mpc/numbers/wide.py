"""Arithmetic in F_q for q = 2^130 - 5, the field of the fixed-point engine, on NumPy int64 limbs. Touches no network
and no file.

Fixed-point products need 2 x 30 fraction bits, some integer bits and 60 bits of statistical mask: more than F_p of
`dpmpc.mpc.numbers.field` holds. An array of field elements of shape `shape` is an int64 array (*shape[:-1], 5,
shape[-1]):
element = sum over k of limb_k 2^(26 k), because 5 x 26 = 130 and 2^130 = 5 mod q. Limbs are *loose*: signed, |limb|
<= 2^27. Sums and differences of a few elements, and products with small public integers, are NumPy's own `+`, `-`,
`*` as long as that bound holds; `carry` restores |limb| < 2^26 + 2^10. `canonical` gives the one representation with
0 <= limb < 2^26 and value < q.
"""

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmpc.mpc.numbers.prg import Prg

Wide = NDArray[np.int64]  # (..., 5, lanes)

LIMBS = 5
RADIX = 26
BITS = LIMBS * RADIX
Q = (1 << BITS) - 5
PACKED_BYTES = 17
_MASK = np.int64((1 << RADIX) - 1)
_RADIX = np.int64(RADIX)
_PRIME = np.array([[(1 << RADIX) - 5], *4 * [[(1 << RADIX) - 1]]], dtype=np.int64)
_TERMS = 6  # products of loose elements in one accumulator: 6 * 5 * 2^54, times 6 for the fold, is below 2^62


def carry(x: Wide) -> Wide:
    """x with |limb| < 2^26 + 2^10, for limbs below 2^61 in absolute value."""
    for _ in range(3):
        high = x >> _RADIX
        x = x & _MASK
        x[..., 1:, :] += high[..., :-1, :]
        x[..., 0, :] += 5 * high[..., -1, :]
    return x


def constant(value: int) -> Wide:
    """The element of a public integer, (5, 1): broadcasts over lanes."""
    value %= Q
    return np.array([[value >> RADIX * k & int(_MASK)] for k in range(LIMBS)], dtype=np.int64)


def dot(pairs: Sequence[tuple[Wide, Wide]]) -> Wide:
    """The sum of the products of loose elements (5, lanes), carried. One factor of a pair may be a `constant`."""
    if len(pairs) > _TERMS:
        return carry(dot(pairs[:_TERMS]) + dot(pairs[_TERMS:]))
    lanes = max(x.shape[-1] for pair in pairs for x in pair)
    acc = np.zeros((2 * LIMBS - 1, lanes), dtype=np.int64)
    for x, y in pairs:
        for k in range(LIMBS):
            acc[k : k + LIMBS] += x[k] * y
    low = acc[:LIMBS]
    low[: LIMBS - 1] += 5 * acc[LIMBS:]
    return carry(low)


def times(x: Wide, factor: int) -> Wide:
    """x (..., 5, lanes), loose, times a public integer of any size, carried."""
    acc = np.zeros((*x.shape[:-2], 2 * LIMBS - 1, x.shape[-1]), dtype=np.int64)
    for k, limb in enumerate(constant(factor)[:, 0]):
        if limb:
            acc[..., k : k + LIMBS, :] += x * limb
    low = acc[..., :LIMBS, :]
    low[..., : LIMBS - 1, :] += 5 * acc[..., LIMBS:, :]
    return carry(low)


def canonical(x: Wide) -> Wide:
    """The unique representation: 0 <= limb < 2^26, value below q. A function of the field element alone. |limb| <
    2^61."""
    x = carry(x)
    for _ in range(2):
        # The second pass leaves 0 <= value + 5 high < 2^130: after a borrow the lowest limb is large, after a carry
        # it is small.
        for k in range(LIMBS - 1):
            x[..., k + 1, :] += x[..., k, :] >> _RADIX
            x[..., k, :] &= _MASK
        high = x[..., -1, :] >> _RADIX
        x[..., -1, :] &= _MASK
        x[..., 0, :] += 5 * high
    full = x[..., 1, :] & x[..., 2, :] & x[..., 3, :] & x[..., 4, :]
    above = ((full == _MASK) & (x[..., 0, :] >= _MASK - 4)).astype(np.int64)
    x -= above[..., None, :] * _PRIME
    return x


def is_canonical(x: Wide) -> bool:
    """Whether every element is the one representation that `canonical` gives."""
    if x.size and (x.min() < 0 or x.max() > _MASK):
        return False
    above = (x[..., 0, :] >= (1 << RADIX) - 5) & (x[..., 1:, :] == _MASK).all(axis=-2)
    return not above.any()


def from_int64(values: NDArray[np.int64]) -> Wide:
    """Signed integers (..., lanes) as elements, carried."""
    return carry(_first(values))


def _first(values: NDArray[np.int64]) -> Wide:
    out = np.zeros((*values.shape[:-1], LIMBS, values.shape[-1]), dtype=np.int64)
    out[..., 0, :] = values
    return out


def shift_right(x: Wide, bits: int) -> Wide:
    """floor(value / 2^bits) for canonical x."""
    skip, rest = divmod(bits, RADIX)
    out = np.zeros_like(x)
    out[..., : LIMBS - skip, :] = x[..., skip:, :] >> np.int64(rest)
    if rest:
        out[..., : LIMBS - skip - 1, :] |= (x[..., skip + 1 :, :] << np.int64(RADIX - rest)) & _MASK
    return out


def pack(x: Wide) -> NDArray[np.uint8]:
    """17 bytes an element: canonical x (..., 5, lanes) as words 0, words 1 and top bytes, flat."""
    x = np.ascontiguousarray(np.moveaxis(x, -2, 0)).reshape(LIMBS, -1).view(np.uint64)
    size = x.shape[1]
    out = np.empty(PACKED_BYTES * size, dtype=np.uint8)
    words = out[: 16 * size].view(np.uint64).reshape(2, size)
    words[0] = x[0] | x[1] << np.uint64(26) | x[2] << np.uint64(52)
    words[1] = x[2] >> np.uint64(12) | x[3] << np.uint64(14) | x[4] << np.uint64(40)
    out[16 * size :] = x[4] >> np.uint64(24)
    return out


def is_packed(payload: Any) -> bool:
    """Whether no element in these bytes has bits above the 130 that `unpack` reads."""
    data = np.frombuffer(payload, dtype=np.uint8)
    return not (data[16 * (len(data) // PACKED_BYTES) :] > 3).any()


def unpack(payload: Any, shape: tuple[int, ...]) -> Wide:
    """The elements of `pack`, as (*shape[:-1], 5, shape[-1]); limbs below 2^26 whatever the bytes. `payload` has 17
    bytes an element."""
    data = np.frombuffer(payload, dtype=np.uint8)
    size = len(data) // PACKED_BYTES
    words = np.frombuffer(payload, dtype="<u8", count=2 * size).reshape(2, size)
    return from_words(words[0], words[1], data[16 * size :].astype(np.uint64) & np.uint64(3), shape)


def from_words(
    low: NDArray[np.uint64], high: NDArray[np.uint64], top: NDArray[np.uint64] | int, shape: tuple[int, ...]
) -> Wide:
    """The elements low + 2^64 high + 2^128 top."""
    mask = np.uint64(_MASK)
    out = np.empty((LIMBS, low.size), dtype=np.uint64)
    out[0] = low & mask
    out[1] = low >> np.uint64(26) & mask
    out[2] = low >> np.uint64(52) | (high << np.uint64(12)) & mask
    out[3] = high >> np.uint64(14) & mask
    out[4] = high >> np.uint64(40) | np.uint64(top) << np.uint64(24)
    return np.ascontiguousarray(np.moveaxis(out.view(np.int64).reshape(LIMBS, *shape), 0, -2))


def to_words(x: Wide) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    """(low, high) with value = low + 2^64 high, for canonical x below 2^128."""
    y = x.view(np.uint64)
    low = y[..., 0, :] | y[..., 1, :] << np.uint64(26) | y[..., 2, :] << np.uint64(52)
    high = y[..., 2, :] >> np.uint64(12) | y[..., 3, :] << np.uint64(14) | y[..., 4, :] << np.uint64(40)
    return low, high


def mod_p(x: Wide) -> NDArray[np.uint64]:
    """The integers of canonical x, reduced mod p = 2^61 - 1."""
    y = x.view(np.uint64)
    p = np.uint64((1 << 61) - 1)
    total = y[..., 0, :] + (y[..., 1, :] << np.uint64(26)) + (y[..., 3, :] << np.uint64(17))
    for limb, shift in ((y[..., 2, :], 52), (y[..., 4, :], 43)):  # 2^61 = 1: the shift is a rotation of 61 bits
        total += (limb << np.uint64(shift) & p) + (limb >> np.uint64(61 - shift))
    total = (total & p) + (total >> np.uint64(61))
    return np.asarray(np.where(total >= p, total - p, total), dtype=np.uint64)


def draw(prg: Prg, shape: tuple[int, ...], bits: int = BITS) -> Wide:
    """Uniform integers below 2^bits, as limbs. With 130 bits: uniform in F_q up to a statistical distance of
    2^-127."""
    full = (*shape[:-1], LIMBS, shape[-1])
    size = int(np.prod(full))
    limbs = prg.words(((size + 1) // 2,)).view(np.uint32)[:size].astype(np.int64).reshape(full)
    limbs &= _MASK
    for k in range(LIMBS):
        limbs[..., k, :] &= np.int64((1 << max(0, min(RADIX, bits - RADIX * k))) - 1)
    return limbs


@functools.cache
def lagrange_at_zero(holders: tuple[int, ...]) -> tuple[int, ...]:
    """Integer coefficients c with secret = sum c_k share_k for parties with consecutive indices (party i sits at i +
    1)."""
    assert list(holders) == list(range(holders[0], holders[0] + len(holders)))
    weights = []
    for i in holders:
        numerator = denominator = 1
        for j in holders:
            if j != i:
                numerator *= j + 1
                denominator *= j - i
        assert numerator % denominator == 0
        weights.append(numerator // denominator)
    return tuple(weights)


@functools.cache
def subset_weight(subset: tuple[int, ...], parties: int, party: int) -> int:
    """f_S(party + 1) mod q, for the polynomial of degree n - |S| that is 1 at 0 and 0 at every party outside S; see
    `field.subset_weight`."""
    result = 1
    for j in range(parties):
        if j not in subset:
            result = result * (j - party) * pow(j + 1, -1, Q) % Q
    return result
