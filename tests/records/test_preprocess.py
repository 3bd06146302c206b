"""From columns to the unit ball: by hand for small tables, exactly for norms, and through JSON."""

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpmpc.records.loading import CsvFile, opened
from dpmpc.records.mapping import Mapping, complete
from dpmpc.records.schema import Categorical, Labels, Numeric, Range, Schema
from tests.refusals import refuses

pytestmark = pytest.mark.usefixtures("small_tables")

LABELS = Labels("y", ("yes",), ("no",), "yes", "no")
COLUMNS = (Numeric("age", 0.0, 100.0), Categorical("job", ("b", "a")), Numeric("s", -2.0, 2.0, scale="centred"))
RULES = Schema(COLUMNS, LABELS, True, "fill", "public")
TABLE = {
    "age": np.array(["25", "150", "", "-3"]),
    "job": np.array(["a", "b", "?", "unheard of"]),
    "s": np.array(["0", "-2", "1", ""]),
    "y": np.array(["yes", "no", "no", "yes"]),
    "other": np.array(["", "", "", ""]),
}
# clipped, missing -> middle, unknown and missing categories -> zeros
SCALED = np.array(
    [[-0.5, 0, 1, 0, 1], [1, 1, 0, -1, 1], [0, 0, 0, 0.5, 1], [-1, 0, 0, 0, 1]],
)


def mapped(rules: Schema, source: Any, *, labels: bool = True) -> tuple[Any, Any]:
    with opened(source) as (table, _):
        return Mapping(table, rules, labels=labels).arrays()


def test_rows_are_what_the_rules_say() -> None:
    X, y = mapped(RULES, TABLE)
    assert RULES.feature_names == ("age", "job=b", "job=a", "s", "(intercept)")
    assert np.allclose(X, SCALED / np.linalg.norm(SCALED, axis=1, keepdims=True), rtol=1e-12)
    assert y.tolist() == [1, -1, -1, 1]
    with opened(TABLE) as (table, _):
        assert complete(table, RULES).rows("age") == [("25",), ("150",)]


def test_what_does_not_fit_is_counted_by_column() -> None:
    with opened(TABLE) as (table, _):
        mapping = Mapping(table, RULES)
        mapping.arrays()
        counts = {c.name: (c.rows, c.missing, c.unknown, c.clipped) for c in mapping.counts.values()}
        assert counts == {"age": (4, 1, 0, 2), "job": (4, 1, 1, 0), "s": (4, 1, 0, 0)}
        assert not any(c.warning for c in mapping.counts.values())
    wild = {**TABLE, "age": np.array(["-1", "101", "1e9", "7000"]), "job": np.array(["A", "B", "c", "d"])}
    with opened(wild) as (table, _):
        mapping = Mapping(table, RULES)
        mapping.arrays()
        warned = [c.warning for c in mapping.counts.values() if c.warning]
        assert len(warned) == 2 and "'age': 4 of 4 values are clipped" in warned[0] and "unknown" in warned[1]


def test_short_rows_are_not_stretched() -> None:
    for scale, scaled in (("centred", [-0.4, -1, 1]), ("unit", [0.3, 0, 1])):
        rules = Schema((Numeric("age", 0.0, 100.0, scale),), LABELS, False, "fill", "public")  # type: ignore[arg-type]
        X, _ = mapped(rules, {"age": np.array([30.0, 0.0, 100.0])}, labels=False)
        assert np.allclose(X[:, 0], scaled, rtol=1e-12)


def test_logarithms_of_ranges() -> None:
    """Halfway between the ends is their geometric mean; counts from 0 on are log(1 + v); a missing value is the
    middle, and values outside are clipped before."""
    columns = Numeric("dose", 1.0, 100.0, "log"), Numeric("visits", 0.0, 63.0, "log")
    rules = Schema(columns, LABELS, False, "fill", "public")
    X = np.empty((4, 2))
    rules.rows([np.array([1.0, 10.0, 1e9, np.nan]), np.array([-5.0, 7.0, 63.0, 0.0])], X)
    raw = np.array([[-1, -1], [0, 0], [1, 1], [0, -1]])
    np.testing.assert_allclose(X, raw / np.maximum(1.0, np.linalg.norm(raw, axis=1))[:, None], atol=1e-12)
    assert np.isclose(float(np.log1p(7) / np.log1p(63)), 0.5)
    with refuses("range", "gain", -1):
        Numeric("gain", -1.0, 5.0, "log")


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_exact_norms_are_at_most_one(dtype: type[np.floating[Any]]) -> None:
    """In single precision the rounded places are the records; they lie in the ball too, so nothing is added for it."""
    rng = np.random.default_rng(1)
    rules = Schema(tuple(Numeric(f"c{k}", 0.0, 1.0) for k in range(20)), LABELS, True, "fill", "public")
    P = rules.design.places([rng.random(200) for k in range(20)]).astype(dtype)
    X = rules.design.rows(P, rules.design.factors(P))
    norms = [sum(Fraction(v) ** 2 for v in row) for row in X.tolist()]
    assert max(norms) <= 1 and min(norms) > 1 - 1e-12


