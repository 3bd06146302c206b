"""Whether every part of the noise, of releases by coordinates, is as wide as claimed, centred, and of the claimed law.

False alarms: each check ALPHA, shared out by the parts' weights (`parts`). Sums of magnitudes are chi-square and sums
of scores normal, exactly; the law's divergence is bounded for every number of samples.
"""

import math

import numpy as np

from dpmpc.noise.goodness import bins
from dpmpc.privacy.exact import Integers, Reals
from dpmpc.privacy.tails import chi_square_above, chi_square_below
from dpmpc.verify.parts import PartGrid, Parts
from dpmpc.verify.scores import Sample
from dpmpc.verify.verdict import ALPHA, MISSED, Check, untested

_BINS = 16
_KINDS = {"one": "one {}", "every 10th": "every 10th {}", "every 50th": "every 50th {}"}


def variance_by_part(sample: Sample) -> Check:
    """No part of releases and coordinates has noise that is too narrow or too wide, by both tails of chi-square."""
    from scipy.special import chdtrc, gammainc

    grid = PartGrid.of(sample.noise.shape)
    (out, degrees, power), (inward, _, _) = sample.magnitudes(1), sample.magnitudes(-1)
    sums = grid.sums(out), grid.sums(inward)
    extremes = grid.extremes(sums[0], largest=False), grid.extremes(sums[1], largest=True)
    of = degrees * grid.sizes
    p_low = 2 * gammainc(of / 2, np.maximum(extremes[0], 0.0) / 2) / grid.weights
    p_high = 2 * chdtrc(of, extremes[1]) / grid.weights
    wide = int(p_high.min() < p_low.min())
    p = (p_low, p_high)[wide]
    at = np.unravel_index(int(p.argmin()), p.shape)
    groups = int(at[0]), int(at[1])
    value = float(extremes[wide][groups])
    factor = (max(value, 0.0) / float(of[groups])) ** (power / 2)
    where = grid.name(sums[wide], value, groups)
    return _check(
        sample,
        "every part as wide as claimed",
        float(p.min()),
        f"least likely: {where}, {factor:.2f} times the scale",
        _widths_seen(grid, degrees, power),
    )


def _widths_seen(grid: PartGrid, degrees: int, power: int) -> str:
    """Below which scale some kinds of parts are found, with probability 0.999."""
    found = []
    for kind, text in _KINDS.items():
        for parts, other in ((grid.releases, grid.coordinates), (grid.coordinates, grid.releases)):
            weight, all_ = parts.weight(kind), other.weight("all")
            if weight is None or all_ is None or parts.n == 1:
                continue
            df = degrees * weight[1] * all_[1]
            ratio = chi_square_below(ALPHA * weight[0] * all_[0] / 2, df) / chi_square_above(MISSED, df)
            found.append(f"{ratio ** (power / 2):.2f} in {text.format(parts.noun)}")
    return f"would fail below these times the scale: {', '.join(found)}" if found else "one value: as `scale`"


def mean_by_part(sample: Sample) -> Check:
    """No part of releases and coordinates has noise with another mean than 0 (half of ALPHA), or with more values of
    one sign than a fair coin has (the other half; an exact 0 counts for the rarer sign)."""
    from scipy.special import bdtrc, log_ndtr

    grid = PartGrid.of(sample.noise.shape)
    z = grid.sums(sample.normal)
    np.abs(z, out=z)
    largest = grid.extremes(z, largest=True)
    shares = 2 * math.log(2) - np.log(grid.weights)  # two tails, half of ALPHA
    p_mean = np.exp(np.minimum(0.0, shares + log_ndtr(-largest / np.sqrt(grid.sizes))))
    signs = [grid.sums((sign * sample.noise > 0).astype(np.float64)) for sign in (1, -1)]
    alike = np.maximum(signs[0], signs[1], out=signs[0])
    most = grid.extremes(alike, largest=True)
    p_sign = np.minimum(1.0, np.exp(shares) * bdtrc(most - 1, grid.sizes.astype(np.int64), 0.5))
    by_signs = bool(p_sign.min() < p_mean.min())
    p, seen, sums = (p_sign, most, alike) if by_signs else (p_mean, largest, z)
    at = np.unravel_index(int(p.argmin()), p.shape)
    groups = int(at[0]), int(at[1])
    share = float(seen[groups]) / float(grid.sizes[groups])
    where = grid.name(sums, float(seen[groups]), groups)
    found = f"{share:.0%} of one sign in {where}" if by_signs else f"{share:.2g} scores in {where}"
    shifts = []
    for text, kinds in (("all", ("all", "all")), ("one release", ("one", "all")), ("one coordinate", ("all", "one"))):
        r, c = grid.releases.weight(kinds[0]), grid.coordinates.weight(kinds[1])
        if r is not None and c is not None:
            shifts.append(f"{_z(r[0] * c[0] / 2) / math.sqrt(r[1] * c[1]):.2g} in {text}")
    power = f"would fail at shifts of {', '.join(shifts)}, in normal scores{_signs_seen(grid)}"
    return _check(sample, "mean of every part", float(p.min()), f"largest: {found}", power)


