"""The long test of two servers' laws: its tests pass the clear engine's samples and refuse what is slightly wrong."""

import pytest

from dpmpc.benchmarks.studies.two_laws import COUNT, SCALE, check
from dpmpc.noise.sampling import sample
from dpmpc.privacy.law import LAWS


def test_samples_of_the_law_pass_and_every_test_refuses_something() -> None:
    """False alarm 3e-10."""
    report, values = sample("gaussian", SCALE, COUNT, parties=2, engine="clear", opened=True)
    assert values is not None
    law = LAWS["gaussian"].exact(report["scale"], True)
    lines = check(values, law)
    assert len(lines) == 7 and sum(line.startswith("refused: ") for line in lines) == 4
    with pytest.raises(AssertionError, match="chi-square"):
        check(values + int(SCALE / 30), law)
    with pytest.raises(AssertionError, match="passes chi-square"):  # too few to see anything
        check(values[:2000], law)
