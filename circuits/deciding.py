"""Whether all sums of a cell stand out of its noise, and the signs of those that do: what follows the comparisons.

A vote has two bits: whether x = V + eta - least + 1 is in the upper half of F_p, 1 .. 2^60 - 1 (`above`), and whether
y = -V + eta - least + 1 is (`below`). With tau = least - eta >= 1 exactly one of them is where V is tau .. 2^60 - tau
or the negative of that, mod p: where it is tau away from 0 and from half-way round. So a cell passes where every vote
has one of the two and not the other. Its votes are in one lane for that, and in a lane each where they become
numbers.
"""

import functools

from .convert import FIELD_BITS, to_field
from .engine import Bundle
from .heap import Heap
from .in_range import all_of, small_program
from .program import Program, program_of
from .trace import Tracer


def half_program(masks: int) -> Program:
    """Whether a number is in the upper half of F_p, twice: given is what is left of it when masks are added
    (`in_range.small`)."""
    return small_program(masks, (FIELD_BITS - 1, FIELD_BITS - 1))


@functools.lru_cache(maxsize=64)
def passing_program(votes: int) -> Program:
    """Whether a cell passes, (1,): given are `above` of all its votes, then `below`. Cost: votes - 1
    ANDs, ceil(log2 votes) rounds."""

    async def circuit(engine: Tracer) -> Bundle:
        given = engine.given(2 * votes)
        return await all_of(engine, given[:votes] ^ given[votes:])

    return program_of(circuit)


@functools.lru_cache(maxsize=64)
def sign_program(masks: int) -> Program:
    """1 plus the sign of a vote, -1 or 1, or plus 0 where its cell does not pass, plus masks, to be opened
    (`convert.to_field`): given are whether the cell passes, and `above`. It is (1 - passes) + 2 (passes AND above).
    Cost: one AND and a conversion's."""

    async def circuit(engine: Tracer) -> Bundle:
        passes, above = engine.given(2)
        heap = Heap()
        heap.put(0, engine.not_(passes))
        heap.put(1, await engine.and_(passes, above))
        return await to_field(engine, heap)

    return program_of(circuit, masks)


SHIFT = 1  # of the number that `sign_program` gives
