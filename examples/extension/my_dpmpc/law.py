"""The sum of two independent discrete Laplace variables: pure epsilon by the first of them, and a smooth peak.

It has two samplers: one of tables alone, which every backend draws, and a Boolean circuit, for backends that share
bits.
"""

import functools
import math
from collections.abc import Mapping
from fractions import Fraction
from typing import Any, ClassVar

import mpmath
import numpy as np

from dpmpc.circuits.convert import to_field
from dpmpc.circuits.engine import Bundle, Engine
from dpmpc.circuits.heap import Heap
from dpmpc.circuits.laplace import LaplacePlan, plan_laplace, sample_laplace
from dpmpc.circuits.program import Program, program_of
from dpmpc.extend import TableSampler, Term, table_of
from dpmpc.privacy.exact import ExactLaw, Integers, Reals
from dpmpc.privacy.law import Law, MakeSampler
from dpmpc.privacy.mechanism import Mechanism
from dpmpc.privacy.spending import Spending

BITS = 5  # of a digit
TAIL = 2.0**-64


@functools.cache
def by_tables(scale: float) -> TableSampler:
    """X = G1 + G2 - G3 - G4 of geometric variables, P(G >= k) = q^k with q = exp(-1 / scale): two differences, each a
    discrete Laplace variable. The base-32 digits of a geometric variable are independent; digit w is j with
    probability proportional to q^(j 32^w), and those beyond the last table are nonzero with probability below TAIL."""
    digits = math.ceil(math.log2(scale * -math.log(TAIL)) / BITS)
    terms, off = [], 0.0
    for w in range(digits):
        weights = [_exp(-j * Fraction(1 << BITS * w) / Fraction(scale)) for j in range(1 << BITS)]
        table, distance = table_of([weight / sum(weights) for weight in weights])
        terms += [Term(table, sign << BITS * w) for sign in (1, 1, -1, -1)]
        off += 4 * (float(distance) + 2.0**-110)  # 32 terms, each right to 2^-119
    beyond = 4 * math.exp(-(2.0 ** (BITS * digits)) / scale)
    return TableSampler(scale, tuple(terms), off + beyond, "sum of two discrete Laplace")


def _exp(x: Fraction) -> Fraction:
    """exp(x) for x <= 0, right to 2^-119."""
    with mpmath.workprec(200):
        return Fraction(int(mpmath.exp(mpmath.mpf(x.numerator) / x.denominator) * 2**120), 2**120)


class Sum:
    """The circuit: two samples' heaps in one."""

    name = "two-heaps"
    discrete = True
    samples_per_lane = 1
    uses_fixed = False

    def __init__(self, scale: float) -> None:
        self.plan, proof = plan_laplace(scale)
        self.scale, self.largest, self.offset = scale, 2 * self.plan.largest, 2 * self.plan.offset
        self.certificate = {"law": "sum of two discrete Laplace", "total_variation": 2 * proof.total_variation}

    def __repr__(self) -> str:
        return f"Sum({self.plan!r})"

    async def circuit(self, engine: Any, fixed: Any) -> Any:
        return await engine.to_field(program(self.plan, engine.masks))


@functools.cache
def program(plan: LaplacePlan, masks: int) -> Program:
    return program_of(lambda engine: both(engine, plan), masks)


async def both(engine: Engine, plan: LaplacePlan) -> Bundle:
    heap = Heap()
    for _ in range(2):
        for weight, column in enumerate((await sample_laplace(engine, plan)).columns):
            heap.put(weight, *column)
    return await to_field(engine, heap)


class DoubleLaplace(Law):
    """P(x) = C q^|x| (|x| + A), q = exp(-1 / scale)."""

    name = "double-laplace"
    norm = 1
    pure = True
    samplers: ClassVar[Mapping[str, MakeSampler]] = {"tables": by_tables, "two-heaps": Sum}

    def spending(self, mechanism: Mechanism) -> Spending:
        """The second variable is added after the first: post-processing."""
        m = mechanism
        ratio = m.sensitivity.l1 / m.scale
        failure = m.dimension * m.tv + m.mpc_failure
        return Spending(1, pure=ratio, rho_pure=ratio**2 / 2, log_ratio=m.dimension * m.log_ratio, failure=failure)

    def exact(self, scale: float, discrete: bool) -> ExactLaw:
        q = math.exp(-1 / scale)
        c, a, r = ((1 - q) / (1 + q)) ** 2, (1 + q * q) / (1 - q * q), 1 - q

        def beyond(x: Reals) -> Reals:  # P(X > x), x >= 0
            return np.asarray(c * np.exp(-(x + 1) / scale) * ((x + 1 + a) / r + q / r**2))

        def cdf(x: Integers) -> Reals:
            x = np.asarray(x, dtype=np.float64)
            return np.asarray(np.where(x >= 0, 1 - beyond(np.maximum(x, 0)), beyond(np.maximum(-x - 1, 0))))

        return ExactLaw("sum of two discrete Laplace", 4 * q / r**2, math.ceil(80 * scale) + 1, cdf)


DOUBLE_LAPLACE = DoubleLaplace()
