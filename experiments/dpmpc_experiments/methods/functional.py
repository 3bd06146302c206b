"""The functional mechanism: owners send the coefficients of their quadratic objective, once; see
`learning.functional`.

Source: Zhang et al. 2012 (law "laplace", L1 sensitivity, pure epsilon); Imtiaz, Mohammadi and Sarwate 2019, sections
4.1-4.2 (Gaussian, L2) and their distributed form: made "mpc" inside MPC, "cape" and "none" at the sites, the budget
kept towards ceil(m/3) - 1 colluding sites as in `cape`.
"""

from collections.abc import Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from dpmpc.lazy import dataclass
from dpmpc.learning import functional
from dpmpc.privacy.cape import collusion_factor, most_colluding
from dpmpc.privacy.sensitivity import gradient_sensitivity
from dpmpc_experiments.method import Aggregate, Claim, Run, gaussian
from dpmpc_experiments.noise import generator
from dpmpc_experiments.outputs import no_mpc
from dpmpc_experiments.records import Problem

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Functional:
    name: str = "Functional"
    law: Literal["gaussian", "laplace"] = "gaussian"
    made: Literal["mpc", "cape", "none"] = "mpc"
    sends: str = "the d(d+3)/2 coefficients of its objective, once"
    noise: str = "one vector, after aggregation or at the sites"

    def scale(self, problem: Problem, run: Run) -> float:
        """Of the noise on the mean coefficients: a standard deviation, or a Laplace scale."""
        if run.noiseless:
            return 0.0
        spread = functional.SPREAD if self.law == "gaussian" else functional.l1_spread(problem.records.d)
        sensitivity = gradient_sensitivity(G=spread / 2, sizes=problem.sizes, weights="size").l2
        if self.law == "laplace":
            return sensitivity / run.epsilon
        factor = 1.0
        if self.made != "mpc":
            factor = collusion_factor(problem.m, problem.m - most_colluding(problem.m), self.made)
        return factor * gaussian(Run(run.seed, run.epsilon, run.delta, 1, run.eta, run.calibration), sensitivity)

    def claim(self, problem: Problem, run: Run) -> Claim:
        budget = (run.epsilon, run.delta if self.law == "gaussian" else 0.0)
        scale = self.scale(problem, run)
        return Claim(self.law, scale, budget, budget if scale else (float("inf"), 0.0))

    def models(
        self, problem: Problem, runs: Sequence[Run], at: Sequence[int], aggregate: Aggregate | None = None
    ) -> Array:
        """The same model at every point of `at`: one release, one minimum."""
        if self.made != "mpc":
            no_mpc(self.name, aggregate)
        records = problem.records
        solved = []
        for run in runs:
            scale = self.scale(problem, run)
            deviation = scale if self.law == "gaussian" else np.sqrt(2.0) * scale
            if aggregate is not None:
                parts = functional.owner_coefficients(problem.X, problem.y, problem.offsets)
                weighted = parts * (problem.owner_weights("size") * problem.m)[:, None]
                vector = aggregate(weighted, self.law, scale)
            else:
                rng = generator(run.seed, self.name, run.epsilon, run.calibration)
                exact = self._exact(problem)
                draw = rng.standard_normal(len(exact)) if self.law == "gaussian" else rng.laplace(size=len(exact))
                vector = exact + scale * draw
            task: functional.Task = "ridge" if records.loss.name.startswith("ridge") else "logistic"
            solved.append(functional.minimiser(vector, records.d, task, records.lam, float(deviation)))
        return np.repeat(np.stack(solved)[None], len(at), axis=0)

    def _exact(self, problem: Problem) -> Array:
        """The mean coefficients over all records, from distinct ones."""
        U, v, _ = problem.records.distinct
        weight = problem.weights("size")
        dense = U.toarray() if hasattr(U, "toarray") else U
        return functional.pack((weight * v) @ dense, (dense * weight[:, None]).T @ dense)
