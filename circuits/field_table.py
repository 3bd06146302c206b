"""Sampling an alias table over F_p: a bilinear look-up, and a threshold that is read at the place of first difference.

The table's value depends on the column v (uniform, b bits) and on the first place k, from the top, at which a uniform
number differs from the column's threshold: it is A[v, k], v where bit k of the threshold is 1 and else v's alias. As in
`selection.biased_bit`, equality at each place is a fresh fair bit e_k, so with E_k = e_0 ... e_(k - 1) the weights
w_k = E_k - E_(k+1) are 1 at the place and 0 elsewhere (the lowest place takes what is left: w = E_k there). With the
monomials of v's low bits, L, and of its high bits, H, the value is sum_h H_h sum_l L_l M_hl, where M = C E is a public
matrix C (the Moebius transform of A) times the prefix products E: local. That is 2^hi + 1 sums of products and no
multiplexer.
"""

import functools
from collections.abc import Sequence

import numpy as np

from .alias import AliasTable
from .arithmetic import Arithmetic, Public, Values, dot, in_step, multiply
from .prefix import monomials, prefix_products


def low_bits(index_bits: int) -> int:
    """How many bits of an index are its low part: the larger half."""
    return (index_bits + 1) // 2


@functools.lru_cache(maxsize=256)
def coefficients(table: AliasTable) -> Public:
    """C (2^low, 2^high, precision): A[v, k] = sum over l subset of v's low bits, h subset of its high bits of
    C[l, h, k]."""
    low = low_bits(table.index_bits)
    thresholds = table.bits[:, : table.precision][:, ::-1]  # most significant first
    aliases = np.array([alias for _, alias in table.columns], dtype=np.int64)
    value = np.where(thresholds, np.arange(len(aliases))[:, None], aliases[:, None]).astype(np.int64)
    for bit in range(table.index_bits):
        rows = value.reshape(-1, 2, 1 << bit, table.precision)
        rows[:, 1] -= rows[:, 0]
    return value.reshape(-1, 1 << low, table.precision).swapaxes(0, 1)


def at_places(values: Public, first: int, count: int, *, last: bool) -> Public:
    """(..., 1 + count): the sum over places of values[..., k] w_k, as a linear map of 1 and the prefix products E_1 ..
    E_count of the equality bits from place `first` on.

    With `last` it covers all places from `first` to the bottom one; else those below first + count, and is 0 when all
    bits are equal.
    """
    assert not last or first + count == values.shape[-1] - 1, "one equality bit less than there are places"
    read = values[..., first : first + count]
    end = values[..., first + count] if last else np.zeros_like(values[..., 0])
    return np.diff(np.concatenate([read, end[..., None]], axis=-1), prepend=0, axis=-1)


def _from_one(engine: Arithmetic, prefixes: Values) -> Values:
    """(1 + count, ...): 1, then the prefix products."""
    wires = prefixes.shape[1 : len(prefixes.shape) - len(engine.tail)]
    return engine.join([engine.constant(np.ones((1, *wires), dtype=np.int64)), prefixes])


def read_bit(engine: Arithmetic, threshold: Sequence[int], prefixes: Values, first: int = 0) -> Values:
    """(...): the bit of the public `threshold`, most significant first, at the place of first difference; 0 if that
    lies beyond `prefixes` (count, ...), the prefix products from place `first` on. Local."""
    last = first + len(prefixes) == len(threshold) - 1
    steps = at_places(np.array(threshold, dtype=np.int64), first, len(prefixes), last=last)
    read: Values = engine.matrix(steps[None], _from_one(engine, prefixes))[0]
    return read


async def look_up(engine: Arithmetic, table: AliasTable, low: Values, prefixes: Values, first: int = 0) -> Values:
    """(2^high, ...): for each monomial of the column's high bits what it is to be multiplied with; the table's value is
    the sum of these products, or 0 if the comparison goes beyond `prefixes` and these do not end at the bottom place.

    `low` (2^low, ...) are the monomials of the column's low bits, `prefixes` (count, ...) the prefix products of the
    equality bits from place `first` on. Cost: 2^high products, one round.
    """
    last = first + len(prefixes) == table.precision - 1
    steps = at_places(coefficients(table), first, len(prefixes), last=last)
    parts = engine.matrix(steps.reshape(-1, steps.shape[-1]), _from_one(engine, prefixes))
    return await dot(engine, low[:, None], parts.reshape(*steps.shape[:-1], *parts.shape[1:]))


async def index_monomials(engine: Arithmetic, index: Values) -> tuple[Values, Values]:
    """Monomials of the low and of the high bits of `index` (b, ...), least significant first.

    Cost: 2^low + 2^high - b - 2 products, the rounds of the low part.
    """
    low = low_bits(len(index))
    first, second = await in_step(
        engine, lambda inner: monomials(inner, index[:low]), lambda inner: monomials(inner, index[low:])
    )
    return first, second


async def compare(
    engine: Arithmetic,
    index: Values,
    equal: Values,
    *,
    pairings: int | None = None,
    sign: Values | None = None,
) -> tuple[Values, Values, Values]:
    """(low, high, prefixes): the index's monomials, the high ones times `sign`, and the prefix products of `equal`.

    The last prefix product says whether the comparison goes beyond them. Cost: `index_monomials`, 2^high - 1 products
    for a sign, `prefix_products` beside them.
    """

    async def columns(inner: Arithmetic) -> tuple[Values, Values]:
        low, high = await index_monomials(inner, index)
        if sign is not None:
            high = inner.join([sign[None], await multiply(inner, sign[None], high[1:])])
        return low, high

    (low, high), prefixes = await in_step(engine, columns, lambda inner: prefix_products(inner, equal, pairings))
    return low, high, prefixes
