"""A tabulated function of a fresh floating-like uniform, up to its last sum of products: what Box-Muller and
log-Laplace share. Its bits are a Boolean program; from the opening on it is arithmetic."""

import functools

import numpy as np

from .approximation import Piecewise
from .engine import Bundle, Engine
from .fixed import PART_BITS, FixedEngine, Sums, floating_uniform, masked
from .program import Program, program_of
from .selection import look_up

_MANY_LANES = 3000  # from here on, the fewest ANDs win over the fewest rounds


async def masked_uniform(engine: Engine, table: Piecewise, few_rounds: bool) -> Bundle:
    """`masked` integers: the place of a fresh uniform within its segment, and the segment's coefficients, from 0 on.

    Cost: `floating_uniform`, then six additions side by side.
    """
    segment, place = await floating_uniform(engine)
    values = np.zeros((table.width, 1 + len(table.coefficients[0]), *engine.tail), dtype=segment.dtype)
    values[: len(place), 0] = place
    values[:, 1:] = look_up(segment, table.bits).reshape(values[:, 1:].shape)
    return await masked(engine, values, few_rounds)


@functools.lru_cache(maxsize=32)
def uniform_program(table: Piecewise, masks: int, few_rounds: bool) -> Program:
    """The program of `masked_uniform` for k masks."""
    return program_of(lambda engine: masked_uniform(engine, table, few_rounds), masks)


async def uniform_function(fixed: FixedEngine, table: Piecewise) -> Sums:
    """One sum of products, a fresh value of the table's function with table.fraction_bits + PART_BITS fraction bits;
    the caller truncates it.

    Below table.offset 2^PART_BITS in absolute value.
    Cost: `uniform_program`, its opening, two rounds of products (t^2, then t^3 and t^4).
    """
    program = uniform_program(table, fixed.subsets - 1, fixed.lanes < _MANY_LANES)
    numbers = await fixed.numbers(program, 1 + len(table.coefficients[0]), table.width)
    t = numbers[0] - fixed.constant(1 << PART_BITS)
    coefficients = numbers[1:] - fixed.constant(table.offset)
    (t2,) = await fixed.dot([[(t, t)]], PART_BITS, 2 * PART_BITS + 1)
    t3, t4 = await fixed.dot([[(t, t2)], [(t2, t2)]], PART_BITS, 2 * PART_BITS + 1)
    return [list(zip(coefficients, (fixed.constant(1 << PART_BITS), t, t2, t3, t4), strict=True))]
