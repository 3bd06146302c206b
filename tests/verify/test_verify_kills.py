"""The kill test on four of its points, the whole product running; tests/endurance/kill_parties.py does a hundred."""

from pathlib import Path

import pytest

from tests.endurance.kill_parties import kill_at_every_event, kill_parties


@pytest.mark.slow
def test_what_was_released_is_accounted_for_and_kept_whenever_a_party_dies(tmp_path: Path) -> None:
    points = ("ledger line not synced", "ledger line torn", "share sent", "opened, not kept")
    figures = kill_parties(len(points), tmp_path / "run", points=points)
    assert figures["attempts"] == len(points) + 1 and figures["structure"] == "holds"
    assert figures["torn_lines"] == 1


@pytest.mark.slow
def test_deaths_between_the_writes_and_exchanges_of_a_release_lose_nothing(tmp_path: Path) -> None:
    """Between the two frames of the barrier, and between the ledger's line and its sync; the command tries each."""
    assert kill_at_every_event(tmp_path / "run", first=2, stride=2, most=2) == 2
