"""Second line of evidence: opened vector minus exact sum, over many releases, held against the claimed law.

Each test has a false-alarm probability of ALPHA or less; a power is stated for the scale. Values are in grid steps.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from dpmpc.noise import goodness
from dpmpc.privacy.exact import ExactLaw, Integers, Reals
from dpmpc.privacy.law import LAWS
from dpmpc.privacy.tails import chi_square_above, chi_square_below, chi_square_tail, student_tail
from dpmpc.verify.power import describe, fails_below
from dpmpc.verify.verdict import Check, Evidence

ALPHA = 1e-9
_MATCHES = 4_000_000
_MISSED = 1e-3  # probability with which a deviation of the stated size is missed


@dataclass(frozen=True)
class Sample:
    """The noise of K releases of m owners, as found: opened - exact sum (K, d), and the exact sums (K, d)."""

    owners: int
    law: str
    scale: float  # claimed, in grid steps
    discrete: bool
    noise: Integers
    sums: Integers
    bits: NDArray[np.bool_]  # (K, d - 1): which of two neighbouring data sets each canary's release had

    @property
    def exact(self) -> ExactLaw:
        return LAWS[self.law].exact(self.scale, self.discrete)

    @property
    def name(self) -> str:
        return f"{self.law}, m = {self.owners}"


def check_statistics(samples: Sequence[Sample]) -> Evidence:
    """The verdicts on `samples`: all tests for each of them, and one for each law over numbers of owners."""
    checks: list[Check] = []
    for sample in samples:
        scores = scores_of(sample)
        checks += [
            with_power(sample, scale_check),
            with_power(sample, _law_check),
            _tested(sample, "mean", _mean(scores), _sees("a shift of", _z_seen(1) / math.sqrt(scores.size), "scales")),
            _tested(
                sample,
                "coordinates independent",
                _coordinates(scores),
                _sees("a correlation of", _z_seen(scores.shape[1] ** 2 / 2) / math.sqrt(len(scores)), "of two"),
            ),
            _tested(
                sample,
                "releases independent",
                goodness.independence(sample.noise.reshape(-1), sample.exact),
                _sees("a correlation of", _z_seen(scores.size / 2) / math.sqrt(scores.size / 2), "at one distance"),
            ),
            repeats_check(sample),
            _tested(
                sample,
                "independent of the data",
                _data(sample, scores),
                _sees("a correlation of", _z_seen(3) / math.sqrt(scores.size), "with the data"),
            ),
        ]
    for law in sorted({sample.law for sample in samples}):
        same = [sample for sample in samples if sample.law == law]
        if len(same) > 1:
            checks.append(_owners_power(law, same))
    detectable = max((check.figures["detects"] for check in checks if "detects" in check.figures), default=math.inf)
    note = (
        f"a noise scale off by {detectable:.1%} of its variance is found with probability {1 - _MISSED:g}; "
        "noise added at another time, and openings beside the release, do not show here"
    )
    return Evidence("statistics", tuple(checks), ALPHA * len(checks), note)


def scores_of(sample: Sample) -> Reals:
    """Normal scores (K, d): standard normal if the noise has its law."""
    from scipy.special import ndtri

    law, x = sample.exact, sample.noise
    middle = (law.cdf(x) + law.cdf(x - 1)) / 2
    return np.asarray(ndtri(np.clip(middle, 1e-15, 1 - 1e-15)), dtype=np.float64)


def variance_ratio(sample: Sample, alpha: float = ALPHA) -> tuple[float, float, float, float]:
    """(variance over the claimed one, its interval of confidence 1 - alpha, the relative deviation found with 0.999).

    Exact: N r ~ chi^2(N) for Gaussian noise; for Laplace noise r = (mean |x| / b)^2, and 2 N sqrt(r) ~ chi^2(2 N).
    """
    statistic, degrees, power = LAWS[sample.law].scale_statistic(sample.noise, sample.scale, sample.discrete)
    low, high = chi_square_below(alpha / 2, degrees), chi_square_above(alpha / 2, degrees)
    worst = max(
        (high / chi_square_below(_MISSED, degrees)) ** power - 1,
        1 - (low / chi_square_above(_MISSED, degrees)) ** power,
    )
    ratio = statistic / degrees
    return ratio**power, (statistic / high) ** power, (statistic / low) ** power, worst


def scale_check(sample: Sample) -> Check:
    """The variance ratio's interval contains 1 and excludes 0, 2 and the number of owners."""
    ratio, low, high, detects = variance_ratio(sample)
    others = {0, 2, sample.owners} - {1}
    inside = [str(value) for value in sorted(others) if low <= value <= high]
    holds = low <= 1 <= high and not inside
    detail = f"variance / claimed = {ratio:.4f}, interval {low:.4f} .. {high:.4f}"
    if inside:
        detail += f", which does not exclude {', '.join(inside)}"
    return Check(f"scale ({sample.name})", holds, detail, {"ratio": ratio, "interval": [low, high], "detects": detects})


