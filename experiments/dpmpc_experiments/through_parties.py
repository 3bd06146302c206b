"""The aggregation of an experiment through real parties: processes that talk TCP and see one share each.

Every method takes an `aggregate(vectors, law, scale)`. `RealParties` is one, by the public `Aggregator`, whose noise
scale is given, for every law and scale that a method asks for. That is right for it: a method asks for a sum in the
middle of its own loop, of vectors that it has just made, as any program does. It has no folder to go on in, no stage
and nothing to reserve, which are what `dpmpc.run` adds for `dpmpc train`, the product.
"""

import math

import numpy as np
from numpy.typing import NDArray

from dpmpc.aggregation.owner.aggregator import Aggregator
from dpmpc.aggregation.plan.plan import Plan
from dpmpc.errors import UsageError
from dpmpc.privacy.law import DEFAULT_LAW, LAWS
from dpmpc.processes.closing import Closing

FINEST = 40  # bits of the grid without noise: rounding is below 2^-41
_NOISE_STEPS = 1 << 24
_RELEASES = 100_000  # more than any experiment asks for; noise is made when it is needed
_DELTA = 1e-6  # of the promise that nobody reads here
_ROOM = 4.0  # how much longer than the first vectors later ones may be


class RealParties(Closing):
    """n party processes on loopback, as a context; calling it aggregates.

    Errors: PeerError when a party dies; UsageError for a law without a sampler, or vectors too large for the field.
    """

    def __init__(self, parties: int = 3, threshold: int | None = None) -> None:
        self.parties, self.threshold = parties, threshold
        self._key: tuple[object, ...] = ()
        self._aggregator: Aggregator | None = None

    def close(self) -> None:
        if self._aggregator is not None:
            self._aggregator.abandon()

    def __call__(self, vectors: NDArray[np.float64], law: str, scale: float) -> NDArray[np.float64]:
        """The mean of the vectors (m, d) plus one noise vector of `law` and `scale`, on a grid: (d,)."""
        if scale > 0 and law not in LAWS:
            raise UsageError(
                f"the parties make {' or '.join(LAWS.names())} noise; got {law}; leave aggregate out for this method",
                code="choice",
            )
        longest = float(np.sqrt(np.einsum("md,md->m", vectors, vectors)).max())
        key = (law, scale, vectors.shape)
        if self._aggregator is None or key != self._key or longest > self._aggregator.plan.clip:
            if self._aggregator is not None:
                self._aggregator.abandon()
            self._aggregator = self._start(vectors.shape, law if scale else DEFAULT_LAW, scale, longest)
            self._key = key
        return self._aggregator.mean(vectors)

    def _start(self, shape: tuple[int, ...], law: str, scale: float, longest: float) -> Aggregator:
        m, d = shape
        bits = FINEST if scale == 0 else min(FINEST, math.floor(math.log2(_NOISE_STEPS / (scale * m))))
        plan = Plan.create(
            owners=m,
            dimension=d,
            clip=max(_ROOM * longest, 1e-9),
            delta=_DELTA,
            releases=_RELEASES,
            law=law,
            scale=scale,
            grid_bits=bits,
            parties=self.parties,
            threshold=self.threshold,
            pool=False,
        )
        return Aggregator.of_plan(plan)
