"""From columns to the unit ball: by hand for small tables, exactly for norms, and through JSON."""

import json
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from dpmpc.data.preprocess import Categorical, Labels, Numeric, Preprocessing, Range
from dpmpc.data.table import read_table
from dpmpc.errors import UsageError

LABELS = Labels("y", ("yes",), ("no",), "yes", "no")
COLUMNS = (Numeric("age", 0.0, 100.0), Categorical("job", ("b", "a")), Numeric("s", -2.0, 2.0, signed=True))
RULES = Preprocessing(COLUMNS, LABELS, True, "fill", "public")
TABLE = {
    "age": np.array([b"25", b"150", b"", b"-3"]),
    "job": np.array([b"a", b"b", b"?", b"unheard of"]),
    "s": np.array([b"0", b"-2", b"1", b""]),
    "y": np.array([b"yes", b"no", b"no", b"yes"]),
    "other": np.array([b"", b"", b"", b""]),
}
# clipped, missing -> middle, unknown and missing categories -> zeros
SCALED = np.array(
    [[0.25, 0, 1, 0, 1], [1, 1, 0, -1, 1], [0.5, 0, 0, 0.5, 1], [0, 0, 0, 0, 1]],
)


def test_rows_are_what_the_rules_say() -> None:
    X = RULES.transform(TABLE)
    assert RULES.feature_names == ("age", "job=b", "job=a", "s", "(intercept)")
    assert np.allclose(X, SCALED / np.linalg.norm(SCALED, axis=1, keepdims=True), rtol=1e-12)
    assert RULES.labels(TABLE).tolist() == [1, -1, -1, 1]
    assert RULES.complete(TABLE).tolist() == [True, True, False, False]


def test_short_rows_are_not_stretched() -> None:
    rules = Preprocessing((Numeric("age", 0.0, 100.0),), LABELS, False, "fill", "public")
    assert np.allclose(rules.transform({"age": np.array([30.0, 0.0, 100.0])})[:, 0], [0.3, 0, 1], rtol=1e-12)


def test_exact_norms_are_at_most_one() -> None:
    rng = np.random.default_rng(1)
    rules = Preprocessing(tuple(Numeric(f"c{k}", 0.0, 1.0) for k in range(20)), LABELS, True, "fill", "public")
    X = rules.transform({f"c{k}": rng.random(200) for k in range(20)})
    norms = [sum(Fraction(v) ** 2 for v in row) for row in X.tolist()]
    assert max(norms) <= 1 and min(norms) > 1 - 1e-12


def test_a_record_changes_its_own_row_alone() -> None:
    before = RULES.transform(TABLE)
    changed = {**TABLE, "age": np.array([b"25", b"99999", b"", b"-3"]), "job": np.array([b"a", b"zz", b"?", b"?"])}
    after = RULES.transform(changed)
    assert np.array_equal(before[[0, 2, 3]], after[[0, 2, 3]]) and not np.array_equal(before[1], after[1])


def test_json_keeps_every_bit() -> None:
    rng = np.random.default_rng(2)
    odd = tuple(Numeric(f"c{k}", float(a), float(a + b)) for k, (a, b) in enumerate(rng.random((50, 2))))
    for target in (LABELS, Labels("y", ("1",), None, "up", "é"), Range("y", 0.1, 1 / 3)):
        rules = Preprocessing((*odd, *COLUMNS), target, False, "drop", "data")
        assert Preprocessing.from_json(json.loads(json.dumps(rules.to_json()))) == rules


def test_range_targets_and_back() -> None:
    target = Range("y", 10.0, 30.0)
    assert target.values(np.array([b"10", b"25", b"1e9"])).tolist() == [-1.0, 0.5, 1.0]
    assert target.original(np.array([-1.0, 0.5, 1.0])).tolist() == [10.0, 25.0, 30.0]


def test_columns_as_strings_and_floats_are_the_same() -> None:
    texts = {key: column.astype(str) for key, column in TABLE.items()}
    floats = {**TABLE, "age": np.array([25.0, 150.0, np.nan, -3.0])}
    assert np.array_equal(RULES.transform(texts), RULES.transform(TABLE))
    assert np.array_equal(RULES.transform(floats), RULES.transform(TABLE))


def test_a_category_may_read_like_a_missing_value_if_the_list_has_it() -> None:
    column = Categorical("job", ("?", "a"))
    out = np.empty((2, 2))
    column.write(TABLE["job"][[2, 0]], out)
    assert out.tolist() == [[1, 0], [0, 1]] and not column.missing(TABLE["job"]).any()


def test_what_cannot_be_preprocessed() -> None:
    with pytest.raises(UsageError, match="job not in the data"):
        RULES.transform({key: TABLE[key] for key in ("age", "s")})
    with pytest.raises(UsageError, match="it has 'x'"):
        RULES.transform({**TABLE, "age": np.array([b"1", b"x", b"2", b"3"])})
    with pytest.raises(UsageError, match="a record has 'maybe'"):
        RULES.labels({**TABLE, "y": np.array([b"yes", b"no", b"maybe", b"no"])})
    with pytest.raises(UsageError, match="'y' is not in the data"):
        RULES.labels({})
    with pytest.raises(UsageError, match="never missing"):
        Range("y", 0, 1).values(np.array([b"1", b""]))
    with pytest.raises(UsageError, match="low to high"):
        Numeric("a", 2.0, 1.0)
    with pytest.raises(UsageError, match="low to high"):
        Range("a", 1.0, 1.0)
    with pytest.raises(UsageError, match="version"):
        Preprocessing.from_json({})
    with pytest.raises(UsageError, match="whole"):
        Preprocessing.from_json({"version": 1, "columns": []})


def test_a_long_table_is_the_sum_of_its_blocks(tmp_path: Path) -> None:
    ages = np.random.default_rng(3).integers(0, 101, 40_000)
    file = tmp_path / "long.csv"
    file.write_text("age,job,s\n" + "".join(f"{age},{'ab'[age % 2]},1\n" for age in ages))
    whole = {"age": ages.astype(float), "job": np.array(["a", "b"])[ages % 2], "s": np.ones(len(ages))}
    assert np.array_equal(RULES.transform(read_table(file)), RULES.transform(whole))