def test_a_record_changes_its_own_row_alone() -> None:
    before, _ = mapped(RULES, TABLE)
    changed = {**TABLE, "age": np.array(["25", "99999", "", "-3"]), "job": np.array(["a", "zz", "?", "?"])}
    after, _ = mapped(RULES, changed)
    assert np.array_equal(before[[0, 2, 3]], after[[0, 2, 3]]) and not np.array_equal(before[1], after[1])


def test_json_keeps_every_bit_and_the_digest() -> None:
    rng = np.random.default_rng(2)
    odd = tuple(Numeric(f"c{k}", float(a), float(a + b)) for k, (a, b) in enumerate(rng.random((50, 2))))
    for target in (LABELS, Labels("y", ("1",), None, "up", "é"), Range("y", 0.1, 1 / 3)):
        rules = Schema((*odd, *COLUMNS), target, False, "drop", "data")
        again = Schema.from_json(json.loads(json.dumps(rules.to_json())))
        assert again == rules and again.digest == rules.digest
    assert len({RULES.digest, Schema(COLUMNS[::-1], LABELS).digest, Schema(COLUMNS, LABELS, False).digest}) == 3
    # a digest is part of plans: it does not change from one version to the next
    fixed = Schema((Numeric("age", 0, 120), Categorical("ward", ("a", 4.0))), Labels("y", ("yes",), ("no",)))
    assert fixed.digest == "1a0f7a417bc52d3fdcbae61f7cc6d1f93fdbbab64e752ebd667930f7867ddd01"


def test_range_targets_and_back() -> None:
    rules = Schema((Numeric("a", 0, 1),), Range("y", 10.0, 30.0))
    _, y = mapped(rules, {"a": np.zeros(3), "y": np.array(["10", "25", "1e9"])})
    assert y.tolist() == [-1.0, 0.5, 1.0]
    assert Range("y", 10.0, 30.0).original(np.array([-1.0, 0.5, 1.0])).tolist() == [10.0, 25.0, 30.0]


def test_columns_as_strings_bytes_and_floats_are_the_same() -> None:
    X, _ = mapped(RULES, TABLE)
    texts = {key: np.char.encode(column, "utf-8") for key, column in TABLE.items()}
    floats = {**TABLE, "age": np.array([25.0, 150.0, np.nan, -3.0])}
    assert np.array_equal(mapped(RULES, texts)[0], X) and np.array_equal(mapped(RULES, floats)[0], X)


def test_a_category_may_read_like_a_missing_value_if_the_list_has_it() -> None:
    rules = Schema((Categorical("job", ("?", "a")),), LABELS, False)
    X, _ = mapped(rules, {"job": np.array(["?", "a"]), "y": np.array(["yes", "no"])})
    assert (X > 0).tolist() == [[True, False], [False, True]]
    with opened({"job": np.array(["?", "a"]), "y": np.array(["yes", "no"])}) as (table, _):
        assert complete(table, rules).n == 2


def test_what_cannot_be_preprocessed() -> None:
    with refuses("column", "job"):
        mapped(RULES, {key: TABLE[key] for key in ("age", "s")}, labels=False)
    with refuses("records", "maybe"):
        mapped(RULES, {**TABLE, "y": np.array(["yes", "no", "maybe", "no"])})
    with refuses("column", "y"):
        mapped(RULES, {key: TABLE[key] for key in ("age", "job", "s")})
    with refuses("records", "y", "''"):
        mapped(Schema((Numeric("a", 0, 1),), Range("y", 0, 1)), {"a": np.zeros(2), "y": np.array(["1", ""])})
    with refuses("range", "2.0", "1.0"):
        Numeric("a", 2.0, 1.0)
    with refuses("range", "1.0"):
        Range("a", 1.0, 1.0)
    with refuses("unique"):
        Categorical("a", ("4", "4.0"))
    with refuses("unique"):
        Labels("a", ("1",), ("1.0",))
    with refuses("unique", "a"):
        Schema((Numeric("a", 0, 1),), Range("a", 0, 1))
    with refuses("file"):
        Schema.from_json({})
    with refuses("file", "target"):
        Schema.from_json({"version": 2, "columns": []})


def test_a_long_table_is_the_sum_of_its_blocks(tmp_path: Path) -> None:
    ages = np.random.default_rng(3).integers(0, 101, 40_000)
    file = tmp_path / "long.csv"
    file.write_text("age,job,s\n" + "".join(f"{age},{'ab'[age % 2]},1\n" for age in ages))
    whole = {"age": ages.astype(float), "job": np.array(["a", "b"])[ages % 2], "s": np.ones(len(ages))}
    assert np.array_equal(mapped(RULES, CsvFile(file), labels=False)[0], mapped(RULES, whole, labels=False)[0])
