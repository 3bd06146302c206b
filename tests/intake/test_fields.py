"""Fields that are Python objects: each spelled by itself, from a fresh interpreter too."""

import datetime
import decimal
import subprocess
import sys
import uuid
from typing import Any

import numpy as np
import pandas as pd
import pytest

from dpmpc.estimators import PrivateLogisticRegression, PrivateRidge
from dpmpc.estimators.targets import classes_in, codes_of, labels
from dpmpc.intake.fields import declared, field, texts_of
from dpmpc.intake.spelling import PLAIN
from dpmpc.intake.table import connect
from tests.forked_commands import HANG
from tests.refusals import refuses

UTC = datetime.UTC


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, None), (float("nan"), None), (pd.NA, None), (pd.NaT, None), (np.datetime64("NaT"), None),
        (decimal.Decimal("NaN"), None), ("", ""), (" a ", " a "), ("é\ud800", "é?"), (5, "5"), (5.0, "5"),
        (2**70, str(2**70)), (0.1, "0.1"), (1e22, "1e+22"), (np.float32(0.1), "0.10000000149011612"),
        (2**53 + 1, "9007199254740993"), (True, "true"), (np.False_, "false"), (decimal.Decimal("1.50"), "1.50"),
        (decimal.Decimal("1e5"), "100000"), (float("inf"), "inf"), (datetime.date(2024, 1, 31), "2024-01-31"),
        (datetime.datetime(2024, 1, 31, 5, 6), "2024-01-31 05:06:00"),
        (datetime.datetime(2024, 1, 31, 1, tzinfo=datetime.timezone(datetime.timedelta(hours=2))),
         "2024-01-30 23:00:00"),
        (datetime.datetime(1, 1, 1, tzinfo=datetime.timezone(datetime.timedelta(hours=2))), "0001-01-01 00:00:00"),
        (pd.Timestamp("2024-01-31"), "2024-01-31 00:00:00"), (datetime.time(5, 6, tzinfo=UTC), "05:06:00"),
        (datetime.timedelta(hours=36), "1.5"), (np.timedelta64(36, "h"), "1.5"),
        (pd.Period("2024-03"), "2024-03-01 00:00:00"),
        (b"caf\xc3\xa9", "café"), ([1, 2], "[1, 2]"), (uuid.UUID(int=7), str(uuid.UUID(int=7))),
    ],
)  # fmt: skip
def test_a_field_is_spelled_by_itself(value: Any, text: str | None) -> None:
    assert field(value) == text
    beside = [1, value, "x", None]
    assert texts_of(beside).tolist() == ["1", text, "x", None]


def test_whole_numbers_of_thousands_of_digits_are_no_numbers() -> None:
    assert field(10**5000).startswith("0x")  # type: ignore[union-attr]


def test_a_connection_finds_no_type_in_values() -> None:
    with connect(None, None) as connection:
        assert connection.execute("SELECT current_setting('pandas_analyze_sample')").fetchone() == (0,)


