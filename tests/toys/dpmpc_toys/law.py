"""The sum of two independent discrete Laplace variables: pure epsilon by the first of them, and a smooth peak."""

import functools
import math
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from dpmpc.circuits.convert import to_field
from dpmpc.circuits.engine import Bundle, Engine
from dpmpc.circuits.heap import Heap
from dpmpc.circuits.laplace import LaplacePlan, plan_laplace, sample_laplace
from dpmpc.circuits.program import Program, program_of
from dpmpc.privacy.exact import ExactLaw, Integers, Reals
from dpmpc.privacy.law import Law, MakeSampler
from dpmpc.privacy.mechanism import Mechanism
from dpmpc.privacy.spending import Spending


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
    samplers: ClassVar[Mapping[str, MakeSampler]] = {"two-heaps": Sum}

    def spending(self, mechanism: Mechanism) -> Spending:
        """The second variable is added after the first: post-processing."""
        m = mechanism
        ratio = m.sensitivity / m.scale
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
