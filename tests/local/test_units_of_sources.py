"""Every kind of source, for every unit of the promise, by every command that reads records: none ends in an error (but
meetings of persons, which are refused), and what is public of the plan is the same whatever the records were kept in.
"""

import contextlib
import json
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dpmpc
from dpmpc.aggregation.plan.asked import plan_path
from dpmpc.aggregation.plan.plan import Plan
from dpmpc.consortium.plan_of_machines import plan_of_machines
from dpmpc.flower import check_records, prepare_questions
from dpmpc.local.named_records import load_owner
from dpmpc.planning.request import Request
from dpmpc.records.loading import Query, opened
from dpmpc.records.schema import Categorical, Labels, Numeric, Schema
from dpmpc.statistics.scores import ScoreModel
from tests.refusals import refuses

UNITS: dict[str, dict[str, Any]] = {
    "record": {},
    "presence": {"neighbours": "presence"},
    "person": {"person": "who", "person_rows": 3},
    "person at one owner": {"person": "who", "person_rows": 3, "person_owners": 1},
    "owner": {"neighbours": "owner"},
}
SOURCES = ("csv", "tsv", "csv.gz", "parquet", "feather", "jsonl", "jsonl.gz", "folder", "sqlite", "frame")
BOUNDS = {"age": [18, 90], "ward": ["a", "b"], "out": ["n", "y"]}
ROWS = [
    {"age": 20 + k % 60, "ward": "ab"[k % 2], "site": f"s{k // 120}", "who": f"p{k // 3}", "out": "ny"[k % 5 == 0]}
    for k in range(360)
]
COMMON: dict[str, Any] = {"epsilon": 8.0, "delta": 1e-6, "engine": "clear"}


def csv_text(separator: str = ",") -> str:
    return "\n".join([separator.join(ROWS[0]), *(separator.join(map(str, row.values())) for row in ROWS)]) + "\n"


