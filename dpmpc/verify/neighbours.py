"""Whether a part of the releases copies what stands near: the release before, or other coordinates of the same release.

Where few releases are made wrongly, correlations over all of them do not show it: products of scores are summed over
parts (`parts`). False alarms: ALPHA for the check. A sum of products along paths has the bound of
`goodness.autocorrelation_tail` with no cycles; two halves of one release have Student's law.
"""

import math

import numpy as np

from dpmpc.noise import goodness
from dpmpc.privacy.exact import Reals
from dpmpc.verify.parts import PartGrid, Parts
from dpmpc.verify.scores import Sample
from dpmpc.verify.verdict import ALPHA, Check

_FAMILIES = 6  # three kinds of neighbours, by values and by magnitudes; each has its share of ALPHA
_FEW = 16  # coordinates with halves that are too short to tell a copy from chance
Found = tuple[float, str]  # p-value, what it is of


def neighbours_check(sample: Sample) -> Check:
    """No part of the releases is correlated with the releases before, no release's coordinates with each other at any
    distance, no half of a release with the other or with that of the release before."""
    name = f"no copies of neighbours ({sample.name})"
    k, d = sample.noise.shape
    best: Found = (1.0, "none")
    for kind, scores in (("values", sample.normal), ("magnitudes", sample.sizes)):
        if k > 1:
            best = min(best, _releases_before(kind, scores))
        if d > 1:
            best = min(best, _within(kind, scores))
        if d >= _FEW:
            best = min(best, _halves(kind, scores))
    seen = []
    if k > 1:
        grid = PartGrid.of((k - 1, d))
        for what in ("all", "every 10th", "every 50th", "one"):
            weight = grid.releases.weight(what)
            if weight is not None:
                r = _seen(weight[0] * grid.coordinates.groups[0].weight, weight[1] * d)
                seen += [f"{r:.2g} in {what} release{'s' * (what == 'all')}"] if r < 1 else []
    power = f"would fail where {', '.join(seen)} copy the one before, by correlation" if seen else "would fail at none"
    return Check(name, best[0] >= ALPHA, f"least likely: {best[1]}, p = {best[0]:.3g}; {power}", {"p_value": best[0]})


def _log_tail(sums: Reals, edges: Reals | int) -> Reals:
    """log of a bound on P(sum of products over `edges` edges of paths >= sums); elementwise."""
    return goodness.product_tail(sums, np.broadcast_to(np.asarray(edges, dtype=np.float64), sums.shape))


def _releases_before(kind: str, scores: Reals) -> Found:
    """By coordinates, over all parts of releases and coordinates."""
    products = scores[1:] * scores[:-1]
    grid = PartGrid.of(products.shape)
    sums = grid.sums(products)
    np.abs(sums, out=sums)
    largest = grid.extremes(sums, largest=True)
    log_p = _log_tail(largest, grid.sizes) - np.log(grid.weights) + math.log(2 * _FAMILIES)
    at = np.unravel_index(int(log_p.argmin()), log_p.shape)
    groups = int(at[0]), int(at[1])
    where = grid.name(sums, float(largest[groups]), groups)
    return math.exp(min(0.0, float(log_p[groups]))), f"{kind} with those one release later: {where}"


def _within(kind: str, scores: Reals) -> Found:
    """Coordinates at each distance, not cyclically, over all parts of releases."""
    k, d = scores.shape
    size = 1 << (2 * d - 1).bit_length()
    spectrum = np.fft.rfft(scores, size, axis=1)
    products = np.fft.irfft(spectrum.conj() * spectrum, size, axis=1)[:, 1:d]  # (K, d - 1): sums over each release
    parts = Parts("release", k)
    sums = np.abs(parts.sums(products))
    largest = np.maximum.reduceat(sums, parts.begins, axis=0)  # (groups, d - 1)
    edges = np.outer([g.size for g in parts.groups], np.arange(d - 1, 0, -1)).astype(np.float64)
    shares = np.array([g.weight for g in parts.groups])[:, None] / (d - 1)
    log_p = _log_tail(largest, edges) - np.log(shares) + math.log(2 * _FAMILIES)
    group, lag = divmod(int(log_p.argmin()), d - 1)
    first = int(parts.begins[group])
    part = first + int(np.argmax(sums[first : first + parts.groups[group].count, lag]))
    p = math.exp(min(0.0, float(log_p[group, lag])))
    return p, f"{kind} with those {lag + 1} coordinates further in {parts.name(part)}"


def _halves(kind: str, scores: Reals) -> Found:
    """Each half of a release with the other half, and with that of the release before: Student's law."""
    half = scores.shape[1] // 2
    one, two = scores[:, :half], scores[:, -half:]
    pairs = [
        (one, two, "one half with the other in release {}"),
        (one[1:], one[:-1], "the first half of release {} with the next one's"),
        (two[1:], two[:-1], "the second half of release {} with the next one's"),
    ]
    best: Found = (1.0, "none")
    tests = 3 * len(scores)
    for a, b, text in pairs:
        norms = np.maximum(np.linalg.norm(a, axis=1) * np.linalg.norm(b, axis=1), 1e-100)
        r = np.abs((a * b).sum(axis=1)) / norms
        if len(r):
            at = int(r.argmax())
            p = min(1.0, _FAMILIES * tests * goodness.correlation_tail(float(r[at]), half))
            best = min(best, (p, f"{kind} of " + text.format(at)))
    return best


def _seen(weight: float, edges: int) -> float:
    """The correlation at which so many products are found, about; 1 where none is."""
    level, low, high = math.log(ALPHA * weight / (2 * _FAMILIES)), 0.0, 1.0
    if float(_log_tail(np.array(float(edges)), edges)) > level:
        return 1.0
    while high - low > 1e-4:
        r = (low + high) / 2
        low, high = (low, r) if float(_log_tail(np.array(r * edges), edges)) < level else (r, high)
    return min(1.0, high + 3.1 * math.sqrt((1 + high**2) / edges))
