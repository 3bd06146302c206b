"""Local Obj P: every owner minimises its objective plus a random linear term; the models are averaged in the open.

Source: Chaudhuri et al. 2011, Algorithm 2: b/n_j . theta with b of density exp(-epsilon' |b|/2), and the regulariser
Delta of `slack`. Two other readings, for the figures: "printed" is Table 1 of Jayaraman et al. 2018, Laplace(2G/(n_j
epsilon)) coordinates and no Delta; "as drawn" is what its Figure 1 looks like: Delta is there, but all owners share one
vector of Laplace coordinates. Neither of the two guarantees
epsilon. Algorithm 2's guarantee is for exact minimisers, which descent approaches.
"""

import math
from collections.abc import Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from dpmpc.lazy import dataclass
from dpmpc_experiments import outputs
from dpmpc_experiments.local import LocalDescent, trajectory
from dpmpc_experiments.method import Aggregate, Claim, Run
from dpmpc_experiments.noise import generator, norm_each
from dpmpc_experiments.records import Problem
from dpmpc_experiments.slack import slack


@dataclass(frozen=True)
class LocalObjP:
    name: str = "Local Obj P"
    reading: Literal["algorithm", "printed", "as drawn"] = "algorithm"
    sends: str = "its locally perturbed model, once"
    noise: str = "one linear term an owner, in the owner's objective"

    def slacks(self, problem: Problem, run: Run) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Each owner's Delta and epsilon', (m,) and (m,)."""
        if run.noiseless or self.reading == "printed":
            return np.zeros(problem.m), np.full(problem.m, run.epsilon)
        sizes, index = np.unique(problem.sizes, return_inverse=True)
        pairs = [slack(run.epsilon, problem.records.lam, float(n), problem.records.loss.L) for n in sizes]
        table = np.array(pairs)[index.reshape(-1)]
        return table[:, 0], table[:, 1]

    def linear(self, problem: Problem, run: Run) -> NDArray[np.float64]:
        """Each owner's linear term, noise divided by n_j, (m, d)."""
        m, d, G = problem.m, problem.records.d, problem.records.loss.G
        if run.noiseless:
            return np.zeros((m, d))
        rng = generator(run.seed, self.name, run.epsilon)
        left = self.slacks(problem, run)[1]
        if self.reading == "algorithm":
            b = norm_each(rng, 2.0 * G / left, d)
        elif self.reading == "printed":
            b = 2.0 * G / left[:, None] * rng.laplace(size=(m, d))
        else:
            b = 2.0 * G / left[:, None] * rng.laplace(size=d)
        vectors: NDArray[np.float64] = b / problem.sizes[:, None]
        return vectors

    def claim(self, problem: Problem, run: Run) -> Claim:
        scale = 2.0 * problem.records.loss.G / (float(problem.sizes.min()) * float(self.slacks(problem, run)[1].min()))
        claimed = (run.epsilon, 0.0)
        if self.reading == "algorithm":
            return Claim("norm, in each objective", scale, claimed, claimed)
        if self.reading == "printed":
            jacobian = 2.0 * math.log1p(problem.records.loss.L / (float(problem.sizes.min()) * problem.records.lam))
            true = (math.sqrt(problem.records.d) * run.epsilon + jacobian, 0.0)
            return Claim("laplace, in each objective", scale, claimed, true)
        return Claim("laplace, in each objective", scale, claimed, (float("inf"), 0.0))

    def models(
        self, problem: Problem, runs: Sequence[Run], at: Sequence[int], aggregate: Aggregate | None = None
    ) -> NDArray[np.float64]:
        outputs.no_mpc(self.name, aggregate)
        kept = np.empty((len(at), len(runs), problem.records.d))
        weights = problem.owner_weights("equal")
        for k, run in enumerate(runs):
            ridge = problem.records.lam + self.slacks(problem, run)[0]
            eta = outputs.local_steps(problem, run.eta, ridge)
            descent = LocalDescent(problem, eta, ridge, self.linear(problem, run))
            for i, state in enumerate(trajectory(descent, at)):
                kept[i, k] = state.mean(weights)
        return kept
