"""Weights of classes: what is said of them, the loss that they make, and probabilities for records as they are.

A record of class k counts w_k times, 0 < w_k <= 1, so a rare class is not drowned by a common one. A record may also
come with a weight of its own, 0 <= w <= 1 (`records.blocks.Records.weights`), a part of it like its features. Sums are
divided by the public number of records, never by a sum of weights, which would be private.

Guarantees: a weighted gradient w g lies between 0 and g. Every set of gradients that records can have at an iterate
holds 0, that of the zero record, so its convex hull holds all weighted gradients too, and no two of them lie further
apart than two unweighted ones can; nor does one lie further from 0. So G, L, `privacy.spread` and all sensitivities
stay as they are. That needs w <= 1; and weights of classes follow from no record: they are stated, or made of an opened
survey. The weight of a record may be whatever its owner says of that record alone: it is replaced with it.
"""

import math
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from dpmpc.errors import UsageError
from dpmpc.intake.spelling import named
from dpmpc.lazy import dataclass
from dpmpc.learning.losses import Loss
from dpmpc.learning.softmax import probabilities
from dpmpc.records.schema import Classes, Labels, Target

Floats = NDArray[np.float64]
BALANCED = "balanced"


def names_of(target: Target) -> tuple[str, ...]:
    """The classes in the order of their weights: (negative, positive), or all. Errors: the target has none."""
    if isinstance(target, Labels):
        return target.negative_name, target.positive_name
    if isinstance(target, Classes):
        return target.names
    raise UsageError(f"<<class_weight>> is for classes; '{target.name}' is a quantity; leave it out", code="together")


def parsed(text: str, target: Target) -> tuple[float, ...]:
    """The weights that "CLASS=W,..." states, the largest scaled to 1; a class that is not named has 1.

    Errors: UsageError for a class that is not there, or a weight that is not positive."""
    names = names_of(target)
    given = dict.fromkeys(names, 1.0)
    for part in text.split(","):
        name, equals, number = part.rpartition("=")
        try:
            weight = float(number)
        except ValueError:
            weight = math.nan
        known = named(name, names)
        if not equals or known is None or not (0 < weight < math.inf):
            raise UsageError(
                f"weights of classes are {BALANCED}, or each class with a number above 0; got {part.strip()[:40]!r}; "
                f"write for example <<class_weight={names[0]}=0.2,{names[1]}=1>>",
                code="range",
            )
        given[known] = weight
    return scaled(tuple(given.values()))


def scaled(weights: Sequence[float]) -> tuple[float, ...]:
    """The same with 1 for the largest; () where all are equal."""
    top = max(weights)
    found = tuple(weight / top for weight in weights)
    return () if min(found) == 1 else found


def stated(weights: Mapping[str, float]) -> str:
    """Weights as text."""
    return ",".join(f"{name}={weight:.6g}" for name, weight in weights.items())


def balancing(counts: Sequence[float], noise: float) -> tuple[float, ...]:
    """Weights that make classes count alike, by their noisy counts, whose errors have deviation `noise`: below 3
    deviations a count says no more than that."""
    known = [max(count, 3 * noise, 1.0) for count in counts]
    return tuple(min(known) / count for count in known)


def check_weights(weights: Sequence[float], classes: int) -> None:
    """Errors: UsageError unless there is one in (0, 1] for each class, or none at all."""
    good = all(isinstance(w, int | float) and not isinstance(w, bool) and 0 < w <= 1 for w in weights)
    if weights and (not good or len(weights) != classes or max(weights) != 1):
        raise UsageError(
            f"a plan's weights of classes lie in (0, 1], one for each of {classes}, the largest 1; got "
            f"{list(weights)[:4]}; plan again",
            code="plan",
        )


@dataclass(frozen=True)
class Weighted:
    """A loss whose records count by their class: of labels -1 and +1, or, if `several`, of classes 0 .. K - 1 with K
    scores each. G and L are those of the loss."""

    loss: Loss
    weights: tuple[float, ...]
    several: bool = False

    @property
    def name(self) -> str:
        return self.loss.name

    @property
    def G(self) -> float:
        return self.loss.G

    @property
    def L(self) -> float:
        return self.loss.L

    def of(self, y: Floats) -> Floats:
        """(n,) the weight of each record."""
        w = np.asarray(self.weights)
        return np.asarray(w[y.astype(np.int64)] if self.several else np.where(y > 0, w[1], w[0]))

    def value(self, s: Floats, y: Floats) -> Floats:
        return np.asarray(self.of(y) * self.loss.value(s, y))

    def derivative(self, s: Floats, y: Floats) -> Floats:
        return self._times(self.loss.derivative(s, y), y)

    def second_derivative(self, s: Floats, y: Floats) -> Floats:
        return self._times(self.loss.second_derivative(s, y), y)

    def _times(self, values: Floats, y: Floats) -> Floats:
        w = self.of(y)
        return np.asarray(values * (w[:, None] if self.several else w))


def corrected(target: Target, scores: Floats, weights: Sequence[float] | None) -> Floats:
    """(n,) the probability of the positive class, or (n, K) of each, for records as they are: a model of weighted
    classes has w times the odds."""
    w = np.log(np.asarray(weights, dtype=np.float64)) if weights else None
    if isinstance(target, Labels):
        shift = 0.0 if w is None else float(w[1] - w[0])
        return np.asarray(0.5 * (1 + np.tanh((scores - shift) / 2)))
    return probabilities(scores if w is None else scores - w)
