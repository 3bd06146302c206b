"""Tables of hundreds of columns: what is asked of DuckDB does not grow with them, and is answered as one by one."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest

from dpmpc.intake import staging as holding
from dpmpc.intake.describe import describe
from dpmpc.intake.lint import fewer
from dpmpc.intake.once import bound, once
from dpmpc.intake.spelling import Spelling
from dpmpc.intake.staging import held
from dpmpc.intake.table import Table
from dpmpc.records.loading import opened
from tests.runs import dpmpc

pytestmark = pytest.mark.usefixtures("small_tables")

ODD = (
    "1",
    " 2",
    "+3",
    "NA",
    "",
    "nan",
    "1e400",
    "1_0",
    "+-1",
    "\uff11\uff12",
    "1,5",
    "5 kg",
    "(7)",
    " cafe\u0301 ",
    "-",
)


def _written(path: Path, columns: int) -> Path:
    """Records of numbers, of which each column lacks one by a word and has one with space around it; and of words."""
    rng = np.random.default_rng(columns)
    rows = [[f"{x:.3f}" for x in row] for row in rng.normal(size=(40, columns))]
    for k in range(columns):
        rows[k % 40][k], rows[(k + 1) % 40][k] = "n/a", " 7.5"
    for k, row in enumerate(rows):
        row[:3] = [f" word {k % 3}", f"text {k}", ("yes", "no")[k % 2]]
    names = ",".join(f"c{k}" for k in range(columns))
    path.write_text("\n".join([names, *map(",".join, rows)]) + "\n", encoding="utf-8")
    return path


def test_what_is_asked_does_not_grow_with_columns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Twice as many columns are no more statements but for those of further parts, and no more expressions that parse:
    a statement a column makes cost quadratic in columns, an expression a column takes longer to plan than to run."""
    asked, run = list[str](), Table.run
    monkeypatch.setattr(Table, "run", lambda self, query: (asked.append(query), run(self, query))[1])
    found = []
    for columns in (200, 400, 800):
        path = _written(tmp_path / f"{columns}.csv", columns)
        asked.clear()
        with opened(path) as (table, _):
            assert len(describe(table, target="c2").columns) == columns
        parses = sum(query.count("TRY_CAST(") + query.count("nfc_normalize(") for query in asked)
        found.append((len(asked), parses, sum(map(len, asked))))
    statements, parses, signs = zip(*found, strict=True)
    assert statements[0] < 60 and statements[2] - statements[1] <= 20, found
    assert parses[2] - parses[1] <= 100 and signs[2] - signs[1] < 400 * 500, found


@pytest.mark.parametrize(
    "spelling",
    [
        Spelling(),
        Spelling(missing=("-", "c1=3")),
        Spelling(units=("kg",), decimal=","),
        Spelling(negative="parentheses"),
    ],
    ids=str,
)
def test_columns_that_are_worked_out_together_are_held_as_one_by_one(
    spelling: Spelling, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(7)
    columns = {f"c{k}": rng.choice(ODD[: 3 + k % (len(ODD) - 2)], 90).tolist() for k in range(40)}
    lines = [
        ",".join(columns),
        *(",".join(f'"{field}"' for field in row) for row in zip(*columns.values(), strict=True)),
    ]
    path = tmp_path / "odd.csv"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    found, lists = [], list[str]()
    run = Table.run
    monkeypatch.setattr(Table, "run", lambda self, query: (lists.append(query), run(self, query))[1])
    wide = holding._SEVERAL, holding._FEW
    for several, few in (wide, (len(columns), -1), (len(columns), 90)):
        monkeypatch.setattr(holding, "_SEVERAL", several)
        monkeypatch.setattr(holding, "_FEW", few)
        lists.clear()
        with opened(path, spelling=spelling) as (table, _):
            plain = held(table, table.names)
            values: list[Any] = [[repr(row) for row in plain.rows(c.sql)] for c in plain.columns]
            found.append(([replace(c, sql="") for c in plain.columns], values))
        together = (several, few) == wide or (few == 90 and not spelling.plain)
        assert any('"(list 0)"' in query for query in lists) is together
    assert found[0] == found[1] == found[2]
    assert {c.type for c in found[0][0]} == {"DOUBLE", "VARCHAR"}


def test_what_stands_several_times_in_an_expression_is_bound_to_a_name() -> None:
    inner = once(f"upper(v || '{'x' * 200}')")
    outer = once(f"lower({inner}) || {inner} || '{'y' * 200}'")
    sql = bound(f"{outer} || {outer} || {once('v')}")
    assert sql.count("upper(") == sql.count("lower(") == 1 and "/*" not in sql
    with_names = "SELECT list_transform(['a', 'B'], lambda v: {})"
    once_more = f"(lower(upper(v || '{'x' * 200}')) || upper(v || '{'x' * 200}') || '{'y' * 200}')"
    plain = f"{once_more} || {once_more} || v"
    assert duckdb.sql(with_names.format(sql)).fetchall() == duckdb.sql(with_names.format(plain)).fetchall()


def test_what_is_said_of_columns_that_are_alike_is_on_one_line(tmp_path: Path) -> None:
    """Of 400 columns of four kinds some are shown; each kind has one line; so have columns that hold nothing."""
    kinds = (lambda k: f"{k * 0.37:.2f}", lambda k: "abc"[k % 3], lambda k: "7", lambda k: f"2020-01-{1 + k % 28:02d}")
    names = ",".join([*(f"c{k}" for k in range(400)), "y"])
    rows = [",".join([*(kinds[c % 4](k + c) for c in range(400)), "yn"[k % 2]]) for k in range(40)]
    path = tmp_path / "alike.csv"
    path.write_text("\n".join([names, *rows]) + "\n", encoding="utf-8")
    said = dpmpc("describe", str(path), "--target", "y").stdout.splitlines()
    assert len(said) <= 60 and max(map(len, said)) < 300  # of the target's classes the last
    of_kinds = [line for line in said if " columns, as c" in line]
    assert [line.split(" (")[0] for line in of_kinds] == [
        ", ".join([*(f"c{k + 4 * at}" for at in range(6)), "..."]) for k in range(4)
    ]
    assert all("(100 columns, as c" in line for line in of_kinds) and "--drop COLUMN" in of_kinds[0]
    assert not any(line.lstrip().startswith("c24 ") for line in said)
    assert sum("without these 100 columns" in line for line in said) == 1
    assert not any("--drop c398" in line for line in said)


def test_lines_that_are_alike_are_counted() -> None:
    lines = [f"column 'c{k}' has {k} fields (of {k}): <<drop=['c{k}']>>" for k in range(30)]
    found = fewer(["before", *lines[:25], "between", *lines[25:]])
    assert found[:11] == ["before", *lines[:10]] and found[12:] == ["between"]
    assert found[11].startswith("20 more lines are as the one before, but of 'c10', 'c11',")
    assert fewer([*lines[:10], "after"]) == [*lines[:10], "after"]
