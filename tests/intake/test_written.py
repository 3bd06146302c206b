"""Files that people write: what is wrong, where, and the nearest known key; and the schema for editors."""

import json
import os
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from dpmpc.aggregation.plan.limits import Limits
from dpmpc.aggregation.plan.plan import Plan
from dpmpc.consortium.toml import read_consortium
from dpmpc.errors import UsageError, owner_text
from dpmpc.intake.written import known_keys
from dpmpc.records.check import schema_in
from dpmpc.records.columns import Categorical, Date
from dpmpc.records.schema import Labels, Numeric, Schema, column_of_bounds, editor_schema, read_bounds
from tests.refusals import Rule, breaks, refuses
from tests.tables import write

GOOD = """{
  "columns": [
    {"kind": "number", "name": "age", "low": 0, "high": 120},
    {"kind": "category", "name": "ward",
     "categories": ["a", "b", 3]}
  ],
  "target": {"kind": "label", "name": "y", "positive": ["yes"], "negative": ["no"]}
}
"""
TOML = """
intercept = false
[target]
kind = "number"
name = "y"
low = 0
high = 1.5
[[columns]]
kind = "number"
name = "age"
low = 0
high = 120
"""


def test_json_and_toml_are_read(tmp_path: Path) -> None:
    schema = Schema.read(write(tmp_path, "\ufeff" + GOOD, "s.json"))
    assert schema.feature_names == ("age", "ward=a", "ward=b", "ward=3", "(intercept)") and schema.bounds == "public"
    other = Schema.read(write(tmp_path, TOML, "s.toml"))
    assert other.task == "ridge" and other.feature_names == ("age",)
    assert read_bounds(write(tmp_path, 'age = [0, 1]\nw = ["a"]\n', "b.toml")) == {"age": [0.0, 1.0], "w": ["a"]}


def test_two_dates_are_a_range_of_days_and_three_are_texts(tmp_path: Path) -> None:
    """As TOML's dates or as texts; two days that were taken for categories would make every value unknown."""
    for days in ("[2021-01-01, 2023-12-31]", '["2021-01-01", "2023-12-31"]'):
        found = read_bounds(write(tmp_path, f"age = [0, 1]\ncame = {days}\n", "b.toml"))
        assert found["came"] == ["2021-01-01", "2023-12-31"]
        column = column_of_bounds("came", found["came"])
        assert isinstance(column, Date) and (column.last - column.first).days == 1094 and column.features == ("came",)
    several = read_bounds(write(tmp_path, 'wave = ["2021-01-01", "2022-01-01", "2023-01-01"]\n', "b.toml"))
    assert isinstance(column_of_bounds("wave", several["wave"]), Categorical)
    assert isinstance(column_of_bounds("sex", ["f", "m"]), Categorical)
    with refuses("range", "came", "2021-01-01"):
        column_of_bounds("came", ["2023-01-01", "2021-01-01"])
    with refuses("usage", "came", "2021-01-01"):
        read_bounds(write(tmp_path, "came = 2021-01-01\n", "b.toml"))


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('"low": 0', '"lwo": 0', breaks("file", 3, "lwo")),
        ('"low": 0, ', "", breaks("file", "s.json", 3, "[0]", "low")),
        ('"low": 0', '"low": "zero"', breaks("file", 3, "[0]")),
        ('"low": 0', '"low": 200', breaks("file", 3, "[0]", "age", "200.0")),
        ('"low": 0', '"low": NaN', breaks("file")),
        ('["a", "b", 3]', '["a", "b", "3", 3.0]', breaks("file", 4, "[1]")),
        ('["a", "b", 3]', "[]", breaks("file", "ward")),
        ('"number"', '"numeric"', breaks("file", 3, "[0]", "numeric")),
        ('"ward"', '"age"', breaks("file", "age")),
        ('"target": {', '"targets": {', breaks("file", "targets", "target")),
        ('"low": 0', '"low": 0, "low": 1', breaks("file", "low")),
        ('"target"', '"version": 9, "target"', breaks("file", 2, 9)),
        ('"target"', '"missing": "guess", "target"', breaks("file", 7, "guess")),
        ("}\n}", "}", breaks("file", "JSON", "s.json")),
    ],
)
def test_what_is_wrong_is_said_with_its_place(tmp_path: Path, old: str, new: str, words: Rule) -> None:
    assert GOOD.count(old) >= 1
    with refuses(words) as error:
        Schema.read(write(tmp_path, GOOD.replace(old, new, 1), "s.json"))
    assert "\n" not in owner_text(error.value)


