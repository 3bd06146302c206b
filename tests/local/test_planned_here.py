"""A plan that trains nothing, executed whole by one command: whose records, what is refused, what goes on."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpmpc.aggregation.plan.names import Names
from dpmpc.aggregation.plan.plan import Plan
from dpmpc.consortium.placement import Placement
from dpmpc.consortium.plan_alone import plan_only
from dpmpc.consortium.start import start
from dpmpc.extend import plan_of
from dpmpc.intake.table import Ints, Table
from dpmpc.learning.source import SOURCES, Source, Sum
from dpmpc.local import planned_here
from dpmpc.planning.request import Request
from dpmpc.privacy.ledgers import merge, read_ledgers
from dpmpc.run import run as running
from dpmpc.statistics.columns import Columns, Quantity, category
from dpmpc.statistics.tables import Tables
from tests.consortium.test_stages import WARDS, Fullest
from tests.consortium.test_stages import planned as staged
from tests.refusals import breaks, refuses

TABLES = Tables.of(Columns((Quantity("age", 0.0, 100.0), category("ward", ("a", "b")))), ["table(ward)"])
SIZES = {"ulm": 30, "bern": 50}


@pytest.fixture(autouse=True)
def known(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(SOURCES, "_targets", {**SOURCES._targets, "fullest": ""})
    monkeypatch.setattr(SOURCES, "_loaded", {**SOURCES._loaded, "fullest": Fullest})
    yield


def table(folder: Path, sizes: dict[str, int] = SIZES) -> Path:
    """Records of these owners: all in ward a at ulm, all in ward b elsewhere."""
    path = folder / "all.csv"
    rows = [f"{k},{'a' if site == 'ulm' else 'b'},{site}" for site, n in sizes.items() for k in range(n)]
    path.write_text("\n".join(["age,ward,site", *rows, ""]))
    return path


def asked(sizes: tuple[int, ...] = (50, 30), source: Source = TABLES, **settings: Any) -> Plan:
    promise = {"epsilon": 30.0, "delta": 1e-5, "engine": "clear", "data_id": "wards", **settings}
    return plan_of(source, sizes, **promise)


def execute(plan: Plan, folder: Path, csv: Path, out: str = "run", **more: Any) -> list[dict[str, Any]]:
    """What one command does with a plan file, and is told."""
    plan.write(folder / "plan.json")
    told = list[dict[str, Any]]()
    where = Placement(out=folder / out, plan_file=folder / "plan.json", account=str(folder / "account"))
    start(Request(csv=str(csv), owners_column="site", planned=True, engine="clear", **more), where, told.append)
    return told


def counts(folder: Path) -> list[float]:
    """The counts of both wards. Noise at epsilon 30 moves one by 8 with a chance below 1e-9: its deviation is 0.26."""
    numbers = json.loads((folder / "answers.json").read_text())["numbers"]
    return [row["estimate"] for row in numbers if row["statistic"] == "count"][:2]


def spent(folder: Path) -> int:
    """How many releases the ledgers in a folder and below have."""
    return len(merge(read_ledgers(folder)))


def test_its_promise_is_said_and_its_answers_are_there(tmp_path: Path) -> None:
    told = execute(asked(), tmp_path, table(tmp_path))
    said = [event["text"] for event in told if event["event"] == "part"]
    assert any(line.startswith("guarantee: epsilon = 30") for line in said)
    begun = next(k for k, event in enumerate(told) if event["event"] == "release")
    assert all(event["event"] != "part" for event in told[begun:]), "what it promises comes first"
    assert counts(tmp_path / "run") == pytest.approx([30, 50], abs=8)
    report = json.loads((tmp_path / "run" / "report.json").read_text())
    assert report["sizes"] == [50, 30] and report["privacy"]["epsilon"] == 30


def test_given_again_it_is_over_and_elsewhere_it_is_another_run(tmp_path: Path) -> None:
    """A plan file is no run: what is executed twice has two names, so that it counts twice."""
    plan, csv = asked(), table(tmp_path)
    execute(plan, tmp_path, csv)
    opened = (tmp_path / "run" / "owners.opened.bin").read_bytes()
    told = execute(plan, tmp_path, csv)
    assert [event["text"] for event in told] == ["this run is over; its report is here"]
    assert (tmp_path / "run" / "owners.opened.bin").read_bytes() == opened
    execute(plan, tmp_path, csv, out="again")
    runs = {Plan.read(tmp_path / name / "plan.json").run_id for name in ("run", "again")}
    assert len(runs) == 2 and plan.run_id not in runs
    with refuses("plan", tmp_path / "run"):
        execute(asked(epsilon=20.0), tmp_path, csv)


@pytest.mark.parametrize("place", ["before its report", "after its report"])
def test_what_was_cut_short_goes_on_and_counts_once(
    place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed when its sum was opened, and when all was told but not that it is over. Nothing is opened again."""

    class Killed(BaseException):
        pass

    def dies(*_: Any) -> None:
        raise Killed

    where, name = (planned_here, "deliver_ended") if place == "before its report" else (running, "keep_sum")
    monkeypatch.setattr(where, name, dies)
    with pytest.raises(Killed):
        execute(asked(), tmp_path, table(tmp_path))
    out = tmp_path / "run"
    opened = (out / "owners.opened.bin").read_bytes()
    assert (out / "report.json").exists() == (place == "after its report")
    monkeypatch.undo()
    monkeypatch.setattr(SOURCES, "_loaded", {**SOURCES._loaded, "fullest": Fullest})
    execute(asked(), tmp_path, table(tmp_path))
    assert (out / "report.json").exists() and counts(out) == pytest.approx([30, 50], abs=8)
    assert (out / "owners.opened.bin").read_bytes() == opened and spent(out) == 1


