"""A user's own CSV: kinds and classes found, public bounds kept, owners kept apart, and every refusal."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpmpc.errors import owner_text
from dpmpc.intake import csvfile
from dpmpc.intake.hashing import BUCKETS, bucket
from dpmpc.intake.profile import look
from dpmpc.intake.spelling import Spelling
from dpmpc.records import CsvFile, Dataset, Schema, load, partition
from dpmpc.records.loading import opened
from dpmpc.records.mapping import Mapping
from tests.refusals import Rule, breaks, refuses

pytestmark = pytest.mark.usefixtures("small_tables")
TEXT = """age,ward,site,outcome,stay
30,a,north,yes,1.5
40,b,south,no,2
50,,north,yes,0.5
60,a,south,no,4
,b,west,no,3
35,c,north,yes,2
"""


def load_csv(path: Path, *, bounds: Path | None = None, **given: Any) -> Dataset:
    return load(CsvFile(path), bounds=bounds, **given)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    file = tmp_path / "hospital.csv"
    file.write_text(TEXT)
    return file


def edited(path: Path, old: str, new: str) -> Path:
    path.write_text(TEXT.replace(old, new))
    return path


def test_kinds_classes_and_bounds_come_from_the_file(path: Path) -> None:
    data = load_csv(path, target="outcome", owners_column="site", seed=1, test_fraction=0.0)
    a, b = (f"ward#{bucket('ward', ward, BUCKETS)}" for ward in "ab")  # c is one record's alone
    assert data.feature_names == ("age", *sorted((a, b), key=lambda f: int(f[5:])), "stay", "(intercept)")
    assert data.task == "logistic" and data.bounds == "data" and data.name == "hospital.csv"
    rules = Schema.from_json(data.preprocessing)
    assert rules.columns[0].low == 30 and rules.columns[2].high == 4  # type: ignore[union-attr]
    one, other = (1, 0) if data.feature_names[1] == a else (0, 1)
    raw = np.array([[-1, one, other, -3 / 7, 1], [-1 / 3, other, one, -1 / 7, 1], [1 / 3, 0, 0, -1, 1]])
    expected = raw / np.linalg.norm(raw, axis=1, keepdims=True)
    for row, label in zip(expected, (1, -1, 1), strict=True):
        k = int(np.argmin(np.abs(data.X - row).sum(axis=1)))
        assert np.allclose(data.X[k], row, rtol=1e-12) and data.y[k] == label


def test_every_owner_keeps_its_own_records(path: Path) -> None:
    data = load_csv(path, target="outcome", owners_column="site", seed=3, test_fraction=0.4)
    assert data.group_names == ("north", "south", "west") and data.groups is not None
    p = partition(data.n, groups=data.groups, seed=1)
    assert p.sizes.tolist() == [2, 2, 1] and len(data.y_test) == 1
    south = p.order[p.offsets[1] : p.offsets[2]]
    assert (data.y[south] == -1).all()


def test_predict_applies_the_same_rules_to_another_file(path: Path, tmp_path: Path) -> None:
    data = load_csv(path, target="outcome", drop=["site"], seed=1, test_fraction=0.0)
    other = tmp_path / "new.csv"
    other.write_text("stay;ward;age\n1.5;a;30\n99;new;20\n")
    with opened(CsvFile(other)) as (table, _):
        rules = Schema.from_json(json.loads(json.dumps(data.preprocessing)))
        X, _y = Mapping(table, rules, labels=False).arrays()
    assert any(np.array_equal(X[0], row) for row in data.X)
    assert np.allclose(X[1] * np.sqrt(3), [-1, 0, 0, 1, 1])


@pytest.mark.slow
def test_a_numeric_target_means_ridge_and_a_task_may_be_given(path: Path) -> None:
    data = load_csv(path, target="stay", seed=1, test_fraction=0.0)
    assert data.task == "ridge" and sorted(data.y) == pytest.approx(sorted(np.array([2, 3, 0, 7, 5, 3]) / 3.5 - 1))
    numeric = edited(path, "yes", "1").read_text().replace("no,", "0,")
    path.write_text(numeric)
    assert load_csv(path, target="outcome", seed=1).task == "logistic"
    assert load_csv(path, target="outcome", seed=1, task="ridge").task == "ridge"


def test_the_positive_class(path: Path) -> None:
    default = load_csv(path, target="outcome", seed=1, test_fraction=0.0)
    turned = load_csv(path, target="outcome", seed=1, test_fraction=0.0, positive="no")
    assert np.array_equal(default.y, -turned.y) and (default.y > 0).sum() == 3
    with refuses("records", "maybe"):
        load_csv(path, target="outcome", seed=1, positive="maybe")


def test_one_and_one_point_zero_are_one_class(path: Path) -> None:
    path.write_text("a,y\n1,1\n2,1.0\n3,0\n4,0.0\n5,-0\n")
    data = load_csv(path, target="y", seed=1, test_fraction=0.0)
    assert data.task == "logistic" and (data.y > 0).sum() == 2


def test_incomplete_records_are_dropped_on_request(path: Path) -> None:
    filled = load_csv(path, target="outcome", seed=1, test_fraction=0.0)
    dropped = load_csv(path, target="outcome", seed=1, test_fraction=0.0, missing="drop")
    assert (filled.n, dropped.n) == (6, 4)


PUBLIC = {"age": [0, 120], "ward": ["a", "b", "z"], "stay": [0, 30], "outcome": ["no", "yes"]}


def bounds(folder: Path, value: object) -> Path:
    file = folder / "bounds.json"
    file.write_text(value if isinstance(value, str) else json.dumps(value))
    return file


def test_public_bounds_replace_what_the_records_say(path: Path, tmp_path: Path) -> None:
    data = load_csv(path, target="outcome", drop=["site"], seed=1, test_fraction=0.0, bounds=bounds(tmp_path, PUBLIC))
    assert data.bounds == "public" and data.feature_names[1:4] == ("ward=a", "ward=b", "ward=z")
    raw = np.array([-0.5, 1, 0, 0, -0.9, 1])
    assert np.abs(data.X - raw / np.linalg.norm(raw)).sum(axis=1).min() < 1e-12
    # the records decide nothing else: other records, the same rules
    other = edited(path, "60,a,south", "119,q,south")
    again = load_csv(other, target="outcome", drop=["site"], seed=1, bounds=bounds(tmp_path, PUBLIC))
    assert again.preprocessing == data.preprocessing


def test_public_bounds_of_numeric_targets(path: Path, tmp_path: Path) -> None:
    given = bounds(tmp_path, {**PUBLIC, "outcome": ["no", "yes"], "site": ["north"]})
    data = load_csv(path, target="stay", seed=1, test_fraction=0.0, bounds=given)
    assert data.task == "ridge" and data.y.max() == 4 / 15 - 1
    path.write_text("a,y\n1,1\n2,0\n3,0\n")
    given = bounds(tmp_path, {"a": [0, 5], "y": [0, 1]})
    label = load_csv(path, target="y", seed=1, test_fraction=0.0, bounds=given)
    assert label.task == "logistic" and label.bounds == "public" and (label.y > 0).sum() == 1
    assert load_csv(path, target="y", task="ridge", seed=1, bounds=given).task == "ridge"


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("{", breaks("file", "JSON")),
        ([1], breaks("type")),
        ({"age": 3}, breaks("usage", "age", 3)),
        ({"age": [1, 1]}, breaks("usage", "age", 1)),
        ({"age": [1, None]}, breaks("usage", "age")),
        ({"ward": ["a", "a"]}, breaks("unique", "ward")),
        ({"age": [0, 120]}, breaks("column", setting="drop")),
        ({**PUBLIC, "outcome": ["no"]}, breaks("type", "outcome", "no")),
    ],
)
def test_bad_bounds_files(path: Path, tmp_path: Path, value: object, words: Rule) -> None:
    with refuses(words):
        load_csv(path, target="outcome", drop=["site"], seed=1, bounds=bounds(tmp_path, value))


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("30,a,north,yes", "30,a,north,maybe", breaks("records", "outcome", 3)),
        ("yes", "no", breaks("records", "outcome", "no")),
        ("30,a,north,yes", "30,a,north,", breaks("records", "outcome", "''", 1, 6)),
        ("30,a,north", "30,a,?", breaks("records", "site", 1)),
        ("30,a", "30,a,9", breaks("records", 2, 6)),
    ],
)
def test_bad_records(path: Path, old: str, new: str, words: Rule) -> None:
    with refuses(words) as error:
        load_csv(edited(path, old, new), target="outcome", owners_column="site", seed=1)
    assert "\n" not in owner_text(error.value)


@pytest.mark.parametrize("odd", ["nan", "-inf", "1e999", "about 30", "1_0"])
def test_a_field_that_is_no_number_is_missing(path: Path, odd: str) -> None:
    given: Any = {"target": "outcome", "drop": ["site"], "test_fraction": 0.0, "bounds": PUBLIC}
    gone = load(CsvFile(edited(path, "30,a", ",a")), **given)
    data = load(CsvFile(edited(path, "30,a", f"{odd},a")), **given)
    assert np.array_equal(data.X, gone.X) and data.schema == gone.schema
    counts = {c.name: (c.missing, c.unread) for c in data.counts}
    assert counts["age"] == (1, 1) and {c.name: c.missing for c in gone.counts}["age"] == 2


@pytest.mark.slow
def test_bad_columns(path: Path) -> None:
    with refuses("column", "diagnosis"):
        load_csv(path, target="diagnosis", seed=1)
    with refuses("column", "who"):
        load_csv(path, target="outcome", owners_column="who", seed=1)
    with refuses("column", "x"):
        load_csv(path, target="outcome", drop=["x"], seed=1)
    with refuses("unique", "site"):
        load_csv(path, target="site", owners_column="site", seed=1)
    with refuses("records", "hospital.csv"):
        load_csv(path, target="outcome", drop=["age", "ward", "site", "stay"], seed=1)
    with refuses("records", "outcome", "no"):
        load_csv(path, target="outcome", task="ridge", seed=1)
    with refuses("records", "stay", 5):
        load_csv(path, target="stay", task="logistic", seed=1)


@pytest.mark.slow
def test_columns_that_cannot_be_features(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_text("id,y\n" + "".join(f"p{k % 1001},{k % 2}\n" for k in range(2002)))
    with refuses("records", "x.csv"):
        load_csv(path, target="y", seed=1)
    with opened(CsvFile(path)) as (table, _):
        kind = look(table, target="y")[0]["id"]
    assert (kind.why, kind.does) == ("1001 different values: too many to list", "left out")  # each is there twice
    path.write_text("id,y\n" + "".join(f"p{k % 1999},{k % 2}\n" for k in range(2002)))
    with refuses("records", "x.csv"):
        load_csv(path, target="y", seed=1)
    path.write_text("a,b,y\n1,1,0\n" + "x" * 5000 + ",2,1\n" + "1,3,0\n1,4,1\n")
    assert load_csv(path, target="y", seed=1, test_fraction=0.0).feature_names == ("a", "b", "(intercept)")
    path.write_text("a;y\n1,5;0\n2,5;1\n")
    with refuses("records", 1, "x.csv", "spelling=Spelling", "decimal=','"):
        load_csv(path, target="y", seed=1)
    assert load_csv(path, target="y", task="ridge", seed=1, spelling=Spelling(",")).d == 2
    path.write_text("a,y\n,0\n,1\n,0\n,1\n")
    with refuses("records", "x.csv"):
        load_csv(path, target="y", seed=1)
    path.write_text("a,b,y\n,1,0\n2,,1\n,3,0\n5,,1\n")
    with refuses("records", "x.csv"):
        load_csv(path, target="y", seed=1, missing="drop")
    path.write_text("a,b,y\n5,1,0\n5,2,1\n5,3,1\n5,4,0\n")
    assert load_csv(path, target="y", seed=1, test_fraction=0.0).feature_names == ("b", "(intercept)")


def test_lines_that_end_with_a_separator_are_found_in_any_bytes() -> None:
    rng = np.random.default_rng(3)
    found = []
    for _ in range(2000):
        chunk = bytes(rng.choice(list(b'a1",;\t|\n\r\xc3'), size=rng.integers(0, 9)).astype(np.uint8))
        pairs = [separator + end for separator in (b",", b";", b"\t", b"|") for end in (b"\n", b"\r")]
        found.append(csvfile._has_open_line(chunk))
        assert found[-1] is any(pair in chunk for pair in pairs), chunk
    assert 0.1 < np.mean(found) < 0.9
