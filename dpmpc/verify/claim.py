"""What a plan claims of one of its releases, from the accounting that the report uses."""

import math
from dataclasses import replace

from dpmpc.aggregation.plan.plan import Plan
from dpmpc.lazy import dataclass
from dpmpc.privacy.composition import spending_of
from dpmpc.privacy.gaussian import delta_of_mu
from dpmpc.privacy.law import LAWS, without_failures


@dataclass(frozen=True)
class Claim:
    """What one release costs: (epsilon, delta), and mu where its noise is Gaussian."""

    epsilon: float
    delta: float
    mu: float | None = None

    def of(self, records: int) -> "Claim":
        """The same for so many records that are replaced together. Pure and Gaussian claims only."""
        assert records == 1 or self.mu is not None or self.delta == 0
        return replace(self, epsilon=records * self.epsilon, mu=None if self.mu is None else records * self.mu)


def claim_of(plan: Plan) -> Claim:
    """The claim of one release of the plan, for noise of the exact law; its delta is one release's, not the run's.

    Gaussian noise has one mu and a whole curve of (epsilon, delta); the point on it is epsilon = mu + mu^2 / 2, where
    delta is neither 0 nor 1 for any mu.
    """
    one = spending_of(without_failures(plan.derived.mechanism))
    if LAWS[plan.law].pure and not one.rho:
        return Claim(one.pure, 0.0)
    if not one.pure and math.isfinite(one.mu2):
        mu = math.sqrt(one.mu2)
        epsilon = mu + mu**2 / 2
        return Claim(epsilon, delta_of_mu(mu, epsilon), mu)
    delta = plan.delta
    while one.epsilon(delta) < 0.5 * one.epsilon(delta * 1e-3) and delta > 1e-30:
        delta /= 10
    return Claim(one.epsilon(delta), delta)


def shift_of(plan: Plan) -> float:
    """The largest influence of one record on one coordinate, in units of the noise scale."""
    return plan.derived.sensitivity_steps / plan.derived.mechanism.scale
