"""Fixed-point numbers: the interface of the arithmetic engine, bits to numbers, and a uniform carried floating-like.

A fixed-point number x with F fraction bits is the integer round(x 2^F). Who evaluates products, and in which field,
is the engine's business.
"""

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from .adders import add, add_ripple, carry_save
from .engine import Bundle, Engine
from .program import Program
from .selection import one_hot

# Shape (*values, *tail): leading axes belong to the circuit, trailing ones to the engine. `x + y`, `x - y` and `-x` are
# those of the integers.
Number = NDArray[Any]
Sums = Sequence[Sequence[tuple[Number, Number]]]
Draw = Callable[[Any], NDArray[np.int64]]

CONVERSION_BITS = 64  # a conversion's mask exceeds the number by this many bits
ZERO_BITS = 63  # bits whose leading zeros are counted
SUB_BITS = 3  # equal parts of a binade
PART_BITS = 26  # bits of the place within a part


class FixedEngine(Protocol):
    """Evaluates sums of products of secret integers; the products are truncated in the same round."""

    @property
    def lanes(self) -> int:
        """Evaluations side by side."""

    @property
    def subsets(self) -> int:
        """C(n, t): how many masks, and so carries, a truncation can have."""

    @property
    def dealers(self) -> int:
        """t + 1: of whom any t parties miss one."""

    def constant(self, value: int) -> Number:
        """A public integer, which broadcasts over lanes."""

    async def numbers(self, program: Program, values: int, width: int) -> Number:
        """The nonnegative integers (values, *tail) below 2^width that `program` computes by `masked`: it is run, its
        outputs (at most 128 bits, values) are opened to those who may see them, and the masks are subtracted."""

    async def deal(self, draw: Draw, rows: int) -> list[Number]:
        """What `draw(prg)`, (rows, lanes), gives each of t + 1 parties on a private stream: (rows, *tail) each.

        Any t parties miss one of them. Cost: one round.
        """

    async def dot(self, sums: Sums, shift: int, bits: int) -> Number:
        """Each sum of products over 2^shift, rounded at random by less than C(n, t) / 2; (len(sums), *tail).

        Every sum must stay below 2^bits in absolute value. Cost: one round.
        """

    async def dot_to_field(self, sums: Sums, shift: int, bits: int) -> NDArray[np.uint64]:
        """As `dot`, as elements (len(sums), lanes) of F_p, p = 2^61 - 1."""


async def masked(engine: Engine, bits: Bundle, few_rounds: bool) -> Bundle:
    """y: the integers whose bits are (width, values, *tail), least significant first, plus k masks of 64 more bits
    each; (at most 128 bits, values, *tail). To be opened to those who may see it.

    Guarantees: hides the integers up to 2^-64 each.
    Cost: per value, with W = width + 64 + log k: (k - 1) W ANDs for the carry-save adders, and W in W rounds, or below
    4 W in 2 log W with `few_rounds`; then one opening.
    """
    width, values = bits.shape[:2]
    masks = engine.mask_bits(width + CONVERSION_BITS, values)
    if not len(masks):
        return bits
    total = ((1 << width) + (len(masks) << width + CONVERSION_BITS)).bit_length()
    assert total <= 128
    rows = [_widen(engine, x, total) for x in (bits, *masks)]
    while len(rows) > 2:
        x, y, z, *rows = rows
        s, c = await carry_save(engine, x, y, z)
        rows += [s, np.concatenate([engine.constant(np.zeros((1, values), dtype=bool)), c[:-1]])]
    return (await (add if few_rounds else add_ripple)(engine, *rows))[:total]


def _widen(engine: Engine, bits: Bundle, width: int) -> Bundle:
    if len(bits) == width:
        return bits
    return np.concatenate([bits, engine.constant(np.zeros((width - len(bits), bits.shape[1]), dtype=bool))])


async def leading_zeros(engine: Engine, bits: Bundle) -> Bundle:
    """(width + 1, *tail): wire k is 1 where the bits (width, *tail) start with exactly k zeros. Cost: below width
    log2 width / 2 ANDs, ceil(log2 width) rounds."""
    zeros = engine.not_(bits)  # becomes: wire i is 1 where bits 0 .. i are all 0
    step = 1
    while step < len(zeros):
        index = np.flatnonzero(np.arange(len(zeros)) // step % 2)
        zeros = zeros.copy()
        zeros[index] = await engine.and_(zeros[index], zeros[index // step * step - 1])
        step *= 2
    before = np.concatenate([engine.constant([1]), zeros])
    before[:-1] ^= zeros
    return before


async def floating_uniform(engine: Engine) -> tuple[Bundle, Bundle]:
    """A uniform number of (0, 1) and a fair bit, as (segment, place).

    The number is 2^-(k+1) m: k in 0 .. 63 counts leading zeros, P(k) = 2^-(k+1), and m in [1, 2) is independent of
    k, in 8 parts. `segment` (1024, *tail) is one-hot at 16 k + 2 part + bit. `place` (27, *tail) is an odd integer
    of 1 .. 2^27 - 1 within the part, as bits: m = 1 + (part + place / 2^27) / 8.
    Departure: where all 63 counted bits are 0 (probability 2^-63) the number is drawn as for k = 63, from [2^-64,
    2^-63): total variation 2^-64.
    Cost: 1,150 ANDs, 7 rounds, 93 random bits.
    """
    lead = await leading_zeros(engine, engine.random_bits(ZERO_BITS))
    fine = await one_hot(engine, engine.random_bits(1 + SUB_BITS))
    product = np.empty((len(lead), len(fine), *lead.shape[1:]), dtype=lead.dtype)
    product[:-1, :-1] = await engine.and_(lead[:-1, None], fine[None, :-1])
    product[:-1, -1] = lead[:-1] ^ np.bitwise_xor.reduce(product[:-1, :-1], axis=1)
    product[-1] = fine ^ np.bitwise_xor.reduce(product[:-1], axis=0)
    place = np.concatenate([engine.constant([1]), engine.random_bits(PART_BITS)])
    return product.reshape(len(lead) * len(fine), *lead.shape[1:]), place
