"""Gradient descent inside MPC with what costs no privacy: averaged iterates, and noise scaled to theta.

At theta two records' logistic gradients differ by Delta(|theta|) < 2G at most (`privacy.spread`), so the noise of
iteration t is Delta(|theta_t|)/2 times that of a release of sensitivity 2G. Weights n_s/n. One model: the last
iterate or a tail average.
"""

from collections.abc import Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from dpmpc.lazy import dataclass
from dpmpc.privacy.spread import logistic_spread
from dpmpc_experiments import gradient
from dpmpc_experiments.method import Aggregate, Claim, Run, gaussian
from dpmpc_experiments.noise import generator
from dpmpc_experiments.outputs import no_mpc
from dpmpc_experiments.records import Problem

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Tuned:
    name: str = "Descent, tail average"
    aware: bool = False
    average: Literal["tail", "none"] = "tail"
    sends: str = "n_j times its mean gradient, each iteration"
    noise: str = "one Gaussian vector an iteration, inside MPC after aggregation"

    def claim(self, problem: Problem, run: Run) -> Claim:
        return gradient.claim(problem, run, "size")

    def models(
        self, problem: Problem, runs: Sequence[Run], at: Sequence[int], aggregate: Aggregate | None = None
    ) -> Array:
        """The same model at every point of `at`: what the run of `iterations` releases returns."""
        no_mpc(self.name, aggregate)
        records, weight = problem.records, problem.weights("size")[:, None]
        U, v, _ = records.distinct
        sigma = np.array([gaussian(run, gradient.sensitivity(problem, "size")) for run in runs])[:, None]
        eta, T = np.array([run.eta for run in runs])[:, None], runs[0].iterations
        streams = [generator(run.seed, self.name, run.epsilon, run.calibration) for run in runs]
        theta, tail, counted = np.zeros((len(runs), records.d)), np.zeros((len(runs), records.d)), 0
        for t in range(1, T + 1):
            slope = records.loss.derivative(np.asarray(U @ theta.T), v[:, None]) * weight
            noise = sigma * np.stack([rng.standard_normal(records.d) for rng in streams])
            if self.aware:
                noise *= np.array([logistic_spread(float(np.linalg.norm(row))) / 2 for row in theta])[:, None]
            theta = theta - eta * (np.asarray(U.T @ slope).T + records.lam * theta + noise)
            if self.average == "tail" and 2 * t > T:
                counted += 1
                tail += (theta - tail) / counted
        return np.repeat((tail if counted else theta)[None], len(at), axis=0)