def with_power(sample: Sample, check: Callable[[Sample], Check]) -> Check:
    """The verdict, and how narrow the noise would have to be for it to be another."""
    return _with(check(sample), fails_below(lambda x: check(_narrowed(sample, x)).holds))


def _with(check: Check, power: float | None, where: str = "") -> Check:
    return replace(
        check, detail=f"{check.detail}; {describe(power)}{where}", figures={**check.figures, "fails_below": power}
    )


def _owners_power(law: str, samples: Sequence[Sample]) -> Check:
    power = fails_below(lambda x: _owners_check(law, [*samples[:-1], _narrowed(samples[-1], x)]).holds)
    return _with(_owners_check(law, samples), power, " for one number of owners alone")


def _narrowed(sample: Sample, factor: float) -> Sample:
    return replace(sample, noise=np.rint(factor * sample.noise).astype(np.int64))


def _law_check(sample: Sample) -> Check:
    return _tested(sample, "law", goodness.chi_square(sample.noise.reshape(-1), sample.exact))


def _z_seen(tests: float) -> float:
    """The mean, in standard deviations, at which the largest of so many normal statistics is found with 0.999."""
    from scipy.special import ndtri

    return float(-ndtri(ALPHA / (2 * max(tests, 1))) - ndtri(_MISSED))


def _sees(what: str, size: float, unit: str) -> str:
    return f"would fail at {what} {size:.2g} {unit}, whatever the scale"


def _tested(sample: Sample, name: str, outcome: goodness.Outcome, power: str = "") -> Check:
    figures = {"statistic": outcome.statistic, "degrees": outcome.degrees, "p_value": outcome.p_value}
    of = f" on {outcome.degrees} degrees of freedom" if outcome.degrees else ""
    detail = f"{outcome.name} {outcome.statistic:.4g}{of}, p = {outcome.p_value:.3g}"
    detail += f"; {power}" if power else ""
    return Check(f"{name} ({sample.name})", outcome.p_value >= ALPHA, detail, figures)


def _largest(name: str, z: Reals, tests: int) -> goodness.Outcome:
    from scipy.special import log_ndtr

    worst = float(np.abs(z).max(initial=0.0))
    return goodness.Outcome(name, worst, None, math.exp(min(0.0, math.log(2 * tests) + float(log_ndtr(-worst)))))


def _mean(scores: Reals) -> goodness.Outcome:
    z = scores.sum() / math.sqrt(scores.size)
    return _largest("z of the mean score", np.array([z]), 1)


def _coordinates(scores: Reals) -> goodness.Outcome:
    """The largest correlation between two coordinates; uncentred, so Student's law with K - 1 degrees is exact."""
    k, d = scores.shape
    if d == 1:
        return goodness.Outcome("correlation (one coordinate)", 0.0, None, 1.0)
    norms = np.maximum(np.sqrt((scores**2).sum(axis=0)), 1e-100)
    r = np.abs((scores.T @ scores) / np.outer(norms, norms))[np.triu_indices(d, 1)]
    worst = min(float(r.max()), 1 - 1e-12)
    p = 2 * student_tail(worst * math.sqrt((k - 1) / (1 - worst**2)), k - 1) * len(r)
    return goodness.Outcome("largest correlation", worst, None, min(1.0, p))


def repeats_check(sample: Sample) -> Check:
    """No two releases share more values than chance gives, up to sign and wherever in the vectors: equal vectors,
    vectors with some coordinates changed, moved by some places, or partly used again, all share many."""
    name = f"noise never repeats ({sample.name})"
    k, d = sample.noise.shape
    ends = np.asarray(sample.exact.cdf(np.array([0, -1])), dtype=np.float64)
    allowed = _shared_by_chance(k, d, 2 * float(ends[0] - ends[1]))  # twice the probability of 0, the largest
    if allowed >= d:
        return Check(name, True, f"not tested: {d} coordinate(s) are too few to tell a repeat from chance")
    most, pair = most_shared(sample.noise)
    detail = f"two releases share {most} of {d} values at most (releases {pair[0]} and {pair[1]}), chance {allowed}"
    power = f"; would fail at {allowed + 1} values used again, whatever the scale"
    return Check(name, most <= allowed, detail + power, {"shared": most, "chance": allowed})


