"""A sampler: a law at one scale, its circuit, its certificate. Public; whoever evaluates the circuit draws from it.

A discrete sampler is one Boolean program, and, where it says so (`OverField`), an arithmetic circuit beside it, for
those who share numbers and no bits. A fixed-point sampler is a Boolean program up to its first opening, and arithmetic
from there on. In both, every bit of work on shared bits is a program's.
"""

import functools
from typing import Protocol, TypeGuard

import numpy as np
from numpy.typing import NDArray

from dpmpc.lazy import dataclass

from . import field_gaussian, field_laplace
from .arithmetic import Arithmetic, Values
from .convert import to_field
from .deep import Deep
from .engine import Bundle, Engine
from .fixed import FixedEngine
from .gaussian import GaussianCertificate, GaussianPlan, plan_gaussian, sample_gaussian
from .heap import Heap
from .laplace import LaplaceCertificate, LaplacePlan, plan_laplace, sample_laplace
from .lift import HeapProgram, LiftEngine, heap_program
from .program import Program, ProgramEngine, program_of

Certificate = dict[str, float | str]


class Sampler(Protocol):
    """One law at one scale, ready to draw integers from, in grid steps."""

    @property
    def name(self) -> str:
        """As reports and `--sampler` call it."""

    @property
    def discrete(self) -> bool:
        """Whether the law is one on the integers, drawn exactly up to `certificate["total_variation"]`; else it is a
        continuous law, rounded, and close to it rather than proved."""

    @property
    def scale(self) -> float:
        """sigma, or b, in grid steps, as reached."""

    @property
    def largest(self) -> int:
        """No sample exceeds this in absolute value."""

    @property
    def certificate(self) -> Certificate:
        """What is proved of the law. `total_variation` is the distance of one coordinate from the exact law."""

    @property
    def samples_per_lane(self) -> int:
        """How many samples one evaluation of the circuit gives."""

    @property
    def uses_fixed(self) -> bool:
        """Whether the circuit needs fixed-point arithmetic beside bits."""

    @property
    def offset(self) -> int:
        """What the circuit's values exceed the samples by."""

    async def circuit(self, engine: ProgramEngine, fixed: FixedEngine | None) -> NDArray[np.uint64]:
        """Shares in F_p of sample + offset, (samples_per_lane, lanes) or (lanes,), p = 2^61 - 1."""


class OverField(Sampler, Protocol):
    """A sampler that is drawn over F_p too, where numbers are shared and no bits (`field_sampler`)."""

    @property
    def comparisons(self) -> int:
        """Of a sample, whose deep bits a group shares: one for each table that is read."""

    async def arithmetic(self, engine: Arithmetic, deep: Deep | None, size: int, *, fast: bool) -> Values:
        """(size, *tail): samples as field elements, of which those of a lane are one group; `deep` None: none share
        bits. `fast` spends products on rounds."""


def is_over_field(sampler: Sampler) -> TypeGuard[OverField]:
    """Whether the sampler is drawn over F_p too."""
    return hasattr(sampler, "arithmetic")


def lanes_for(sampler: Sampler, count: int) -> int:
    """The evaluations that `count` samples take."""
    return -(-count // sampler.samples_per_lane)


@dataclass(frozen=True)
class DiscreteSampler:
    """An exact law on the integers, up to `certificate["total_variation"]`: P(x) proportional to exp(-x^2 / 2 scale^2)
    or to exp(-|x| / scale)."""

    plan: GaussianPlan | LaplacePlan
    proof: GaussianCertificate | LaplaceCertificate
    name = "discrete"
    discrete = True
    samples_per_lane = 1
    uses_fixed = False
    offset = 0  # taken off in the conversion

    @property
    def scale(self) -> float:
        return self.plan.scale

    @property
    def largest(self) -> int:
        return self.plan.largest

    @property
    def certificate(self) -> Certificate:
        proof = self.proof
        law = "Gaussian" if isinstance(proof, GaussianCertificate) else "Laplace"
        result: Certificate = {"law": f"discrete {law}", "total_variation": proof.total_variation}
        if isinstance(proof, GaussianCertificate):
            return result | {"aliasing": proof.aliasing, "table": proof.table, "wrap": proof.wrap}
        within = f"multiplicative_within_{proof.inner / self.scale:.1f}_scales"
        return result | {"tail": proof.tail, "table": proof.table, within: proof.multiplicative}

    async def circuit(self, engine: ProgramEngine, fixed: FixedEngine | None = None) -> NDArray[np.uint64]:
        if isinstance(engine, LiftEngine):
            return await engine.lift(noise_heap(self.plan), self.plan.offset)
        return await engine.to_field(noise_program(self.plan, engine.masks), self.plan.offset)

    @property
    def comparisons(self) -> int:
        """One for each table, and one for zero in the Laplace law."""
        plan = self.plan
        return 1 if isinstance(plan, GaussianPlan) else len(plan.digits) + 1

    async def arithmetic(self, engine: Arithmetic, deep: Deep | None, size: int, *, fast: bool) -> Values:
        """See `OverField`."""
        if isinstance(self.plan, GaussianPlan):
            return await field_gaussian.sample_gaussian(engine, self.plan, deep, size, fast=fast)
        return await field_laplace.sample_laplace(engine, self.plan, deep, size, fast=fast)


@functools.lru_cache(maxsize=64)
def noise_program(plan: GaussianPlan | LaplacePlan, masks: int) -> Program:
    """The program of `noise_circuit`, for k masks."""
    return program_of(lambda engine: noise_circuit(engine, plan), masks)


@functools.lru_cache(maxsize=64)
def noise_heap(plan: GaussianPlan | LaplacePlan) -> HeapProgram:
    """A sample plus plan.offset as weighted bits."""
    return heap_program(lambda engine: _sample(engine, plan))


async def noise_circuit(engine: Engine, plan: GaussianPlan | LaplacePlan) -> Bundle:
    """A sample plus plan.offset, plus masks, to be opened."""
    return await to_field(engine, await _sample(engine, plan))


async def _sample(engine: Engine, plan: GaussianPlan | LaplacePlan) -> Heap:
    if isinstance(plan, GaussianPlan):
        return await sample_gaussian(engine, plan)
    return await sample_laplace(engine, plan)


def discrete_gaussian(scale: float) -> DiscreteSampler:
    """P(x) proportional to exp(-x^2 / 2 scale^2). Errors: ValueError outside 2^7 .. 2^30 grid steps."""
    return DiscreteSampler(*plan_gaussian(scale))


def discrete_laplace(scale: float) -> DiscreteSampler:
    """P(x) proportional to exp(-|x| / scale). Errors: ValueError outside 1 .. 2^30 grid steps."""
    return DiscreteSampler(*plan_laplace(scale))
