"""The law's shape and its tails, over all samples of a law together: what bins of equal probability do not see.

Noise of another shape with the right variance may differ by a few per cent in its third or fourth moment, or only
beyond some deviations. Both are looked at over all numbers of owners at once, for there are more values. False alarms:
each check ALPHA, for every number of samples, with the law's own errors counted.
"""

import math
from collections.abc import Callable, Sequence

import numpy as np

from dpmpc.privacy.exact import Reals
from dpmpc.verify.scores import Sample
from dpmpc.verify.verdict import ALPHA, Check

_EDGES = np.arange(-4.5, 4.51, 0.25)  # of bins, in deviations of a normal number
_TAILS = np.arange(2.0, 5.01, 0.125)  # likewise: beyond so many
_CDF = 1e-8  # what a law's cdf may be off by (`exact.ExactLaw`)
_STEPS = 80  # of a search for the least of a convex function
_LARGEST = 2.0  # exponent of a moment's bound, over its deviation
_Z_MISSED = 3.1  # deviations: less than this is missing with the probability MISSED
_MOMENTS: tuple[tuple[str, Callable[[Reals], Reals]], ...] = (
    ("third moment", lambda z: z**3 - 3 * z),
    ("fourth moment", lambda z: z**4 - 6 * z**2 + 3),
)


def shape_check(law: str, samples: Sequence[Sample]) -> Check:
    """The third and fourth moments of the scores, in bins a quarter of a deviation wide, are those of the law.

    By Chernoff: P(sum of h(x) >= t) <= E[exp(lam h)]^N exp(-lam t) for every lam > 0 and every N, with the
    probabilities of bins as the exact law has them and their error on top.
    """
    middle = np.concatenate([[_EDGES[0] - 0.25], (_EDGES[1:] + _EDGES[:-1]) / 2, [_EDGES[-1] + 0.25]])
    tables = [_binned(sample, _EDGES) for sample in samples]
    n = sum(int(counts.sum()) for counts, _ in tables)
    best, seen, share = (1.0, "none", 0.0), [], ALPHA / (2 * len(_MOMENTS))
    for name, moment in _MOMENTS:
        h = moment(middle)
        means = [float(p @ h) for _, p in tables]
        each = list(zip(tables, means, strict=True))
        deviation = math.sqrt(sum(float(c.sum()) * float(p @ (h - m) ** 2) for (c, p), m in each))
        total = sum(float(c @ (h - m)) for (c, _), m in each)

        def bound(t: float, h: Reals = h, means: list[float] = means, deviation: float = deviation) -> float:
            """log P(|sum| >= t), at most."""
            return max(_chernoff(tables, [sign * (h - m) for m in means], t, deviation) for sign in (1.0, -1.0))

        log_p = math.log(2 * len(_MOMENTS)) + bound(abs(total))
        best = min(best, (math.exp(min(0.0, log_p)), name, total / n))
        low, high = 4.0, 64.0  # deviations of the sum
        for _ in range(8):
            z = (low + high) / 2
            low, high = (low, z) if bound(z * deviation) < math.log(share) else (z, high)
        seen.append(f"{(high + _Z_MISSED) * deviation / n:.2g} of the {name}")
    detail = f"least likely: {best[1]} off by {best[2]:.2g}, p = {best[0]:.3g}; would fail at {' or '.join(seen)}"
    return Check(f"shape ({law}, all owners)", best[0] >= ALPHA, detail, {"p_value": best[0]})


def _binned(sample: Sample, edges: Reals) -> tuple[Reals, Reals]:
    """(counts, probabilities) of the bins whose edges are these deviations of a normal number."""
    from scipy.special import ndtr

    at = sample.exact.quantiles(np.asarray(ndtr(edges)))
    values = np.sort(sample.noise.reshape(-1))
    counts = np.diff(np.searchsorted(values, at, side="right"), prepend=0, append=len(values)).astype(np.float64)
    return counts, np.maximum(sample.exact.between(at), 0.0)


def _chernoff(tables: Sequence[tuple[Reals, Reals]], h: Sequence[Reals], t: float, deviation: float) -> float:
    """The least of sum n log E[exp(lam h)] - lam t over lam: a convex function of lam."""

    def at(lam: float) -> float:
        total = -lam * t
        for (c, p), each in zip(tables, h, strict=True):
            most = float(np.max(lam * each))  # so that no exponential is larger than a computer holds
            total += float(c.sum()) * (most + math.log(float((p + 2 * _CDF) @ np.exp(lam * each - most))))
        return total

    low, high = 0.0, _LARGEST * max(t, deviation) / deviation**2
    for _ in range(_STEPS):
        one, two = low + (high - low) * 0.382, low + (high - low) * 0.618
        low, high = (low, two) if at(one) < at(two) else (one, high)
    return min(0.0, at((low + high) / 2))


def tails_check(law: str, samples: Sequence[Sample]) -> Check:
    """As many values lie beyond 2, 2 1/8, ... deviations as the law has there: counts that are binomial, exactly."""
    from scipy.special import bdtr, bdtrc, ndtr, ndtri

    n = sum(sample.noise.size for sample in samples)
    ranks = [np.sort(np.abs(sample.noise).reshape(-1)) for sample in samples]
    best, share = (1.0, 0.0, 0, 0.0), 2 * len(_TAILS)
    for z in _TAILS:
        found, low, high = 0, 1.0, 0.0
        for sample, values in zip(samples, ranks, strict=True):
            edge = int(sample.exact.quantiles(np.array([ndtr(z)]))[0])
            found += len(values) - int(np.searchsorted(values, edge, side="right"))
            beyond = float(1.0 - np.diff(sample.exact.cdf(np.array([-edge - 1, edge])))[0])
            low, high = min(low, max(0.0, beyond - 2 * _CDF)), max(high, beyond + 2 * _CDF)
        p = min(float(bdtr(found, n, low)), float(bdtrc(found - 1, n, high)) if found else 1.0)
        best = min(best, (min(1.0, share * p), float(z), found, n * (low + high) / 2))
    needed = 1 - (ALPHA / share) ** (1 / n)  # a part of the values that is beyond, so that none of them is a miracle
    cut = float(-ndtri(needed / 2))
    detail = (
        f"least likely: {best[2]} beyond {best[1]:g} deviations, {best[3]:.4g} expected, p = {best[0]:.3g}; would fail "
        f"where noise is cut at {cut:.2f} deviations or nearer"
    )
    return Check(f"tails ({law}, all owners)", best[0] >= ALPHA, detail, {"p_value": best[0], "cut": cut})
