"""Third line of evidence: an empirical lower bound on what a release costs, which must not exceed the claim.

A canary is one record of one owner that has one of two values, the furthest apart that a record's influence can get;
the other records are the same. Whoever knows all other records guesses which value it was from the opened vector, by
the statistic that tells the two best: for Gaussian noise the matched filter, that is the coordinate that the canary
moves; for Laplace noise, calibrated to the L1 norm of whole vectors, the likelihood ratio over all coordinates, with a
canary that moves them all alike. Where one release costs so little that no number of guesses could show it, several
records of one owner are replaced together: k records cost k times as much.

Privacy bounds how much better than chance any such guess can be. A pure or (epsilon, delta) claim: P(guess = 1 | 1) <=
e^epsilon P(guess = 1 | 0) + delta, and likewise with 0 and 1 exchanged. A Gaussian claim of mu: z(P(guess = 1 | 1)) <=
z(P(guess = 1 | 0)) + mu, z the normal quantile.
Source: Jagielski, Ullman, Oprea 2020, section 4; Nasr et al. 2023 (mu); the intervals are Clopper and Pearson's.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from dpmpc.lazy import dataclass
from dpmpc.privacy.tails import at_least, at_most
from dpmpc.verify.power import describe, fails_below
from dpmpc.verify.verdict import ALPHA, Check, Evidence

ENOUGH = 0.95  # of the sensitivity: influence that a canary must have, or its audit says little
THRESHOLDS = tuple(float(z) for z in np.linspace(-1, 5, 13))  # in units of the claimed scale; fixed before any trial
RATIOS = (0.0, 0.2, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.999)  # of the claim: thresholds of a likelihood ratio


@dataclass(frozen=True)
class Trials:
    """Independent guesses: `scores` = (opened - the sum without noise if the bit were 0) / scale, and the bits.

    `shift`: what the accounting bounds the influence of a record by. `influence`: (least, largest) influence of a
    canary on its coordinate of the exact sum. Both in units of the scale. `epsilon`, `delta`: claimed of one release;
    `mu`: claimed of it, for Gaussian noise, and then what counts. `records` are replaced together, and the claims, the
    shift and the influence are those of all of them. `ratio`: the scores are logs of likelihood ratios. `narrowed`: (x)
    -> what the scores would have been with x times the noise; by default they move with it.
    """

    name: str
    scores: NDArray[np.float64]
    bits: NDArray[np.bool_]
    shift: float
    influence: tuple[float, float]
    epsilon: float
    delta: float
    mu: float | None = None
    records: int = 1
    ratio: bool = False
    narrowed: Callable[[float], NDArray[np.float64]] | None = None

    def with_noise(self, factor: float) -> "Trials":
        """The same trials, had the noise been `factor` times as wide."""
        if self.narrowed is not None:
            return replace(self, scores=self.narrowed(factor))
        moved = self.shift * self.bits
        return replace(self, scores=moved + factor * (self.scores - moved))

    def thresholds(self) -> list[tuple[float, float]]:
        """(for the guess 1: at or above, for the guess 0: below) pairs."""
        if self.ratio:
            return [(r * self.epsilon, -r * self.epsilon) for r in RATIOS]
        return [(z, self.shift - z) for z in (self.shift / 2, *THRESHOLDS)]


@dataclass(frozen=True)
class LeastEpsilon:
    """epsilon is at least `epsilon`, with confidence 1 - alpha; found at `threshold` for the guess `guess`."""

    epsilon: float
    threshold: float
    guess: int


def epsilon_bound(trials: Trials, alpha: float = ALPHA) -> LeastEpsilon:
    """The best lower bound on epsilon over all thresholds and both guesses; alpha is shared out between them."""

    def of(low: float, high: float) -> float:
        return math.log((low - trials.delta) / high) if low > trials.delta else 0.0

    return _bound(trials, alpha, of)


def mu_bound(trials: Trials, alpha: float = ALPHA) -> LeastEpsilon:
    """The best lower bound on mu, likewise."""
    from scipy.special import ndtri

    def of(low: float, high: float) -> float:
        return float(ndtri(low) - ndtri(high)) if low > 0 and high < 1 else 0.0

    return _bound(trials, alpha, of)


def _bound(trials: Trials, alpha: float, of: Callable[[float, float], float]) -> LeastEpsilon:
    """`of`: (at least so many hits, at most so many false ones) -> the bound."""
    thresholds = trials.thresholds()
    each = alpha / (4 * len(thresholds))
    best = LeastEpsilon(0.0, math.nan, 1)
    ones, zeros = np.sort(trials.scores[trials.bits]), np.sort(trials.scores[~trials.bits])
    if not len(ones) or not len(zeros):
        return best
    for pair in thresholds:
        for guess, threshold in zip((1, 0), pair, strict=True):
            above = [len(part) - int(np.searchsorted(part, threshold)) for part in (ones, zeros)]
            hits, false = above if guess else (len(zeros) - above[1], len(ones) - above[0])
            of_hits, of_false = (len(ones), len(zeros)) if guess else (len(zeros), len(ones))
            low = at_least(hits, of_hits, each)
            high = at_most(false, of_false, each)
            if (bound := of(low, high)) > best.epsilon:
                best = LeastEpsilon(bound, threshold, guess)
    return best


def check_audit(audits: Sequence[Trials]) -> Evidence:
    """Two verdicts for each audit: a record's influence is what is accounted for, neither more nor (an audit without
    power) much less; the empirical bound does not exceed the claim."""
    checks = []
    for trials in audits:
        least, largest = (value / trials.shift for value in trials.influence)
        detail = f"{least:.4f} .. {largest:.4f} of the sensitivity"
        figures: dict[str, object] = {"least": least, "largest": largest}
        checks.append(
            Check(f"influence of a record ({trials.name})", ENOUGH <= least and largest <= 1, detail, figures)
        )
        checks.append(_claim_check(trials))
    note = "a bound from below: it can refute a claim"
    misses = "attacks that do better than a threshold on what a canary moves"
    return Evidence("audit", tuple(checks), ALPHA * len(audits), note, misses)


def _claim_check(trials: Trials) -> Check:
    word, claimed = ("epsilon", trials.epsilon) if trials.mu is None else ("mu", trials.mu)

    def found(trials: Trials) -> float:
        return (epsilon_bound if trials.mu is None else mu_bound)(trials).epsilon

    bound = found(trials)
    power = fails_below(lambda x: found(trials.with_noise(x)) <= claimed)
    together = f" of {trials.records} records together" if trials.records > 1 else ""
    detail = f"{word} >= {bound:.4g} found, {claimed:.4g} claimed{together}, {trials.bits.size} trials; "
    figures = {
        "found": bound,
        "claimed": claimed,
        "measure": word,
        "delta": trials.delta,
        "trials": trials.bits.size,
        "records": trials.records,
        "fails_below": power,
    }
    return Check(f"audit ({trials.name})", bound <= claimed, detail + describe(power), figures)
