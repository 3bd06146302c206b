"""Third line of evidence: an empirical lower bound on epsilon, which must not exceed the claim.

A canary is one record of one owner that has one of two values, the furthest apart that a record's influence can get;
the other records are the same. Whoever knows all other records guesses which value it was, from one coordinate of the
opened vector against a threshold. (epsilon, delta)-privacy bounds how much better than chance any such guess can be:
P(guess = 1 | 1) <= e^epsilon P(guess = 1 | 0) + delta, and likewise with 0 and 1 exchanged.
Source: Jagielski, Ullman, Oprea 2020, section 4; the intervals are Clopper and Pearson's.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpmpc.verify.verdict import Check, Evidence

ALPHA = 1e-9
ENOUGH = 0.95  # of the sensitivity: influence that a canary must have, or its audit says little
THRESHOLDS = tuple(float(z) for z in np.linspace(-1, 5, 13))  # in units of the claimed scale; fixed before any trial


@dataclass(frozen=True)
class Trials:
    """Independent guesses: `scores` = (opened - the sum without noise if the bit were 0) / scale, and the bits.

    `shift`: what the accounting bounds the influence of a record by. `influence`: (least, largest) influence of a
    canary on its coordinate of the exact sum. Both in units of the scale. `epsilon`, `delta`: claimed of one release.
    """

    name: str
    scores: NDArray[np.float64]
    bits: NDArray[np.bool_]
    shift: float
    influence: tuple[float, float]
    epsilon: float
    delta: float


@dataclass(frozen=True)
class Bound:
    """epsilon is at least `epsilon`, with confidence 1 - alpha; found at `threshold` for the guess `guess`."""

    epsilon: float
    threshold: float
    guess: int


def clopper_pearson(hits: int, trials: int, alpha: float) -> tuple[float, float]:
    """(low, high): each is wrong with probability at most alpha."""
    from scipy.stats import beta

    low = float(beta.ppf(alpha, hits, trials - hits + 1)) if hits else 0.0
    high = float(beta.isf(alpha, hits + 1, trials - hits)) if hits < trials else 1.0
    return low, high


def epsilon_bound(trials: Trials, alpha: float = ALPHA) -> Bound:
    """The best lower bound over all thresholds and both guesses; alpha is shared out between them."""
    thresholds = (trials.shift / 2, *THRESHOLDS)
    each = alpha / (4 * len(thresholds))
    best = Bound(0.0, math.nan, 1)
    ones, zeros = np.sort(trials.scores[trials.bits]), np.sort(trials.scores[~trials.bits])
    if not len(ones) or not len(zeros):
        return best
    for z in thresholds:
        for guess, threshold in ((1, z), (0, trials.shift - z)):
            above = [len(part) - int(np.searchsorted(part, threshold)) for part in (ones, zeros)]
            hits, false = above if guess else (len(zeros) - above[1], len(ones) - above[0])
            of_hits, of_false = (len(ones), len(zeros)) if guess else (len(zeros), len(ones))
            low = clopper_pearson(hits, of_hits, each)[0] - trials.delta
            high = clopper_pearson(false, of_false, each)[1]
            if low > 0 and (bound := math.log(low / high)) > best.epsilon:
                best = Bound(bound, threshold, guess)
    return best


def check_audit(audits: Sequence[Trials]) -> Evidence:
    """Two verdicts for each audit: a record's influence is what is accounted for, neither more nor (an audit without
    power) much less; the empirical bound does not exceed the claimed epsilon."""
    checks = []
    for trials in audits:
        least, largest = (value / trials.shift for value in trials.influence)
        detail = f"{least:.4f} .. {largest:.4f} of the sensitivity"
        figures = {"least": least, "largest": largest}
        checks.append(
            Check(f"influence of a record ({trials.name})", ENOUGH <= least and largest <= 1, detail, figures)
        )
        bound = epsilon_bound(trials)
        detail = f"epsilon >= {bound.epsilon:.3f} found, {trials.epsilon:.3f} claimed, {trials.bits.size} trials"
        found = {"found": bound.epsilon, "claimed": trials.epsilon, "delta": trials.delta, "trials": trials.bits.size}
        checks.append(Check(f"audit ({trials.name})", bound.epsilon <= trials.epsilon, detail, found))
    note = "a bound from below: it can refute a claim, and says nothing of attacks that do better than a threshold"
    return Evidence("audit", tuple(checks), ALPHA * len(audits), note)
