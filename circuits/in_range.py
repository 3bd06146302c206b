"""From a masked field element back to bits, as far as it takes to say whether the element is small: the reverse of
`convert`.

y = x + r_1 + ... + r_k (mod p), p = 2^61 - 1, is known to the members of one (n-t)-subset, each r_i to those of another
one; so the bits of all of them are shared without a message. p - r is NOT r, so x is an end-around sum of y and the
NOT r_i. No NOT r_i is 0, for r_i < p; then ones' complement writes x = 0 as p, never as 0: x is a number of 1 .. p, and
"below 2^w" holds for x = 1 .. 2^w - 1 alone.
"""

import functools

import numpy as np

from .adders import add_end_around, carry_save
from .convert import FIELD_BITS
from .engine import Bundle, Engine
from .program import Program, program_of
from .trace import Tracer


async def all_of(engine: Engine, bits: Bundle) -> Bundle:
    """(1, *tail): whether all bits (k, *tail) are 1. Cost: k - 1 ANDs, ceil(log2 k) rounds."""
    while len(bits) > 1:
        pairs = len(bits) // 2
        joined = await engine.and_(bits[:pairs], bits[pairs : 2 * pairs])
        bits = np.concatenate([joined, bits[2 * pairs :]])
    return bits


async def small(engine: Engine, y: Bundle, masks: Bundle, widths: tuple[int, int]) -> Bundle:
    """(2, *tail): whether 1 <= x < 2^w, for each of two widths in ascending order, for x = y less the masks.

    `y`: (61, *tail); `masks`: (k, 61, *tail), k >= 1, each below p.
    Cost: about 240 + 61 (k - 1) + 61 - w ANDs.
    """
    rows = [y, *(engine.not_(mask) for mask in masks)]
    while len(rows) > 2:
        a, b, c, *rows = rows
        total, carry = await carry_save(engine, a, b, c)
        rows += [total, np.concatenate([carry[-1:], carry[:-1]])]
    zeros = engine.not_(await add_end_around(engine, *rows))
    low, high = widths
    assert 1 <= low <= high < FIELD_BITS
    top = await all_of(engine, zeros[high:])
    return np.concatenate([await all_of(engine, np.concatenate([top, zeros[low:high]])), top])


@functools.lru_cache(maxsize=64)
def small_program(masks: int, widths: tuple[int, int]) -> Program:
    """The program of `small`; the given bits are y."""

    async def circuit(engine: Tracer) -> Bundle:
        return await small(engine, engine.given(FIELD_BITS), engine.mask_bits(FIELD_BITS), widths)

    return program_of(circuit, masks)


@functools.lru_cache(maxsize=64)
def all_program(bits: int) -> Program:
    """The program of `all_of` for so many given bits."""

    async def circuit(engine: Tracer) -> Bundle:
        return await all_of(engine, engine.given(bits))

    return program_of(circuit)
