"""The kill test over several machines, a short one; tests/endurance/kill_sites.py does many."""

from pathlib import Path

import pytest

from tests.endurance.kill_sites import NAMES, kill_sites


@pytest.mark.slow
def test_a_run_of_six_processes_with_tls_survives_their_deaths(tmp_path: Path) -> None:
    figures = kill_sites(3, tmp_path, seed=2)  # AssertionError if anything is lost, opened twice, hangs or is left
    assert sum(figures.get(name, 0) for name in ("killed", "stopped", "paused", "killed at a point")) >= 1
    assert figures["exit codes"]["0"] == len(NAMES)
    assert figures["releases spent"] >= figures["releases in the model"] > 0
