"""Tables that are too wide to be looked at, or have too few records, are one line before anything is spent."""

import duckdb
import numpy as np
import pytest

from dpmpc.intake import table
from dpmpc.intake.csvfile import distinct_names
from dpmpc.intake.partitions import partitions_of
from dpmpc.intake.table import MOST_COLUMNS, check_names
from dpmpc.records import loading
from tests.refusals import refuses
from tests.runs import dpmpc


def test_a_header_of_too_many_columns_is_one_line_before_a_run_is_begun(tmp_path):
    path, width = tmp_path / "wide.csv", MOST_COLUMNS + 1
    path.write_text(",".join(f"c{k}" for k in range(width)) + "\n" + ",".join("1" * width) + "\n")
    out = tmp_path / "run"
    for asked in (
        ["describe"],
        ["train", "--target", "c1", "--owners", "2", "--epsilon", "1", "--delta", "1e-4", "--out", str(out)],
    ):
        said = dpmpc(*asked, "--csv", str(path))
        lines = said.stderr.strip().splitlines()
        assert said.returncode and f"at most {MOST_COLUMNS:,} columns; wide.csv has {width:,};" in lines[-1]
        assert sum(line.startswith("error") for line in lines) == 1
    assert not list(tmp_path.glob("run/**/model*"))


def columns_of(source, kind):
    if kind == "partitions":
        return len(partitions_of(source).columns)
    with loading.opened(source) as (opened, _):
        return len(opened.columns)


@pytest.mark.parametrize("kind", ["csv", "parquet", "jsonl", "arrays", "relation", "partitions"])
def test_the_limit_holds_of_every_source(kind, tmp_path, monkeypatch):
    monkeypatch.setattr(table, "MOST_COLUMNS", 40)
    for width in (40, 41):
        select = "SELECT " + ", ".join(f"{k} AS c{k}" for k in range(width)) + " FROM range(3)"
        arrays = {f"c{k}": np.arange(3) for k in range(width)}
        suffix = {"jsonl": "json"}.get(kind, "parquet" if kind == "partitions" else kind)
        path = tmp_path / f"t{width}.{kind if kind in ('csv', 'jsonl') else 'parquet'}"
        if kind not in ("arrays", "relation"):
            duckdb.sql(f"COPY ({select}) TO '{path}' (FORMAT {suffix})")
        relation = duckdb.sql(select) if kind == "relation" else None
        source = arrays if kind == "arrays" else relation if kind == "relation" else str(path)

        if width == 40:
            assert columns_of(source, kind) == 40
        else:
            with refuses("range", 40, 41):
                columns_of(source, kind)


def test_names_are_compared_once_each():
    """Each with all others was 4 * 10^10 comparisons for so many."""

    class Counted(str):
        compared = 0

        def __eq__(self, other):
            Counted.compared += 1
            return str.__eq__(self, other)

        __hash__ = str.__hash__

    names = [Counted(f"c{k}") for k in range(2000)] + [Counted("c7")]
    found, notes = distinct_names(names)
    assert found[7] == "c7 (1)" and found[-1] == "c7 (2)" and notes[7] == "2 columns are called 'c7'"
    assert Counted.compared < 20 * len(names)
    check_names(found, "a table")
    with refuses("unique", "a"):
        check_names(["a", "b", "a"], "a table")


def test_one_record_under_a_schema_among_three_owners_is_one_line(tmp_path):
    """None of it is held out: how many records would do was worked out as 0 times infinity."""
    path, schema = tmp_path / "one.csv", tmp_path / "s.json"
    path.write_text("age,y\n40,yes\n")
    schema.write_text(
        '{"columns": [{"kind": "number", "name": "age", "low": 0, "high": 120}], "missing": "fill", "intercept": true,'
        ' "bounds": "public", "target": {"kind": "label", "name": "y", "positive": ["yes"], "negative": ["no"]}}'
    )
    budget = ["--epsilon", "1", "--delta", "1e-4", "--out", str(tmp_path / "run")]
    said = dpmpc("train", "--csv", str(path), "--schema", str(schema), "--owners", "3", *budget)
    assert said.returncode and "Traceback" not in said.stderr
    assert [line for line in said.stderr.splitlines() if line.startswith("error")] == said.stderr.splitlines()[-1:]
