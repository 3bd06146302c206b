"""Columns whose type is declared, in every holder that declares one, and odd values of each type."""

import datetime
import decimal
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet

UTC = datetime.UTC
DAY, MOMENT = datetime.date, datetime.datetime


@dataclass(frozen=True)
class Declared:
    """A type, what most records have of it, and values that one may have beside a missing one."""

    type: Any
    usual: Callable[[int], Any]
    odd: tuple[Any, ...] = ()


def _text(k: int) -> str:
    return "abc"[k % 3]


def _moment(k: int) -> Any:
    return MOMENT(2024, 1, 1 + k % 28, tzinfo=UTC)


def _plain(k: int) -> Any:
    return MOMENT(2024, 1, 1 + k % 28)


TYPES: dict[str, Declared] = {
    "int64": Declared(pa.int64(), lambda k: k % 7, (2**63 - 1, -(2**63), 2**53 + 1)),
    "uint64": Declared(pa.uint64(), lambda k: k % 7, (2**64 - 1,)),
    "int8": Declared(pa.int8(), lambda k: k % 7, (127, -128)),
    "double": Declared(
        pa.float64(), lambda k: k % 7 + 0.25,
        (float("nan"), float("inf"), float("-inf"), -0.0, 5e-324, 1.7e308, -1.7e308),
    ),
    "single": Declared(pa.float32(), lambda k: k % 7 + 0.25, (float("nan"), float("inf"), -0.0, 1e-45, 3.4e38)),
    "half": Declared(pa.float16(), lambda k: np.float16(k % 7 + 0.25), (np.float16("nan"), np.float16("inf"))),
    "decimal": Declared(
        pa.decimal128(38, 3), lambda k: decimal.Decimal(k % 7) + decimal.Decimal("0.250"),
        (decimal.Decimal("9" * 35 + ".999"), decimal.Decimal("-0.001"), decimal.Decimal("0.000")),
    ),
    "long decimal": Declared(
        pa.decimal256(60, 3), lambda k: decimal.Decimal(k % 7) + decimal.Decimal("0.250"),
        (decimal.Decimal("9" * 50 + ".999"),),
    ),
    "truth": Declared(pa.bool_(), lambda k: k % 2 == 0),
    "text": Declared(pa.string(), _text, ("", "7", "nan", "-0.0", "x" * 3000, "a\0b", "\u202eab", "2024-01-01")),
    "long text": Declared(pa.large_string(), lambda k: str(k % 7), ("abc", "1e400", "-0", "4.9e-324")),
    "dictionary": Declared(pa.dictionary(pa.int32(), pa.string()), _text, ("zzz", "7", "NA")),
    "dictionary of numbers": Declared(pa.dictionary(pa.int32(), pa.int64()), lambda k: k % 7, (10**12,)),
    "day": Declared(pa.date32(), lambda k: DAY(2024, 1, 1 + k % 28), (DAY(1, 1, 1), DAY(9999, 12, 31))),
    "moment": Declared(pa.timestamp("us"), _plain, (MOMENT(1, 1, 1), MOMENT(9999, 12, 31, 23, 59, 59, 999999))),
    "fine moment": Declared(pa.timestamp("ns"), _plain, (MOMENT(1700, 1, 1), MOMENT(2261, 1, 1))),
    "moment with a zone": Declared(
        pa.timestamp("us", tz="Europe/Berlin"), _moment,
        (MOMENT(1, 1, 2, tzinfo=UTC), MOMENT(9999, 12, 30, tzinfo=UTC), MOMENT(2024, 10, 27, 0, 30, tzinfo=UTC)),
    ),
    "time": Declared(pa.time64("us"), lambda k: datetime.time(k % 24), (datetime.time(23, 59, 59, 999999),)),
    "length": Declared(
        pa.duration("us"), lambda k: datetime.timedelta(hours=k % 24),
        (datetime.timedelta(days=10**6), datetime.timedelta(days=-(10**6))),
    ),
    "bytes": Declared(pa.binary(), lambda k: b"ab", (b"\xff",)),
    "struct": Declared(pa.struct([("a", pa.int64())]), lambda k: {"a": k % 7}, ({"a": None},)),
    "list": Declared(pa.list_(pa.int64()), lambda k: [k % 7], ([],)),
}  # fmt: skip


def _parquet(table: pa.Table, folder: Path, **how: Any) -> Path:
    pa.parquet.write_table(table, folder / "t.parquet", **how)
    return folder / "t.parquet"


def _feather(table: pa.Table, folder: Path) -> Path:
    pa.feather.write_feather(table, folder / "t.arrow")
    return folder / "t.arrow"


def _columns(frame: Any) -> dict[str, Any]:
    return {name: frame[name].to_numpy() for name in frame}


HOLDERS: dict[str, Callable[[pa.Table, Path], Any]] = {
    "Parquet": lambda table, folder: _parquet(table, folder, row_group_size=16),
    "Parquet without ends": lambda table, folder: _parquet(
        table, folder, write_statistics=False, use_dictionary=False, version="1.0"
    ),
    "Arrow": lambda table, folder: table,
    "Arrow in chunks": lambda table, folder: pa.concat_tables([table.slice(0, 7), table.slice(7)]),
    "Feather": _feather,
    "pandas": lambda table, folder: table.to_pandas(),
    "pandas of Arrow": lambda table, folder: table.to_pandas(types_mapper=pd.ArrowDtype),
    "arrays": lambda table, folder: _columns(table.to_pandas()),
    "Polars": lambda table, folder: pl.from_arrow(table),
}


def table_of(kind: str, n: int, odd: dict[int, Any] | None = None) -> pa.Table:
    """n records with a column x of this type, beside z and their owner o; `odd`: the values of some."""
    declared = TYPES[kind]
    x = [declared.usual(k) for k in range(n)]
    for place, value in (odd or {}).items():
        x[place] = value
    z, o = [k % 5 for k in range(n)], ["ab"[k % 2] for k in range(n)]
    return pa.table({"x": pa.array(x, declared.type), "z": pa.array(z), "o": pa.array(o)})


def declared(source: Any) -> Any:
    """The types that a holder declares of its columns; None where they are those of the table. pandas and NumPy have no
    whole number that is missing: such a column is another before it comes here."""
    if isinstance(source, pd.DataFrame):
        return [str(dtype) for dtype in source.dtypes]
    return [str(array.dtype) for array in source.values()] if isinstance(source, dict) else None


UNKNOWN = {("Polars", "long decimal")}  # which Polars writes into no file


def pairs() -> Iterator[tuple[str, str, Any]]:
    """Every holder, type and odd value."""
    for holder in HOLDERS:
        for kind, each in TYPES.items():
            if (holder, kind) not in UNKNOWN:
                yield from ((holder, kind, value) for value in (None, *each.odd))
