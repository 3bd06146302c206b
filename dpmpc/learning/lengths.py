"""How long a descent is, of which steps, and with which momentum: by the noise and the number of features alone."""

import math
from typing import NamedTuple

from dpmpc.errors import UsageError
from dpmpc.learning.losses import Loss

# of 1/(L + lam): below 2 every descent is stable, whatever the records. Longer steps would overshoot where records
# share a direction, which is not public (docs/experiments.md, "How long a step"); momentum saves releases, as stable
STEP_SHARE = 1.5
REPEATED = 4.0  # iterations, of so many without momentum: this times their root; fewer lose on what is learnt last
SETTLES = 8.0  # iterations that are said, over what momentum takes to build up, 1/(1 - momentum), at least
LENGTHS = {"ridge": 2.0, "softmax": 1.5}  # L times the length, over reach/sqrt(d): docs/accuracy.md
LENGTH = 1.0  # of all others
CURVED = {"logistic": 3.0, "ridge": 5.0}  # times that at most, where records are many
GROWS = {"logistic": 7000.0 / 3, "ridge": 1500.0}  # the reach from which it grows so, in proportion
LONGEST = 10_000.0  # L times the length, at most
FARTHEST = 1e6  # L times a step that somebody says, at most
LEARNT = 2.6  # over lam: a length by which e^-5 is left of the slowest direction
ENOUGH = 0.1  # lam times length: what a descent stopped there does not feel
LAMS = (1e-6, 1e-3)  # of a descent, least and most
FEWEST = 10  # iterations: tail averages need some
# records over one deviation of the noise (`reach`) from which a surveyed number bends, at all and for each column that
# is surveyed: docs/accuracy.md
BENT = {"logistic": 7000.0, "ridge": 1000.0}
BENT_COLUMN = 50.0


def reach(loss: Loss, deviation: float) -> float:
    """2 G over the noise a coordinate of one release of mean gradients: about n mu, how many records stand against one
    deviation of the noise."""
    return 2 * loss.G / deviation


class DescentRule(NamedTuple):
    """How a descent is run."""

    iterations: int
    step: float
    lam: float
    momentum: float


def check_step(step: float, L: float, lam: float, momentum: float) -> None:
    """Errors: UsageError for a step with which an iterate runs off whatever the records are: lam alone makes it larger
    from release to release (Polyak 1964), or one noisy gradient takes it beyond what numbers can say."""
    most = min(2 * (1 + momentum) / lam, FARTHEST / L)
    if not step <= most:
        raise UsageError(
            f"a <<step>> is at most {most:.3g} with lam {lam:g}, or a model runs off whatever the records are; got "
            f"{step:g}; leave it out",
            code="range",
            setting="step",
        )


def descent(
    task: str,
    loss: Loss,
    deviation: float,
    dimension: int,
    lam: float | None = None,
    momentum: float | None = None,
    iterations: int | None = None,
    step: float | None = None,
) -> DescentRule:
    """Of a descent with so many features one release of which would have noise of this deviation.

    Its length, step times iterations over 1 - momentum, grows with `reach` over sqrt(dimension): the longer, the more
    slow directions are learnt, and the more noise is left on a score, by as much. The step is the longest that is
    stable on any records. Momentum makes the same length of fewer releases, with as much noise in the model: in a flat
    direction the noise of T releases, each of T times the variance, adds up to length^2 of it, whatever T; in others
    to no more. lam, unless given, is too small to be felt at that length: stopping early is what keeps the model small.
    What is given stays as it is, and the rest follows from the same length, so that to say a number which the rule
    gives changes none of the others.
    Source: docs/accuracy.md.
    """
    near = reach(loss, deviation)
    return of_length(loss, length_of(loss, factor(task, near), near, dimension), lam, momentum, iterations, step)


def factor(task: str, near: float) -> float:
    """L times the length, over reach / sqrt(d), by the reach: the rule's c."""
    more = min(max(1.0, near / GROWS[task]), CURVED[task]) if task in CURVED else 1.0
    return LENGTHS.get(task, LENGTH) * more


def length_of(loss: Loss, c: float, near: float, dimension: int) -> float:
    """The length by a c, at a reach, of so many features."""
    return min(c * near / math.sqrt(dimension), LONGEST) / loss.L


def of_length(
    loss: Loss,
    length: float,
    lam: float | None = None,
    momentum: float | None = None,
    iterations: int | None = None,
    step: float | None = None,
) -> DescentRule:
    """A descent of this length, or shorter where the lam that is given leaves less to learn, or the iterations that are
    given are too few for it in stable steps. More of them than it takes make shorter steps."""
    if lam is None:
        lam = min(max(ENOUGH / length, LAMS[0]), LAMS[1])
    else:
        length = min(length, LEARNT / lam)
    plain = max(FEWEST, math.ceil(length * (loss.L + lam) / STEP_SHARE))
    if momentum is None:
        momentum = max(0.0, 1 - REPEATED / math.sqrt(plain))
        if iterations is not None:  # never binds at the number that the rule has
            momentum = min(momentum, max(0.0, 1 - SETTLES / iterations))
    if iterations is None:
        iterations = max(FEWEST, math.ceil(plain * (1 - momentum)))
    if step is None:
        step = min(length * (1 - momentum) / iterations, STEP_SHARE / (loss.L + lam))
    check_step(step, loss.L, lam, momentum)
    return DescentRule(iterations, step, lam, momentum)
