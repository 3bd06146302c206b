"""A trusted centre that holds all records: without privacy (the bound from above) and with gradient perturbation.

Source: Wang, Ye and Xu 2017 for the private one, noise sigma^2 = c G^2 T ln(1/delta)/(n epsilon)^2 on every gradient.
With the same constant it is WD-DP with a single owner: the two have the same law, whatever the owners' sizes.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from dpmpc.lazy import dataclass
from dpmpc_experiments import gradient
from dpmpc_experiments.method import Aggregate, Claim, Run
from dpmpc_experiments.outputs import no_mpc
from dpmpc_experiments.records import Problem


@dataclass(frozen=True)
class CentralGradP:
    name: str = "Centralised private"
    sends: str = "its records, to a trusted centre"
    noise: str = "one Gaussian vector an iteration, by the centre"

    def claim(self, problem: Problem, run: Run) -> Claim:
        return gradient.claim(problem, run, "size")

    def models(
        self, problem: Problem, runs: Sequence[Run], at: Sequence[int], aggregate: Aggregate | None = None
    ) -> NDArray[np.float64]:
        no_mpc(self.name, aggregate)
        return gradient.models(self.name, problem, runs, at, "size", None)


@dataclass(frozen=True)
class Central:
    name: str = "Centralised non-private"
    sends: str = "its records, to a trusted centre"
    noise: str = "none"

    def claim(self, problem: Problem, run: Run) -> Claim:
        return Claim("none", 0.0, (float("inf"), 0.0), (float("inf"), 0.0))

    def models(
        self, problem: Problem, runs: Sequence[Run], at: Sequence[int], aggregate: Aggregate | None = None
    ) -> NDArray[np.float64]:
        no_mpc(self.name, aggregate)
        one = gradient.models(self.name, problem, [replace(runs[0], epsilon=float("inf"))], at, "size", None)
        return np.repeat(one, len(runs), axis=1)
