"""What releases cost: totals that add up, and the epsilon they come to.

Gaussian releases compose exactly (their mu^2 add); pure releases compose optimally (`pure`), and so do mixtures; the
best is taken of that, of zCDP, and of Gaussian privacy over all, by which noise on coordinates counts by squares.
All of that is proved for releases whose costs are fixed beforehand: it says what a history has spent (an odometer's
reading).

`filtered` uses only what is proved of filters, where costs, order and end may be chosen in view of what was opened: the
sum of mu^2 where all releases are Gaussian, the sum of epsilon where all are pure, and the sum of rho.

Source: Rogers et al. 2016 (pure filters); Feldman and Zrnic 2021 (zCDP filters); Smith and Thakurta 2022 and Koskela,
Tobaben and Honkela 2023 (Gaussian filters); Kairouz, Oh, Viswanath 2015; docs/privacy.md, "Ledger".
"""

import math
from collections.abc import Callable

from dpmpc.lazy import dataclass
from dpmpc.privacy.checks import check_delta
from dpmpc.privacy.gaussian import epsilon_of_mu
from dpmpc.privacy.guarantee import failure_factor
from dpmpc.privacy.pure import Losses, join, mixed_epsilon, pure_epsilon

PURE_GDP = math.pi / 2  # an (e, 0)-private release is mu-GDP for mu^2 = pi/2 e^2: docs/privacy.md, "Laplace noise"


@dataclass(frozen=True)
class Spending:
    """Totals over releases. Each release is in one of two groups: Gaussian ones (`mu2`, inf where the law is too
    narrow for it, and `rho`), and pure ones (`pure`, the sum of their epsilons, `rho_pure`, and `mu2_pure`, by which
    they are Gaussian-private too: by default PURE_GDP times the squares of their epsilons).

    `log_ratio`: logs of pmf ratios to the exact laws, over all coordinates. `failure`: failure probabilities.
    `losses`: the epsilons of the pure releases one by one; by default `pure` is that of one.
    """

    releases: int = 0
    mu2: float = 0.0
    rho: float = 0.0
    pure: float = 0.0
    rho_pure: float = 0.0
    log_ratio: float = 0.0
    failure: float = 0.0
    losses: Losses = ()
    mu2_pure: float = -1.0

    def __post_init__(self) -> None:
        if self.pure and not self.losses:
            object.__setattr__(self, "losses", ((self.pure, 1),))
        if self.mu2_pure < 0:
            squares = math.fsum(loss * loss * count for loss, count in self.losses)
            object.__setattr__(self, "mu2_pure", PURE_GDP * squares)

    def __add__(self, other: "Spending") -> "Spending":
        return Spending(
            self.releases + other.releases,
            self.mu2 + other.mu2,
            self.rho + other.rho,
            self.pure + other.pure,
            self.rho_pure + other.rho_pure,
            self.log_ratio + other.log_ratio,
            self.failure + other.failure,
            join(self.losses, other.losses),
            self.mu2_pure + other.mu2_pure,
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
            tuple((loss, count * k) for loss, count in self.losses),
            self.mu2_pure * k,
        )

    def epsilon(self, delta: float) -> float:
        """The epsilon of all these releases at `delta` in total (failures included); inf if no epsilon holds.

        `delta` may be 0 for pure releases that cannot fail. Guarantees: for costs that are fixed beforehand.
        """
        return self._total(delta, self._composed)

    def filtered(self, delta: float) -> float:
        """As `epsilon`, by what may be used to stop, and to choose what comes next, in view of what was opened.

        Guarantees: whoever goes on only while this is at most epsilon keeps (epsilon, delta) where all releases are of
        one group, whatever they choose; (epsilon, 2 delta) where they may choose between the groups.
        """
        return self._total(delta, self._filtered)

    def promised(self, delta: float) -> float:
        """What noise is calibrated by: `filtered` where all releases are of one group, so that a limit of the same
        numbers lets through what was planned for it; `epsilon` for mixtures, whose filter costs up to four times the
        noise (docs/privacy.md, "Ledger").

        Guarantees: those of `epsilon`, which is no larger.
        """
        return self.epsilon(delta) if self.rho and self.pure else self.filtered(delta)

    def _total(self, delta: float, ideal: Callable[[float], float]) -> float:
        if self.releases == 0:
            return 0.0
        if math.isinf(self.rho + self.pure):
            return math.inf
        if delta == 0:
            return self.pure + 2 * self.log_ratio if self.failure == 0 and self.rho == 0 else math.inf
        check_delta(delta)

        def needed(epsilon: float) -> float:
            """The epsilon of what the failures, at an epsilon, leave of delta."""
            left = (delta - failure_factor(epsilon) * self.failure) * math.exp(-self.log_ratio)
            return ideal(left) + 2 * self.log_ratio if left > 0 else math.inf

        return _least_fixed_point(needed, ideal(delta * math.exp(-self.log_ratio)) + 2 * self.log_ratio)

    def _zcdp(self, delta: float) -> float:
        return epsilon_of_mu(math.sqrt(2 * (self.rho + self.rho_pure)), delta, "zcdp")

    def _composed(self, delta: float) -> float:
        best = self._zcdp(delta)
        if math.isfinite(self.mu2 + self.mu2_pure):
            best = min(best, epsilon_of_mu(math.sqrt(self.mu2 + self.mu2_pure), delta))
        if self.rho == 0:
            best = min(best, pure_epsilon(self.losses, delta))
        elif self.pure and math.isfinite(self.mu2):
            best = min(best, mixed_epsilon(self.losses, math.sqrt(self.mu2), delta))
        return best

    def _filtered(self, delta: float) -> float:
        if self.rho == 0:
            return min(self._zcdp(delta), self.pure)  # the sum of epsilon needs no delta: the smaller one has it all
        if self.pure == 0 and math.isfinite(self.mu2):
            return min(self._zcdp(delta), epsilon_of_mu(math.sqrt(self.mu2), delta))
        return self._zcdp(delta)


def _least_fixed_point(f: Callable[[float], float], below: float) -> float:
    """Where the increasing f gives what it is given; inf where it does not. Climbs from below, and goes ahead along
    chords, which stay below where f is convex, as what one bound needs is. The lesser of two bounds is not where they
    cross: a chord that ends too far is not followed, and later ones are shorter. Whatever is returned is no less than
    what is needed at it, but for 1e-12."""
    x, above, reach = below, f(below), math.inf
    for _ in range(100):
        if above <= x * (1 + 1e-12) or math.isinf(above):
            return above
        ahead, found = above, f(above)
        rise = found - above
        slope = rise / (above - x)
        if slope < 1 and rise < reach:
            jump = min(reach, rise / (1 - slope))
            there = f(above + jump)
            if there < (above + jump) * (1 - 1e-12) or math.isinf(there):
                reach = jump / 8
            else:
                ahead, found = above + jump, there
        x, above = ahead, found
    return math.inf


NOTHING_SPENT = Spending()
NOTHING_HIDDEN = Spending(releases=1, mu2=math.inf, rho=math.inf, pure=math.inf, rho_pure=math.inf)
