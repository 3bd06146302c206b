"""Where a party takes the noise of its releases from: a pool of vectors made inside the MPC, or zeros."""

from dpmpc.aggregation.party.release import NoiseSource
from dpmpc.aggregation.plan.plan import Plan
from dpmpc.mpc.contract.backend import BACKENDS, Holder, Share
from dpmpc.noise.draw import count_draw
from dpmpc.noise.pool import CAPACITY, Pool


def about_noise(plan: Plan, releases: int) -> str:
    """How long the noise of so many releases takes, for a backend that is slow enough to say so before; else, and
    where no party makes any, empty."""
    derived, backend = plan.derived, BACKENDS[plan.backend]
    if not plan.parties or not derived.mechanism.scale:
        return ""
    count = releases * plan.drawn
    seconds = count_draw(backend, derived.sampler, count, plan.parties, plan.threshold).seconds
    if seconds is None:
        return ""
    return f"{count:,} samples take about {seconds:,.1f} s of a core at each party"


def noise_source(plan: Plan, holder: Holder[Share], vectors: int) -> NoiseSource:
    """Where this attempt's noise comes from; a plan without noise (its scale is 0) gets zeros."""
    if not plan.derived.mechanism.scale:
        return _NoNoise(holder, plan.drawn)
    capacity = CAPACITY if plan.pool else plan.drawn  # without a pool: one vector at a time, when it is needed
    return Pool(holder, plan.derived.sampler, vectors, plan.drawn, capacity=capacity)


class _NoNoise:
    """Zeros."""

    def __init__(self, holder: Holder[Share], dimension: int) -> None:
        self.made = 0
        self._holder, self._dimension = holder, dimension

    async def fill(self) -> None:
        pass

    async def take(self) -> tuple[int, Share]:
        self.made += 1
        return self.made - 1, self._holder.zero(self._dimension)
