"""A folder in which an attempt has begun: what counts as spent, and what cannot be carried on."""

from dataclasses import replace
from pathlib import Path

import pytest

from dpmpc.aggregation.plan.asked import AGREED, FIRST_ATTEMPT
from dpmpc.aggregation.plan.plan import Plan
from dpmpc.aggregation.plan.spending import entry_of
from dpmpc.aggregation.wire.paths import ledger_path, transcript_path
from dpmpc.consortium.placement import Placement
from dpmpc.consortium.start import _make_ready
from dpmpc.privacy.ledger import Ledger
from dpmpc.run.folder import opened_nothing
from tests.refusals import refuses


def begun(plan: Plan, out: Path, releases: int) -> Path:
    """The folder of party 0, whose attempt has begun and made so many releases."""
    out.mkdir()
    plan.write(out / "plan_0.json")
    transcript_path(out, 0).write_text("")
    with Ledger(ledger_path(out, 0)) as ledger:
        ledger.begin(entry_of(plan, FIRST_ATTEMPT, 0, token="1" * 32))
        for release in range(releases):
            ledger.append(entry_of(plan, FIRST_ATTEMPT, release))
    return out


def test_an_attempt_that_has_begun_has_spent_nothing_yet(tmp_path: Path) -> None:
    plan = Plan.create(owners=3, dimension=4, clip=1.0, delta=1e-5, releases=2)
    assert opened_nothing(ledger_path(begun(plan, tmp_path / "a", 0), 0))
    assert not opened_nothing(ledger_path(begun(plan, tmp_path / "b", 1), 0))
    with Ledger(ledger_path(tmp_path / "a", 0)) as ledger:
        ledger.goes_on(entry_of(plan, FIRST_ATTEMPT, 0), (1, 2))
    assert not opened_nothing(ledger_path(tmp_path / "a", 0))


@pytest.mark.parametrize("backend", ["shamir-checked", "checked"])
def test_a_backend_that_cannot_carry_a_run_on_says_so(tmp_path: Path, backend: str) -> None:
    """Over several machines; what has spent nothing begins again."""
    plan = Plan.create(owners=3, dimension=4, clip=1.0, delta=1e-5, releases=2, backend=backend)
    assert plan.attempt != AGREED
    _make_ready(plan, Placement(out=begun(plan, tmp_path / "a", 0)), 0)
    with refuses("over", backend, setting="out"):
        _make_ready(plan, Placement(out=begun(plan, tmp_path / "b", 1)), 0)
    with refuses("over", "1 of run", setting="overwrite"):
        _make_ready(plan, Placement(out=tmp_path / "b", overwrite=True), 0)
    _make_ready(replace(plan, run_id="another"), Placement(out=tmp_path / "b", overwrite=True), 0)
