"""Tails and quantiles against scipy.stats, down to probabilities of 1e-15."""

import math

import pytest

from dpmpc.privacy import tails

SMALL = (0.5, 0.05, 1e-3, 1e-9, 1e-15)


@pytest.mark.parametrize("degrees", [1, 7, 31, 1000, 10**6])
def test_chi_square_and_student(degrees: int) -> None:
    from scipy import stats  # the dearest import of all: for who runs it

    chi2, student = stats.chi2(degrees), stats.t(degrees)
    for p in SMALL:
        assert tails.chi_square_above(p, degrees) == pytest.approx(chi2.isf(p), rel=1e-9)
        assert tails.chi_square_below(p, degrees) == pytest.approx(chi2.ppf(p), rel=1e-9)
        assert tails.chi_square_tail(tails.chi_square_above(p, degrees), degrees) == pytest.approx(p, rel=1e-7)
        x = float(student.isf(p))
        assert tails.student_tail(x, degrees) == pytest.approx(float(student.sf(x)), rel=1e-9)


@pytest.mark.parametrize(("hits", "trials"), [(0, 10), (10, 10), (1, 1), (3, 40), (999, 1000), (250_000, 1_000_000)])
def test_clopper_pearson(hits: int, trials: int) -> None:
    from scipy import stats

    for alpha in SMALL:
        low, high = tails.at_least(hits, trials, alpha), tails.at_most(hits, trials, alpha)
        wanted = stats.beta.ppf(alpha, hits, trials - hits + 1) if hits else 0.0
        assert low == pytest.approx(wanted, rel=1e-9)
        assert high == pytest.approx(stats.beta.isf(alpha, hits + 1, trials - hits) if hits < trials else 1.0, rel=1e-9)
        assert math.isfinite(low) and 0 <= low <= high <= 1
