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
from dpmpc.verify.dependence import coordinates_check, data_check, distances_check, releases_check
from dpmpc.verify.neighbours import neighbours_check
from dpmpc.verify.power import describe, fails_below
from dpmpc.verify.repeats import between_check, common_check, low_bits_check, within_check
from dpmpc.verify.scores import Sample
from dpmpc.verify.verdict import ALPHA, MISSED, Check, Evidence

_CHECKS: tuple[Callable[[Sample], Check], ...] = (
    variance_by_part,
    spread,
    mean_by_part,
    law_by_part,
    low_bits_check,
    coordinates_check,
    releases_check,
    distances_check,
    neighbours_check,
    between_check,
    within_check,
    common_check,
    data_check,
)


def check_statistics(samples: Sequence[Sample]) -> Evidence:
    """The verdicts on `samples`: all tests for each of them, and one for each law over numbers of owners."""
    checks: list[Check] = []
    for sample in samples:
        checks += [with_power(sample, scale_check), with_power(sample, law_check)]
        checks += [check(sample) for check in _CHECKS]
    for law in sorted({sample.law for sample in samples}):
        same = [sample for sample in samples if sample.law == law]
        if len(same) > 1:
            checks.append(_owners_power(law, same))
    detectable = max((check.figures["detects"] for check in checks if "detects" in check.figures), default=math.inf)
    note = (
        f"a noise scale off by {detectable:.1%} of its variance is found with probability {1 - MISSED:g}; "
        "noise added at another time, and openings beside the release, do not show here"
    )
    return Evidence("statistics", tuple(checks), ALPHA * len(checks), note)


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
