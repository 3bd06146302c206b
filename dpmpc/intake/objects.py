"""Records that are Python objects: pandas, Polars, Arrow, DuckDB and NumPy, without a copy where that works; frames of
Dask and Ray, part by part.

A column's type is the one that it is declared to have. Columns that have none (objects, lists, categories, whose values
may be anything) are texts (`intake.fields`): nothing here, nor what is called from here, finds a type in values.
"""

from __future__ import annotations

import importlib
from collections.abc import Collection, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from dpmpc.errors import RecordError, UsageError, sayable
from dpmpc.folders import make_folder
from dpmpc.intake.engine import duckdb, explained, registered
from dpmpc.intake.fields import declared, texts_of
from dpmpc.intake.files import described, open_file, open_files, pyarrow_module
from dpmpc.intake.reading import literal
from dpmpc.intake.scratch import with_room
from dpmpc.intake.table import Table, check_names, check_width, connect, quoted, unused

KINDS = "a pandas, Polars or PyArrow table, a DuckDB relation, a frame of Dask or Ray, or {column: NumPy array}"
_SPREAD = {"dask": "to_parquet", "dask_expr": "to_parquet", "ray": "write_parquet"}  # frames in parts: what writes them
_STORED = "records.parquet"
FRAMES = ("records", _STORED)  # what messages call a frame, which no command of a shell can look at


def open_object(value: Any, connection: duckdb.DuckDBPyConnection, folder: Path, source: str = "records") -> Table:
    """The table that a Python object holds. It must not be changed while it is read.

    A NaN in pandas or NumPy is a missing value, as it is there; in Arrow and Polars, which have nulls, it is an error.
    Errors: an object of another kind, columns of unequal length or of one name, no rows.
    """
    library = type(value).__module__.split(".")[0]
    if isinstance(value, Mapping):
        check_names([*map(str, value)], source)
        return _registered(_arrays(value), connection, source, None)
    if library == "pandas":
        names = [str(name) for name in value.columns]
        check_names(names, source)
        plain = plain_pandas(value.set_axis(names, axis=1))
        untyped = [name for name in names if str(plain[name].dtype) == "object"]
        return _as_texts(_registered(plain, connection, source, names), untyped)
    if isinstance(value, duckdb.DuckDBPyRelation):
        check_width(len(value.columns), source)
        return _through_parquet(value.write_parquet, connection, folder, source)
    if library == "polars":
        frame = value.collect() if hasattr(value, "collect") else value
        check_names(frame.columns, source)
        plain = _plain_polars(frame)
        table = _through_parquet(plain.write_parquet, connection, folder, source)
        return _as_texts(table, [name for name, dtype in frame.schema.items() if str(dtype) == "Null"])
    if is_spread(value):
        return replace(open_files(_in_parts(value, folder, source), connection, folder), source=source)
    if hasattr(value, "__arrow_c_stream__"):
        given = pyarrow_module("pyarrow", source).table(value)
        check_width(given.num_columns, source)
        table = _plain_arrow(given)
        return _registered(table, connection, source, list(table.schema.names))
    raise UsageError(f"records are a path or {KINDS}; got {type(value).__name__}; convert it", code="type")


def plain_pandas(frame: Any) -> Any:
    """A pandas table (named by texts) whose columns are of kinds that others know too: a period is the day on which it
    begins, an interval its text, what is sparse is not, and objects and categories are texts, each by itself. Errors:
    complex numbers."""
    odd: dict[str, Any] = {}
    for name, dtype in frame.dtypes.items():
        kind, of = type(dtype).__name__, getattr(getattr(dtype, "categories", None), "dtype", None)
        if getattr(dtype, "kind", "") == "c":
            raise UsageError(
                f"columns hold numbers or texts; '{sayable(name)}' has {sayable(dtype)}; convert it", code="type"
            )
        if kind == "PeriodDtype":
            odd[name] = frame[name].dt.to_timestamp()
        elif "IntervalDtype" in (kind, type(of).__name__):
            odd[name] = frame[name].astype(object).map(str, na_action="ignore")
        elif kind == "SparseDtype":
            odd[name] = frame[name].sparse.to_dense()
        elif kind == "CategoricalDtype":
            known = texts_of([*frame[name].cat.categories, None])
            odd[name] = known[frame[name].cat.codes.to_numpy()]
        elif getattr(dtype, "kind", "") == "O" and isinstance(dtype, np.dtype):
            odd[name] = texts_of(frame[name].to_numpy())
    if not odd:
        return frame
    pandas = importlib.import_module(type(frame).__module__.split(".")[0])  # the frame is of it: it is there
    texts = {name: pandas.Series(each, frame.index, object) for name, each in odd.items() if type(each) is np.ndarray}
    return frame.assign(**odd | texts)


def _plain_polars(frame: Any) -> Any:
    """A Polars table whose lengths of time are numbers of days, as those of other tables are read, whose integers are
    no longer than DuckDB reads them from a file, and whose objects are texts."""
    lengths = [name for name, dtype in frame.schema.items() if str(dtype).startswith("Duration")]
    days = [frame[name].dt.total_microseconds() / 86_400e6 for name in lengths]
    wide = [frame[name].cast(float) for name, dtype in frame.schema.items() if str(dtype) in ("Int128", "UInt128")]
    objects = [name for name, dtype in frame.schema.items() if str(dtype) == "Object"]
    if objects:
        polars = importlib.import_module(type(frame).__module__.split(".")[0])
        wide += [polars.Series(name, texts_of(frame[name]).tolist(), dtype=polars.String) for name in objects]
    return frame.with_columns([*days, *wide]) if days or wide else frame