def source_of(kind: str, folder: Path) -> Any:
    """The same records, kept so."""
    import gzip

    path = folder / f"r.{kind}"
    lines = "".join(json.dumps(row) + "\n" for row in ROWS)
    if kind in ("csv", "tsv"):
        path.write_text(csv_text("," if kind == "csv" else "\t"))
    elif kind == "jsonl":
        path.write_text(lines)
    elif kind in ("csv.gz", "jsonl.gz"):
        path.write_bytes(gzip.compress((csv_text() if kind == "csv.gz" else lines).encode()))
    elif kind == "folder":
        path.mkdir()
        for part in range(2):
            half = ROWS[180 * part : 180 * (part + 1)]
            (path / f"{part}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in half))
    elif kind == "sqlite":
        with contextlib.closing(sqlite3.connect(path)) as base, base:
            base.execute("CREATE TABLE t (age INTEGER, ward TEXT, site TEXT, who TEXT, out TEXT)")
            base.executemany("INSERT INTO t VALUES (:age, :ward, :site, :who, :out)", ROWS)
        return Query(f"sqlite:///{path}", "SELECT * FROM t")
    else:
        pandas = pytest.importorskip("pandas")
        frame = pandas.DataFrame(ROWS)
        if kind == "frame":
            return frame
        pytest.importorskip("pyarrow")
        frame.to_parquet(path) if kind == "parquet" else frame.to_feather(path)
    return path


def train(source: Any, unit: dict[str, Any], folder: Path) -> Plan:
    where = {"database": source.url, "sql": source.sql} if isinstance(source, Query) else {"records": str(source)}
    dpmpc.train(folder, **where, target="out", owners_column="site", classes=("n", "y"), preprocessing="records",
                evaluate=False, iterations=2, data_id="rows", **COMMON, **unit)  # fmt: skip
    return Plan.read(plan_path(folder))


def stats(source: Any, unit: dict[str, Any], folder: Path) -> Plan:
    questions = ["mean(age)", "table(ward)"]
    dpmpc.stats(source, questions, owners="site", bounds=BOUNDS, data_id="rows", hopeless="allow", out=folder,
                tell=lambda text: None, **COMMON, **unit)  # fmt: skip
    return Plan.read(plan_path(folder))


def synth(source: Any, unit: dict[str, Any], folder: Path) -> Plan:
    dpmpc.synth(source, owners="site", bounds=BOUNDS, data_id="rows", hopeless="allow", out=folder, rows=20, seed=1,
                **COMMON, **unit)  # fmt: skip
    return Plan.read(plan_path(folder / "survey"))  # what follows has the cells that its noise leaves


def synth_bounds(source: Any, unit: dict[str, Any], folder: Path) -> Plan:
    dpmpc.synth(source, owners="site", bounds=BOUNDS, data_id="rows", hopeless="allow", out=folder, rows=20, seed=1,
                cells=4, **COMMON, **unit)  # fmt: skip
    return Plan.read(sorted(folder.rglob("plan.json"))[0])


SCHEMA = Schema((Numeric("age", 18.0, 90.0), Categorical("ward", ("a", "b"))), Labels("out", ("y",), ("n",)))


def evaluate(source: Any, unit: dict[str, Any], folder: Path) -> Plan:
    """Figures of a model over all owners' records."""
    model = ScoreModel.of(SCHEMA, [0.5, 0.2, -0.2, 0.1])
    dpmpc.stats(source, ["evaluate(m)"], owners="site", schema=SCHEMA, models={"m": model}, data_id="rows",
                hopeless="allow", out=folder, **COMMON, **unit)  # fmt: skip
    return Plan.read(plan_path(folder))


def meet(source: Any, unit: dict[str, Any], folder: Path) -> Plan:
    dpmpc.meet(source, ["age", "ward"], owners="site", data_id="rows", out=folder, **COMMON, **unit)
    return Plan.read(plan_path(folder))


def flower(source: Any, unit: dict[str, Any], folder: Path) -> Plan:
    """The records of a client of three, as its app takes them."""
    units = len(ROWS) // (3 if "person" in unit else 1)
    given = prepare_questions(folder, ["mean(age)", "table(ward)"], sizes=(units,) * 3, bounds=BOUNDS, data_id="rows",
                              epsilon=8.0, delta=1e-6, hopeless=True, **unit)  # fmt: skip
    check_records(given, 0, source)
    return given.plan


def join(source: Any, unit: dict[str, Any], folder: Path) -> Plan:
    """The records of one site of three, as its process takes them to the plan."""
    n = len(ROWS)
    asked: dict[str, Any] = {"schema": "schema.json", "owner_sizes": (n, n, n), "evaluate": False, "iterations": 2}
    asked |= {"preprocessing": "records", "test_fraction": 0.0, "data_id": "rows", "run_id": "r"}
    request = Request(**asked, epsilon=8.0, delta=1e-6, **unit)
    plan = plan_of_machines(request, SCHEMA, (n, n, n), complete=False, owners=["a", "b", "c"])[0]
    where = {"database": source.url, "sql": source.sql} if isinstance(source, Query) else {"records": str(source)}
    own = Request(**where, planned=True, evaluate=False, delta=1e-6).among_others
    found = load_owner(own, plan, 0)
    assert found.n == n and np.count_nonzero(np.any(np.asarray(found.X), axis=1)) == n
    return plan


SEEN: dict[tuple[str, str], Any] = {}  # what was public of the plan for the first kind of source
COMMANDS = {
    "train": train, "stats": stats, "synth": synth, "synth, no survey": synth_bounds, "evaluate": evaluate,
    "meet": meet, "flower": flower, "join": join,
}  # fmt: skip
ALONE = ("flower", "join")  # each owner's process has its own records
NO_OWNERS = ("synth", "synth, no survey", "evaluate", "meet")  # whole owners have too much to hide for these


def combinations() -> Iterator[Any]:
    for command in COMMANDS:
        for unit in UNITS:
            for kind in SOURCES:
                if (command, unit) in {(each, "owner") for each in NO_OWNERS}:
                    continue
                if command in ("train", "join") and kind == "frame":  # a frame's model is an estimator's
                    continue
                often = "person" in unit and kind in ("csv", "jsonl")
                marks = () if often else (pytest.mark.slow,)
                yield pytest.param(command, unit, kind, marks=marks, id=f"{command}-{unit}-{kind}")


@pytest.mark.filterwarnings("ignore:before anything is spent")
@pytest.mark.parametrize(("command", "unit", "kind"), [*combinations()])
def test_each_source_for_each_unit_by_each_command(command: str, unit: str, kind: str, tmp_path: Path) -> None:
    source = source_of(kind, tmp_path)
    if command == "meet" and "person" in unit:
        with refuses("together", "person", setting="person"):
            meet(source, UNITS[unit], tmp_path / "run")
        return
    plan = COMMANDS[command](source, UNITS[unit], tmp_path / "run")
    assert plan.neighbours == ("person" if "person" in unit else unit) and plan.owners == 3
    assert unit != "person at one owner" or plan.person_owners == 1
    size = len(ROWS) if command in ALONE else len(ROWS) // 3
    assert plan.sizes == (size,) * 3 or (command == "train" and all(60 < each < 120 for each in plan.sizes))
    public = (plan.sizes, plan.dimension, plan.releases, plan.derived.mechanism)
    assert SEEN.setdefault((command, unit), public) == public


LONG = "x" * (1 << 22)


@pytest.mark.parametrize(
    "fields", [["5\r", "1"], ["1", "5\r"], ["\r", "1"], ["a\r\nb", "c\rd"], [LONG, "1"], ["1", LONG]], ids=range(6)
)
def test_texts_of_a_database_are_read_whatever_they_hold(fields: list[str], tmp_path: Path) -> None:
    """A carriage return in the first row, which a reader of lines takes for the end of one; fields above 2 MB."""
    with contextlib.closing(sqlite3.connect(tmp_path / "t.db")) as base, base:
        base.execute("CREATE TABLE t (c TEXT, y TEXT)")
        base.executemany("INSERT INTO t VALUES (?, '1')", [(field,) for field in fields])
    with opened(Query(f"sqlite:///{tmp_path / 't.db'}", "SELECT * FROM t")) as (table, _):
        assert table.n == len(fields)
        found = [str(row[0]) for row in table.rows(table["c"].sql)]
    assert [len(text) for text in found] == [len(field) for field in fields]
