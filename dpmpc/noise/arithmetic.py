"""The exact laws drawn by arithmetic circuits over F_p: by n parties with keys by pairs, in the clear, or counted.

The law and its tables are those of `samplers.DiscreteSampler`; the certificate has one term more, for deep bits that a
group of samples shares.
"""

import hashlib
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmpc.circuits import field_gaussian, field_laplace
from dpmpc.circuits.arithmetic import Arithmetic, Values
from dpmpc.circuits.deep import Deep
from dpmpc.circuits.field_gaussian import SharedGaussianCertificate
from dpmpc.circuits.field_laplace import SharedLaplaceCertificate
from dpmpc.circuits.gaussian import GaussianPlan, plan_gaussian
from dpmpc.circuits.laplace import LaplacePlan, plan_laplace
from dpmpc.errors import UsageError
from dpmpc.mpc import field
from dpmpc.mpc.engines.burnt import Burnt
from dpmpc.mpc.engines.clear import evaluate
from dpmpc.mpc.engines.clear_arithmetic import ClearArithmetic
from dpmpc.mpc.engines.counting_arithmetic import CountingArithmetic, count
from dpmpc.mpc.engines.many import ManyEngine
from dpmpc.mpc.engines.many_layout import ManyLayout
from dpmpc.mpc.engines.pair_keys import PairKeys, agree
from dpmpc.mpc.field import Words
from dpmpc.mpc.prg import Prg
from dpmpc.mpc.session import Session
from dpmpc.mpc.wire import HEADER
from dpmpc.noise.samplers import Law

BATCH = 1 << 13  # samples of one batch: two in flight take below 100 MB
FEW = 1 << 11  # up to so many samples, rounds cost more than products
VERSION = 1  # of the protocol and the order of its streams; part of the digest


@dataclass(frozen=True)
class ArithmeticSampler:
    """An exact law on the integers, up to `certificate["total_variation"]`."""

    law: Law
    plan: GaussianPlan | LaplacePlan
    proof: SharedGaussianCertificate | SharedLaplaceCertificate
    deep: Deep | None
    name: str = "discrete"

    @staticmethod
    def make(law: Law, scale: float, deep: Deep | None = Deep()) -> "ArithmeticSampler":  # noqa: B008  (it is frozen)
        """The sampler of the law at `scale` grid steps. Errors: UsageError for a scale out of range."""
        try:
            if law == "gaussian":
                plan, proof = plan_gaussian(scale)
                return ArithmeticSampler(law, plan, field_gaussian.certify_shared(proof, deep), deep)
            laplace, bounds = plan_laplace(scale)
            return ArithmeticSampler(law, laplace, field_laplace.certify_shared(bounds, laplace, deep), deep)
        except ValueError as error:
            raise UsageError(str(error)) from None

    @property
    def scale(self) -> float:
        """sigma, or b, in grid steps."""
        return self.plan.scale

    @property
    def largest(self) -> int:
        """No sample exceeds this in absolute value, outside the event that the certificate's `group` pays for."""
        return self.plan.largest

    @property
    def certificate(self) -> dict[str, float | str]:
        """What is proved. N times `total_variation` bounds the distance of the joint law of N samples."""
        result: dict[str, float | str] = {
            "law": f"discrete {self.law.capitalize()}",
            "total_variation": self.proof.total_variation,
        }
        if isinstance(self.proof, SharedGaussianCertificate):
            gaussian = self.proof.law
            result |= {"aliasing": gaussian.aliasing, "table": gaussian.table, "wrap": gaussian.wrap}
        else:
            laplace = self.proof.law
            within = f"multiplicative_within_{laplace.inner / self.scale:.1f}_scales"
            result |= {"tail": laplace.tail, "table": laplace.table, within: laplace.multiplicative}
        return result | {"group": self.proof.group}

    def digest(self, parties: int, threshold: int) -> bytes:
        """SHA-256 of everything public that the parties' computation depends on."""
        return hashlib.sha256(repr((VERSION, BATCH, FEW, parties, threshold, self.plan, self.deep)).encode()).digest()

    def lanes(self, samples: int) -> int:
        """Lanes that make so many samples: one a group, or one a sample."""
        return self.deep.groups(samples) if self.deep else samples

    async def circuit(self, engine: Arithmetic, samples: int) -> Values:
        """(size, *tail): at least so many samples on an engine of `lanes(samples)` lanes."""
        size, fast = self.deep.size(samples) if self.deep else 1, samples <= FEW
        if isinstance(self.plan, GaussianPlan):
            return await field_gaussian.sample_gaussian(engine, self.plan, self.deep, size, fast=fast)
        return await field_laplace.sample_laplace(engine, self.plan, self.deep, size, fast=fast)

    def clear(self, samples: int, prg: Prg) -> NDArray[np.int64]:
        """`samples` samples by the same arithmetic, in the clear, batch by batch."""
        result = np.empty(samples, dtype=np.int64)
        for start in range(0, samples, BATCH):
            part = result[start : start + BATCH]
            values: Words = evaluate(self.circuit(ClearArithmetic(self.lanes(len(part)), prg), len(part)))
            part[:] = field.to_int64(values.reshape(-1)[: len(part)])
        return result

    def cost(self, samples: int, parties: int, threshold: int) -> CountingArithmetic:
        """What one batch costs, exactly."""
        return count(lambda engine: self.circuit(engine, samples), self.lanes(samples), parties, threshold)


