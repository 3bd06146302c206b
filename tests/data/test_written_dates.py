"""Dates in files that people write: bare in TOML or as texts, they say the same."""

import json
from pathlib import Path

import pytest

from dpmpc.data.schema import Date, Schema, column_of_bounds, read_bounds
from dpmpc.data.written import written
from dpmpc.runs.consortium_file import RecordsPart

TABLE = """
target = "y"
positive = ["yes"]
[bounds]
age = [0, 100]
admitted = [{first}, {last}]
"""


@pytest.mark.parametrize("quote", ["", '"'])
def test_bounds_of_a_consortium_may_be_dates(quote: str, tmp_path: Path) -> None:
    text = TABLE.format(first=f"{quote}2020-01-01{quote}", last=f"{quote}2024-12-31{quote}")
    bounds = written(text, RecordsPart, "a table", "consortium.toml", toml=True).bounds
    assert bounds == {"age": [0, 100], "admitted": ["2020-01-01", "2024-12-31"]}
    (tmp_path / "bounds.toml").write_text(text.split("[bounds]")[1])
    assert isinstance(column_of_bounds("admitted", read_bounds(tmp_path / "bounds.toml")["admitted"]), Date)


@pytest.mark.parametrize("quote", ["", '"'])
def test_a_schema_in_toml_may_have_bare_dates(quote: str, tmp_path: Path) -> None:
    column = {"kind": "date", "name": "admitted", "first": "2020-01-01", "last": "2025-01-01"}
    target = {"kind": "label", "name": "y", "positive": ["yes"], "negative": ["no"]}
    (tmp_path / "s.json").write_text(json.dumps({"columns": [column], "target": target, "bounds": "public"}))
    (tmp_path / "s.toml").write_text(
        f"""bounds = "public"
[[columns]]
kind = "date"
name = "admitted"
first = {quote}2020-01-01{quote}
last = {quote}2025-01-01{quote}
[target]
kind = "label"
name = "y"
positive = ["yes"]
negative = ["no"]
"""
    )
    assert Schema.read(tmp_path / "s.toml") == Schema.read(tmp_path / "s.json")
