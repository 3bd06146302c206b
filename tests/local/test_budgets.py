"""Budgets of whole runs: two at once, names of data, owners as neighbours, what a killed run leaves."""

import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from dpmpc.aggregation.plan.asked import FIRST_ATTEMPT
from dpmpc.aggregation.plan.plan import Plan
from dpmpc.aggregation.plan.spending import entry_of, prices_of
from dpmpc.cli.main import named
from dpmpc.planning.request import Request
from dpmpc.privacy.composition import spent
from dpmpc.privacy.ledgers import merge, read_ledgers
from dpmpc.run.reserve import budget_below
from tests.refusals import refuses
from tests.runs import dpmpc, errors_of, small, started

command = named("budget")

TRAIN = (
    *("train", "--data", "synthetic", "--max-rows", 120, "--dimension", 4, "--owners", 3, "--no-evaluate"),
    *("--epsilon", 0.8, "--delta", "1e-5", "--iterations", 30, "--budget", "1,1e-5", "--out"),
)


@pytest.mark.slow
def test_of_two_runs_at_once_one_gets_the_budget(tmp_path: Path) -> None:
    with started(*TRAIN, tmp_path / "a") as a, started(*TRAIN, tmp_path / "b") as b:
        errors = [errors_of(a), errors_of(b)]
        codes = sorted((a.returncode, b.returncode))
    assert codes == [0, 2], errors
    assert sum("the budget for data synthetic" in error for error in errors) == 1, errors
    digest = merge(read_ledgers(tmp_path))[0].data[0]
    assert spent(merge(read_ledgers(tmp_path)), digest, 1e-5, "record").epsilon == pytest.approx(0.8, rel=1e-6)
    answer = json.loads(dpmpc("budget", tmp_path, "--json", "--budget", "1,1e-5").stdout)
    (row,) = answer["data"]
    assert (row["name"], row["neighbours"], row["reserved"], row["attempts"]) == ("synthetic", "record", 0, 1)
    assert row["within_budget"] and answer["copies"] == []


def test_records_of_a_file_need_a_name_for_a_budget() -> None:
    with refuses("missing", "data_id=NAME", setting="budget"):
        Request(csv="hospital.csv", target="outcome", owners=2, delta=1e-5, budget="1,1e-5")
    Request(csv="copy of hospital.csv", target="outcome", owners=2, delta=1e-5, budget="1,1e-5", data_id="hospital")
    small(budget="1,1e-5")  # a named set


def test_a_party_takes_part_in_plans_for_the_budgets_data_only(tmp_path: Path) -> None:
    columns = [{"kind": "number", "name": f"x{k}", "low": 0, "high": 1} for k in range(3)]
    target = {"kind": "label", "name": "y", "positive": [1], "negative": [0]}
    (tmp_path / "schema.json").write_text(json.dumps({"columns": columns, "target": target}))
    plan = ("train", "--plan-only", "--owner-sizes", "40,60", "--schema", tmp_path / "schema.json", "--delta", "1e-5")
    assert dpmpc(*plan, "--data-id", "fresh name", "--out", tmp_path / "plan").returncode == 0
    assert Plan.read(tmp_path / "plan" / "plan.json").data == "fresh name"
    party = ("train", "--plan", tmp_path / "plan" / "plan.json", "-I", 0, "--budget", "1,1e-5", "--wait", 0.2)
    without = dpmpc(*party, "--out", tmp_path / "p0")
    assert without.returncode == 2 and "add --data-id" in without.stderr
    other = dpmpc(*party, "--out", tmp_path / "p1", "--data-id", "hospital")
    assert other.returncode == 2 and "for the records called 'hospital'" in other.stderr
    same = dpmpc(*party, "--out", tmp_path / "p2", "--data-id", "fresh name")
    assert same.returncode == 3 and "missing: party" in same.stderr  # it would take part; nobody else is there


def test_a_runs_own_ledgers_are_below_the_budgets_folder(tmp_path: Path) -> None:
    with refuses("together", setting="out"):
        budget_below("1,1e-5", tmp_path / "ledgers", tmp_path / "runs" / "a")
    inside = budget_below("1,1e-5", tmp_path, tmp_path / "runs" / "a")
    assert inside is not None and inside.root == tmp_path.resolve()
    default = budget_below("1,1e-5", None, tmp_path / "runs" / "a")
    assert default is not None and default.root == (tmp_path / "runs").resolve()


@pytest.mark.parametrize("weights", [[1, 1, 1], [5, 2, 9]])
def test_a_line_prices_all_of_an_owners_records(weights: list[int]) -> None:
    """Oracle: two vectors at opposite ends of the ball, of the owner with the largest weight, through the owners' own
    clipping and grid."""
    from dpmpc.aggregation.owner.encoding import encode

    plan = Plan.create(owners=3, dimension=5, clip=2.0, delta=1e-5, sensitivity=0.1, weights=weights)
    line = entry_of(plan, FIRST_ATTEMPT, 0)
    assert line.neighbours == "stated" and line.mechanism.sensitivity.l2 < 0.1 * dict(line.prices)["owner"].l2
    largest = int(np.argmax(weights))
    v = np.full((1, 5), 100.0)
    moved = encode(plan, v, largest) - encode(plan, -v, largest)
    bound = dict(prices_of(plan))["owner"].l2
    assert 0.99 * bound < np.linalg.norm(moved) <= bound
    whole = Plan.create(owners=3, dimension=5, clip=2.0, delta=1e-5, weights=weights)
    (other,) = prices_of(whole)  # what it promises is the owner's price; a person may have records at every owner
    assert other[0] == "person" and other[1].l2 > whole.derived.mechanism.sensitivity.l2
    moved = encode(whole, v, largest) - encode(whole, -v, largest)
    assert (
        0.99 * whole.derived.mechanism.sensitivity.l2 < np.linalg.norm(moved) <= whole.derived.mechanism.sensitivity.l2
    )
    laplace = Plan.create(owners=3, dimension=5, clip=2.0, sensitivity=0.1, weights=weights)
    assert (
        np.abs(encode(laplace, v, largest) - encode(laplace, -v, largest)).sum() <= dict(prices_of(laplace))["owner"].l1
    )


def test_budget_says_names_copies_and_neighbours(tmp_path: Path) -> None:
    import shutil

    from dpmpc.privacy.ledger import Ledger

    records = Plan.create(owners=3, dimension=5, clip=2.0, delta=1e-5, sensitivity=1.0, data_id="ward 7", releases=4)
    owners = Plan.create(owners=3, dimension=5, clip=2.0, delta=1e-5, data_id="ward 7", releases=4)
    for name, plan in (("a", records), ("b", owners)):
        with Ledger(tmp_path / name / "ledger_0.jsonl") as ledger:
            for release in range(4):
                ledger.append(entry_of(plan, FIRST_ATTEMPT, release))
    shutil.copytree(tmp_path / "a", tmp_path / "a (copy)")
    shown = CliRunner().invoke(command, [str(tmp_path), "--data", "ward 7"]).output
    assert "ward 7" in shown and "2 ledgers are copies of one and count once" in shown
    answer = json.loads(CliRunner().invoke(command, [str(tmp_path), "--json"]).output)
    rows = {row["neighbours"]: row for row in answer["data"]}
    assert rows.keys() == {"owner", "stated"} and rows["owner"]["releases"] == rows["stated"]["releases"] == 8
    assert rows["stated"]["epsilon"] < 2 < 4 < rows["owner"]["epsilon"]
    assert len(answer["copies"]) == 1 and len(answer["runs"]) == 2
