"""What the ledger of an owner's process counts of a run's one release: sent, sent again, opened, made without it."""

from dataclasses import replace
from pathlib import Path

import pytest

import dpmpc
from dpmpc.aggregation.owner.own_ledger import OwnLedger
from dpmpc.aggregation.party.resume import spent_releases
from dpmpc.aggregation.plan.asked import AGREED, Attempt
from dpmpc.aggregation.plan.spending import entry_of
from dpmpc.privacy.budget import Budget
from dpmpc.privacy.ledger import Ledger
from dpmpc.privacy.ledgers import merge, read_ledgers
from tests.refusals import refuses

TOKENS = ("1" * 32, "2" * 32)


def plan_of(releases: int = 1, **changes: object) -> dpmpc.Plan:
    settings: dict[str, object] = {"owners": 2, "dimension": 2, "clip": 1.0, "epsilon": 1.0, "delta": 1e-5}
    return dpmpc.Plan.create(**settings, data_id="ward", releases=releases, run_id="r", **changes)  # type: ignore[arg-type]


def owner(folder: Path, plan: dpmpc.Plan, budget: Budget | None = None) -> OwnLedger:
    return OwnLedger(folder / "ledger_owners.jsonl", plan, AGREED, budget, None, "owner 0")


def counted(folder: Path) -> list[int]:
    return sorted(entry.release for entry in merge(read_ledgers(folder)))


def begun(folder: Path, plan: dpmpc.Plan) -> None:
    """A process that has sent its vector, and dies."""
    with owner(folder, plan) as ledger:
        ledger.sends(Attempt(0, 0), 0, TOKENS[0])
        assert counted(folder) == [0]
    assert counted(folder) == [0]


def test_what_was_sent_counts_and_may_be_sent_again_where_no_party_has_a_line(tmp_path: Path) -> None:
    plan = plan_of()
    begun(tmp_path, plan)
    assert spent_releases(tmp_path / "ledger_owners.jsonl", "r") == 0  # the parties know whether it was opened
    budget = Budget(1.01, 1e-5, tmp_path)
    with owner(tmp_path, plan, budget) as ledger:
        assert ledger.spent == 0 and counted(tmp_path) == [0]
        ledger.sends(Attempt(1, 0), 0, TOKENS[1])
        assert counted(tmp_path) == [0]
        ledger.opened(0)
    assert counted(tmp_path) == [0] and spent_releases(tmp_path / "ledger_owners.jsonl", "r") == 1
    with Ledger(tmp_path / "ledger_0.jsonl") as party:  # of the same attempt: the same release
        party.begin(entry_of(plan, Attempt(1, 0), 0, token=TOKENS[1]))
        party.append(entry_of(plan, Attempt(1, 0), 0))
    assert counted(tmp_path) == [0]
    with refuses("budget", 1, setting="budget"), owner(tmp_path, replace(plan, run_id="another"), budget):
        raise AssertionError("another run fits beside it")


def test_what_was_sent_binds_another_run_before_anybody_knows_of_it(tmp_path: Path) -> None:
    plan = plan_of()
    begun(tmp_path, plan)
    budget = Budget(1.01, 1e-5, tmp_path)
    with refuses("budget", 1, setting="budget"), owner(tmp_path, replace(plan, run_id="another"), budget):
        raise AssertionError("another run fits beside it")


def test_what_the_parties_opened_without_it_counts_once(tmp_path: Path) -> None:
    plan = plan_of()
    begun(tmp_path, plan)
    with Ledger(tmp_path / "ledger_0.jsonl") as party:
        party.begin(entry_of(plan, Attempt(0, 0), 0, token=TOKENS[0]))
        party.append(entry_of(plan, Attempt(0, 0), 0))
    assert counted(tmp_path) == [0]
    with owner(tmp_path, plan):  # it hears of it, and sends nothing
        assert counted(tmp_path) == [0]
    assert counted(tmp_path) == [0]


def test_parties_that_were_set_back_get_nothing_again(tmp_path: Path) -> None:
    """They begin an attempt of a number that the owner has seen: they know less than it does."""
    plan = plan_of()
    begun(tmp_path, plan)
    with owner(tmp_path, plan) as ledger, refuses("over", 0):
        ledger.sends(Attempt(0, 0), 0, TOKENS[1])
    assert counted(tmp_path) == [0]


@pytest.mark.parametrize("changes", [{"releases": 2}, {"min_owners": 1}, {"security": "active"}])
def test_else_a_line_is_written_before_anything_leaves(changes: dict[str, object], tmp_path: Path) -> None:
    """Of more releases one may be missing; an owner that may be missing comes again to the same attempt; and where
    parties may cheat nothing is carried on."""
    plan = plan_of(**changes)  # type: ignore[arg-type]
    attempt = plan.attempt if plan.attempt != AGREED else Attempt(0, 0)
    with OwnLedger(tmp_path / "ledger_owners.jsonl", plan, plan.attempt, None, None) as ledger:
        ledger.sends(attempt, 0, TOKENS[0])
    assert [entry.release for entry in Ledger.read(tmp_path / "ledger_owners.jsonl").entries] == [0]
