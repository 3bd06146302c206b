"""The approximate samplers: Box-Muller and log-Laplace by fixed-point arithmetic on secret numbers.

The error of the transform is bounded (docs/box-muller.md), and the masks of its openings hide up to `hiding`. What
that proves of the law is little, see `total_variation`: the discrete samplers prove more and are faster. These two
are one flag away, for comparison with the literature.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpmpc.circuits.accuracy import fraction_bits, transform_error
from dpmpc.circuits.approximation import LARGEST, Law, piecewise
from dpmpc.circuits.box_muller import box_muller
from dpmpc.circuits.engine import Engine
from dpmpc.circuits.fixed import PART_BITS, FixedEngine
from dpmpc.circuits.log_laplace import log_laplace
from dpmpc.mpc import field
from dpmpc.mpc.engines.clear import ClearEngine, evaluate
from dpmpc.mpc.engines.clear_fixed import ClearFixed
from dpmpc.mpc.engines.counting import CountingEngine
from dpmpc.mpc.engines.counting_fixed import CountingFixed
from dpmpc.mpc.engines.sharing import SharingEngine
from dpmpc.mpc.engines.sharing_fixed import SharedFixed
from dpmpc.mpc.field import Words
from dpmpc.mpc.prg import Prg
from dpmpc.mpc.session import Session

MINIMUM_SCALE, MAXIMUM_SCALE = 1.0, 2.0**30
_TAIL = 2.0**-64  # total variation of the uniform: where all counted bits are 0


@dataclass(frozen=True)
class FixedPointSampler:
    """Noise of scale `scale` grid steps (sigma, or b): a continuous law in fixed point, rounded to the grid.

    The rounding is floor(noise + w) with w independent of the noise and |w - 1/2| < C(n, t) / 2.
    Errors: ValueError for a scale outside 1 .. 2^30.
    """

    law: Law
    scale: float

    def __post_init__(self) -> None:
        if not MINIMUM_SCALE <= self.scale <= MAXIMUM_SCALE:
            raise ValueError(
                f"{self.name} takes a scale in 1 .. 2^30 grid steps; got {self.scale:g}; "
                "choose a finer or a coarser grid"
            )

    @property
    def name(self) -> str:
        return "box-muller" if self.law == "gaussian" else "log-laplace"

    @property
    def largest(self) -> int:
        return math.ceil(LARGEST[self.law] * self.scale * (1 + 2.0**-20)) + 512

    @property
    def certificate(self) -> dict[str, float | str]:
        """For (n, t) = (3, 1); `transform_error` is below 2^-24 for all."""
        error = self.transform_error(3, 1)
        law = "normal" if self.law == "gaussian" else "Laplace"
        return {
            "law": f"{law} by {self.name} in fixed point, rounded to the grid",
            "total_variation": self.total_variation(error),
            "transform_error_in_scales": error,
            "largest_in_scales": str(round(LARGEST[self.law], 2)),
        }

    def total_variation(self, error: float) -> float:
        """What can be claimed of one coordinate against the exact law, rounded likewise: a rounding differs only near
        a boundary. It shrinks but linearly in the fraction bits."""
        from dpmpc.privacy.discrete import rounded_noise_tv  # imports SciPy, which a party does not need

        density = 1 / math.sqrt(2 * math.pi) if self.law == "gaussian" else 0.5
        return rounded_noise_tv(error * self.scale, 1.0, density / self.scale) + _TAIL

    def hiding(self, parties: int, threshold: int) -> float:
        """The statistical distance, a coordinate, that the masks of all openings leave to any t parties."""
        engine = CountingEngine(1, parties, threshold)
        fixed = CountingFixed(engine)
        evaluate(self.circuit(engine, fixed, parties, threshold))
        return fixed.distance / self._samples_per_lane

    async def shares(self, session: Session, ident: int, count: int) -> Words:
        engine = SharingEngine(session, ident, self._lanes(count))
        values = await self.circuit(engine, SharedFixed(engine), session.parties, session.threshold)
        return values.reshape(-1)[:count]

    def clear(self, count: int, prg: Prg) -> NDArray[np.int64]:
        engine = ClearEngine(self._lanes(count), prg)
        values = evaluate(self.circuit(engine, ClearFixed.fresh(engine, prg), 3, 1))
        return field.to_int64(values.reshape(-1)[:count])

    def cost(self, count: int, parties: int, threshold: int) -> CountingEngine:
        """The cost of one batch of `count` samples, exactly. Its `ands` and `random_bits_drawn` are those of a lane,
        which gives two normals or one Laplace number."""
        engine = CountingEngine(self._lanes(count), parties, threshold)
        evaluate(self.circuit(engine, CountingFixed(engine), parties, threshold))
        return engine

    @property
    def _samples_per_lane(self) -> int:
        """A pair of normals comes from one radius and one angle."""
        return 2 if self.law == "gaussian" else 1

    def _lanes(self, count: int) -> int:
        return -(-count // self._samples_per_lane)

    async def circuit(self, engine: Engine, fixed: FixedEngine, parties: int, threshold: int) -> Words:
        """Shares of the noise, (samples per lane, lanes), on any pair of engines; (n, t) sets the fraction bits."""
        bits = fraction_bits(self.law, math.comb(parties, threshold), threshold + 1)
        half, exponent = math.frexp(self.scale)
        table = piecewise(self.law, 2 * half, bits)
        if self.law == "gaussian":
            return await box_muller(engine, fixed, table, 2 * bits - exponent + 1)
        return await log_laplace(engine, fixed, table, bits + PART_BITS - exponent + 1)

    def transform_error(self, parties: int, threshold: int) -> float:
        """A bound, in units of `scale`, on the distance of a sample before rounding from that of exact arithmetic on
        an exact uniform; below 2^-24."""
        subsets, angles = math.comb(parties, threshold), threshold + 1
        return transform_error(self.law, fraction_bits(self.law, subsets, angles), subsets, angles)
