"""Numbers that a query of DuckDB gives, as NumPy's arrays."""

import importlib
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmpc.intake.engine import duckdb, nanoarrow

ONE = 1 << 17  # rows that DuckDB gives at once
_HELD = 1 << 21  # numbers of a small table that are held at once


def streamed(
    connection: "duckdb.DuckDBPyConnection", query: str, width: int, rows: int | None
) -> Iterator[list[NDArray[Any]]]:
    """The columns of a query (DOUBLE or INTEGER, never NULL; `width` of them, of different names), some rows at a time.
    `rows`: that there are at most, if that is known. So few are asked for at once: what is given row by row DuckDB
    reads and plans twice, which takes longer than such a query does."""
    if rows is not None and rows <= ONE:
        found = list(connection.execute(query).fetchnumpy().values())
        if len(found[0]):
            yield found
        return
    importlib.import_module("duckdb")  # which gives connections `sql`
    with nanoarrow.ArrayStream(connection.sql(query)) as stream:
        for part in stream:
            yield [_values(part.child(k)) for k in range(width)]


def _values(child: Any) -> NDArray[Any]:
    """An Arrow array of numbers without nulls as NumPy's."""
    values = np.asarray(child.buffer(1))
    return values[child.offset : child.offset + len(child)]


def with_nulls(
    connection: "duckdb.DuckDBPyConnection", query: str, width: int, rows: int | None
) -> Iterator[list[tuple[NDArray[np.float64], NDArray[np.uint8] | None, int]]]:
    """The columns of a query (DOUBLE, NULL for none; `width` of them), some rows at a time: numbers, of which a null's
    may be anything, and from which bit on which bits say that there is one (None: all are). `rows` as above; of wide
    tables fewer are held at once."""
    if rows is not None and rows * width <= _HELD:
        yield [(np.ma.getdata(each), _bits(np.ma.getmask(each)), 0)
               for each in connection.execute(query).fetchnumpy().values()]  # fmt: skip
        return
    importlib.import_module("duckdb")
    with nanoarrow.ArrayStream(connection.sql(query)) as stream:
        for part in stream:
            yield [_with_nulls(part.child(k)) for k in range(width)]


def _bits(nothing: Any) -> NDArray[np.uint8] | None:
    """Of a mask of what is missing."""
    return None if nothing is np.ma.nomask else np.packbits(~nothing, bitorder="little")


def _with_nulls(child: Any) -> tuple[NDArray[np.float64], NDArray[np.uint8] | None, int]:
    """An Arrow array of numbers: values, bits of validity, the first one's."""
    bits = np.asarray(child.buffer(0))  # as bytes; none where nothing is missing
    return _values(child), bits if len(bits) else None, child.offset
