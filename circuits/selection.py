"""Choosing: multiplexer, one-hot decoder, table look-up, biased bits, comparison. Bits are (width, *tail), least
significant first."""

import numpy as np
from numpy.typing import NDArray

from .engine import Bundle, Engine

_GROUP = 5  # columns of a look-up that are combined by one table of all their XORs


async def mux(engine: Engine, choice: Bundle, if_one: Bundle, if_zero: Bundle) -> Bundle:
    """`if_one` where `choice` is 1, else `if_zero`; `choice` broadcasts. Cost: an AND a wire, one round."""
    return (await engine.and_(choice, if_one ^ if_zero)) ^ if_zero


async def one_hot(engine: Engine, bits: Bundle) -> Bundle:
    """(2^b, ...): wire v is 1 where the number `bits` (b, ...) is v, b >= 1; further wire axes are independent numbers.

    The one-hot words of two halves of equal width are computed side by side; an odd bit then joins the upper half.
    Cost: 2^b - b - 1 ANDs a number, ceil(log2 b) rounds for b <= 6.
    """
    b = len(bits)
    if b == 1:
        return np.concatenate([engine.not_(bits), bits])
    half = b // 2
    both = await one_hot(engine, np.stack([bits[:half], bits[half : 2 * half]], axis=1))
    low, high = both[:, 0], both[:, 1]
    if b % 2:
        high = await _join(engine, high, await one_hot(engine, bits[-1:]))
    return await _join(engine, low, high)


async def _join(engine: Engine, low: Bundle, high: Bundle) -> Bundle:
    """The one-hot word of the number whose low and high bits have these one-hot words.

    The last row and column of their product follow from its sums. Cost: (len(low) - 1) (len(high) - 1) ANDs, one round.
    """
    product = np.empty((len(high), len(low), *low.shape[1:]), dtype=low.dtype)
    product[:-1, :-1] = await engine.and_(high[:-1, None], low[None, :-1])
    product[:-1, -1] = high[:-1] ^ np.bitwise_xor.reduce(product[:-1, :-1], axis=1)
    product[-1] = low ^ np.bitwise_xor.reduce(product[:-1], axis=0)
    return product.reshape(len(high) * len(low), *low.shape[1:])


def look_up(hot: Bundle, table: NDArray[np.bool_]) -> Bundle:
    """Row v of the public `table` (2^b, width) where `hot` (2^b, ...) is one-hot at v: (width, ...).

    Cost: no AND. Computed by the method of four Russians: all XORs of a group of columns once, then one XOR a group
    and output bit.
    """
    out = np.zeros((table.shape[1], *hot.shape[1:]), dtype=hot.dtype)
    for start in range(0, len(hot), _GROUP):
        group = hot[start : start + _GROUP]
        sums = np.zeros((1 << len(group), *hot.shape[1:]), dtype=hot.dtype)
        for k, wire in enumerate(group):
            np.bitwise_xor(sums[: 1 << k], wire, out=sums[1 << k : 2 << k])
        index = (table[start : start + _GROUP].T @ (1 << np.arange(len(group)))).astype(np.intp)
        used = np.flatnonzero(index)
        if len(used) == len(index):
            out ^= sums[index]
        elif len(used):
            out[used] ^= sums[index[used]]
    return out


async def biased_bit(engine: Engine, threshold: Bundle) -> Bundle:
    """A wire that is 1 with probability (t + t mod 2) / 2^k, for the number t given by `threshold` (k, ...); the
    result has shape (...).

    Compares t with a uniform number u: at the first place, from the top, where they differ, t's bit decides. Whether
    they differ at a place is a fresh uniform bit, whatever t is, so the equality bits are drawn instead of u. If no
    place differs, the lowest bit decides; t = 2^k - 1 thus means probability 1. Cost: below 2 k ANDs, ceil(log2 k)
    rounds, k - 1 random bits.
    """
    equal = engine.random_bits(len(threshold) - 1, *threshold.shape[1 : threshold.ndim - len(engine.tail)])
    value = threshold
    while len(value) > 1:
        # Blocks from the low end; the upper block of a pair decides unless it is equal throughout. `equal[i]` belongs
        # to value[i + 1].
        n = len(value) // 2
        upper, lower = value[1 : 2 * n : 2], value[0 : 2 * n : 2]
        upper_equal = equal[0 : 2 * n - 1 : 2]
        lower_equal = equal[1 : 2 * n - 2 : 2]  # of the lower blocks but the lowest, whose own is never asked
        both = await engine.and_(
            np.concatenate([upper_equal, upper_equal[1:]]), np.concatenate([upper ^ lower, lower_equal])
        )
        merged = upper ^ both[:n]
        merged_equal = both[n:]
        if len(value) % 2:
            merged = np.concatenate([merged, value[-1:]])
            merged_equal = np.concatenate([merged_equal, equal[-1:]])
        value, equal = merged, merged_equal
    decided: Bundle = value[0]
    return decided
