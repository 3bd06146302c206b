"""Gradient perturbation: an owner sends its mean gradient at the public iterate, which descends.

Source: Rajkumar and Agarwal 2012; Jayaraman et al. 2018, section 3.2 (noise after aggregation).
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from dpmpc.learning.method import Floats, Ints, Learning, Method, project
from dpmpc.learning.task import TASKS, Task
from dpmpc.privacy.law import DEFAULT_LAW
from dpmpc.privacy.sensitivity import Sensitivity, Weights, gradient_sensitivity, record_sensitivity
from dpmpc.records.blocks import Records

if TYPE_CHECKING:
    from dpmpc.learning.rehearsal import RehearsalRecords  # with solvers, which a party does without


class GradientMethod(Method):
    name = "gradient"
    repeats = True
    weighs = True
    law = DEFAULT_LAW
    lam = 0.001
    help = "a release an iteration, of mean gradients"

    def suits(self, task: Task) -> bool:
        """All: of a task it takes the loss and its constants."""
        return True

    def clip(self, learning: Learning) -> float:
        """G, times the largest `factor` that a gradient of that norm may meet: the zero record has the gradient 0, so
        none is longer than two lie apart, and times 2G over that distance none is longer than 2G."""
        return 2 * learning.loss.G if _pairs_up(learning) else learning.loss.G

    def factor(self, learning: Learning, theta: Floats) -> float:
        """2G over how far two records' gradients can lie apart at theta (`Task.amplification`), or G over how far one
        can lie from zero: the vectors then have the sensitivity of theta = infinity, which the noise is made for, at
        every theta."""
        if not _knows_theta(learning):
            return 1.0
        return TASKS[learning.task].amplification(theta, learning.scores, learning.presence)

    def reach(self, learning: Learning) -> float:
        """G. An owner's vector is a mean of its records' gradients, times `factor`: two such means lie in the convex
        hull of all gradients that records can have at theta, which is no wider than the set itself: 2G / `factor` at
        most, for either factor."""
        return learning.loss.G

    def sensitivity(self, learning: Learning, sizes: Sequence[int], weights: Weights, dimension: int) -> Sensitivity:
        return gradient_sensitivity(G=learning.loss.G, sizes=sizes, weights=weights)

    def presence(self, learning: Learning, sizes: Sequence[int], weights: Weights, dimension: int) -> Sensitivity:
        """G/n_j, of a gradient that is not there; where `factor` is made for two of them, no less is claimed than for
        replacing one."""
        far = 2 * learning.loss.G if _pairs_up(learning) else learning.loss.G
        return record_sensitivity(Sensitivity(l2=far, parts={"loss": far}), sizes, weights)

    def vectors(self, learning: Learning, theta: Floats, records: Records, offsets: Ints) -> Floats:
        from dpmpc.learning.erm_blocks import owner_gradients  # and SciPy, which a party does without

        return owner_gradients(learning.loss, theta, records, offsets)

    def update(self, learning: Learning, theta: Floats, mean: Floats) -> Floats:
        theta = theta - learning.step_length * (mean + learning.lam * theta)
        return theta if learning.radius is None else project(theta[None, :], learning.radius)[0]

    def rehearse_descent(
        self, stage: "RehearsalRecords", sigma: float, iterations: int, step: float, lam: float, momentum: float
    ) -> dict[str, float]:
        return stage.gradient(sigma, iterations, step, lam, momentum)


def _knows_theta(learning: Learning) -> bool:
    return learning.spread == "theta" and TASKS[learning.task].spread != "fixed"


def _pairs_up(learning: Learning) -> bool:
    """Whether `factor` goes by how far two gradients lie apart, which may be less than twice how far one reaches."""
    return _knows_theta(learning) and TASKS[learning.task].spread == "pairs" and not learning.presence


GRADIENT = GradientMethod()
