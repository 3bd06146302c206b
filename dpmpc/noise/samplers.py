"""Noise samplers: a law, its circuit, its certificate, and how the parties or the clear engine draw from it.

A sampler draws integers, in grid steps. `shares` gives the parties Shamir shares of them and no one the integers.
"""

from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from dpmpc.circuits.convert import to_field
from dpmpc.circuits.engine import Engine
from dpmpc.circuits.gaussian import GaussianCertificate, GaussianPlan, plan_gaussian, sample_gaussian
from dpmpc.circuits.laplace import LaplaceCertificate, LaplacePlan, plan_laplace, sample_laplace
from dpmpc.errors import UsageError
from dpmpc.mpc import field
from dpmpc.mpc.engines.clear import ClearEngine, evaluate
from dpmpc.mpc.engines.counting import CountingEngine
from dpmpc.mpc.engines.sharing import SharingEngine
from dpmpc.mpc.field import Words
from dpmpc.mpc.prg import Prg
from dpmpc.mpc.session import Session
from dpmpc.noise.fixed_point import FixedPointSampler

Law = Literal["gaussian", "laplace"]
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

    async def shares(self, session: Session, ident: int, count: int) -> Words:
        """Shamir shares in F_p of `count` fresh samples; all parties call with the same `ident`, a channel not used
        before."""

    def clear(self, count: int, prg: Prg) -> NDArray[np.int64]:
        """`count` samples by the same arithmetic, in the clear: for study, tests and `--engine clear`."""

    def cost(self, count: int, parties: int, threshold: int) -> CountingEngine:
        """The cost of one batch of `count` samples, exactly; `ands` and `random_bits_drawn` are those of a lane."""


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

    async def circuit(self, engine: Engine) -> Words:
        """Shares of sample + plan.offset, on any engine."""
        if isinstance(self.plan, GaussianPlan):
            return await to_field(engine, await sample_gaussian(engine, self.plan))
        return await to_field(engine, await sample_laplace(engine, self.plan))

    async def shares(self, session: Session, ident: int, count: int) -> Words:
        return _less(await self.circuit(SharingEngine(session, ident, count)), self.plan.offset)

    def clear(self, count: int, prg: Prg) -> NDArray[np.int64]:
        return field.to_int64(_less(evaluate(self.circuit(ClearEngine(count, prg))), self.plan.offset))

    def cost(self, count: int, parties: int, threshold: int) -> CountingEngine:
        engine = CountingEngine(count, parties, threshold)
        evaluate(self.circuit(engine))
        return engine


def _less(values: Words, offset: int) -> Words:
    """Shares of value - offset: a public constant is its own share at every party."""
    return field.sub(values, np.full(1, offset, dtype=np.uint64))


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
