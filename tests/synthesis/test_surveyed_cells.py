"""Cells and ranges of numbers that follow from what a survey opened, and cuts that were stated."""

import itertools
import math
from typing import Any

import numpy as np
import pytest

from dpmpc.errors import UsageError
from dpmpc.learning.survey import Survey
from dpmpc.learning.survey_numbers import CELLS, LOWEST, OCTAVES, Summary
from dpmpc.statistics.columns import Columns, Quantity, category
from dpmpc.synthesis.cuts import CELLS_OF_A_NUMBER, bounds_of, edges_of, stated
from tests.refusals import refuses

COLUMNS = Columns((category("sex", ("F", "M")), Quantity("age", 18.0, 90.0)))


def counted(values: Any) -> Any:
    return Survey(("x",)).encode({"x": np.stack([values, np.full(len(values), -1.0)], axis=1)})[:CELLS]


def test_cells_follow_a_survey_and_cuts_are_checked() -> None:
    rng = np.random.default_rng(10)
    values = np.where(rng.random(40_000) < 0.9, 0.0, rng.gamma(2, 3000, 40_000))
    counts = counted(values) + rng.normal(0, 40, CELLS)
    edges = edges_of(counts, 40.0, 0.0, 100_000.0)
    assert edges[0] == 0 and edges[1] < 1e-6 and edges[-1] == 100_000 and 5 <= len(edges) <= 16
    assert all(a < b for a, b in itertools.pairwise(edges))
    even = edges_of(counted(rng.uniform(18, 90, 40_000)), 40.0, 18.0, 90.0)
    share = np.histogram(rng.uniform(18, 90, 100_000), even)[0] / 100_000
    assert 0.02 < share.min() and share.max() < 0.4
    for cuts in ([3, 1], "many", [1], True, [0, math.inf]):
        with pytest.raises(UsageError):
            stated(COLUMNS, {"age": cuts}, None)
    with refuses("column", "sex", setting="cuts"):
        stated(COLUMNS, {"sex": [0, 1]}, None)
    assert stated(COLUMNS, {"age": 4}, None)["age"].cuts == (18, 36, 54, 72, 90)  # type: ignore[union-attr]


def test_a_survey_leads_to_no_more_cells_than_were_planned() -> None:
    """The plan's length is public before the survey: octaves that all stand out are joined."""
    counts = np.full(CELLS, 1000.0)
    for low, high in ((-1e9, 1e9), (0.0, 1e9), (-3.0, 5.0), (0.0, 1.0)):
        edges = edges_of(counts, 1.0, low, high)
        assert len(edges) <= CELLS_OF_A_NUMBER + 1 and (edges[0], edges[-1]) == (low, high)
        assert all(np.diff(edges) > 0)


@pytest.mark.parametrize("sign", [1, -1])
def test_a_range_reaches_over_octaves_that_stand_out_less_beside_others(sign: int) -> None:
    """By five deviations alone, by two and a half beside such a one or beside its like."""
    noise, wide = 50.0, Summary(0, 0, 0.0, 1e6)

    def found(**deviations: float) -> tuple[float, float]:
        counts = np.zeros(CELLS)
        for name, count in deviations.items():
            octave = int(name[1:]) - LOWEST + (OCTAVES if sign > 0 else 0)
            counts[2 + octave] = count * noise
        low, high = bounds_of(counts, noise, wide)
        return (low, high) if sign > 0 else (-high, -low)

    assert found(o3=6) == (8, 16)
    assert found(o3=6, o2=3, o1=3, o4=3) == (2, 32)
    assert found(o3=6, o2=2, o1=3, o5=4) == (8, 16)  # what stands alone, or beside what does not stand
    assert found(o3=6, o5=6, o6=3, o0=3) == (8, 128)
