"""WD-DP, Algorithm 1 as written: every client makes T noisy steps on its own records, and the models are averaged
once.

Source: Kang et al. 2019, Algorithm 1 and equation (3). Their proof is of another method (see `wd_dp`). sigma, meant
for a mean over n records, is added at each client to a mean over n_j, in every local step.
Guarantees: towards who sees one client's model its T steps are T releases of sensitivity 2G/n_j: that epsilon is the
`true` one of the claim, for the smallest client. The mean of all models hides more; by how much is not proved.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dpmpc.lazy import dataclass
from dpmpc.privacy.gaussian import gaussian_epsilon
from dpmpc_experiments import gradient, outputs
from dpmpc_experiments.local import LocalDescent, trajectory
from dpmpc_experiments.method import Aggregate, Claim, Run
from dpmpc_experiments.noise import generator
from dpmpc_experiments.records import Problem


class NoisyDescent(LocalDescent):
    """All owners' descents with fresh Gaussian noise on every gradient."""

    def __init__(self, problem: Problem, eta: float, sigma: float, rng: np.random.Generator) -> None:
        lam = np.full(problem.m, problem.records.lam)
        super().__init__(problem, outputs.local_steps(problem, eta, lam), lam, None, "models")
        self.sigma, self.rng = sigma, rng

    def step(self) -> None:
        self.linear = self.sigma * self.rng.standard_normal(self.theta.shape)
        super().step()


@dataclass(frozen=True)
class WdDpLocal:
    name: str = "WD-DP (Algorithm 1)"
    sends: str = "its model after T noisy local steps, once"
    noise: str = "one Gaussian vector a client and local step, of the size that n records need"

    def claim(self, problem: Problem, run: Run) -> Claim:
        whole = gradient.claim(problem, run, "size")
        if whole.scale == 0.0:
            return whole
        own = 2.0 * problem.records.loss.G / float(problem.sizes.min())
        epsilon = gaussian_epsilon(whole.scale, run.delta, own, run.iterations)
        return Claim("gaussian, each local step", whole.scale, whole.claimed, (epsilon, run.delta))

    def models(
        self, problem: Problem, runs: Sequence[Run], at: Sequence[int], aggregate: Aggregate | None = None
    ) -> NDArray[np.float64]:
        outputs.no_mpc(self.name, aggregate)
        kept = np.empty((len(at), len(runs), problem.records.d))
        weights = problem.owner_weights("size")
        for k, run in enumerate(runs):
            rng = generator(run.seed, self.name, run.epsilon, run.calibration)
            descent = NoisyDescent(problem, run.eta, self.claim(problem, run).scale, rng)
            for i, state in enumerate(trajectory(descent, at)):
                kept[i, k] = state.mean(weights)
        return kept
