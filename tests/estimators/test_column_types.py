"""Columns of every type that frames have are read alike by an estimator, which takes them out of the frame, and by
`train`, which hands the frame to DuckDB."""

import datetime
import decimal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from dpmpc.estimators.frames import frame_of
from dpmpc.intake.table import Table, value_sql
from dpmpc.records.loading import opened
from tests.refusals import refuses

pytestmark = pytest.mark.usefixtures("small_tables")
N = 40
RNG = np.random.default_rng(4)
NUMBERS, PLACES = RNG.normal(0, 9, N).round(3), RNG.integers(0, 3, N)
WORDS = np.array(["north", "south", "west"])[PLACES]
GONE = np.arange(N) % 7 == 3
MOMENTS = [datetime.datetime(2020, 2, 27, 6) + datetime.timedelta(hours=31 * k) for k in range(N)]
DAYS = [moment.date() for moment in MOMENTS]
TIMES = [datetime.time(k % 24, k) for k in range(N)]
LENGTHS = [datetime.timedelta(seconds=9000 * k) for k in range(N)]
AMOUNTS = [decimal.Decimal(str(value)) for value in NUMBERS]


def missing(values: Any) -> list[Any]:
    return [None if gone else value for value, gone in zip(values, GONE, strict=True)]


def series(values: Any, dtype: Any = None) -> Callable[[], Any]:
    return lambda: pd.DataFrame({"c": pd.Series(values, dtype=dtype)})


def polars(values: Any, dtype: Any = None) -> Callable[[], Any]:
    return lambda: pl.DataFrame({"c": pl.Series(values, dtype=dtype)})


def arrow(values: Any, dtype: Any = None) -> Callable[[], Any]:
    return lambda: pa.table({"c": pa.array(values, dtype)})


FRAMES: dict[str, Callable[[], Any]] = {
    "pandas category": series(WORDS, "category"),
    "pandas category of numbers": series(PLACES, "category"),
    "pandas Int64": series(missing(PLACES), "Int64"),
    "pandas Float64": series(missing(NUMBERS), "Float64"),
    "pandas float16": series(NUMBERS.astype("float16")),
    "pandas string": series(missing(WORDS), "string"),
    "pandas string[pyarrow]": series(missing(WORDS), "string[pyarrow]"),
    "pandas boolean": series(missing(PLACES > 0), "boolean"),
    "pandas bool": series(PLACES > 0),
    "pandas datetime": series(missing(MOMENTS), "datetime64[ns]"),
    "pandas datetime with a zone": lambda: pd.DataFrame({"c": pd.Series(MOMENTS).dt.tz_localize("Europe/Berlin")}),
    "pandas dates": series(missing(DAYS), object),
    "pandas times": series(missing(TIMES), object),
    "pandas timedelta": series(missing(LENGTHS), "timedelta64[ns]"),
    "pandas timedeltas": series(missing(LENGTHS), object),
    "pandas Decimal": series(missing(AMOUNTS), object),
    "pandas decimal128": series(AMOUNTS, pd.ArrowDtype(pa.decimal128(12, 3))),
    "pandas period": lambda: pd.DataFrame({"c": pd.PeriodIndex(MOMENTS, freq="M")}),
    "pandas interval": lambda: pd.DataFrame({"c": pd.IntervalIndex(pd.cut(NUMBERS, 3))}),
    "pandas intervals of a cut": lambda: pd.DataFrame({"c": pd.cut(NUMBERS, 3)}),
    "pandas sparse": lambda: pd.DataFrame({"c": pd.arrays.SparseArray(PLACES.astype(float))}),
    "pandas numbers and texts": series([place if place else "none" for place in PLACES], object),
    "polars Categorical": polars(WORDS, pl.Categorical),
    "polars Enum": polars(WORDS, pl.Enum(["north", "south", "west"])),
    "polars Date": polars(missing(DAYS)),
    "polars Datetime": polars(missing(MOMENTS)),
    "polars Datetime with a zone": lambda: pl.DataFrame({"c": pl.Series(MOMENTS).dt.replace_time_zone("Asia/Tokyo")}),
    "polars Duration": polars(missing(LENGTHS)),
    "polars Time": polars(missing(TIMES)),
    "polars Decimal": polars(missing(AMOUNTS)),
    "polars Boolean": polars(missing(PLACES > 0)),
    "polars UInt8": polars(missing(PLACES), pl.UInt8),
    "polars Int128": polars(list(range(N)), pl.Int128),
    "arrow dictionary": lambda: pa.table({"c": pa.array(WORDS).dictionary_encode()}),
    "arrow decimal128": arrow(missing(AMOUNTS), pa.decimal128(12, 3)),
    "arrow decimal256": arrow(missing(AMOUNTS), pa.decimal256(40, 3)),
    "arrow timestamp": arrow(missing(MOMENTS), pa.timestamp("us")),
    "arrow timestamp with a zone": arrow(missing(MOMENTS), pa.timestamp("us", tz="UTC")),
    "arrow date32": arrow(missing(DAYS)),
    "arrow date64": arrow(DAYS, pa.date64()),
    "arrow time32": arrow(missing(TIMES), pa.time32("s")),
    "arrow duration": arrow(missing(LENGTHS), pa.duration("s")),
    "arrow string_view": arrow(missing(WORDS), pa.string_view()),
    "arrow float16": arrow(NUMBERS.astype("float16")),
    "arrow bool": arrow(missing(PLACES > 0)),
}


def read(table: Table) -> tuple[list[float], list[str | None]]:
    """What a survey reads of the column: numbers, NaN where one is missing, infinite where it is a text; the texts."""
    column = table["c"]
    (values,) = zip(*table.blocks([value_sql(table, "c", read="either")]), strict=True)
    found = np.concatenate(values)
    texts = [row[0] for row in table.rows(table.text("c"))] if column.kind == "text" else [None] * table.n
    return found.round(9).tolist(), [
        text if np.isinf(value) else None for text, value in zip(texts, found, strict=True)
    ]


@pytest.mark.parametrize("name", FRAMES)
def test_a_column_is_read_alike_from_a_frame_and_from_its_columns(name: str, tmp_path: Path) -> None:
    frame = FRAMES[name]()
    with opened(frame, folder=tmp_path) as (table, _):
        whole = read(table)
    with opened(frame_of(frame), folder=tmp_path) as (table, _):
        apart = read(table)
    np.testing.assert_array_equal(apart[0], whole[0])
    assert apart[1] == whole[1]
    there = np.isfinite(whole[0])
    words = any(
        word in name for word in ("category", "string", "Enum", "Cat", "dictionary", "interval", "ool", "texts")
    )
    assert (np.array(whole[0]) == np.inf).any() == (words and "of numbers" not in name)
    if "time" in name.split() or "Time" in name or "time32" in name:
        assert np.ptp(np.array(whole[0])[there]) < 1  # parts of a day
    if "elta" in name or "uration" in name:
        assert np.nanmax(np.array(whole[0])) == 9000 * (N - 1) / 86_400  # days


def test_a_column_of_no_use_is_refused_by_its_name(tmp_path: Path) -> None:
    with refuses("type", "c", "complex128"), opened(pd.DataFrame({"c": [1j, 2]})):
        pass
    with refuses("type", "c", "complex128"):
        frame_of(pd.DataFrame({"c": [1j, 2]}))
    with refuses("shape", "c", "(2, 1)", kind=ValueError):
        frame_of(pl.DataFrame({"c": [{"a": 1}, {"a": 2}]}))
