"""Local Grad P: every owner adds its own Gaussian noise to its gradients and shows them; the mean is taken in the open.

Source: Jayaraman et al. 2018 section 4, after Shokri and Shmatikov 2015 with zCDP. The noise in the mean is sqrt(m)
times that of one vector inside MPC.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dpmpc.lazy import dataclass
from dpmpc.privacy.gaussian import gaussian_epsilon
from dpmpc_experiments.descent import descend
from dpmpc_experiments.method import Aggregate, Claim, Run, gaussian
from dpmpc_experiments.noise import gaussian_sum, generator
from dpmpc_experiments.outputs import no_mpc
from dpmpc_experiments.records import Problem


@dataclass(frozen=True)
class LocalGradP:
    name: str = "Local Grad P"
    sends: str = "its noisy mean gradient, each iteration"
    noise: str = "one Gaussian vector an owner and iteration, by the owner before sending"

    def scales(self, problem: Problem, run: Run) -> NDArray[np.float64]:
        """Each owner's sigma, (m,)."""
        return gaussian(run, 1.0) * 2.0 * problem.records.loss.G / problem.sizes

    def claim(self, problem: Problem, run: Run) -> Claim:
        scales = self.scales(problem, run)
        total = float(np.sqrt(np.sum(scales**2)) / problem.m)
        unit = gaussian(run, 1.0)
        epsilon = gaussian_epsilon(unit, run.delta, 1.0, run.iterations) if unit else float("inf")
        return Claim("gaussian (sum over owners)", total, (run.epsilon, run.delta), (epsilon, run.delta))

    def models(
        self, problem: Problem, runs: Sequence[Run], at: Sequence[int], aggregate: Aggregate | None = None
    ) -> NDArray[np.float64]:
        no_mpc(self.name, aggregate)
        streams = [generator(run.seed, self.name, run.epsilon, run.calibration) for run in runs]
        scales = [self.scales(problem, run) for run in runs]
        d, eta = problem.records.d, np.array([run.eta for run in runs])
        return descend(
            problem,
            weights=problem.weights("equal"),
            noise=lambda _: np.stack([gaussian_sum(r, s, d) for r, s in zip(streams, scales, strict=True)]) / problem.m,
            steps=lambda _: eta,
            ridge=np.full(len(runs), problem.records.lam),
            at=at,
        )
