"""The approximate samplers: Box-Muller and log-Laplace by fixed-point arithmetic on secret numbers.

The error of the transform is bounded (docs/box-muller.md), and the masks of its openings hide up to a distance that
the counting engine adds up. What that proves of the law is little, see `total_variation`: the discrete samplers prove
more and are faster. These two are one flag away, for comparison with the literature.
"""

import math

import numpy as np
from numpy.typing import NDArray

from dpmpc.lazy import dataclass

from .accuracy import fraction_bits, rounded_noise_tv, transform_error
from .approximation import LARGEST, Law, piecewise
from .box_muller import box_muller
from .fixed import PART_BITS, FixedEngine
from .log_laplace import log_laplace
from .program import ProgramEngine
from .sampler import Certificate

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
    discrete = False
    uses_fixed = True
    offset = 0

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
    def samples_per_lane(self) -> int:
        """A pair of normals comes from one radius and one angle."""
        return 2 if self.law == "gaussian" else 1

    @property
    def certificate(self) -> Certificate:
        """For (n, t) = (3, 1); `transform_error` is below 2^-24 for all."""
        error = self.transform_error(3, 2)
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
        density = 1 / math.sqrt(2 * math.pi) if self.law == "gaussian" else 0.5
        return rounded_noise_tv(error * self.scale, 1.0, density / self.scale) + _TAIL

    def transform_error(self, subsets: int, dealers: int) -> float:
        """A bound, in units of `scale`, on the distance of a sample before rounding from that of exact arithmetic on
        an exact uniform, with C(n, t) subsets and t + 1 dealers of angles; below 2^-24."""
        return transform_error(self.law, fraction_bits(self.law, subsets, dealers), subsets, dealers)

    async def circuit(self, engine: ProgramEngine, fixed: FixedEngine | None) -> NDArray[np.uint64]:
        """The number of parties sets the fraction bits."""
        assert fixed is not None
        bits = fraction_bits(self.law, fixed.subsets, fixed.dealers)
        half, exponent = math.frexp(self.scale)
        table = piecewise(self.law, 2 * half, bits)
        if self.law == "gaussian":
            return await box_muller(fixed, table, 2 * bits - exponent + 1)
        return await log_laplace(fixed, table, bits + PART_BITS - exponent + 1)


def gaussian_by_box_muller(scale: float) -> FixedPointSampler:
    """N(0, scale^2), rounded. Errors: ValueError outside 1 .. 2^30 grid steps."""
    return FixedPointSampler("gaussian", scale)


def laplace_by_logarithm(scale: float) -> FixedPointSampler:
    """The Laplace law, rounded. Errors: ValueError outside 1 .. 2^30 grid steps."""
    return FixedPointSampler("laplace", scale)