def _plain_arrow(table: Any) -> Any:
    """An Arrow table without kinds of numbers that DuckDB does not know: long decimals, short floats."""
    for k, field in enumerate(table.schema):
        word = str(field.type)
        if word == "halffloat" or word.startswith("decimal256"):
            name = "float" if word == "halffloat" else "double"
            table = table.set_column(k, field.name, table.column(k).cast(name))
    return table


def is_spread(value: Any) -> bool:
    """Whether it is a frame of Dask or Ray, whose parts may lie with workers."""
    return hasattr(value, _SPREAD.get(type(value).__module__.split(".")[0], "")) and hasattr(value, "columns")


def stored(value: Any, folder: Path) -> Path:
    """A Parquet file in `folder` with the records of a Python object, or a folder of them, for other processes to read.

    Errors: as `open_object`; the disk is full."""
    if is_spread(value):
        return _in_parts(value, folder, "records")
    path = folder / _STORED
    connection = connect(folder, None)
    try:
        table = open_object(value, connection, folder)
        columns = ", ".join(f"{column.sql} AS {quoted(column.name)}" for column in table.columns)
        connection.execute(f"COPY (SELECT {columns} FROM {table.relation}) TO {literal(str(path))} (FORMAT parquet)")
    except duckdb.Error as error:
        raise RecordError(explained(error, "records"), "records cannot be read") from None
    finally:
        connection.close()
    return path


def _arrays(value: Mapping[Any, Any]) -> dict[str, Any]:
    """Equally long one-dimensional arrays by name, in the machine's byte order, texts as objects."""
    arrays = {str(name): declared(column) for name, column in value.items()}
    shapes = {array.shape for array in arrays.values()}
    if len(shapes) != 1 or len(next(iter(shapes))) != 1:
        raise UsageError(
            f"columns are equally long and have one dimension; got {sayable(str(sorted(shapes)[:4]))}; make them so",
            code="shape",
        )
    for name, array in arrays.items():
        if array.dtype.kind not in "OUSbiufMm":
            raise UsageError(
                f"columns hold numbers or texts; '{sayable(name)}' has {array.dtype}; convert it", code="column"
            )
        if array.dtype.kind in "Mm" and np.datetime_data(array.dtype)[0] not in ("s", "ms", "us", "ns"):
            arrays[name] = array.astype(f"{array.dtype.kind}8[s]")  # others DuckDB does not know
        if array.dtype.kind == "S":
            arrays[name] = np.char.decode(array, "utf-8")
        elif array.dtype.kind in "iuf" and not array.dtype.isnative:
            arrays[name] = array.astype(array.dtype.newbyteorder("="))
    return arrays


def _in_parts(value: Any, folder: Path, source: str) -> Path:
    """A folder with a Parquet file for each part, in their order, written by whoever holds the parts: no process need
    hold them all. Workers that are on other machines must see the folder."""
    names = value.columns() if callable(value.columns) else value.columns
    check_names([str(name) for name in names], source)
    into = folder / f"parts{len(list(folder.iterdir()))}"
    make_folder(into, "records of other processes go through a temporary folder", "set TMPDIR to another")
    if hasattr(value, "to_parquet"):
        named = value.rename(columns={name: str(name) for name in names})
        if hasattr(named, "map_partitions"):  # each part's objects are texts before it is written
            named = named.map_partitions(_plain_part)
        named.to_parquet(str(into), write_index=False, name_function=lambda k: f"{k:09d}.parquet")
    else:
        value.write_parquet(str(into))
    return into


def _plain_part(frame: Any) -> Any:
    """A part as `plain_pandas` gives it, its objects declared as texts: a file's types are known before it is written,
    from a part without records."""
    plain = plain_pandas(frame)
    return plain.astype({name: "string" for name, dtype in plain.dtypes.items() if dtype == np.dtype(object)})


def _registered(value: Any, connection: duckdb.DuckDBPyConnection, source: str, names: list[str] | None) -> Table:
    try:
        view = unused("object")
        registered(connection, view, value)
        return described(view, source, names, connection)
    except duckdb.Error as error:
        raise RecordError(explained(error, source), f"{source} cannot be read") from None


def _as_texts(table: Table, names: Collection[str]) -> Table:
    """The table in which these columns are of texts, those too in which there is no value at all."""
    columns = (
        replace(column, sql=f"CAST({column.sql} AS VARCHAR)", type="VARCHAR")
        if column.name in names and column.type != "VARCHAR"
        else column
        for column in table.columns
    )
    return replace(table, columns=tuple(columns))


def _through_parquet(write: Any, connection: duckdb.DuckDBPyConnection, folder: Path, source: str) -> Table:
    """By way of a file: relations belong to their own DuckDB, and Polars hands over its columns only with pyarrow."""
    path = folder / f"{len(list(folder.iterdir()))}.parquet"
    try:
        with with_room(source):
            write(str(path))
    except duckdb.Error as error:
        raise RecordError(explained(error, source), f"{source} cannot be read") from None
    return replace(open_file(path, connection, folder), source=source)
