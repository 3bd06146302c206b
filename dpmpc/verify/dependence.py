"""Whether scores know of each other: of coordinates, of releases, at every distance, of the data.

By two kinds of scores, each standard normal and independent for noise of its law: of the values, and of their
magnitudes, which do not see signs. False alarms: each check ALPHA. Correlations of two vectors have Student's law
exactly; autocorrelations have a bound for every number of samples (`goodness.autocorrelation_tail`).
"""

import math
from collections.abc import Iterator
from itertools import combinations_with_replacement

import numpy as np

from dpmpc.noise import goodness
from dpmpc.privacy.exact import Reals
from dpmpc.verify.parts import Parts
from dpmpc.verify.scores import Sample
from dpmpc.verify.verdict import ALPHA, MISSED, Check, untested

_KINDS = ("values", "magnitudes")
_FEW = 8  # coordinates with which no correlation of two releases is too large for chance


def coordinates_check(sample: Sample) -> Check:
    """No two coordinates are correlated, in the same release (half of ALPHA) or at any distance of releases (the other
    half): values with values, magnitudes with magnitudes, and in the same release values with magnitudes."""
    name = f"coordinates independent ({sample.name})"
    k, d = sample.noise.shape
    if k < 3:
        return untested(name, f"{k} release(s) are too few")
    same, apart = d * (d - 1) * 2, d * d * k  # numbers of correlations at most
    best = (1.0, "none", 0.0)
    if d > 1:
        for r, (one, other), i, j in _pairs([sample.normal.T, sample.sizes.T]):
            p = min(1.0, 2 * same * goodness.correlation_tail(r, k))
            best = min(best, (p, f"{one} of coordinate {i} with {other} of {j}", r))
    for kind, scores in zip(_KINDS, (sample.normal, sample.sizes), strict=True):
        p, i, j, lag, r = _at_distances(scores)
        where = f"{kind} of coordinate {i} with {kind} of {j}, {lag} releases later"
        best = min(best, (min(1.0, 2 * apart * p), where, r))
    sees = ", ".join(
        f"{_correlation_seen(ALPHA / 2 / n, k):.2f} {text}"
        for n, text in ((same, "in the same release"), (apart, "at some distance"))
        if n
    )
    power = f"would fail at correlations of two coordinates of {sees}"
    return Check(
        name, best[0] >= ALPHA, f"largest: {best[2]:.2f}, {best[1]}, p = {best[0]:.3g}; {power}", {"p_value": best[0]}
    )


def _pairs(scores: list[Reals]) -> Iterator[tuple[float, tuple[str, str], int, int]]:
    """(correlation, kinds, i, j) of the most correlated two different rows, for each two kinds. Rows (n, length)."""
    units = [x / np.maximum(np.linalg.norm(x, axis=1), 1e-300)[:, None] for x in scores]
    for a, b in combinations_with_replacement(range(len(units)), 2):
        r = np.abs(units[a] @ units[b].T)
        np.fill_diagonal(r, 0.0)
        i, j = divmod(int(r.argmax()), len(r))
        yield float(r[i, j]), (_KINDS[a], _KINDS[b]), i, j


