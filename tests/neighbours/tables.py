"""Every kind of source, each made of the same rows, and values that no well-kept column has."""

import datetime
import decimal
import importlib.util
import io
import json
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet

from dpmpc.records.loading import CsvFile, Query

Row = dict[str, Any]
Rows = list[Row]
MANY = 1 << 21  # characters: more than any field of a table of ours, and than a line of DuckDB's

# Values that a field of a column may have in one record alone, by what they are called. None has a line of its own.
UGLY: dict[str, Any] = {
    "none": None, "empty": "", "blank": " \t ", "text": "refused to say", "number as text": "7", "fraction": 0.5,
    "fraction as text": "3.25", "comma": "3,25", "thousands": "1,234,567.5", "code with zeros": "007",
    "huge": 2**70, "beyond digits": 10**5000, "2^53 + 1": 2**53 + 1, "tiny": 5e-324, "nan": float("nan"),
    "infinite": float("inf"), "not finite as text": "inf", "true": True, "true as text": "true", "word for none": "NA",
    "float32": np.float32(0.1), "int8": np.int8(7), "decimal": decimal.Decimal("12.50"),
    "date": datetime.date(2024, 1, 31), "moment": datetime.datetime(2024, 1, 31, 5, 6, 7, 8),
    "moment with a zone": datetime.datetime(2024, 1, 31, 5, tzinfo=datetime.timezone(datetime.timedelta(hours=2))),
    "date as text": "2024-01-31", "date as number": 20240131, "time": datetime.time(5, 6),
    "length": datetime.timedelta(hours=30), "moment of NumPy": np.datetime64("2024-01-31"),
    "list": [1, 2], "object": {"a": 1}, "bytes": b"ab", "other bytes": b"\xff\xfe", "half a character": "\ud800",
    "quote": '"', "quoted": '"a", b', "line": "a\nb", "return": "5\r", "returns": "a\r\nb", "tab": "a\tb",
    "nul": "a\0b", "mark of order": "\ufeff5", "accent": "e\u0301", "unit": "5 kg", "percent": "85%", "slash": "120/80",
    "month": "3 Mar 2024", "clock": "5:06", "long": "x" * 3000, "very long": "x" * MANY, "semicolon": "a;b",
    "minus nothing": -0.0, "largest": 1.7e308, "far below": -1e300, "denormal as text": "4.9e-324",
    "beyond a number as text": "1e400", "first day": datetime.date(1, 1, 1), "last day": datetime.date(9999, 12, 31),
    "no month as text": "2024-13-45", "year nothing": "0000-01-01", "far year": "292278-01-01",
    "nested": {"a": [{"b": 1}]}, "hash": "#5", "formula": "=1+2", "underscore": "1_0",
    "digits elsewhere": "\u0663", "space between": "1 234",
}  # fmt: skip


def rows_of(kind: str, n: int) -> Rows:
    """n rows in whose column x every value is of a kind, beside z and their owner o, which stay."""
    of: dict[str, Callable[[int], Any]] = {
        "whole": lambda k: k % 7,
        "whole where looked at": lambda k: k % 7 if k % 3 == 0 else k % 7 + 0.4,
        "fractions": lambda k: k % 7 + 0.25,
        "texts": lambda k: "abc"[k % 3],
        "numbers as texts": lambda k: str(k % 7),
        "dates as numbers": lambda k: 20240101 + k % 28,
        "dates as texts": lambda k: f"2024-01-{1 + k % 28:02d}",
        "truth": lambda k: k % 2 == 0,
        "nothing": lambda k: None,
        "dates": lambda k: datetime.date(2024, 1, 1 + k % 28),
    }
    return [{"x": of[kind](k), "z": k % 5, "o": "ab"[k % 2]} for k in range(n)]


KINDS = (
    "whole", "whole where looked at", "fractions", "texts", "numbers as texts", "dates as numbers", "dates as texts",
    "truth", "nothing", "dates",
)  # fmt: skip


def plain(value: Any) -> Any:
    """A value as files of texts have it."""
    if value is None or (isinstance(value, float) and value != value):
        return None
    if isinstance(value, bool | np.bool_):
        return "true" if value else "false"
    if isinstance(value, int) and value.bit_length() > 10_000:
        return "9" * 5000
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    return str(value).encode("utf-8", "replace").decode()


def _csv(rows: Rows, folder: Path) -> Any:
    import csv

    path = folder / "t.csv"
    text = io.StringIO()
    writer = csv.writer(text, quoting=csv.QUOTE_ALL, lineterminator="\n")
    writer.writerow(rows[0])
    writer.writerows([["" if (v := plain(value)) is None else v for value in row.values()] for row in rows])
    path.write_bytes(text.getvalue().encode())
    return CsvFile(path)


def _tidy(value: Any) -> Any:
    """A value as JSON has it."""
    if value is None or isinstance(value, bool | list | dict):
        return value
    if isinstance(value, int | np.integer) and not isinstance(value, bool):
        return int(value) if int(value).bit_length() < 10_000 else "9" * 5000
    if isinstance(value, float | np.floating):
        return float(value) if np.isfinite(value) else None
    return plain(value)


def _lines(rows: Rows, folder: Path) -> Any:
    path = folder / "t.jsonl"
    path.write_text("".join(json.dumps({k: _tidy(v) for k, v in row.items()}) + "\n" for row in rows))
    return path


def _array(rows: Rows, folder: Path) -> Any:
    path = folder / "t.json"
    path.write_text(json.dumps([{k: _tidy(v) for k, v in row.items()} for row in rows]))
    return path


