"""The discrete Laplace law of `laplace`, by the same tables, as a circuit over F_p.

X = N S (G + 1), with N = [X != 0], a fair sign S and G + 1 = 1 + sum over w of 32^w times digit w: all digits and N are
drawn side by side, each a comparison whose deep bits are shared by groups as in `deep`, or not at all.
"""

from collections.abc import Callable, Coroutine
from typing import Any

import numpy as np

from .alias import AliasTable
from .arithmetic import Arithmetic, Bits, Values, dot, in_step, multiply, signs
from .deep import PAIRINGS, Deep, deal_out, rank_powers
from .field_table import compare, look_up, read_bit
from .laplace import LaplacePlan
from .prefix import prefix_products


def bits_needed(plan: LaplacePlan, deep: Deep | None, size: int) -> int:
    """Random bits of `size` samples that share deep bits, or of `size` that do not."""
    comparisons, equal = len(plan.digits) + 1, plan.digits[0].precision - 1
    if deep is None:
        return size * (1 + plan.width + comparisons * equal)
    return size * (1 + plan.width + comparisons * deep.depth) + deep.slots * (
        plan.width + comparisons * (equal - deep.depth)
    )


async def sample_laplace(
    engine: Arithmetic, plan: LaplacePlan, deep: Deep | None, size: int, *, fast: bool = False
) -> Values:
    """(size, *tail): samples of the certified law as field elements; the samples of a lane are one group.

    `fast` spends products on rounds. Cost: `bits_needed`; products for each digit, for zero and for the sign, in 20
    rounds (fast 11), 66 without sharing (fast 10).
    """
    bits = Bits(await engine.random_bits(bits_needed(plan, deep, size)))
    sign = signs(engine, bits.take(size))
    comparisons = [table_draws(table, deep, bits, size, fast) for table in plan.digits]
    comparisons.append(_nonzero(plan, deep, bits, size, fast))
    *digits, nonzero = await in_step(engine, *comparisons)
    weights = np.array([1 << plan.digits[0].index_bits * w for w in range(len(digits))], dtype=np.int64)
    joined = engine.join([digit[None] for digit in digits])
    magnitude = engine.add(engine.matrix(weights[None], joined)[0], engine.constant(1))
    return await multiply(engine, await multiply(engine, nonzero, sign), magnitude)


Comparison = Callable[[Arithmetic], Coroutine[Any, Any, Values]]


def draw_bits(table: AliasTable, deep: Deep | None, size: int) -> int:
    """Random bits of `table_draws`."""
    equal = table.precision - 1
    if deep is None:
        return size * (table.index_bits + equal)
    return size * (table.index_bits + deep.depth) + deep.slots * (table.index_bits + equal - deep.depth)


def table_draws(table: AliasTable, deep: Deep | None, bits: Bits, size: int, fast: bool) -> Comparison:
    """A circuit for (size, *tail) draws from the table; takes its bits at once."""
    index = bits.take(table.index_bits, size)
    pairings = 0 if fast else None
    if deep is None:
        every = bits.take(table.precision - 1, size)

        async def plain(engine: Arithmetic) -> Values:
            low, high, prefixes = await compare(engine, index, every, pairings=pairings)
            return await dot(engine, high, await look_up(engine, table, low, prefixes))

        return plain
    equal = bits.take(deep.depth, size)
    slot_index = bits.take(table.index_bits, deep.slots)
    slot_equal = bits.take(table.precision - 1 - deep.depth, deep.slots)

    async def shallow(engine: Arithmetic) -> tuple[Values, Values, Values]:
        low, high, prefixes = await compare(engine, index, equal, pairings=pairings)
        partial, powers = await in_step(
            engine,
            lambda inner: look_up(inner, table, low, prefixes),
            lambda inner: rank_powers(inner, prefixes[-1], deep.slots),
        )
        return high, partial, powers

    async def draws(engine: Arithmetic) -> Values:
        low, high, prefixes = await compare(engine, slot_index, slot_equal, pairings=0 if fast else PAIRINGS)
        return await dot(engine, high, await look_up(engine, table, low, prefixes, deep.depth))

    async def shared(engine: Arithmetic) -> Values:
        (high, partial, powers), drawn = await in_step(engine, shallow, draws)
        return await dot(engine, engine.join([high, powers]), engine.join([partial, deal_out(engine, drawn, size)]))

    return shared


def _nonzero(plan: LaplacePlan, deep: Deep | None, bits: Bits, size: int, fast: bool) -> Comparison:
    """A circuit for (size, *tail): whether X is not 0, a comparison with a public threshold; takes its bits at once."""
    precision = plan.digits[0].precision
    threshold = [plan.nonzero >> precision - 1 - k & 1 for k in range(precision)]
    pairings = 0 if fast else None
    equal = bits.take(precision - 1 if deep is None else deep.depth, size)
    if deep is None:

        async def plain(engine: Arithmetic) -> Values:
            return read_bit(engine, threshold, await prefix_products(engine, equal, pairings))

        return plain
    slot_equal = bits.take(precision - 1 - deep.depth, deep.slots)

    async def shallow(engine: Arithmetic) -> tuple[Values, Values]:
        prefixes = await prefix_products(engine, equal, pairings)
        return read_bit(engine, threshold, prefixes), await rank_powers(engine, prefixes[-1], deep.slots)

    async def draws(engine: Arithmetic) -> Values:
        prefixes = await prefix_products(engine, slot_equal, 0 if fast else PAIRINGS)
        return read_bit(engine, threshold, prefixes, deep.depth)

    async def shared(engine: Arithmetic) -> Values:
        (decided, powers), drawn = await in_step(engine, shallow, draws)
        return engine.add(decided, await dot(engine, powers, deal_out(engine, drawn, size)))

    return shared
