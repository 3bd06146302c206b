"""Noise samplers: a law, its circuit, its certificate, and how the parties or the clear engine draw from it.

A sampler draws integers, in grid steps. `shares` gives the parties Shamir shares of them and no one the integers.
"""

import functools
import math
from concurrent.futures import Executor as Workers
from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from dpmpc.circuits.convert import to_field
from dpmpc.circuits.engine import Bundle, Engine
from dpmpc.circuits.gaussian import GaussianCertificate, GaussianPlan, plan_gaussian, sample_gaussian
from dpmpc.circuits.laplace import LaplaceCertificate, LaplacePlan, plan_laplace, sample_laplace
from dpmpc.circuits.program import Program, program_of
from dpmpc.errors import UsageError
from dpmpc.mpc import field
from dpmpc.mpc.engines.clear import run_to_field
from dpmpc.mpc.engines.counting import Cost
from dpmpc.mpc.engines.counting import count as count_program
from dpmpc.mpc.engines.sharing import SharingBatch
from dpmpc.mpc.field import Words
from dpmpc.mpc.prg import Prg
from dpmpc.mpc.session import Session
from dpmpc.noise.fixed_point import FixedPointSampler

Law = Literal["gaussian", "laplace"]
_CLEAR_MASKS = 2  # as three parties have them
NAMES = ("discrete", "box-muller", "log-laplace")


class Sampler(Protocol):
    """One law at one scale, ready to draw from."""

    @property
    def name(self) -> str:
        """As the report and `--sampler` call it."""

    @property
    def law(self) -> Law:
        """The family of the law."""

    @property
    def scale(self) -> float:
        """sigma, or b, in grid steps, as reached."""

    @property
    def largest(self) -> int:
        """No sample exceeds this in absolute value."""

    @property
    def certificate(self) -> dict[str, float | str]:
        """What is proved of the law. `total_variation` is the distance of one coordinate from the exact law, where
        there is a proof."""

    async def shares(self, session: Session, ident: int, count: int, workers: Workers | None = None) -> Words:
        """Shamir shares in F_p of `count` fresh samples; all parties call with the same `ident`, a channel not used
        before. Kernels run on `workers`, if any."""

    def clear(self, count: int, prg: Prg) -> NDArray[np.int64]:
        """`count` samples by the same arithmetic, in the clear: for study, tests and `--engine clear`."""

    def cost(self, count: int, parties: int, threshold: int) -> Cost:
        """The cost of one batch of `count` samples, exactly; `ands` and `random_bits` are those of a lane."""


@dataclass(frozen=True)
class DiscreteSampler:
    """An exact law on the integers, up to `certificate["total_variation"]`: P(x) proportional to exp(-x^2 / 2 scale^2)
    or to exp(-|x| / scale)."""

    plan: GaussianPlan | LaplacePlan
    proof: GaussianCertificate | LaplaceCertificate
    name = "discrete"

    @property
    def law(self) -> Law:
        return "gaussian" if isinstance(self.plan, GaussianPlan) else "laplace"

    @property
    def scale(self) -> float:
        return self.plan.scale

    @property
    def largest(self) -> int:
        return self.plan.largest

    @property
    def certificate(self) -> dict[str, float | str]:
        proof = self.proof
        result: dict[str, float | str] = {
            "law": f"discrete {self.law.capitalize()}",
            "total_variation": proof.total_variation,
        }
        if isinstance(proof, GaussianCertificate):
            return result | {"aliasing": proof.aliasing, "table": proof.table, "wrap": proof.wrap}
        within = f"multiplicative_within_{proof.inner / self.scale:.1f}_scales"
        return result | {"tail": proof.tail, "table": proof.table, within: proof.multiplicative}

    def program(self, masks: int) -> Program:
        """What gives sample + plan.offset plus so many masks, to be opened; see `circuits.convert`."""
        return noise_program(self.plan, masks)

    async def shares(self, session: Session, ident: int, count: int, workers: Workers | None = None) -> Words:
        batch = SharingBatch(session, ident, count, workers)
        return await batch.to_field(self.program(len(batch.layout.subsets) - 1), self.plan.offset)

    def clear(self, count: int, prg: Prg) -> NDArray[np.int64]:
        return field.to_int64(run_to_field(self.program(_CLEAR_MASKS), count, prg, self.plan.offset))

    def cost(self, count: int, parties: int, threshold: int) -> Cost:
        return count_program(self.program(math.comb(parties, threshold) - 1), count, parties, threshold)


@functools.lru_cache(maxsize=64)
def noise_program(plan: GaussianPlan | LaplacePlan, masks: int) -> Program:
    """The program of `noise_circuit`."""
    return program_of(lambda engine: noise_circuit(engine, plan), masks)


async def noise_circuit(engine: Engine, plan: GaussianPlan | LaplacePlan) -> Bundle:
    """A sample plus plan.offset, plus masks, to be opened."""
    if isinstance(plan, GaussianPlan):
        return await to_field(engine, await sample_gaussian(engine, plan))
    return await to_field(engine, await sample_laplace(engine, plan))


def make_sampler(name: str, law: Law, scale: float) -> Sampler:
    """The sampler called `name` for `law` at `scale` grid steps.

    Errors: UsageError for an unknown name, a sampler of another law, or a scale out of the sampler's range.
    """
    made_for = {"box-muller": "gaussian", "log-laplace": "laplace"}.get(name, law)
    if made_for != law:
        raise UsageError(f"{name} makes {made_for} noise; got {law}; choose the law or the sampler to fit")
    try:
        if name == "discrete":
            return DiscreteSampler(*(plan_gaussian if law == "gaussian" else plan_laplace)(scale))
        if name in NAMES:
            return FixedPointSampler(law, scale)
    except ValueError as error:
        raise UsageError(str(error)) from None
    raise UsageError(f"the samplers are {', '.join(NAMES)}; got {name!r}; choose one of them")
