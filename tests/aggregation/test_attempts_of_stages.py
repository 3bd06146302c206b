"""A run of several stages has attempts in each of them: a cheat's chances add up, are held together and are said."""

import json
import math

import numpy as np
import pytest

from dpmpc.aggregation.plan.check_figures import security_line, security_section
from dpmpc.aggregation.plan.plan import Plan
from dpmpc.aggregation.plan.stages import after_first, stage_plan
from dpmpc.mpc.checked.backend import MOST_ATTEMPTS
from tests.aggregation.mutants import found_and_asked, spelled_and_drawn, tables, text_of
from tests.refusals import refuses

ACTIVE = {"security": "active", "backend": "checked", "threshold": 1}


def by_hand(plan: Plan) -> float:
    """The chances of each stage by itself, which a test of each backend holds against its own count."""
    every = (stage_plan(plan, stage) for stage in (*plan.source.schedule.before, *plan.source.schedule.after))
    return math.fsum(each.derived.undetected or 0.0 for each in (plan, *every))


def test_chances_of_all_stages_are_one_figure_before_and_after_they_are_opened() -> None:
    plan = found_and_asked(**ACTIVE)
    assert plan.derived.undetected is not None and len(plan.ahead) == 1
    whole = by_hand(plan)
    assert plan.undetected == pytest.approx(whole, rel=1e-12)
    assert whole > plan.derived.undetected + MOST_ATTEMPTS * 2.0**-61
    first = plan.first
    total = np.full(first.dimension, round(50 * first.derived.sampler.scale))
    then = after_first(plan, total)
    assert then.passed == first.derived.undetected and not then.ahead
    assert then.undetected == pytest.approx(first.derived.undetected + then.derived.undetected, rel=1e-12)
    assert security_section(then)["undetected_bits"] == -math.log2(then.undetected)  # type: ignore[index]
    assert f"2^{math.log2(plan.undetected):.1f} at most" in security_line(plan)
    assert Plan.from_text(then.to_text()) == then
    assert "passed" not in json.loads(plan.to_text()) and tables(**ACTIVE).passed == 0


def test_stages_that_are_each_secure_enough_are_refused_where_all_are_not() -> None:
    """At as many bits as the worst of the stages has alone."""
    plan = found_and_asked(**ACTIVE)
    worst = max(each.derived.undetected or 0.0 for each in (plan, *plan.ahead))
    assert worst < by_hand(plan)
    bits = -math.log2(worst) - 1e-9
    assert all(stage.derived.undetected <= 2.0**-bits for stage in plan.ahead)  # type: ignore[operator]
    with refuses("range", setting="security_bits"):
        found_and_asked(**ACTIVE, security_bits=bits)
    assert found_and_asked(**ACTIVE, security_bits=-math.log2(by_hand(plan)) - 1e-6).ahead


@pytest.mark.parametrize("passed", [-1e-9, 1.0, 7, "x", None, math.nan, math.inf])
def test_what_a_cheat_has_passed_is_a_probability(passed: object) -> None:
    value = json.loads(spelled_and_drawn().to_text()) | {"passed": passed}
    with refuses("file" if isinstance(passed, str) or passed is None else "plan"):
        Plan.from_text(text_of(value))
