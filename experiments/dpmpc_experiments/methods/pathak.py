"""Pathak, and LA (local aggregation) of Rajkumar and Agarwal: local models are averaged under encryption and noise for
the smallest owner *alone* is added, as if the mean over m owners did not shrink that owner's part.

Source: Pathak et al. 2010, scale 2G/(n_(1) lam epsilon) on independent Laplace coordinates; Rajkumar and Agarwal 2012,
equations (2) and (5), the density exp(-|v|_2/scale) instead. For the first the L2 sensitivity does not suffice, but the
scale is m times too large, so that epsilon sqrt(d)/m holds.
"""

import math
from collections.abc import Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from dpmpc.lazy import dataclass
from dpmpc_experiments import outputs
from dpmpc_experiments.local import LocalDescent
from dpmpc_experiments.method import Aggregate, Claim, Run
from dpmpc_experiments.noise import generator, laplace_sum, norm_sum
from dpmpc_experiments.records import Problem


@dataclass(frozen=True)
class Pathak:
    name: str = "Pathak"
    law: Literal["laplace", "norm"] = "laplace"
    sends: str = "its local model, encrypted, once"
    noise: str = "one vector after aggregation, scaled to the smallest owner alone"

    def claim(self, problem: Problem, run: Run) -> Claim:
        pure = (run.epsilon, 0.0)
        if run.noiseless:
            return Claim(self.law, 0.0, pure, pure)
        scale = 2.0 * problem.records.loss.G / (float(problem.sizes.min()) * problem.records.lam * run.epsilon)
        spread = math.sqrt(problem.records.d) if self.law == "laplace" else 1.0
        return Claim(self.law, scale, pure, (run.epsilon * spread / problem.m, 0.0))

    def models(
        self, problem: Problem, runs: Sequence[Run], at: Sequence[int], aggregate: Aggregate | None = None
    ) -> NDArray[np.float64]:
        outputs.no_mpc(self.name, aggregate)
        draw = laplace_sum if self.law == "laplace" else norm_sum

        def release(state: LocalDescent, run: Run, t: int) -> NDArray[np.float64]:
            scale = np.array([self.claim(problem, run).scale])
            return outputs.mean(state) + draw(generator(run.seed, self.name, run.epsilon, t), scale, problem.records.d)

        return outputs.models(problem, runs, at, release)
