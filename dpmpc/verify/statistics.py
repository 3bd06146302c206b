"""Second line of evidence: opened vector minus exact sum, over many releases, held against the claimed law.

Each check has a false-alarm probability of ALPHA or less over all that it looks at, and says which deviation it would
have found at this run's size. Values are in grid steps.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from dpmpc.noise import goodness
from dpmpc.privacy.tails import chi_square_above, chi_square_below, chi_square_tail
from dpmpc.verify.by_part import law_by_part, mean_by_part, spread, variance_by_part
from dpmpc.verify.dependence import coordinates_check, data_check, distances_check, lags_check, releases_check
from dpmpc.verify.neighbours import neighbours_check
from dpmpc.verify.power import describe, fails_below
from dpmpc.verify.repeats import between_check, common_check, low_bits_check, within_check
from dpmpc.verify.scores import Sample
from dpmpc.verify.tails import shape_check, tails_check
from dpmpc.verify.verdict import ALPHA, MISSED, Check, Evidence

# Every check, and what it would miss at any size; the size that it sees at stands in what it says.
_CHECKS: tuple[tuple[Callable[[Sample], Check], str], ...] = (
    (variance_by_part, "another scale in parts that are none of those looked at, or in a few values"),
    (spread, "a scale that wanders by less, or alike in all releases"),
    (mean_by_part, "a shift of a few values, or one that is turned from value to value"),
    (law_by_part, "a law that differs within a sixteenth of its mass alone, or in a few values"),
    (low_bits_check, "low bits that depend on each other, or on the high ones"),
    (coordinates_check, "coordinates that depend on several others by a little each, or not linearly"),
    (releases_check, "a release that is made of another by a change of coordinates"),
    (lags_check, "releases that are made of others in no order, by no linear map, or of many at once"),
    (distances_check, "dependence that is not linear in values or magnitudes"),
    (neighbours_check, "copies from releases further back that are changed in every value"),
    (between_check, "a repeat that is scaled, or changed in every value"),
    (within_check, "a repeat that is rotated and scaled"),
    (common_check, "noise that is missing in so few values that as many zeros are chance"),
    (data_check, "dependence on records that neither the sum nor the canaries show"),
)
_SCALE = "less than the interval is wide, and the right variance with another law"
_LAW = "a law that differs within its bins: in the tails beyond the outer ones, and by a little in each"
_SHAPE = "moments beyond the fourth, and what differs in a few values"
_TAIL = "tails beyond the cut that it says, which a run of this size does not reach"
_POWER = "noise that grows with owners by less than a bin shows"
NOTHING_SHOWS = (
    "no statistic shows noise that somebody knows: drawn by a generator whose seed is public or kept, it has every "
    "property that is tested; nor when noise was added, nor openings beside the release"
)


def check_statistics(samples: Sequence[Sample]) -> Evidence:
    """The verdicts on `samples`: all tests for each of them, and one for each law over numbers of owners."""
    checks: list[Check] = []
    for sample in samples:
        checks += [missing(with_power(sample, scale_check), _SCALE), missing(with_power(sample, law_check), _LAW)]
        checks += [missing(check(sample), misses) for check, misses in _CHECKS]
    for law in sorted({sample.law for sample in samples}):
        same = [sample for sample in samples if sample.law == law]
        checks += [missing(shape_check(law, same), _SHAPE), missing(tails_check(law, same), _TAIL)]
        if len(same) > 1:
            checks.append(missing(_owners_power(law, same), _POWER))
    detectable = max((check.figures["detects"] for check in checks if "detects" in check.figures), default=math.inf)
    note = f"a noise scale off by {detectable:.1%} of its variance is found with probability {1 - MISSED:g}"
    return Evidence("statistics", tuple(checks), ALPHA * len(checks), note, NOTHING_SHOWS)


def missing(check: Check, misses: str) -> Check:
    """The verdict with what it would miss."""
    return replace(check, misses=misses)


def variance_ratio(sample: Sample, alpha: float = ALPHA) -> tuple[float, float, float, float]:
    """(variance over the claimed one, its interval of confidence 1 - alpha, the relative deviation found with 0.999).

    Exact: N r ~ chi^2(N) for Gaussian noise; for Laplace noise r = (mean |x| / b)^2, and 2 N sqrt(r) ~ chi^2(2 N).
    """
    values, each, power = sample.magnitudes()
    statistic, degrees = float(values.sum()), each * values.size
    low, high = chi_square_below(alpha / 2, degrees), chi_square_above(alpha / 2, degrees)
    worst = max(
        (high / chi_square_below(MISSED, degrees)) ** power - 1,
        1 - (low / chi_square_above(MISSED, degrees)) ** power,
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
    return _with(check(sample), fails_below(lambda x: check(sample.narrowed(x)).holds))


def _with(check: Check, power: float | None, where: str = "") -> Check:
    return replace(
        check, detail=f"{check.detail}; {describe(power)}{where}", figures={**check.figures, "fails_below": power}
    )


def _owners_power(law: str, samples: Sequence[Sample]) -> Check:
    power = fails_below(lambda x: _owners_check(law, [*samples[:-1], samples[-1].narrowed(x)]).holds)
    return _with(_owners_check(law, samples), power, " for one number of owners alone")


def law_check(sample: Sample) -> Check:
    """All samples together against the exact law in 64 bins."""
    found = goodness.chi_square(sample.noise.reshape(-1), sample.exact)
    detail = f"{found.name} {found.statistic:.4g} on {found.degrees} degrees of freedom, p = {found.p_value:.3g}"
    figures = {"statistic": found.statistic, "degrees": found.degrees, "p_value": found.p_value}
    return Check(f"law ({sample.name})", found.p_value >= ALPHA, detail, figures)


def _owners_check(law: str, samples: Sequence[Sample]) -> Check:
    """A chi-square of homogeneity: the noise in units of its claimed scale has one law for every number of owners."""
    edges = np.quantile(np.concatenate([s.normal.reshape(-1) for s in samples]), np.arange(1, 32) / 32)
    table = np.stack([np.bincount(np.searchsorted(edges, s.normal.reshape(-1)), minlength=32) for s in samples]).astype(
        np.float64
    )
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
