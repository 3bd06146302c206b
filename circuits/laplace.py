"""The discrete Laplace law P(x) proportional to exp(-|x| / b) on the integers, b up to 2^30, as a circuit with a
certificate.

X is 0 with probability (1 - q) / (1 + q), q = exp(-1 / b); else its sign is fair and |X| - 1 is geometric. The base-32
digits of a geometric variable are independent, digit w with law proportional to exp(-j 32^w / b): one alias table each.
"""

import functools
import math
from fractions import Fraction
from typing import Any

import numpy as np

from dpmpc.lazy import dataclass

from .alias import PRECISION, AliasTable, alias_rows, round_weights
from .engine import Engine
from .heap import Heap
from .selection import biased_bit, mux

DIGIT_BITS = 5
TAIL_BITS = 64  # P(|X| beyond the digits) <= 2^-64
INNER_BITS = 40  # the multiplicative bound is given where P(|X| >= inner) is 2^-40
MINIMUM_SCALE, MAXIMUM_SCALE = 1, 1 << 30
_DIGITS = 60


@dataclass(frozen=True)
class LaplacePlan:
    """A sampler's public parameters; X = the heap's value - offset."""

    scale: float  # b
    digits: tuple[AliasTable, ...]  # of |X| - 1, least significant first
    nonzero: int  # P(X != 0) = nonzero / 2^precision, even

    @property
    def width(self) -> int:
        """Bits of |X| - 1."""
        return self.digits[0].index_bits * len(self.digits)

    @property
    def offset(self) -> int:
        """What `sample_laplace`'s heap exceeds the noise by."""
        return 1 << self.width

    @property
    def largest(self) -> int:
        """The largest |X| that can occur."""
        return 1 << self.width


@dataclass(frozen=True)
class LaplaceCertificate:
    """Bounds on the distance of one sample from the discrete Laplace law."""

    tail: float  # total variation: mass beyond the digits
    table: float  # total variation: rounding of all tables
    multiplicative: float  # |log(P sampled / P exact)| of every value with |x| <= inner
    inner: float

    @property
    def total_variation(self) -> float:
        """The distance of one coordinate, at most."""
        return self.tail + self.table


async def sample_laplace(engine: Engine, plan: LaplacePlan) -> Heap:
    """A heap whose value minus `plan.offset` has the certified law, one sample a lane.

    Cost: for each digit 26 (one-hot) + 120 (threshold) + 5 ANDs; 120 + width + 2 more; 11 rounds whatever the scale.
    """
    index = engine.random_bits(plan.digits[0].index_bits, len(plan.digits))
    thresholds, aliases = await alias_rows(engine, plan.digits, index)
    zero_threshold = engine.constant([[plan.nonzero >> i & 1] for i in range(plan.digits[0].precision)])
    keep = await biased_bit(
        engine, np.concatenate([thresholds, zero_threshold], axis=1)
    )  # every digit and the zero at once
    digits, nonzero = await mux(engine, keep[:-1], index, aliases), keep[-1]
    positive = engine.random_bits(1)
    # x = G + 1 or -(G + 1) = NOT G in two's complement: the sign flips G's bits, and a positive one adds 1; both
    # vanish where X = 0.
    magnitude = np.concatenate([*digits.swapaxes(0, 1), engine.constant([0])])
    signed = magnitude ^ engine.not_(positive)
    kept = await engine.and_(nonzero, np.concatenate([signed, positive]))
    heap = Heap()
    heap.put_number(kept[: plan.width])
    heap.put(
        plan.width, engine.not_(kept[plan.width])
    )  # the sign bit has weight -2^width: 2^width is added, see `offset`
    heap.put(0, kept[-1])
    return heap


@functools.lru_cache(maxsize=64)
def plan_laplace(scale: float) -> tuple[LaplacePlan, LaplaceCertificate]:
    """The sampler for `scale` grid steps, exactly as asked, and its certificate.

    Errors: ValueError outside 1 .. 2^30.
    """
    import mpmath  # who draws another law does without the import

    if not MINIMUM_SCALE <= scale <= MAXIMUM_SCALE:
        raise ValueError(
            f"the discrete Laplace takes a scale in 1 .. 2^30 grid steps; got {scale:g}; choose a finer or a "
            "coarser grid"
        )
    digits = math.ceil(math.log2(scale * (TAIL_BITS + 1) * math.log(2)) / DIGIT_BITS)
    tables = []
    total = 1 << (DIGIT_BITS + PRECISION - 1)
    exact = mpmath.MPContext()  # of this call alone: mpmath's own precision is shared by all threads
    exact.dps = _DIGITS
    b = exact.mpf(scale)
    q = exact.exp(-1 / b)
    distance, ratio = exact.mpf(0), exact.mpf(0)
    inner = math.floor(scale * INNER_BITS * math.log(2))
    for w in range(digits):
        step = exact.mpf(1 << (DIGIT_BITS * w)) / b
        terms = [exact.exp(-j * step) for j in range(1 << DIGIT_BITS)]
        mass = exact.fsum(terms)
        ideal = [t / mass for t in terms]
        fractions = [_fraction(p) for p in ideal]
        table = AliasTable(round_weights([p / sum(fractions) for p in fractions], total))
        tables.append(table)
        law = [exact.mpf(weight) / total for weight in table.weights]
        distance += exact.fsum(abs(x - y) for x, y in zip(law, ideal, strict=True)) / 2
        used = min(1 << DIGIT_BITS, (inner >> (DIGIT_BITS * w)) + 1)  # digits that values up to `inner` have
        ratio += max(abs(exact.log(x / y)) for x, y in zip(law[:used], ideal[:used], strict=True))
    wanted = 2 * q / (1 + q)
    nonzero = 2 * int(exact.nint(wanted * (1 << (PRECISION - 1))))
    nonzero = min(nonzero, (1 << PRECISION) - 2)
    reached = exact.mpf(nonzero) / (1 << PRECISION)
    distance += abs(reached - wanted)
    ratio += max(abs(exact.log(reached / wanted)), abs(exact.log((1 - reached) / (1 - wanted))))
    tail = exact.exp(-exact.mpf(1 << (DIGIT_BITS * digits)) / b)
    ratio += -exact.log1p(-tail)  # the digits' law is the geometric one given that it ends inside them
    up = 1 + 2.0**-40
    certificate = LaplaceCertificate(
        max(float(tail), 5e-324) * up, float(distance) * up, float(ratio) * up, inner
    )  # at least the least float, for 0 would be no bound
    return LaplacePlan(scale, tuple(tables), nonzero), certificate


def _fraction(x: Any) -> Fraction:
    sign, mantissa, exponent, _ = x._mpf_
    return Fraction(int((-1) ** sign * mantissa)) * Fraction(2) ** int(exponent)
