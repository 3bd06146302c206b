"""What a source is told of what was opened: intervals by the exact law of the noise, whatever law it is."""

import math

import numpy as np
import pytest

from dpmpc.aggregation.plan.opening import opening_of, reach_of
from dpmpc.aggregation.plan.plan import Plan
from dpmpc.learning.source import Opening, Source
from dpmpc.learning.survey import Survey
from dpmpc.learning.vectors import Vectors
from dpmpc.outcome import Level

ASKED = {"owners": 3, "dimension": 2, "clip": 1.0, "epsilon": 1.0}


def plan_of_law(law: str) -> Plan:
    return Plan.create(**ASKED, law=law, delta=None if law == "laplace" else 1e-5, engine="clear")


def within(law: str, scale: float, steps: int) -> float:
    """P(|X| <= steps) of the discrete law by its printed mass function, summed term by term: the oracle."""
    k = np.arange(-40 * math.ceil(scale), 40 * math.ceil(scale) + 1)
    mass = np.exp(-np.abs(k) / scale) if law == "laplace" else np.exp(-(k.astype(float) ** 2) / (2 * scale**2))
    return float(mass[np.abs(k) <= steps].sum() / mass.sum())


@pytest.mark.parametrize("law", ["gaussian", "laplace"])
def test_the_reach_holds_what_it_says_and_two_steps_less_do_not(law: str) -> None:
    plan = plan_of_law(law)
    scale = plan.derived.mechanism.scale
    for confidence in (0.5, 0.8, 0.95, 0.999):
        steps = math.floor(reach_of(plan, confidence) * scale)
        assert scale < 2e6, "the oracle sums every term"
        assert within(law, scale, steps) >= confidence > within(law, scale, steps - 2)


@pytest.mark.parametrize("scale", [0.8, 1.0, 1.7, 3.0, 10.0])
def test_a_gaussian_reach_holds_on_a_coarse_grid_too(scale: float) -> None:
    """No plan has so little noise; the bound is proved for it all the same."""
    for confidence in np.linspace(0.5, 0.999, 60):
        assert within("gaussian", scale, math.ceil(Level(float(confidence)).z * scale)) >= confidence


def test_a_laplace_interval_is_wider_than_that_of_a_gaussian_of_its_deviation() -> None:
    """1.96 deviations of Laplace noise hold 93.7 %, not 95 %: intervals go by the law."""
    assert reach_of(plan_of_law("laplace"), 0.95) == pytest.approx(math.log(20), rel=1e-3)
    assert reach_of(plan_of_law("laplace"), 0.95) > 1.06 * 1.96 * math.sqrt(2)
    assert reach_of(plan_of_law("gaussian"), 0.95) == pytest.approx(1.95996, rel=1e-3)


def test_an_opening_is_in_the_units_of_the_mean() -> None:
    plan = plan_of_law("gaussian")
    opened = opening_of(plan, {0: np.array([3 << plan.grid.bits, 0])})
    assert opened.mean.tolist() == [1.0, 0.0] and opened.owners == (0, 1, 2) and opened.sizes == (1, 1, 1)
    found = opened.number(1.0, times=100.0)
    noise = 100 * plan.derived.mechanism.scale * plan.grid.step / 3
    assert found.estimate == 100 and found.noise == pytest.approx(noise)
    assert found.low is not None and found.low == pytest.approx(100 - 1.95996 * noise, rel=1e-3)


def test_without_noise_the_interval_is_the_number() -> None:
    plan = Plan.create(**ASKED, scale=0.0, engine="clear", delta=1e-5)
    assert opening_of(plan, {0: np.zeros(2, dtype=np.int64)}).number(0.5).low == 0.5


class Plain(Source):
    """A source that says nothing of what comes of it."""

    KIND = "plain"

    @property
    def clip(self) -> float:
        return 1.0

    def by_record(self, *_: object) -> None:  # type: ignore[override]
        raise AssertionError


def test_a_source_that_says_nothing_has_its_mean_with_intervals() -> None:
    plan = plan_of_law("laplace")
    opened: Opening = opening_of(plan, {0: np.array([3 << plan.grid.bits, 6 << plan.grid.bits])})
    found = Plain().outcome(opened)
    (answer,) = found.answers
    assert [line.number.estimate for line in answer.lines] == [1.0, 2.0] == found.section["mean"]
    assert found.about == (opened.guarantee,) and opened.guarantee.startswith("guarantee: epsilon = 1")


def test_whoever_takes_part_hears_what_is_read() -> None:
    """Vectors of their own are said of a source that reads no records alone."""

    class Reading(Plain):
        reads = ("age", "sex")

    assert Plain().about == ["no schema: vectors are made of each owner's records"]
    assert Reading().about == ["no schema: reads age, sex"]
    assert Survey(numbers=("age",), texts=("sex",)).about == ["surveys age, sex"]
    assert Vectors(norm=1.0).about == ["no schema: each owner brings vectors of its own"]