class ManySampler:
    """An `ArithmeticSampler` at one of n parties, with keys by pairs; `shares` is as a `Sampler`'s."""

    def __init__(self, sampler: ArithmeticSampler, session: Session, keys: PairKeys) -> None:
        self.sampler, self.session, self.keys = sampler, session, keys
        self.layout = ManyLayout.of(session.parties, session.threshold)
        self._products: dict[int, int] = {}

    @staticmethod
    async def start(sampler: ArithmeticSampler, session: Session, ident: int, burnt: Burnt) -> "ManySampler":
        """Agree on new keys, on the channel `ident`. Errors: PeerError when a party makes other noise."""
        ManyLayout.of(session.parties, session.threshold)
        digest = sampler.digest(session.parties, session.threshold)
        return ManySampler(sampler, session, await agree(session, ident, burnt, digest))

    async def shares(self, session: Session, ident: int, count: int) -> Words:
        """Shamir shares of degree t of `count` fresh samples, on the channel and the batch `ident`."""
        assert session is self.session
        if count not in self._products:
            self._products[count] = self.sampler.cost(count, session.parties, session.threshold).products
        lanes = self.sampler.lanes(count)
        with self.keys.batch(ident) as streams:
            engine = ManyEngine(session.channel(ident), self.layout, streams, lanes, lanes * self._products[count])
            values: Words = await self.sampler.circuit(engine, count)
        return values.reshape(-1)[:count]


def predict(sampler: ArithmeticSampler, samples: int, parties: int, threshold: int) -> dict[str, Any]:
    """The cost of drawing `samples` samples in the pool's batches of `BATCH`, from the counting engine: exact, but for
    bits drawn again (one in 2^61). Bytes and messages are by party, headers included."""
    number = -(-samples // BATCH)
    size = -(-samples // number) if number else 0
    total: dict[str, Any] = {"batches": number, "products": 0, "random_bits": 0, "exchanges": 0}
    total |= {"bytes": [0] * parties, "messages": [0] * parties}
    counted: dict[int, CountingArithmetic] = {}
    for k in range(number):
        part = min(size, samples - k * size)
        cost = counted.setdefault(part, counted.get(part) or sampler.cost(part, parties, threshold))
        total["products"] += cost.products * cost.lanes
        total["random_bits"] += cost.random_bits_drawn * cost.lanes
        total["exchanges"] += cost.exchanges
        for i in range(parties):
            total["messages"][i] += cost.messages_sent[i]
            total["bytes"][i] += cost.bytes_sent[i] + HEADER.size * cost.messages_sent[i]
    return total
