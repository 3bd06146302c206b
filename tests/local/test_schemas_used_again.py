"""A schema that a run's own survey found, used again: every reader says what both promise together, in all that it
prints, and the run itself says nothing twice."""

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import dpmpc
from dpmpc.aggregation.plan import stages
from dpmpc.aggregation.plan.guarantee import promise_of
from dpmpc.aggregation.plan.plan import Plan
from dpmpc.consortium.plan_of_machines import plan_of_machines
from dpmpc.planning.request import Request
from dpmpc.records.draft import toml_of
from dpmpc.records.schema import Schema
from tests.refusals import refuses
from tests.runs import dpmpc as command

BUDGET: dict[str, Any] = {"epsilon": 4.0, "delta": 1e-5}
HERE: dict[str, Any] = {**BUDGET, "engine": "clear"}


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    rng, n = np.random.default_rng(3), 3000
    x, city = rng.normal(50, 9, n).round(1), rng.choice(["aa", "bb", "cc"], n)
    y = (x + rng.normal(0, 4, n) > 50).astype(int)
    path = tmp_path_factory.mktemp("rows") / "rows.csv"
    pd.DataFrame({"x": x, "city": city, "y": y, "site": rng.choice(["n", "s", "w"], n)}).to_csv(path, index=False)
    return path


def trained(table: Path, out: Path, *more: str) -> str:
    """What `train` prints of a run that is surveyed first, unless `more` says otherwise."""
    what = ["--csv", str(table), "--owners-column", "site", "--epsilon", "4", "--delta", "1e-5", "--iterations", "2"]
    done = command("train", *what, *more, "--out", str(out), "--engine", "clear")
    assert done.returncode == 0, done.stderr
    return " ".join(done.stdout.split())


@pytest.fixture(scope="module")
def surveyed(table: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    out = tmp_path_factory.mktemp("surveyed") / "run"
    said = trained(table, out, "--target", "y", "--preprocessing", "survey", "--classes", "0", "--classes", "1")
    assert "the release that found" not in said
    yield out


def joined(schema: Schema) -> str:
    """What is said of a run of epsilon 4 by this schema."""
    (found,) = schema.found
    assert 0 < found.epsilon < 4 and found.neighbours == "record" and not found.places
    return f"ith the release that found the schema: epsilon = {4 + found.epsilon:.6g}, delta = 2e-05"


def by_train(table: Path, schema: Path, out: Path) -> list[str]:
    said = trained(table, out, "--schema", str(schema), "--preprocessing", "records")
    report = json.loads((out / "report.json").read_text())
    page = command("report", str(out), "--out", str(out / "page.html"))
    assert page.returncode == 0, page.stderr
    text = re.sub(r"<[^>]*>", "", " ".join((out / "page.html").read_text(encoding="utf-8").split()))
    return [said, report["privacy"]["statement"], text]


def by_questions(table: Path, schema: Path, out: Path) -> list[str]:
    found = dpmpc.stats(table, ["count", "mean(x)"], schema=schema, owners="site", **HERE)
    return [found.guarantee]


def by_rows(table: Path, schema: Path, out: Path) -> list[str]:
    found = dpmpc.synth(table, schema=schema, owners="site", seed=1, out=out, **HERE)
    return [found.guarantee, (out / "synthetic.csv").read_text(encoding="utf-8")]


def by_machines(table: Path, schema: Path, out: Path) -> list[str]:
    read, sizes = Schema.read(schema), (900, 1000, 1100)
    request = Request(
        schema=str(schema), owner_sizes=sizes, evaluate=False, preprocessing="records", iterations=1, data_id="rows",
        run_id="r", test_fraction=0.0, **BUDGET,
    )  # fmt: skip
    plan = plan_of_machines(request, read, sizes, complete=False, owners=["n", "s", "w"])[0]
    return [str(promise_of(Plan.from_text(plan.to_text())))]


READERS: dict[str, Callable[[Path, Path, Path], list[str]]] = {
    "train": by_train, "stats": by_questions, "synth": by_rows, "machines": by_machines,
}  # fmt: skip


@pytest.mark.parametrize("reader", READERS)
def test_every_reader_of_a_surveys_schema_joins_its_promise(
    table: Path, surveyed: Path, tmp_path: Path, reader: str
) -> None:
    path = surveyed / "survey" / "schema.json"
    said = READERS[reader](table, path, tmp_path / "out")
    assert [each[:1000] for each in said if joined(Schema.read(path)) not in each] == []


def test_the_schema_goes_through_files_and_the_runs_own_plan(surveyed: Path, tmp_path: Path) -> None:
    schema = Schema.read(surveyed / "survey" / "schema.json")
    (tmp_path / "schema.toml").write_text(toml_of(schema))
    assert Schema.read(tmp_path / "schema.toml") == schema
    plan = Plan.read(surveyed / "plan.json")
    assert plan.schema == schema.to_json() and plan.origin.found == schema.found
    promise = promise_of(plan)
    assert promise.joined is None and promise.beside == () and promise.epsilon == 4.0  # its own has the survey in it
    (found,) = schema.found
    assert found.run == plan.run_id and 1 - 1e-6 < Plan.read(surveyed / "survey" / "plan.json").epsilon / found.epsilon


def test_another_run_of_the_same_name_is_refused(surveyed: Path) -> None:
    """Whether the stages are its own could not be told."""
    plan = Plan.read(surveyed / "plan.json")
    assert replace(plan, run_id="another", released=()).origin.found == plan.origin.found
    with refuses("unique", setting="run_id"):
        replace(plan, released=())


def test_without_the_line_in_the_schema_no_reader_says_it(
    table: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stages, "_found", lambda plan, schema, released, opened: schema)
    dpmpc.train(
        csv=table, target="y", preprocessing="survey", classes=("0", "1"), owners_column="site", iterations=2,
        out=tmp_path / "run", **HERE,
    )  # fmt: skip
    path = tmp_path / "run" / "survey" / "schema.json"
    assert Schema.read(path).found == ()
    assert not any("that found the schema" in each for each in by_machines(table, path, tmp_path))
