"""One unit for what a law costs: accounts, plans and reports ask it in grid steps, as runs do.

The law here is discrete Laplace noise on a staircase: its steps are WIDTH grid steps wide, so that it is another law at
another scale. Asked in units of the mean it would come to something else altogether.
"""

import dataclasses
import math
from collections.abc import Mapping
from typing import ClassVar

import pytest

from dpmpc.aggregation.plan.guarantee import privacy_section, promise_of
from dpmpc.aggregation.plan.plan import Plan
from dpmpc.circuits.sampler import discrete_laplace
from dpmpc.learning.account import account
from dpmpc.planning.request import Request
from dpmpc.planning.training import Facts, plan_of
from dpmpc.privacy import exact
from dpmpc.privacy.law import LAWS, Law, MakeSampler
from dpmpc.privacy.mechanism import Mechanism
from dpmpc.privacy.spending import Spending

WIDTH, OWNERS, RECORDS, D = 3000.0, 4, 250, 6


class Staircase(Law):
    name = "staircase"
    norm = 1
    pure = True
    samplers: ClassVar[Mapping[str, MakeSampler]] = {"discrete": discrete_laplace}

    def spending(self, mechanism: Mechanism) -> Spending:
        """Each coordinate that moves by k moves by at most k/WIDTH + 1 stairs."""
        m = mechanism
        ratio = (m.sensitivity.l1 + WIDTH * min(m.dimension, m.sensitivity.l1)) / m.scale
        return Spending(1, pure=ratio, rho_pure=ratio**2 / 2, failure=m.dimension * m.tv + m.mpc_failure)

    def exact(self, scale: float, discrete: bool) -> exact.ExactLaw:
        law = exact.discrete_laplace(scale)
        return dataclasses.replace(law, variance=law.variance + WIDTH**2 / 12)


@pytest.fixture(autouse=True)
def staircase(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(LAWS._loaded, "staircase", Staircase())


def asked(**known: object) -> dict[str, object]:
    found = account(
        method="output", law="staircase", owners=OWNERS, smallest=RECORDS, dimension=D, lam=0.1, G=1.0, **known
    )
    assert isinstance(found["calibrations"], list)
    return found


def planned(**known: object) -> Plan:
    facts = Facts("x", "logistic", D, (RECORDS,) * OWNERS, "public")
    request = Request(  # type: ignore[arg-type]
        **{"data": "synthetic", "method": "output", "law": "staircase", "lam": 0.1, "weights": "equal",
           "iterations": None, "delta": None, "solver_tolerance": 1e-12, **known}
    )  # fmt: skip
    return plan_of(request, facts)


@pytest.mark.parametrize("epsilon", [0.05, 0.5, 4.0])
def test_an_account_a_plan_and_a_report_say_one_number(epsilon: float) -> None:
    """Rounding adds half a percent to the plan's; asked in units of the mean the account was wrong by a factor."""
    plan = planned(epsilon=epsilon)
    step = plan.grid.step / plan.divisor
    scale = plan.derived.mechanism.scale * step
    assert promise_of(plan).accounted == pytest.approx(epsilon, rel=1e-6)
    assert privacy_section(plan)["epsilon_accounted"] == pytest.approx(epsilon, rel=1e-6)
    found = asked(epsilon=epsilon)
    assert found["scale"] == pytest.approx(scale, rel=0.006)
    fixed = promise_of(planned(scale=scale)).accounted  # of the grid that goes with a scale, another one
    assert asked(scale=scale)["epsilon"] == pytest.approx(fixed, rel=0.006)
    assert asked(scale=scale, epsilon=3.05 * fixed)["iterations"] == 3
    given = asked(scale=scale, grid_bits=plan.grid.bits)  # the same grid, rounding included
    assert given["epsilon"] == pytest.approx(epsilon, rel=1e-4)
    assert given["grid"]["epsilon"] == pytest.approx(epsilon, rel=1e-4)  # type: ignore[index]
    row = found["calibrations"][0]  # type: ignore[index]
    variance = exact.discrete_laplace(scale / step).variance + WIDTH**2 / 12
    assert row["deviation"] == pytest.approx(math.sqrt(variance) * step, rel=0.006)


def test_the_law_is_another_at_another_scale() -> None:
    """So the test above can fail: in the mean's own units the same mechanism would cost many times as much, or less."""
    plan = planned(epsilon=0.5)
    step, m = plan.grid.step / plan.divisor, plan.derived.mechanism
    mean = Mechanism("staircase", False, m.scale * step, m.sensitivity * step, D)
    assert LAWS["staircase"].spending(mean).pure > 3 * 0.5
