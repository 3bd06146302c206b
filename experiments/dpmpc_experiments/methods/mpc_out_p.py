"""MPC Out P: owners send local models, one noise vector is added inside MPC after aggregation.

Source: Jayaraman et al. 2018, Theorem 3.1, which gives independent Laplace coordinates the L2 sensitivity
2G/(m n_(1) lam). That is epsilon-DP for d = 1 only; in d dimensions the L1 sensitivity, up to sqrt(d) times the L2 one,
counts, and the guarantee is sqrt(d) epsilon. The other laws keep epsilon.
"""

import math
from collections.abc import Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from dpmpc.lazy import dataclass
from dpmpc.privacy.gaussian import gaussian_scale
from dpmpc.privacy.sensitivity import output_sensitivity
from dpmpc_experiments import outputs
from dpmpc_experiments.local import LocalDescent
from dpmpc_experiments.method import Aggregate, Claim, Run
from dpmpc_experiments.noise import gaussian_sum, generator, laplace_sum, norm_sum
from dpmpc_experiments.records import Problem

Law = Literal["laplace", "laplace-l1", "norm", "gaussian"]
SUMS = {"laplace": laplace_sum, "norm": norm_sum, "gaussian": gaussian_sum}


@dataclass(frozen=True)
class MpcOutP:
    """law: "laplace" as printed; "laplace-l1" and "norm" (density exp(-|v|_2/scale)) pure epsilon; "gaussian"."""

    name: str = "MPC Out P"
    law: Law = "laplace"
    sends: str = "its local model, once"
    noise: str = "one vector, inside MPC after aggregation"

    def claim(self, problem: Problem, run: Run) -> Claim:
        loss, d = problem.records.loss, problem.records.d
        delta_2 = output_sensitivity(G=loss.G, lam=problem.records.lam, sizes=problem.sizes, weights="equal").l2
        pure, inf = (run.epsilon, 0.0), (float("inf"), 0.0)
        if run.noiseless:
            return Claim("gaussian" if self.law == "gaussian" else self.law.removesuffix("-l1"), 0.0, pure, inf)
        if self.law == "gaussian":
            budget = (run.epsilon, run.delta)
            return Claim("gaussian", gaussian_scale(*budget, delta_2, 1, run.calibration), budget, budget)
        scale = delta_2 / run.epsilon
        if self.law == "laplace":
            return Claim("laplace", scale, pure, (math.sqrt(d) * run.epsilon, 0.0))
        if self.law == "norm":
            return Claim("norm", scale, pure, pure)
        return Claim("laplace", math.sqrt(d) * scale, pure, pure)

    def models(
        self, problem: Problem, runs: Sequence[Run], at: Sequence[int], aggregate: Aggregate | None = None
    ) -> NDArray[np.float64]:
        claims = {run: self.claim(problem, run) for run in runs}
        draw = SUMS[claims[runs[0]].law]

        def release(state: LocalDescent, run: Run, t: int) -> NDArray[np.float64]:
            law, scale = claims[run].law, claims[run].scale
            if aggregate is not None:
                return aggregate(state.models(), law, scale)
            rng = generator(run.seed, self.name, run.epsilon, run.calibration, t)
            return outputs.mean(state) + draw(rng, np.array([scale]), problem.records.d)

        return outputs.models(problem, runs, at, release)
