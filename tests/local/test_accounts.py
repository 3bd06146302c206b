"""The account at every surface: what was spent is remembered when the run's folder is gone."""

import json
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import dpmpc
from dpmpc.aggregation.owner.accounts import account_of
from dpmpc.aggregation.owner.own_ledger import OwnLedger
from dpmpc.aggregation.plan.asked import FIRST_ATTEMPT, Attempt
from dpmpc.aggregation.wire.transcript import holds_nothing
from dpmpc.cli.main import named
from dpmpc.consortium.placement import Placement
from dpmpc.consortium.start import start
from dpmpc.planning.request import Request
from dpmpc.privacy.account import Account, account_folder
from dpmpc.privacy.data_names import data_digest
from dpmpc.privacy.ledger import Ledger
from tests.refusals import refuses
from tests.runs import HANG, own_addresses

command = named("budget")

VECTORS = np.full((3, 2), 0.1)
ONE = {"clip": 1.0, "epsilon": 0.5, "delta": 1e-5}


def records(folder: Path) -> Path:
    """A CSV file of a made-up hospital."""
    rng = np.random.default_rng(3)
    rows = [f"{rng.uniform():.3f},{rng.uniform():.3f},{rng.integers(2)}" for _ in range(60)]
    (folder / "hospital.csv").write_text("a,b,y\n" + "\n".join(rows) + "\n")
    (folder / "bounds.json").write_text(json.dumps({"a": [0, 1], "b": [0, 1], "y": ["0", "1"]}))
    return folder / "hospital.csv"


def train(folder: Path, name: str, **more: object) -> object:
    settings: dict[str, object] = {
        "csv": str(folder / "hospital.csv"), "bounds": str(folder / "bounds.json"), "target": "y", "owners": 2,
        "iterations": 3, "epsilon": 0.8, "delta": 1e-5, "evaluate": False, "engine": "clear", "data_id": "hospital",
    }  # fmt: skip
    return dpmpc.train(folder / "runs" / name, **settings | more)  # type: ignore[arg-type]


@pytest.mark.parametrize("engine", ["clear", pytest.param("mpc", marks=pytest.mark.slow)])
def test_a_deleted_run_is_still_spent(tmp_path: Path, engine: str) -> None:
    records(tmp_path)
    train(tmp_path, "x", engine=engine)
    shutil.rmtree(tmp_path / "runs")
    with refuses("budget", "hospital", "epsilon 1", 3, setting="budget"):
        train(tmp_path, "y", engine=engine, budget="1,1e-5")
    train(tmp_path, "z", engine=engine, budget="2,1e-5")
    answer = json.loads(CliRunner().invoke(command, ["--json"], catch_exceptions=False).output)
    (row,) = answer["data"]
    assert (row["name"], row["runs"], row["releases"], row["reserved"]) == ("hospital", 2, 6, 0)
    assert [gone["state"] for gone in answer["gone"]] == ["missing"] * (3 if engine == "mpc" else 1)
    text = CliRunner().invoke(command, [], catch_exceptions=False).output
    assert "hospital" in text and "is missing: all that was reserved for it counts" in text


def test_records_of_ones_own_count_whatever_somebody_calls_them(tmp_path: Path) -> None:
    """Sets that dpmpc brings count in no account; records in a file do, under the name of such a set too."""
    records(tmp_path)
    train(tmp_path, "x", data_id="wine")
    plan = dpmpc.Plan.read(tmp_path / "runs" / "x" / "plan.json")
    shutil.rmtree(tmp_path / "runs")
    with refuses("budget", "wine", "epsilon 1", 3, setting="budget"):
        train(tmp_path, "y", data_id="wine", budget="1,1e-5")
    plan = replace(plan, parties=3, threshold=1, backend="sharing", run_id="of-somebody-else")
    plan.write(tmp_path / "plan.json")
    mine = Request(csv=str(tmp_path / "hospital.csv"), planned=True, evaluate=False)
    where = Placement(out=tmp_path / "owner", index="owner0", plan_file=tmp_path / "plan.json", budget="9,1e-5")
    with refuses("missing", "wine", setting="budget"):
        start(mine, where, lambda event: None)


