"""What releases cost: totals that add up, and the epsilon they come to.

Gaussian releases compose exactly (their mu^2 add); pure releases add their epsilon; a mixture takes the better of
basic composition between the two groups and of zCDP over all of them. Runs may be chosen in view of what earlier ones
released, and stopped by the budget: the sums of mu^2, of rho and of epsilon are all valid filters for such choices.

Source: Rogers et al. 2016 (pure filters); Feldman and Zrnic 2021 (zCDP filters); Smith and Thakurta 2022 and Koskela,
Tobaben and Honkela 2023 (Gaussian filters); docs/privacy.md, "Ledger".
"""

import math
from dataclasses import dataclass

from dpmpc.privacy.checks import check_delta
from dpmpc.privacy.gaussian import epsilon_of_mu
from dpmpc.privacy.guarantee import failure_factor


@dataclass(frozen=True)
class Spending:
    """Totals over releases. Each release is in one of two groups: Gaussian ones (`mu2`, inf where the law is too
    narrow for it, and `rho`), and pure ones (`pure`, the sum of their epsilons, and `rho_pure`).

    `log_ratio`: logs of pmf ratios to the exact laws, over all coordinates. `failure`: failure probabilities.
    """

    releases: int = 0
    mu2: float = 0.0
    rho: float = 0.0
    pure: float = 0.0
    rho_pure: float = 0.0
    log_ratio: float = 0.0
    failure: float = 0.0

    def __add__(self, other: "Spending") -> "Spending":
        return Spending(
            self.releases + other.releases,
            self.mu2 + other.mu2,
            self.rho + other.rho,
            self.pure + other.pure,
            self.rho_pure + other.rho_pure,
            self.log_ratio + other.log_ratio,
            self.failure + other.failure,
        )

    def times(self, k: int) -> "Spending":
        """The totals of k such."""
        if k == 0:
            return Spending()
        return Spending(
            self.releases * k,
            self.mu2 * k,
            self.rho * k,
            self.pure * k,
            self.rho_pure * k,
            self.log_ratio * k,
            self.failure * k,
        )

    def epsilon(self, delta: float) -> float:
        """The epsilon of all these releases at `delta` in total (failures included); inf if no epsilon holds.

        `delta` may be 0 for pure releases that cannot fail.
        """
        if self.releases == 0:
            return 0.0
        if math.isinf(self.rho + self.pure):
            return math.inf
        if delta == 0:
            return self.pure + 2 * self.log_ratio if self.failure == 0 and self.rho == 0 else math.inf
        check_delta(delta)
        epsilon = self._ideal(delta * math.exp(-self.log_ratio))
        for _ in range(100):  # delta's share for failures grows with epsilon: climb to the least fixed point
            left = (delta - failure_factor(epsilon) * self.failure) * math.exp(-self.log_ratio)
            if left <= 0:
                return math.inf
            higher = self._ideal(left)
            if higher <= epsilon * (1 + 1e-12):
                return higher
            epsilon = higher
        return math.inf

    def _ideal(self, delta: float) -> float:
        best = epsilon_of_mu(math.sqrt(2 * (self.rho + self.rho_pure)), delta, "zcdp")
        if self.rho == 0:
            best = min(best, self.pure)
        elif math.isfinite(self.mu2):
            best = min(best, epsilon_of_mu(math.sqrt(self.mu2), delta) + self.pure)
        return best + 2 * self.log_ratio


NOTHING_SPENT = Spending()
NOTHING_HIDDEN = Spending(releases=1, mu2=math.inf, rho=math.inf, pure=math.inf, rho_pure=math.inf)
