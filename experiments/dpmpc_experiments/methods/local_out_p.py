"""Local Out P: every owner adds Laplace noise to its own model; the noisy models are averaged in the open.

Source: Jayaraman et al. 2018 section 4, after Chaudhuri et al. 2011: Laplace(2G/(n_j lam epsilon)) at each owner, so
that the mean carries sqrt(m) times the noise of MPC Out P. Chaudhuri et al. draw from exp(-|v|_2/scale); Laplace
coordinates with the L2 sensitivity guarantee sqrt(d) epsilon only.
"""

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dpmpc.lazy import dataclass
from dpmpc_experiments import outputs
from dpmpc_experiments.local import LocalDescent
from dpmpc_experiments.method import Aggregate, Claim, Run
from dpmpc_experiments.noise import generator, laplace_sum
from dpmpc_experiments.records import Problem


@dataclass(frozen=True)
class LocalOutP:
    name: str = "Local Out P"
    sends: str = "its noisy local model, once"
    noise: str = "one Laplace vector an owner, by the owner before sending"

    def scales(self, problem: Problem, run: Run) -> NDArray[np.float64]:
        """Each owner's Laplace scale, (m,)."""
        if run.noiseless:
            return np.zeros(problem.m)
        scales = 2.0 * problem.records.loss.G / (problem.sizes * problem.records.lam * run.epsilon)
        return np.asarray(scales, dtype=np.float64)

    def claim(self, problem: Problem, run: Run) -> Claim:
        effective = float(np.sqrt(np.sum(self.scales(problem, run) ** 2)) / problem.m)
        true = (math.sqrt(problem.records.d) * run.epsilon, 0.0)
        return Claim("laplace (mean over owners)", effective, (run.epsilon, 0.0), true)

    def models(
        self, problem: Problem, runs: Sequence[Run], at: Sequence[int], aggregate: Aggregate | None = None
    ) -> NDArray[np.float64]:
        outputs.no_mpc(self.name, aggregate)

        def release(state: LocalDescent, run: Run, t: int) -> NDArray[np.float64]:
            rng = generator(run.seed, self.name, run.epsilon, t)
            noise = laplace_sum(rng, self.scales(problem, run), problem.records.d)
            return outputs.mean(state) + noise / problem.m

        return outputs.models(problem, runs, at, release)
