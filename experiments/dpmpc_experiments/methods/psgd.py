"""PSGD: gradient descent on noisy sums of gradients; one Gaussian vector eta per party for the whole run, and a fresh
vector rho per party and iteration.

Source: Rajkumar and Agarwal 2012, Algorithm 1 with Procedures 2 and 3. The step sizes are not given; z_t = z_1 /
(1 + z_1 (lam + Delta) (t - 1)) has a divergent sum and a finite sum of squares, as asked. rho has density
exp(-epsilon |rho|_2/(2G)), which spends epsilon at *every* iteration (their own equation (13)); their Theorem 4.2
counts eta alone.

"printed" takes sigma* from the condition as it stands in Procedure 3, without the square of its proof: next to no
noise.

"as drawn" is what Figure 1 of Jayaraman et al. 2018 looks like, not what the method is: a constant step, one copy of
each noise, Laplace coordinates for rho and sigma* = 2G sqrt(2 log(1.25/delta))/epsilon, which does not grow with d.
"""

import math
from collections.abc import Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from dpmpc.lazy import dataclass
from dpmpc.privacy.laplace import laplace_epsilon
from dpmpc.privacy.literature import rajkumar_printed_root
from dpmpc_experiments.descent import descend
from dpmpc_experiments.method import Aggregate, Claim, Run
from dpmpc_experiments.noise import generator, laplace_sum, norm_sum
from dpmpc_experiments.outputs import no_mpc
from dpmpc_experiments.records import Problem
from dpmpc_experiments.slack import gaussian_objective_scale, slack


@dataclass(frozen=True)
class Psgd:
    name: str = "Rajkumar and Agarwal"
    reading: Literal["algorithm", "printed", "as drawn"] = "algorithm"
    sends: str = "its noisy sum of gradients, each iteration"
    noise: str = "by each party: one Gaussian vector for the run, one vector exp(-|v|_2) each iteration"

    def slack(self, problem: Problem, run: Run) -> tuple[float, float]:
        """(Delta, epsilon')."""
        if run.noiseless:
            return 0.0, run.epsilon
        return slack(run.epsilon, problem.records.lam, problem.n, problem.records.loss.L)

    def sigma(self, problem: Problem, run: Run) -> float:
        """sigma* of the sum over parties of eta, on the sum of gradients."""
        if run.noiseless:
            return 0.0
        if self.reading == "as drawn":
            return 2.0 * problem.records.loss.G * math.sqrt(2.0 * math.log(1.25 / run.delta)) / run.epsilon
        if self.reading == "printed":
            left = self.slack(problem, run)[1]
            return problem.records.loss.G * rajkumar_printed_root(problem.records.d, left, run.delta)
        return problem.records.loss.G * gaussian_objective_scale(
            self.slack(problem, run)[1], run.delta, problem.records.d
        )

    def claim(self, problem: Problem, run: Run) -> Claim:
        """The true total is that of T pure releases, composed optimally; nothing is proved for what is drawn."""
        drawn = self.reading == "as drawn"
        total = math.inf if drawn else laplace_epsilon(1.0, run.epsilon, run.iterations, run.delta)
        return Claim(
            "gaussian, once", self.sigma(problem, run) / problem.n, (run.epsilon, run.delta), (total, run.delta)
        )

    def models(
        self, problem: Problem, runs: Sequence[Run], at: Sequence[int], aggregate: Aggregate | None = None
    ) -> NDArray[np.float64]:
        no_mpc(self.name, aggregate)
        d, n, drawn = problem.records.d, problem.n, self.reading == "as drawn"
        streams = [generator(run.seed, self.name, run.epsilon) for run in runs]
        fixed = np.stack(
            [self.sigma(problem, run) * g.standard_normal(d) for run, g in zip(runs, streams, strict=True)]
        )
        ridge = problem.records.lam + np.array([self.slack(problem, run)[0] for run in runs])
        first = np.minimum([run.eta for run in runs], 1.0 / (problem.records.loss.L + ridge))
        rho = np.array([0.0 if run.noiseless else 2.0 * problem.records.loss.G / run.epsilon for run in runs])
        copies = 1 if drawn else problem.m
        draw = laplace_sum if drawn else norm_sum

        def noise(t: int) -> NDArray[np.float64]:
            fresh = [draw(g, np.full(copies, s), d) for g, s in zip(streams, rho, strict=True)]
            return (fixed + np.stack(fresh)) / n

        def steps(t: int) -> NDArray[np.float64]:
            return first if drawn else first / (1.0 + first * ridge * (t - 1))

        return descend(problem, weights=problem.weights("size"), noise=noise, steps=steps, ridge=ridge, at=at)
