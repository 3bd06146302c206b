"""The kill test on four of its points, the whole product running; benchmarks/kill_test.py does a hundred over all."""

from pathlib import Path

import pytest

from dpmpc.benchmarks.kill_test import kill_test


@pytest.mark.slow
def test_what_was_released_is_accounted_for_and_kept_whenever_a_party_dies(tmp_path: Path) -> None:
    points = ("ledger line not synced", "ledger line torn", "share sent", "opened, not kept")
    figures = kill_test(len(points), tmp_path / "run", points=points)
    assert figures["attempts"] == len(points) + 1 and figures["structure"] == "holds"
    assert figures["torn_lines"] == 1
