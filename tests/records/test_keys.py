"""Keys of JSON objects: one record alone makes no column, and neighbours that are both read have the same columns."""

import json
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from dpmpc.errors import RecordError, UsageError, owner_text, public_text
from dpmpc.intake.spelling import Spelling
from dpmpc.records import keys
from dpmpc.records.keys import Keys
from dpmpc.records.loading import load, opened
from dpmpc.records.ownership import KeptOwners
from tests.refusals import refuses

N = 60


def columns(of: Keys, counts: dict[str, int], n: int) -> tuple[str, ...] | None:
    """The columns beside `z`, which all records have; None for a refusal."""
    try:
        return of.columns({"z": n, **{key: count for key, count in counts.items() if count}}, n, "t")
    except RecordError:
        return None


def test_neighbours_that_are_both_read_have_the_same_columns() -> None:
    """Every count of a key in up to 130 records, with a record replaced, added or left out."""
    answered = set[tuple[str, ...]]()
    for n in range(1, 130):
        for count in range(n + 1):
            mine = columns(Keys(), {"x": count}, n)
            near = [(count + 1, n), (count - 1, n), (count, n + 1), (count + 1, n + 1), (count, n - 1)]
            for other, of in ((c, m) for c, m in near if 0 <= c <= m > 0):
                theirs = columns(Keys(), {"x": other}, of)
                assert None in (mine, theirs) or mine == theirs, (count, n, other, of)
            answered |= {mine} if mine else set()
    assert answered == {("z",), ("x", "z")}


def lines(rows: list[dict[str, Any]], path: Path) -> str:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return str(path)


def rows_with(count: int, n: int = N) -> list[dict[str, Any]]:
    """Of n records the last `count` have a key `rare` that comes before all others."""
    return [({"rare": k} if k >= n - count else {}) | {"y": k % 2, "b": k % 7, "a": k % 5} for k in range(n)]


def names(source: str, **given: Any) -> Any:
    try:
        with opened(source, **given) as (table, _):
            return table.names
    except UsageError as error:
        return public_text(error)


def test_one_record_makes_no_column_and_moves_none(tmp_path: Path) -> None:
    found = [names(lines(rows_with(count), tmp_path / "t.jsonl")) for count in range(8)]
    assert found[:3] == [("a", "b", "y")] * 3 and found[4:] == [("a", "b", "rare", "y")] * 4
    assert "column where clearly more than one of 20 records" in found[3] and "rare" not in found[3]


def test_with_the_margin_taken_out_one_record_decides(tmp_path: Path) -> None:
    with mock.patch.object(keys, "decided", lambda count, bound, moved: count > 0):
        found = [names(lines(rows_with(count), tmp_path / "t.jsonl")) for count in (0, 1)]
    assert found[0] != found[1]


def test_the_way_out_works(tmp_path: Path) -> None:
    source = lines(rows_with(3), tmp_path / "t.jsonl")
    with refuses("records", "rare", 3, 60) as error:
        names_of = opened(source).__enter__  # raised to its owner with the key and the names to state
        names_of()
    assert "Spelling(names=('a', 'b', 'rare', 'y'))" in owner_text(error.value)
    assert names(source, spelling=Spelling(names=("y", "rare"))) == ("rare", "y")
    few = lines(rows_with(1), tmp_path / "u.jsonl")
    with opened(few) as (table, _), refuses("records", "rare", "u.jsonl"):
        table["rare"]
    assert names(few, names=("rare", "y", None)) == ("rare", "y")
    assert "must exist" in names(few, spelling=Spelling(names=("y", "other")))


def test_bounds_and_schemas_say_which_keys_are_columns(tmp_path: Path) -> None:
    """Public bounds name all columns: a rare key that they name is one, one that they do not is none, whatever its
    count."""
    bounds = {"a": [0, 4], "rare": [0, 100], "y": [0, 1]}
    for count in (1, 3, 9):
        found = load(lines(rows_with(count), tmp_path / "t.jsonl"), target="y", bounds=bounds)
        assert [column.name for column in found.schema.columns] == ["a", "rare"]
        again = load(lines(rows_with(count), tmp_path / "t.jsonl"), schema=found.schema)
        assert (again.X == found.X).all()


def test_persons_have_every_key_or_names_are_stated(tmp_path: Path) -> None:
    of = KeptOwners("b", 4)
    assert names(lines(rows_with(0), tmp_path / "t.jsonl"), person=of) == ("a", "b", "y")
    for count in (1, 30, N - 1):
        source = lines(rows_with(count), tmp_path / "t.jsonl")
        assert "every JSON record has every key" in names(source, person=of)
        assert names(source, person=of, names=("y",)) == ("b", "y")


def test_files_of_a_folder_are_counted_together(tmp_path: Path) -> None:
    folder = tmp_path / "many"
    folder.mkdir()
    rows = rows_with(5)
    lines(rows[:40], folder / "1.jsonl")
    lines(rows[40:], folder / "2.jsonl")  # all five stand here
    assert names(str(folder)) == ("a", "b", "rare", "y")
    with opened(str(folder)) as (table, _):
        assert table.one("count(*)", f"count({table['rare'].sql})") == (N, 5)
    lines(rows_with(2)[40:], folder / "2.jsonl")
    assert names(str(folder)) == ("a", "b", "y")


def test_a_nested_value_is_the_text_it_is_written_in(tmp_path: Path) -> None:
    """Whether a column is of lists, no record decides for the others."""
    for odd in ([1, 2], {"c": 1}, "x", 5, None):
        rows = [{"y": k % 2, "x": [k]} for k in range(20)]
        rows[7]["x"] = odd
        with opened(lines(rows, tmp_path / "t.jsonl")) as (table, _):
            assert table["x"].type == "VARCHAR" and table.rows(table.text("x"))[3] == ("[3]",)


def test_keys_that_differ_in_case_alone_are_refused_where_both_are_columns(tmp_path: Path) -> None:
    rows = [{"y": k % 2, "Age" if k % 2 else "age": k} for k in range(20)]
    assert "more than case" in names(lines(rows, tmp_path / "t.jsonl"))
    rows = [{"y": k % 2, "Age" if k == 3 else "age": k} for k in range(60)]
    with opened(lines(rows, tmp_path / "t.jsonl")) as (table, _):
        assert table.names == ("age", "y") and table.one(f"count({table['age'].sql})") == (59,)


@pytest.mark.parametrize("text", ["{}\n{}\n", "[1]\n[2]\n", '{"a": 1}\n5\n', ""])
def test_lines_that_have_no_columns_are_refused(text: str, tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    path.write_text(text)
    assert isinstance(names(str(path)), str)
