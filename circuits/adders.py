"""Adders over bundles; numbers are (width, *tail), least significant bit first."""

import numpy as np

from .engine import Bundle, Engine


async def carry_save(engine: Engine, x: Bundle, y: Bundle, z: Bundle) -> tuple[Bundle, Bundle]:
    """(sum, carry) of three bundles of bits of equal weight: x + y + z = sum + 2 carry. Cost: an AND a wire, one
    round."""
    xz = x ^ z
    return xz ^ y, (await engine.and_(xz, y ^ z)) ^ z


async def add_ripple(engine: Engine, x: Bundle, y: Bundle) -> Bundle:
    """x + y, (width + 1, *tail). Cost: `width` ANDs, `width` rounds."""
    out = np.empty((len(x) + 1, *x.shape[1:]), dtype=x.dtype)
    carry = engine.constant(np.zeros((), dtype=bool))
    for i in range(len(x)):
        xc, yc = x[i] ^ carry, y[i] ^ carry
        out[i] = xc ^ y[i]
        carry = (await engine.and_(xc, yc)) ^ carry
    out[-1] = carry
    return out


async def add(engine: Engine, x: Bundle, y: Bundle) -> Bundle:
    """x + y, (width + 1, *tail). Cost: below 4 width ANDs, 1 + 2 ceil(log2 width) rounds."""
    sums, carry = await _add_tree(engine, x, y, end_around=False)
    return np.concatenate([sums, carry])


async def add_end_around(engine: Engine, x: Bundle, y: Bundle) -> Bundle:
    """x + y mod 2^width - 1, (width, *tail); zero may come out as 2^width - 1. Cost: as `add`."""
    return (await _add_tree(engine, x, y, end_around=True))[0]


async def _add_tree(engine: Engine, x: Bundle, y: Bundle, *, end_around: bool) -> tuple[Bundle, Bundle]:
    """Sum bits and carry out (1, *tail), by a Brent-Kung tree: up for generate and propagate of blocks, down for the
    carry into each.

    A block generates a carry (G) or propagates the one that enters it (P); G and P exclude each other because P is
    XOR, so OR is XOR. The carry that enters the whole is 0, or with `end_around` the one that leaves it: ones'
    complement addition.
    """
    half = x ^ y
    levels = [(await engine.and_(x, y), half)]
    while len(levels[-1][0]) > 1:
        g, p = levels[-1]
        n = len(g) // 2
        pair = await engine.and_(p[None, 1 : 2 * n : 2], np.stack([g[0 : 2 * n : 2], p[0 : 2 * n : 2]]))
        g_up, p_up = g[1 : 2 * n : 2] ^ pair[0], pair[1]
        if len(g) % 2:
            g_up, p_up = np.concatenate([g_up, g[-1:]]), np.concatenate([p_up, p[-1:]])
        levels.append((g_up, p_up))
    out = levels.pop()[0]
    carry = out if end_around else engine.constant(np.zeros((1,), dtype=bool))
    while levels:
        g, p = levels.pop()
        n = len(g) // 2
        below = np.empty_like(g)
        below[0 : 2 * n : 2] = carry[:n]
        below[1 : 2 * n : 2] = g[0 : 2 * n : 2] ^ await engine.and_(p[0 : 2 * n : 2], carry[:n])
        if len(g) % 2:
            below[-1] = carry[-1]
        carry = below
    return half ^ carry, out[:1]