def test_lists_are_never_read_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """NumPy finds one type for all values of a list; nothing that reads records asks it to."""
    from dpmpc.estimators import frames, linear, targets
    from dpmpc.intake import fields, objects

    asked = np.asarray

    def strict(value: Any, *rest: Any, **more: Any) -> Any:
        typed = rest or more.get("dtype") is not None
        assert typed or not isinstance(value, list | tuple), f"the type of {value[:3]} is found in its values"
        return asked(value, *rest, **more)

    stand_in = type(np)("numpy")
    stand_in.__dict__.update(np.__dict__, asarray=strict)
    for module in (frames, linear, targets, fields, objects):
        monkeypatch.setattr(module, "np", stand_in, raising=False)
    n = 40
    y = [float(k % 7) for k in range(n)]
    X = {"a": [k / n for k in range(n)], "b": [k % 3 for k in range(n)]}
    asked_for: dict[str, Any] = {"engine": "clear", "iterations": 1, "scale": 0, "delta": 1e-5, "spelling": PLAIN}
    frame = pd.DataFrame({name: pd.Series(v, dtype=object) for name, v in X.items()})
    bounds = {"a": [0, 1], "b": [0, 2]}
    PrivateRidge(target_bounds=(0, 10), bounds=bounds, **asked_for).fit(frame, y)
    model = PrivateLogisticRegression(bounds=bounds, classes=[0, 1], **asked_for)
    model.fit(frame, [k % 2 for k in range(n)], owners=["a", "b"] * (n // 2))
    assert set(model.predict(frame).tolist()) <= {0, 1}


def test_one_odd_label_of_a_list_changes_no_other() -> None:
    read, there = labels([1, 0, None, 2**53 + 1, " x "], PLAIN_ZERO)
    assert read.tolist() == [1, 0, "", 2**53 + 1, "x"] and there.tolist() == [True, True, False, True, True]
    assert codes_of(read[there], [0, 1, 2**53, "x", 2**53 + 1])[0].tolist() == [1, 0, 4, 3]
    assert codes_of(read[there], [0, 1])[1] == 2**53 + 1
    with refuses("records", "y", kind=ValueError):
        classes_in(read[there])


PLAIN_ZERO = type(PLAIN)(misfits="zero")


def test_declared_types_do_not_depend_on_what_is_missing() -> None:
    import polars as pl
    import pyarrow as pa

    for make in (
        lambda v: pd.Series(v, dtype="Int64"), lambda v: pd.Series(v, dtype="int64[pyarrow]"),
        lambda v: pl.Series("x", v, dtype=pl.Int32), lambda v: pa.chunked_array([pa.array(v, pa.int16())]),
        lambda v: pd.Series(v, dtype="boolean"), lambda v: pl.Series("x", v).cast(pl.Boolean),
        lambda v: pd.Series(v, dtype="category"), lambda v: pd.Series(v, dtype=object),
    ):  # fmt: skip
        one, other = declared(make([1, 0, 1])), declared(make([1, None, 1]))
        one = one.astype(float) if one.dtype.kind in "iu" else one
        other = other.astype(float) if other.dtype.kind in "iu" else other
        assert one.dtype == other.dtype and (one[[0, 2]] == other[[0, 2]]).all()


FRESH = """
import numpy as np, pandas as pd, warnings
warnings.simplefilter("ignore")
n = 60
x, y = np.arange(n) % 9, np.where(np.arange(n) % 2, "yes", "no")
{}
import sys
assert "duckdb" not in sys.modules
from dpmpc.records.loading import opened
with opened(table) as (found, _):
    assert found.n == n and found.names == ("x", "y"), found.names
    print(found["x"].kind, found.one("count(*)")[0])
"""
OBJECTS = {
    "pandas": "table = pd.DataFrame({'x': x, 'y': y})",
    "pandas with pyarrow": "table = pd.DataFrame({'x': pd.Series(x, dtype='int64[pyarrow]'), 'y': y})",
    "pandas all of pyarrow": "table = pd.DataFrame({'x': x, 'y': y}).convert_dtypes(dtype_backend='pyarrow')",
    "pandas of numpy_nullable": "table = pd.DataFrame({'x': x, 'y': y}).convert_dtypes()",
    "objects": "table = pd.DataFrame({'x': x.astype(object), 'y': y.astype(object)})",
    "arrays": "table = {'x': x, 'y': y}",
    "lists": "table = {'x': x.tolist(), 'y': y.tolist()}",
    "Arrow": "import pyarrow as pa; table = pa.table({'x': x, 'y': y})",
    "Polars": "import polars as pl; table = pl.DataFrame({'x': x, 'y': y})",
    "lazy Polars": "import polars as pl; table = pl.DataFrame({'x': x, 'y': y}).lazy()",
}


@pytest.mark.parametrize("name", OBJECTS)
def test_every_kind_of_object_is_read_in_a_fresh_interpreter(name: str) -> None:
    words = [sys.executable, "-c", FRESH.format(OBJECTS[name])]
    done = subprocess.run(words, capture_output=True, text=True, timeout=HANG, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split()[1] == "60"
