"""GOP: a trusted centre minimises the whole objective plus a Gaussian linear term.

Source: Rajkumar and Agarwal 2012, Algorithm 4 and Theorem 4.1 (see `slack.gaussian_objective_scale` for the corrected
condition on sigma*).
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dpmpc.lazy import dataclass
from dpmpc.learning import erm
from dpmpc_experiments.method import Aggregate, Claim, Run
from dpmpc_experiments.methods.psgd import Psgd
from dpmpc_experiments.noise import generator
from dpmpc_experiments.outputs import no_mpc
from dpmpc_experiments.records import Problem


@dataclass(frozen=True)
class Gop:
    name: str = "GOP"
    sends: str = "its records, to a trusted centre"
    noise: str = "one Gaussian linear term in the whole objective, by the centre"

    def claim(self, problem: Problem, run: Run) -> Claim:
        budget = (run.epsilon, run.delta)
        return Claim("gaussian, in the objective", Psgd().sigma(problem, run) / problem.n, budget, budget)

    def models(
        self, problem: Problem, runs: Sequence[Run], at: Sequence[int], aggregate: Aggregate | None = None
    ) -> NDArray[np.float64]:
        """The same model at every point of `at`: GOP solves, it does not iterate."""
        no_mpc(self.name, aggregate)
        loss, d = problem.records.loss, problem.records.d
        solved = []
        for run in runs:
            extra = Psgd().slack(problem, run)[0]
            eta = Psgd().sigma(problem, run) * generator(run.seed, self.name, run.epsilon).standard_normal(d)
            lam = problem.records.lam + extra
            solved.append(erm.solve(loss, problem.X, problem.y, lam, linear=eta / problem.n).theta)
        return np.repeat(np.stack(solved)[None], len(at), axis=0)