def _sqlite(rows: Rows, folder: Path) -> Any:
    """A column without a declared type, in which SQLite has each value as it came."""
    path = folder / "t.db"
    path.unlink(missing_ok=True)
    database = sqlite3.connect(path)
    database.execute("CREATE TABLE t (x, z INTEGER, o TEXT)")
    database.executemany("INSERT INTO t VALUES (?, ?, ?)", [(_of_sqlite(row["x"]), row["z"], row["o"]) for row in rows])
    database.commit()
    database.close()
    return Query(f"sqlite:///{path}", "SELECT * FROM t")


def _of_sqlite(value: Any) -> Any:
    if value is None or isinstance(value, bytes | float):
        return value
    if isinstance(value, int) and abs(value) < 2**63:
        return int(value)
    return plain(value)


def columns_of(rows: Rows) -> dict[str, list[Any]]:
    """The rows' columns as lists."""
    return {name: [row[name] for row in rows] for name in rows[0]}


def _objects(values: Sequence[Any]) -> Any:
    found = np.empty(len(values), dtype=object)
    found[:] = list(values)
    return found


def _pandas(rows: Rows, folder: Path) -> Any:
    given = columns_of(rows)
    return pd.DataFrame({"x": pd.Series(_objects(given["x"]), dtype=object), "z": given["z"], "o": given["o"]})


def _beside_arrow(rows: Rows, folder: Path) -> Any:
    return _pandas(rows, folder).astype({"z": "int64[pyarrow]"})


def _category(rows: Rows, folder: Path) -> Any:
    # pandas itself takes True and 1 for one category, and False and -0.0
    own = int, float, datetime.date, type(None)
    texts = [value if isinstance(value, own) and not isinstance(value, bool) else plain(value)
             for value in columns_of(rows)["x"]]  # fmt: skip
    return _pandas(rows, folder).assign(x=pd.Categorical(_objects(texts)))


def _lists(rows: Rows, folder: Path) -> Any:
    return columns_of(rows)


def _arrays(rows: Rows, folder: Path) -> Any:
    given = columns_of(rows)
    return {"x": _objects(given["x"]), "z": np.array(given["z"]), "o": np.array(given["o"])}


def _series(rows: Rows, folder: Path) -> Any:
    frame = _pandas(rows, folder)
    return {name: frame[name] for name in frame}


def _polars(rows: Rows, folder: Path) -> Any:
    given = columns_of(rows)
    x = pl.Series("x", given["x"], dtype=pl.Object)
    return pl.DataFrame([x, pl.Series("z", given["z"]), pl.Series("o", given["o"])])


def _texts(rows: Rows) -> pa.Table:
    given = columns_of(rows)
    x = pa.array([plain(value) for value in given["x"]], pa.string())
    return pa.table({"x": x, "z": pa.array(given["z"]), "o": pa.array(given["o"])})


def _arrow(rows: Rows, folder: Path) -> Any:
    return _texts(rows)


def _feather(rows: Rows, folder: Path) -> Any:
    pa.feather.write_feather(_texts(rows), folder / "t.arrow")
    return folder / "t.arrow"


def _parquet(rows: Rows, folder: Path) -> Any:
    pa.parquet.write_table(_texts(rows), folder / "t.parquet")
    return folder / "t.parquet"


def _folder(rows: Rows, folder: Path) -> Any:
    """Two files, of which one may have nothing in a column."""
    many = folder / "many"
    many.mkdir(exist_ok=True)
    half = len(rows) // 2
    for k, part in enumerate((rows[:half], rows[half:])):
        there = folder / f"part{k}"
        there.mkdir(exist_ok=True)
        _csv(part, there).path.replace(many / f"{k}.csv")
    return many


def _dask(rows: Rows, folder: Path) -> Any:
    """A frame of Dask in three parts, whose texts are Dask's own."""
    import dask.dataframe as dd

    frame = _pandas(rows, folder)
    return dd.from_pandas(frame.assign(x=_texts(rows)["x"].to_pandas()), npartitions=3)


def _ray(rows: Rows, folder: Path) -> Any:
    """A data set of Ray in three parts, of texts: of Python objects Ray makes none that differ in kind."""
    import ray.data

    return ray.data.from_arrow([_texts(rows).slice(k * -(-len(rows) // 3), -(-len(rows) // 3)) for k in range(3)])


SOURCES: dict[str, Callable[[Rows, Path], Any]] = {
    "CSV": _csv, "JSON lines": _lines, "JSON": _array, "SQLite": _sqlite, "pandas objects": _pandas,
    "pandas objects beside Arrow": _beside_arrow, "pandas category": _category, "lists": _lists, "arrays": _arrays,
    "series": _series, "Polars objects": _polars, "Arrow": _arrow, "Feather": _feather, "Parquet": _parquet,
    "a folder of CSV": _folder,
}  # fmt: skip
if importlib.util.find_spec("dask") is not None:
    SOURCES["Dask"] = _dask
if importlib.util.find_spec("ray") is not None:
    SOURCES["Ray"] = _ray


def neighbours(kind: str, n: int, place: int, ugly: Any) -> tuple[Rows, Rows]:
    """Two tables that differ in the value of one record."""
    return differing(kind, n, {place: ugly})


def differing(kind: str, n: int, odd: Mapping[int, Any], column: str = "x") -> tuple[Rows, Rows]:
    """Two tables that differ in the values of a column of the records at these places."""
    one = rows_of(kind, n)
    other = [dict(row) for row in one]
    for place, ugly in odd.items():
        other[place][column] = ugly
    return one, other
