"""One release of the owners' mean of y x: the direction from one class to the other."""

from collections.abc import Sequence

import numpy as np

from dpmpc.learning.method import Floats, Ints, Learning, Method
from dpmpc.privacy.sensitivity import Sensitivity, Weights, gradient_sensitivity
from dpmpc.records.blocks import Records


class Centroid(Method):
    name = "centroid"
    repeats = False
    law = "gaussian"
    lam = 0.01
    help = "one release, the mean of y x"

    def clip(self, learning: Learning) -> float:
        return 1.0  # records lie in the unit ball, labels in [-1, 1]

    def sensitivity(self, learning: Learning, sizes: Sequence[int], weights: Weights, dimension: int) -> Sensitivity:
        return gradient_sensitivity(G=1.0, sizes=sizes, weights=weights)

    def vectors(self, learning: Learning, theta: Floats, records: Records, offsets: Ints) -> Floats:
        sums = np.add.reduceat(records.X * records.y[:, None], offsets[:-1], axis=0)
        return np.asarray(sums / np.diff(offsets)[:, None])

    def update(self, learning: Learning, theta: Floats, mean: Floats) -> Floats:
        return mean


CENTROID = Centroid()
