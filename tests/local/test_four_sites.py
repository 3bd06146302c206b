"""Four sites with their own spellings, column orders and copies: one schema maps them all, or they are refused."""

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpmpc.aggregation.plan.plan import Plan
from dpmpc.errors import owner_text
from dpmpc.learning.method import Learner
from dpmpc.learning.model import write_model
from dpmpc.local.named_records import load_owner
from dpmpc.planning.request import Request
from dpmpc.planning.training import facts_without_records, plan_of
from dpmpc.records.schema import Categorical, Labels, Numeric, Schema
from tests.refusals import Rule, breaks, refuses

COLUMNS = (
    Numeric("age", 0.0, 100.0),
    Categorical("ward", ("surgery", "medicine", "3", "4")),
    Numeric("pressure", 80.0, 200.0),
)
SCHEMA = Schema(COLUMNS, Labels("outcome", ("1",), ("0",)))
RECORDS = [
    {"age": "40", "ward": "3", "pressure": "120", "outcome": "1"},
    {"age": "75", "ward": "surgery", "pressure": "", "outcome": "0"},
    {"age": "120", "ward": "4", "pressure": "95.5", "outcome": "1"},
    {"age": "7", "ward": "unheard of", "pressure": "180", "outcome": "0"},
]


def plan(tmp_path: Path, **changes: Any) -> Plan:
    """The plan of four sites, made without any record."""
    SCHEMA.write(tmp_path / "schema.json")
    asked: dict[str, Any] = {"epsilon": 1.0, "delta": 1e-5, "iterations": 3, "owner_sizes": (4, 4, 4, 4), **changes}
    request = Request(schema=str(tmp_path / "schema.json"), run_id="r", method="gradient", **asked)
    return plan_of(request, facts_without_records(request))


def site(path: Path, order: list[str], spell: dict[str, str] | None = None, **more: str) -> Request:
    """A site's file, with its columns in an order of its own and some values spelled its own way."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, [*order, *more])
        writer.writeheader()
        for record in RECORDS:
            writer.writerow({name: (spell or {}).get(record[name], record[name]) for name in order} | more)
    return Request(csv=str(path), planned=True, owner_sizes=(4, 4, 4, 4), epsilon=1.0, delta=1e-5)


def test_orders_and_spellings_do_not_matter(tmp_path: Path) -> None:
    names = ["age", "ward", "pressure", "outcome"]
    one = plan(tmp_path)
    sites = [
        site(tmp_path / "a.csv", names),
        site(tmp_path / "b.csv", names[::-1]),
        site(tmp_path / "c.csv", names, {"4": "4.0", "3": " 3.00", "1": "1.0", "0": "0.0", "40": "4e1"}),
        site(tmp_path / "d.csv", [names[k] for k in (2, 3, 0, 1)], {"": "NA"}, remark="kept at home"),
    ]
    data = [load_owner(request, one, owner) for owner, request in enumerate(sites)]
    for each in data[1:]:
        assert np.array_equal(each.X, data[0].X) and np.array_equal(each.y, data[0].y)
    assert data[0].y.tolist() == [1, -1, 1, -1]
    assert data[0].feature_names[1:5] == ("ward=surgery", "ward=medicine", "ward=3", "ward=4")
    assert (data[0].X[:, 3] > 0).tolist() == [True, False, False, False]
    assert (data[0].X[:, 4] > 0).tolist() == [False, False, True, False]
    unknown = next(count for count in data[0].counts if count.name == "ward")
    assert (unknown.unknown, next(c for c in data[0].counts if c.name == "age").clipped) == (1, 1)


@pytest.mark.parametrize(
    ("order", "spell", "broken"),
    [
        (["age", "ward", "outcome"], {}, breaks("column", "pressure")),
        (["age", "pressure", "outcome"], {}, breaks("column", "ward")),
        (["age", "ward", "pressure"], {}, breaks("column", "outcome")),
        (["age", "ward", "pressure", "outcome"], {"1": "2"}, breaks("records", "outcome", "2.0")),
        (["age", "ward", "pressure", "outcome"], {"1": "yes"}, breaks("records", "outcome", "yes")),
    ],
)
def test_what_the_schema_does_not_fit_is_refused_at_that_owner(
    order: list[str], spell: dict[str, str], broken: Rule, tmp_path: Path
) -> None:
    with refuses(broken) as caught:
        load_owner(site(tmp_path / "a.csv", order, spell), plan(tmp_path), 0)
    assert "\n" not in owner_text(caught.value)


def test_owners_map_by_the_plan_or_not_at_all(tmp_path: Path) -> None:
    file = site(tmp_path / "a.csv", ["age", "ward", "pressure", "outcome"])
    value = json.loads(plan(tmp_path).to_text())
    value |= {"schema": None, "bounds": "public"}
    value["source"]["learning"] |= {"task": "logistic", "classes": 2}  # which the schema said
    with refuses("plan", setting="schema"):
        load_owner(file, Plan.from_text(json.dumps(value)), 0)
    for option in ({"target": "outcome"}, {"bounds": "b.json"}, {"positive": "1"}, {"schema": "s.json"}):
        with refuses("together", setting="target"):
            Request(csv="a.csv", planned=True, owner_sizes=(4,), delta=1e-5, **option)


def test_plans_of_one_schema_are_one_plan_whatever_the_spelling_of_its_file(tmp_path: Path) -> None:
    first = plan(tmp_path)
    text = json.loads((tmp_path / "schema.json").read_text())
    for column in text["columns"]:
        if "low" in column:
            column["low"] = int(column["low"])
    text["target"]["positive"] = [1.0]
    (tmp_path / "other.json").write_text(json.dumps(text, indent=3, sort_keys=True))
    request = Request(schema=str(tmp_path / "other.json"), owner_sizes=(4, 4, 4, 4), delta=1e-5)
    assert Schema.read(tmp_path / "other.json").digest == first.schema_digest
    assert facts_without_records(request).schema == first.schema


def test_a_model_holds_nothing_of_one_record_but_what_was_released(tmp_path: Path) -> None:
    """With the noisy means fixed, the files of neighbouring inputs are the same: spellings, counts, names, order."""
    names = ["age", "ward", "pressure", "outcome"]
    one = plan(tmp_path)
    means = [np.full(one.dimension, 0.01 * k) for k in range(one.releases)]
    files = []
    neighbours = [{}, {"1": "1.0"}, {"120": "-5"}, {"unheard of": "medicine"}, {"": "99"}]
    for k, change in enumerate(neighbours):
        dataset = load_owner(site(tmp_path / f"{k}.csv", names, change), one, 0)
        learner = Learner(one.learning, one.releases, dataset.train, (4,))
        for mean in means:
            learner.apply(mean)
        write_model(tmp_path / f"{k}.npz", learner.model, dataset, one.run_id)
        with np.load(tmp_path / f"{k}.npz", allow_pickle=False) as saved:
            files.append({name: saved[name].tolist() for name in saved.files})
    assert all(file == files[0] for file in files)
