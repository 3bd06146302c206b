"""Noise samplers: a law, its circuit, its certificate, and how the parties or the clear engine draw from it.

A sampler draws integers, in grid steps. `shares` gives the parties Shamir shares of them and no one the integers.
"""

from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from dpmpc import field
from dpmpc.approximate import FixedPointSampler
from dpmpc.circuits.convert import to_field
from dpmpc.circuits.engine import Engine
from dpmpc.circuits.gaussian import GaussianCertificate, GaussianPlan, plan_gaussian, sample_gaussian
from dpmpc.circuits.laplace import LaplaceCertificate, LaplacePlan, plan_laplace, sample_laplace
from dpmpc.engines.clear import ClearEngine, evaluate
from dpmpc.engines.counting import CountingEngine
from dpmpc.engines.sharing import SharingEngine
from dpmpc.errors import UsageError
from dpmpc.field import Words
from dpmpc.prg import Prg
from dpmpc.session import Session

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


@dataclass(frozen=True)
class DiscreteGaussian:
    """P(x) proportional to exp(-x^2 / 2 sigma^2) on the integers, up to `certificate.total_variation`."""

    plan: GaussianPlan
    proof: GaussianCertificate
    name = "discrete"
    law: Law = "gaussian"

    @property
    def scale(self) -> float:
        return self.plan.sigma

    @property
    def largest(self) -> int:
        return self.plan.largest

    @property
    def certificate(self) -> dict[str, float | str]:
        return {
            "law": "discrete Gaussian",
            "total_variation": self.proof.total_variation,
            "aliasing": self.proof.aliasing,
            "table": self.proof.table,
            "wrap": self.proof.wrap,
        }

    async def circuit(self, engine: Engine) -> Words:
        """Shares of sample + offset, on any engine."""
        return await to_field(engine, await sample_gaussian(engine, self.plan))

    async def shares(self, session: Session, ident: int, count: int) -> Words:
        return _less(await self.circuit(SharingEngine(session, ident, count)), self.plan.offset)

    def clear(self, count: int, prg: Prg) -> NDArray[np.int64]:
        return field.to_int64(_less(evaluate(self.circuit(ClearEngine(count, prg))), self.plan.offset))

    def cost(self, count: int, parties: int, threshold: int) -> CountingEngine:
        """The cost of one batch of `count` samples, exactly."""
        engine = CountingEngine(count, parties, threshold)
        evaluate(self.circuit(engine))
        return engine


@dataclass(frozen=True)
class DiscreteLaplace:
    """P(x) proportional to exp(-|x| / b) on the integers, up to `certificate.total_variation`."""

    plan: LaplacePlan
    proof: LaplaceCertificate
    name = "discrete"
    law: Law = "laplace"

    @property
    def scale(self) -> float:
        return self.plan.scale

    @property
    def largest(self) -> int:
        return self.plan.largest

    @property
    def certificate(self) -> dict[str, float | str]:
        return {
            "law": "discrete Laplace",
            "total_variation": self.proof.total_variation,
            "tail": self.proof.tail,
            "table": self.proof.table,
            f"multiplicative_within_{self.proof.inner / self.scale:.1f}_scales": self.proof.multiplicative,
        }

    async def circuit(self, engine: Engine) -> Words:
        """Shares of sample + offset, on any engine."""
        return await to_field(engine, await sample_laplace(engine, self.plan))

    async def shares(self, session: Session, ident: int, count: int) -> Words:
        return _less(await self.circuit(SharingEngine(session, ident, count)), self.plan.offset)

    def clear(self, count: int, prg: Prg) -> NDArray[np.int64]:
        return field.to_int64(_less(evaluate(self.circuit(ClearEngine(count, prg))), self.plan.offset))

    def cost(self, count: int, parties: int, threshold: int) -> CountingEngine:
        """The cost of one batch of `count` samples, exactly."""
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
            return (
                DiscreteGaussian(*plan_gaussian(scale)) if law == "gaussian" else DiscreteLaplace(*plan_laplace(scale))
            )
        if name in NAMES:
            return FixedPointSampler(law, scale)
    except ValueError as error:
        raise UsageError(str(error)) from None
    raise UsageError(f"the samplers are {', '.join(NAMES)}; got {name!r}; choose one of them")