def test_owners_with_names_are_those_of_their_column(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In whatever order the plan has them; without names it is that of the column."""
    read, means = list[list[int]](), Tables.means

    def noted(self: Tables, table: Table, owner: Ints, sizes: Sequence[int]) -> Any:
        read.append(np.bincount(owner).tolist())
        return means(self, table, owner, sizes)

    monkeypatch.setattr(Tables, "means", noted)
    named = replace(asked((30, 50)), names=Names((), ("ulm", "bern")))
    execute(named, tmp_path, table(tmp_path))
    assert counts(tmp_path / "run") == pytest.approx([30, 50], abs=8) and read == [[30, 50]]
    with refuses("records", "ulm"):
        execute(named, tmp_path, table(tmp_path, {"ulm": 30, "bonn": 50}), out="others")
    with refuses("records", "50, 30"):
        execute(asked((30, 50)), tmp_path, table(tmp_path), out="turned")
    assert not (tmp_path / "others").exists() and not (tmp_path / "turned").exists()


def test_a_source_in_stages_is_executed_whole(tmp_path: Path) -> None:
    """A first release says which ward is the fullest, a second how old people are there: 300 of 400 in the south, all
    of 60; noise of a cell has a deviation below 10, and 100 are more than 6 of the four that could be taken for it."""
    path = tmp_path / "all.csv"
    rows = [f"{60 if k % 4 else 10},{'south' if k % 4 else WARDS[0]},s{k % 3}" for k in range(1200)]
    path.write_text("\n".join(["age,ward,site", *rows, ""]))
    plan = replace(staged(Fullest(), engine="clear"), data_id=asked().data_id)
    execute(plan, tmp_path, path)
    out = tmp_path / "run"
    assert Plan.read(out / "plan.json").source == Fullest().follows(_full(out)).source
    assert (out / "report.json").exists() and (out / "first" / "opened.npy").exists()
    assert (spent(out), spent(out / "first")) == (2, 1)
    assert execute(plan, tmp_path, path)[-1]["text"] == "this run is over; its report is here"


def _full(out: Path) -> Sum:
    total = np.load(out / "first" / "opened.npy")
    assert int(np.argmax(total)) == 1
    return Sum(total, 1200, 1.0)


def test_what_is_no_whole_plan_of_all_records_is_refused(tmp_path: Path) -> None:
    csv, both = table(tmp_path), asked((10, 10, 10), engine="mpc", role="both")
    trains = Request(
        csv=str(csv), target="ward", owners_column="site", epsilon=1.0, delta=1e-5, preprocessing="records"
    )
    plan_only(trains, Placement(out=tmp_path / "trains"))
    for plan, more, rule in (
        (Plan.read(tmp_path / "trains" / "plan.json"), {}, breaks("plan", "trains", setting="plan_file")),
        (Plan.create(owners=2, dimension=2, clip=1.0, epsilon=1.0, delta=1e-5), {}, breaks("plan", "vectors")),
        (replace(asked(), releases=2), {}, breaks("plan", "has 2")),
        (both, {}, breaks("plan", "every owner as a party", setting="index")),
        (asked(), {"max_rows": 10}, breaks("together", "max_rows", setting="owners_column")),
        (asked(), {"test_fraction": 0.1}, breaks("together", "test_fraction", setting="owners_column")),
    ):
        with refuses(rule):
            execute(plan, tmp_path, csv, **more)
    assert not (tmp_path / "run").exists()
