"""Local private: an owner trains on its own records alone, with output noise, and shares nothing. The bound from below.

A run is the model of one owner drawn at random, so that the mean over runs is the mean over owners.
Guarantees: (epsilon, delta) for that owner's records, Gaussian output noise calibrated as the run says.
"""

from collections.abc import Sequence
from functools import cache

import numpy as np
from numpy.typing import NDArray

from dpmpc.lazy import dataclass
from dpmpc.privacy.gaussian import gaussian_scale
from dpmpc_experiments import outputs
from dpmpc_experiments.local import LocalDescent, trajectory
from dpmpc_experiments.method import Aggregate, Claim, Run
from dpmpc_experiments.noise import generator
from dpmpc_experiments.records import Problem

_scale = cache(gaussian_scale)  # owners of one size, at every iteration


@dataclass(frozen=True)
class LocalOnly:
    name: str = "Local private"
    sends: str = "nothing"
    noise: str = "one Gaussian vector on the owner's own model"

    def scale(self, problem: Problem, run: Run, owner: int) -> float:
        """sigma on the model of this owner."""
        if run.noiseless:
            return 0.0
        delta_2 = 2.0 * problem.records.loss.G / (float(problem.sizes[owner]) * problem.records.lam)
        return _scale(run.epsilon, run.delta, delta_2, 1, run.calibration)

    def claim(self, problem: Problem, run: Run) -> Claim:
        budget = (run.epsilon, run.delta)
        return Claim("gaussian, on each model", self.scale(problem, run, int(problem.sizes.argmin())), budget, budget)

    def models(
        self, problem: Problem, runs: Sequence[Run], at: Sequence[int], aggregate: Aggregate | None = None
    ) -> NDArray[np.float64]:
        outputs.no_mpc(self.name, aggregate)
        lam, d = np.full(problem.m, problem.records.lam), problem.records.d
        owner = [int(generator(run.seed, self.name, "owner").integers(problem.m)) for run in runs]
        descent = LocalDescent(problem, outputs.local_steps(problem, runs[0].eta, lam), lam, None)
        kept = np.empty((len(at), len(runs), d))
        for i, state in enumerate(trajectory(descent, at)):
            for k, run in enumerate(runs):
                rng = generator(run.seed, self.name, run.epsilon, at[i])
                kept[i, k] = state.mean(np.eye(1, problem.m, owner[k])[0])
                kept[i, k] += self.scale(problem, run, owner[k]) * rng.standard_normal(d)
        return kept
