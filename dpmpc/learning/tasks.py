"""The tasks of this package: two classes, several classes, a quantity."""

import numpy as np

from dpmpc.learning.losses import LOGISTIC, Loss, ridge
from dpmpc.learning.settings import Descent
from dpmpc.learning.softmax import SOFTMAX
from dpmpc.learning.task import Floats, Task
from dpmpc.privacy.spread import amplification, logistic_reach, softmax_reach


class LogisticRegression(Task):
    """The loss is `losses.Logistic`; how far its gradients lie apart at an iterate is `privacy.spread`'s."""

    name = "logistic"
    kind = "two"
    spread = "pairs"
    help = "says which of two classes"
    rehearsed = True

    def loss(self, how: Descent) -> Loss:
        return LOGISTIC

    def amplification(self, theta: Floats, scores: int, presence: bool) -> float:
        norm = float(np.linalg.norm(theta))
        return 1 / logistic_reach(norm) if presence else amplification(norm)


class SoftmaxRegression(Task):
    """The loss is `softmax.Softmax`; how far its gradients reach at an iterate is `privacy.spread`'s."""

    name = "softmax"
    kind = "several"
    spread = "reach"
    help = "says which class"

    def loss(self, how: Descent) -> Loss:
        return SOFTMAX

    def amplification(self, theta: Floats, scores: int, presence: bool) -> float:
        """Two lie twice as far apart as one reaches, at most."""
        return SOFTMAX.G / softmax_reach(theta.reshape(-1, scores))


class RidgeRegression(Task):
    """The loss is `losses.Ridge`, whose residuals are clipped."""

    name = "ridge"
    kind = "number"
    help = "gives a number"
    rehearsed = True

    def loss(self, how: Descent) -> Loss:
        return ridge(how.residual_clip)


LOGISTIC_REGRESSION = LogisticRegression()
SOFTMAX_REGRESSION = SoftmaxRegression()
RIDGE_REGRESSION = RidgeRegression()
