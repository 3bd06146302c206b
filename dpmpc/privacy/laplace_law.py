"""Laplace noise: pure epsilon by the L1 sensitivity, the paper's calibration beside it, two samplers."""

import math
from collections.abc import Mapping
from typing import ClassVar

import numpy as np

from dpmpc.circuits.fixed_sampler import laplace_by_logarithm
from dpmpc.circuits.sampler import discrete_laplace
from dpmpc.privacy import exact
from dpmpc.privacy.checks import check_delta
from dpmpc.privacy.discrete import discrete_laplace_guarantee, discrete_laplace_scale
from dpmpc.privacy.exact import Integers, Reals
from dpmpc.privacy.gaussian import epsilon_of_mu
from dpmpc.privacy.guarantee import Guarantee
from dpmpc.privacy.laplace import laplace_epsilon, laplace_releases, laplace_scale
from dpmpc.privacy.law import AuditPlan, Law, MakeSampler, Need
from dpmpc.privacy.mechanism import Mechanism
from dpmpc.privacy.question import Question, Row, unknown_of
from dpmpc.privacy.sensitivity import Sensitivity
from dpmpc.privacy.spending import PURE_GDP, Spending


class LaplaceLaw(Law):
    """Density proportional to exp(-|x| / scale) on each coordinate, or that law on the integers."""

    name = "laplace"
    norm = 1
    pure = True
    samplers: ClassVar[Mapping[str, MakeSampler]] = {"discrete": discrete_laplace, "log-laplace": laplace_by_logarithm}
    calibrations = ("tight", "zcdp", "paper")
    accounts = ("l1", "paper", "l2-density")
    why_paper_fails = "Theorem 3.1 gives i.i.d. Laplace noise the L2 sensitivity"
    audit = AuditPlan(4, 1_000_000, 64)  # the loss is epsilon where no coordinate lies between: d is small

    def spending(self, mechanism: Mechanism) -> Spending:
        """Pure epsilon = L1 sensitivity / scale, discrete or not. Coordinate i, which moves by v_i, is a release of its
        own that is |v_i| / scale-private, so v_i^2 / 2 scale^2-zCDP (Bun and Steinke 2016, Proposition 1.4) and
        sqrt(pi/2) |v_i| / scale-GDP (`spending.PURE_GDP`): their sums go by the L2 sensitivity."""
        m = mechanism
        squared = (m.sensitivity.l2 / m.scale) ** 2
        return Spending(
            releases=1,
            pure=m.sensitivity.l1 / m.scale,
            rho_pure=squared / 2,
            mu2_pure=PURE_GDP * squared,
            log_ratio=m.dimension * m.log_ratio,
            failure=m.dimension * m.tv + m.mpc_failure,
        )

    def exact(self, scale: float, discrete: bool) -> exact.ExactLaw:
        return exact.discrete_laplace(scale) if discrete else exact.rounded_laplace(scale)

    def magnitudes(self, noise: Integers, scale: float, discrete: bool) -> tuple[Reals, int, int]:
        """2 |x| / b is chi-square with 2 degrees; the variance goes with its square."""
        return np.asarray(2 * np.abs(noise / scale), dtype=np.float64), 2, 2

    def scale(self, need: Need, calibration: str = "tight") -> float:
        """As `Law.scale`, for pure epsilon. "paper": Theorem 3.1 puts the L2 sensitivity where the L1 one belongs."""
        self.check_calibration(calibration)
        if need.before.releases:
            return super().scale(need, calibration)
        steps = need.sensitivity.l2 if calibration == "paper" else self.moved(need.sensitivity).l1
        return discrete_laplace_scale(need.epsilon, steps, need.releases)

    def guarantee(
        self, mechanism: Mechanism, releases: int, *, epsilon: float | None = None, delta: float | None = None
    ) -> Guarantee:
        """Pure epsilon, whatever is asked; delta is what the failures add."""
        m = mechanism
        return discrete_laplace_guarantee(
            m.scale,
            m.sensitivity.l1,
            releases,
            m.dimension,
            tv_per_coordinate=m.tv,
            log_ratio_per_coordinate=m.log_ratio,
            mpc_failure=releases * m.mpc_failure,
        )

    def solve(self, question: Question, sensitivity: Sensitivity) -> tuple[str, list[Row]]:
        q = question
        iterations = 1 if q.iterations is None and None in (q.epsilon, q.scale) else q.iterations
        unknown = unknown_of({"epsilon": q.epsilon, "scale": q.scale, "iterations": iterations})
        moved = sensitivity.within(q.dimension)
        l1, l2 = moved.l1, moved.l2
        if q.delta is not None:
            check_delta(q.delta)
        ways = {"l1": (l1, l1), "paper": (l2, l1), "l2-density": (l2, l2)}
        return unknown, [_row(q, iterations, name, *ways[name]) for name in self.accounts]


def _row(q: Question, iterations: int | None, name: str, claimed: float, true: float) -> Row:
    e, b, t = q.epsilon, q.scale, iterations
    if b is None:
        assert e is not None and t is not None
        b = laplace_scale(e, claimed, t)
    elif e is None:
        assert t is not None
        e = laplace_epsilon(b, claimed, t)
    elif t is None:
        t = laplace_releases(b, e, claimed)
    assert e is not None and t is not None
    truth = laplace_epsilon(b, true, t) if t > 0 else None
    spread = math.sqrt(q.dimension + 1) if name == "l2-density" else math.sqrt(2)
    return {
        "calibration": name,
        "epsilon": e,
        "delta": 0.0,
        "scale": b,
        "iterations": t,
        "deviation": spread * b,
        "true_epsilon": truth,
        "true_delta": 0.0,
        "zcdp_epsilon": _zcdp(t * (true / b), math.sqrt(t) * true / b, q.delta) if q.delta and t > 0 else None,
        "composed_epsilon": laplace_epsilon(b, true, t, q.delta) if q.delta and t > 0 else None,
        "holds": truth is None or truth <= e * (1 + 1e-9),
    }


def _zcdp(pure: float, mu: float, delta: float) -> float:
    return min(pure, epsilon_of_mu(mu, delta, "zcdp"))


LAPLACE = LaplaceLaw()
