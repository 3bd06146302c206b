"""Released gradients with one Gaussian noise vector added after aggregation: what MPC Grad P, WD-DP and a trusted
centre have in common. They differ in the owners' weights alone.

Guarantees: record replace-one neighbours, sizes public. The sensitivity of the aggregate is 2G max_j(w_j/n_j); T
releases are accounted for together; every intermediate model is covered, being post-processing.
"""

from collections.abc import Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from dpmpc.privacy.gaussian import gaussian_epsilon
from dpmpc.privacy.sensitivity import gradient_sensitivity
from dpmpc_experiments.descent import descend, descend_through
from dpmpc_experiments.method import Aggregate, Claim, Run, gaussian
from dpmpc_experiments.noise import generator
from dpmpc_experiments.records import Problem

Array = NDArray[np.float64]
Weights = Literal["equal", "size"]


def claim(problem: Problem, run: Run, weights: Weights) -> Claim:
    """The Gaussian noise of one release, with the claim of the run's calibration and the tight epsilon at its delta."""
    delta_2 = sensitivity(problem, weights)
    sigma = gaussian(run, delta_2)
    budget = (run.epsilon, run.delta)
    if sigma == 0.0:
        return Claim("none", 0.0, budget, (float("inf"), 0.0))
    return Claim("gaussian", sigma, budget, (gaussian_epsilon(sigma, run.delta, delta_2, run.iterations), run.delta))


def sensitivity(problem: Problem, weights: Weights) -> float:
    """The L2 sensitivity of the aggregated gradient."""
    return gradient_sensitivity(G=problem.records.loss.G, sizes=problem.sizes, weights=weights).l2


def models(
    name: str, problem: Problem, runs: Sequence[Run], at: Sequence[int], weights: Weights, aggregate: Aggregate | None
) -> Array:
    """The models of each run, (len(at), len(runs), d)."""
    delta_2, lam = sensitivity(problem, weights), problem.records.lam
    sigma = np.array([gaussian(run, delta_2) for run in runs])
    eta = np.array([run.eta for run in runs])
    if aggregate is not None:
        through = [
            descend_through(problem, aggregate, kind=weights, law="gaussian", scale=float(s), eta=run.eta, at=at)
            for s, run in zip(sigma, runs, strict=True)
        ]
        return np.stack(through, axis=1)
    streams = [generator(run.seed, name, run.epsilon, run.calibration) for run in runs]
    return descend(
        problem,
        weights=problem.weights(weights),
        noise=lambda _: sigma[:, None] * np.stack([rng.standard_normal(problem.records.d) for rng in streams]),
        steps=lambda _: eta,
        ridge=np.full(len(runs), lam),
        at=at,
    )