def _at_distances(scores: Reals) -> tuple[float, int, int, int, float]:
    """(probability, i, j, lag, correlation) of the least likely correlation of column i with column j so many releases
    later, cyclically."""
    k, d = scores.shape
    spectra = np.fft.rfft(scores, axis=0)
    norms = np.maximum(np.linalg.norm(scores, axis=0), 1e-100)
    best, own = (1.0, 0, 0, 0, 0.0), np.zeros((d, k // 2))
    for i in range(d):
        sums = np.abs(np.fft.irfft(spectra[:, i : i + 1].conj() * spectra[:, i:], k, axis=0))[1:]
        if d > i + 1:
            r = sums[:, 1:] / (norms[i] * norms[i + 1 :])
            lag, j = divmod(int(r.argmax()), r.shape[1])
            p = goodness.correlation_tail(float(r[lag, j]), k)
            best = min(best, (p, i, i + 1 + j, lag + 1, float(r[lag, j])))
        own[i] = sums[: k // 2, 0]
    at, log_p = goodness.least_autocorrelation(own, k, np.arange(1, k // 2 + 1))
    i, lag = divmod(at, k // 2)
    return min(best, (2 * math.exp(log_p), i, i, lag + 1, float(own[i, lag]) / k))


def releases_check(sample: Sample) -> Check:
    """No two releases are correlated, coordinate by coordinate: by values, magnitudes, and by signs, whose agreements
    are binomial."""
    from scipy.special import bdtrc

    name = f"releases alike ({sample.name})"
    k, d = sample.noise.shape
    if d < _FEW or k < 2:
        return untested(name, f"{d} coordinate(s) are too few to tell a copy from chance")
    pairs = k * (k - 1) / 2
    best = (1.0, "none", 0.0)
    for r, (one, other), i, j in _pairs([sample.normal, sample.sizes]):
        p = min(1.0, 2 * 4 * pairs * goodness.correlation_tail(r, d))
        best = min(best, (p, f"a correlation of {one} of release {i} with {other} of {j}", r))
    signs = np.where(sample.normal < 0, -1.0, 1.0).astype(np.float32)
    agree = np.abs(signs @ signs.T)
    np.fill_diagonal(agree, 0.0)
    i, j = divmod(int(agree.argmax()), k)
    equal = (d + round(float(agree[i, j]))) // 2
    p = min(1.0, 2 * 2 * pairs * (float(bdtrc(equal - 1, d, 0.5)) if equal else 1.0))
    best = min(best, (p, f"equal or opposite signs of releases {i} and {j}", equal / d))
    needed = next((s for s in range(d // 2, d + 1) if 4 * pairs * float(bdtrc(s - 1, d, 0.5)) < ALPHA), None)
    power = f"would fail at a correlation of {_correlation_seen(ALPHA / 8 / pairs, d):.2f} of two releases"
    power += f", or {needed} of {d} signs alike" if needed else ""
    return Check(
        name, best[0] >= ALPHA, f"largest: {best[2]:.2f}, {best[1]}, p = {best[0]:.3g}; {power}", {"p_value": best[0]}
    )


def lags_check(sample: Sample) -> Check:
    """No release is a linear map of the one so many places before, whatever the map: for every distance, and for the
    order turned round.

    Such a map that keeps the law is a rotation, which keeps inner products: those of releases k and l are those of k
    and l some places later. With G the inner products, A releases and B their partners, which are others, the statistic
    is S = sum over k != l in A of G[k, l] G[k + L, l + L]. To turn the sign of a release in A changes nothing of its
    law, so given everything else S is a chaos of degree 2 in independent signs, of variance 2 sum (G G')^2 = s^2, and
    P(|S| >= t s) <= ((q - 1) / t)^q for every q >= 2. Exact for every number of releases and coordinates. A map of
    several releases, each with a part w of its variance, moves S by about w times as much.
    Source: hypercontractivity, Bonami 1970; O'Donnell, Analysis of Boolean Functions, theorem 9.21.
    """
    name = f"no release made of others ({sample.name})"
    k = len(sample.noise)
    pairs = math.sqrt(6) * _chaos_level(ALPHA / (2 * k))  # of which a rotation is found: E[G^4] = 3 E[G^2]^2
    if 2 * pairs > k:
        return untested(name, f"{k} releases are too few to tell a map from chance; {2 * math.ceil(pairs)} would do")
    X = sample.noise / sample.scale
    G = X @ X.T
    np.fill_diagonal(G, 0.0)
    best = (0.0, "none")
    for lag in range(1, k - math.ceil(pairs) + 1):
        a = np.flatnonzero(np.arange(k - lag) // lag % 2 == 0)  # a release and its partner are never both in it
        best = max(best, (_chaos(G[np.ix_(a, a)] * G[np.ix_(a + lag, a + lag)]), f"{lag} places later"))
    a = np.arange(k // 2)
    best = max(best, (_chaos(G[np.ix_(a, a)] * G[np.ix_(k - 1 - a, k - 1 - a)]), "in the order turned round"))
    p = min(1.0, 2 * k * math.exp(_log_chaos_tail(best[0])))
    power = f"would fail where each release is a rotation of the one at a distance of {k - math.ceil(pairs)} or less"
    detail = f"largest: {best[0]:.2f} deviations, {best[1]}, p = {p:.3g}; {power}"
    return Check(name, p >= ALPHA, detail, {"p_value": p, "pairs": math.ceil(pairs)})


def _chaos(M: Reals) -> float:
    """The sum of M (n, n), whose diagonal is 0, over its deviation under random signs of rows and columns alike."""
    spread = math.sqrt(2 * float((M**2).sum()))
    return abs(float(M.sum())) / spread if spread else 0.0


def _log_chaos_tail(t: float) -> float:
    """log P(|S| >= t deviations), at most, of a chaos of degree 2: the least over q >= 2 of q log((q - 1) / t)."""
    q = np.linspace(2.0, max(2.0, t / math.e + 2.0), 400)
    return min(0.0, float((q * np.log((q - 1) / max(t, 1e-9))).min()))


def _chaos_level(alpha: float) -> float:
    """The deviations that a chaos of degree 2 is beyond with probability `alpha` at most."""
    low, high = 1.0, 1e4
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (low, middle) if _log_chaos_tail(middle) < math.log(alpha) else (middle, high)
    return high


def distances_check(sample: Sample) -> Check:
    """No autocorrelation of all samples, release after release, by values and by magnitudes, over all distances."""
    outcomes = [goodness.lagged(scores.reshape(-1)) for scores in (sample.normal, sample.sizes)]
    p, kind, z = min((min(1.0, 2 * o.p_value), kind, o.statistic) for o, kind in zip(outcomes, _KINDS, strict=True))
    n = sample.noise.size
    power = f"would fail at a correlation of {(_z(ALPHA / (4 * n)) + _z(MISSED)) / math.sqrt(n):.2g} at one distance"
    detail = f"autocorrelation of {kind} {z:.3g}, p = {p:.3g}; {power}"
    return Check(f"releases independent ({sample.name})", p >= ALPHA, detail, {"p_value": p})


def data_check(sample: Sample) -> Check:
    """No correlation of noise, or of its magnitudes, with the exact sum, its size and the canaries' bits: over all
    coordinates together, by parts of releases (half of ALPHA), and of each coordinate with that of each (the other
    half). The data have no part in chance, so these are normal, exactly."""
    from scipy.special import log_ndtr

    k, d = sample.noise.shape
    sums = _centred(sample.sums.astype(np.float64))
    data = {"sum": sums, "size of the sum": _centred(np.abs(sums))}
    if sample.bits.shape[1]:
        data["bits of the canaries"] = _centred(np.where(sample.bits, 1.0, -1.0))
    best, parts = (1.0, "none", 0.0), Parts("release", k)
    weights = np.repeat([g.weight for g in parts.groups], [g.count for g in parts.groups])
    tests, pairs = len(data) * len(_KINDS), len(_KINDS) * sum(d * x.shape[1] for x in data.values())
    for kind, scores in zip(_KINDS, (sample.normal, sample.sizes), strict=True):
        for what, x in data.items():
            each = np.abs(scores.T @ x) / np.maximum(np.linalg.norm(x, axis=0), 1e-150)
            log_p = math.log(4 * pairs) + float(log_ndtr(-each.max()))
            where = f"coordinate {int(each.argmax()) // x.shape[1]}"
            best = min(best, (math.exp(min(0.0, log_p)), f"{kind} of {where} with the {what}", float(each.max())))
            above = parts.sums((scores[:, d - x.shape[1] :] * x).sum(axis=1))
            below = parts.sums((x**2).sum(axis=1))
            enough = below > 1e-9 * below[0]
            z = np.where(enough, np.abs(above) / np.sqrt(np.where(enough, below, 1.0)), 0.0)
            logs = math.log(4 * tests) + log_ndtr(-z) - np.log(weights)
            part = int(logs.argmin())
            p = math.exp(min(0.0, float(logs[part])))
            best = min(best, (p, f"{kind} of {parts.name(part)} with the {what}", float(z[part])))
    seen = [(_z(ALPHA / (4 * number)) + _z(MISSED)) / math.sqrt(n) for number, n in ((4 * tests, k * d), (pairs, k))]
    power = f"would fail at correlations of {seen[0]:.2g} in all, {seen[1]:.2g} of one coordinate"
    return Check(
        f"independent of the data ({sample.name})",
        best[0] >= ALPHA,
        f"largest: z = {best[2]:.2f}, {best[1]}, p = {best[0]:.3g}; {power}",
        {"p_value": best[0]},
    )


def _centred(x: Reals) -> Reals:
    return np.asarray(x - x.mean(axis=0), dtype=np.float64)


def _z(alpha: float) -> float:
    """The z above which a normal number is with probability `alpha`."""
    from scipy.special import ndtri

    return float(-ndtri(alpha))


def _correlation_seen(alpha: float, n: int) -> float:
    """The correlation of two vectors of n numbers that is found with probability 0.999, about (by Fisher's z)."""
    low, high = 0.0, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (low, middle) if goodness.correlation_tail(middle, n) < alpha else (middle, high)
    return math.tanh(math.atanh(min(high, 1 - 1e-12)) + _z(MISSED) / math.sqrt(max(1, n - 2)))
