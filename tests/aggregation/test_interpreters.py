"""What processes compare is the same in every version of Python that they run in: from 3.12 on, `sum` rounds floats
otherwise than before, so nothing that is agreed on is a sum of floats by it. `math.fsum` is the exact sum, rounded."""

import builtins
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

import dpmpc
from dpmpc.aggregation.plan.asked import FIRST_ATTEMPT
from dpmpc.statistics.expected import expected
from dpmpc.statistics.tables import Tables
from tests.aggregation.mutants import SIZES, honest, tables

PACKAGE = str(Path(dpmpc.__file__).parent)


@pytest.fixture
def no_sum_of_floats(monkeypatch: pytest.MonkeyPatch) -> None:
    """`sum`, which fails where this package asks it for floats."""
    usual = builtins.sum

    def exact(values: Iterable[Any], /, start: Any = 0) -> Any:
        found = usual(values, start)
        caller = sys._getframe(1).f_code
        assert not isinstance(found, float) or not caller.co_filename.startswith(PACKAGE), caller
        return found

    monkeypatch.setattr(builtins, "sum", exact)


@pytest.mark.usefixtures("no_sum_of_floats")
def test_no_plan_and_nothing_that_follows_from_one_is_a_sum_of_floats_as_python_rounds_it() -> None:
    for plans in honest().values():
        for plan in plans:
            for stage in (plan, *plan.ahead):
                assert len(stage.digest(FIRST_ATTEMPT)) == 32


@pytest.mark.usefixtures("no_sum_of_floats")
def test_nor_is_what_statistics_are_expected_to_be() -> None:
    plan = tables()
    assert isinstance(plan.source, Tables)
    assert expected(plan.source, SIZES, plan.derived.scale_steps)