def _signs_seen(grid: PartGrid) -> str:
    """How many values of one sign in one release are found, in words."""
    from scipy.special import bdtrc

    one, n = grid.releases.weight("one"), grid.coordinates.n
    if one is None:
        return ""
    weight = one[0] * grid.coordinates.groups[0].weight
    needed = next((s for s in range(n // 2, n + 1) if 4 * float(bdtrc(s - 1, n, 0.5)) / weight < ALPHA), None)
    return f"; {needed} of {n} signs alike in one release" if needed else ""


def _z(share: float) -> float:
    """The mean, in standard deviations, at which a normal statistic is found with 0.999 at this share of ALPHA."""
    from scipy.special import ndtri

    return float(-ndtri(ALPHA * share / 2) - ndtri(MISSED))


def spread(sample: Sample) -> Check:
    """Releases, and coordinates, do not differ in their variances more or less than chance has it.

    Each one's sum of magnitudes is chi-square; its normal score is exact, and so the sum of these scores' squares is
    chi-square again.
    """
    from scipy.special import chdtr, chdtrc, ndtri

    (out, degrees, power), (inward, _, _) = sample.magnitudes(1), sample.magnitudes(-1)
    found = []
    for axis, noun in ((1, "releases"), (0, "coordinates")):
        df, n = degrees * out.shape[axis], out.shape[1 - axis]
        if n == 1:
            continue
        below, above = chdtr(df, out.sum(axis=axis)), chdtrc(df, inward.sum(axis=axis))
        scores = np.where(below < above, ndtri(np.maximum(below, 1e-300)), -ndtri(np.maximum(above, 1e-300)))
        total = float(scores @ scores)
        p = min(1.0, 4 * min(float(chdtr(n, total)), float(chdtrc(n, total))))
        excess = chi_square_above(ALPHA / 4, n) / chi_square_below(MISSED, n) - 1
        found.append((p, noun, total / n, math.sqrt(excess / (df / 2)) * power / 2))
    if not found:
        return untested(f"spread of variances ({sample.name})", "one value alone")
    p, noun, ratio, _ = min(found)
    seen = ", ".join(f"{v:.0%} from one to another of the {noun}" for _, noun, _, v in found)
    return _check(
        sample,
        "spread of variances",
        p,
        f"least likely: the {noun}' variances vary {ratio:.2f} times as much as chance has it",
        f"would fail at scales that vary by {seen}",
    )


def law_by_part(sample: Sample) -> Check:
    """No release, coordinate, every k-th of them or stretch has noise of another law, by its relative entropy to the
    claimed law in 16 bins.

    P(KL >= e) <= exp(-n e) (e n e / (k - 1))^(k - 1) for n samples in k bins and n e > k - 1, whatever n.
    Source: Agrawal 2020, Finite-sample concentration of the multinomial in relative entropy, theorem 1.2.
    """
    edges, probabilities = bins(sample.exact, sample.noise.size, _BINS)
    k = len(probabilities)
    place = np.searchsorted(edges, sample.noise, side="left")
    best: tuple[float, str, float] = (1.0, "all releases", 0.0)
    seen = []
    for axis, noun in ((0, "release"), (1, "coordinate")):
        n = sample.noise.shape[axis]
        parts = Parts(noun, n)
        rows = place if axis == 0 else place.T
        counts = np.bincount((rows + k * np.arange(n)[:, None]).reshape(-1), minlength=n * k).reshape(n, k)
        table = parts.sums(counts.astype(np.float64))
        sizes = np.repeat([g.size for g in parts.groups], [g.count for g in parts.groups]) * rows.shape[1]
        weights = np.repeat([g.weight for g in parts.groups], [g.count for g in parts.groups]) / 2
        with np.errstate(divide="ignore", invalid="ignore"):
            terms = np.where(table > 0, table * np.log(table / (sizes[:, None] * probabilities)), 0.0)
        log_p = divergence_tail(terms.sum(axis=1), k) - np.log(weights)
        worst = int(np.argmin(log_p))
        found = math.exp(min(0.0, float(log_p[worst])))
        if found < best[0]:
            best = found, parts.name(worst), float(terms[worst].sum() / sizes[worst])
        for kind in ("one", "all"):
            weight = parts.weight(kind)
            if weight is not None and (kind, axis) != ("all", 1):
                needed = _divergence_seen(ALPHA * weight[0] / 2, k) / (weight[1] * rows.shape[1])
                seen.append(f"{needed:.2g} in {'all' if kind == 'all' else f'one {noun}'}")
    return _check(
        sample,
        "law of every part",
        best[0],
        f"least likely: {best[1]}, a divergence of {best[2]:.2g}",
        f"would fail at divergences of {', '.join(seen)} (uniform noise of the same variance: "
        f"{_of_uniform(sample, edges, probabilities):.2g})",
    )


def divergence_tail(total: Reals, bins: int) -> Reals:
    """log of a bound on P(n KL >= total), elementwise."""
    x = np.maximum(total, bins - 1.0)
    return np.asarray(-x + (bins - 1) * (1 + np.log(x / (bins - 1))), dtype=np.float64)


def _divergence_seen(alpha: float, bins: int) -> float:
    """n KL at which the bound is alpha, and what chance takes away of it, about."""
    low, high = float(bins - 1), 1e6
    while high - low > 1e-3:
        middle = (low + high) / 2
        enough = float(divergence_tail(np.array(middle), bins)) <= math.log(alpha)
        low, high = (low, middle) if enough else (middle, high)
    return high + 3.1 * math.sqrt(2 * high)


def _of_uniform(sample: Sample, edges: Integers, probabilities: Reals) -> float:
    """The divergence of uniform noise of the claimed variance from the claimed law, in these bins."""
    half = math.sqrt(3 * sample.exact.variance)
    cdf = np.clip((edges + half) / (2 * half), 0, 1)
    q = np.diff(cdf, prepend=0.0, append=1.0)
    return float(np.sum(np.where(q > 0, q * np.log(np.maximum(q, 1e-300) / probabilities), 0.0)))


def _check(sample: Sample, name: str, p: float, detail: str, power: str) -> Check:
    return Check(
        f"{name} ({sample.name})", p >= ALPHA, f"{detail}, p = {min(1.0, p):.3g}; {power}", {"p_value": min(1.0, p)}
    )