def test_another_account_is_named_by_every_surface(tmp_path: Path) -> None:
    records(tmp_path)
    mine = tmp_path / "mine"
    train(tmp_path, "x", account=str(mine))
    dpmpc.private_mean(VECTORS, **ONE, engine="clear", data_id="hospital", account=str(mine))
    with dpmpc.Aggregator(
        owners=3, dimension=2, **ONE, engine="clear", data_id="hospital", account=str(mine)
    ) as aggregator:
        aggregator.mean(VECTORS)
    known = Account(mine).known(data_digest("hospital"))
    assert [each.state for each in known] == ["there", "not kept", "not kept"] and not account_folder().exists()
    answer = CliRunner().invoke(command, ["--account", str(mine), "--json"], catch_exceptions=False)
    assert sum(row["releases"] for row in json.loads(answer.output)["data"]) >= 5
    empty = CliRunner().invoke(command, ["--account", str(tmp_path / "none")])
    assert "an account remembers what runs on named data have spent" in str(empty.exception)


@pytest.mark.parametrize("engine", ["clear", pytest.param("mpc", marks=pytest.mark.slow)])
def test_aggregators_and_means_in_one_process_are_held_against_a_budget(engine: str) -> None:
    more = {"engine": engine, "budget": "1,1e-5"}
    for _ in range(3):  # three of epsilon 0.5 are 0.89 together, four are 1.04
        dpmpc.private_mean(VECTORS, **ONE, **more)  # type: ignore[arg-type]
    with refuses("budget", "vectors", "epsilon 1", setting="budget"):
        dpmpc.private_mean(VECTORS, **ONE, **more)  # type: ignore[arg-type]
    dpmpc.private_mean(VECTORS, **ONE, engine=engine)  # only a budget refuses
    dpmpc.private_mean(VECTORS, **ONE, **more, data_id="others")  # type: ignore[arg-type]
    with refuses("budget", "vectors", "epsilon 1", setting="budget"):
        dpmpc.Aggregator(owners=3, dimension=2, **ONE, **more)  # type: ignore[arg-type]


def test_an_aggregator_that_stops_early_has_spent_what_it_opened() -> None:
    for _ in range(3):
        with dpmpc.Aggregator(
            owners=3, dimension=2, clip=1.0, epsilon=0.9, delta=1e-5, releases=10, engine="clear", budget="1,1e-5"
        ) as aggregator:
            aggregator.mean(VECTORS)


def test_what_counts_where() -> None:
    def plan(name: str) -> dpmpc.Plan:
        return dpmpc.Plan.create(owners=2, dimension=2, clip=1.0, epsilon=1.0, delta=1e-5, data_id=name)

    named, nameless = account_of(plan("hospital")), account_of(plan("vectors"))
    assert named == Account(account_folder()) and nameless is not None and nameless != named
    assert account_of(plan("breast-cancer")) is None
    assert account_of(plan("breast-cancer"), callers=True) == named
    assert account_of(plan("vectors"), "books") == Account(Path("books").absolute())


def test_a_run_does_not_start_where_its_account_cannot_be_written(tmp_path: Path) -> None:
    records(tmp_path)
    (tmp_path / "file").write_text("")
    with refuses("path", setting="account"):
        train(tmp_path, "x", account=str(tmp_path / "file" / "account"))
    assert all(holds_nothing(path) for path in tmp_path.rglob("*.opened.bin"))


