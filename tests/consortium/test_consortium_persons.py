"""Persons and capacities over several machines: what consortium.toml says, and what an owner's process makes of it."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpmpc.aggregation.plan.here import Here
from dpmpc.aggregation.plan.plan import Plan
from dpmpc.consortium.one_release import vectors_of
from dpmpc.consortium.toml import read_consortium
from dpmpc.errors import RecordError
from dpmpc.local.job import OwnersJob
from dpmpc.local.named_records import load_owner, looked_at, open_records
from dpmpc.local.own_records import own_records
from dpmpc.planning.request import Request
from dpmpc.statistics.tables import STEP, Tables
from tests.refusals import refuses

TEXT = """
[run]
data_id = "wards"
[[parties]]
address = "127.0.0.1:21365"
[[parties]]
address = "127.0.0.1:22365"
[[parties]]
address = "127.0.0.1:23365"
[[owners]]
{first}
[[owners]]
{second}
[records]
bounds = {{ age = [0, 120] }}
target = "ill"
positive = ["1"]
negative = ["0"]
preprocessing = "records"
[privacy]
epsilon = 1.0
delta = 1e-5
{privacy}
{more}
"""


def plan_of(folder: Path, first: str, second: str, privacy: str = "", more: str = "") -> Plan:
    path = folder / "consortium.toml"
    text = TEXT.format(first=first, second=second, privacy=privacy, more=more)
    if "[stats]" in more or "[synth]" in more:
        text = text.replace('target = "ill"\npositive = ["1"]\nnegative = ["0"]\n', "")
    if "[synth]" in more:
        text = text.replace("age = [0, 120]", 'age = [0, 120], ill = ["0", "1"]')
    path.write_text(text, encoding="utf-8")
    return read_consortium(path).plan


PERSONS = 'person = "who"\nperson_rows = 3'


def test_owners_say_how_many_persons_they_have_or_places_for_how_many(tmp_path: Path) -> None:
    plan = plan_of(tmp_path, "persons = 20", "persons = 30", PERSONS)
    assert plan.sizes == (60, 90) and plan.neighbours == "person" and not plan.capacity and not plan.counted
    plan = plan_of(tmp_path, "capacity = 20", "capacity = 30", PERSONS)
    assert plan.sizes == (60, 90) and plan.capacity
    plan = plan_of(tmp_path, "capacity = 128", "capacity = 128")
    assert plan.sizes == (128, 128) and plan.capacity and plan.neighbours == "record"
    stats = plan_of(
        tmp_path, "persons = 20", "persons = 30", PERSONS, '[stats]\nqueries = ["count"]\nhopeless = "allow"'
    )
    assert stats.sizes == (60, 90) and stats.neighbours == "person"
    for first, second, privacy in (
        ("records = 20", "persons = 20", PERSONS),
        ("records = 20", "records = 20", PERSONS),
        ("persons = 20", "persons = 20", ""),
        ("capacity = 20", "records = 20", ""),
        ("capacity = 20\nrecords = 9", "capacity = 20", ""),
        ('name = "a"', "records = 20", ""),
    ):
        with refuses("missing", "[[owners]]"):
            plan_of(tmp_path, first, second, privacy)


def records(folder: Path, persons: int, each: int = 2) -> str:
    path = folder / f"records{persons}.csv"
    lines = [f"p{k // each},{20 + k % 50},{k % 2}" for k in range(persons * each)]
    path.write_text("\n".join(["who,age,ill", *lines]) + "\n", encoding="utf-8")
    return str(path)


@pytest.mark.parametrize(("capacity", "persons"), [(False, 20), (True, 20), (True, 19)])
def test_an_owners_process_fills_the_places_of_its_plan(capacity: bool, persons: int, tmp_path: Path) -> None:
    kind = "capacity" if capacity else "persons"
    plan = plan_of(tmp_path, f"{kind} = 20", f"{kind} = 30", PERSONS)
    dataset = load_owner(Request(records=records(tmp_path, persons, 4), planned=True, delta=1e-5), plan, 0)
    assert dataset.n == 60 and int(dataset.train.X.any(axis=1).sum()) == 3 * persons, "three of four are kept"
    assert dataset.beyond == persons
    for wrong in (21, 18) if not capacity else (21,):
        with pytest.raises(RecordError) as caught:
            load_owner(Request(records=records(tmp_path, wrong), planned=True, delta=1e-5), plan, 0)
        assert str(wrong) not in caught.value.message


def test_an_owner_hears_before_it_joins_how_many_records_have_no_place(tmp_path: Path) -> None:
    plan = plan_of(tmp_path, "capacity = 20", "capacity = 30", PERSONS)
    for each, said in ((3, []), (4, ["your records: 19 records are not used: each person has 3 places at an owner, "
                                     "which earlier records fill"])):  # fmt: skip
        request = Request(records=records(tmp_path, 19, each), planned=True, delta=1e-5)
        with open_records(request) as found:
            lines = looked_at(plan, request, found.table)
        assert [line for line in lines if "not used" in line] == said


def test_tables_count_places(tmp_path: Path) -> None:
    asked = '[stats]\nqueries = ["count"]\nhopeless = "allow"'
    for kind, persons in (("persons", 20), ("capacity", 17)):
        plan = plan_of(tmp_path, f"{kind} = 20", f"{kind} = 30", PERSONS, asked)
        request: Any = Request(records=records(tmp_path, persons), planned=True, delta=1e-5)
        job = OwnersJob(request, Here(out=tmp_path / "out"), 0.0, plan=plan, owner=0)
        job.out.mkdir(exist_ok=True)
        with own_records(job, plan, lambda event, **fields: None) as found:
            (vector,) = vectors_of(job, plan, found.table)
        (count,) = np.abs(vector).max(axis=1)
        full = plan.source.clip  # type: ignore[union-attr]
        assert count == pytest.approx(full * persons * 2 / 60, rel=1e-6)


def test_a_synthetic_table_is_of_places_too(tmp_path: Path) -> None:
    """Its first release, of an owner with fewer persons than places: as of tables."""
    for kind, persons in (("persons", 20), ("capacity", 17)):
        asked = '[synth]\ncells = 4\nhopeless = "allow"'
        plan = plan_of(tmp_path, f"{kind} = 20", f"{kind} = 30", PERSONS, asked).ahead[-1]
        assert plan.sizes == (60, 90) and not plan.counted and plan.neighbours == "person"
        request: Any = Request(records=records(tmp_path, persons), planned=True, delta=1e-5)
        job = OwnersJob(request, Here(out=tmp_path / "out"), 0.0, plan=plan, owner=0)
        job.out.mkdir(exist_ok=True)
        with own_records(job, plan, lambda event, **fields: None) as found:
            (vector,) = vectors_of(job, plan, found.table)
        tables = plan.source
        assert isinstance(tables, Tables)
        ages = tables.opened(vector[0] * 60 / STEP, 0.0, plan.sizes, counted=False).raw(tables.layout.blocks[0])
        assert ages.sum() == pytest.approx(2 * persons, abs=0.01), "two records of each person, and empty places"
