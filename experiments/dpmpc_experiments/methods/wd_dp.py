"""WD-DP: as MPC Grad P, with owners weighed by n_j/n, so that every record counts the same.

Source: Kang et al. 2019, Theorem 1. Departures: its algorithm adds noise of this size at each client and averages
after T local rounds, which its proof does not cover; the proof is of noise added once to the weighted mean gradient,
which is what is done here. Its constant c is not given; the run's calibration is (c = 8 is Jayaraman et al.'s).
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dpmpc.lazy import dataclass
from dpmpc_experiments import gradient
from dpmpc_experiments.method import Aggregate, Claim, Run
from dpmpc_experiments.records import Problem


@dataclass(frozen=True)
class WdDp:
    name: str = "WD-DP"
    sends: str = "n_j times its mean gradient, each iteration"
    noise: str = "one Gaussian vector an iteration, inside MPC after aggregation"

    def claim(self, problem: Problem, run: Run) -> Claim:
        return gradient.claim(problem, run, "size")

    def models(
        self, problem: Problem, runs: Sequence[Run], at: Sequence[int], aggregate: Aggregate | None = None
    ) -> NDArray[np.float64]:
        return gradient.models(self.name, problem, runs, at, "size", aggregate)
