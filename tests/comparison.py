"""A comparison of numbers: a circuit that no sampler needs, for tests of those who run circuits."""

import numpy as np

from dpmpc.circuits.engine import Bundle, Engine


async def less_than(engine: Engine, x: Bundle, y: Bundle) -> Bundle:
    """One wire (*tail): x < y, for unsigned numbers (width, *tail); a public y comes from `engine.constant`.

    Cost: below 3 width ANDs, 1 + ceil(log2 width) rounds.
    """
    equal = engine.not_(x ^ y)
    less = await engine.and_(engine.not_(x), y)
    while len(less) > 1:
        n = len(less) // 2
        both = await engine.and_(equal[None, 1 : 2 * n : 2], np.stack([less[0 : 2 * n : 2], equal[0 : 2 * n : 2]]))
        less_up, equal_up = less[1 : 2 * n : 2] ^ both[0], both[1]
        if len(less) % 2:
            less_up, equal_up = np.concatenate([less_up, less[-1:]]), np.concatenate([equal_up, equal[-1:]])
        less, equal = less_up, equal_up
    smaller: Bundle = less[0]
    return smaller
