"""Gradient perturbation: an owner sends its mean gradient at the public iterate, which descends.

Source: Rajkumar and Agarwal 2012; Jayaraman et al. 2018, section 3.2 (noise after aggregation).
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from dpmpc.data.blocks import Records
from dpmpc.learning.method import Floats, Ints, Learning, Method, project
from dpmpc.privacy.law import DEFAULT_LAW
from dpmpc.privacy.sensitivity import Sensitivity, Weights, gradient_sensitivity
from dpmpc.privacy.spread import amplification

if TYPE_CHECKING:
    from dpmpc.learning.rehearsal import Stage  # with solvers, which a party does without


class GradientMethod(Method):
    name = "gradient"
    repeats = True
    law = DEFAULT_LAW
    lam = 0.001
    tasks = ("logistic", "ridge", "softmax")
    help = "--iterations releases of mean gradients"

    def clip(self, learning: Learning) -> float:
        """G, times the largest `factor`."""
        return 2 * learning.loss.G if _knows_theta(learning) else learning.loss.G

    def factor(self, learning: Learning, theta: Floats) -> float:
        """2G over how far two records' gradients can lie apart at theta (`privacy.spread`): the vectors then have the
        sensitivity of theta = infinity, which the noise is made for, at every theta."""
        if not _knows_theta(learning):
            return 1.0

        return amplification(float(np.linalg.norm(theta)))

    def reach(self, learning: Learning) -> float:
        """G. An owner's vector is a mean of its records' gradients, times `factor`: two such means lie in the convex
        hull of all gradients that records can have at theta, which is no wider than the set itself, 2G / `factor`."""
        return learning.loss.G

    def sensitivity(self, learning: Learning, sizes: Sequence[int], weights: Weights, rounding: float) -> Sensitivity:
        return gradient_sensitivity(G=learning.loss.G, sizes=sizes, weights=weights, rounding=rounding)

    def vectors(self, learning: Learning, theta: Floats, records: Records, offsets: Ints) -> Floats:
        from dpmpc.learning.erm_blocks import owner_gradients  # and SciPy, which a party does without

        return owner_gradients(learning.loss, theta, records, offsets)

    def update(self, learning: Learning, theta: Floats, mean: Floats) -> Floats:
        theta = theta - learning.step_length * (mean + learning.lam * theta)
        return theta if learning.radius is None else project(theta[None, :], learning.radius)[0]

    def rehearse_descent(self, stage: "Stage", sigma: float, iterations: int, step: float) -> dict[str, float]:
        return stage.gradient(sigma, iterations, step)


def _knows_theta(learning: Learning) -> bool:
    return learning.spread == "theta" and learning.task == "logistic"


GRADIENT = GradientMethod()
