"""Aggregated local models with output noise: what Pathak, Local Out P, MPC Out P and local aggregation have in common.

Each point of a trajectory is the model that would be released if the owners stopped there, with noise of its own; a
trajectory as a whole is not a release. After t updates with step eta <= 2/(L + 2 lam) the model of n_j records changes
by at most 2G/(n_j lam) (1 - (1 - eta lam)^t) when one record does, so the bound for exact minimisers covers every
point.
"""

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from dpmpc.errors import UsageError
from dpmpc_experiments.local import LocalDescent, trajectory
from dpmpc_experiments.method import Aggregate, Run
from dpmpc_experiments.records import Problem

Array = NDArray[np.float64]
Release = Callable[[LocalDescent, Run, int], Array]  # the model (d,) released from the local models after t updates


def models(problem: Problem, runs: Sequence[Run], at: Sequence[int], release: Release) -> Array:
    """The released models, (len(at), len(runs), d). The local models are the same for all runs, which share eta."""
    lam = np.full(problem.m, problem.records.lam)
    descent = LocalDescent(problem, local_steps(problem, runs[0].eta, lam), lam, None)
    kept = np.empty((len(at), len(runs), problem.records.d))
    for i, state in enumerate(trajectory(descent, at)):
        for k, run in enumerate(runs):
            kept[i, k] = release(state, run, at[i])
    return kept


def mean(state: LocalDescent) -> Array:
    """The equal-weight mean of the local models, (d,)."""
    return state.mean(state.problem.owner_weights("equal"))


def local_steps(problem: Problem, eta: float, ridge: Array) -> Array:
    """Each owner's step size, (m,): eta, or 1/(L + ridge) where eta would be too long for descent to contract."""
    return np.minimum(eta, 1.0 / (problem.records.loss.L + ridge))


def no_mpc(name: str, aggregate: Aggregate | None) -> None:
    """Refuse real parties for a method that has none."""
    if aggregate is not None:
        raise UsageError(
            f"only methods with noise after aggregation run in MPC; {name} has it elsewhere; use no parties",
            code="together",
        )
