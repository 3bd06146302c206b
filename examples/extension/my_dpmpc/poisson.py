"""Poisson regression: a count's expectation is exp(score) times the top of its range, so no prediction is negative.

With u = count / top in [0, 1] the Poisson loss is exp(s) - u s, whose derivative exp(s) - u no constant bounds. Two
changes bound it:

- a score above 0 counts as 0, so that a prediction is the top of the range at most: the derivative becomes
  exp(min(s, 0)) - u, in [-1, 1];
- it is clipped to [-c, c], as ridge regression's residual is.

With y = 2u - 1, the target on the schema's scale, and m(s) = 2 exp(min(s, 0)) - 1, the derivative is r = clip(m(s) - y,
-c, c).

Guarantees: m grows with s, so r does, and the loss, its integral, is convex. |r| <= G = c. m has the slope 2 exp(s) <=
2 below 0 and 0 above, and clipping only makes a slope 0, so L = 2. With records in the unit ball, no gradient is longer
than c, and every bound for G-Lipschitz convex losses holds.
Source: McCullagh and Nelder 1989, chapter 6 (the loss, which is a quasi-likelihood for u); the bounds are ours.
"""

from dataclasses import dataclass

import numpy as np

from dpmpc.extend import Descent, Floats, Loss, Range, Target, Task, UsageError


@dataclass(frozen=True)
class PoissonLoss:
    """The integral over the score of clip(m(s) - y, -c, c); c = `clip`."""

    clip: float
    name: str = "poisson"
    L: float = 2.0

    @property
    def G(self) -> float:
        return self.clip

    def value(self, s: Floats, y: Floats) -> Floats:
        """The integral of m - y over the scores a..b at which it is not clipped, and of -c and c beyond them."""
        u = (y + 1) / 2
        low, high = u - self.clip / 2, u + self.clip / 2  # of exp(s): where the residual is -c, and c
        a = np.where(low > 0, np.log(np.maximum(low, 1e-300)), -np.inf)
        b = np.where(high < 1, np.log(np.clip(high, 1e-300, 1.0)), np.inf)
        inside = np.clip(s, a, b)
        flat = np.maximum(inside, 0.0)  # above 0 the expectation stays at the top
        bent = inside - flat
        core = 2 * (np.exp(bent) - u * bent) + 2 * (1 - u) * flat
        return np.asarray(core + self.clip * np.abs(s - inside))

    def derivative(self, s: Floats, y: Floats) -> Floats:
        return np.clip(expected(s) - y, -self.clip, self.clip)

    def second_derivative(self, s: Floats, y: Floats) -> Floats:
        free = (np.abs(expected(s) - y) <= self.clip) & (s < 0)
        return np.asarray(np.where(free, 2 * np.exp(np.minimum(s, 0.0)), 0.0))


def expected(s: Floats) -> Floats:
    """m(s): the expectation on the schema's scale, where -1 is a count of 0 and 1 the top of the range."""
    return np.asarray(2 * np.exp(np.minimum(s, 0.0)) - 1)


class PoissonRegression(Task):
    name = "poisson"
    kind = "number"
    help = "gives an expected count"

    def loss(self, how: Descent) -> Loss:
        return PoissonLoss(how.residual_clip)

    def taken(self, target: Target) -> Target:
        """From 0 to the top of its range."""
        assert isinstance(target, Range)
        if target.high <= 0:
            raise UsageError(f"a count has a range above 0; '{target.name}' ends at {target.high:g}; mend its range")
        return Range(target.name, 0.0, target.high)

    def link(self, scores: Floats) -> Floats:
        return expected(scores)


POISSON_REGRESSION = PoissonRegression()
