"""Records of hundreds of columns held against a schema: read once, asked about together, as one by one."""

from pathlib import Path

import numpy as np
import pytest

from dpmpc.intake import staging as holding
from dpmpc.intake.spelling import Spelling
from dpmpc.intake.table import Table
from dpmpc.records import check
from dpmpc.records.loading import opened
from dpmpc.records.schema import Labels, Numeric, Schema
from tests.runs import dpmpc

pytestmark = pytest.mark.usefixtures("small_tables")

FIELDS = ("1", " 2.5", "-0.1", "0.1", "1e400", "NA", "", "x", "1,5", "+3", "\uff17")


def _written(path: Path, columns: int) -> Path:
    rng = np.random.default_rng(columns)
    rows = rng.choice(FIELDS, size=(60, columns)).tolist()
    for k, row in enumerate(rows):
        row[-1] = "yn"[k % 2]
    names = ",".join([*(f"c{k}" for k in range(columns - 1)), "y"])
    lines = (",".join(f'"{field}"' for field in row) for row in rows)
    path.write_text("\n".join([names, *lines]) + "\n", encoding="utf-8")
    return path


def _schema(columns: int) -> Schema:
    numbers = tuple(Numeric(f"c{k}", -0.1 * (k % 3), 0.1 + k % 4) for k in range(columns - 1))
    return Schema(numbers, Labels("y", ("y",), ("n",)))


@pytest.mark.parametrize(
    "spelling",
    [Spelling(), pytest.param(Spelling(decimal=","), marks=pytest.mark.slow), Spelling(missing=("x",))],
    ids=str,
)
def test_columns_are_held_against_a_schema_together_as_one_by_one(
    spelling: Spelling, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, found = _written(tmp_path / "records.csv", 20), []
    for together in (True, False):
        if not together:
            monkeypatch.setattr(check, "SMALL", 0)
            monkeypatch.setattr(holding, "_SEVERAL", 60)
        with opened(path, spelling=spelling) as (table, _):
            result = check.check(_schema(20), table)
            found.append((result.counts, repr(result)))
    assert found[0][1] == found[1][1]
    assert {"missing", "clipped", "unread"} <= {
        word for c in found[0][0] for word in ("missing", "clipped", "unread") if getattr(c, word)
    }


def test_the_source_is_read_as_often_however_many_columns_it_has(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A reading a column made the cost quadratic in columns."""
    asked, run = list[str](), Table.run
    monkeypatch.setattr(Table, "run", lambda self, query: (asked.append(query), run(self, query))[1])
    found = []
    for columns in (20, 40):
        with opened(_written(tmp_path / f"{columns}.csv", columns)) as (table, _):
            asked.clear()
            check.check(_schema(columns), table)
            found.append(sum(f"FROM {table.relation}" in query for query in asked))
            assert not table.rows("1", "WHERE table_name = 'raw'", "duckdb_tables()")  # nothing is left behind
    assert found[0] == found[1] <= 3


def test_columns_of_which_nothing_is_to_be_said_are_counted(tmp_path: Path) -> None:
    path, schema = tmp_path / "records.csv", tmp_path / "schema.json"
    names = [*(f"c{k}" for k in range(150)), "y"]
    rows = [["1"] * 150 + ["yn"[k % 2]] for k in range(30)]
    rows[3][7] = ""
    path.write_text("\n".join(",".join(row) for row in [names, *rows]) + "\n", encoding="utf-8")
    wide = Schema(tuple(Numeric(name, 0.0, 2.0) for name in names[:-1]), Labels("y", ("y",), ("n",)))
    wide.write(schema)
    said = dpmpc("check", "--schema", str(schema), "--csv", str(path)).stdout
    assert "not shown: 149 columns" in said and " c7 " in said and " c8 " not in said
