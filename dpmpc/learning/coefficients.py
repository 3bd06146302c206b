"""The functional mechanism as a method: an owner sends the mean coefficients of the (quadratic) objective once, and the
model is the minimum of what is opened.

Source: Zhang et al. 2012; Imtiaz, Mohammadi and Sarwate 2019, sections 4.1-4.2; see `functional` for the mathematics.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from dpmpc.learning import functional
from dpmpc.learning.method import Floats, Ints, Learning, Method, project
from dpmpc.privacy.law import DEFAULT_LAW
from dpmpc.privacy.sensitivity import Sensitivity, Weights, record_sensitivity
from dpmpc.records.blocks import Records

if TYPE_CHECKING:
    from dpmpc.learning.rehearsal import RehearsalRecords  # with solvers, which a party does without


class FunctionalMethod(Method):
    name = "functional"
    repeats = False
    law = DEFAULT_LAW
    lam = 0.001
    help = "one release, the mean coefficients of the objective (ridge: exactly; logistic: its quadratic approximation)"

    def coordinates(self, features: int) -> int:
        return functional.coordinates(features)

    def clip(self, learning: Learning) -> float:
        return functional.NORM

    def sensitivity(self, learning: Learning, sizes: Sequence[int], weights: Weights, dimension: int) -> Sensitivity:
        return record_sensitivity(functional.spread(functional.features(dimension)), sizes, weights)

    def presence(self, learning: Learning, sizes: Sequence[int], weights: Weights, dimension: int) -> Sensitivity:
        return record_sensitivity(functional.reach(functional.features(dimension)), sizes, weights)

    def reach(self, learning: Learning) -> float:
        """SPREAD / 2: an owner's vector lies in the convex hull of its records' vectors, no wider than those."""
        return functional.SPREAD / 2

    def vectors(self, learning: Learning, theta: Floats, records: Records, offsets: Ints) -> Floats:
        from dpmpc.learning.erm_blocks import owner_coefficients  # and SciPy, which a party does without

        return owner_coefficients(records, offsets)

    def update(self, learning: Learning, theta: Floats, mean: Floats) -> Floats:
        return self.take(learning, theta, mean, 0.0)

    def take(self, learning: Learning, theta: Floats, mean: Floats, noise: float) -> Floats:
        assert learning.task in self.tasks  # `Learning` refuses others
        task: functional.Task = "ridge" if learning.task == "ridge" else "logistic"
        model = functional.minimiser(mean, len(theta), task, learning.lam, noise)
        return model if learning.radius is None else project(model[None, :], learning.radius)[0]

    def rehearse(
        self, stage: "RehearsalRecords", deviation: float, owners: int, records: int, lam: float
    ) -> float | None:
        return None if stage.dimension > stage.width else stage.functional(deviation, lam)


FUNCTIONAL = FunctionalMethod()
