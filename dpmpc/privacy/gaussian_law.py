"""Gaussian noise: exact composition of its releases, three calibrations, two samplers."""

from collections.abc import Mapping
from dataclasses import replace
from typing import ClassVar, Literal, cast, get_args

import numpy as np

from dpmpc.circuits.fixed_sampler import gaussian_by_box_muller
from dpmpc.circuits.sampler import discrete_gaussian
from dpmpc.privacy import exact
from dpmpc.privacy.checks import check_epsilon
from dpmpc.privacy.discrete import (
    ROUNDING_WIDTH,
    discrete_gaussian_guarantee,
    discrete_gaussian_scale,
    rounding_log_ratio,
)
from dpmpc.privacy.exact import Integers, Reals
from dpmpc.privacy.gaussian import (
    Calibration,
    gaussian_delta,
    gaussian_epsilon,
    gaussian_releases,
    gaussian_scale,
)
from dpmpc.privacy.guarantee import Guarantee, paid
from dpmpc.privacy.law import Law, MakeSampler, Need
from dpmpc.privacy.mechanism import Mechanism
from dpmpc.privacy.question import Question, Row, unknown_of
from dpmpc.privacy.sensitivity import Sensitivity
from dpmpc.privacy.spending import Spending


class GaussianLaw(Law):
    """N(0, scale^2) on each coordinate, or P(x) proportional to exp(-x^2 / 2 scale^2) on the integers."""

    name = "gaussian"
    norm = 2
    pure = False
    by_mu = True
    samplers: ClassVar[Mapping[str, MakeSampler]] = {
        "discrete": discrete_gaussian,
        "box-muller": gaussian_by_box_muller,
    }
    calibrations = get_args(Calibration)
    accounts = get_args(Calibration)
    why_paper_fails = "Theorem 3.4 drops the term rho"

    def spending(self, mechanism: Mechanism) -> Spending:
        """mu^2 = (sensitivity / scale)^2, rho its half; for the discrete law by the rounding of docs/privacy.md,
        "Discrete Gaussian"."""
        m = mechanism
        ratio = m.sensitivity.l2 / m.scale
        mu2, t = ratio**2, m.log_ratio
        if m.discrete:
            mu2 = float("inf")
            if m.scale > ROUNDING_WIDTH:
                mu2 = m.sensitivity.l2**2 / (m.scale**2 - ROUNDING_WIDTH**2)
                t += rounding_log_ratio(m.scale)
        return Spending(
            releases=1,
            mu2=mu2,
            rho=ratio**2 / 2,
            log_ratio=m.dimension * t,
            failure=m.dimension * m.tv + m.mpc_failure,
        )

    def exact(self, scale: float, discrete: bool) -> exact.ExactLaw:
        return exact.discrete_gaussian(scale) if discrete else exact.rounded_normal(scale)

    def magnitudes(self, noise: Integers, scale: float, discrete: bool) -> tuple[Reals, int, int]:
        return np.asarray((noise / scale) ** 2, dtype=np.float64), 1, 1

    def scale(self, need: Need, calibration: str = "tight") -> float:
        """As `Law.scale`; "paper" is the printed formula, whose true guarantee the report states."""
        self.check_calibration(calibration)
        if calibration == "paper":
            return gaussian_scale(need.epsilon, need.delta, need.sensitivity.l2, need.releases, "paper")
        coordinates = need.releases * need.dimension
        if need.before.releases:
            return super().scale(need, calibration)
        if calibration == "tight":
            return discrete_gaussian_scale(
                need.epsilon,
                need.delta,
                need.sensitivity.l2,
                need.releases,
                need.dimension,
                tv_per_coordinate=need.tv,
                mpc_failure=need.mpc_failure,
            )
        failures = paid(need.epsilon, need.delta, coordinates * need.tv + need.mpc_failure)
        return gaussian_scale(need.epsilon, need.delta - failures, need.sensitivity.l2, need.releases, "zcdp")

    def guarantee(
        self, mechanism: Mechanism, releases: int, *, epsilon: float | None = None, delta: float | None = None
    ) -> Guarantee:
        m = mechanism
        if not m.discrete:
            return super().guarantee(m, releases, epsilon=epsilon, delta=delta)
        return discrete_gaussian_guarantee(
            m.scale,
            m.sensitivity.l2,
            releases,
            m.dimension,
            epsilon=epsilon,
            delta=delta,
            tv_per_coordinate=m.tv,
            log_ratio_per_coordinate=m.log_ratio,
            mpc_failure=releases * m.mpc_failure,
        )

    def solve(self, question: Question, sensitivity: Sensitivity) -> tuple[str, list[Row]]:
        q, l2 = question, sensitivity.l2
        iterations = q.iterations
        if q.one_release and iterations is None and None in (q.epsilon, q.delta, q.scale):
            iterations = 1
        unknown = unknown_of({"epsilon": q.epsilon, "delta": q.delta, "sigma": q.scale, "iterations": iterations})
        return unknown, [_row(replace(q, iterations=iterations), l2, cast(Calibration, c)) for c in self.accounts]


def _row(q: Question, l2: float, calibration: Literal["tight", "zcdp", "paper"]) -> Row:
    e, d, s, t = q.epsilon, q.delta, q.scale, q.iterations
    if s is None:
        assert e is not None and d is not None and t is not None
        s = gaussian_scale(e, d, l2, t, calibration)
    elif e is None:
        assert d is not None and t is not None
        e = gaussian_epsilon(s, d, l2, t, calibration)
    elif d is None:
        assert t is not None
        d = gaussian_delta(s, check_epsilon(e), l2, t, calibration)
    elif t is None:
        t = gaussian_releases(s, e, d, l2, calibration)
    assert e is not None and d is not None and t is not None
    true_epsilon = true_delta = zcdp = None
    if t > 0 and 0 < d < 1:
        true_epsilon = gaussian_epsilon(s, d, l2, t)
        zcdp = gaussian_epsilon(s, d, l2, t, "zcdp")
    if t > 0 and e > 0:
        true_delta = gaussian_delta(s, e, l2, t)
    return {
        "calibration": calibration,
        "epsilon": e,
        "delta": d,
        "scale": s,
        "iterations": t,
        "deviation": s,
        "true_epsilon": true_epsilon,
        "true_delta": true_delta,
        "zcdp_epsilon": zcdp,
        "holds": true_epsilon is None or true_epsilon <= e * (1 + 1e-9),
    }


GAUSSIAN = GaussianLaw()
