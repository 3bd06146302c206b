"""Hospitals that are owner and party each, with active security: one that cheats ends the training in one line, before
a wrong vector is used, and for good. Seven have Shamir shares, five replicated ones."""

from pathlib import Path

import pytest

from dpmpc.aggregation.plan.here import Here
from dpmpc.aggregation.wire.transcript import ABORT, read_transcript
from dpmpc.errors import DpmpcError, owner_text
from dpmpc.local import sites
from dpmpc.local.launcher import train
from dpmpc.privacy.ledger import Ledger
from tests.faulty import CHEATING_SITE, FIRST_CHEATED
from tests.refusals import refuses
from tests.runs import small


@pytest.mark.slow
@pytest.mark.parametrize("count", [7, 5])
def test_one_of_many_sites_cheats_and_training_ends_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, count: int
) -> None:
    monkeypatch.setattr(sites, "ROLE", "tests.faulty:cheating_site")
    request = small(owners=count, parties=count, role="both", security="active", iterations=6)
    with refuses("cheat", 1002, setting="resume") as e:
        train(request, Here(out=tmp_path / "run"))
    assert "\n" not in owner_text(e.value) and e.value.exit_code == 4
    assert not (tmp_path / "run" / "model.npz").exists()
    noted = set()
    for i in range(count):
        events = read_transcript(tmp_path / "run" / f"party_{i}.transcript.jsonl")
        assert [event["release"] for event in events if event["event"] == "open"] == [0, 1]
        noted |= {i for event in events if event["event"] == ABORT}
    assert noted - {CHEATING_SITE}  # the launcher may end the others before they have noted it
    with refuses("over", tmp_path / "run"):
        train(request, Here(out=tmp_path / "run"), resume=True)


@pytest.mark.slow
def test_a_run_of_seven_sites_with_active_security_goes_on_where_it_was_interrupted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On one machine, whose owner reads all parties' files."""
    out, releases = tmp_path / "run", 5
    request = small(owners=7, parties=7, role="both", security="active", iterations=releases)
    with monkeypatch.context() as killed:
        killed.setattr(sites, "ROLE", "tests.faulty:dying_site")
        with pytest.raises(DpmpcError):
            train(request, Here(out=out))
    before = read_transcript(out / f"party_{CHEATING_SITE}.transcript.jsonl")
    assert [event["release"] for event in before if event["event"] == "open"] == list(range(FIRST_CHEATED + 1))
    train(request, Here(out=out), resume=True)
    for i in range(7):
        events = read_transcript(out / f"party_{i}.transcript.jsonl")
        assert [event["release"] for event in events if event["event"] == "open"] == list(range(releases))
        assert [entry.release for entry in Ledger.read(out / f"ledger_{i}.jsonl").entries] == list(range(releases))
    assert (out / "model.npz").exists()