def test_toml_places(tmp_path: Path) -> None:
    with refuses("file", 2):
        Schema.read(write(tmp_path, TOML.replace("false", '"no"'), "s.toml"))
    with refuses("file", "TOML"):
        Schema.read(write(tmp_path, "a = = 1", "s.toml"))
    with refuses("path"):
        Schema.read(tmp_path / "absent.json")
    with refuses("file", "UTF", -8, "s.json", 0):
        Schema.read(write(tmp_path, b"\xff{}", "s.json"))


@pytest.mark.parametrize("old", ['"low": 0', '"categories"', '"positive": ["yes"], '])
def test_the_editors_schema_agrees_with_what_is_read(tmp_path: Path, old: str) -> None:
    """An independent validator takes what we take and refuses what we refuse."""
    schema = editor_schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.validate(json.loads(GOOD), schema)
    for new in (old.replace('"', '"x', 1), ""):
        bad: Any = GOOD.replace(old, new, 1).replace("{, ", "{").replace(", ,", ",").replace(",  :", ":")
        try:
            value = json.loads(bad)
        except ValueError:
            continue
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(value, schema)
        with pytest.raises(UsageError):
            Schema.read(write(tmp_path, bad, "s.json"))


def test_known_keys_are_those_of_all_classes_inside() -> None:
    assert {"columns", "target", "low", "categories", "positive", "bounds"} <= set(known_keys(Schema))


def test_names_of_a_wide_table_are_counted_in_one_pass() -> None:
    """Not each held against all others: 300,000 columns would take hours."""
    asked = [0]

    class Counted(str):
        def __eq__(self, other: object) -> bool:
            asked[0] += 1
            return str.__eq__(self, other)

        __hash__ = str.__hash__

    target = Labels("label", ("1",), ("0",))
    Schema(tuple(Numeric(Counted(f"x{k}"), 0.0, 1.0) for k in range(500)), target)
    assert asked[0] < 5_000


@pytest.mark.parametrize("name", ["schema.json", "schema.toml", "limits.toml", "plan.json"])
def test_a_pipe_is_refused_before_it_is_opened(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever opens one that nobody writes to waits for ever."""
    pipe = tmp_path / name
    os.mkfifo(pipe)

    def opens(path: Path, *rest: Any, **more: Any) -> Any:
        raise AssertionError(path)

    monkeypatch.setattr(Path, "open", opens)
    monkeypatch.setattr(Path, "read_text", opens)
    readers = {
        "schema": (Schema.read, schema_in, read_bounds),
        "limits": (Limits.read, read_consortium),
        "plan": (Plan.read, schema_in),
    }
    for read in readers[pipe.stem]:
        with refuses("path"):
            read(pipe)
    with refuses("path"):
        Schema.read(Path("/dev/null"))


@pytest.mark.parametrize("name", ["schema.json", "schema.toml", "limits.toml", "plan.json"])
def test_a_folder_and_a_file_too_large_are_one_line(name: str, tmp_path: Path) -> None:
    large, folder = tmp_path / name, tmp_path / "folder" / name
    with large.open("wb") as file:
        file.truncate((64 << 20) + 1)
    folder.mkdir(parents=True)
    readers = {
        "schema": (Schema.read, schema_in, read_bounds),
        "limits": (Limits.read, read_consortium),
        "plan": (Plan.read, schema_in),
    }
    for read in readers[large.stem]:
        with refuses("file", 64, "67,108,865"):
            read(large)
        with pytest.raises(UsageError) as error:
            read(folder)
        assert error.value.code in ("path", "file") and folder.name in owner_text(error.value)


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("a = 1\na = 2", "a is there twice (at end of document)"),
        ("a = 1\na = 2\n", "a is there twice (at line 2,"),
        ("a = 1\n[ a ]\n", "[ a ] is there twice (at line 2,"),
        ("[a]\nb = 1\n[a]\nb = 2\n", "[a] is there twice (at line 3,"),
        ("[[a]]\n[a]\n", "[a] is there twice (at line 2,"),
        ('"a b".c = 1\n"a b" . c = 2 # again\n', '"a b" . c is there twice (at line 2,'),
        ("a = 1\na = [1,\n  2]\n", "a is there twice (at line 3,"),
        ('a = 1\na = """\nb = 1\n"""\n', "a is there twice (at line 4,"),
        ("x = {a = 1, a = 2}", "key 'a' (at line 1,"),
        ("[x]\na = {b = 1}\na.c = 2\n", "('x', 'a') (at line 3,"),
    ],
)
def test_a_key_of_toml_that_is_there_twice_is_named(text: str, names: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError) as caught:
        Schema.read(write(tmp_path, text, "s.toml"))
    said = owner_text(caught.value)
    assert said.startswith("a schema file is TOML; s.toml: ") and said.endswith("; correct it") and "\n" not in said
    assert names in said