@pytest.mark.slow
def test_processes_that_this_one_starts_count_with_it() -> None:
    dpmpc.private_mean(VECTORS, **ONE, engine="clear")
    program = (
        "import numpy, dpmpc; "
        "dpmpc.private_mean(numpy.full((3, 2), 0.1), clip=1.0, epsilon=0.5, delta=1e-5, engine='clear')"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
    with refuses("budget", 2, setting="budget"):
        dpmpc.private_mean(VECTORS, **ONE, engine="clear", budget="0.8,1e-5")


# -- once --------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("first", [0, 1])
def test_a_ledger_takes_no_second_line_of_a_release(tmp_path: Path, first: int) -> None:
    plan = dpmpc.Plan.create(owners=2, dimension=2, clip=1.0, epsilon=1.0, delta=1e-5, releases=4)
    path = tmp_path / "ledger_0.jsonl"
    with OwnLedger(path, plan, FIRST_ATTEMPT, None, None):
        pass  # an attempt without lines
    with OwnLedger(path, plan, FIRST_ATTEMPT, None, None) as ledger:
        for release in (0, 0, 1):  # the first one's vectors were refused, and came again
            ledger.spend(FIRST_ATTEMPT, release)
    assert [entry.release for entry in Ledger.read(path).entries] == [0, 1]
    again = Attempt(1, first)
    with refuses("budget", "release 1", setting="run_id"):
        OwnLedger(path, plan, again, None, None)
    with OwnLedger(path, plan, Attempt(1, 2), None, None) as ledger:
        ledger.spend(Attempt(1, 2), 2)
    with OwnLedger(path, replace(plan, run_id="another"), FIRST_ATTEMPT, None, None) as ledger:
        ledger.spend(FIRST_ATTEMPT, 0)


@pytest.mark.slow
@pytest.mark.parametrize("account", ["kept", "new at the owners"])
def test_a_plan_with_active_security_is_opened_once_in_the_same_folders(tmp_path: Path, account: str) -> None:
    """Three tries were three looks at one release under a limit of epsilon 1: 1.0, 1.465, 1.835."""
    plan = dpmpc.Plan.create(
        owners=2, dimension=2, clip=1.0, epsilon=1.0, delta=1e-5, security="active", run_id="once", data_id="hospital"
    )
    limits = dpmpc.Limits(epsilon=1.0, delta=1e-5, neighbours="owner")

    def attempt(number: int) -> list[np.ndarray | BaseException]:
        addresses = own_addresses(plan.parties)[1::2]
        own = str(tmp_path / f"account{number if account != 'kept' else ''}")

        def party(index: int) -> None:
            out = tmp_path / f"party{index}"
            dpmpc.Party(plan, index, addresses, out=out, wait=HANG, limits=limits, account=str(tmp_path / "p")).run()

        def owner(index: int) -> np.ndarray:
            more = {} if account == "kept" else {"out": tmp_path / "gone" / str(number)}
            with dpmpc.Owner(plan, index, addresses, wait=HANG, limits=limits, account=own, **more) as me:
                return me.mean(np.full(2, 0.1))

        with ThreadPoolExecutor(5) as pool:
            parties = [pool.submit(party, index) for index in range(plan.parties)]
            try:
                first = [each.exception() for each in parties] if number else []
                owners = [pool.submit(owner, index) for index in range(plan.owners)] if not any(first) else []
                return [*first, *(each.exception() or each.result() for each in owners)]
            finally:
                for each in parties:
                    each.exception()

    assert all(isinstance(found, np.ndarray) for found in attempt(0))
    for number in (1, 2):
        refused = attempt(number)
        assert len(refused) == plan.parties and all("spends each release once" in str(each) for each in refused)
    if account == "kept":
        with refuses("budget", "release 0", setting="run_id"):
            dpmpc.Owner(plan, 0, ["127.0.0.1:1"] * 3, limits=limits, account=str(tmp_path / "account"))
    lines = [Ledger.read(path).entries for path in sorted(tmp_path.rglob("ledger_*.jsonl"))]
    assert len(lines) == plan.parties + plan.owners and all(len(each) == 1 for each in lines)


def test_an_owners_budget_is_held_against_what_its_account_remembers(tmp_path: Path) -> None:
    def plan(name: str) -> dpmpc.Plan:
        return dpmpc.Plan.create(
            owners=2, dimension=2, clip=1.0, epsilon=0.9, delta=1e-5, data_id="hospital", run_id=name
        )

    with OwnLedger(tmp_path / "ledger_0.jsonl", plan("a"), FIRST_ATTEMPT, None, Account(account_folder())) as ledger:
        ledger.spend(FIRST_ATTEMPT, 0)
    limits = dpmpc.Limits(budget="1,1e-5", data_id="hospital")
    with refuses("budget", "hospital", "epsilon 1", setting="budget"):
        dpmpc.Owner(plan("b"), 0, ["127.0.0.1:1"] * 3, limits=limits)
    with refuses("missing", "data_id"):
        dpmpc.Owner(plan("b"), 0, ["127.0.0.1:1"] * 3, limits=dpmpc.Limits(budget="1,1e-5"))


def test_a_run_is_replaced_under_another_name_alone(tmp_path: Path) -> None:
    records(tmp_path)
    train(tmp_path, "x", run_id="one")
    with refuses("over", "3 of run one", setting="overwrite"):
        train(tmp_path, "x", run_id="one", overwrite=True)
    train(tmp_path, "x", run_id="two", overwrite=True)
    runs = [entry.run for entry in Ledger.read(tmp_path / "runs/x/ledger_0.jsonl").entries]
    assert runs == ["one"] * 3 + ["two"] * 3