def _shared_by_chance(k: int, d: int, chance: float) -> int:
    """The largest number of values that some two of k vectors share with probability above ALPHA; at most d.

    Two values of the law agree up to sign with probability at most `chance`: twice its largest probability. For r
    shared values there is a matching of r coordinates of one vector with r of the other whose values all agree: at
    most C(d, r)^2 r! matchings, each with probability chance^r.
    """
    pairs = math.log(max(1.0, k * (k - 1) / 2))
    for r in range(1, d + 1):
        ways = 2 * (math.lgamma(d + 1) - math.lgamma(r + 1) - math.lgamma(d - r + 1)) + math.lgamma(r + 1)
        if pairs + ways + r * math.log(min(1.0, chance)) <= math.log(ALPHA):
            return r - 1
    return d


def most_shared(noise: Integers) -> tuple[int, tuple[int, int]]:
    """(the largest number of values, up to sign and counted as often as both have them, that two rows share; which)."""
    k, d = noise.shape
    values = np.sort(np.abs(noise), axis=1)
    repeat = np.zeros((k, d), dtype=np.int64)  # which of its equals in the row a value is
    for j in range(1, d):
        repeat[:, j] = np.where(values[:, j] == values[:, j - 1], repeat[:, j - 1] + 1, 0)
    rows = np.repeat(np.arange(k), d)
    order = np.lexsort((rows, repeat.reshape(-1), values.reshape(-1)))
    v, r, rows = values.reshape(-1)[order], repeat.reshape(-1)[order], rows[order]
    found: list[NDArray[np.int64]] = []
    for lag in range(1, k):  # equal keys stand together, each row once in a group
        same = (v[lag:] == v[:-lag]) & (r[lag:] == r[:-lag])
        if not same.any() or sum(map(len, found)) > _MATCHES:  # a constant: what was found says enough
            break
        found.append(rows[:-lag][same] * k + rows[lag:][same])
    if not found:
        return 0, (0, 0)
    pairs, counts = np.unique(np.concatenate(found), return_counts=True)
    best = int(np.argmax(counts))
    return int(counts[best]), (int(pairs[best]) // k, int(pairs[best]) % k)


def _data(sample: Sample, scores: Reals) -> goodness.Outcome:
    """Correlation of the noise, and of its size, with the exact sum, its size, and the canaries' bits."""
    squares = (scores**2 - 1) / math.sqrt(2)
    sums = sample.sums.astype(np.float64)
    sums = (sums - sums.mean(axis=0)) / np.maximum(sums.std(axis=0), 1e-300)
    sizes = np.abs(sums)
    sizes = (sizes - sizes.mean()) / max(float(sizes.std()), 1e-300)
    signs = np.where(sample.bits, 1.0, -1.0)
    canaries = scores[:, scores.shape[1] - signs.shape[1] :]
    z = [
        float((scores * sums).sum()) / math.sqrt(max(1e-300, float((sums**2).sum()))),
        float((squares * sizes).sum()) / math.sqrt(max(1e-300, float((sizes**2).sum()))),
        float((canaries * signs).sum()) / math.sqrt(max(1, signs.size)),
    ]
    return _largest("largest of three correlations, z", np.array(z), len(z))


def _owners_check(law: str, samples: Sequence[Sample]) -> Check:
    """A chi-square of homogeneity: the noise in units of its claimed scale has one law for every number of owners."""
    edges = np.quantile(np.concatenate([scores_of(s).reshape(-1) for s in samples]), np.arange(1, 32) / 32)
    table = np.stack(
        [np.bincount(np.searchsorted(edges, scores_of(s).reshape(-1)), minlength=32) for s in samples]
    ).astype(np.float64)
    expected = np.outer(table.sum(axis=1), table.sum(axis=0)) / table.sum()
    statistic = float(((table - expected) ** 2 / expected).sum())
    degrees = 31 * (len(samples) - 1)
    p = chi_square_tail(statistic, degrees)
    owners = ", ".join(str(sample.owners) for sample in samples)
    return Check(
        f"independent of the number of owners ({law})",
        p >= ALPHA,
        f"m = {owners}: chi-square {statistic:.1f} on {degrees} degrees of freedom, p = {p:.3g}",
        {"statistic": statistic, "degrees": degrees, "p_value": p},
    )
