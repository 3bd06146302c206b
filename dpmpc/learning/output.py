"""Output perturbation: an owner sends its own optimum once, and the mean of them is the model.

Source: Pathak, Rane, Raj 2010; Jayaraman et al. 2018, section 3.1 (noise after aggregation).
"""

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from dpmpc.errors import UsageError
from dpmpc.learning.losses import farthest
from dpmpc.learning.method import Floats, Ints, Learning, Method, project
from dpmpc.learning.softmax import SOFTMAX
from dpmpc.learning.task import Task
from dpmpc.privacy.law import PURE_LAW, law_for
from dpmpc.privacy.sensitivity import Sensitivity, Weights, output_sensitivity
from dpmpc.records.blocks import Records

if TYPE_CHECKING:
    from dpmpc.learning.rehearsal import RehearsalRecords  # with solvers, which a party does without


class OutputMethod(Method):
    name = "output"
    repeats = False
    law = PURE_LAW
    lam = 0.01  # the sensitivity is inverse to it
    lam_moves = True
    help = "one release, the mean of the owners' own models"

    def suits(self, task: Task) -> bool:
        """All of one score, and softmax: of other losses with several scores nobody finds the optimum here."""
        return task.kind != "several" or task.name == SOFTMAX.name

    def law_for(self, delta: float | None) -> str:
        """Gaussian noise where a delta is given: less of it from some nine features on."""
        return law_for(delta)

    def clip(self, learning: Learning) -> float:
        # an optimum satisfies lam theta = -mean gradient; what is sent is as near it as its gradient is small
        near = farthest(learning.loss, learning.lam) + learning.solver_tolerance / learning.lam
        clip = min(learning.loss.G / learning.lam, near)
        return clip if learning.radius is None else min(clip, learning.radius)

    def arithmetic(self, learning: Learning) -> float:
        # The optimum is that of a gradient that is computed to within so much; a radius does not make that less.
        return learning.loss.G / learning.lam

    def sensitivity(self, learning: Learning, sizes: Sequence[int], weights: Weights, dimension: int) -> Sensitivity:
        return self._moved(learning, sizes, weights, absent=False)

    def presence(self, learning: Learning, sizes: Sequence[int], weights: Weights, dimension: int) -> Sensitivity:
        """That of a record whose loss is constant, of zero features."""
        return self._moved(learning, sizes, weights, absent=True)

    def _moved(self, learning: Learning, sizes: Sequence[int], weights: Weights, absent: bool) -> Sensitivity:
        return output_sensitivity(
            G=learning.loss.G,
            lam=learning.lam,
            sizes=sizes,
            weights=weights,
            solver_gradient_norm=learning.solver_tolerance,
            presence=absent,
            farthest=farthest(learning.loss, learning.lam),
        )

    def check(self, learning: Learning) -> None:
        """Errors: UsageError for a tolerance that rounding keeps some records' optimum from (`reached`)."""
        if not learning.solver_tolerance >= (least := reached(learning)):
            raise UsageError(
                f"a local optimum reaches a gradient norm of <<solver_tolerance>> whatever the records are; "
                f"{learning.solver_tolerance:g} is below {least:.2g}, which doubles reach with lam {learning.lam:g}; "
                "raise either",
                code="range",
            )

    def vectors(self, learning: Learning, theta: Floats, records: Records, offsets: Ints) -> Floats:
        from dpmpc.learning.erm_blocks import optima  # and SciPy, which a party does without

        vectors, norms = optima(
            learning.loss, records, offsets, learning.lam, learning.solver_tolerance / 10, learning.classes
        )
        if norms.max() > learning.solver_tolerance:
            raise UsageError(  # neither who nor how far: both depend on records
                f"every local optimum must reach a gradient norm of {learning.solver_tolerance:g}; not all did; "
                "raise <<solver_tolerance>> or <<lam>>"
            )
        return vectors

    def update(self, learning: Learning, theta: Floats, mean: Floats) -> Floats:
        return mean if learning.radius is None else project(mean[None, :], learning.radius)[0]

    def rehearse(self, stage: "RehearsalRecords", deviation: float, owners: int, records: int, lam: float) -> float:
        return stage.output(deviation, owners, records, lam)


def reached(learning: Learning) -> float:
    """A gradient norm that the solver reaches for any records in doubles. A coordinate of theta, of norm G / lam at
    most, is rounded by half a unit, which moves the gradient by L + lam times that; its sums over records are rounded
    by some units of G. Sixteen times as much is room to spare. So who plans cannot have an owner's process stop, or go
    on, by what its records are. `tests/learning/test_no_record_stops.py` tries records of every kind there."""
    loss = learning.loss
    return 16 * sys.float_info.epsilon * loss.G * ((loss.L + learning.lam) / learning.lam + 100)


OUTPUT = OutputMethod()
