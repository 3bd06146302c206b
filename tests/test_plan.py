"""A plan that was made elsewhere is believed only as far as its own public parameters bear it out."""

from dataclasses import replace
from typing import Any

import pytest

from dpmpc.aggregation.plan import Facts, Plan, check_promise, make_plan
from dpmpc.errors import UsageError
from dpmpc.runs.request import Options

FACTS = Facts("records", "logistic", 5, (40, 60, 50), "public")


def test_openings_and_noise_have_channels_of_their_own() -> None:
    from dpmpc.aggregation import release
    from dpmpc.noise import pool
    from dpmpc.runs import request as options

    assert release.OPENING_CHANNEL + options._MOST_RELEASES <= pool.FIRST_CHANNEL
    with pytest.raises(UsageError, match="--iterations"):
        plan_of(iterations=options._MOST_RELEASES)


def plan_of(task: str = "logistic", **changes: Any) -> Plan:
    asked: dict[str, Any] = {"owner_sizes": FACTS.sizes, "task": task, "epsilon": 1.0, "delta": 1e-5, **changes}
    return make_plan(Options(dimension=5, **asked), replace(FACTS, task=task))


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"weights": "size", "iterations": 7, "calibration": "zcdp", "lam": 0.1},
        {"method": "output", "delta": None, "radius": 0.5},
        {"method": "output", "noise": "gaussian", "weights": "size", "grid_bits": 10},
        {"task": "ridge", "residual_clip": 0.4, "calibration": "paper"},
        {"sampler": "box-muller", "parties": 5, "threshold": 1},
        {"noise": "laplace", "engine": "clear", "iterations": 3},
    ],
)
def test_an_honest_plan_is_believed(changes: dict[str, Any]) -> None:
    check_promise(Plan.from_text(plan_of(**changes).to_text()))


@pytest.mark.parametrize(
    "lie",
    [
        {"noise_steps": 0.0},
        {"noise_asked": 2000.0},
        {"epsilon": 0.9},
        {"delta": 1e-6},
        {"releases": 51},
        {"sizes": (40, 60, 49), "weights": "size"},
        {"sizes": (39, 60, 50)},
        {"G": 0.5},
        {"clip": 2.0},
        {"grid_bits": 0},
        {"sensitivity_steps": 1.0},
        {"noise_tv": 0.0},
        {"calibration": "zcdp"},
    ],
)
def test_a_plan_that_promises_more_than_its_noise_keeps_is_refused(lie: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match=r"needed are|grid steps wide"):
        check_promise(replace(plan_of(), **lie))


@pytest.mark.parametrize("lie", [{"lam": 0.001}, {"solver_tolerance": 1e-2}, {"security_bits": 10.0}, {"G": 0.1}])
def test_an_output_plan_that_promises_more_is_refused(lie: dict[str, Any]) -> None:
    plan = plan_of(method="output", noise="gaussian")
    with pytest.raises(UsageError, match=r"needed are|alone"):
        check_promise(replace(plan, **lie))
