"""What checks of owners cost, measured: rounds and bytes are those that were counted, or it is an error."""

import pytest

from dpmpc.benchmarks.studies.owner_checks import MODES, measure


@pytest.mark.parametrize("mode", MODES)
def test_a_small_case_is_as_counted(mode: str) -> None:
    row = measure(3, 10, mode, 1)
    assert row["rounds"] > 3 and row["bytes"] > 0 and (row["ands"] > 0) == (mode != "shares")
    assert row["wan"] > row["lan"] > row["seconds"] > 0
