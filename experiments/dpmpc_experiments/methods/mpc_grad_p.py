"""MPC Grad P: owners send mean gradients, one Gaussian noise vector is added inside MPC, owners weigh the same.

Source: Jayaraman et al. 2018, Theorem 3.4. It is also the equal-weight method that Kang et al. 2019 compare with.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dpmpc.lazy import dataclass
from dpmpc_experiments import gradient
from dpmpc_experiments.method import Aggregate, Claim, Run
from dpmpc_experiments.records import Problem


@dataclass(frozen=True)
class MpcGradP:
    name: str = "MPC Grad P"
    sends: str = "its mean gradient, each iteration"
    noise: str = "one Gaussian vector an iteration, inside MPC after aggregation"

    def claim(self, problem: Problem, run: Run) -> Claim:
        return gradient.claim(problem, run, "equal")

    def models(
        self, problem: Problem, runs: Sequence[Run], at: Sequence[int], aggregate: Aggregate | None = None
    ) -> NDArray[np.float64]:
        return gradient.models(self.name, problem, runs, at, "equal", aggregate)
