"""What a list of releases cost together, and whether another run still fits into a budget.

Gaussian releases compose exactly (their mu^2 add); Laplace releases add their epsilon; a mixture takes the better of
basic composition between the two groups and of zCDP over all of them. Runs may be chosen in view of what earlier ones
released, and stopped by the budget: the sums of mu^2, of rho and of epsilon are all valid filters for such choices.

Source: Rogers et al. 2016 (pure filters); Feldman and Zrnic 2021 (zCDP filters); Smith and Thakurta 2022 and Koskela,
Tobaben and Honkela 2023 (Gaussian filters); docs/privacy.md, "Ledger".
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from dpmpc.errors import UsageError
from dpmpc.privacy.checks import check_count, check_delta, check_epsilon
from dpmpc.privacy.discrete import ROUNDING_WIDTH, rounding_log_ratio
from dpmpc.privacy.gaussian import epsilon_of_mu
from dpmpc.privacy.guarantee import failure_factor
from dpmpc.privacy.ledger import Entry, Mechanism

_ROUNDING = 1e-9  # relative; what the arithmetic of an accounting may be off by


@dataclass(frozen=True)
class Cost:
    """Additive totals over releases: mu^2 (inf when a discrete Gaussian is too narrow for it), rho, pure epsilon of the
    Laplace part, log of pmf ratios, failure probability."""

    releases: int = 0
    mu2: float = 0.0
    rho_gaussian: float = 0.0
    rho_laplace: float = 0.0
    pure: float = 0.0
    log_ratio: float = 0.0
    failure: float = 0.0

    def plus(self, mechanism: Mechanism, releases: int = 1) -> "Cost":
        """These totals and `releases` releases of `mechanism`."""
        if releases == 0:
            return self
        m, k = mechanism, releases
        ratio = m.sensitivity / m.scale
        mu2 = rho_gaussian = rho_laplace = pure = 0.0
        t = m.log_ratio
        if m.law in ("laplace", "discrete-laplace"):
            pure, rho_laplace = ratio, ratio**2 / 2
        elif m.law == "gaussian":
            mu2, rho_gaussian = ratio**2, ratio**2 / 2
        else:
            rho_gaussian = ratio**2 / 2
            mu2 = math.inf
            if m.scale > ROUNDING_WIDTH:
                mu2 = m.sensitivity**2 / (m.scale**2 - ROUNDING_WIDTH**2)
                t += rounding_log_ratio(m.scale)
        return Cost(
            releases=self.releases + k,
            mu2=self.mu2 + k * mu2,
            rho_gaussian=self.rho_gaussian + k * rho_gaussian,
            rho_laplace=self.rho_laplace + k * rho_laplace,
            pure=self.pure + k * pure,
            log_ratio=self.log_ratio + k * m.dimension * t,
            failure=self.failure + k * (m.dimension * m.tv + m.mpc_failure),
        )

    def epsilon(self, delta: float) -> float:
        """The epsilon of all these releases at `delta` in total (failures included); inf if no epsilon holds.

        `delta` may be 0 for Laplace releases that cannot fail.
        """
        if self.releases == 0:
            return 0.0
        if delta == 0:
            return self.pure + 2 * self.log_ratio if self.failure == 0 and self.rho_gaussian == 0 else math.inf
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
        rho = self.rho_gaussian + self.rho_laplace
        best = epsilon_of_mu(math.sqrt(2 * rho), delta, "zcdp")
        if self.rho_gaussian == 0:
            best = min(best, self.pure)
        elif math.isfinite(self.mu2):
            best = min(best, epsilon_of_mu(math.sqrt(self.mu2), delta) + self.pure)
        return best + 2 * self.log_ratio


@dataclass(frozen=True)
class Spent:
    """What was spent on one data set: (epsilon, delta) over `releases` releases of `runs` runs."""

    data: str
    runs: int
    releases: int
    epsilon: float
    delta: float


def cost(entries: Sequence[Entry]) -> Cost:
    """The totals over `entries`."""
    total = Cost()
    for entry in entries:
        total = total.plus(entry.mechanism)
    return total


def spent(entries: Sequence[Entry], data: str, delta: float | None = None) -> Spent:
    """What `entries` spent on the data set of digest `data`, at `delta`: by default the largest any of its runs
    promised (or, for Laplace noise, the sum of its failures)."""
    mine = [entry for entry in entries if data in entry.data]
    total = cost(mine)
    if delta is None:
        delta = max((entry.delta for entry in mine), default=0.0)
        if delta == 0 and total.failure > 0:
            delta = min(0.5, failure_factor(total.pure + 2 * total.log_ratio) * total.failure * (1 + 1e-9))
    return Spent(data, len({entry.run for entry in mine}), total.releases, total.epsilon(delta), delta)


def releases_left(before: Cost, planned: Mechanism, budget: tuple[float, float], at_most: int = 10**9) -> int:
    """The largest number (up to `at_most`) of further releases of `planned` that stays within `budget`."""
    low, high = 0, at_most + 1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if within(before.plus(planned, middle), budget) else (low, middle)
    return low


def require_budget(
    entries: Sequence[Entry],
    data: Sequence[str],
    planned: Mechanism,
    releases: int,
    budget: tuple[float, float],
    unknown: int = 0,
) -> None:
    """Returns if `releases` more releases of `planned` on each of `data` stay within `budget` = (epsilon, delta).

    UsageError otherwise. `unknown`: torn lines of unknown price (`Book.unknown`), counted like `planned`. The
    comparison allows for 1e-9 relative rounding, so that a run planned for exactly what is left is let through.
    """
    epsilon, delta = check_epsilon(budget[0]), budget[1]
    if delta != 0:
        check_delta(delta)
    check_count("releases", releases)
    for digest in data:
        before = cost([entry for entry in entries if digest in entry.data]).plus(planned, unknown)
        after = before.plus(planned, releases)
        if not within(after, budget):
            left = releases_left(before, planned, budget, releases)
            raise UsageError(
                f"the budget for data {digest[:16]} is epsilon {epsilon:g}, delta {delta:g}; {before.releases} "
                f"releases are spent and {releases} more would make epsilon {after.epsilon(delta):.4g}; "
                f"plan at most {left} at this scale, add noise, or raise --budget"
            )


def within(total: Cost, budget: tuple[float, float]) -> bool:
    """Whether the releases stay within (epsilon, delta), up to 1e-9 relative for the arithmetic."""
    return total.epsilon(budget[1]) <= budget[0] * (1 + _ROUNDING)


def parse_budget(text: str) -> tuple[float, float]:
    """(epsilon, delta) written "EPS,DELTA", as on the command line; delta may be 0."""
    try:
        epsilon, delta = (float(part) for part in text.split(","))
    except ValueError:
        raise UsageError(f"a budget is two numbers EPS,DELTA; got {text!r}; write for example 1,1e-5") from None
    if delta != 0:
        check_delta(delta)
    return check_epsilon(epsilon), delta
