"""A tabulated function of a fresh floating-like uniform, up to its last sum of products: what Box-Muller and
log-Laplace share."""

import numpy as np

from .approximation import Piecewise
from .engine import Engine
from .fixed import PART_BITS, FixedEngine, Sums, floating_uniform, to_fixed
from .selection import look_up


async def uniform_function(engine: Engine, fixed: FixedEngine, table: Piecewise) -> Sums:
    """One sum of products, a fresh value of the table's function with table.fraction_bits + PART_BITS fraction bits;
    the caller truncates it.

    Below table.offset 2^PART_BITS in absolute value.
    Cost: `floating_uniform`, six conversions in one go, two rounds of products (t^2, then t^3 and t^4).
    """
    segment, place = await floating_uniform(engine)
    values = np.zeros((table.width, 1 + len(table.coefficients[0]), *engine.tail), dtype=np.uint64)
    values[: len(place), 0] = place
    values[:, 1:] = look_up(segment, table.bits).reshape(values[:, 1:].shape)
    numbers = await to_fixed(engine, fixed, values)
    t = numbers[0] - fixed.constant(1 << PART_BITS)
    coefficients = numbers[1:] - fixed.constant(table.offset)
    (t2,) = await fixed.dot([[(t, t)]], PART_BITS, 2 * PART_BITS + 1)
    t3, t4 = await fixed.dot([[(t, t2)], [(t2, t2)]], PART_BITS, 2 * PART_BITS + 1)
    return [list(zip(coefficients, (fixed.constant(1 << PART_BITS), t, t2, t3, t4), strict=True))]
